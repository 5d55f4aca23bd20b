"""Exact Hessians against central differences of the exact gradient of the Lagrangian, and what they are good for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import (
    Acceleration,
    Barrier,
    CenterOfMass,
    Control,
    Cost,
    Custom,
    Energy,
    Force,
    FrictionCone,
    Impact,
    Momentum,
    Phase,
    Placement,
    Problem,
    Residual,
    Rotation,
    SmoothAbs,
    State,
    Translation,
    Velocity,
    WrenchCone,
    solve,
)
from featherjet.errors import InputError
from featherjet.math import se3

Array = np.ndarray
STEP = 1e-5
NEAR = 1e-7  # relative to the largest entry: the error of a central difference of this step


@pytest.fixture(scope="module")
def robot() -> fj.Robot:
    """A tree with joints of all manifolds, so that no order of derivatives can be mistaken for another."""
    rng = np.random.default_rng(0)
    b = fj.ModelBuilder("tree")
    joints = [
        ("base", "free", None), ("hip", "spherical", "base"), ("knee", "revolute", "hip"), ("foot", "revolute", "knee"),
        ("arm", "continuous", "base"), ("hand", "planar", "arm"),
    ]  # fmt: skip
    for name, kind, parent in joints:
        axis = {"axis": (0.0, 1.0, 0.0)} if kind in ("revolute", "continuous") else {}
        b.add_joint(name, kind, parent, se3.exp(0.5 * rng.normal(size=6)), **axis)
        b.add_body(name, mass=1.0, com=0.2 * rng.normal(size=3), inertia=np.diag([0.2, 0.25, 0.3]))
    return fj.Robot(b.build(), backend="compiled")


def gradient(p: Problem, xs: Array, us: Array, costates: Array, t: int, ends: Array) -> Array:
    """Of l_t + p.(f_t (-) end), in the tangent space where it is taken."""
    d = p.linearize(xs, us)
    if t == p.T:
        return np.concatenate([d.Lx[t], np.zeros(p.nu)])
    back = np.eye(p.ndx)
    back[: p.nv, : p.nv] = p.evaluator.run("difference_jacobians", (ends[t, : p.nq], d.next[t, : p.nq]))[1]
    weights = costates[t + 1] @ back
    return np.concatenate([d.Lx[t] + weights @ d.Fx[t], d.Lu[t] + weights @ d.Fu[t]])


def differences(p: Problem, xs: Array, us: Array, costates: Array, t: int) -> Array:
    """The Hessian of the Lagrangian of a knot; charts see its symmetric half."""
    ends, rows = p.values(xs, us).next, []
    for e in STEP * np.eye(p.ndx + p.nu):
        found = []
        for sign in (1.0, -1.0):
            x, u = xs.copy(), us.copy()
            x[t] = p.integrate(xs[t], sign * e[: p.ndx])
            if t < p.T:
                u[t] += sign * e[p.ndx :]
            found.append(gradient(p, x, u, costates, t, ends))
        rows.append((found[0] - found[1]) / (2 * STEP))
    H = np.array(rows)
    return 0.5 * (H + H.T)


def assert_exact(p: Problem, seed: int = 1) -> None:
    """All knots of a problem at random states."""
    rng = np.random.default_rng(seed)
    xs = p.integrate(np.repeat(p.x0[None], p.T + 1, 0), 0.4 * rng.normal(size=(p.T + 1, p.ndx)))
    us, costates = rng.normal(size=(p.T, p.nu)), rng.normal(size=(p.T + 1, p.ndx))
    for t in range(p.T + 1):
        expected = differences(p, xs, us, costates, t)
        d = p.linearize(xs, us, costates)
        H = np.zeros_like(expected)
        H[: p.ndx, : p.ndx] = d.Lxx[t]
        if t < p.T:
            H[: p.ndx, p.ndx :], H[p.ndx :, : p.ndx] = d.Lxu[t], d.Lxu[t].T
            H[p.ndx :, p.ndx :] = d.Luu[t] if p.durations[t] else 0.0  # impacts have ones there
        np.testing.assert_allclose(H, expected, rtol=0, atol=NEAR * np.abs(expected).max())


def start(robot: fj.Robot) -> Array:
    return np.concatenate([robot.neutral(), np.zeros(robot.nv)])


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk4"])
def test_steps_bend_on_all_manifolds(robot: fj.Robot, integrator: str) -> None:
    """Without costs, and with long steps, in which the manifold's own curvature counts."""
    assert_exact(Problem(robot, start(robot), [Phase(1, 0.3, [], integrator=integrator)], hessian="exact"))


def mixed(at: Any) -> list[Any]:
    p = at.position("hand")
    return [p[2] * at.v[0] * at.u[1] + at.q[4] * at.q[5], (1.0 + p @ p).sqrt() * at.com[0] + at.momentum[4] * at.a[2]]


PLACE = se3.exp(np.array([0.3, -0.2, 0.4, 0.5, -0.7, 0.2]))
RESIDUALS: dict[str, Callable[[], Residual]] = {
    "state": State,
    "placement": lambda: Placement("foot", PLACE),
    "rotation": lambda: Rotation("hand", PLACE[:3, :3]),
    "translation": lambda: Translation("foot", (0.1, 0.2, 0.3)),
    "local velocity": lambda: Velocity("foot"),
    "world velocity": lambda: Velocity("foot", viewpoint="world"),
    "aligned velocity": lambda: Velocity("hand", viewpoint="world_aligned"),
    "centre of mass": lambda: CenterOfMass((0.1, 0.2, 0.3)),
    "momentum": Momentum,
    "energy": lambda: Energy(1.0),
    "acceleration": Acceleration,
    "custom": lambda: Custom(mixed),
}


@pytest.mark.parametrize("name", RESIDUALS)
def test_residuals_bend(robot: fj.Robot, name: str) -> None:
    cost = Cost(RESIDUALS[name](), 50.0)
    end = [] if name in ("custom", "acceleration") else [cost]
    assert_exact(Problem(robot, start(robot), [Phase(1, 0.1, [cost, Cost(Control())])], end, hessian="exact"))


def test_activations_weigh_what_residuals_bend_by(robot: fj.Robot) -> None:
    bounded = Cost(Translation("hand", (3.0, 0.0, 0.0)), 9.0, Barrier(-1.0, 1.0))
    costs = [Cost(Placement("foot", PLACE), 20.0, SmoothAbs(0.3)), bounded]
    assert_exact(Problem(robot, start(robot), [Phase(1, 0.1, costs)], costs, hessian="exact"))


HELD: dict[str, Callable[[fj.Robot], fj.Contacts]] = {
    "points": lambda r: fj.Contacts(r, [fj.PointContact("foot"), fj.PointContact("hand", axes="local")]),
    "held points": lambda r: fj.Contacts(
        r,
        [fj.PointContact("foot", at=(0.1, 0.2, 0.3)), fj.PointContact("hand", axes="local", at=(0.3, 0, 0))],
        baumgarte=(7.0, 5.0),
    ),
    "a held surface": lambda r: fj.Contacts(r, [fj.SurfaceContact("foot", at=PLACE)], baumgarte=(7.0, 5.0)),
    "a damped surface": lambda r: fj.Contacts(r, [fj.SurfaceContact("foot", axes="local")], damping=0.1),
}


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("name", HELD)
def test_contacts_bend(robot: fj.Robot, name: str, integrator: str) -> None:
    """Forces and accelerations among the costs, too."""
    contacts = HELD[name](robot)
    cone = WrenchCone("foot", 0.5, (0.1, 0.1)) if "surface" in name else FrictionCone("foot", 0.5)
    costs = [Cost(Force("foot"), 0.1), Cost(cone, 0.1), Cost(Acceleration(), 0.1)]
    assert_exact(Problem(robot, start(robot), [Phase(1, 0.1, costs, contacts, integrator=integrator)], hessian="exact"))


@pytest.mark.parametrize("name", ["points", "a held surface"])
def test_impacts_bend(robot: fj.Robot, name: str) -> None:
    hit = Impact(HELD[name](robot), [Cost(Force("foot"), 0.1), Cost(Translation("hand", (0.0, 0.0, 0.0)))])
    assert_exact(Problem(robot, start(robot), [hit, Phase(1, 0.1, [])], hessian="exact"))


def test_batches_have_the_hessians_of_each(robot: fj.Robot) -> None:
    rng = np.random.default_rng(2)
    costs = [Cost(Placement("foot", PLACE), 20.0), Cost(Momentum()), Cost(Control())]
    p = Problem(robot, start(robot), [Phase(2, 0.1, costs, HELD["points"](robot))], costs[:1], hessian="exact")
    xs = p.integrate(np.broadcast_to(p.x0, (3, p.T + 1, p.nx)), 0.3 * rng.normal(size=(3, p.T + 1, p.ndx)))
    us, costates = rng.normal(size=(3, p.T, p.nu)), rng.normal(size=(3, p.T + 1, p.ndx))
    many = {k: getattr(p.linearize(xs, us, costates), k).copy() for k in ("Lxx", "Lxu", "Luu")}
    for i in range(3):
        one = p.linearize(xs[i], us[i], costates[i])
        for name, whole in many.items():
            np.testing.assert_allclose(whole[i], getattr(one, name), rtol=0, atol=1e-11 * np.abs(whole[i]).max())


def test_a_reach_converges_quadratically() -> None:
    """Residuals that stay large at the optimum: Gauss-Newton converges linearly there."""
    arm = fj.load("arm")
    goal = Placement("tool", arm.frame_placement(np.full(7, 0.5), "tool"))
    costs = [Cost(goal, 1.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    found = {}
    for hessian in ("gauss-newton", "exact"):
        p = Problem(arm, np.zeros(14), [Phase(30, 0.03, costs)], [Cost(goal, 10.0)], hessian=hessian)
        found[hessian] = solve(p, tolerance=1e-11, iterations=200)
    plain, exact = found["gauss-newton"], found["exact"]
    assert plain.converged
    assert exact.converged
    assert exact.iterations < 0.7 * plain.iterations
    assert abs(exact.cost - plain.cost) < 1e-9 * plain.cost
    gains = exact.log["stop"]
    assert gains[-1] < gains[-2] ** 1.5 / gains[-3] ** 0.5  # faster than linearly


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: fj.Contacts(r, [fj.PointContact("foot", other="hand")]), "'foot-hand' is between two bodies"),
        (lambda r: fj.Contacts(r, [fj.PointContact("foot")], damping=0.1), "'foot' is damped"),
        (
            lambda r: fj.Contacts(r, [fj.SurfaceContact("foot"), fj.PointContact("foot", offset=(0.1, 0, 0))]),
            "are redundant at x0",
        ),
    ],
)
def test_what_is_not_known_is_refused(robot: fj.Robot, make: Callable[[fj.Robot], fj.Contacts], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem(robot, start(robot), [Phase(1, 0.1, [], make(robot))], hessian="exact")
