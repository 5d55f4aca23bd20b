"""Own velocities v = B(q) u: an Euler-angle base against a chain of joints, kindr's own B, and complex step."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError
from featherjet.math.scalars import sincos, sqrt
from featherjet.model.builder import transform
from featherjet.verify import check, complex_step
from helpers import agree, every_kind, random_state

H = 1e-30
LEG = transform(np.eye(3), np.array([0.1, 0.3, -0.4]))


def euler_rates(q: Any) -> np.ndarray:
    """B of a kindr base followed by other joints: u has the rates of Euler angles z, y, x in place of omega."""
    w, x, y, z = q[3:7]
    sy, cy_sx, cy_cx = 2 * (w * y - x * z), 2 * (y * z + w * x), w * w - x * x - y * y + z * z  # of the angles
    cy = sqrt(1 - sy * sy)
    B = np.eye(len(q) - 1).astype(object)
    B[3:6, 3:6] = [[-sy, 0.0, 1.0], [cy_sx, cy_cx / cy, 0.0], [cy_cx, -cy_sx / cy, 0.0]]
    return B


def hopper(base: str) -> fj.Robot:
    """A box with a leg, on a free joint or on prismatic and revolute joints in the order of `euler_rates`."""
    b = fj.ModelBuilder("hopper")
    if base == "free":
        b.add_joint("x", "free")
    else:
        for name, parent in zip(("px", "py", "pz"), (None, "px", "py"), strict=True):
            b.add_joint(name, "prismatic", *([parent] if parent else []), axis=np.eye(3)["xyz".index(name[1])])
        for name, parent in zip("zyx", ("pz", "z", "y"), strict=True):
            b.add_joint(name, "revolute", parent, axis=np.eye(3)["xyz".index(name)])
    b.add_joint("knee", "revolute", "x", LEG, axis=(1, 2, 3))
    for name in ("x", "knee"):
        b.add_body(name, 1.5, np.array([0.1, -0.05, 0.02]), np.diag([0.02, 0.03, 0.04]))
    return fj.Robot(b.build())


def quaternion(angles: np.ndarray) -> np.ndarray:
    """w x y z of Euler angles z, y, x (..., 3)."""
    (sz, sy, sx), (cz, cy, cx) = (np.moveaxis(f(angles / 2), -1, 0) for f in (np.sin, np.cos))
    return np.stack(
        [
            cz * cy * cx + sz * sy * sx, cz * cy * sx - sz * sy * cx,
            cz * sy * cx + sz * cy * sx, sz * cy * cx - cz * sy * sx,
        ], -1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> tuple[fj.Robot, fj.Robot]:
    """The hopper with rates of Euler angles, and the chain that has them as joints."""
    return hopper("free").with_convention("kindr").with_velocities(euler_rates), hopper("chain")


@pytest.fixture(scope="module")
def state() -> tuple[np.ndarray, ...]:
    """Coordinates of the chain and those of the free hopper, velocities, accelerations, forces on body and leg."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.2, 1.2, size=(5, 7))
    return x, np.concatenate([x[:, :3], quaternion(x[:, 3:6]), x[:, 6:]], -1), *rng.normal(size=(3, 5, 7))


def test_a_base_of_euler_rates_is_a_chain_of_joints(pair, state) -> None:
    """Every quantity, and its derivatives along each rate, to rounding."""
    own, chain = pair
    x, q, u, du, tau = state
    assert repr(own).startswith("<Robot (own velocities) hopper")
    for name, more in (
        ("inverse_dynamics", (u, du)),
        ("forward_dynamics", (u, tau)),
        ("mass_matrix", ()),
        ("inverse_mass_matrix", ()),
        ("bias", (u,)),
        ("gravity", ()),
        ("kinetic_energy", (u,)),
        ("coriolis_matrix", (u,)),
        ("inverse_dynamics_derivatives", (u, du)),
        ("forward_dynamics_derivatives", (u, tau)),
        ("centroidal_derivatives", (u, du)),
        ("gravity_derivatives", ()),
    ):
        got, expected = getattr(own, name)(q, *more), getattr(chain, name)(x, *more)
        pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
        for k, (a, b) in enumerate(pairs):
            agree(a, b, 1e-10, f"{name} {k}")
    for name, more in (("frame_jacobian", ()), ("jacobian_derivative", (u,)), ("jacobian_drift", (u,))):
        got = getattr(own, name)(q, *more, "knee", viewpoint="world_aligned")
        agree(got, getattr(chain, name)(x, *more, "knee", viewpoint="world_aligned"), 1e-11, name)


def test_products_and_contacts_are_those_of_the_chain(pair, state) -> None:
    own, chain = pair
    x, q, u, du, tau = state
    rng = np.random.default_rng(5)
    w, *along = rng.normal(size=(4, 5, 7))
    grips = [fj.Contacts(robot, [fj.PointContact("knee", at=(0.1, 0, -0.3))]) for robot in pair]
    forces = rng.normal(size=(5, 3))
    for name, third in (("inverse_dynamics", du), ("forward_dynamics", tau)):
        for got, expected in zip(own.vjp(name, q, u, third, w), chain.vjp(name, x, u, third, w), strict=True):
            agree(got, expected, 1e-10, name)
        agree(own.jvp(name, q, u, third, *along), chain.jvp(name, x, u, third, *along), 1e-10, name)
    for name, inputs, extra in (
        ("constrained_dynamics", (u, tau), {}),
        ("constrained_dynamics_derivatives", (u, tau), {}),
        ("impulse_dynamics", (u,), {"restitution": 0.3}),
        ("impulse_dynamics_derivatives", (u,), {"restitution": 0.3}),
    ):
        found = [getattr(r, name)(s, *inputs, c, **extra) for r, s, c in zip(pair, (q, x), grips, strict=True)]
        for k, (got, expected) in enumerate(zip(*found, strict=True)):
            agree(got, expected, 1e-9, f"{name} {k}")
    for name, inputs in (("constrained_dynamics", (u, tau)), ("impulse_dynamics", (u,))):
        both = [r.vjp(name, s, *inputs, w, forces, contacts=c) for r, s, c in zip(pair, (q, x), grips, strict=True)]
        for got, expected in zip(*both, strict=True):
            agree(got, expected, 1e-9, f"vjp of {name}")
        moves = along[: 1 + len(inputs)]
        both = [r.jvp(name, s, *inputs, *moves, contacts=c) for r, s, c in zip(pair, (q, x), grips, strict=True)]
        for got, expected in zip(*both, strict=True):
            agree(got, expected, 1e-9, f"jvp of {name}")


def test_kindrs_own_velocities_as_a_users() -> None:
    """Over the standard robot, B of the kindr sheet gives what with_convention('kindr') gives."""
    robot = hopper("free")

    def B(q: Any) -> np.ndarray:
        x, y, z, w = q[3:7]
        R = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        out = np.eye(7).astype(object)
        out[:3, :3] = R.T
        return out

    own, kindr = robot.with_velocities(B), robot.with_convention("kindr")
    s = random_state(robot, 4)
    state = fj.convert(robot, kindr, s.q, s.v, s.a, s.a)
    mine = fj.convert(robot, own, s.q, s.v, s.a, s.a)
    for got, expected in zip(mine[1:], state[1:], strict=True):
        agree(got, expected, 1e-12)
    for name, inputs in (("inverse_dynamics_derivatives", ("v", "a")), ("forward_dynamics_derivatives", ("v", "tau"))):
        got = getattr(own, name)(mine.q, *(getattr(mine, x) for x in inputs))
        expected = getattr(kindr, name)(state.q, *(getattr(state, x) for x in inputs))
        for a, b in zip(got, expected, strict=True):
            agree(a, b, 1e-11, name)


@pytest.mark.parametrize("convention", ["pinocchio", "drake"])
def test_any_B_on_any_robot(convention: str) -> None:
    """A dense B that is not orthogonal, on every kind of joint, against complex step; values by definition."""
    plain = every_kind(2, 6).with_convention(convention)
    n, nq = plain.nv, plain.nq

    def B(q: Any) -> np.ndarray:
        out = np.eye(n).astype(object)
        for i, j in np.ndindex(n, n):
            out[i, j] += 0.1 * sincos(q[(i + 2 * j) % nq] + i)[0] * q[(3 * i + j) % nq]
        return out

    own = plain.with_velocities(B)
    assert max(f.error for f in check(own, samples=3)) < 1e-9
    s = random_state(own, 3)
    there = fj.convert(own, plain, s.q, s.v, s.a, s.a)
    Bq = np.array([B(q) for q in s.q], float)
    agree(there.v, (Bq @ s.v[..., None])[..., 0], 1e-12)
    agree((there.tau * there.v).sum(-1), (s.a * s.v).sum(-1), 1e-11, "power")
    M = own.mass_matrix(s.q)
    agree(M, np.swapaxes(Bq, -1, -2) @ plain.mass_matrix(s.q) @ Bq, 1e-11)
    agree(M @ own.inverse_mass_matrix(s.q), np.broadcast_to(np.eye(n), M.shape), 1e-8)
    C = own.coriolis_matrix(s.q, s.v)
    Mdot = (complex_step(own, "mass_matrix", "q", q=s.q) @ s.v[:, None, :, None])[..., 0]
    agree(C + np.swapaxes(C, -1, -2), Mdot, 1e-10, "Mdot - 2C is skew")
    agree((C @ s.v[..., None])[..., 0] + own.gravity(s.q), own.bias(s.q, s.v), 1e-10)
    agree((M @ s.a[..., None])[..., 0] + own.bias(s.q, s.v), own.inverse_dynamics(s.q, s.v, s.a), 1e-10)
    Minv, by_force = own.inverse_mass_matrix(s.q), own.inverse_dynamics_force_derivatives(s.q)
    agree(own.forward_dynamics_force_derivatives(s.q), -np.einsum("nij,njkl->nikl", Minv, by_force), 1e-8)


def test_configurations_move_along_u() -> None:
    plain = hopper("free").with_convention("kindr")
    own = plain.with_velocities(euler_rates)
    rng = np.random.default_rng(0)
    q, du, w = own.random_configuration(1), *(0.3 * rng.normal(size=(2, own.nv)))
    end, steps, moved = own.integrate(q, du), 1j * H * np.eye(own.nv), own.evaluator.moved
    agree(own.difference(q, end), du, 1e-12)
    agree(own.rate_map(q), moved(q, steps).imag.T / H, 1e-12)
    agree(own.rate_map_inverse(q) @ own.rate_map(q), np.eye(own.nv), 1e-12)
    agree(own.interpolate(q, end, 0.25), own.integrate(q, 0.25 * du), 1e-12)
    by_q, by_du = own.integrate_jacobians(q, du)
    along = own.rate_map(end)
    agree(moved(moved(q, steps), du).imag.T / H, along @ by_q, 1e-11)
    agree(moved(q, du + steps).imag.T / H, along @ by_du, 1e-11)
    by_start, by_end = own.difference_jacobians(q, end)
    agree(by_end @ by_du, np.eye(own.nv), 1e-11)
    agree(by_start, -by_end @ by_q, 1e-11)
    for got, expected in zip(own.vjp("integrate", q, du, w), (w @ by_q, w @ by_du), strict=True):
        agree(got, expected, 1e-12)
    agree(own.jvp("difference", q, end, du, w), by_start @ du + by_end @ w, 1e-12)


def test_backends_batches_and_pickles(pair, state) -> None:
    own, _ = pair
    _, q, u, du, _ = state
    fast = fj.Robot(own.model, backend="compiled").with_convention("kindr").with_velocities(euler_rates)
    assert own.backend == "numpy"
    d = own.inverse_dynamics_derivatives(q, u, du)
    out = tuple(np.empty((5, 7, 7)) for _ in range(3))
    copy = pickle.loads(pickle.dumps(own))
    for robot in (fast, copy, own):
        for got, expected in zip(robot.inverse_dynamics_derivatives(q, u, du, out=out), d, strict=True):
            agree(got, expected, 1e-11)
    one = own.inverse_dynamics_derivatives(q[2], u[2], du[2])
    agree(one.dtau_dq, d.dtau_dq[2], 1e-11)
    assert own.bias(q[:, None], u).shape == (5, 5, 7)
    step = own.bind("inverse_dynamics")
    step.q, step.v, step.a = q[0], u[0], du[0]
    step()
    agree(step.tau, own.inverse_dynamics(q[0], u[0], du[0]), 1e-12)
    assert own.with_convention("kindr").convention == "kindr"
    assert not own.with_gravity([0, 0, 0]).gravity(q).any()
    constant = hopper("free").with_velocities(lambda q: np.eye(7))
    agree(constant.bias(constant.neutral(), u[0]), hopper("free").bias(constant.neutral(), u[0]), 0.0)


def test_what_is_refused(pair) -> None:
    own, chain = pair
    q = own.neutral()
    for B, match in (
        (lambda q: np.eye(3), r"shape \(nv, nv\) = \(7, 7\); got \(3, 3\)"),
        (lambda q: np.eye(7) * float(q[0]), "cannot trace B"),
        (lambda q: "no", "cannot trace B"),
        (3, "expected a function"),
    ):
        with pytest.raises(InputError, match=match):
            chain.with_velocities(B)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="with_velocities does not know joint laws"):
        chain.with_joint_laws().with_velocities(euler_rates)
    with pytest.raises(InputError, match="already"):
        own.with_velocities(euler_rates)
    lock = quaternion(np.array([0.3, np.pi / 2 - 1e-14, 0.2]))
    for singular in (np.concatenate([q[:3], lock, q[7:]]), np.stack([q, np.concatenate([q[:3], lock, q[7:]])])):
        with pytest.raises(fj.FeatherjetError, match=r"B of with_velocities|singular"):
            own.mass_matrix(singular)
    with pytest.raises(InputError, match="not available in the convention 'own velocities'"):
        own.inverse_dynamics_hessian(q, *np.zeros((3, 7)))
    with pytest.raises(InputError, match="lock the robot first"):
        own.lock({"knee": 0.0})
    with pytest.raises(InputError, match="own velocities"):
        own.simulate(q, np.zeros(7))
