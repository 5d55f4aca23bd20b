"""Verify the derivatives of your robot (pass its URDF as an argument) and of your own functions."""

import sys

import numpy as np

import featherjet as fj

if len(sys.argv) > 1:
    robot = fj.load(sys.argv[1])
else:
    b = fj.ModelBuilder("ball_and_stick")
    b.add_joint("ball", "spherical")
    b.add_body("ball", mass=2.0, com=(0.0, 0.1, 0.2), inertia=np.diag([0.02, 0.03, 0.02]))
    b.add_joint("stick", "prismatic", "ball", axis=(0, 1, 1))
    b.add_body("stick", mass=0.5, com=(0.1, 0.0, 0.0), inertia=np.diag([0.001, 0.002, 0.002]))
    robot = fj.Robot(b.build())

# Check every derivative, as `featherjet check` does:
for finding in fj.verify.check(robot, samples=20):
    print(f"{finding.quantity:8} {finding.error:.1e}")
    assert finding.error < 1e-9

# Differentiate any quantity, exact to rounding: here the mass matrix with respect to q, (nv, nv, nv).
q = robot.random_configuration(0)
dM = fj.verify.complex_step(robot, "mass_matrix", "q", q=q)
print("dM/dq", dM.shape)

# Differentiate your own function on the manifold of q: the gradient of potential energy is gravity.
slope = fj.verify.differentiate(robot, robot.potential_energy, q)
assert np.allclose(slope, robot.gravity(q), atol=1e-6)
