"""Identify an arm's inertial parameters from noisy torques: base parameters, and estimates that are possible.

Torques are linear in the parameters, tau = Y parameters + armature a. Only some combinations of them, the base
parameters, move the torques. Least squares finds these with the noise they have, and its links cannot exist: some of
their moments of mass are negative. With each link's pseudo-inertia written as L L^T, every estimate is possible, close
to the drawings where the data say nothing, and better where they do.
"""

import numpy as np

import featherjet as fj

robot = fj.load("arm")
rng = np.random.default_rng(1)
nominal = robot.inertial_parameters().reshape(-1, 10)
UPPER = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # the order of the inertia's entries
LOWER = np.tril_indices(4)


def pseudo_inertia(parameters: np.ndarray) -> np.ndarray:
    """(..., 10) as the matrix (..., 4, 4) of moments of mass, positive definite for real bodies."""
    P, I = np.zeros((*parameters.shape[:-1], 4, 4)), np.zeros((*parameters.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(UPPER):
        I[..., i, j] = I[..., j, i] = parameters[..., 4 + k]
    P[..., :3, :3] = 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
    P[..., :3, 3] = P[..., 3, :3] = parameters[..., 1:4]
    P[..., 3, 3] = parameters[..., 0]
    return P


def parameters_of(P: np.ndarray) -> np.ndarray:
    """The inverse of `pseudo_inertia`."""
    S = P[..., :3, :3]
    I = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    return np.concatenate([P[..., 3, 3:], P[..., :3, 3], np.stack([I[..., i, j] for i, j in UPPER], -1)], -1)


def torques(parameters: np.ndarray, states: tuple) -> np.ndarray:
    return robot.torque_regressor(*states) @ parameters.ravel()


def random_states(count: int) -> tuple[np.ndarray, ...]:
    v, a = rng.normal(size=(2, count, robot.nv))
    return robot.random_configuration(rng, count), v, 3 * a


# The real arm differs from its drawings
factors = np.linalg.cholesky(pseudo_inertia(nominal))
change = np.tril(rng.normal(size=factors.shape)) * np.abs(factors).max((-2, -1), keepdims=True)
real_factors = factors + 0.15 * change
real = parameters_of(real_factors @ np.swapaxes(real_factors, -1, -2))
train, test = random_states(60), random_states(300)
noise = 1.0  # N m
measured = torques(real, train) + noise * rng.normal(size=(60, robot.nv))
Y, Y_test = (robot.torque_regressor(*s).reshape(-1, nominal.size) for s in (train, test))
residual = measured.ravel()

# Base parameters: what the torques can tell at all
_, sizes, directions = np.linalg.svd(Y, full_matrices=False)
rank = int((sizes > 1e-9 * sizes[0]).sum())
base = directions[:rank]
print(f"{rank} combinations of {nominal.size} parameters can be identified")
unseen = np.eye(nominal.size) - base.T @ base
assert np.allclose(Y_test @ unseen, 0, atol=1e-9)  # nor do other motions show more

# Plain least squares, from the drawings: unbiased, and physically impossible
plain = nominal.ravel() + base.T @ ((directions[:rank] @ (Y.T @ (residual - Y @ nominal.ravel()))) / sizes[:rank] ** 2)
least = np.linalg.eigvalsh(pseudo_inertia(plain.reshape(-1, 10)))[:, 0]
print(f"plain least squares: {(least < 0).sum()} of {len(least)} links cannot exist")

# Levenberg and Marquardt's method on the factors L: possible at every step
spread = 0.3 * np.repeat(np.abs(factors).max((-2, -1)), 10)  # how far factors may be from the drawings
basis = np.zeros((10, 4, 4))
basis[np.arange(10), LOWER[0], LOWER[1]] = 1.0


def misfit(L: np.ndarray) -> np.ndarray:
    """Torques and factors that are off, in units of what is expected of them."""
    off = residual - Y @ parameters_of(L @ np.swapaxes(L, -1, -2)).ravel()
    return np.concatenate([off / noise, (factors - L)[:, LOWER[0], LOWER[1]].ravel() / spread])


def misfit_slope(L: np.ndarray) -> np.ndarray:
    moved = basis @ np.swapaxes(L, -1, -2)[:, None]
    slope = parameters_of(moved + np.swapaxes(moved, -1, -2))  # (links, 10 entries of L, 10 parameters)
    by_factors = np.einsum("tlp,lkp->tlk", Y.reshape(len(Y), -1, 10), slope).reshape(len(Y), -1)
    return -np.vstack([by_factors / noise, np.diag(1 / spread)])


L, off, damping = factors.copy(), misfit(factors), 1.0
for _ in range(60):
    J = misfit_slope(L)
    H = J.T @ J
    trial = L.copy()
    trial[:, LOWER[0], LOWER[1]] -= np.linalg.solve(H + damping * np.diag(np.diag(H)), J.T @ off).reshape(-1, 10)
    new = misfit(trial)
    gain = off @ off - new @ new
    if gain > 0:
        L, off, damping = trial, new, damping / 5
    else:
        damping *= 4
    if 0 < gain < 1e-9 * off @ off:
        break
possible = parameters_of(L @ np.swapaxes(L, -1, -2))
assert (np.linalg.eigvalsh(pseudo_inertia(possible)) > 0).all()

errors = {}
for name, estimate in (("drawings", nominal), ("least squares", plain), ("possible", possible)):
    errors[name] = np.sqrt(np.mean((Y_test @ (estimate.ravel() - real.ravel())) ** 2))
    mass = estimate.reshape(-1, 10)[:, 0]
    print(f"{name:14} torques of new states off by {errors[name]:.3f} N m; masses {mass.round(1)} kg")
assert errors["possible"] < errors["least squares"] < errors["drawings"]
assert (least < 0).any()
