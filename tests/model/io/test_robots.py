"""Every robot of the example-robot-data wheel, fixed and free, against Pinocchio and complex step."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import featherjet as fj
from featherjet.errors import ModelError, SingularMassMatrix
from featherjet.verify import complex_step
from helpers import State, agree, each_agrees, forces, random_state

ID, FD, STEP = 1e-12, 1e-9, 1e-11
FILES = {name: path for name, path in fj.robots().items() if path != "built-in"}
ROOTS = ("fixed", "free")
NO_JOINT = {"iris_simple", "quadrotor_base"}  # one rigid body: nothing moves unless the base is free
CASES = [(name, root) for name in FILES for root in ROOTS if root == "free" or name not in NO_JOINT]
SINGULAR = 1e-12  # least eigenvalue of M, scaled to a unit diagonal, below which no digit of M^-1 is left
# Links of mass without inertia: Pinocchio, NumPy and we all lose the same eight digits of a,
# so it is judged by what a is meant to do, not by its digits.
ILL_CONDITIONED = {"icub"}

pytestmark = pytest.mark.filterwarnings(
    "ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning"
)


def pair(name: str, root: str) -> tuple[fj.Robot, pin.Model, pin.Data]:
    robot = fj.load(FILES[name], root=root)
    base = [pin.JointModelFreeFlyer()] if root == "free" else []
    m = pin.buildModelFromUrdf(FILES[name], *base)
    return robot, m, m.createData()


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def least_inertia(M: np.ndarray) -> float:
    """The least eigenvalue of M, every dof scaled to unit inertia: zero, or rounding, if M is singular."""
    d = np.sqrt(np.maximum(np.diagonal(M), 1e-300))
    return float(np.linalg.eigvalsh(M / np.outer(d, d))[0]) if (np.diagonal(M) > 0).all() else 0.0


def test_enough_robots() -> None:
    assert len(FILES) >= 60
    assert len({name for name, _ in CASES}) >= 25


@pytest.mark.parametrize("name", sorted(NO_JOINT))
def test_one_rigid_body_does_not_move(name: str) -> None:
    with pytest.raises(ModelError, match="no moving joint"):
        fj.load(FILES[name])


@pytest.mark.parametrize("name, root", CASES)
def test_inverse_dynamics(name: str, root: str) -> None:
    robot, m, d = pair(name, root)
    assert robot.joint_names == tuple(m.names)[1:]
    assert (robot.nq, robot.nv) == (m.nq, m.nv)
    np.testing.assert_array_equal(robot.neutral(), pin.neutral(m))
    s = random_state(robot, 2)
    tau, M, got = robot.inverse_dynamics(*s), robot.mass_matrix(s.q), robot.inverse_dynamics_derivatives(*s)
    C, g, b = robot.coriolis_matrix(s.q, s.v), robot.gravity(s.q), robot.bias(s.q, s.v)
    T, c, A = robot.forward_kinematics(s.q), robot.center_of_mass(s.q), robot.centroidal_map(s.q)
    for k, (q, v, a, f) in enumerate(zip(*s, strict=True)):
        agree(tau[k], pin.rnea(m, d, q, v, a, forces(f)), ID, "tau")
        pin.crba(m, d, q)
        agree(M[k], symmetric(d.M), ID, "M")
        floor = 0.01 * np.abs(M[k]).max()
        agree(C[k], pin.computeCoriolisMatrix(m, d, q, v), ID, "C", floor)
        agree(g[k], pin.computeGeneralizedGravity(m, d, q), ID, "g", floor)
        agree(b[k], pin.nonLinearEffects(m, d, q, v), ID, "b", floor)
        agree(c[k], pin.centerOfMass(m, d, q), ID, "c")
        agree(A[k], pin.computeCentroidalMap(m, d, q).reshape(6, m.nv), ID, "A")
        pin.forwardKinematics(m, d, q)
        agree(T[k], np.stack([X.homogeneous for X in list(d.oMi)[1:]]), ID, "T")
        by_q, by_v, _ = pin.computeRNEADerivatives(m, d, q, v, a, forces(f))
        agree(got.dtau_dq[k], by_q, ID, "dtau_dq")
        agree(got.dtau_dv[k], by_v, ID, "dtau_dv", floor)
    for by, x in zip("qva", got, strict=True):
        true = complex_step(robot, "inverse_dynamics", by, q=s.q, v=s.v, a=s.a, fext=s.fext)
        each_agrees(x, true, STEP, f"dtau_d{by} by complex step", 0.01 * np.abs(M).max((-2, -1)))


@pytest.mark.parametrize("name, root", CASES)
def test_forward_dynamics(name: str, root: str) -> None:
    """A robot that has a motion without inertia must be refused, any other must agree."""
    robot, m, d = pair(name, root)
    s = random_state(robot, 2)
    tau = robot.inverse_dynamics(*s)
    least = min(least_inertia(M) for M in robot.mass_matrix(s.q))
    if least < SINGULAR:
        for call in (robot.forward_dynamics, robot.forward_dynamics_derivatives):
            with pytest.raises(SingularMassMatrix, match=f"{robot.name!r}"):
                call(s.q, s.v, tau, s.fext)
        return
    if name in ILL_CONDITIONED:
        residuals(robot, s, tau)
        return
    a, got = (
        robot.forward_dynamics(s.q, s.v, tau, s.fext),
        robot.forward_dynamics_derivatives(s.q, s.v, tau, s.fext),
    )
    Minv = robot.inverse_mass_matrix(s.q)
    for k, (q, v, _, f) in enumerate(zip(*s, strict=True)):
        agree(a[k], pin.aba(m, d, q, v, tau[k], forces(f)), FD, "a")
        agree(Minv[k], symmetric(pin.computeMinverse(m, d, q)), FD, "Minv")
        by_q, by_v, by_tau = pin.computeABADerivatives(m, d, q, v, tau[k], forces(f))
        floor = 0.01 * np.abs(Minv[k]).max()
        agree(got.da_dq[k], by_q, FD, "da_dq", floor)
        agree(got.da_dv[k], by_v, FD, "da_dv", floor)
        agree(got.da_dtau[k], symmetric(by_tau), FD, "da_dtau")
    complex_forward(robot, s, tau, got)


def residuals(robot: fj.Robot, s: State, tau: np.ndarray) -> None:
    """a gives back tau, and M da_du + dtau_du vanishes, both to the last digits."""
    M = robot.mass_matrix(s.q)
    assert np.linalg.cond(M).max() > 1e6
    a = robot.forward_dynamics(s.q, s.v, tau, s.fext)
    each_agrees(robot.inverse_dynamics(s.q, s.v, a, s.fext), tau, ID, "tau")
    forward = robot.forward_dynamics_derivatives(s.q, s.v, tau, s.fext)
    inverse = robot.inverse_dynamics_derivatives(s.q, s.v, a, s.fext)
    each_agrees(-M @ forward.da_dq, inverse.dtau_dq, FD, "dtau_dq")
    each_agrees(-M @ forward.da_dv, inverse.dtau_dv, FD, "dtau_dv")
    each_agrees(M @ forward.da_dtau, np.tile(np.eye(robot.nv), (len(M), 1, 1)), 1e-6, "M M^-1")


def complex_forward(robot: fj.Robot, s: State, tau: np.ndarray, got: fj.ForwardDynamicsDerivatives) -> None:
    for by, x in zip(("q", "v", "tau"), got, strict=True):
        true = complex_step(robot, "forward_dynamics", by, q=s.q, v=s.v, tau=tau, fext=s.fext)
        each_agrees(x, true, STEP, f"da_d{by} by complex step", 0.01 * np.abs(got.da_dtau).max((-2, -1)))
