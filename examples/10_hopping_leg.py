"""A leg on a vertical rail hops: a controller imitates a spring and pushes on the way up to make up for losses."""

import numpy as np

import featherjet as fj

b = fj.ModelBuilder("hopper")
b.add_joint("rail", "prismatic")
b.add_body("rail", 3.0, inertia=0.02 * np.eye(3), name="body")
for name, parent, mass in (("hip", "rail", 0.4), ("knee", "hip", 0.2)):
    at = np.eye(4)
    at[2, 3] = 0.0 if name == "hip" else -0.25
    b.add_joint(name, "revolute", parent, at, axis=(0, 1, 0), armature=0.005)
    b.add_body(name, mass, (0, 0, -0.125), mass * 0.25**2 / 12 * np.diag([1.0, 1.0, 0.01]))
tip = np.eye(4)
tip[2, 3] = -0.25
b.add_frame("foot", "knee", tip)
robot = fj.Robot(b.build())
ground = fj.Ground(robot, ["foot"], friction=0.8)
REST = 0.45  # rest length of the leg [m]


def spring(t, q, v):
    """A spring from hip to foot, stiffer on the way up; the foot's Jacobian turns its force into torques."""
    foot = robot.frame_placement(q, "foot")[:3, 3]
    leg = foot - [0.0, 0.0, q[0]]
    length = np.linalg.norm(leg)
    J = robot.frame_jacobian(q, "foot", viewpoint="world_aligned")[:3, 1:]
    rising = foot[2] < 1e-4 and v[0] > 0
    stretch = (2000 if rising else 1500) * (REST - length) * leg / length
    steady = np.array([-60 * leg[0] - 4 * (J @ v[1:])[0], 0.0, 0.0])  # keeps the foot below the hip
    if foot[2] > 1e-4:
        steady -= 8 * J @ v[1:]  # damps the swing in the air
    return np.concatenate([[0.0], J.T @ (stretch + steady)])


bend = np.arccos(REST / 0.5)
q = np.array([REST + 0.15, bend, -2 * bend])  # the foot is 0.15 m above the ground
motion = robot.simulate(q, np.zeros(3), spring, ground, dt=4e-3, duration=1.2)

height = motion.q[:, 0]
apex = [k for k in range(1, len(height) - 1) if height[k - 1] < height[k] >= height[k + 1]]
for k in apex:
    print(f"t = {motion.t[k]:.2f} s: the body is at {height[k]:.3f} m")
airborne = (motion.forces[:, 2] == 0).mean()
print(f"{airborne:.0%} of the time in the air; the largest ground force is {motion.forces[:, 2].max():.0f} N")
assert len(apex) >= 2
assert min(height[apex]) > REST + 0.02
