"""A double pendulum swings up: Gauss-Newton against exact Hessians, which converge quadratically."""

import numpy as np

import featherjet as fj
from featherjet.control import Control, Cost, Phase, Problem, State, solve

b = fj.ModelBuilder("double_pendulum")
for k, name in enumerate(("shoulder", "elbow")):
    at = np.eye(4)
    at[2, 3] = -0.5 * k
    b.add_joint(name, "revolute", "shoulder" if k else None, at, axis=(0, 1, 0), armature=0.02)
    b.add_body(name, mass=1.0, com=(0, 0, -0.25), inertia=np.diag([0.02, 0.02, 0.001]))
robot = fj.Robot(b.build(), backend="compiled")

up = State(np.array([np.pi, 0.0, 0.0, 0.0]))


def swing_up(hessian: str) -> Problem:
    costs = [Cost(up, np.array([1e-2, 1e-2, 1e-3, 1e-3])), Cost(Control(), 0.1)]
    end = Cost(up, np.array([1e3, 1e3, 1e2, 1e2]))
    return Problem(robot, np.zeros(4), [Phase(100, 0.02, costs)], [end], hessian=hessian)


found = {}
for hessian in ("gauss-newton", "exact"):
    found[hessian] = s = solve(swing_up(hessian), iterations=500, tolerance=1e-8)
    print(f"{hessian}: {s}")
    print("  expected gains at the end:", " ".join(f"{x:.0e}" for x in s.log["stop"][-6:]))
    assert s.converged
plain, exact = found["gauss-newton"], found["exact"]
print(f"exact Hessians take {int(exact.iterations)} iterations, Gauss-Newton {int(plain.iterations)}")
assert exact.iterations < 0.5 * plain.iterations
assert abs(exact.cost - plain.cost) < 1e-5 * plain.cost
