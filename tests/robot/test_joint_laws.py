"""Joints' laws in the dynamics: against MuJoCo, complex step, and the robot without them."""

from __future__ import annotations

import pickle
from functools import cache

import mujoco
import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError
from featherjet.model.io.mjcf import from_mjmodel
from featherjet.verify import complex_step, complex_steps
from helpers import agree

INERTIAL = '<inertial pos="0.03 -0.02 0.05" mass="1.3" diaginertia="0.02 0.03 0.04"/>'
MJCF = f"""<mujoco><worldbody>
  <body pos="0 0 1"><joint type="slide" axis="1 0 0" damping="2" stiffness="30" springref="0.1"/>{INERTIAL}
    <body pos="0.1 0 0"><joint axis="0 1 0" damping="0.4" stiffness="7" springref="20" armature="0.02"/>{INERTIAL}
      <body pos="0.3 0 0"><joint type="ball" damping="0.6"/>{INERTIAL}
        <body pos="0 0.3 0"><joint axis="0 0 1" frictionloss="FRICTION"/>{INERTIAL}</body></body></body></body>
</worldbody></mujoco>"""


@cache
def robots(friction: float = 0.3, backend: str = "compiled") -> tuple[fj.Robot, fj.Robot]:
    """Without and with its joints' laws."""
    model = mujoco.MjModel.from_xml_string(MJCF.replace("FRICTION", str(friction)))
    plain = fj.Robot(from_mjmodel(model), backend=backend)
    return plain, plain.with_joint_laws(slip=0.2)


def state(robot: fj.Robot, size: int = 3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return robot.random_configuration(0, size=size), *rng.normal(size=(3, size, robot.nv))


def test_torques_and_accelerations_are_mujocos() -> None:
    """Without friction, which MuJoCo treats as a constraint. Its quaternions begin with w."""
    model = mujoco.MjModel.from_xml_string(MJCF.replace("FRICTION", "0"))
    data, (_, robot) = mujoco.MjData(model), robots(0.0)
    q, v, a, tau = state(robot)
    order = [0, 1, 5, 2, 3, 4, 6]
    for k in range(3):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k, order], v[k], a[k]
        mujoco.mj_inverse(model, data)
        agree(robot.inverse_dynamics(q[k], v[k], a[k]), data.qfrc_inverse, 1e-11)
        data.qfrc_applied[:] = tau[k]
        mujoco.mj_forward(model, data)
        agree(robot.forward_dynamics(q[k], v[k], tau[k]), data.qacc, 1e-9)


def test_what_joints_take() -> None:
    plain, robot = robots()
    q, v, a, _ = state(robot)
    p = robot.inverse_dynamics(q, v, a) - plain.inverse_dynamics(q, v, a)
    agree(p[:, 0], 2 * v[:, 0] + 30 * (q[:, 0] - 0.1), 1e-12)
    agree(p[:, 2:5], 0.6 * v[:, 2:5], 1e-11)
    agree(p[:, 5], 0.3 * v[:, 5] / np.hypot(v[:, 5], 0.2), 1e-11)
    agree(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a, 1e-10)
    agree(robot.bias(q, v), plain.bias(q, v) + p, 1e-12)
    agree(robot.gravity(q), robot.inverse_dynamics(q, 0 * v, 0 * v), 1e-12)
    n = robot.projected_newton_euler(q, v)
    agree(n.g - n.f, plain.bias(q, v) + p, 1e-10)
    agree(robot.mass_matrix(q), plain.mass_matrix(q), 1e-14)


@pytest.mark.parametrize("backend", ["compiled", "numpy"])
def test_first_derivatives_by_complex_step(backend: str) -> None:
    _, robot = robots(0.3, backend)
    q, v, a, tau = state(robot)
    d, e = robot.inverse_dynamics_derivatives(q, v, a), robot.forward_dynamics_derivatives(q, v, tau)
    rng = np.random.default_rng(1)
    dq, dv, third, w = rng.normal(size=(4, *v.shape))
    for k, by in enumerate(("q", "v", "a")):
        agree(d[k], complex_step(robot, "inverse_dynamics", by, q=q, v=v, a=a), 1e-11, by)
    for k, by in enumerate(("q", "v", "tau")):
        agree(e[k], complex_step(robot, "forward_dynamics", by, q=q, v=v, tau=tau), 1e-9, by)
    agree(robot.gravity_derivatives(q), complex_step(robot, "gravity", "q", q=q), 1e-11)

    def times(M: np.ndarray, x: np.ndarray) -> np.ndarray:
        return (M @ x[..., None])[..., 0]

    for found, slopes, x in (
        (robot.jvp("inverse_dynamics", q, v, a, dq, dv, third), d, (dq, dv, third)),
        (robot.jvp("forward_dynamics", q, v, tau, dq, dv, third), e, (dq, dv, third)),
    ):
        agree(found, sum(times(M, y) for M, y in zip(slopes, x, strict=True)), 1e-10)
    for gradients, slopes in (
        (robot.vjp("inverse_dynamics", q, v, a, w), d),
        (robot.vjp("forward_dynamics", q, v, tau, w), e),
    ):
        for g, M in zip(gradients, slopes, strict=True):
            agree(g, times(np.swapaxes(M, -1, -2), w), 1e-10)


def test_second_derivatives_by_complex_step() -> None:
    """Of the gradients; qq[j, i] is the derivative along dof i of ds/dq_j."""
    _, robot = robots()
    q, v, a, tau = state(robot)
    w = np.random.default_rng(2).normal(size=v.shape)
    h = robot.inverse_dynamics_hessian(q, v, a, w)
    by_q = complex_steps(robot, "inverse_dynamics_vjp", "q", q=q, v=v, a=a, w=w)
    by_v = complex_steps(robot, "inverse_dynamics_vjp", "v", q=q, v=v, a=a, w=w)
    for x, y in zip(h, (by_q[0], by_v[0], by_v[1], np.swapaxes(by_q[2], -1, -2)), strict=True):
        agree(x, y, 1e-10)
    tensors = robot.inverse_dynamics_second_derivatives(q, v, a)
    agree(np.einsum("bkij,bk->bij", tensors.vv, w), h.vv, 1e-10)
    h = robot.forward_dynamics_hessian(q, v, tau, w)
    by_q = complex_steps(robot, "forward_dynamics_vjp", "q", q=q, v=v, tau=tau, w=w)
    by_v = complex_steps(robot, "forward_dynamics_vjp", "v", q=q, v=v, tau=tau, w=w)
    for x, y in zip(h, (by_q[0], by_v[0], by_v[1], np.swapaxes(by_q[2], -1, -2)), strict=True):
        agree(x, y, 1e-8)
    both = robot.forward_dynamics_second_order(q, v, tau, w)
    agree(both.qq, h.qq, 1e-9)
    agree(both.da_dv, robot.forward_dynamics_derivatives(q, v, tau).da_dv, 1e-9)


def test_with_contacts() -> None:
    plain, robot = robots()
    q, v, _, tau = state(robot)
    held = fj.Contacts(plain, [fj.PointContact(robot.joint_names[-1])])
    p = robot.bias(q, v) - plain.bias(q, v)
    for x, y in zip(
        robot.constrained_dynamics(q, v, tau, held), plain.constrained_dynamics(q, v, tau - p, held), strict=True
    ):
        agree(x, y, 1e-11)
    agree(
        robot.constrained_dynamics(q[0], v[0], tau[0], held).a,
        plain.constrained_dynamics(q, v, tau - p, held).a[0],
        1e-11,
    )
    d = robot.constrained_dynamics_derivatives(q, v, tau, held)
    for k, by in enumerate(("v", "tau")):
        for j in range(robot.nv):
            step = 1e-6 * np.eye(robot.nv)[j]
            ends = [
                robot.constrained_dynamics(q, *((v + s, tau) if by == "v" else (v, tau + s)), held)
                for s in (step, -step)
            ]
            agree(d[1 + k][..., j], (ends[0].a - ends[1].a) / 2e-6, 1e-6, by, floor=1.0)
            agree(d[4 + k][..., j], (ends[0].forces - ends[1].forces) / 2e-6, 1e-6, by, floor=1.0)


def test_simulations_are_the_same() -> None:
    plain, robot = robots()
    q, v, _, tau = state(robot)
    one, two = (r.simulate(q[0], v[0], tau[0], dt=1e-3, duration=0.02) for r in (plain, robot))
    agree(two.q, one.q, 1e-13)
    agree(fj.TimeStep(robot)(q, v, tau).v, fj.TimeStep(plain)(q, v, tau).v, 1e-14)


def test_copies_precision_out_and_refusals() -> None:
    plain, robot = robots()
    q, v, a, _ = state(robot)
    want = robot.inverse_dynamics(q, v, a)
    again = pickle.loads(pickle.dumps(robot))
    agree(again.inverse_dynamics(q, v, a), want, 1e-15)
    agree(robot.with_gravity((0, 0, 0)).gravity(q), want * 0 + (robot.gravity(q) - plain.gravity(q)), 1e-11)
    out = np.empty_like(v)
    assert robot.inverse_dynamics(q, v, a, out=out) is out
    agree(out, want, 1e-15)
    single = robot.inverse_dynamics(*(x.astype(np.float32) for x in (q, v, a)))
    assert single.dtype == np.float32
    bound = robot.bind("inverse_dynamics")
    bound.q[:], bound.v[:], bound.a[:] = q[0], v[0], a[0]
    bound()
    agree(bound.tau, want[0], 1e-14)
    for refused in (lambda: fj.autodiff(robot, "inverse_dynamics"), lambda: robot.with_convention("mujoco")):
        with pytest.raises(InputError, match="joint laws"):
            refused()
    with pytest.raises(InputError, match="slip: expected a positive number"):
        plain.with_joint_laws(slip=0.0)
    with pytest.raises(InputError, match="convention 'pinocchio' alone"):
        plain.with_convention("mujoco").with_joint_laws()
