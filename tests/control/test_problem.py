"""Problems as horizons: every derivative against central differences of plain functions of the robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import (
    Acceleration,
    Barrier,
    CenterOfMass,
    CenterOfPressure,
    Constraint,
    Control,
    Cost,
    Custom,
    Energy,
    Force,
    FrictionCone,
    Impact,
    JointLimits,
    Momentum,
    Phase,
    Placement,
    Problem,
    Quadratic,
    Rotation,
    SmoothAbs,
    State,
    Translation,
    Velocity,
    WrenchCone,
)
from featherjet.errors import InputError, UnknownName
from featherjet.jit import library as libraries
from featherjet.math import se3
from featherjet.math.rotations import log as log_rotation

Array = np.ndarray
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
HESSIANS = ("gauss-newton", "exact")
STEP = 1e-6
DT = 0.02


def rotation(rng: np.random.Generator) -> Array:
    return se3.exp(np.concatenate([np.zeros(3), rng.normal(size=3)]))[:3, :3]


def contacts(robot: fj.Robot, *feet: str) -> fj.Contacts:
    return fj.Contacts(robot, [fj.PointContact(f) for f in feet], baumgarte=(0.0, 20.0))


def tool(robot: fj.Robot) -> fj.Contacts:
    return contacts(robot, "tool")


def posture(robot: fj.Robot) -> Array:
    """A quadruped with bent legs, turned a little."""
    q = robot.neutral()
    q[3:7] = np.array([0.1, -0.05, 0.2, 1.0]) / np.linalg.norm([0.1, -0.05, 0.2, 1.0])
    q[7:] = 0.3 * np.cos(np.arange(len(q) - 7))
    return q


class Walk:
    """A problem with all kinds of knots and residuals, and the residuals as plain functions of (x, u, stage)."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        robot = self.robot = fj.load("quadruped", backend="compiled")
        nq, nv = robot.nq, robot.nv
        self.four, self.two = contacts(robot, *FEET), contacts(robot, "LF_foot", "RH_foot")
        self.hit = contacts(robot, "LH_foot", "RF_foot")
        q0 = posture(robot)
        self.x0 = np.concatenate([q0, np.zeros(nv)])
        r = np.concatenate([robot.integrate(q0, 0.3 * rng.normal(size=nv)), rng.normal(size=nv)])
        T = se3.transform(rotation(rng), rng.normal(size=3))
        points = rng.normal(size=(3, 3))
        everywhere = [
            (State(r), lambda x, u, c: np.r_[robot.difference(r[:nq], x[:nq]), x[nq:] - r[nq:]]),
            (Placement(FEET[0], T), lambda x, u, c: se3.log(se3.inverse(T) @ robot.frame_placement(x[:nq], FEET[0]))),
            (CenterOfMass(points[0]), lambda x, u, c: robot.center_of_mass(x[:nq]) - points[0]),
            (
                Velocity(FEET[1], viewpoint="world_aligned"),
                lambda x, u, c: robot.frame_velocity(x[:nq], x[nq:], FEET[1], viewpoint="world_aligned"),
            ),
        ]
        flying = [
            (Control(), lambda x, u, c: u),
            (Rotation(FEET[1], T[:3, :3]), lambda x, u, c: log_rotation(T[:3, :3].T @ self.R(x, FEET[1]))),
            (Momentum(), lambda x, u, c: robot.centroidal_momentum(x[:nq], x[nq:])),
            (Energy(3.0), lambda x, u, c: np.atleast_1d(self.energy(x) - 3.0)),
            (Custom(mixed), lambda x, u, c: self.mixed(x, u)),
        ]
        cone = FrictionCone("LF_foot", 0.7)
        standing = [
            (cone, lambda x, u, c: cone.reference.reshape(5, 3) @ self.forces(x, u, c)[:3]),
            (Force("RH_foot", (1.0, 2.0, 3.0)), lambda x, u, c: self.forces(x, u, c)[-3:] - [1.0, 2.0, 3.0]),
            (Acceleration(), lambda x, u, c: self.a(x, u, c)),
        ]
        moving = [(Translation(FEET[2], points), lambda x, u, c: robot.frame_placement(x[:nq], FEET[2])[:3, 3])]
        self.points = points
        self.plain: list[list[tuple[Callable[..., Array], Any]]] = []
        phases: list[Phase | Impact] = []
        for n, held, terms in (
            (2, self.four, [*everywhere, *standing, flying[4]]),
            (3, self.two, [*everywhere[:2], *standing[:1], *moving]),
            (0, self.hit, [*everywhere, (Force("RF_foot"), lambda x, u, c: self.impulses(x, c)[-3:])]),
            (2, None, [*everywhere[:3], *flying]),
        ):
            costs = [Cost(r, rng.uniform(0.5, 2.0, size=len(f(self.x0, np.ones(nv - 6), held)))) for r, f in terms]
            costs[0] = Cost(terms[0][0], costs[0].weight, Barrier(-0.1, 0.2))
            costs[1] = Cost(terms[1][0], costs[1].weight, SmoothAbs(0.3))
            assert held is not None or n
            phases.append(Phase(n, DT, costs, held) if n else Impact(held, costs))  # type: ignore[arg-type]
            self.plain += [[(f, c) for (_, f), c in zip(terms, costs, strict=True)]] * (n or 1)
        last = [Cost(r, 2.0) for r, _ in everywhere]
        self.plain.append([(f, c) for (_, f), c in zip(everywhere, last, strict=True)])
        self.problem = Problem(robot, self.x0, phases, last)
        p = self.problem
        self.xs = p.integrate(np.repeat(self.x0[None], p.T + 1, 0), 0.2 * rng.normal(size=(p.T + 1, p.ndx)))
        self.us = rng.normal(size=(p.T, p.nu))
        self.held = [self.four] * 2 + [self.two] * 3 + [self.hit] + [None] * 3

    def tau(self, u: Array) -> Array:
        return np.r_[np.zeros(6), u]

    def R(self, x: Array, frame: str) -> Array:
        return self.robot.frame_placement(x[: self.robot.nq], frame)[:3, :3]

    def energy(self, x: Array) -> Any:
        q, v = x[: self.robot.nq], x[self.robot.nq :]
        return self.robot.kinetic_energy(q, v) + self.robot.potential_energy(q)

    def dynamics(self, x: Array, u: Array, held: fj.Contacts | None) -> Any:
        q, v = x[: self.robot.nq], x[self.robot.nq :]
        if held is None:
            return self.robot.forward_dynamics(q, v, self.tau(u)), None
        return self.robot.constrained_dynamics(q, v, self.tau(u), held)

    def a(self, x: Array, u: Array, held: fj.Contacts | None) -> Array:
        return self.dynamics(x, u, held)[0]

    def forces(self, x: Array, u: Array, held: fj.Contacts) -> Array:
        return self.dynamics(x, u, held)[1]

    def impulses(self, x: Array, held: fj.Contacts) -> Array:
        return self.robot.impulse_dynamics(x[: self.robot.nq], x[self.robot.nq :], held)[1]

    def mixed(self, x: Array, u: Array) -> Array:
        p = self.robot.frame_placement(x[: self.robot.nq], FEET[3])[:3, 3]
        return np.array([p[2] * x[self.robot.nq] + u[0], np.sqrt(1.0 + p @ p)])

    def next(self, t: int, x: Array, u: Array) -> Array:
        """The next state by functions of the robot."""
        robot, nq = self.robot, self.robot.nq
        q, v = x[:nq], x[nq:]
        if t == 5:
            return np.r_[q, robot.impulse_dynamics(q, v, self.hit)[0]]
        a = self.a(x, u, self.held[t])
        return np.r_[robot.integrate(q, DT * (v + DT * a)), v + DT * a]

    def residuals(self, t: int, x: Array, u: Array) -> list[Array]:
        found = [f(x, u, self.held[t]) for f, _ in self.plain[t]]
        if t in (2, 3, 4):
            found[-1] = found[-1] - self.points[t - 2]
        return found

    def cost(self, t: int, x: Array, u: Array) -> float:
        scale = 1.0 if t in (5, 8) else DT
        terms = zip(self.residuals(t, x, u), self.plain[t], strict=True)
        return scale * sum(float(np.sum(c.weight * charged(c, r)[0])) for r, (_, c) in terms)

    def gauss_newton(self, t: int) -> Array:
        """The Hessian (ndx + nu, ndx + nu) from Jacobians by central differences."""
        p, x, u = self.problem, self.xs[t], self.us[t] if t < self.problem.T else np.zeros(self.problem.nu)
        J = differences(lambda y, w: np.concatenate(self.residuals(t, y, w)), p, x, u)
        values = self.residuals(t, x, u)
        curvature = np.concatenate(
            [c.weight * charged(c, r)[1] * np.ones(len(r)) for r, (_, c) in zip(values, self.plain[t], strict=True)]
        )
        return (1.0 if t in (5, 8) else DT) * J.T @ (curvature[:, None] * J)


def mixed(at: Any) -> Sequence[Any]:
    p = at.position(FEET[3])
    return [p[2] * at.v[0] + at.u[0], (1.0 + p @ p).sqrt()]


def charged(cost: Cost, r: Array) -> tuple[Array, Any]:
    """What rows cost, and the curvature, in NumPy."""
    a = cost.charged
    if isinstance(a, Barrier):
        over = np.minimum(r - a.lower, 0.0) + np.maximum(r - a.upper, 0.0)
        return over**2 / 2, (over != 0).astype(float)
    if isinstance(a, SmoothAbs):
        w = np.asarray(a.width)
        return np.sqrt(r**2 + w**2) - w, w**2 / (r**2 + w**2) ** 1.5
    return r**2 / 2, np.ones(len(r))


def differences(f: Callable[[Array, Array], Array], p: Problem, x: Array, u: Array) -> Array:
    """The Jacobian by x, in its tangent space, and by u."""
    columns = []
    for k in range(p.ndx + p.nu):
        e = STEP * np.eye(p.ndx + p.nu)[k]
        plus, minus = (f(p.integrate(x, s * e[: p.ndx]), u + s * e[p.ndx :]) for s in (1.0, -1.0))
        columns.append((plus - minus) / (2 * STEP))
    return np.stack(columns, -1)


@pytest.fixture(scope="module")
def walk() -> Walk:
    return Walk()


@pytest.fixture(scope="module")
def found(walk: Walk) -> Quadratic:
    kept = vars(walk.problem.linearize(walk.xs, walk.us))  # the next call writes into its arrays
    return Quadratic(**{k: x.copy() for k, x in kept.items() if x is not None})


def near(x: Any, y: Any, tolerance: float) -> None:
    """Equal relative to the largest entry: differences of rounded values have its absolute error."""
    np.testing.assert_allclose(x, y, atol=tolerance * max(1.0, float(np.abs(y).max())), rtol=0)


@pytest.mark.parametrize("t", [0, 3, 4, 5, 6, 8])
def test_values_and_derivatives_are_those_of_plain_functions(walk: Walk, found: Quadratic, t: int) -> None:
    p, x = walk.problem, walk.xs[t]
    u = walk.us[t] if t < p.T else np.zeros(p.nu)
    near(found.cost[t], walk.cost(t, x, u), 1e-10)
    slopes = differences(lambda y, w: np.array([walk.cost(t, y, w)]), p, x, u)[0]
    near(found.Lx[t], slopes[: p.ndx], 1e-6)
    H = walk.gauss_newton(t)
    near(found.Lxx[t], H[: p.ndx, : p.ndx], 1e-6)
    if t == p.T:
        return
    near(found.next[t], walk.next(t, x, u), 1e-10)
    F = differences(lambda y, w: p.difference(found.next[t], walk.next(t, y, w)), p, x, u)
    near(found.Fx[t], F[:, : p.ndx], 1e-6)
    near(found.Fu[t], F[:, p.ndx :], 1e-6)
    near(found.Lu[t], slopes[p.ndx :], 1e-6)
    near(found.Lxu[t], H[: p.ndx, p.ndx :], 1e-6)
    near(found.Luu[t], np.eye(p.nu) if t == 5 else H[p.ndx :, p.ndx :], 1e-6)


def test_values_are_those_of_linearize_and_terms_add_up(walk: Walk, found: Quadratic) -> None:
    p = walk.problem
    values = p.values(walk.xs, walk.us)
    near(values.cost, found.cost, 1e-13)
    near(values.next, found.next, 1e-13)
    near(sum(p.terms(walk.xs, walk.us).values()), values.cost, 1e-13)


def test_rollouts_follow_the_policy(walk: Walk) -> None:
    p, rng = walk.problem, np.random.default_rng(6)
    k, K = 0.1 * rng.normal(size=(p.T, p.nu)), 0.1 * rng.normal(size=(p.T, p.nu, p.ndx))
    gaps, alpha = 0.01 * rng.normal(size=(p.T + 1, p.ndx)), 0.5
    xs, us, cost = p.rollout(walk.x0, walk.xs, walk.us, k, K, np.array(alpha), gaps, False)
    x = p.integrate(walk.x0, (alpha - 1) * gaps[0])
    for t in range(p.T):
        near(xs[t], x, 1e-8)
        u = walk.us[t] - alpha * k[t] - K[t] @ p.difference(walk.xs[t], x)
        near(us[t], 0 * u if t == 5 else u, 1e-8)
        x = p.integrate(walk.next(t, x, u), (alpha - 1) * gaps[t + 1])
    near(cost, p.values(xs, us).cost.sum(), 1e-12)


def test_derivatives_after_a_rollout_are_those_without_it(walk: Walk) -> None:
    """What a rollout has found is used again, but only where it went."""
    p = walk.problem
    zero = np.zeros((p.T, p.nu)), np.zeros((p.T, p.nu, p.ndx))
    xs, us, _ = p.rollout(walk.x0, walk.xs, walk.us, *zero, np.array(1.0), None, False)
    names = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu", "next", "cost")
    for change in (0.0, 0.1):
        us[2] += change
        found = {name: getattr(p.linearize(xs, us), name).copy() for name in names}
        afresh = p.linearize(xs[None], us[None])
        for name in names:
            near(found[name], getattr(afresh, name)[0], 1e-11)


def test_a_batch_of_problems_is_each_of_them(walk: Walk) -> None:
    p = walk.problem
    starts = p.integrate(walk.x0, 0.1 * np.random.default_rng(7).normal(size=(3, p.ndx)))
    zero = np.zeros((3, p.T, p.nu)), np.zeros((3, p.T, p.nu, p.ndx))
    xs, us = np.stack([walk.xs] * 3), np.stack([walk.us] * 3)
    many = p.rollout(starts, xs, us, *zero, np.array([1.0, 0.5, 0.1]), None, False)
    for i, alpha in enumerate((1.0, 0.5, 0.1)):
        one = p.rollout(starts[i], walk.xs, walk.us, zero[0][i], zero[1][i], np.array(alpha), None, False)
        for a, b in zip(many, one, strict=True):
            near(a[i], b, 1e-9)
    whole, part = p.linearize(many[0], many[1]), p.linearize(many[0][1], many[1][1])
    for name in ("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu", "next", "cost"):
        near(getattr(whole, name)[1], getattr(part, name), 1e-11)


def test_motions_that_diverge_have_no_finite_cost(walk: Walk) -> None:
    p = walk.problem
    k = np.full((p.T, p.nu), 1e200)
    zero = np.zeros((p.T, p.nu, p.ndx))
    assert not np.isfinite(p.rollout(walk.x0, walk.xs, walk.us, k, zero, np.array(1.0), None, False)[2])


def test_guesses_hold_still(walk: Walk) -> None:
    p = walk.problem
    xs, us = p.guess()
    q = walk.x0[: p.nq]
    near(xs, np.repeat(walk.x0[None], p.T + 1, 0), 1e-14)
    assert np.abs(walk.a(walk.x0, us[0], walk.four)).max() < 1e-8
    near(us[-1], walk.robot.gravity(q)[6:], 1e-10)  # in flight joints hold the legs up
    assert (us[5] == 0).all()


def test_windows_of_a_problem_are_its_knots(walk: Walk, found: Quadratic) -> None:
    part = walk.problem.window(1, 4)
    knots = slice(1, 6)
    some = part.linearize(walk.xs[knots], walk.us[1:5])
    for name in ("Fx", "Fu", "Lxx", "next", "cost"):
        near(getattr(some, name)[:4], getattr(found, name)[1:5], 1e-12)
    assert part.durations.tolist() == [DT] * 4
    assert walk.problem.window(7, 3).durations.tolist() == [DT] * 3  # the last knot again


def test_a_batch_takes_its_own_references() -> None:
    robot = fj.load("arm")
    goals = np.random.default_rng(1).normal(size=(4, 1, 3))
    costs = [Cost(Translation("tool", goals), 2.0)]
    p = Problem(robot, np.zeros(robot.nq + robot.nv), [Phase(2, 0.1, costs)], costs)
    xs, us = p.guess()
    assert xs.shape == (4, 3, 14)
    at = robot.frame_placement(np.zeros(robot.nq), "tool")[:3, 3]
    near(p.values(xs, us).cost[:, -1], ((at - goals[:, 0]) ** 2).sum(-1), 1e-12)
    near(p.take([2, 0]).values(xs[:2], us[:2]).cost[:, -1], ((at - goals[[2, 0], 0]) ** 2).sum(-1), 1e-12)


def test_exact_hessians_add_what_the_dynamics_bend_by() -> None:
    robot = fj.load("arm")
    rng = np.random.default_rng(3)
    phases = [Phase(2, 0.1, [Cost(Control(), 0.5)])]
    rough, p = (Problem(robot, np.zeros(14), phases, actuated=robot.joint_names[1:], hessian=h) for h in HESSIANS)
    xs, us, costates = rng.normal(size=(3, 14)), rng.normal(size=(2, 6)), rng.normal(size=(3, 14))

    def slopes(x: Array, u: Array) -> Array:
        d = rough.linearize(np.stack([x, *xs[1:]]), np.stack([u, us[1]]))
        return np.concatenate([d.Fx[0], d.Fu[0]], 1).T @ costates[1]

    H = differences(slopes, p, xs[0], us[0])
    plain = rough.linearize(xs, us)
    d = p.linearize(xs, us, costates)
    near(d.Lxx[0] - plain.Lxx[0], H[:14, :14], 1e-6)
    near(d.Lxu[0] - plain.Lxu[0], H[:14, 14:], 1e-6)
    near(d.Luu[0], plain.Luu[0], 1e-12)
    near(p.linearize(xs, us).Lxx, plain.Lxx, 1e-12)  # without costates


@pytest.mark.parametrize("integrator", ["rk2", "rk4"])
def test_runge_kutta_steps_have_their_order_and_derivatives(walk: Walk, integrator: str) -> None:
    robot, rng = walk.robot, np.random.default_rng(8)

    def problem(knots: int, dt: float) -> Problem:
        return Problem(robot, walk.x0, [Phase(knots, dt, [Cost(Control())], walk.four, integrator=integrator)])

    p = problem(2, DT)
    xs, us = walk.xs[:3], rng.normal(size=(2, p.nu))
    d = p.linearize(xs, us)
    near(d.next, p.values(xs, us).next, 1e-12)

    def after(x: Array, u: Array) -> Array:
        return p.difference(d.next[0], p.values(np.stack([x, *xs[1:]]), np.stack([u, us[1]])).next[0])

    F = differences(after, p, xs[0], us[0])
    near(d.Fx[0], F[:, : p.ndx], 1e-6)
    near(d.Fu[0], F[:, p.ndx :], 1e-6)
    zero = np.zeros((2, p.nu)), np.zeros((2, p.nu, p.ndx))
    rolled = p.rollout(xs[0], xs, us, *zero, np.array(1.0), None, False)[0]
    near(rolled[1], d.next[0], 1e-10)

    def end(knots: int) -> Array:
        q = problem(knots, 0.2 / knots)
        held = np.repeat(us[:1], knots, 0), np.zeros((knots, q.nu)), np.zeros((knots, q.nu, q.ndx))
        return q.rollout(xs[0], np.repeat(xs[:1], knots + 1, 0), *held, np.array(1.0), None, False)[0][-1]

    exact = end(640)
    errors = [float(np.linalg.norm(p.difference(exact, end(n)))) for n in (20, 40)]
    order = {"rk2": 2, "rk4": 4}[integrator]
    assert 0.7 * 2**order < errors[0] / errors[1] < 1.5 * 2**order


def test_constraints_have_rows_with_their_derivatives() -> None:
    robot = fj.load("arm")
    rng = np.random.default_rng(2)
    constraints = [
        Constraint(Translation("tool", (0.3, 0.2, 0.5))),
        Constraint(Control(), -1.0, 2.0),
        Constraint(Custom(lambda at: [at.v[0] * at.u[1] * at.position("tool")[0]]), upper=0.5),
    ]
    ends = [Constraint(State(), np.r_[np.full(7, -np.inf), np.zeros(7)], np.r_[np.full(7, 3.0), np.zeros(7)])]
    phases = [Phase(2, 0.1, [Cost(Control())], constraints=constraints)]
    p = Problem(robot, np.zeros(14), phases, [Cost(State()), *ends])
    xs, us = rng.normal(size=(3, 14)), rng.normal(size=(2, 7))
    d = p.linearize(xs, us)
    assert d.equality is not None
    assert d.inequality is not None
    assert (d.equality.shape, d.inequality.shape) == ((3, 7), (3, 15))
    near(d.equality[0, :3], robot.frame_placement(xs[0, :7], "tool")[:3, 3] - [0.3, 0.2, 0.5], 1e-12)
    assert (d.equality[0, 3:] == 0).all()
    near(d.inequality[0, :14], np.stack([us[0] - 2.0, -1.0 - us[0]], -1).ravel(), 1e-12)
    near(d.equality[2], xs[2, 7:], 1e-12)
    near(d.inequality[2, :7], xs[2, :7] - 3.0, 1e-12)
    assert (d.inequality[2, 7:] == -1).all()

    def values(x: Array, u: Array) -> Array:
        v = p.values(np.stack([x, xs[1], xs[2]]), np.stack([u, us[1]]))
        return np.r_[v.equality[0], v.inequality[0]]  # type: ignore[index]

    J = differences(values, p, xs[0], us[0])
    near(np.concatenate([d.Ex[0], d.Ix[0]]), J[:, :14], 1e-7)  # type: ignore[index]
    near(np.concatenate([d.Eu[0], d.Iu[0]]), J[:, 14:], 1e-7)  # type: ignore[index]


def test_wrench_cones_hold_what_friction_at_the_corners_can_give(rng: np.random.Generator) -> None:
    half = np.array([0.1, 0.05])
    corners = np.array([[a, b, 0.0] for a in (-half[0], half[0]) for b in (-half[1], half[1])])
    mu = 0.6
    normal = rng.uniform(size=(500, 4))
    tangents = mu * normal[..., None] * rng.choice([-1.0, 1.0], size=(500, 4, 2))
    forces = np.concatenate([tangents, normal[..., None]], -1)
    wrench = np.concatenate([forces.sum(1), np.cross(corners, forces).sum(1)], -1)
    cone = WrenchCone("foot", mu, (half[0], half[1]), inner=False)
    A = cone.reference.reshape(-1, 6)
    rows = wrench @ A.T
    assert (rows <= cone.upper + 1e-12).all()
    assert (rows >= cone.lower - 1e-12).all()
    assert rows[:, :-1].max(0).min() > -0.3  # every row is nearly reached
    pressed = CenterOfPressure("foot", (half[0], half[1])).reference.reshape(4, 6) @ wrench.T
    assert (pressed <= 1e-12).all()
    with pytest.raises(InputError, match="even number"):
        FrictionCone("foot", 0.5, facets=5)


def phase_of(robot: fj.Robot, residual: Any) -> Problem:
    """A problem of one phase with one cost."""
    return Problem(robot, np.zeros(14), [Phase(2, 0.1, [Cost(residual)])])


def bare_pendulum() -> fj.Robot:
    """A robot whose joint has no limits."""
    builder = fj.ModelBuilder("pendulum")
    builder.add_joint("hinge", "revolute", None, np.eye(4), axis=(0, 1, 0))
    builder.add_body("hinge", mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3))
    return fj.Robot(builder.build())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: Problem(r, np.zeros(3), []), "x0: expected shape"),
        (lambda r: Problem(r, np.zeros(14), []), "at least one"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Control()])]), "must be a list of Cost"),  # type: ignore[list-item]
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Cost(State(np.zeros(3)))])]), r"nq \+ nv = 14"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Cost(Force("tool"))])]), "without contacts has no forces"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Cost(Control(), np.ones(3))])]), "weight of 'Control'"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Cost(Translation("tol", (0.0,) * 3))])]), "tol"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [Cost(Custom(lambda at: [float(at.q[0])]))])]), "lambda"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [])], actuated=["elbw"]), "joint"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [])], hessian="newton"), "hessian"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [])], [Cost(Acceleration())]), "no accelerations"),
        (lambda r: Problem(r, np.zeros(14), Phase(2, 0.1, [])), "phases: expected a list"),
        (lambda r: Problem(r, np.zeros(14), [Phase(2, 0.1, [])], Cost(State())), "terminal: expected a list"),
        (lambda r: phase_of(r, Control(np.zeros(3))), "Control: expected a reference .*nu = 7"),
        (lambda r: phase_of(r, Translation("tool", np.zeros(4))), "Translation tool: expected a reference"),
        (lambda r: phase_of(r, Placement("tool", np.zeros((4, 4)))), "no rotation matrix"),
        (lambda r: phase_of(r, Rotation("tool", -np.eye(3))), "no rotation matrix"),
        (lambda r: phase_of(r, Custom(lambda at: [])), "no rows"),
        (lambda r: phase_of(r, Custom(lambda at: [np.sin(at.q[0])])), "take sqrt, sincos"),
        (lambda r: Velocity("tool", viewpoint="global"), "global"),
        (lambda r: Translation("tool", (np.nan, 0.0, 0.0)), "Translation: reference: every number must be finite"),
        (lambda r: Cost(lambda at: [at.q[0]]), "Cost: expected a residual.* control.Custom"),
        (lambda r: Constraint(3), "Constraint: expected a residual"),
        (lambda r: Cost(State(), np.nan), "weight of 'State': every number must be finite"),
        (lambda r: Cost(State(), "much"), "weight of 'State': expected numbers"),
        (lambda r: Cost(State(), 1.0, "square"), "activation of 'State'"),
        (lambda r: Barrier(1.0, -1.0), "Barrier: a lower bound exceeds"),
        (lambda r: SmoothAbs(0.0), "SmoothAbs: expected a positive width"),
        (lambda r: WrenchCone("foot", 0.5, (0.1,)), "half_size"),
        (lambda r: CenterOfPressure("foot", (0.1, 0.0)), "half_size: expected positive"),
        (lambda r: fj.control.solve(r), "problem: expected a control.Problem"),
        (lambda r: fj.control.MPC(r), "problem: expected a control.Problem"),
        (lambda r: fj.control.solve(phase_of(r, State()), callback=3), "callback: expected a function"),
        (lambda r: fj.control.solve(phase_of(r, State()), start=3), "start: expected a Solution"),
        (lambda r: Problem(bare_pendulum(), np.zeros(2), [Phase(2, 0.1, [])], limits=True), "no driven joint"),
        (lambda r: Cost(State(), -1.0), "weight of 'State': must not be negative"),
        (lambda r: Cost(State(), [1.0, -1e-9]), "weight of 'State': must not be negative"),
        *(
            (lambda r, x=x: Problem(r, np.zeros(14), [Phase(2, 0.1, [])], limits=x), message)
            for x, message in [
                (5, "limits: expected True, False or a pair"),
                ((1, 2, 3), "a pair"),
                ((-1, "a"), "a pair"),
                (([-1] * 6, 1), "one for each of 7 controls"),
                ("no", "a pair"),
                (None, "a pair"),
                ((5, -5), "limits: a lower limit exceeds"),
                ((-5, np.nan), "nan"),
            ]
        ),
    ],
)
def test_mistakes_are_named(make: Callable[[fj.Robot], Problem], message: str) -> None:
    robot = fj.load("arm")
    with pytest.raises((InputError, UnknownName), match=message):
        make(robot)


def test_limits_of_controls_are_those_that_are_given() -> None:
    robot = fj.load("arm")
    effort = robot.limits().effort
    for limits, lower, upper in (
        (True, -effort, effort),
        ((-5, 5), np.full(7, -5.0), np.full(7, 5.0)),
        ((-effort, 0.3), -effort, np.full(7, 0.3)),
    ):
        problem = Problem(robot, np.zeros(14), [Phase(3, 0.1, [Cost(State())])], limits=limits)
        np.testing.assert_array_equal(problem.u_lower, np.tile(lower, (3, 1)))
        np.testing.assert_array_equal(problem.u_upper, np.tile(upper, (3, 1)))
    far = Cost(State(np.concatenate([np.ones(7), np.zeros(7)])), 1e3)
    problem = Problem(robot, np.zeros(14), [Phase(5, 0.1, [far, Cost(Control(), 1e-4)])], limits=(-5, 5))
    assert np.abs(fj.control.solve(problem).us).max() == 5.0


def test_joint_limits_are_those_of_the_model() -> None:
    """Cheap work bends the knees; a constraint keeps them and their velocities within the limits, a cost nearly so."""
    robot = fj.load("quadruped")
    known, within = robot.limits(), JointLimits(robot)
    n = robot.nv
    assert np.isinf(within.lower[:6]).all()
    np.testing.assert_array_equal(within.lower[6:n], known.lower[7:])
    np.testing.assert_array_equal(within.upper[6:n], known.upper[7:])
    np.testing.assert_array_equal(within.upper[n:], known.velocity)
    np.testing.assert_array_equal(within.lower[n:], -known.velocity)
    arm = fj.load("arm")
    limits = arm.limits()
    far = np.concatenate([np.full(7, 1.2) * limits.upper, np.zeros(7)])
    there = Cost(State(far), np.repeat([1e2, 1e-2], 7))
    problem = Problem(
        arm, np.zeros(14), [Phase(20, 0.1, [Cost(Control(), 1e-4)], constraints=[Constraint(JointLimits(arm))])],
        [there, Constraint(JointLimits(arm))],
    )  # fmt: skip
    found = fj.control.solve(problem, iterations=500)
    assert found.converged
    np.testing.assert_allclose(found.xs[-1, :7], limits.upper, rtol=0, atol=1e-5)
    assert (np.abs(found.xs[:, 7:]) <= limits.velocity + 1e-5).all()


def test_all_code_is_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `compile`, a first solve asks LLVM for nothing, nor do the windows of a receding horizon."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    robot = fj.load("quadruped")
    x0 = np.concatenate([posture(robot), np.zeros(robot.nv)])
    stand, swing = contacts(robot, *FEET), contacts(robot, *FEET[:3])
    costs = [Cost(State(x0), 1.0), Cost(Control(), 1e-3), Cost(FrictionCone(FEET[0], 0.7)), Cost(Momentum())]
    step = [Cost(Translation(FEET[3], (0.3, -0.2, 0.05))), *costs]
    problem = Problem(
        robot, x0, [Phase(3, DT, costs, stand), Phase(5, DT, step, swing), Impact(stand, costs[:1]), Phase(2, DT, [])],
        [Cost(CenterOfMass((0.0, 0.0, 0.4)))],
    )  # fmt: skip
    problem.compile()

    def refuse(*_: Any) -> bytes:
        raise AssertionError("something is compiled")

    monkeypatch.setattr(libraries, "compiled", refuse)
    fj.control.solve(problem, iterations=3)
    mpc = fj.control.MPC(problem, knots=4)
    for _ in range(6):
        mpc.step(x0)


def test_residuals_of_states_are_traced_once_and_users_ones_every_time() -> None:
    robot = fj.load("arm")
    traced = []

    class Some(State):
        """A user's residual, whose rows its key does not tell."""

        def __init__(self, rows: int) -> None:
            super().__init__()
            self.count = rows

        def rows(self, at: Any, reference: Array) -> Sequence[Any]:
            traced.append(self.count)
            return [at.v[k] * at.u[k] for k in range(self.count)]

        def slopes(self, at: Any, reference: Array, found: Any) -> None:
            return None

    forms = [
        Problem(robot, np.zeros(14), [Phase(1, 0.1, [Cost(State()), Cost(Some(n), name="own"), Cost(Control())])])
        for n in (2, 3)
    ]
    first, second = (p.phases[0].terms for p in forms)
    assert [place.rows for place in first.slices] == [14, 2, 7]
    assert [place.rows for place in second.slices] == [14, 3, 7]
    assert traced == [2, 3]
    assert first.entries[0] == second.entries[0] == tuple(("x", k) for k in range(14))
    assert first.inputs_used == second.inputs_used == [("x",), ("u", "x"), ("u",)]
    x, u = np.arange(28.0).reshape(2, 14), np.arange(1.0, 8.0)[None]
    near(forms[1].terms(x, u)["own"][0], 0.05 * ((x[0, 7:10] * u[0, :3]) ** 2).sum(), 1e-13)
