"""An arm reaches a placement: without limits, with weak motors, and with an end that is a constraint."""

import numpy as np

import featherjet as fj
from featherjet.control import Constraint, Control, Cost, Phase, Placement, Problem, State, solve

robot = fj.load("arm")
x0 = np.zeros(robot.nq + robot.nv)
goal = robot.frame_placement(np.array([0.6, 0.5, -0.3, 0.9, 0.2, -0.4, 0.1]), "tool")
reach = Placement("tool", goal)
costs = [Cost(State(), np.repeat([1e-2, 1e-1], robot.nv)), Cost(Control(), 1e-4)]

free = solve(Problem(robot, x0, [Phase(50, 0.02, costs)], [Cost(reach, 1e3)]))
print(f"no limits: {free}")
print(f"  largest torques {np.abs(free.us).max(0).round(1)} N m")
assert free.converged

# Motors with less than the reach would like; they must still carry the arm.
problem = Problem(robot, x0, [Phase(50, 0.02, costs)], [Cost(reach, 1e3)])
most = np.maximum(0.8 * np.abs(free.us).max(0), np.abs(free.us[-10:]).max(0))
problem.u_lower, problem.u_upper = -np.tile(most, (50, 1)), np.tile(most, (50, 1))
weak = solve(problem)
at_limit = np.isclose(np.abs(weak.us), most).mean()
print(f"weak motors: {weak}")
print(f"  {at_limit:.0%} of the torques are at their limits, the cost is {weak.cost / free.cost:.3f} of that above")
assert weak.converged
assert (np.abs(weak.us) <= most).all()

exact = solve(Problem(robot, x0, [Phase(50, 0.02, costs)], [Constraint(reach)]))
missed = np.abs(robot.frame_placement(exact.xs[-1, : robot.nq], "tool") - goal).max()
print(f"an end that is a constraint: {exact}")
print(f"  it is missed by {missed:.1e}, after {len(exact.log)} iterations in all")
assert exact.converged
assert missed < 1e-5
