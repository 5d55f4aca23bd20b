"""Formulas of the charts of ball, free and planar joints, on generic scalars.

A rotation from the reference by the Rodrigues parameters rho = tan(angle / 2) axis has the coordinates x = 2 rho.
Their Jacobian is J = k (1 - rho x), k = 1 / (1 + rho.rho): omega = J x'. Since rho' x x' = 0,

    omega' = k (x'' - rho x x'') + k'/k omega.

`lift_*` compute q, v, a from x, x', x''; `pull_*` turn slopes by q, v, a into slopes by x, x', x'' (chart.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..math.scalars import Scalar, sincos
from ..math.vec3 import Mat3, Vec3

HALF = 0.5


def sqrt(x: Scalar) -> Scalar:
    """The square root of a float, an array or a tracer."""
    own = getattr(x, "sqrt", None)
    return own() if own else np.sqrt(x)


def triples(x: Sequence[Scalar]) -> list[Vec3]:
    """Every three scalars as a vector."""
    return [Vec3(*x[i : i + 3]) for i in range(0, len(x), 3)]


def components(*vectors: Vec3) -> list[Scalar]:
    """All components of some vectors in one list."""
    return [x for v in vectors for x in (v.x, v.y, v.z)]


def rates(x: Vec3, x1: Vec3, x2: Vec3) -> tuple[Vec3, Vec3]:
    """omega and omega' in the body's frame."""
    rho = HALF * x
    k = 1 / (1 + rho.dot(rho))
    omega = k * (x1 - rho.cross(x1))
    return omega, k * (x2 - rho.cross(x2)) - (k * rho.dot(x1)) * omega


def quaternion(reference: Sequence[Scalar], x: Vec3) -> list[Scalar]:
    """The quaternion x y z w of the reference rotated by x."""
    rho = HALF * x
    w = sqrt(1 / (1 + rho.dot(rho)))  # cosine of half the angle; the rest is w rho
    r, s = Vec3(*reference[:3]), reference[3]
    vector = w * (s * rho + r + r.cross(rho))
    return [*components(vector), w * (s - r.dot(rho))]


def pull_rotation(x: Vec3, x1: Vec3, x2: Vec3, h0: Vec3, h1: Vec3, h2: Vec3) -> list[Vec3]:
    """J^T h0 + J'^T h1 + J''^T h2, J^T h1 + 2 J'^T h2, J^T h2."""
    rho = HALF * x
    k = 1 / (1 + rho.dot(rho))
    s1, s2 = rho.dot(x1), HALF * x1.dot(x1) + rho.dot(x2)  # derivatives of rho.rho
    k1, k2 = -(k * k) * s1, (k * k) * (2 * k * s1 * s1 - s2)
    p0 = k * h0 + k1 * h1 + k2 * h2
    p1 = k * h1 + (2 * k1) * h2
    p2 = k * h2
    return [
        p0 + rho.cross(p0) + HALF * (x1.cross(p1) + x2.cross(p2)),
        p1 + rho.cross(p1) + x1.cross(p2),
        p2 + rho.cross(p2),
    ]


# Ball joint: constants are the reference quaternion; x, x', x'' are 3 numbers each


def lift_ball(reference: Sequence[Scalar], jets: Sequence[Scalar]) -> list[Scalar]:
    """q (4), v (3), a (3)."""
    x, x1, x2 = triples(jets)
    return [*quaternion(reference, x), *components(*rates(x, x1, x2))]


def pull_ball(reference: Sequence[Scalar], given: Sequence[Scalar]) -> list[Scalar]:
    """From x, x', x'' and slopes by q, v, a (18 numbers) to slopes by x, x', x'' (9)."""
    x, x1, x2, gq, gv, ga = triples(given)
    omega, alpha = rates(x, x1, x2)
    h0 = gq - omega.cross(gv) - alpha.cross(ga)
    return components(*pull_rotation(x, x1, x2, h0, gv - omega.cross(ga), ga))


# Free joint: x is the position p in the world and the ball's three; v = R^T p', a = R^T p'' - omega x v


def body_motion(
    reference: Sequence[Scalar], p1: Vec3, p2: Vec3, x: Vec3, x1: Vec3, x2: Vec3
) -> tuple[Mat3, Vec3, Vec3, Vec3, Vec3]:
    """R, then linear and angular velocity, then linear and angular acceleration, in body axes."""
    R = Mat3.from_quaternion(*quaternion(reference, x))
    omega, alpha = rates(x, x1, x2)
    v = R.transposed_times(p1)
    return R, v, omega, R.transposed_times(p2) - omega.cross(v), alpha


def lift_free(reference: Sequence[Scalar], jets: Sequence[Scalar]) -> list[Scalar]:
    """q (7), v (6), a (6)."""
    p, x, p1, x1, p2, x2 = triples(jets)
    _, v, omega, a, alpha = body_motion(reference, p1, p2, x, x1, x2)
    return [*components(p), *quaternion(reference, x), *components(v, omega, a, alpha)]


def pull_free(reference: Sequence[Scalar], given: Sequence[Scalar]) -> list[Scalar]:
    """From x, x', x'' and slopes by q, v, a (36 numbers) to slopes by x, x', x'' (18)."""
    _, x, p1, x1, p2, x2, fq, gq, fv, gv, fa, ga = triples(given)
    R, v, omega, a, alpha = body_motion(reference, p1, p2, x, x1, x2)
    h0 = gq - v.cross(fv) - omega.cross(gv) - a.cross(fa) - alpha.cross(ga)
    h1 = gv - v.cross(fa) - omega.cross(ga)
    turn = pull_rotation(x, x1, x2, h0, h1, ga)
    shift = [R @ fq, R @ (fv + omega.cross(fa)), R @ fa]
    return [z for pair in zip(shift, turn, strict=True) for z in components(*pair)]


# Planar joint: x is the position in the plane and the angle; the constant is the reference angle


def in_plane(reference: Sequence[Scalar], jets: Sequence[Scalar]) -> tuple[Any, ...]:
    """Cosine and sine of the angle, then linear velocity and acceleration, two components each."""
    _, _, x, px, py, omega, ax, ay, _ = jets
    s, c = sincos(reference[0] + x)
    vx, vy = c * px + s * py, c * py - s * px
    return c, s, vx, vy, c * ax + s * ay + omega * vy, c * ay - s * ax - omega * vx


def lift_planar(reference: Sequence[Scalar], jets: Sequence[Scalar]) -> list[Scalar]:
    """q (4), v (3), a (3)."""
    c, s, vx, vy, ax, ay = in_plane(reference, jets)
    return [jets[0], jets[1], c, s, vx, vy, jets[5], ax, ay, jets[8]]


def pull_planar(reference: Sequence[Scalar], given: Sequence[Scalar]) -> list[Scalar]:
    """From x, x', x'' and slopes by q, v, a (18 numbers) to slopes by x, x', x'' (9)."""
    c, s, vx, vy, ax, ay = in_plane(reference, given[:9])
    omega = given[5]
    qx, qy, q, fx, fy, f, gx, gy, g = given[9:]
    h0 = q - (vx * fy - vy * fx) - (ax * gy - ay * gx)
    h1 = f - (vx * gy - vy * gx)
    fx, fy = fx - omega * gy, fy + omega * gx
    return [
        *(c * qx - s * qy, s * qx + c * qy, h0),
        *(c * fx - s * fy, s * fx + c * fy, h1),
        *(c * gx - s * gy, s * gx + c * gy, g),
    ]
