"""A four-bar linkage: a contact closes the loop between the coupler and the rocker."""

import numpy as np

import featherjet as fj

ground, crank, coupler, rocker = 0.4, 0.12, 0.4, 0.25  # lengths [m]; the crank can rotate fully (Grashof)
b = fj.ModelBuilder("four_bar")
parent = None
for name, length, before in (("crank", crank, 0.0), ("coupler", coupler, crank), ("rocker", rocker, None)):
    at = np.eye(4)
    at[0, 3] = ground if before is None else before
    joint = b.add_joint(name, "revolute", None if before is None else parent, at, axis=(0, 0, 1))
    b.add_body(joint, length, (length / 2, 0, 0), length**3 / 12 * np.diag([0.01, 1.0, 1.0]))
    end = np.eye(4)
    end[0, 3] = length
    b.add_frame(f"{name}_end", joint, end)
    parent = joint
robot = fj.Robot(b.build())


def closed(angle):
    """Joint angles that close the loop at this crank angle, by the law of cosines."""
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    d = np.array([ground, 0.0]) - pin
    far, way = np.hypot(*d), np.arctan2(d[1], d[0])
    inner = np.arccos((coupler**2 + far**2 - rocker**2) / (2 * coupler * far))
    top = pin + coupler * np.array([np.cos(way + inner), np.sin(way + inner)])
    return np.array([angle, way + inner - angle, np.arctan2(top[1], top[0] - ground)])


# A planar loop is always closed out of the plane. A little damping keeps the redundant force at zero.
loop = fj.Contacts(robot, [fj.PointContact("coupler_end", other="rocker_end")], baumgarte=(400, 40), damping=1e-9)
q = closed(0.5)
v = robot.impulse_dynamics(q, [8.0, 0.0, 0.0], loop).v  # hit the crank; the loop determines the other velocities
assert np.abs(robot.contact_jacobian(q, loop) @ v).max() < 1e-6

motion = robot.simulate(q, v, contacts=loop, dt=5e-3, duration=0.5)
energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
errors = [np.abs(np.exp(1j * x) - np.exp(1j * closed(x[0]))).max() for x in motion.q]
print(f"the crank turns by {np.degrees(motion.q[-1, 0] - q[0]):.0f} degrees, the rocker swings "
      f"{np.degrees(np.ptp(motion.q[:, 2])):.0f} degrees")  # fmt: skip
print(f"angles against the law of cosines: {max(errors):.1e}; energy kept to {np.ptp(energy) / energy[0]:.1e}")
assert max(errors) < 1e-4
assert np.ptp(energy) < 1e-3 * energy[0]

# The exact derivative of the pin force with respect to the motor torque, at the last state:
d = robot.constrained_dynamics_derivatives(motion.q[-1], motion.v[-1], np.zeros(3), loop)
print("force at the pin per Nm at the crank:", np.round(d.dforces_dtau[:2, 0], 2), "N")
