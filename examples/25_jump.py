"""A quadruped jumps: it takes off, flies without contacts, lands on all feet at once, and comes to rest.

The take-off is not prescribed: the cost asks for a height at the top of the flight and for footholds at the landing.
"""

import numpy as np

import featherjet as fj
from featherjet.control import CenterOfMass, Control, Cost, FrictionCone, Impact, Phase, Problem, State, Translation

robot = fj.load("quadruped")
feet = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
ground, flight, dt, ahead, height = 15, 20, 0.015, 0.2, 0.12

q = robot.neutral()
q[7:] = [0.0, 0.7, -1.4] * 4
x0 = np.concatenate([q, np.zeros(robot.nv)])
places = {f: robot.frame_placement(q, f)[:3, 3] + [ahead, 0.0, 0.0] for f in feet}
com = robot.center_of_mass(q)
held = fj.Contacts(robot, [fj.PointContact(f) for f in feet], baumgarte=(0.0, 20.0))
posture = Cost(State(x0), np.r_[np.zeros(3), np.full(3, 20.0), np.full(12, 0.5), np.full(18, 0.05)], name="posture")
effort = Cost(Control(), 1e-5)
cones = [Cost(FrictionCone(f, 0.7), 1.0) for f in feet]
top = Cost(CenterOfMass(np.add(com, [ahead / 2, 0.0, height])), np.linspace(0.0, 1e4, flight // 2)[:, None])
rest = Cost(CenterOfMass(np.add(com, [ahead, 0.0, 0.0])), 1e3)

problem = Problem(
    robot,
    x0,
    [
        Phase(ground, dt, [posture, effort, *cones], held),
        Phase(flight // 2, dt, [posture, effort, top]),
        Phase(flight // 2, dt, [posture, effort]),
        Impact(held, [posture, *(Cost(Translation(f, places[f]), 1e4) for f in feet)]),
        Phase(ground, dt, [posture, effort, *cones, rest], held),
    ],
    [Cost(State(x0), np.r_[np.zeros(6), np.full(12, 1.0), np.full(18, 10.0)]), rest],
)
solution = fj.control.solve(problem, regularisation=0.1)

path = robot.center_of_mass(solution.xs[:, : robot.nq])
impact = ground + flight
before, after = solution.xs[impact, robot.nq + 2], solution.xs[impact + 1, robot.nq + 2]
print(f"{problem.T} knots, {solution.iterations} iterations, cost {solution.cost:.3f}")
print(
    f"the centre of mass rises {100 * (path[:, 2].max() - com[2]):.1f} cm and lands {path[-1, 0] - com[0]:.2f} m ahead"
)
print(f"the impact changes the base's vertical velocity from {before:.2f} to {after:.2f} m/s")
