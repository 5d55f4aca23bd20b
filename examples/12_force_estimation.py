"""Estimate ground forces from torques and accelerations, without force sensors, and predict the effect of noise."""

import numpy as np

import featherjet as fj

robot = fj.load("quadruped")
feet = [fj.PointContact(name) for name in ("LF_foot", "LH_foot", "RF_foot", "RH_foot")]
contacts = fj.Contacts(robot, feet)
rng = np.random.default_rng(0)

q = robot.neutral()
q[8::3], q[9::3] = 0.6, -1.2
v = 0.3 * rng.normal(size=robot.nv)
v = robot.impulse_dynamics(q, v, contacts).v  # a velocity for which no foot moves

# The truth: torques that carry the robot with the smallest forces, and the resulting motion.
tau = robot.contact_inverse_dynamics(q, v, np.zeros(robot.nv), contacts).tau
a, forces = robot.constrained_dynamics(q, v, tau, contacts)


def estimate(tau, a):
    """Forces from M a + h - tau = J^T forces: 18 equations for 12 unknowns."""
    J = robot.contact_jacobian(q, contacts)
    return np.linalg.pinv(J.T) @ (robot.inverse_dynamics(q, v, a) - tau)


assert np.allclose(estimate(tau, a), forces)
for name, f in contacts.split(forces).items():
    print(f"{name}: {np.round(f, 2)} N")

# Add 0.1 Nm of noise to the twelve motors: compare samples with the prediction of the derivatives.
noise = np.zeros((1000, robot.nv))
noise[:, 6:] = 0.1 * rng.normal(size=(1000, 12))
sampled = robot.constrained_dynamics(q, v, tau + noise, contacts).forces.std(0)
d = robot.constrained_dynamics_derivatives(q, v, tau, contacts)
predicted = 0.1 * np.linalg.norm(d.dforces_dtau[:, 6:], axis=1)
print(f"noise of the forces, predicted: {predicted.min():.2f} to {predicted.max():.2f} N")
print(f"noise of the forces, sampled:   {sampled.min():.2f} to {sampled.max():.2f} N")
assert np.allclose(sampled, predicted, rtol=0.1)

# Which joint angles matter most? The change of the forces for one milliradian at each joint:
sensitivity = 1e-3 * np.abs(d.dforces_dq[:, 6:]).max(0)
worst = int(np.argmax(sensitivity))
print(f"a milliradian at {robot.joint_names[1 + worst]} changes a force by {sensitivity[worst]:.2f} N")
