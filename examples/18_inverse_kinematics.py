"""Inverse kinematics: a thousand goals at once, each a place and an attitude of an arm's tool, within joint limits.

Levenberg and Marquardt's method on the manifold of placements: the error is the twist that leads from the tool to its
goal, log(T^-1 goal), and the Jacobian of the tool in its own axes predicts how joints change it. Every line works on
all goals together; each goal has its own damping, and a start that has led nowhere after 20 steps is drawn anew.
"""

import numpy as np

import featherjet as fj

robot = fj.load("arm")
rng = np.random.default_rng(0)
lower, upper, *_ = robot.limits()
count = 1000
goals = robot.frame_placement(robot.random_configuration(rng, count), "tool")  # so that all can be reached


def twist(q: np.ndarray) -> np.ndarray:
    """From the tool to its goal (n, 6), in the tool's axes: linear [m], then angular [rad]."""
    return fj.geometry.se3.box_minus(goals, robot.frame_placement(q, "tool"))


q = robot.random_configuration(rng, count)
error = twist(q)
damping, reached = np.full(count, 1e-2), []
for iteration in range(300):
    J = robot.frame_jacobian(q, "tool")
    pull = (np.swapaxes(J, -1, -2) @ error[..., None])[..., 0]
    stopped = ((q <= lower) & (pull < 0)) | ((q >= upper) & (pull > 0))
    J = np.where(stopped[:, None], 0.0, J)  # joints that would leave their limits stay
    H = np.swapaxes(J, -1, -2) @ J + damping[:, None, None] * np.eye(robot.nv)
    step = np.linalg.solve(H, np.swapaxes(J, -1, -2) @ error[..., None])[..., 0]
    trial = np.clip(q + step, lower, upper)
    new = twist(trial)
    better = (new**2).sum(-1) < (error**2).sum(-1)
    q, error = np.where(better[:, None], trial, q), np.where(better[:, None], new, error)
    damping = np.clip(np.where(better, damping / 5, damping * 4), 1e-9, 1e6)
    there = np.abs(error).max(-1) < 1e-6
    lost = ~there & (iteration % 20 == 19)  # at a limit, or in a local minimum
    q[lost], damping[lost] = robot.random_configuration(rng, int(lost.sum())), 1e-2
    error[lost] = twist(q)[lost]
    reached.append(there.mean())
    if iteration % 20 == 0 or reached[-1] == 1:
        print(f"{iteration + 1:4} iterations: {reached[-1]:6.1%} of the goals reached")
    if reached[-1] == 1:
        break

assert reached[-1] > 0.99
assert (q >= lower).all()
assert (q <= upper).all()
