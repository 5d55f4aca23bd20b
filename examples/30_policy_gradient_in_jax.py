"""Policy gradient through the dynamics, in JAX: a small network learns to swing a pendulum up.

The motor is too weak to lift the pendulum at once. JAX differentiates through 100 steps of simulation: forward
dynamics and integrate are featherjet's machine code, and their derivatives are analytic.
"""

import sys

import numpy as np

import featherjet as fj

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("this example needs JAX: pip install 'featherjet[jax]'")
    sys.exit()

jax.config.update("jax_enable_x64", True)
EPISODES, STEPS, TIME_STEP, TORQUE = 1500, 100, 0.03, 2.5  # the torque to hold it level is 4.9 N m

builder = fj.ModelBuilder("pendulum")
builder.add_joint("pivot", "continuous", None, np.eye(4), axis=(0.0, 1.0, 0.0))
builder.add_body("pivot", 1.0, (0.0, 0.0, -0.5), np.diag([0.02, 0.02, 0.02]))  # hangs down at angle 0
robot = fj.Robot(builder.build(), backend="compiled", unroll=True)
r = fj.jax.wrap(robot)


def policy(weights, q, v):
    """The torque: a network of cosine, sine and velocity with one hidden layer."""
    hidden = jnp.tanh(weights["in"] @ jnp.concatenate([q, v]) + weights["bias"])
    return TORQUE * jnp.tanh(weights["out"] @ hidden)


def episode(weights):
    """The cost of one episode, and its cosines of the angle: -1 is upright."""

    def step(state, _):
        q, v = state
        tau = policy(weights, q, v)
        v = v + TIME_STEP * r.forward_dynamics(q, v, tau)
        q = r.integrate(q, TIME_STEP * v)
        return (q, v), (1 + q[0]) + 0.01 * v[0] ** 2 + 1e-3 * tau[0] ** 2

    start = jnp.array([np.cos(0.1), np.sin(0.1)]), jnp.zeros(1)
    (q, v), costs = jax.lax.scan(step, start, None, length=STEPS)
    return costs.mean() + 0.2 * (1 + q[0]) + 0.02 * v[0] ** 2, q[0]


@jax.jit
def improve(weights, moments, k):
    """One step of Adam."""
    (cost, height), slope = jax.value_and_grad(episode, has_aux=True)(weights)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
    second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], slope)
    rate = 0.02 * (1 - k / EPISODES)

    def move(w, m, s):
        return w - rate * (m / (1 - 0.9**k)) / (jnp.sqrt(s / (1 - 0.99**k)) + 1e-8)

    return jax.tree.map(move, weights, first, second), (first, second), cost, height


rng = np.random.default_rng(3)
weights = {
    "in": jnp.asarray(rng.normal(size=(16, 3))),
    "bias": jnp.asarray(0.1 * rng.normal(size=16)),
    "out": jnp.asarray(0.5 * rng.normal(size=(1, 16))),
}
zeros = jax.tree.map(jnp.zeros_like, weights)
moments = zeros, zeros
for k in range(1, EPISODES + 1):
    weights, moments, cost, height = improve(weights, moments, k)
    if k == 1 or k % 300 == 0:
        angle = np.degrees(np.arccos(np.clip(-float(height), -1, 1)))
        print(f"episode {k:4}: cost {float(cost):.3f}, ends {angle:5.1f} degrees from upright")
