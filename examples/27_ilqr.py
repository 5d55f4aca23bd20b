"""iLQR: an arm reaches for a point with little torque, by hand in eighty lines.

Each iteration linearises all time steps of the motion in one call, solves the linear-quadratic problem backwards, and
tries its solution with feedback, forwards. The derivatives are exact, so that convergence is fast at the end.
"""

import numpy as np

import featherjet as fj

robot = fj.load("arm")
n, T, h = robot.nv, 50, 0.02
start = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
goal = robot.frame_placement([0.9, 0.9, 0.3, -0.7, 0.2, 0.1, 0.4], "tool")[:3, 3]
# Weights of torque beyond gravity, of velocity on the way and at the end, of the distance at the end
effort, calm, rest, reach = 1e-3, 2e-2, 10.0, 1e4
call = robot.bind("forward_dynamics")  # one state at a time, without allocations


def step(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    call.q[:], call.v[:], call.tau[:] = q, v, tau
    call()
    v = v + h * call.a
    return robot.integrate(q, h * v), v


def rollout(us, xs=None, k=None, K=None, alpha=1.0):
    """States (T + 1, 2 n) and torques (T, n), near an earlier motion if there is one, and the cost."""
    x, out, used = np.concatenate([start, np.zeros(n)]), [], []
    for t in range(T):
        u = us[t] if xs is None else us[t] + alpha * k[t] + K[t] @ (x - xs[t])
        out.append(x)
        used.append(u)
        x = np.concatenate(step(x[:n], x[n:], u))
        if np.abs(x).max() > 50:  # a step that leads far astray
            return None, None, np.inf
    states, torques = np.array([*out, x]), np.array(used)
    beyond = torques - robot.gravity(states[:-1, :n])
    away = robot.frame_placement(x[:n], "tool")[:3, 3] - goal
    on_the_way = effort * (beyond**2).sum() + calm * (states[:-1, n:] ** 2).sum()
    return states, torques, 0.5 * (on_the_way + rest * x[n:] @ x[n:] + reach * away @ away)


def linearised(xs: np.ndarray, us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A (T, 2 n, 2 n) and B (T, 2 n, n) of every step, in one call."""
    q, v, one = xs[:-1, :n], xs[:-1, n:], np.eye(n)
    d = robot.forward_dynamics_derivatives(q, v, us)
    by_q, by_dv = robot.integrate_jacobians(q, h * xs[1:, n:])
    new_v = np.concatenate([h * d.da_dq, one + h * d.da_dv], -1)
    new_q = np.concatenate([by_q, np.zeros_like(by_q)], -1) + h * by_dv @ new_v
    return np.concatenate([new_q, new_v], -2), np.concatenate([h * h * by_dv @ d.da_dtau, h * d.da_dtau], -2)


def backward(xs: np.ndarray, us: np.ndarray, mu: float):
    """Feedforward and gains of every step, and the decrease that they promise."""
    A, B = linearised(xs, us)
    q = xs[:, :n]
    J = robot.frame_jacobian(q[-1], "tool", viewpoint="world_aligned")[:3]
    away = robot.frame_placement(q[-1], "tool")[:3, 3] - goal
    p = np.concatenate([reach * J.T @ away, rest * xs[-1, n:]])
    P = np.zeros((2 * n, 2 * n))
    P[:n, :n], P[n:, n:] = reach * J.T @ J, rest * np.eye(n)
    beyond, slope = us - robot.gravity(q[:-1]), robot.gravity_derivatives(q[:-1])
    W = calm * np.diag(np.repeat([0.0, 1.0], n))
    k, K, promised = [], [], 0.0
    for t in reversed(range(T)):
        D = np.hstack([-slope[t], np.zeros((n, n))])  # of the torque beyond gravity, by the state
        gx = A[t].T @ p + effort * D.T @ beyond[t] + W @ xs[t]
        gu = B[t].T @ p + effort * beyond[t]
        Huu = B[t].T @ P @ B[t] + (effort + mu) * np.eye(n)
        Hux = B[t].T @ P @ A[t] + effort * D
        k.append(-np.linalg.solve(Huu, gu))
        K.append(-np.linalg.solve(Huu, Hux))
        promised += 0.5 * gu @ k[-1]
        p, P = gx + Hux.T @ k[-1], A[t].T @ P @ A[t] + effort * D.T @ D + W + Hux.T @ K[-1]
        P = 0.5 * (P + P.T)
    return k[::-1], K[::-1], promised


xs, us, cost = rollout(np.tile(robot.gravity(start), (T, 1)))
costs, mu = [cost], 1e-2
for _ in range(100):
    k, K, promised = backward(xs, us, mu)
    if -promised < 1e-9 * cost:
        break
    for alpha in 0.5 ** np.arange(6):
        trial = rollout(us, xs, k, K, alpha)
        if trial[2] < cost + 0.1 * alpha * promised:
            (xs, us, cost), mu = trial, max(mu / 4, 1e-9)
            costs.append(cost)
            break
    else:
        mu = 10 * mu

path = robot.frame_placement(xs[:, :n], "tool")[:, :3, 3]
print(f"{len(costs) - 1} iterations, cost {costs[0]:.1f} -> {cost:.4f}")
away = np.linalg.norm(path[-1] - goal)
print(
    f"the tool is {1e3 * away:.2f} mm from its goal, and no joint is faster than {np.abs(xs[-1, n:]).max():.3f} rad/s"
)
assert away < 5e-3
assert (np.diff(costs) < 0).all()
