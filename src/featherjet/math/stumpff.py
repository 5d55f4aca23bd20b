"""The scalar functions of every exponential map here and of its inverse, analytic at zero, on generic scalars.

A rotation by the vector v is even in |v|, hence analytic in x = v.v, and all its coefficients are Stumpff
functions c_n(x) = sum_k (-x)^k / (2k + n)!:

    c_0 = cos t,  c_1 = sin t / t,  c_2 = (1 - cos t) / t^2,  c_3 = (t - sin t) / t^3,  with t = sqrt(x),
    c_{n+2} = (1/n! - c_n) / x,     dc_n/dx = (n c_{n+2} - c_{n+1}) / 2.

No absolute value and no conjugate is taken, so complex steps pass through.
"""

from __future__ import annotations

from math import factorial, pi

from .scalars import Scalar, sincos, sqrt, where_less

# Each step of the upward recurrence divides the rounding error by x, while c_n itself stays near 1/n!: the
# closed form of c_5 loses the factor 5!/x^2 of its digits, and its complex-step derivative one x more. The
# series loses none while x < 4 (its terms fall from the second on), where 14 of them leave 4^14/28! < 1e-20. There
# the recurrence downward loses none either, so that two series serve all orders.
SERIES_LIMIT = 4.0
TERMS = 14


def stumpff(x: Scalar, *orders: int) -> tuple[Scalar, ...]:
    """c_n(x) for each n in `orders`; x real >= 0, or complex near that half line."""
    most = max(orders)
    near = where_less(x, SERIES_LIMIT, x, 0.0)
    series = {n: _series(n, near) for n in (most, most - 1) if n >= 0}
    for n in range(most - 2, -1, -1):
        series[n] = 1 / factorial(n) - near * series[n + 2]
    far = where_less(x, SERIES_LIMIT, SERIES_LIMIT, x)
    t, inverse = sqrt(far), 1 / far
    sine, cosine = sincos(t)
    closed = [cosine, sine / t]
    for n in range(2, most + 1):
        closed.append((1 / factorial(n - 2) - closed[n - 2]) * inverse)
    return tuple(where_less(x, SERIES_LIMIT, series[n], closed[n]) for n in orders)


def _series(n: int, x: Scalar) -> Scalar:
    total = 1.0
    for k in range(TERMS, 0, -1):
        total = 1 - (x * (1 / ((2 * k + n) * (2 * k + n - 1)))) * total
    return total * (1 / factorial(n))


def gamma_inverse_coefficient(x: Scalar) -> Scalar:
    """(1 - (t/2) cot(t/2)) / t^2 with t = sqrt(x): 1/12 at zero, singular at t = 2 pi k, k > 0.

    It is (c_2 - c_3) / (4 c_1) at x/4, in which nothing cancels.
    """
    c1, c2, c3 = stumpff(x * 0.25, 1, 2, 3)
    return (c2 - c3) / (4 * c1)


def angle_over_sine(sine2: Scalar, cosine: Scalar) -> Scalar:
    """a / (r sin a) for the angle a in [0, pi/2] with r sin a = sqrt(sine2) and r cos a = cosine >= 0.

    The angle is halved twice by tan(a/2) = r sin a / (r + r cos a), after which one short arctangent series
    serves the whole range: no branch, no division by zero, analytic at a = 0 and at a = pi/2.
    """
    d = sqrt(sine2 + cosine * cosine) + cosine
    root = 1 + sqrt(1 + sine2 / (d * d))
    s2 = sine2 / (d * d * root * root)  # tan(a/4)^2 <= tan(pi/8)^2 = 0.172, and 0.172^22 / 45 < 1e-18
    total = 1 / 43
    for k in range(20, -1, -1):
        total = 1 / (2 * k + 1) - s2 * total
    return 4 * total / (d * root)


def angle_of(sine: Scalar, cosine: Scalar) -> Scalar:
    """The angle in [-pi, pi] of a sine and a cosine, up to a common factor; half a turn is pi, or -pi if sine < 0."""
    acute = sine * angle_over_sine(sine * sine, where_less(cosine, 0.0, -cosine, cosine))
    half_turn = where_less(sine, 0.0, -pi, pi)
    return where_less(cosine, 0.0, half_turn - acute, acute)
