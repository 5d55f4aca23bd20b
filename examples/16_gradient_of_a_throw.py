"""A ball is thrown so that it hits a target after a bounce: Newton's method through the simulation.

The throw is 100 time steps. Where the ball bounces is part of what is differentiated: the instant of the impact, its
friction and its restitution. One call gives the derivatives of all steps; their product says how the end of the throw
changes with its beginning.
"""

import numpy as np

import featherjet as fj

builder = fj.ModelBuilder("ball")
builder.add_joint("ball", "free")
builder.add_body("ball", 0.2, inertia=0.4 * 0.2 * 0.05**2 * np.eye(3))
robot = fj.Robot(builder.build())
ground = fj.Ground(robot, [fj.Foot("ball", radius=0.05)], friction=0.4, restitution=0.7)

DT, STEPS = 8e-3, 100
step = fj.TimeStep(robot, ground, dt=DT)
q = robot.neutral()
q[2] = 1.0
target = np.array([2.0, 0.5, 0.7])


def throw(v0):
    """Where the ball is at the end, how that changes with its first velocity (3, 6), and its whole way."""
    motion = robot.simulate(q, v0, contacts=ground, dt=DT, duration=DT * STEPS, method="time-stepping", progress=False)
    d = step.derivatives(motion.q[:-1], motion.v[:-1])
    dq, dv = np.zeros((6, 6)), np.eye(6)
    for k in range(STEPS):
        dq, dv = d.dq_dq[k] @ dq + d.dq_dv[k] @ dv, d.dv_dq[k] @ dq + d.dv_dv[k] @ dv
    turn = robot.frame_placement(motion.q[-1], "ball")[:3, :3]
    return motion.q[-1, :3], turn @ dq[:3], motion.q[:, :3]


v = np.array([2.0, 0.0, -3.0, 0.0, 60.0, 0.0])  # thrown down, with top spin
for iteration in range(20):
    end, slope, path = throw(v)
    miss = target - end
    print(f"throw {iteration}: velocity {np.round(v[:3], 3)} m/s, misses by {np.linalg.norm(miss):.2e} m")
    if np.linalg.norm(miss) < 1e-9:
        break
    v[:3] += np.linalg.solve(slope[:, :3], miss)
low = path[:, 2].argmin()
print(f"it bounced after {DT * low:.2f} s, at x = {path[low, 0]:.2f} m, y = {path[low, 1]:.2f} m")
assert np.linalg.norm(miss) < 1e-9
assert 0 < low < STEPS  # a bounce, not a direct hit

# The same slope by central differences, which cost twelve more throws.
for k in range(6):
    e = 1e-6 * np.eye(6)[k]
    difference = (throw(v + e)[0] - throw(v - e)[0]) / 2e-6
    assert np.allclose(slope[:, k], difference, atol=1e-5), k
print("how the end changes with the spin [m s]:", np.round(slope[:, 4], 5))
