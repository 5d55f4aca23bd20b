"""Learn inertial parameters in PyTorch: masses, centres and inertias of an arm's links, and the zero of an encoder.

Torques are linear in the inertial parameters, tau = Y(q, v, a) parameters, and the regressor Y is featherjet's. PyTorch
differentiates through it, also by q, since the offset of the second joint's encoder is unknown. (That of the first is
invisible, as it turns the arm about the vertical, and that of the last is one with the inertia of its link.) Each link
has a pseudo-inertia L L^T, so that whatever is learned is physically possible.
"""

import sys

import numpy as np

import featherjet as fj

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install 'featherjet[torch]'")
    sys.exit()

torch.set_default_dtype(torch.float64)
arm = fj.load("arm", backend="compiled")
robot = arm.lock({name: [0.0] for name in arm.joint_names[3:]})  # the gripper and the wrist are one load
r = fj.torch.wrap(robot)
rng = np.random.default_rng(0)


def pseudo_inertia(parameters):
    """(..., 10) as the matrix (..., 4, 4) of second moments, which is positive definite for real bodies."""
    m, h, (xx, xy, yy, xz, yz, zz) = parameters[..., 0], parameters[..., 1:4], parameters[..., 4:].unbind(-1)
    I = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).unflatten(-1, (3, 3))
    moments = 0.5 * (xx + yy + zz)[..., None, None] * torch.eye(3) - I
    return torch.cat([torch.cat([moments, h[..., None]], -1), torch.cat([h, m[..., None]], -1)[..., None, :]], -2)


def parameters_of(P):
    """The inverse of `pseudo_inertia`."""
    moments, h, m = P[..., :3, :3], P[..., :3, 3], P[..., 3, 3]
    I = moments.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] * torch.eye(3) - moments
    entries = [I[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    return torch.cat([m[..., None], h, torch.stack(entries, -1)], -1)


def random_states(count):
    q = robot.random_configuration(rng, count)
    v, a = rng.normal(size=(2, count, robot.nv)) * [[[2.0]], [[5.0]]]
    return [torch.from_numpy(x) for x in (q, v, a)]


# The real arm differs from its model: other masses, centres and inertias, and an encoder that does not start at zero.
known = torch.from_numpy(robot.inertial_parameters()).unflatten(0, (-1, 10))
nominal = torch.linalg.cholesky(pseudo_inertia(known)).contiguous()
change = torch.from_numpy(rng.normal(size=nominal.shape)).tril() * nominal.abs().amax((-2, -1), keepdim=True)
real = nominal + 0.1 * change
real_offset = torch.tensor(-0.03)


def torques(factors, offset, q, v, a):
    parameters = parameters_of(factors.tril() @ factors.tril().mT).flatten()
    return r.torque_regressor(q + offset * torch.tensor([0.0, 1.0, 0.0]), v, a) @ parameters


train, test = random_states(200), random_states(100)
noise = 0.05 * torch.from_numpy(rng.normal(size=(200, robot.nv)))
measured, expected = torques(real, real_offset, *train) + noise, torques(real, real_offset, *test)

factors, offset = nominal.clone().requires_grad_(), torch.zeros((), requires_grad=True)
optimiser = torch.optim.LBFGS([factors, offset], max_iter=20, line_search_fn="strong_wolfe")


def loss():
    optimiser.zero_grad()
    error = ((torques(factors, offset, *train) - measured) ** 2).mean()
    error.backward()
    return error


for k in range(4):
    with torch.no_grad():
        error = (torques(factors, offset, *test) - expected).square().mean().sqrt()
        print(f"after {20 * k:3} iterations: torques of new states off by {error:.4f} N m, offset {offset:.4f}")
    optimiser.step(loss)
print(f"the real offset is {real_offset}; the measurements have noise of 0.05 N m")
