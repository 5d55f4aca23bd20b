"""A thousand reaches from different starts, solved at once: each takes the steps it takes alone."""

import time

import numpy as np

import featherjet as fj
from featherjet.control import Control, Cost, Phase, Placement, Problem, State, solve

robot = fj.load("arm")
goal = robot.frame_placement(np.array([0.6, 0.5, -0.3, 0.9, 0.2, -0.4, 0.1]), "tool")
reach = Placement("tool", goal)
costs = [Cost(reach, 1.0), Cost(State(), 0.1), Cost(Control(), 1e-3)]
problem = Problem(robot, np.zeros(2 * robot.nv), [Phase(20, 0.04, costs)], [Cost(reach, 100.0)])

rng = np.random.default_rng(0)
starts = np.zeros((1000, 2 * robot.nv))
starts[:, : robot.nq] = rng.uniform(-0.5, 0.5, (1000, robot.nq))

one = solve(problem, starts[0])  # compiles
began = time.perf_counter()
many = solve(problem, starts, progress=True)
seconds = time.perf_counter() - began
print(many)
print(f"{1000 * seconds / len(starts):.2f} ms a problem, {many.iterations.min()} to {many.iterations.max()} iterations")
assert many.converged.mean() > 0.99
np.testing.assert_allclose(many.us[0], one.us, atol=1e-6)

ends = robot.frame_placement(many.xs[many.converged, -1, : robot.nq], "tool")
missed = np.linalg.norm(ends[:, :3, 3] - goal[:3, 3], axis=-1)
print(f"the tool ends {1000 * np.median(missed):.2f} mm from its goal (median), {1000 * missed.max():.2f} mm at most")
