"""Transitions: gradients against complex step, closed forms, physics, and what optimality means."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.algorithms.scan import Scan
from featherjet.jit.straight import trace
from featherjet.transitions.chart import FlatChart
from featherjet.transitions.constraints import Conditions, FrameCondition, LimitCondition, ZeroTorqueCondition
from featherjet.transitions.energy import TorqueEnergy
from featherjet.transitions.metric import gauss_newton
from featherjet.transitions.slopes import TorqueSlopes
from featherjet.transitions.spline import Spline
from featherjet.transitions.supports import EASE, Supports
from helpers import agree, every_kind, to_pinocchio

STEP = 1e-30


def robot_called(name: str, backend: str = "numpy") -> fj.Robot:
    return every_kind(3) if name == "every_kind" else fj.load(name, backend=backend)


def wandering(robot: fj.Robot, spline: Spline, compiled: bool = False, seed: int = 0) -> tuple[FlatChart, np.ndarray]:
    """A chart between two configurations, and control points of a motion that wanders through it."""
    rng = np.random.default_rng(seed)
    q0 = robot.random_configuration(rng)
    q1 = robot.integrate(q0, rng.uniform(-1, 1, robot.nv))
    chart = FlatChart(robot.model, robot.interpolate(q0, q1, 0.5), compiled)
    return chart, 0.3 * rng.normal(size=(spline.count, robot.nv)) + chart.coordinates(q0)


def states(chart: FlatChart, jets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a of jets (N, 3, nv), which may be complex; these are left alone."""
    jets = jets.copy()
    q = np.empty((len(jets), chart.model.nq), jets.dtype)
    chart.lift(jets, q)
    return q, jets[:, 1], jets[:, 2]


# Charts and splines


@pytest.mark.parametrize("compiled", [False, True], ids=["arrays", "compiled"])
@pytest.mark.parametrize("name", ["every_kind", "quadruped"])
def test_v_and_a_are_rates_of_q_and_v(name, compiled, rng):
    robot = robot_called(name)
    chart = FlatChart(robot.model, robot.random_configuration(rng), compiled)
    jets = 0.6 * rng.normal(size=(5, 3, robot.nv))
    q, v, a = states(chart, jets)
    h = 1e-5
    near = [
        states(chart, np.stack([jets[:, 0] + s * jets[:, 1] + s * s / 2 * jets[:, 2], jets[:, 1] + s * jets[:, 2],
                                jets[:, 2]], 1)) for s in (h, -h)
    ]  # fmt: skip
    forth, back = (robot.difference(q, x[0]) for x in near)
    agree((forth - back) / (2 * h), v, 1e-8, "v")
    agree((near[0][1] - near[1][1]) / (2 * h), a, 1e-8, "a")
    agree(chart.coordinates(q), jets[:, 0], 1e-13, "coordinates")
    agree(chart.rates(jets[:, 0], v), jets[:, 1], 1e-13, "rates")


def test_chart_is_centred_on_its_reference(rng):
    robot = every_kind(1)
    q = robot.random_configuration(rng)
    chart = FlatChart(robot.model, q)
    x = chart.coordinates(q)
    moved = robot.integrate(q, 1e-6 * np.ones(robot.nv))
    v = chart.rates(x, robot.difference(q, moved))
    agree(chart.coordinates(moved) - x, v, 1e-5, "first order")


def test_splines_meet_their_ends_and_reproduce_polynomials(rng):
    spline = Spline(5, 7, 1.3)
    ends = rng.normal(size=(4, 3))
    jets = spline.jets(np.array([0.0, 1.3])) @ spline.control(ends)
    agree(jets[[0, 0, 1, 1], [0, 1, 0, 1]], ends, 1e-13, "ends")
    polynomial = np.polynomial.Polynomial(rng.normal(size=6))
    t, w = spline.gauss(6)
    sides = np.array([[polynomial(s), polynomial.deriv()(s)] for s in (0.0, 1.3)]).reshape(4, 1)
    fitted = spline.fitted(sides, t, polynomial(t)[:, None])
    agree((spline.jets(t) @ fitted)[:, 2, 0], polynomial.deriv(2)(t), 1e-9, "second derivative")
    agree(w @ polynomial(t) ** 2, (polynomial**2).integ()(1.3) - (polynomial**2).integ()(0.0), 1e-13, "quadrature")


def test_local_basis_is_the_whole_one(rng):
    spline = Spline(4, 6, 0.7)
    t, _ = spline.gauss(3)
    control, slopes = rng.normal(size=(spline.count, 5)), rng.normal(size=(len(t) * 3, 5))
    whole, local, out = spline.jets(t).reshape(-1, spline.count), spline.local(t), np.empty((len(t) * 3, 5))
    local.evaluate(control, out)
    agree(out, whole @ control, 1e-14)
    agree(local.transposed(slopes), whole.T @ slopes, 1e-14)


# Slopes and gradients


@pytest.mark.parametrize("name", ["every_kind", "arm", "quadruped", "humanoid"])
def test_slopes_are_the_derivatives_contracted(name, rng):
    robot = robot_called(name)
    n = 3
    q = robot.random_configuration(rng, n)
    v, a, multipliers, weights = rng.normal(size=(4, n, robot.nv))
    fext = rng.normal(size=(n, robot.njoints, 6))
    slopes = TorqueSlopes(robot).by_multipliers(q, v, a, multipliers, fext)
    for slope, D in zip(slopes, robot.inverse_dynamics_derivatives(q, v, a, fext), strict=True):
        agree(slope, np.einsum("ni,nij->nj", multipliers, D), 1e-12)
    tau, *slopes = TorqueSlopes(robot).weighted(q, v, a, weights)
    agree(tau, robot.inverse_dynamics(q, v, a), 1e-13, "tau")
    for slope, D in zip(slopes, robot.inverse_dynamics_derivatives(q, v, a), strict=True):
        agree(slope, np.einsum("ni,nij->nj", weights * tau, D), 1e-12)


def test_slopes_of_a_robot_with_coupled_joints(rng):
    robot = fj.load("panda", mimic=True, backend="numpy")
    q = robot.random_configuration(rng, 2)
    v, a, weights = rng.normal(size=(3, 2, robot.nv))
    tau, *slopes = TorqueSlopes(robot).weighted(q, v, a, weights)
    agree(tau, robot.inverse_dynamics(q, v, a), 1e-13)
    for slope, D in zip(slopes, robot.inverse_dynamics_derivatives(q, v, a), strict=True):
        agree(slope, np.einsum("ni,nij->nj", weights * tau, D), 1e-12)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("name", ["arm", "quadruped", "humanoid", "every_kind"])
def test_gradient_is_that_of_complex_step(name, backend):
    """Every entry, through chart, dynamics and quadrature; the oracle knows no derivative at all."""
    if (name, backend) == ("humanoid", "compiled"):
        robot = fj.Robot(fj.models.humanoid(), backend="compiled", unroll=False)
    else:
        robot = fj.Robot(robot_called(name).model, backend=backend)
    spline = Spline(4, 2, 0.8)
    chart, control = wandering(robot, spline, backend == "compiled")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, robot.nv)
    energy = TorqueEnergy(robot, chart, spline, weights, points=3)
    value, gradient = energy(control)
    n, size = len(energy.times), control.size
    basis = spline.jets(energy.times)
    moved = control + 1j * STEP * np.eye(size).reshape(size, *control.shape)
    jets = np.einsum("nom,pmk->pnok", basis, moved).reshape(size * n, 3, robot.nv)
    q, v, a = states(FlatChart(robot.model, chart.reference), jets)
    (tau,) = robot.evaluator.reference("inverse_dynamics", {"q": q, "v": v, "a": a})
    values = ((tau**2).reshape(size, n, -1) * energy.quadrature[:, None] * weights).sum((1, 2))
    agree(value, values[0].real, 1e-12, "energy")
    agree(gradient.ravel(), values.imag / STEP, 1e-11, "gradient")


def held(
    backend: str = "numpy", root: str = "unactuated"
) -> tuple[fj.Robot, TorqueEnergy, FlatChart, Spline, np.ndarray]:
    """A quadruped on two feet, one of them flat, with the energy that is left."""
    robot = fj.load("quadruped", backend=backend)
    spline = Spline(4, 3, 0.6)
    chart, control = wandering(robot, spline)
    supports = [fj.SurfaceContact("LF_foot"), fj.PointContact("RH_foot")]
    weights = np.linspace(0.5, 1.5, robot.nv)
    idle = slice(0, 6 if root == "unactuated" else 0)
    weights[idle] = 0.0
    energy = TorqueEnergy(robot, chart, spline, weights, 3, Supports(robot, supports, weights, idle))
    return robot, energy, chart, spline, control


@pytest.mark.parametrize("root", ["unactuated", "actuated"])
def test_gradient_with_supports(root, rng):
    """Forces are chosen anew at every state; the gradient is exact all the same."""
    _, energy, _, _, control = held(root=root)
    _, gradient = energy(control)
    for _ in range(4):
        d = rng.normal(size=control.shape)
        h = 1e-4
        e = [energy(control + s * h * d)[0] for s in (-2, -1, 1, 2)]
        slope = (e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h)
        assert abs((gradient * d).sum() - slope) < 1e-7 * np.abs(gradient).sum()


def test_supports_take_over_what_is_best(rng):
    robot, energy, *_ = held()
    q = robot.random_configuration(rng, 3)
    tau = 50 * rng.normal(size=(3, robot.nv))
    supports = energy.supports
    assert supports is not None
    carried = supports.carry(q, tau)
    zero = np.zeros_like(tau)
    felt = robot.inverse_dynamics(q, zero, zero, carried.fext) - robot.inverse_dynamics(q, zero, zero)
    agree(tau + felt, carried.tau, 1e-10, "forces act as they are told")
    assert np.abs(carried.tau[:, :6]).max() == 0.0
    for A, need, least in zip(supports.columns(q), tau, carried.energy, strict=True):
        first = np.linalg.lstsq(A[:6], need[:6], rcond=None)[0]  # forces that carry the root,
        free = np.linalg.svd(A[:6])[2][6:].T  # and those that leave it alone
        cost = np.concatenate([np.sqrt(energy.weights)[:, None] * A, np.sqrt(EASE) * np.eye(A.shape[1])])
        rest = np.concatenate([np.sqrt(energy.weights) * need, np.zeros(A.shape[1])]) - cost @ first
        z = np.linalg.lstsq(cost @ free, rest, rcond=None)[0]
        agree(((rest - cost @ free @ z) ** 2).sum(), least, 1e-9, "least")


@pytest.mark.parametrize("kind", ["pose", "point", "idle", "position", "velocity", "effort"])
def test_jacobians_of_conditions(kind, rng):
    robot = fj.load("quadruped", backend="numpy")
    spline = Spline(4, 4, 0.9)
    chart, control = wandering(robot, spline, seed=2)
    t = np.array([0.2, 0.5, 0.8])
    dofs = np.array([7, 9, 12])
    if kind in ("pose", "point"):
        T = robot.frame_placement(robot.random_configuration(1), "LF_foot")
        condition = FrameCondition(robot, "LF_foot", t, T, kind == "point")
    elif kind == "idle":
        condition = ZeroTorqueCondition(robot, t, slice(0, 6), 30.0)
    else:
        ones = np.ones(3)
        energy = TorqueEnergy(robot, chart, spline, np.ones(robot.nv), points=2)
        condition = LimitCondition(energy, kind, t, dofs, dofs + 1, -ones, np.array([1.0, np.inf, 2.0]), 2 * ones)
    conditions = Conditions(chart, spline, [condition])
    J = conditions.jacobian(control)
    d = np.zeros_like(control)
    d[spline.free] = rng.normal(size=J.shape[1:])
    h = 1e-5
    difference = (conditions.values(control + h * d) - conditions.values(control - h * d)) / (2 * h)
    agree(np.einsum("rmk,mk->r", J, d[spline.free]), difference, 1e-7, kind)


@pytest.mark.parametrize("root", ["unactuated", "actuated"])
def test_slopes_of_torques_that_supports_leave(root, rng):
    """Against central differences of torques, for which forces are chosen anew."""
    robot, energy, *_ = held(root=root)
    q = robot.random_configuration(rng, 3)
    v, a, d = rng.normal(size=(3, 3, robot.nv))
    slopes, h = energy.torque_slopes(q, v, a), 1e-5
    zero = np.zeros_like(d)
    for k, (dq, dv, da) in enumerate(((d, zero, zero), (zero, d, zero), (zero, zero, d))):
        forth, back = (energy.torques(robot.integrate(q, s * dq), v + s * dv, a + s * da) for s in (h, -h))
        agree((slopes[:, :, k] @ d[..., None])[..., 0], (forth - back) / (2 * h), 1e-7, "qva"[k])


def test_gauss_newton_matrix(rng):
    """d^T H d is the energy of the change of torques along d (plus what calms it down)."""
    robot = fj.load("quadruped", backend="numpy")
    spline = Spline(4, 3, 0.7)
    chart, control = wandering(robot, spline)
    energy = TorqueEnergy(robot, chart, spline, np.linspace(0.5, 2, robot.nv), 4)
    d = np.zeros_like(control)
    d[spline.free] = rng.normal(size=d[spline.free].shape)
    basis, h = spline.jets(energy.times), 1e-5
    tau = [robot.inverse_dynamics(*states(chart, basis @ (control + s * d))) for s in (h, -h)]
    change = (tau[0] - tau[1]) / (2 * h)
    square = energy.quadrature @ (change**2 @ energy.weights) + 3.0 / 0.7 * energy.quadrature @ (
        (basis[:, 0] @ d) ** 2
    ).sum(1)
    flat = d[spline.free].ravel()
    agree(flat @ gauss_newton(energy, control, 3.0) @ flat, square, 1e-7)


def test_one_evaluation_costs_no_more_than_250_samples_of_derivatives(monkeypatch):
    """A 38-dof humanoid and 200 points: one batch of O(n) slopes, and no matrix. Operations are counted, not timed."""
    robot = fj.Robot(fj.models.humanoid(), backend="numpy")
    spline = Spline(5, 25, 1.0)
    chart, control = wandering(robot, spline)
    energy = TorqueEnergy(robot, chart, spline, np.ones(38), points=8)
    batches = []
    run = energy._slopes._run

    def counted(name: str, inputs: tuple[np.ndarray, ...], *more, **options) -> tuple:
        batches.append((name, {len(x) for x in inputs}))
        return run(name, inputs, *more, **options)

    monkeypatch.setattr(energy._slopes, "_run", counted)
    for name in ("inverse_dynamics", "inverse_dynamics_derivatives"):
        monkeypatch.setattr(fj.Robot, name, None)  # not to be called
    energy(control)
    assert batches == [("torque_slopes", {200})]
    assert 200 * operations(robot, slopes=True) < 250 * operations(robot, slopes=False)


def operations(robot: fj.Robot, slopes: bool) -> int:
    """How many a sample takes: of torques with the slopes of their squares, or of their derivatives."""
    sizes = dict(q=(robot.nq,), v=(robot.nv,), a=(robot.nv,))
    if slopes:
        sizes["weights"] = (robot.nv,)
    record = QUANTITIES["torque_slopes" if slopes else "inverse_dynamics_derivatives"]
    traced = trace(lambda **x: record.compute(Scan(robot.evaluator.tree, (), object), x), sizes)
    return sum(n for op, n in traced.graph.count(traced.roots).items() if op not in ("const", "load"))


# Closed forms


def turntable(kind: str, inertia: float = 0.3, **settings) -> fj.Robot:
    b = fj.ModelBuilder("turntable", gravity=(0, 0, 0))
    b.add_joint("turn", kind, **settings)
    b.add_body("turn", 2.0, inertia=inertia * np.eye(3))
    return fj.Robot(b.build(), backend="numpy")


@pytest.mark.parametrize("solver", ["lbfgs", "bfgs", "slsqp", "trust-constr"])
def test_double_integrator(solver):
    """Least integral of (I x'')^2 from rest to rest over d in T: a cubic, and 12 I^2 d^2 / T^3."""
    robot = turntable("revolute")
    result = fj.transition(
        robot, ([0.1], [0.0]), ([1.3], [0.0]), 0.8, degree=3, intervals=6, solver=solver, tolerance=1e-9
    )
    assert result.report.solver == solver
    agree(result.energy, 12 * 0.3**2 * 1.2**2 / 0.8**3, 1e-7)
    t = result.times(11)
    s = t / 0.8
    agree(result.q(t)[:, 0], 0.1 + 1.2 * (3 * s**2 - 2 * s**3), 1e-4)


def test_double_integrator_with_velocities_needs_no_torque():
    result = fj.transition(turntable("revolute"), ([0.0], [2.0]), ([1.0], [2.0]), 0.5)
    assert result.energy < 1e-12
    assert result.report.success


@pytest.mark.parametrize("kind, nq", [("spherical", 4), ("free", 7), ("continuous", 2), ("planar", 4)])
def test_turning_about_one_axis_on_a_manifold(kind, nq):
    """A body of equal inertias turns as the double integrator does, whatever the coordinates: here 150 degrees."""
    robot = turntable(kind)
    assert robot.nq == nq
    axis = np.zeros(robot.nv)
    axis[-1] = 1.0
    q0 = robot.integrate(robot.random_configuration(4), 0.3 * np.ones(robot.nv))
    q1 = robot.integrate(q0, np.radians(150) * axis)
    rest = np.zeros(robot.nv)
    result = fj.transition(robot, (q0, rest), (q1, rest), 1.1, intervals=16, tolerance=1e-9)
    agree(result.energy, 12 * 0.3**2 * np.radians(150) ** 2 / 1.1**3, 1e-5)
    agree(result.q(1.1), q1, 1e-14)
    s = 0.3
    middle = robot.integrate(q0, np.radians(150) * (3 * s**2 - 2 * s**3) * axis)
    agree(robot.difference(middle, result.q(s * 1.1)), 0 * axis, 1e-3, floor=1.0)


def test_a_thrown_robot_falls_freely():
    """Unactuated in the air between states of one parabola: no torque at all, the centre of mass on the parabola."""
    robot = fj.load("quadruped", backend="numpy")
    q, T = robot.neutral(), 0.4
    v = np.zeros(robot.nv)
    v[0], v[2] = 1.0, 9.81 * T / 2
    end, w = q.copy(), v.copy()
    end[0] += T
    w[2] = -v[2]
    result = fj.transition(robot, (q, v), (end, w), T, root_forces="unactuated", intervals=4, solver="trust-constr")
    assert result.report.success
    t = result.times(9)
    assert np.abs(result.tau(t)).max() < 1e-3
    height = robot.center_of_mass(result.q(t))[:, 2] - robot.center_of_mass(q)[2]
    agree(height, v[2] * t - 9.81 / 2 * t**2, 1e-6)


def test_in_the_air_momentum_stays(rng):
    """A thrown quadruped draws in its legs: nothing pushes it, and the finer the knots the less."""
    robot, T = fj.load("quadruped", backend="compiled"), 0.4
    (q, v), (end, w) = (standing(robot, bend) for bend in (0.3, 0.9))
    v[:3], w[:3] = (0.5, 0, 9.81 * T / 2), (0.5, 0, -9.81 * T / 2)
    end[:3] += robot.center_of_mass(q) - robot.center_of_mass(end) + np.array([0.5 * T, 0, 0])
    coarse, fine = (fj.transition(robot, (q, v), (end, w), T, root_forces="unactuated", intervals=n) for n in (8, 16))
    assert coarse.report.success, coarse.report
    assert fine.report.success, fine.report
    assert fine.report.push < coarse.report.push / 4
    assert fine.energy == pytest.approx(coarse.energy, rel=0.05)
    t = fine.times(101)
    weight = 9.81 * robot.mass
    assert np.abs(fine.tau(t)[:, :6]).max() < 1e-3 * weight
    momentum = robot.centroidal_momentum(fine.q(t), fine.v(t))
    momentum[:, 2] += weight * t
    agree(momentum, np.broadcast_to(momentum[0], momentum.shape), 1e-4, floor=weight * T)


# Optimality


def arm_task() -> tuple[fj.Robot, tuple, tuple]:
    rest = np.zeros(7)
    start, end = np.array([0, 0.5, 0, -1.2, 0, 0.8, 0]), np.array([0.9, 0.9, 0.3, -0.7, 0.2, 0.1, 0.4])
    return fj.load("arm", backend="compiled"), (start, rest), (end, rest)


@pytest.mark.parametrize("name", ["arm", "quadruped"])
def test_beats_blends_and_is_stable_under_finer_knots(name):
    if name == "arm":
        robot, start, end = arm_task()
    else:
        robot = fj.load(name, backend="compiled")
        rng = np.random.default_rng(3)
        q = robot.integrate(robot.neutral(), 0.5 * rng.uniform(-1, 1, robot.nv))
        start = q, 0.2 * rng.normal(size=robot.nv)
        end = robot.integrate(q, rng.uniform(-1, 1, robot.nv)), np.zeros(robot.nv)
    coarse = fj.transition(robot, start, end, 0.8, intervals=10, tolerance=1e-5)
    for energy in coarse.baselines().values():
        assert coarse.energy < 0.99 * energy
    fine = fj.transition(robot, start, end, 0.8, intervals=20, tolerance=1e-5, initial=coarse)
    assert 0.97 < fine.energy / coarse.energy <= 1 + 1e-6
    more = fj.transition(robot, start, end, 0.8, intervals=10, points=12, tolerance=1e-5, initial=coarse)
    assert more.energy == pytest.approx(coarse.energy, rel=1e-3)


def test_the_gradient_vanishes_at_the_optimum():
    robot, start, end = arm_task()
    result = fj.transition(robot, start, end, 0.8, intervals=6, tolerance=1e-12, max_iterations=2000)
    _, gradient = result.model_energy(result.control)
    _, before = result.model_energy(fj.transition(robot, start, end, 0.8, intervals=6, max_iterations=1).control)
    free = result.spline.free
    assert np.abs(gradient[free]).max() < 1e-4 * np.abs(before[free]).max()


OVER = np.array([0.5, 0.3, 0.9])


def test_limits_and_targets_are_kept():
    robot, start, end = arm_task()
    limits = {"velocity": 3.0, "effort": 60.0, "position": (-2.0, 2.0)}
    result = fj.transition(
        robot, start, end, 0.8, intervals=8, targets=fj.Target("tool", 0.4, position=OVER), limits=limits
    )
    assert result.report.success, result.report
    assert result.report.solver == "slsqp"
    t = result.times(301)
    agree(robot.frame_placement(result.q(0.4), "tool")[:3, 3], OVER, 1e-6)
    assert 2.9 < np.abs(result.v(t)).max() <= 3.0 * (1 + 1e-4)
    assert np.abs(result.tau(t)).max() <= 60.0 * (1 + 1e-4)
    assert "position" not in result.beyond_limits()
    free = fj.transition(robot, start, end, 0.8, intervals=8)
    assert np.abs(free.v(t)).max() > 3.5  # they were needed
    beyond = np.array(robot.joint_names)[(np.abs(free.v(t)) > robot.limits().velocity).any(0)]
    assert free.beyond_limits()["velocity"] == beyond.tolist()
    assert free.energy < result.energy


def test_a_target_that_cannot_be_met_is_told_with_its_distance():
    robot, start, end = arm_task()
    places = OVER, OVER + 0.2 * np.eye(3)[2]  # at the same time
    targets = [fj.Target("tool", 0.4, position=place) for place in places]
    result = fj.transition(robot, start, end, 0.8, intervals=3, targets=targets, max_iterations=20)
    assert not result.report.success
    at = robot.frame_placement(result.q(0.4), "tool")[:3, 3]
    for place in places:
        away = np.linalg.norm(at - place)
        if away > 1e-6:
            assert f"at 0.4 s the frame 'tool' misses its target by {away:.2g} m" in result.report.message
    assert "misses its target" in result.report.message


@pytest.mark.parametrize("solver", ["trust-constr", "ipopt"])
def test_solvers_agree(solver):
    if solver == "ipopt":
        pytest.importorskip("cyipopt", reason="cyipopt is not installed: pip install 'featherjet[ipopt]'")
    robot, start, end = arm_task()
    target = fj.Target("tool", (0.3, 0.4), position=OVER)
    both = [
        fj.transition(robot, start, end, 0.8, intervals=6, solver=s, targets=target, tolerance=1e-6)
        for s in (solver, "slsqp")
    ]
    for result in both:
        assert result.report.success, result.report
        for t in (0.3, 0.4):
            agree(robot.frame_placement(result.q(t), "tool")[:3, 3], OVER, 1e-6)
    assert both[0].energy == pytest.approx(both[1].energy, rel=2e-4)


@pytest.mark.parametrize("solver", ["trust-constr", "ipopt"])
def test_solvers_agree_on_limits(solver):
    if solver == "ipopt":
        pytest.importorskip("cyipopt", reason="cyipopt is not installed: pip install 'featherjet[ipopt]'")
    robot, start, end = arm_task()
    both = [
        fj.transition(robot, start, end, 0.8, intervals=4, solver=s, limits={"velocity": 2.5})
        for s in (solver, "slsqp")
    ]
    for result in both:
        assert result.report.success, result.report
        assert np.abs(result.v(result.times(301))).max() <= 2.5 * (1 + 1e-4)
    assert both[0].energy == pytest.approx(both[1].energy, rel=5e-3)


FEET = [f"{leg}_foot" for leg in ("LF", "LH", "RF", "RH")]


def standing(robot: fj.Robot, bend: float) -> tuple[np.ndarray, np.ndarray]:
    """The quadruped at rest with bent legs, its feet below the hips and on the ground."""
    q = robot.neutral()
    for leg in ("LF", "LH", "RF", "RH"):
        for joint, angle in (("HFE", bend), ("KFE", -2 * bend)):
            q[robot.model.q_starts[robot.joint_names.index(f"{leg}_{joint}")]] = angle
    q[2] -= robot.frame_placement(q, "LF_foot")[2, 3]
    return q, np.zeros(robot.nv)


def test_a_quadruped_lowers_itself_on_four_feet():
    """Points are held; what carries the unactuated trunk are the feet, on average with the robot's weight."""
    robot = fj.load("quadruped", backend="compiled")
    start, end = (standing(robot, bend) for bend in (0.3, 0.7))
    task: dict[str, Any] = dict(supports=[fj.PointContact(f) for f in FEET], root_forces="unactuated", intervals=6)
    result = fj.transition(robot, start, end, 0.6, **task)
    assert result.report.success, result.report
    assert result.report.drift < 1e-3
    t = result.times(101)
    for f in FEET:
        places = robot.frame_placement(result.q(t), f)[:, :3, 3]
        agree(places, np.broadcast_to(places[0], places.shape), 1e-3, f)
    assert np.abs(result.tau(t)[:, :6]).max() == 0.0
    placements = robot.forward_kinematics(result.q(t))
    upward = sum(
        (placements[:, robot.model.frame(f).joint, :3, :3] @ w[:, :3, None])[:, 2, 0]
        for f, w in result.forces(t).items()
    )
    mean = np.mean((upward[1:] + upward[:-1]) / 2)
    assert mean == pytest.approx(9.81 * robot.mass, rel=2e-3)
    for energy in result.baselines().values():
        assert result.energy < energy
    strongest = np.abs(result.tau(t)).max()
    weak = fj.transition(robot, start, end, 0.6, **task, limits={"effort": 0.8 * strongest})
    assert weak.report.success, weak.report
    assert 0.7 * strongest < np.abs(weak.tau(t)).max() <= 0.8 * strongest * (1 + 1e-5)
    assert weak.energy > result.energy


def test_penalised_roots_are_pushed_less():
    robot = fj.load("quadruped", backend="compiled").with_gravity((0, 0, 0))
    rest = np.zeros(robot.nv)
    q = robot.neutral()
    end = robot.integrate(q, np.concatenate([np.zeros(6), 0.7 * np.ones(12)]))
    pushed = []
    for weight in (0.001, 1.0):
        r = fj.transition(
            robot, (q, rest), (end, rest), 0.7, root_forces="penalised", root_weight=weight, tolerance=1e-5
        )
        t = r.times(101)
        pushed.append(float((r.tau(t)[:, :6] ** 2).sum()))
    assert pushed[0] > 1.5 * pushed[1]


# Results


@pytest.fixture(scope="module")
def short() -> fj.Transition:
    """A quick one of the quadruped, on the reference."""
    robot = fj.load("quadruped", backend="numpy")
    rng = np.random.default_rng(5)
    q = robot.integrate(robot.neutral(), 0.4 * rng.uniform(-1, 1, robot.nv))
    end = robot.integrate(q, 0.8 * rng.uniform(-1, 1, robot.nv))
    v, w = 0.5 * rng.normal(size=(2, robot.nv))
    return fj.transition(robot, (q, v), (end, w), 0.5, intervals=4, max_iterations=12)


def test_ends_are_met_exactly(short):
    start, end = short.setting.start, short.setting.end
    agree(short.q(0.0), start.q, 1e-14)
    agree(short.v(0.0), start.v, 1e-13)
    agree(short.q(0.5), end.q, 1e-14)
    agree(short.v(0.5), end.v, 1e-13)


def test_functions_of_time(short):
    robot, t = short.robot, np.linspace(0.05, 0.45, 6).reshape(2, 3)
    assert short.q(t).shape == (2, 3, robot.nq)
    assert short.v(0.1).shape == short.a(0.1).shape == short.tau(0.1).shape == (robot.nv,)
    assert short.q([]).shape == (0, robot.nq)
    h = 1e-5
    speed = (robot.difference(short.q(t), short.q(t + h)) - robot.difference(short.q(t), short.q(t - h))) / (2 * h)
    agree(speed, short.v(t), 1e-7, "v")
    agree((short.v(t + h) - short.v(t - h)) / (2 * h), short.a(t), 1e-6, "a")
    model = to_pinocchio(robot.model)
    data = model.createData()
    for q, v, a, tau in zip(*(f(t.ravel()) for f in (short.q, short.v, short.a, short.tau)), strict=True):
        agree(tau, pin.rnea(model, data, q, v, a), 1e-11, "tau")


def test_the_energy_is_the_integral(short):
    from scipy.integrate import quad

    knots = np.linspace(0, 0.5, 5)
    total = sum(quad(lambda t: float(short.energy_rate(t)), a, b)[0] for a, b in itertools.pairwise(knots))
    assert short.energy == pytest.approx(total, rel=1e-4)
    assert short.history[-1] == pytest.approx(short.energy, rel=0.05)
    assert short.energy < short.report.initial_energy


def test_clips_are_joined():
    robot = fj.load("arm", backend="numpy")
    t = np.arange(0, 0.5, 0.01)[:, None]
    rates = np.linspace(0.5, 1.0, 7)
    before, after = fj.Clip(0.2 * np.sin(rates * t), 0.01), fj.Clip(0.3 + 0.2 * np.cos(rates * t), 0.01)
    result = fj.transition(robot, before, after, 0.4, intervals=4, max_iterations=5)
    last = 0.49
    agree(result.q(0.0), 0.2 * np.sin(rates * last), 1e-14)
    agree(result.v(0.0), 0.2 * rates * np.cos(rates * last), 1e-4, "second-order slope")
    agree(result.v(0.4), np.zeros(7), 1e-4, floor=1.0)
    whole = result.joined()
    assert np.asarray(whole.q).shape == (49 + 41 + 49, 7)
    agree(np.asarray(whole.q)[48:51], np.concatenate([np.asarray(before.q)[[48]], result.q([0.0, 0.01])]), 1e-12)
    given = fj.Clip(before.q, 0.01, 0.2 * rates * np.cos(rates * t))
    exact = fj.transition(robot, given, after, 0.4, intervals=4, max_iterations=1)
    agree(exact.v(0.0), 0.2 * rates * np.cos(rates * last), 1e-13, "given slopes")


def test_clips_on_a_manifold_have_body_velocities(rng):
    robot = every_kind(2)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    clip = fj.Clip(np.stack([robot.integrate(q, 0.01 * k * v) for k in range(4)]), 0.01)
    for last in (False, True):
        agree(clip.checked(robot, "clip").end_state(robot, last).v, v, 1e-9)


def test_interruption_keeps_the_best():
    robot, start, end = arm_task()
    energies = []

    def interrupt(iteration: int, energy: float) -> None:
        energies.append(energy)
        if iteration == 7:
            raise KeyboardInterrupt

    result = fj.transition(robot, start, end, 0.8, callback=interrupt)
    assert result.report.interrupted
    assert not result.report.success
    assert "interrupted" in result.report.message
    assert result.energy == min(energies)
    stopped = fj.transition(robot, start, end, 0.8, callback=lambda k, e: k == 5)
    assert stopped.report.iterations == 5
    assert not stopped.report.success
    assert stopped.report.message == "stopped by the callback"


def test_limits_that_cannot_be_kept_are_told():
    robot, start, end = arm_task()
    result = fj.transition(robot, start, end, 0.8, limits={"effort": 5.0}, max_iterations=60)
    assert not result.report.success
    assert "violated" in result.report.message
    assert result.report.violation > 0.01
