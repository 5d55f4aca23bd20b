"""A humanoid takes a step: a flat foot carries it, within the wrench cone of its sole, while the other swings.

Flat feet are surface contacts with six force components; the wrench cone keeps them from sliding, tipping and twisting.
"""

import numpy as np

import featherjet as fj
from featherjet.control import (
    CenterOfMass,
    Control,
    Cost,
    Impact,
    Phase,
    Placement,
    Problem,
    State,
    Velocity,
    WrenchCone,
)

robot = fj.load("humanoid")
knots, dt, length, height, sole = 20, 0.03, 0.12, 0.04, (0.1, 0.05)

q = robot.neutral()
for side in ("left", "right"):
    for joint, angle in (("hip_pitch", -0.4), ("knee", 0.8), ("ankle_pitch", -0.4)):
        q[robot.model.q_starts[robot.model.joint_index(f"{side}_{joint}")]] = angle
x0 = np.concatenate([q, np.zeros(robot.nv)])
start = {side: robot.frame_placement(q, f"{side}_foot") for side in ("left", "right")}
com = robot.center_of_mass(q)
n = robot.nv
posture = Cost(State(x0), np.r_[np.zeros(3), np.full(3, 50.0), np.full(n - 6, 2.0), np.full(n, 1.0)], name="posture")
effort = Cost(Control(), 1e-3)


def standing_on(*sides: str) -> fj.Contacts:
    return fj.Contacts(robot, [fj.SurfaceContact(f"{s}_foot") for s in sides], baumgarte=(0.0, 20.0))


def cone(side: str) -> Cost:
    return Cost(WrenchCone(f"{side}_foot", 0.6, sole), 0.1)


s = np.arange(1, knots + 1) / knots
way = np.repeat(start["left"][None], knots, 0)  # placements (knots, 4, 4)
way[:, 0, 3] += length * s
way[:, 2, 3] += 4 * height * s * (1 - s)
over_right = Cost(CenterOfMass([com[0], start["right"][1, 3], com[2]]), 200.0)  # shift onto the standing foot
middle = Cost(CenterOfMass([com[0] + length / 2, com[1], com[2]]), 200.0)

problem = Problem(
    robot,
    x0,
    [
        Phase(knots, dt, [over_right, cone("left"), cone("right"), posture, effort], standing_on("left", "right")),
        Phase(
            knots, dt, [Cost(Placement("left_foot", way), 1e4), cone("right"), posture, effort], standing_on("right")
        ),
        Impact(
            standing_on("left"),
            [Cost(Placement("left_foot", way[-1]), 1e4), Cost(Velocity("left_foot"), 1.0), posture],
        ),
        Phase(knots, dt, [middle, cone("left"), cone("right"), posture, effort], standing_on("left", "right")),
    ],
    [middle, posture],
)
solution = fj.control.solve(problem, regularisation=0.1)

end = robot.frame_placement(solution.xs[-1, : robot.nq], "left_foot")
print(f"{problem.T} knots, {solution.iterations} iterations, cost {solution.cost:.3f}")
ahead, torque = end[0, 3] - start["left"][0, 3], np.abs(solution.us).max()
print(f"the foot stepped {100 * ahead:.1f} cm ahead; largest torque {torque:.0f} N m")
