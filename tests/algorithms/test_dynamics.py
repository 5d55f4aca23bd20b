"""Dynamics and derivatives of random trees against Pinocchio, complex step and long doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
import helpers
from featherjet.algorithms.dynamics import aba, coupled, ltl
from featherjet.algorithms.dynamics.crba import mass_matrix
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.algorithms.scan import Scan
from featherjet.model.joints import KINDS
from featherjet.verify import complex_step
from helpers import (
    MULTI_DOF,
    State,
    agree,
    each_agrees,
    every_kind,
    forces,
    models,
    random_state,
    to_pinocchio,
    with_state,
)

ID, FD, STEP = 1e-12, 1e-9, 1e-11
NOISE = 1e-2  # entries this small beside M (or its inverse) may be rounding errors of a zero
METHODS = ["fdsva-dmm", "fdsva-aza", "direct"]
REFERENCE_FRAMES = {
    "local": pin.LOCAL,
    "world": pin.WORLD,
    "world_aligned": pin.LOCAL_WORLD_ALIGNED,
}
drawn = with_state(models())


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Pinocchio fills only the upper triangle of M and its inverse."""
    return np.triu(upper) + np.triu(upper, 1).T


def samples(s: State) -> Iterator[tuple[np.ndarray, ...]]:
    yield from zip(*s, strict=True)


def inertia_scale(robot: fj.Robot, s: State) -> np.ndarray:
    """The largest entry of M at each sample: the size of torque that one unit of acceleration takes."""
    return np.abs(robot.mass_matrix(s.q)).max((-2, -1))


Ours = Callable[[fj.Robot, State], Any]
Theirs = Callable[..., Any]

VALUES: dict[str, tuple[Ours, Theirs, float]] = {
    "inverse_dynamics": (
        lambda r, s: r.inverse_dynamics(s.q, s.v, s.a, s.fext),
        lambda m, d, q, v, a, f: pin.rnea(m, d, q, v, a, forces(f)).copy(),
        ID,
    ),
    "bias": (
        lambda r, s: r.bias(s.q, s.v),
        lambda m, d, q, v, a, f: pin.nonLinearEffects(m, d, q, v).copy(),
        ID,
    ),
    "gravity": (
        lambda r, s: r.gravity(s.q),
        lambda m, d, q, v, a, f: pin.computeGeneralizedGravity(m, d, q).copy(),
        ID,
    ),
    "mass_matrix": (
        lambda r, s: r.mass_matrix(s.q),
        lambda m, d, q, v, a, f: symmetric(pin.crba(m, d, q)),
        ID,
    ),
    "coriolis_matrix": (
        lambda r, s: r.coriolis_matrix(s.q, s.v),
        lambda m, d, q, v, a, f: pin.computeCoriolisMatrix(m, d, q, v).copy(),
        ID,
    ),
    "forward_dynamics": (
        lambda r, s: r.forward_dynamics(s.q, s.v, s.a, s.fext),
        lambda m, d, q, v, a, f: pin.aba(m, d, q, v, a, forces(f)).copy(),
        FD,
    ),
    "inverse_mass_matrix": (
        lambda r, s: r.inverse_mass_matrix(s.q),
        lambda m, d, q, v, a, f: symmetric(pin.computeMinverse(m, d, q)),
        FD,
    ),
    "forward_kinematics": (
        lambda r, s: r.forward_kinematics(s.q),
        lambda m, d, q, v, a, f: placements(m, d, q),
        ID,
    ),
    "potential_energy": (
        lambda r, s: r.potential_energy(s.q),
        lambda m, d, q, v, a, f: np.array(pin.computePotentialEnergy(m, d, q)),
        ID,
    ),
    "kinetic_energy": (
        lambda r, s: r.kinetic_energy(s.q, s.v),
        lambda m, d, q, v, a, f: kinetic_energy(m, d, q, v),
        ID,
    ),
    "center_of_mass": (
        lambda r, s: r.center_of_mass(s.q),
        lambda m, d, q, v, a, f: pin.centerOfMass(m, d, q).copy(),
        ID,
    ),
    "centroidal_map": (
        lambda r, s: r.centroidal_map(s.q),
        lambda m, d, q, v, a, f: pin.computeCentroidalMap(m, d, q).reshape(6, m.nv).copy(),
        ID,
    ),
    "centroidal_momentum": (
        lambda r, s: r.centroidal_momentum(s.q, s.v),
        lambda m, d, q, v, a, f: pin.computeCentroidalMomentum(m, d, q, v).vector.copy(),
        ID,
    ),
}


def kinetic_energy(m: pin.Model, d: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Pinocchio 4.1 leaves out some joints' armature (helical, revolute about an oblique axis)."""
    armature = m.armature.copy()
    m.armature = 0 * armature
    energy = pin.computeKineticEnergy(m, d, q, v) + armature @ v**2 / 2
    m.armature = armature
    return np.array(energy)


def placements(m: pin.Model, d: pin.Data, q: np.ndarray) -> np.ndarray:
    pin.forwardKinematics(m, d, q)
    return np.stack([M.homogeneous for M in list(d.oMi)[1:]])


@pytest.mark.parametrize("quantity", VALUES)
@given(drawn)
def test_values_equal_pinocchios(quantity: str, case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    ours, theirs, tolerance = VALUES[quantity]
    m = to_pinocchio(robot.model)
    d = m.createData()
    expected = [theirs(m, d, *sample) for sample in samples(s)]
    each_agrees(ours(robot, s), np.stack(expected), tolerance, quantity, NOISE * inertia_scale(robot, s))


@given(drawn)
def test_inverse_dynamics_derivatives_equal_pinocchios(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    expected = []
    for q, v, a, f in samples(s):
        by_q, by_v, by_a = pin.computeRNEADerivatives(m, d, q, v, a, forces(f))
        expected.append((by_q.copy(), by_v.copy(), symmetric(by_a)))
    got = robot.inverse_dynamics_derivatives(*s)
    floor = NOISE * inertia_scale(robot, s)
    for name, x, y in zip(got._fields, got, zip(*expected, strict=True), strict=True):
        each_agrees(x, np.stack(y), ID, name, floor)


@pytest.mark.parametrize("method", METHODS)
@given(drawn)
def test_forward_dynamics_derivatives_equal_pinocchios(method: str, case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    expected = []
    tau = robot.inverse_dynamics(*s)
    for q, v, t, f in samples(s._replace(a=tau)):
        by_q, by_v, by_tau = pin.computeABADerivatives(m, d, q, v, t, forces(f))
        expected.append((by_q.copy(), by_v.copy(), symmetric(by_tau)))
    got = robot.forward_dynamics_derivatives(s.q, s.v, tau, s.fext, method=method)
    floor = NOISE * np.abs(got.da_dtau).max((-2, -1))
    for name, x, y in zip(got._fields, got, zip(*expected, strict=True), strict=True):
        each_agrees(x, np.stack(y), FD, name, floor)


@given(drawn)
def test_inverse_dynamics_derivatives_equal_complex_step(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    got = robot.inverse_dynamics_derivatives(*s)
    floor = NOISE * inertia_scale(robot, s)
    for by, x in zip("qva", got, strict=True):
        true = complex_step(robot, "inverse_dynamics", by, q=s.q, v=s.v, a=s.a, fext=s.fext)
        each_agrees(x, true, STEP, f"dtau_d{by}", floor)


@pytest.mark.parametrize("method", METHODS)
@given(drawn)
def test_forward_dynamics_derivatives_equal_complex_step(method: str, case: tuple[fj.Robot, State]) -> None:
    """Torques follow from modest accelerations: of large ones, the oracle itself loses digits."""
    robot, s = case
    tau = robot.inverse_dynamics(*s)
    got = robot.forward_dynamics_derivatives(s.q, s.v, tau, s.fext, method=method)
    floor = NOISE * np.abs(got.da_dtau).max((-2, -1))
    for by, x in zip(("q", "v", "tau"), got, strict=True):
        true = complex_step(robot, "forward_dynamics", by, q=s.q, v=s.v, tau=tau, fext=s.fext)
        each_agrees(x, true, STEP, f"da_d{by}", floor)


@given(with_state(models(kinds=MULTI_DOF, most=5)))
def test_derivatives_of_trees_of_multi_dof_joints_only(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    got = robot.inverse_dynamics_derivatives(*s)
    floor = NOISE * inertia_scale(robot, s)
    for by, x in zip("qva", got, strict=True):
        true = complex_step(robot, "inverse_dynamics", by, q=s.q, v=s.v, a=s.a, fext=s.fext)
        each_agrees(x, true, STEP, f"dtau_d{by}", floor)


@pytest.mark.parametrize("frame", REFERENCE_FRAMES)
@given(drawn, st.data())
def test_frames_equal_pinocchios(frame: str, case: tuple[fj.Robot, State], data: st.DataObject) -> None:
    robot, s = case
    name = data.draw(st.sampled_from(robot.frame_names))
    m = to_pinocchio(robot.model)
    d = m.createData()
    at, reference = m.getFrameId(name), REFERENCE_FRAMES[frame]
    J = robot.frame_jacobian(s.q, name, viewpoint=frame)
    v = robot.frame_velocity(s.q, s.v, name, viewpoint=frame)
    T = robot.frame_placement(s.q, name)
    for k, (q, qd, _, _) in enumerate(samples(s)):
        agree(J[k], pin.computeFrameJacobian(m, d, q, at, reference).reshape(6, m.nv), ID, "Jacobian")
        pin.forwardKinematics(m, d, q, qd)
        pin.updateFramePlacements(m, d)
        agree(T[k], d.oMf[at].homogeneous, ID, "placement")
        agree(v[k], pin.getFrameVelocity(m, d, at, reference).vector, ID, "velocity")
        agree(J[k] @ qd, v[k], ID, "J v")


@given(drawn)
def test_fext_defaults_to_none_at_all(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    none = np.zeros_like(s.fext)
    np.testing.assert_array_equal(robot.inverse_dynamics(s.q, s.v, s.a), robot.inverse_dynamics(s.q, s.v, s.a, none))
    np.testing.assert_array_equal(robot.forward_dynamics(s.q, s.v, s.a), robot.forward_dynamics(s.q, s.v, s.a, none))


# Accuracy: the same algorithms on long doubles


def in_long_double(robot: fj.Robot, quantity: str, **inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    return robot.evaluator.reference(quantity, {k: x.astype(np.longdouble) for k, x in inputs.items()})


@given(drawn)
def test_rounding_errors_are_small(case: tuple[fj.Robot, State]) -> None:
    """Our float64 results against 80-bit ones."""
    robot, s = case
    floor = NOISE * inertia_scale(robot, s)
    inverse = in_long_double(robot, "inverse_dynamics_derivatives", q=s.q, v=s.v, a=s.a, fext=s.fext)
    for x, y in zip(robot.inverse_dynamics_derivatives(*s), inverse, strict=True):
        each_agrees(x, y, 1e-13, "inverse", floor)
    forward = in_long_double(robot, "forward_dynamics_derivatives", q=s.q, v=s.v, tau=s.a, fext=s.fext)
    got = robot.forward_dynamics_derivatives(*s)
    for x, y in zip(got, forward, strict=False):
        each_agrees(x, y, 1e-10, "forward", NOISE * np.abs(got.da_dtau).max((-2, -1)))


@pytest.mark.parametrize("kind", ["free", "planar", "translation"])
def test_where_the_robot_stands_costs_no_digits(kind: str, rng: np.random.Generator) -> None:
    """A base a thousand kilometres away: bit for bit the same torques and derivatives."""
    b = fj.ModelBuilder("walker")
    b.add_joint("base", kind)
    b.add_body("base", 3.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.25]))
    b.add_joint("hip", "spherical", "base", np.eye(4))
    b.add_body("hip", 1.0, (0.0, 0.1, -0.2), np.diag([0.02, 0.03, 0.04]))
    b.add_joint("knee", "revolute", "hip", axis=(1, 2, 3))
    b.add_body("knee", 1.0, (0.0, 0.1, -0.2), np.diag([0.02, 0.03, 0.04]))
    robot = fj.Robot(b.build())
    s = random_state(robot)
    far = s.q.copy()
    moved = 2 if kind == "planar" else 3
    far[:, :moved] += 1e6
    for got, near in zip(
        [*robot.inverse_dynamics_derivatives(far, *s[1:]), *robot.forward_dynamics_derivatives(far, *s[1:])],
        [*robot.inverse_dynamics_derivatives(*s), *robot.forward_dynamics_derivatives(*s)],
        strict=True,
    ):
        np.testing.assert_array_equal(got, near)
    np.testing.assert_array_equal(robot.inverse_dynamics(far, *s[1:]), robot.inverse_dynamics(*s))
    np.testing.assert_array_equal(robot.mass_matrix(far), robot.mass_matrix(s.q))


# Factorisation and structure


@given(drawn)
def test_ltl_factorises_and_solves(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    tree = robot.evaluator.tree
    M = mass_matrix(Scan(tree, (3,)), s.q.T)
    for parents in (tree.dof_parents, ltl.dense_parents(robot.nv)):
        factor = ltl.factorise(M, parents)
        for k in range(3):
            L = factor.L[..., k] + np.eye(robot.nv)
            agree(L.T @ np.diag(factor.D[:, k]) @ L, M[..., k], 1e-13, "L^T D L")
            x = ltl.solve(factor, s.a.T)[:, k]
            agree(M[..., k] @ x, s.a[k], FD, "solve")
            agree(ltl.solve(factor, M)[..., k], np.eye(robot.nv), FD, "M^-1 M")
        for row, above in enumerate(factor.ancestors):
            elsewhere = np.setdiff1d(np.arange(robot.nv), above)
            assert not factor.L[row, elsewhere].any()


@given(drawn)
def test_forward_dynamics_by_three_ways(case: tuple[fj.Robot, State]) -> None:
    """Articulated bodies, the dense way of robots with mimicking joints, and NumPy's solver."""
    robot, s = case
    scan = Scan(robot.evaluator.tree, (3,))
    one = np.eye(robot.nv)
    f = [tuple(x) for x in np.moveaxis(s.fext, 0, -1)]
    a = robot.forward_dynamics(*s)
    rhs = s.a - robot.inverse_dynamics(s.q, s.v, 0 * s.a, s.fext)
    each_agrees(a, np.linalg.solve(robot.mass_matrix(s.q), rhs[..., None])[..., 0], FD, "solve")
    each_agrees(a, coupled.forward_dynamics(scan, one, s.q.T, s.v.T, s.a.T, f).a.T, FD, "coupled")
    pivots = aba.factors(scan, s.q.T)
    each_agrees(aba.solve(scan, pivots, rhs.T).T, a, FD, "AZA")


@given(drawn)
def test_inverse_and_forward_dynamics_undo_each_other(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    tau = robot.inverse_dynamics(*s)
    each_agrees(robot.forward_dynamics(s.q, s.v, tau, s.fext), s.a, FD)


@given(with_state(models(), size=1))
def test_branches_give_exact_zeros(case: tuple[fj.Robot, State]) -> None:
    """Entries of dofs that are not on one path to the root are zero to the last bit."""
    robot, s = case
    model = robot.model
    owner = [i for i, j in enumerate(model.joints) for _ in range(j.nv)]
    related = np.zeros((model.njoints, model.njoints), bool)
    for i, end in enumerate(model.subtree_end):
        related[i, i:end] = related[i:end, i] = True
    apart = ~related[np.ix_(owner, owner)]
    d = robot.inverse_dynamics_derivatives(*s)
    for matrix in (*d, robot.mass_matrix(s.q), robot.coriolis_matrix(s.q, s.v)):
        assert not matrix[:, apart].any()


def test_symmetric() -> None:
    robot = every_kind()
    s = random_state(robot)
    Minv = robot.inverse_mass_matrix(s.q)
    np.testing.assert_array_equal(Minv, np.swapaxes(Minv, -1, -2))
    for M in (robot.mass_matrix(s.q), robot.inverse_dynamics_derivatives(*s).dtau_da):
        agree(M, np.swapaxes(M, -1, -2), 1e-15)


@pytest.mark.parametrize("model", [fj.models.chain(70), fj.models.tree(63, branching=2)], ids=["chain70", "tree63"])
def test_large_systems(model: fj.Model) -> None:
    robot = fj.Robot(model)
    s = random_state(robot, 2)
    m = to_pinocchio(model)
    d = m.createData()
    got = robot.inverse_dynamics_derivatives(*s)
    forward = robot.forward_dynamics_derivatives(*s)
    other = robot.forward_dynamics_derivatives(*s, method="fdsva-dmm")
    for k, (q, v, a, f) in enumerate(samples(s)):
        by_q, by_v, _ = pin.computeRNEADerivatives(m, d, q, v, a, forces(f))
        agree(got.dtau_dq[k], by_q, ID, "dtau_dq")
        agree(got.dtau_dv[k], by_v, ID, "dtau_dv")
        for x, y in zip(forward, other, strict=True):
            agree(x[k], y[k], FD, "AZA and DMM")


# Broadcasting and dtypes


FROM_STATE = {"tau": "a", "dv": "v", "q0": "q", "q1": "q"}  # which part of a random state serves as an input
CALLS = {call: tuple(FROM_STATE.get(name, name) for name in names) for call, names in helpers.CALLS.items()}


def results(robot: fj.Robot, call: str, *args: object) -> tuple[np.ndarray, ...]:
    out = getattr(robot, call)(*args)
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("call", CALLS)
def test_leading_axes_broadcast(call: str) -> None:
    robot = every_kind(3, 9)
    s = random_state(robot, 6)
    args = [getattr(s, name) for name in CALLS[call]]
    batch = results(robot, call, *args)
    for k in range(6):
        for x, y in zip(results(robot, call, *(a[k] for a in args)), batch, strict=True):
            assert x.shape == y.shape[1:]
            np.testing.assert_allclose(x, y[k], rtol=1e-13, atol=1e-13 * np.abs(y).max())
    reshaped = results(robot, call, *(a.reshape(2, 3, *a.shape[1:]) for a in args))
    for x, y in zip(reshaped, batch, strict=True):
        np.testing.assert_array_equal(x, y.reshape(2, 3, *y.shape[1:]))
    empty = results(robot, call, *(a[:0] for a in args))
    for x, y in zip(empty, batch, strict=True):
        assert x.shape == (0, *y.shape[1:])
    if len(args) > 1:  # one q against a batch of everything else, and a grid
        one = results(robot, call, args[0][0], *args[1:])
        same = results(robot, call, np.broadcast_to(args[0][0], args[0].shape), *args[1:])
        grid = results(robot, call, args[0][:2, None], *(a[None] for a in args[1:]))
        for x, y, z in zip(one, same, grid, strict=True):
            np.testing.assert_array_equal(x, y)
            assert z.shape == (2, 6, *y.shape[1:])
            np.testing.assert_allclose(z[0], y, rtol=1e-13, atol=1e-13 * np.abs(y).max())


@pytest.mark.parametrize("call", CALLS)
def test_layout_and_dtype_do_not_matter(call: str) -> None:
    b = fj.ModelBuilder("whole numbers")
    for i, kind in enumerate(KINDS):
        b.add_joint(f"j{i}", kind, f"j{i - 1}" if i else None)
        b.add_body(f"j{i}", 1.0, (0.1, 0.2, 0.3), 0.1 * np.eye(3))
    robot = fj.Robot(b.build())
    rng = np.random.default_rng(1)
    q = np.tile(robot.neutral(), (4, 1)).astype(int)
    v, a = rng.integers(-3, 4, (2, 4, robot.nv))
    s = State(q, v, a, rng.integers(-3, 4, (4, robot.njoints, 6)))
    args = [getattr(s, name) for name in CALLS[call]]
    expected = results(robot, call, *(x.astype(float) for x in args))
    strided = [np.repeat(x.astype(float), 2, -1)[..., ::2] for x in args]
    fortran = [np.asfortranarray(x.astype(float)) for x in args]
    lists = [x.tolist() for x in args]
    for variant in (args, strided, fortran, lists):
        for x, y in zip(results(robot, call, *variant), expected, strict=True):
            assert x.dtype == np.float64
            np.testing.assert_array_equal(x, y)
    for x, y in zip(results(robot, call, *(x.astype(np.float32) for x in args)), expected, strict=True):
        assert x.dtype == (np.float32 if call in QUANTITIES else np.float64)  # configurations stay double
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-5 * np.abs(y).max())


@pytest.mark.parametrize("call", CALLS)
def test_inputs_are_left_alone(call: str) -> None:
    robot = every_kind(3, 9)
    s = random_state(robot, 2)
    args = [getattr(s, name).copy() for name in CALLS[call]]
    before = [a.copy() for a in args]
    for a in args:
        a.flags.writeable = False
    for x in results(robot, call, *args):
        assert x.flags.writeable
        assert not any(np.shares_memory(x, a) for a in args)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=10)
@given(st.integers(0, 100))
def test_batches_larger_than_a_chunk(seed: int) -> None:
    from featherjet.evaluate import reference as module

    robot = every_kind(seed, 4)
    n = module.CHUNK + 3
    s = random_state(robot, n, seed)
    tau = robot.inverse_dynamics(*s)
    for k in (0, module.CHUNK - 1, module.CHUNK, n - 1):
        agree(tau[k], robot.inverse_dynamics(*(x[k] for x in s)), 1e-14)
