"""A quadruped trots: diagonal pairs of feet swing, land with an impact, and push within their friction cones.

Phases list what holds and what costs; weights, references and footholds are numbers, so every step shares the code of
the first.
"""

import numpy as np

import featherjet as fj
from featherjet.control import CenterOfMass, Control, Cost, FrictionCone, Impact, Phase, Problem, State, Translation

robot = fj.load("quadruped")
feet = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
pairs = (("LF_foot", "RH_foot"), ("RF_foot", "LH_foot"))
knots, dt, length, height = 15, 0.02, 0.1, 0.06

q = robot.neutral()
q[7:] = [0.0, 0.7, -1.4] * 4  # abduction, hip and knee of each leg
x0 = np.concatenate([q, np.zeros(robot.nv)])
places = {f: robot.frame_placement(q, f)[:3, 3] for f in feet}
com = robot.center_of_mass(q)
posture = Cost(State(x0), np.r_[np.zeros(3), np.full(3, 50.0), np.full(12, 1.0), np.full(18, 0.1)], name="posture")
effort = Cost(Control(), 1e-4)


def standing_on(names: tuple[str, ...]) -> fj.Contacts:
    return fj.Contacts(robot, [fj.PointContact(f) for f in names], baumgarte=(0.0, 20.0))


phases = [Phase(5, dt, [posture, effort, *(Cost(FrictionCone(f, 0.7), 1.0) for f in feet)], standing_on(feet))]
for swing, stance in (pairs, pairs[::-1]):
    s = np.arange(1, knots + 1)[:, None] / knots
    way = s * [length, 0.0, 0.0] + 4 * s * (1 - s) * [0.0, 0.0, height]  # a parabola (knots, 3)
    tracks = [Cost(Translation(f, places[f] + way), 1e4) for f in swing]
    lean = Cost(CenterOfMass(com + s * [length / 2, 0.0, 0.0]), 1e3)
    cones = [Cost(FrictionCone(f, 0.7), 1.0) for f in stance]
    phases.append(Phase(knots, dt, [*tracks, lean, *cones, posture, effort], standing_on(stance)))
    places |= {f: places[f] + [length, 0.0, 0.0] for f in swing}
    com = np.add(com, [length / 2, 0.0, 0.0])
    landing = [Cost(Translation(f, places[f]), 1e4) for f in swing]
    phases.append(Impact(standing_on(swing), [*landing, posture]))

problem = Problem(robot, x0, phases, [posture, Cost(CenterOfMass(com), 1e3)])
solution = fj.control.solve(problem, regularisation=0.1)

ahead = robot.center_of_mass(solution.xs[-1, : robot.nq]) - robot.center_of_mass(q)
print(f"{problem.T} knots, {solution.iterations} iterations, cost {solution.cost:.3f}")
print(f"the centre of mass moved {100 * ahead[0]:.1f} cm ahead; largest torque {np.abs(solution.us).max():.0f} N m")
for foot in feet:
    end = robot.frame_placement(solution.xs[-1, : robot.nq], foot)[:3, 3]
    print(f"{foot} is {1000 * np.linalg.norm(end - places[foot]):.1f} mm from its foothold")
