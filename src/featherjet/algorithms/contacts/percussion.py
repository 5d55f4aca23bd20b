"""The contact laws of one foot and of one joint's stops, solved for its percussion; on scalars of any kind.

A foot's velocity gamma (two tangents, then the normal) and its percussion P obey
    normal   0 <= Pn,  0 <= gamma_n,  Pn gamma_n = 0
    tangent  |Pt| <= mu Pn, and where the foot slides Pt = -mu Pn gamma_t / |gamma_t|
With gamma = G P + rest, G the foot's own block of the Delassus matrix, this is a problem of three unknowns.
"""

from __future__ import annotations

from typing import NamedTuple

from ...math.scalars import Scalar, sqrt, where_less
from ...math.vec3 import Mat3, Sym3, Vec3

SLIDING_STEPS = 4  # of one visit; the next visits go on from there
CONSISTENT = 1e-9  # share of a velocity that may remain where a foot sticks; more means that G is singular
TURNS = 4  # of a sliding foot's direction
NEARLY = 1e-6  # an angle: closer to its direction, a foot slides along it
TINY = 1e-300


class FootBlock(NamedTuple):
    """A foot's own block of the Delassus matrix, its inverse, and the step 1 / (largest eigenvalue of its tangents)."""

    G: Sym3
    inverse: Sym3
    step: Scalar


def block(G: Sym3) -> FootBlock:
    """What the law needs of a foot's block; the inverse of a singular one is not used, but finite."""
    A, det = G.adjugate()
    trace = G.xx + G.yy + G.zz
    least = 1e-13 * trace * trace * trace + TINY
    d = 1.0 / where_less(det, least, least, det)
    apart = G.xx - G.yy
    largest = 0.5 * (G.xx + G.yy + sqrt(apart * apart + 4.0 * G.xy * G.xy))
    return FootBlock(G, d * A, 1.0 / (largest + TINY))


def struck(of: FootBlock, gamma: Vec3, mu: Scalar, P: Vec3) -> Vec3:
    """The percussion that obeys the law, from a velocity gamma with the percussion P: opens, sticks, or slides."""
    G = of.G
    rest = gamma - (G @ P)
    stick = -1.0 * (of.inverse @ rest)
    left = (G @ stick) + rest
    slide = last = P
    for _ in range(SLIDING_STEPS):
        slide, last = slid(of, (G @ slide) + rest, mu, slide), slide
    slide = turned(G, rest, mu, 0.5 * (slide + last))  # the mean of two steps, since steps may go to and fro
    far = left.dot(left) - CONSISTENT * CONSISTENT * rest.dot(rest)
    outside = where_less(stick.z, 0.0, 1.0, stick.x * stick.x + stick.y * stick.y - mu * mu * stick.z * stick.z)
    held = [
        where_less(0.0, outside, b, where_less(0.0, far, b, a))
        for a, b in ((stick.x, slide.x), (stick.y, slide.y), (stick.z, slide.z))
    ]
    return Vec3(*(where_less(rest.z, 0.0, x, 0.0) for x in held))


def slid(of: FootBlock, gamma: Vec3, mu: Scalar, P: Vec3) -> Vec3:
    """One step towards P = prox(P - r gamma), which projects onto the cone of friction."""
    normal = P.z - gamma.z / (of.G.zz + TINY)
    normal = where_less(normal, 0.0, 0.0, normal)
    return on_disc(P.x - of.step * gamma.x, P.y - of.step * gamma.y, mu * normal, normal)


class Slip(NamedTuple):
    """A foot that slides along the unit vector d = (x, y), with Pt = -mu Pn d and gamma_n = 0.

    normal: Pn; down: what makes it out of the normal velocity; a: gamma_t grows by Pn a; off = d x gamma_t, which must
    vanish; along = d . gamma_t, which must be positive.
    """

    x: Scalar
    y: Scalar
    normal: Scalar
    down: Scalar
    ax: Scalar
    ay: Scalar
    off: Scalar
    along: Scalar


def slip(G: Sym3, rest: Vec3, mu: Scalar, x: Scalar, y: Scalar) -> Slip:
    down = G.zz - mu * (G.xz * x + G.yz * y)
    normal = -1.0 * rest.z / where_less(down, TINY, 1.0, down)
    ax, ay = G.xz - mu * (G.xx * x + G.xy * y), G.yz - mu * (G.xy * x + G.yy * y)
    gx, gy = rest.x + normal * ax, rest.y + normal * ay
    return Slip(x, y, normal, down, ax, ay, x * gy - y * gx, x * gx + y * gy)


def turned(G: Sym3, rest: Vec3, mu: Scalar, P: Vec3) -> Vec3:
    """The percussion of a foot that slides, by Newton's method for its direction; P where that fails."""
    length = P.x * P.x + P.y * P.y
    inverse = -1.0 / sqrt(where_less(length, TINY, 1.0, length))
    s = slip(G, rest, mu, inverse * P.x, inverse * P.y)
    for _ in range(TURNS):
        x, y = s.x, s.y
        rate = s.normal * mu * (G.yz * x - G.xz * y) / where_less(s.down, TINY, 1.0, s.down)
        bx, by = mu * s.normal * (G.xx * y - G.xy * x), mu * s.normal * (G.xy * y - G.yy * x)
        slope = x * (rate * s.ay + by) - y * (rate * s.ax + bx) - s.along
        turn = -1.0 * s.off / where_less(slope * slope, TINY, 1.0, slope)
        turn = where_less(turn, -1.0, -1.0, where_less(1.0, turn, 1.0, turn))
        x, y = x - turn * y, y + turn * x
        size = 1.0 / sqrt(x * x + y * y + TINY)
        s = slip(G, rest, mu, size * x, size * y)
    wrong = where_less(s.off * s.off, NEARLY * NEARLY * s.along * s.along, -1.0, 1.0)
    for good in (s.along, s.normal, s.down):
        wrong = where_less(0.0, good, wrong, 1.0)
    found = (-mu * s.normal * s.x, -mu * s.normal * s.y, s.normal)
    return Vec3(*(where_less(wrong, 0.0, a, b) for a, b in zip(found, (P.x, P.y, P.z), strict=True)))


def rubbed(of: FootBlock, gamma: Vec3, mu: Scalar, P: Vec3) -> Vec3:
    """The percussion whose normal part is P's and whose friction stops the foot, or brakes it most."""
    G, x, y = of.G, P.x, P.y
    det = G.xx * G.yy - G.xy * G.xy
    least = 1e-13 * (G.xx + G.yy) * (G.xx + G.yy) + TINY
    d = 1.0 / where_less(det, least, least, det)
    sx, sy = x - d * (G.yy * gamma.x - G.xy * gamma.y), y - d * (G.xx * gamma.y - G.xy * gamma.x)
    ax, ay = gamma.x + G.xx * (sx - x) + G.xy * (sy - y), gamma.y + G.xy * (sx - x) + G.yy * (sy - y)
    far = ax * ax + ay * ay - CONSISTENT * CONSISTENT * (gamma.x * gamma.x + gamma.y * gamma.y)
    most = mu * P.z
    outside = sx * sx + sy * sy - most * most
    for _ in range(SLIDING_STEPS):
        gx = gamma.x + G.xx * (x - P.x) + G.xy * (y - P.y)
        gy = gamma.y + G.xy * (x - P.x) + G.yy * (y - P.y)
        found = on_disc(x - of.step * gx, y - of.step * gy, most, P.z)
        x, y = found.x, found.y
    held = [where_less(0.0, outside, b, where_less(0.0, far, b, a)) for a, b in ((sx, x), (sy, y))]
    return Vec3(held[0], held[1], P.z)


def on_disc(x: Scalar, y: Scalar, radius: Scalar, normal: Scalar) -> Vec3:
    """(x, y) or the nearest point of the disc, and the normal percussion."""
    length = x * x + y * y
    share = radius / sqrt(where_less(length, TINY, TINY, length))
    share = where_less(share, 1.0, share, 1.0)
    return Vec3(share * x, share * y, normal)


class Stop(NamedTuple):
    """The percussions at one joint: of its dry friction, and of its limits (positive at the lower one)."""

    dry: Scalar
    limit: Scalar


def stopped(G: Scalar, rate: Scalar, below: Scalar, above: Scalar, dry: Scalar, P: Stop) -> Stop:
    """The percussions at a joint that moves with `rate` under P.

    below, above: the rates at which it would reach its limits in this step; dry: the most that friction can do.
    """
    step = 1.0 / G
    rub = P.dry - step * rate
    rub = where_less(rub, -dry, -dry, where_less(dry, rub, dry, rub))
    rate = rate + G * (rub - P.dry)
    low, high = P.limit - step * (rate + below), P.limit - step * (rate - above)
    low, high = where_less(low, 0.0, 0.0, low), where_less(0.0, high, 0.0, high)
    return Stop(rub, low + high)


def across(n: Vec3) -> Mat3:
    """Two tangents and the unit normal n, as columns; smooth but at n = -z."""
    sign = where_less(n.z, 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    first = Vec3(1.0 + sign * n.x * n.x * a, sign * b, -sign * n.x)
    return Mat3(first, Vec3(b, sign + n.y * n.y * a, -n.y), n)
