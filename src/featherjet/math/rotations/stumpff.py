"""The scalar functions of every exponential map here, analytic at zero and on complex numbers.

A rotation by the vector v is even in |v|, hence analytic in x = v.v, and all its coefficients are Stumpff
functions c_n(x) = sum_k (-x)^k / (2k + n)!:

    c_0 = cos t,  c_1 = sin t / t,  c_2 = (1 - cos t) / t^2,  c_3 = (t - sin t) / t^3,  with t = sqrt(x),
    c_{n+2} = (1/n! - c_n) / x,     dc_n/dx = (n c_{n+2} - c_{n+1}) / 2.

No absolute value and no conjugate is taken, so complex steps pass through.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from featherjet.math.rotations.inputs import Array

# Each step of the upward recurrence divides the rounding error by x, while c_n itself stays near 1/n!: the
# closed form of c_5 loses the factor 5!/x^2 of its digits, and its complex-step derivative one x more. The
# series loses none while x < 4 (its terms fall from the second on), where 14 of them leave 4^14/28! < 1e-20.
SERIES_LIMIT = 4.0
TERMS = 14


def stumpff(x: Array, *orders: int) -> tuple[Array, ...]:
    """c_n(x) for each n in `orders`, elementwise; x (...) real >= 0, or complex near that half line."""
    small = np.abs(x) < SERIES_LIMIT
    near, far = np.where(small, x, 0.0), np.where(small, SERIES_LIMIT, x)
    t = np.sqrt(far)
    closed = [np.cos(t), np.sin(t) / t]
    for n in range(2, max(orders) + 1):
        closed.append((1 / factorial(n - 2) - closed[n - 2]) / far)
    return tuple(np.where(small, _series(n, near), closed[n]) for n in orders)


def _series(n: int, x: Array) -> Array:
    total = np.ones_like(x)
    for k in range(TERMS, 0, -1):
        total = 1 - x / ((2 * k + n) * (2 * k + n - 1)) * total
    return total / factorial(n)


def gamma_inverse_coefficient(x: Array) -> Array:
    """(1 - (t/2) cot(t/2)) / t^2 with t = sqrt(x): 1/12 at zero, singular at t = 2 pi k, k > 0.

    Near zero it is the ratio (c_3 - 2 c_4) / (2 c_2), in which nothing cancels.
    """
    small = np.abs(x) < SERIES_LIMIT
    c2, c3, c4 = stumpff(np.where(small, x, 0.0), 2, 3, 4)
    far = np.where(small, SERIES_LIMIT, x)
    half = np.sqrt(far) / 2
    return np.where(small, (c3 - 2 * c4) / (2 * c2), (1 - half / np.tan(half)) / far)


def angle_over_sine(sine2: Array, cosine: Array) -> Array:
    """a / (r sin a) for the angle a in [0, pi/2] with r sin a = sqrt(sine2) and r cos a = cosine >= 0.

    The angle is halved twice by tan(a/2) = r sin a / (r + r cos a), after which one short arctangent series
    serves the whole range: no branch, no division by zero, analytic at a = 0 and at a = pi/2.
    """
    d = np.sqrt(sine2 + cosine * cosine) + cosine
    root = 1 + np.sqrt(1 + sine2 / (d * d))
    s2 = sine2 / (d * d * root * root)  # tan(a/4)^2 <= tan(pi/8)^2 = 0.172, and 0.172^22 / 45 < 1e-18
    total = np.zeros_like(s2)
    for k in range(21, -1, -1):
        total = 1 / (2 * k + 1) - s2 * total
    return 4 * total / (d * root)
