"""Load a robot and compute its dynamics and derivatives at one state."""

import numpy as np

import featherjet as fj

robot = fj.load("arm")  # or a URDF or MJCF file, or a name from `featherjet robots`
print(robot)

rng = np.random.default_rng(0)
q = robot.random_configuration(rng)
v, a = rng.normal(size=(2, robot.nv))

tau = robot.inverse_dynamics(q, v, a)
by = robot.inverse_dynamics_derivatives(q, v, a)
print("torques", tau.round(2))

# To first order, the derivatives predict the torques at a nearby state:
dq, dv, da = 1e-4 * rng.normal(size=(3, robot.nv))
guess = tau + by.dtau_dq @ dq + by.dtau_dv @ dv + by.dtau_da @ da
truth = robot.inverse_dynamics(robot.integrate(q, dq), v + dv, a + da)
print(f"changed by {np.abs(truth - tau).max():.1e}, predicted to {np.abs(truth - guess).max():.1e}")
assert np.abs(truth - guess).max() < 1e-3 * np.abs(truth - tau).max()

# Forward dynamics inverts inverse dynamics, and the derivatives agree: da_dq = -M^-1 dtau_dq.
assert np.allclose(robot.forward_dynamics(q, v, tau), a)
back = robot.forward_dynamics_derivatives(q, v, tau)
assert np.allclose(back.da_dq, -np.linalg.solve(robot.mass_matrix(q), by.dtau_dq))
