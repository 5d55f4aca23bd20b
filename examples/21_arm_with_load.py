"""An arm carries a load over an obstacle, within the limits of its motors."""

from dataclasses import replace

import numpy as np

import featherjet as fj
from featherjet.model import Body

arm = fj.models.arm()
*others, last = arm.joints
load = Body(mass=3.0, com=np.array([0.0, 0.0, 0.15]), inertia=0.01 * np.eye(3))
robot = fj.Robot(replace(arm, joints=(*others, replace(last, body=last.body + load))), backend="compiled")

rest = np.zeros(robot.nv)
start = np.array([-0.8, 1.2, 0.0, -1.2, 0.0, 0.7, 0.0])
end = np.array([0.8, 1.2, 0.0, -1.2, 0.0, 0.7, 0.0])
over = np.array([0.62, 0.0, 0.85])  # [m], above the obstacle

free = fj.transition(robot, (start, rest), (end, rest), duration=1.5)
print(free)
for name, energy in free.baselines().items():
    print(f"  {free.energy / energy:.1%} of the energy of a {name}")
    assert free.energy < energy

conditions = dict(
    targets=[fj.Target("tool", time=0.75, position=over)], limits=("position", "velocity", "effort"), duration=1.5
)
careful = fj.transition(robot, (start, rest), (end, rest), **conditions)
print(careful)
reached = robot.frame_placement(careful.q(0.75), "tool")[:3, 3]
t = careful.times(500)
print(f"  the tool is {np.abs(reached - over).max():.1e} m from its target")
print(f"  fastest joint {np.abs(careful.v(t)).max():.3f} of 2 rad/s")
assert careful.report.success
assert np.allclose(reached, over, atol=1e-6)
assert np.abs(careful.v(t)).max() <= 2.0

# Within limits, finer knots change little; without limits, finer knots allow faster motions.
fine = fj.transition(robot, (start, rest), (end, rest), **conditions, intervals=24, initial=careful)
print(f"  with twice the knots {fine.energy / careful.energy:.4f} of that energy")
assert 0.97 < fine.energy / careful.energy <= 1.0
