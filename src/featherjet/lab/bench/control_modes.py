"""What else solvers of optimal control do: many problems at once, receding horizons, exact Hessians; on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...control import MPC, Control, Cost, Phase, Problem, State, solve
from ...model.builder import ModelBuilder
from ...robot.robot import Robot
from .checking import Disagreement
from .control_problems import Quadruped, Swing, arm
from .timing import Spread, TimingSettings, one_core

STARTS, SPREAD = 256, 0.3  # problems at once, and how far their starts are apart [rad]
KNOTS, CYCLES = 50, 2  # of the window of MPC, and of the trot it goes along
PUSH = 0.01  # standard deviation of the velocities that disturb MPC at each step
REGULARISATION = 0.1


class Many(NamedTuple):
    """Seconds for a problem of a batch and for one solved alone, and their ratio in each round."""

    problems: int
    together: float
    alone: float
    ratio: Spread


class StepTimes(NamedTuple):
    """Seconds of MPC's steps: the median, nine of ten, and the longest."""

    knots: int
    steps: int
    median: float
    most: float
    longest: float


class Hessians(NamedTuple):
    """Iterations to a tolerance and seconds, with Gauss-Newton and with exact Hessians."""

    iterations: tuple[int, int]
    seconds: tuple[Spread, Spread]


def seconds(work: Callable[[], Any]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def many(settings: TimingSettings) -> Many:
    """Reaches of the arm from different starts: all at once, and one by one; both take the same iterations."""
    problem = arm()
    problem.evaluator.threads = 1
    robot = Robot(problem.model, backend="compiled")
    q = np.broadcast_to(problem.x0[: problem.nq], (STARTS, problem.nq))
    moved = robot.integrate(q, SPREAD * np.random.default_rng(0).normal(size=(STARTS, problem.nv)))
    starts = np.concatenate([moved, np.zeros((STARTS, problem.nv))], 1)

    def run(x0: Any) -> Any:
        return solve(problem, x0, regularisation=REGULARISATION, iterations=200)

    with one_core():
        found = run(starts)
        sample = range(0, STARTS, STARTS // 32)
        for k in sample:
            if run(starts[k]).iterations != found.iterations[k]:
                raise Disagreement(f"arm {k} of a batch takes other iterations than alone")
        rounds = []
        for _ in range(max(3, settings.rounds // 4)):
            alone = [seconds(lambda k=k: run(starts[k])) for k in sample]
            rounds.append((seconds(lambda: run(starts)) / STARTS, float(np.mean(alone))))
    together, one = np.median(rounds, axis=0)
    # The sample stands for all starts in the measure of their iterations.
    share = found.iterations.mean() / found.iterations[list(sample)].mean()
    return Many(STARTS, float(together), float(one * share), Spread.of([a / (b * share) for a, b in rounds]))


def trot(cycles: int) -> Problem:
    """A trot of several cycles, for windows to go along."""
    w = Quadruped()
    for k, feet in enumerate([("rf_foot", "lh_foot"), ("lf_foot", "rh_foot")] * cycles):
        w.stand(2)
        w.step(Swing(feet, 0.15 if k else 0.075, 0.1, 25))
    return w.problem(w.posture())


def receding() -> StepTimes:
    """The trot by MPC with one iteration a step, its velocities disturbed at each."""
    problem = trot(CYCLES)
    problem.evaluator.threads = 1
    mpc, x = MPC(problem, knots=KNOTS), problem.x0
    rng, taken = np.random.default_rng(0), []
    with one_core():
        while mpc.knot < problem.T - KNOTS:
            begin = time.thread_time()
            u = mpc.step(x)
            taken.append(time.thread_time() - begin)
            x = next_state(problem, mpc.knot, x, u)
            x[problem.nq :] += PUSH * rng.normal(size=problem.nv)
    steady = np.array(taken[3:])  # the first takes more iterations, and the next two load code
    return StepTimes(KNOTS, len(steady), *(float(np.quantile(steady, p)) for p in (0.5, 0.9, 1.0)))


def next_state(problem: Problem, knot: int, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Where a knot leads to, and impacts after it."""
    while True:
        h = problem.window(knot, 1)
        x = h.values(np.stack([x, x]), u[None]).next[0].copy()
        knot += 1
        if knot >= problem.T or problem.durations[knot] > 0:
            return x


def hessians(settings: TimingSettings) -> Hessians:
    """A double pendulum swings up, to an expected gain of 1e-8."""
    problems = [swing_up(hessian) for hessian in ("gauss-newton", "exact")]

    def run(problem: Problem) -> Any:
        return solve(problem, tolerance=1e-8, iterations=500)

    with one_core():
        found = [run(p) for p in problems]
        if not all(s.converged for s in found) or abs(found[0].cost - found[1].cost) > 1e-6 * found[0].cost:
            raise Disagreement("swing-up: Gauss-Newton and exact Hessians end in different motions")
        times = [[seconds(lambda p=p: run(p)) for p in problems] for _ in range(settings.rounds)]
    iterations = int(found[0].iterations), int(found[1].iterations)
    plain, exact = (Spread.of(x) for x in zip(*times, strict=True))
    return Hessians(iterations, (plain, exact))


def swing_up(hessian: str) -> Problem:
    b = ModelBuilder("double_pendulum")
    for k, name in enumerate(("shoulder", "elbow")):
        at = np.eye(4)
        at[2, 3] = -0.5 * k
        b.add_joint(name, "revolute", "shoulder" if k else None, at, axis=(0, 1, 0), armature=0.02)
        b.add_body(name, mass=1.0, com=(0, 0, -0.25), inertia=np.diag([0.02, 0.02, 0.001]))
    up, weights = State(np.array([np.pi, 0.0, 0.0, 0.0])), np.array([1.0, 1.0, 0.1, 0.1])
    costs = [Cost(up, 0.01 * weights), Cost(Control(), 0.1)]
    robot = Robot(b.build(), backend="compiled")
    robot.threads = 1
    return Problem(robot, np.zeros(4), [Phase(100, 0.02, costs)], [Cost(up, 1e3 * weights)], hessian=hessian)
