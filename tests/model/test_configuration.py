"""The configuration space, against Pinocchio and complex step.

Of small rotations Pinocchio 4.1 itself is off by up to 1e-9 (its log6 at 1e-8 rad, its Jexp6 at 1e-3 rad): it
judges the larger ones, complex step and round trips judge the small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherjet as fj
from featherjet.errors import InputError
from featherjet.model import configuration
from featherjet.model.joints import KINDS
from helpers import agree, every_kind, models, random_state, to_pinocchio

H = 1e-30
LARGE = [0.0, 0.1, 1.0, 3.0]
SIZES = [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 1.0, 3.0]
TIGHT = 1e-12


@st.composite
def pairs(draw: st.DrawFn, sizes: Sequence[float] = SIZES) -> tuple[fj.Robot, pin.Model, np.ndarray, np.ndarray]:
    """A robot, a configuration, and a tangent vector of some size, from none at all to nearly half a turn.

    Of LARGE ones every entry is: at a small angle x Pinocchio loses digits as eps / x^3 (at 1e-3 seven of them, where
    ours are right to the last), so it is an oracle only for turns that are none at all or not small.
    """
    robot = fj.Robot(draw(models(most=5)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    v = rng.normal(size=robot.nv)
    if sizes is LARGE:
        v = np.copysign(rng.uniform(0.5, 1.0, robot.nv), v)
    v *= draw(st.sampled_from(sizes)) / np.abs(v).max() / np.sqrt(3)
    return robot, to_pinocchio(robot.model), robot.random_configuration(rng), v


def same_configuration(robot: fj.Robot, q: np.ndarray, other: np.ndarray, tolerance: float = TIGHT) -> None:
    """Equal up to the sign of quaternions."""
    q = q.copy()
    for joint, manifold, iq, _ in configuration.parts(robot.model):
        for part in manifold.units:
            if joint.kind.name in ("spherical", "free"):
                x, y = q[iq][part], other[iq][part]
                q[iq.start + part.start : iq.start + part.stop] = x * np.sign(x @ y)
    agree(q, other, tolerance, floor=1.0)


@given(pairs(LARGE))
def test_integrate_equals_pinocchios(case) -> None:
    robot, m, q, v = case
    same_configuration(robot, robot.integrate(q, v), pin.integrate(m, q, v))


@given(pairs(LARGE))
def test_difference_equals_pinocchios(case) -> None:
    robot, m, q, v = case
    end = robot.integrate(q, v)
    agree(robot.difference(q, end), pin.difference(m, q, end), TIGHT, floor=1.0)
    other = robot.random_configuration(7)
    agree(robot.difference(q, other), pin.difference(m, q, other), 1e-10, floor=1.0)


@given(pairs())
def test_difference_undoes_integrate(case) -> None:
    robot, _, q, v = case
    agree(robot.difference(q, robot.integrate(q, v)), v, TIGHT, floor=1.0)
    other = robot.random_configuration(7)
    same_configuration(robot, robot.integrate(q, robot.difference(q, other)), other)


@given(pairs(LARGE))
def test_jacobians_of_integrate_equal_pinocchios(case) -> None:
    robot, m, q, v = case
    n = robot.nv
    by_q, by_v = robot.integrate_jacobians(q, v)
    theirs = [x.reshape(n, n) for x in pin.dIntegrate(m, q, v)]
    agree(by_q, theirs[0], TIGHT, "by q", floor=1.0)
    agree(by_v, theirs[1], TIGHT, "by v", floor=1.0)


@given(pairs(LARGE))
def test_jacobians_of_difference_equal_pinocchios(case) -> None:
    robot, m, q, v = case
    n = robot.nv
    end = robot.integrate(q, v)
    theirs = [x.reshape(n, n) for x in pin.dDifference(m, q, end)]
    for ours, expected in zip(robot.difference_jacobians(q, end), theirs, strict=True):
        agree(ours, expected, 1e-11, floor=1.0)


@given(pairs())
def test_jacobians_of_integrate_equal_complex_step(case) -> None:
    """Column k of the first is the tangent motion of the end when q moves along e_k, seen from the end."""
    robot, _, q, v = case
    by_q, by_v = robot.integrate_jacobians(q, v)
    steps = 1j * H * np.eye(robot.nv)
    model = robot.model
    end = configuration.integrate(model, q, v)
    moved_q = configuration.integrate(model, configuration.integrate(model, q, steps), v)
    moved_v = configuration.integrate(model, q, v + steps)
    along = configuration.integrate(model, end, steps).imag / H  # dq for each tangent direction at the end
    agree((moved_q.imag / H).T, along.T @ by_q, TIGHT, "by q", floor=1.0)
    agree((moved_v.imag / H).T, along.T @ by_v, TIGHT, "by v", floor=1.0)


@given(pairs())
def test_jacobians_of_difference_invert_those_of_integrate(case) -> None:
    robot, _, q, v = case
    end = robot.integrate(q, v)
    by_start, by_end = robot.difference_jacobians(q, end)
    by_q, by_v = robot.integrate_jacobians(q, v)
    one = np.eye(robot.nv)
    agree(by_end @ by_v, one, 1e-11)
    agree(by_start + by_end @ by_q, 0 * one, 1e-11, floor=1.0)


@given(pairs(LARGE), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_interpolate_equals_pinocchios(case, t: float) -> None:
    robot, m, q, v = case
    end = robot.integrate(q, v)
    same_configuration(robot, robot.interpolate(q, end, t), pin.interpolate(m, q, end, t))


@pytest.mark.parametrize("angle", [np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9, np.pi])
@pytest.mark.parametrize("kind", ["continuous", "planar", "spherical", "free"])
def test_near_half_a_turn(kind: str, angle: float, rng: np.random.Generator) -> None:
    """The way there and back; at half a turn itself either way round is right."""
    b = fj.ModelBuilder("x")
    b.add_joint("j", kind)
    b.add_body("j", 1.0, inertia=np.eye(3))
    robot = fj.Robot(b.build())
    for _ in range(20):
        q = robot.random_configuration(rng)
        v = rng.normal(size=robot.nv)
        if kind in ("spherical", "free"):
            v[-3:] *= angle / np.linalg.norm(v[-3:])
        else:
            v[-1] = angle * np.sign(v[-1])
        end = robot.integrate(q, v)
        d = robot.difference(q, end)
        same_configuration(robot, robot.integrate(q, d), end, 1e-12)
        if angle < np.pi:
            agree(d, v, 1e-12 if angle < np.pi - 1e-7 else 1e-7, floor=1.0)


def test_both_signs_of_a_quaternion_are_one_configuration(rng: np.random.Generator) -> None:
    robot = every_kind(1, 8)
    s = random_state(robot)
    q = s.q.copy()
    for joint, _, iq, _ in configuration.parts(robot.model):
        if joint.kind.name in ("spherical", "free"):
            q[:, iq.stop - 4 : iq.stop] *= -1
    agree(robot.difference(s.q, q), np.zeros_like(s.v), 1e-15, floor=1.0)
    np.testing.assert_array_equal(robot.inverse_dynamics(q, *s[1:]), robot.inverse_dynamics(*s))


def test_neutral_is_pinocchios_and_at_rest() -> None:
    robot = every_kind()
    m = to_pinocchio(robot.model)
    np.testing.assert_array_equal(robot.neutral(), pin.neutral(m))
    T = robot.forward_kinematics(robot.neutral())
    for i, joint in enumerate(robot.model.joints):
        up = np.eye(4) if joint.parent < 0 else T[joint.parent]
        agree(T[i], up @ joint.placement, 1e-15)


def test_integrate_keeps_unit_parts_of_norm_one() -> None:
    robot = every_kind()
    q, v = robot.neutral(), np.random.default_rng(0).normal(size=robot.nv)
    for _ in range(2000):
        q = robot.integrate(q, v)
    for _, manifold, iq, _ in configuration.parts(robot.model):
        for part in manifold.units:
            assert abs(np.linalg.norm(q[iq][part]) - 1) < 1e-15


# Random configurations


def test_random_configurations_are_within_limits(rng: np.random.Generator) -> None:
    b = fj.ModelBuilder("limited")
    b.add_joint("r", "revolute", lower=-0.1, upper=0.3)
    b.add_joint("p", "prismatic", "r", lower=2.0, upper=3.0)
    b.add_joint("half", "revolute", "p", lower=5.0)
    b.add_joint("other", "revolute", "half", upper=-5.0)
    b.add_joint("t", "translation", "other", lower=[-1, 0, 5], upper=[-0.5, 0, 6])
    unit = [1.0] * 4
    b.add_joint("f", "free", "t", lower=[1, 2, 3, *(-1.0 * np.array(unit))], upper=[1.5, 2.5, 3.5, *unit])
    robot = fj.Robot(b.build())
    q = robot.random_configuration(rng, 5000)
    lower = np.concatenate([j.lower for j in robot.model.joints])
    upper = np.concatenate([j.upper for j in robot.model.joints])
    assert (q >= lower).all()
    assert (q <= upper).all()
    spread = q.max(0) - q.min(0)
    assert (spread[:2] > 0.99 * (upper - lower)[:2]).all()
    np.testing.assert_allclose(np.linalg.norm(q[:, -4:], axis=-1), 1, atol=1e-15)


def test_random_rotations_are_uniform() -> None:
    """R averages to zero and (trace R)^2 to one, as the first two moments of the group."""
    b = fj.ModelBuilder("x")
    b.add_joint("j", "spherical")
    robot = fj.Robot(b.build())
    R = robot.forward_kinematics(robot.random_configuration(0, 40000))[:, 0, :3, :3]
    assert np.abs(R.mean(0)).max() < 0.015
    assert abs((np.trace(R, axis1=1, axis2=2) ** 2).mean() - 1) < 0.03


@pytest.mark.parametrize("size, shape", [(None, ()), (3, (3,)), ((2, 3), (2, 3)), (0, (0,)), (np.int64(2), (2,))])
def test_sizes_of_random_configurations(size, shape) -> None:
    robot = every_kind()
    q = robot.random_configuration(0, size)
    assert q.shape == (*shape, robot.nq)
    np.testing.assert_array_equal(q, robot.random_configuration(np.random.default_rng(0), size))


@pytest.mark.parametrize("size", [-1, 2.5, "3", (2, -1)])
def test_bad_sizes_are_refused(size) -> None:
    with pytest.raises(InputError, match="size"):
        every_kind().random_configuration(0, size)


@pytest.mark.parametrize("rng", ["seed", -1, 1.5, object()])
def test_bad_seeds_are_refused(rng) -> None:
    with pytest.raises(InputError, match="rng"):
        every_kind().random_configuration(rng)


def test_interpolate_broadcasts() -> None:
    robot = every_kind()
    q0, q1 = robot.random_configuration(0, 2)
    t = np.linspace(0, 1, 5)
    path = robot.interpolate(q0, q1, t)
    assert path.shape == (5, robot.nq)
    same_configuration(robot, path[0], q0)
    same_configuration(robot, path[-1], q1)
    grid = robot.interpolate(robot.random_configuration(0, 3), q1, t[:, None])
    assert grid.shape == (5, 3, robot.nq)
    steps = robot.difference(path[:-1], path[1:])
    agree(steps, np.tile(steps[0], (4, 1)), 1e-12)


def test_every_kind_is_covered() -> None:
    assert {j.kind.name for j in every_kind().model.joints} == set(KINDS)
