"""A floating base: configurations are on a manifold, derivatives in its tangent space."""

import numpy as np

import featherjet as fj

robot = fj.load("quadruped")  # for a URDF, fj.load(path, root="free") frees the base
print(f"nq = {robot.nq}: position, quaternion x y z w, 12 angles")
print(f"nv = {robot.nv}: a quaternion has only 3 directions of rotation")

rng = np.random.default_rng(0)
q = robot.random_configuration(rng)
v, a = rng.normal(size=(2, robot.nv))

# Column k of dtau_dq is the derivative of tau along integrate(q, h e_k), not along q[k]:
k, h = 4, 1e-6  # rotation about the base's y axis
step = h * np.eye(robot.nv)[k]
ahead, behind = (robot.inverse_dynamics(robot.integrate(q, s), v, a) for s in (step, -step))
column = robot.inverse_dynamics_derivatives(q, v, a).dtau_dq[:, k]
print(f"column {k} against a central difference: {np.abs(column - (ahead - behind) / (2 * h)).max():.1e}")
assert np.allclose(column, (ahead - behind) / (2 * h), atol=1e-6)

# difference inverts integrate, and interpolate moves along their difference:
q1 = robot.integrate(q, 0.3 * v)
assert np.allclose(robot.difference(q, q1), 0.3 * v)
assert np.allclose(robot.interpolate(q, q1, 0.5), robot.integrate(q, 0.15 * v))

# The dynamics do not depend on the position of the base: the first three columns are zero.
assert not robot.inverse_dynamics_derivatives(q, v, a).dtau_dq[:, :3].any()
