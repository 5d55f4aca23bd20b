"""LQR: a cart balances a double pendulum, with a force on the cart alone.

Derivatives of forward dynamics linearise a time step about the upright rest; Riccati's equation gives the gain. For
small disturbances the cost of the nonlinear motion must be the one that Riccati's equation predicts: this is checked.
"""

import numpy as np

import featherjet as fj

b = fj.ModelBuilder("cart_with_double_pendulum")
b.add_joint("cart", "prismatic", axis=(1, 0, 0))
b.add_body("cart", mass=1.5)
above = np.eye(4)
for name, parent in (("lower", "cart"), ("upper", "lower")):
    b.add_joint(name, "revolute", parent, above, axis=(0, 1, 0))
    b.add_body(name, mass=0.4, com=(0, 0, 0.3), inertia=np.diag([0.012, 0.012, 0.0005]))
    above = np.eye(4)
    above[2, 3] = 0.6
robot = fj.Robot(b.build())
h, n = 0.01, robot.nv
push = np.array([1.0, 0.0, 0.0])  # which joints the force acts on


def step(x: np.ndarray, u: float) -> np.ndarray:
    """The state (q, v) one time step later: semi-implicit Euler."""
    q, v = x[:n], x[n:]
    v = v + h * robot.forward_dynamics(q, v, u * push)
    return np.concatenate([robot.integrate(q, h * v), v])


# The step's derivatives at the upright rest
zero = np.zeros(n)
d = robot.forward_dynamics_derivatives(zero, zero, zero)
new_v = np.hstack([h * d.da_dq, np.eye(n) + h * d.da_dv])
A = np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + h * new_v, new_v])
B = np.concatenate([h * h * d.da_dtau @ push, h * d.da_dtau @ push])[:, None]

# Riccati's equation, iterated until it stands still
Q, R = np.diag([1.0, 10, 10, 0.1, 0.1, 0.1]), np.array([[0.01]])
P = Q
for _ in range(5000):
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    P, before = Q + A.T @ P @ (A - B @ K), P
    if np.abs(P - before).max() < 1e-12 * np.abs(P).max():
        break
print("largest eigenvalue alone", np.abs(np.linalg.eigvals(A)).max().round(3), end=", ")
print("with the gain", np.abs(np.linalg.eigvals(A - B @ K)).max().round(3))
assert np.abs(np.linalg.eigvals(A)).max() > 1 > np.abs(np.linalg.eigvals(A - B @ K)).max()


def balance(tilt: float) -> tuple[np.ndarray, float]:
    """The motion from a tilt, with all that is nonlinear, and its cost."""
    xs, cost = [np.array([0, tilt, -tilt, 0, 0, 0])], 0.0
    for _ in range(600):
        u = -(K @ xs[-1])[0]
        cost += xs[-1] @ Q @ xs[-1] + R[0, 0] * u * u
        xs.append(step(xs[-1], u))
    return np.array(xs), cost


for tilt in (1e-4, 0.05, 0.15):
    states, cost = balance(tilt)
    predicted = states[0] @ P @ states[0]
    print(
        f"tilt {tilt:6.4f} rad: cost {cost:.4g}, predicted {predicted:.4g}; the cart moves {np.ptp(states[:, 0]):.3f} m"
    )
    assert np.abs(states[-1]).max() < 0.02 * tilt
    assert tilt > 1e-3 or abs(cost / predicted - 1) < 1e-4
