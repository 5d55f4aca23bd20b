"""Co-design: where along a leg should its knee sit, so that a given swing takes the least torque?

Derivatives by the joints' placements give the gradient of the effort by the lengths of the links, exact and in one
call for the whole motion. The leg stays as long as it is; the knee moves.
"""

import numpy as np

import featherjet as fj

leg = fj.Robot(fj.models.auto_tree(3)).with_gravity((0.0, -9.81, 0.0))  # hip, knee, ankle; thin tubes of 1 m and 1 kg
lengths = np.array([1.0, 1.0])  # thigh and shank: knee and ankle sit at their ends

t = np.linspace(0, 2 * np.pi, 200)[:, None]
amplitude, phase = np.array([0.6, 0.5, 0.3]), np.array([0.0, 0.8, 1.6])
q = amplitude * np.sin(t + phase) - np.array([1.3, 0.6, 0.2])
v, a = amplitude * np.cos(t + phase), -amplitude * np.sin(t + phase)


def built(lengths: np.ndarray) -> fj.Robot:
    placements = {}
    for name, length in zip(("joint1", "joint2"), lengths, strict=True):
        placements[name] = np.eye(4)
        placements[name][0, 3] = length
    return leg.with_placements(placements)


def effort(lengths: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of tau^2 over the motion, and its gradient by the lengths."""
    robot = built(lengths)
    tau = robot.inverse_dynamics(q, v, a)
    by = robot.inverse_dynamics_placement_derivatives(q, v, a)
    dtau = np.einsum("tijk,jk->tij", by, robot.model.length_directions)[..., 1:]  # by thigh and shank
    return np.mean((tau**2).sum(-1)), 2 * np.einsum("ti,tij->j", tau, dtau) / len(t)


start, gradient = effort(lengths)
h = 1e-6
checked = [(effort(lengths + h * e)[0] - effort(lengths - h * e)[0]) / (2 * h) for e in np.eye(2)]
assert np.allclose(gradient, checked, rtol=1e-6)

along = np.array([1.0, -1.0]) / 2  # a longer thigh is a shorter shank
low, high = -0.9, 0.9
while high - low > 1e-6:  # the effort's slope along the leg changes sign once
    middle = (low + high) / 2
    slope = effort(lengths + middle * along)[1] @ along
    low, high = (middle, high) if slope < 0 else (low, middle)
best = lengths + low * along
print(f"thigh {best[0]:.3f} m, shank {best[1]:.3f} m: mean tau^2 {effort(best)[0]:.1f} instead of {start:.1f} N^2 m^2")
assert effort(best)[0] < start
