"""Evaluate many states in one call: leading axes broadcast as in NumPy."""

import numpy as np

import featherjet as fj

robot = fj.load("humanoid")
rng = np.random.default_rng(0)
q = robot.random_configuration(rng, size=200)  # (200, nq)
v, a = rng.normal(size=(2, 200, robot.nv))

d = robot.inverse_dynamics_derivatives(q, v, a)
print("one matrix per state:", d.dtau_dq.shape)

# Use one velocity for all configurations, and 4 loads at the left hand for each of them:
fext = np.zeros((4, 1, robot.njoints, 6))
fext[:, 0, robot.joint_names.index("left_wrist_pitch"), 0] = [
    0.0,
    5.0,
    10.0,
    15.0,
]  # [N], along the joint's x axis
tau = robot.inverse_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv), fext)
print("loads x states x dofs:", tau.shape)

# Torques are linear in the load. For whole files of states, see `featherjet derive` on the command line.
per_newton = (tau[3] - tau[0]) / 15.0
assert np.allclose(tau[1], tau[0] + 5.0 * per_newton)
