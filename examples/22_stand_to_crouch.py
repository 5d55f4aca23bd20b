"""A humanoid crouches: its feet stand still and carry it, since no force acts on its pelvis."""

import numpy as np

import featherjet as fj

# unroll=False: code shared by all robots, which compiles faster than code for this robot alone
robot = fj.Robot(fj.models.humanoid(), backend="compiled", unroll=False)
feet = ("left_foot", "right_foot")


def pose(bend: float, reach: float) -> np.ndarray:
    """Knees bent, arms forward, feet flat on the ground below the pelvis."""
    q = robot.neutral()
    angles = {"hip_pitch": -bend, "knee": 2 * bend, "ankle_pitch": -bend, "shoulder_pitch": -reach}
    for side in ("left", "right"):
        for joint, angle in angles.items():
            q[robot.model.q_starts[robot.joint_names.index(f"{side}_{joint}")]] = angle
    q[2] -= robot.frame_placement(q, "left_foot")[2, 3]
    return q


rest = np.zeros(robot.nv)
stand, crouch = (pose(0.15, 0.0), rest), (pose(0.9, 0.8), rest)
# a smaller tolerance leads to motions whose feet slip between the times at which they are held
task = dict(duration=1.0, supports=feet, root_forces="unactuated", tolerance=3e-3)
coarse = fj.transition(robot, stand, crouch, intervals=6, **task)
result = fj.transition(robot, stand, crouch, initial=coarse, **task)
print(result)
print(f"  {coarse.report.iterations} iterations, {coarse.report.seconds:.1f} s; then with twice the knots")
print(f"  {result.report.iterations} iterations, {result.report.seconds:.1f} s")
print(f"  {result.energy / coarse.energy:.4f} of the energy with half the knots")
assert 0.99 < result.energy / coarse.energy <= 1.001
for name, energy in result.baselines().items():
    print(f"  {result.energy / energy:.1%} of the energy of a {name}, which lets the feet slip")
    assert result.energy < energy

t = result.times(101)
q, tau = result.q(t), result.tau(t)
slip = max(np.abs(robot.frame_placement(q, f) - robot.frame_placement(q[0], f)).max() for f in feet)
print(f"  feet slip by {slip:.1e} m, the pelvis is pushed by {np.abs(tau[:, :6]).max():.1e} N")
assert result.report.success
assert slip < 1e-3
assert np.abs(tau[:, :6]).max() < 1e-9

# The motion begins and ends at rest, so on average over time the feet (whose frames are upright) carry the weight.
upward = sum(force[:, 2] for force in result.forces(t).values())
mean = np.mean((upward[1:] + upward[:-1]) / 2)
weight = 9.81 * robot.mass
print(f"  feet carry {upward.min():.0f} to {upward.max():.0f} N, on average {mean:.1f} N; weight {weight:.1f} N")
assert abs(mean / (9.81 * robot.mass) - 1) < 1e-3
