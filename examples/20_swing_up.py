"""A double pendulum swings up with the least torque, then with motors too weak to lift it directly."""

import numpy as np

import featherjet as fj

b = fj.ModelBuilder("double_pendulum")
for k, name in enumerate(("shoulder", "elbow")):
    at = np.eye(4)
    at[2, 3] = -0.5 * k
    b.add_joint(name, "revolute", "shoulder" if k else None, at, axis=(0, 1, 0), armature=0.02)
    b.add_body(name, mass=1.0, com=(0, 0, -0.25), inertia=np.diag([0.02, 0.02, 0.001]))
robot = fj.Robot(b.build(), backend="compiled")

rest = np.zeros(2)
down, up = (rest, rest), (np.array([np.pi, 0.0]), rest)

free = fj.transition(robot, down, up, duration=1.0, tolerance=1e-5)
print(free)
for name, energy in free.baselines().items():
    print(f"  {free.energy / energy:.1%} of the energy of a {name}")
    assert free.energy < energy

# Finer knots change little: the optimum does not depend on the spline.
fine = fj.transition(robot, down, up, duration=1.0, tolerance=1e-5, intervals=24, initial=free)
print(f"  with twice the knots {fine.energy / free.energy:.4f} of that")
assert 0.99 < fine.energy / free.energy <= 1.0001

# Held out straight, the pendulum needs 9.8 N m at the shoulder. Motors of 2.5 N m must swing it up.
weak = fj.transition(robot, down, up, duration=2.0, intervals=16, limits={"effort": 2.5})
t = weak.times(400)
print(f"weak motors: {np.abs(weak.tau(t)).max():.3f} N m at most, {weak.report.message}")
turns = int((np.diff(np.sign(weak.v(t)[1:-1, 0])) != 0).sum())
print(f"  the shoulder reverses {turns} times on the way")
assert weak.report.success
assert np.abs(weak.tau(t)).max() <= 2.5
assert turns >= 1
