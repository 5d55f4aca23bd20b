"""A thousand quadrupeds are dropped at once, each its own way; and one that servos hold meets a stair.

All worlds go through one compiled time step together. How they land is told by the forces of their feet.
"""

import time

import numpy as np

import featherjet as fj

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
robot = fj.load("quadruped")
rng = np.random.default_rng(0)

stance = robot.neutral()
stance[8::3], stance[9::3] = 0.6, -1.2

# A thousand drops: from 5 to 25 cm, turned and turning a little, joints held by servos.
worlds = 1000
ground = fj.Ground(robot, [fj.Foot(f, radius=0.02) for f in FEET], friction=0.7)
q = robot.integrate(stance, 0.06 * rng.normal(size=(worlds, robot.nv)) * (np.arange(robot.nv) < 6))
q[:, 2] -= ground.gap(robot, q).min(-1) - rng.uniform(0.05, 0.25, worlds)
v = 0.3 * rng.normal(size=(worlds, robot.nv)) * (np.arange(robot.nv) < 6)
servo = fj.Servo(robot, kp=600.0, kd=20.0, target=stance)

robot.simulate(q, v, servo, ground, dt=4e-3, duration=4e-3, progress=False)  # compiles, once
started = time.perf_counter()
motion = robot.simulate(q, v, servo, ground, dt=4e-3, duration=0.6, progress=False)
seconds = time.perf_counter() - started
steps = worlds * (len(motion) - 1)
print(f"{worlds} worlds, {steps} steps: {seconds:.1f} s, {1e6 * seconds / steps:.1f} us each")

upward = motion.forces.reshape(worlds, len(motion), 4, 3)[..., 2]
weight = robot.mass * 9.81
peak = upward.sum(-1).max(-1) / weight
print(f"the hardest landing takes {peak.max():.1f} times the weight, the median one {np.median(peak):.1f}")
up = robot.frame_placement(motion.q[:, -1], "root")[:, 2, 2]
print(f"{np.mean(up > 0.9):.0%} stand upright after {motion.t[-1]:.1f} s")
assert (upward >= -1e-9).all()  # the ground does not pull
assert ground.gap(robot, motion.q).min() > -5e-3
assert np.mean(up > 0.9) > 0.95

# One drops onto a stair: its front feet stand higher than its hind feet.
stair = fj.HeightField([-2.0, 0.1, 0.1001, 2.0], [-2.0, 2.0], np.array([[0, 0], [0, 0], [0.08, 0.08], [0.08, 0.08]]))
stairs = fj.Ground(robot, [fj.Foot(f, radius=0.02) for f in FEET], friction=0.9, terrain=stair)
q = stance.copy()
q[2] -= stairs.gap(robot, q).min() - 0.02
world = fj.World(robot, q, np.zeros(robot.nv), stairs, dt=4e-3)
for _ in range(250):
    world.tau[:] = servo(world.t, world.q, world.v)
    world.step()
heights = [robot.frame_placement(world.q, f)[2, 3] for f in FEET]
print("on the stair, its feet are at", np.round(heights, 3), "m and carry", np.round(world.forces[2::3], 0), "N")
assert min(heights[:2]) > 0.06 > max(heights[2:])
