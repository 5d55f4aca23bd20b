"""Quadrupeds trot up stairs: servos follow a gait that knows nothing of the stairs.

The gait is a target configuration that depends on time. Servos are part of the time step, so that stiff ones are stable
at 4 ms. Three robots start at different distances from the first step, and move at once.
"""

import numpy as np

import featherjet as fj

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")  # in the order of the joints: abduction, hip and knee of each
TOGETHER = ("LF_foot", "RH_foot")  # diagonal legs; the others half a period later
THIGH = 0.3  # m, as long as the shank
PERIOD, STRIDE, LIFT, HEIGHT = 0.4, 0.12, 0.12, 0.48  # s and m
RISE, TREAD, STEPS = 0.04, 0.35, 4  # of the stairs

robot = fj.load("quadruped")
edges = 0.6 + TREAD * np.arange(STEPS)
x = np.sort(np.concatenate([[-2.0, 4.0], edges, edges + 1e-4]))  # a riser is 0.1 mm wide: a wall
z = RISE * (x[:, None] > edges).sum(1)
stairs = fj.HeightField(x, [-2.0, 2.0], np.stack([z, z], -1))
ground = fj.Ground(robot, [fj.Foot(f, radius=0.02) for f in FEET], friction=0.9, terrain=stairs)


def leg(forward, down):
    """Angles of hip and knee for a foot that far ahead of the hip and below it."""
    knee = -2 * np.arccos(np.hypot(forward, down) / (2 * THIGH))
    return np.arctan2(-forward, down) - knee / 2, knee


def gait(t):
    """Feet go back on the ground for half a period, and forward above it for the other half."""
    q = robot.neutral()
    for k, foot in enumerate(FEET):
        phase = (t / PERIOD + (0.0 if foot in TOGETHER else 0.5)) % 1.0
        if phase < 0.5:
            q[8 + 3 * k : 10 + 3 * k] = leg(STRIDE * (0.5 - 2 * phase), HEIGHT)
        else:
            swing = 2 * phase - 1.0
            q[8 + 3 * k : 10 + 3 * k] = leg(STRIDE * (swing - 0.5), HEIGHT - LIFT * np.sin(np.pi * swing))
    return q


q = np.tile(gait(0.0), (3, 1))
q[:, 0] = 0.0, 0.05, 0.1
q[:, 2] -= ground.gap(robot, q).min(-1)
servo = fj.Servo(robot, kp=800.0, kd=20.0, target=gait)
motion = robot.simulate(q, np.zeros((3, robot.nv)), servo, ground, dt=4e-3, duration=5.0, progress=False)

up = robot.frame_placement(motion.q, "trunk")[..., 2, 2]
for k in range(3):
    end = motion.q[k, -1]
    print(f"robot {k}: {end[0] - q[k, 0]:.2f} m ahead, {100 * (end[2] - q[k, 2]):.0f} cm higher, tilt at most "
          f"{np.degrees(np.arccos(up[k].min())):.0f} degrees")  # fmt: skip
print(f"worst residual of the contact forces: {motion.residual.max():.1e} N s")
assert (motion.q[:, -1, 2] - q[:, 2] > RISE).all()
assert (up > 0.85).all()
