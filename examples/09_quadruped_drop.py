"""Drop a quadruped: it lands on its feet and stands."""

import tempfile
from pathlib import Path

import numpy as np

import featherjet as fj

robot = fj.load("quadruped")
feet = ["LF_foot", "LH_foot", "RF_foot", "RH_foot"]
ground = fj.Ground(robot, [fj.Foot(name, radius=0.02) for name in feet], friction=0.7)

stance = robot.neutral()
stance[8::3], stance[9::3] = 0.6, -1.2  # hips and knees bent
stance[2] = 0.7  # puts the feet 0.18 m above the ground


def hold(t, q, v):
    """Hold the stance with a spring and a damper at each joint; the base has no motors."""
    tau = np.zeros(robot.nv)
    tau[6:] = 300 * (stance[7:] - q[7:]) - 8 * v[6:]
    return tau


motion = robot.simulate(stance, np.zeros(robot.nv), hold, ground, dt=1e-2, duration=0.7)

vertical = sum(force[:, 2] for force in motion.split().values())
print(f"lands at t = {motion.t[np.argmax(vertical > 0)]:.3f} s; the largest force is {vertical.max():.0f} N")
print(f"at the end the ground carries {vertical[-1]:.0f} N, the robot weighs {9.81 * robot.mass:.0f} N")
print(f"worst residual of the contact forces: {motion.residual.max():.1e} N s")
assert abs(vertical[-1] - 9.81 * robot.mass) < 0.1 * 9.81 * robot.mass

depth = ground.gap(robot, motion.q).min()
print(f"deepest penetration: {max(0.0, -depth) * 1e3:.4f} mm")
assert depth > -1e-4

with tempfile.TemporaryDirectory() as folder:  # choose another folder to keep the files
    motion.plot(Path(folder, "drop.png"))
    print("saved", motion.save(Path(folder, "drop.npz")).name, "and drop.png")
