"""A spinning top's attitude in every parameterisation, integrated by each of them, and where each of them fails.

The body turns with a constant angular velocity, so the exact attitude is known. Each parameterisation is integrated by
its own rate with the midpoint rule; all agree until Euler angles run into gimbal lock.
"""

import numpy as np

from featherjet.geometry import rotations as rot

omega = np.array([0.02, 2.0, -0.02])  # rad/s, in the body's frame
start = rot.convert([0.2, 0.1, 0.0], "euler_zyx", "quaternion")
dt, steps = 1e-3, 600


def final(kind: str) -> np.ndarray:
    """The attitude as a quaternion, integrated in one parameterisation."""
    x = rot.convert(start, "quaternion", kind)
    for _ in range(steps):
        half = x + dt / 2 * rot.rate(x, omega, kind, "B")
        x = x + dt * rot.rate(half, omega, kind, "B")
    return rot.convert(x, kind, "quaternion")


exact = rot.integrate(start, omega, dt * steps, frame="B")
for kind in rot.PARAMETERISATIONS:
    error = np.linalg.norm(rot.box_minus(final(kind), exact))
    print(f"{kind:16} error {error:.1e} rad after {dt * steps:g} s")
    assert error < 1e-4

# Pitch reaches a right angle soon after; near it the rates of Euler angles explode, those of quaternions do not.
to_lock = [
    abs(rot.convert(rot.integrate(start, omega, t, frame="B"), "quaternion", "euler_zyx")[1]) for t in (0.6, 0.7, 0.73)
]
for t, pitch in zip((0.6, 0.7, 0.73), to_lock, strict=True):
    now = rot.integrate(start, omega, t, frame="B")
    zyx = rot.convert(now, "quaternion", "euler_zyx")
    fast = np.abs(rot.euler_zyx_rate(zyx, omega, "B")).max()
    calm = np.abs(rot.quaternion_rate(now, omega, "B")).max()
    print(f"pitch {np.degrees(pitch):5.1f} deg: Euler rates up to {fast:6.1f} rad/s, quaternion rates up to {calm:.1f}")
