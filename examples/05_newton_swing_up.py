"""A pendulum swings up: with exact second derivatives of the dynamics, Newton's method needs fewer iterations.

Differential dynamic programming is Newton's method on a trajectory. Leaving out the second derivatives of the dynamics
makes it Gauss-Newton's (iLQR). Both minimise the same cost from the same start.
"""

import numpy as np

import featherjet as fj

b = fj.ModelBuilder("pendulum")
b.add_joint("swing", "revolute", axis=(0, 1, 0), armature=0.05)
b.add_body("swing", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.05, 0.05, 0.01]))
robot = fj.Robot(b.build(), backend="compiled")

N, h, n = 60, 0.04, 1
goal, price, weights = np.array([np.pi, 0.0]), 1e-2, np.array([200.0, 20.0])  # of the last state, of torque


def rollout(u, x=None, k=None, K=None, step=1.0):
    """States and torques from the hanging rest, near an earlier trajectory if there is one; and the cost."""
    xs, us = [np.zeros(2 * n)], []
    for t in range(N):
        us.append(u[t] if K is None else u[t] + step * k[t] + K[t] @ (xs[t] - x[t]))
        q, v = xs[t][:n], xs[t][n:]
        v = v + h * robot.forward_dynamics(q, v, us[t])
        xs.append(np.concatenate([q + h * v, v]))
    x, u = np.array(xs), np.array(us)
    return x, u, 0.5 * price * h * (u**2).sum() + 0.5 * weights @ (x[-1] - goal) ** 2


def backward(x, u, exact, mu):
    """The gains of one step of Newton's method (exact), or of Gauss-Newton's; None where it is not convex."""
    W, w = np.diag(weights), weights * (x[-1] - goal)
    k, K, slope = [], [], 0.0
    for t in reversed(range(N)):
        into = np.vstack([h * np.eye(n), np.eye(n)])  # of a change of v into the next state
        d = robot.forward_dynamics_second_order(x[t, :n], x[t, n:], u[t], h * into.T @ w)
        A = np.block([[np.eye(n), h * np.eye(n)], [np.zeros((n, n)), np.eye(n)]]) + h * into @ np.hstack(
            [d.da_dq, d.da_dv]
        )
        B = h * into @ d.da_dtau
        Hxx, Hux, Huu = A.T @ W @ A, B.T @ W @ A, B.T @ W @ B + price * h * np.eye(n)
        if exact:
            Hxx = Hxx + np.block([[d.qq, d.qv], [d.qv.T, d.vv]])
            Hux = Hux + np.hstack([d.qtau.T, np.zeros((n, n))])
        gx, gu = A.T @ w, B.T @ w + price * h * u[t]
        if np.linalg.eigvalsh(Huu).min() <= 0:
            return None
        Huu = Huu + mu * np.eye(n)
        k.append(-np.linalg.solve(Huu, gu))
        K.append(-np.linalg.solve(Huu, Hux))
        slope += gu @ k[-1]
        w, W = gx + Hux.T @ k[-1], Hxx + Hux.T @ K[-1]
        W = 0.5 * (W + W.T)
    return k[::-1], K[::-1], slope


def solve(exact: bool) -> tuple[int, float]:
    """Iterations and cost at the optimum, where a step promises less than 1e-9."""
    x, u, cost = rollout(0.3 * np.sin(np.arange(N)[:, None] * h * 3.0))
    mu = 1e-3
    for iteration in range(1, 500):
        k, K, slope = backward(x, u, exact, mu) or backward(x, u, False, mu)
        if -slope < 1e-9:
            return iteration, cost
        for step in 0.5 ** np.arange(12):
            trial = rollout(u, x, k, K, step)
            if trial[2] < cost + 1e-4 * step * slope:
                (x, u, cost), mu = trial, max(mu / 5, 1e-9)
                break
        else:
            mu = 10 * mu
    return 500, cost


newton, gauss_newton = solve(True), solve(False)
for name, (iterations, cost) in (("Newton", newton), ("Gauss-Newton", gauss_newton)):
    print(f"{name:13}{iterations:4} iterations, cost {cost:.6f}")
assert newton[0] < gauss_newton[0]
assert newton[1] < gauss_newton[1] * 1.001
