"""Spatial algebra against explicit 6x6 matrices; properties P1-P7; generic scalars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

from featherjet.math.scalars import sincos
from featherjet.math.spatial import ArticulatedInertia, BodyInertia, Coriolis, Force, Inertia, Motion, Transform, span
from featherjet.math.vec3 import Mat3, Sym3, Vec3
from spatial_helpers import block, crb, crf, crm, skew, times

Array = np.ndarray
SCALARS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "float": lambda rng, n: rng.normal(size=(1, n)),
    "complex": lambda rng, n: rng.normal(size=(1, n)) + 1j * rng.normal(size=(1, n)),
    "batch": lambda rng, n: rng.normal(size=(5, n)),
    "complex batch": lambda rng, n: rng.normal(size=(5, n)) + 1j * rng.normal(size=(5, n)),
}


@pytest.fixture(params=SCALARS)
def draw(request: pytest.FixtureRequest, rng: np.random.Generator) -> Callable[[int], Array]:
    """Random vectors (samples, n) of one kind of scalar."""
    return lambda n: SCALARS[request.param](rng, n)


def scalars(x: Array) -> list:
    """Columns of (samples, n): plain Python scalars if there is one sample, arrays over samples else."""
    return x[0].tolist() if len(x) == 1 else list(x.T)


def motion(x: Array) -> Motion:
    a = scalars(x)
    return Motion(Vec3(*a[:3]), Vec3(*a[3:]))


def force(x: Array) -> Force:
    a = scalars(x)
    return Force(Vec3(*a[:3]), Vec3(*a[3:]))


def flat(x: Motion | Force | Vec3) -> Array:
    """(samples, 6 or 3)."""
    parts = [x] if isinstance(x, Vec3) else [x.ang, x.lin]
    return np.stack([np.atleast_1d(s) for p in parts for s in (p.x, p.y, p.z)], -1)


def close(actual: Array, expected: Array, tolerance: float = 1e-14) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


def random_inertia(draw: Callable[[int], Array]) -> tuple[Inertia, Array]:
    """Ten parameters, and the same as a matrix (samples, 6, 6)."""
    x = draw(10)
    s = scalars(x)
    m, h, sym = x[:, 0], x[:, 1:4], x[:, 4:]
    I = sym[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    one = m[:, None, None] * np.eye(3)
    return Inertia(s[0], Vec3(*s[1:4]), Sym3(*s[4:])), block(I, skew(h), -skew(h), one)


def rotation_of(draw: Callable[[int], Array]) -> tuple[Mat3, Array]:
    """A rotation by a unit quaternion, normalised without conjugation."""
    x = draw(4)
    x = x / np.sqrt((x * x).sum(-1, keepdims=True))
    R = Mat3.from_quaternion(*scalars(x))
    return R, np.stack([flat(c) for c in (R.x, R.y, R.z)], -1)


def test_cross_operators_are_their_matrices(draw) -> None:
    v, m, f = draw(6), draw(6), draw(6)
    close(flat(motion(v).cross(motion(m))), times(crm(v), m))
    close(flat(motion(v).cross_force(force(f))), times(crf(v), f))
    close(flat(force(f).cross_bar(motion(v))), times(crb(f), v))
    close(flat(force(f).cross_bar(motion(v))), flat(motion(v).cross_force(force(f))))
    np.testing.assert_array_equal(crf(v), -np.swapaxes(crm(v), -1, -2))


def test_cross_operators_are_pinocchios(rng: np.random.Generator) -> None:
    v, m, f = rng.normal(size=(3, 1, 6))
    swap = [3, 4, 5, 0, 1, 2]
    pv, pm, pf = pin.Motion(v[0, swap]), pin.Motion(m[0, swap]), pin.Force(f[0, swap])
    close(flat(motion(v).cross(motion(m)))[0, swap], pv.cross(pm).vector)
    close(flat(motion(v).cross_force(force(f)))[0, swap], pv.cross(pf).vector)


def test_properties_p1_to_p7(draw) -> None:
    """[IDSVA] App. B, each on our own operators; P1-P3 as operators on arbitrary vectors."""
    v, m, u, f = motion(draw(6)), motion(draw(6)), motion(draw(6)), force(draw(6))
    x, g = motion(draw(6)), force(draw(6))
    close(flat(v.cross(m).cross(x)), flat(v.cross(m.cross(x)) - m.cross(v.cross(x))), 1e-13)  # P1
    close(
        flat(v.cross(m).cross_force(g)),
        flat(v.cross_force(m.cross_force(g)) - m.cross_force(v.cross_force(g))),
        1e-13,
    )  # P2
    close(
        flat(v.cross_force(f).cross_bar(x)),
        flat(v.cross_force(f.cross_bar(x)) - f.cross_bar(v.cross(x))),
        1e-13,
    )  # P3
    scalar = lambda s: np.atleast_1d(s)  # noqa: E731
    close(scalar(v.cross(m).dot(f)), scalar(-m.dot(v.cross_force(f))), 1e-13)  # P4
    close(scalar(v.cross_force(f).dot(m)), scalar(-f.dot(v.cross(m))), 1e-13)  # P5
    close(scalar(u.cross(v).dot(g)), scalar(-v.dot(u.cross_force(g))), 1e-13)  # P6
    close(scalar(u.cross_force(f).dot(x)), scalar(-f.dot(u.cross(x))), 1e-13)  # P7


def test_power_is_the_same_in_every_frame(draw) -> None:
    R, _ = rotation_of(draw)
    X = Transform(R, Vec3(*scalars(draw(3))))
    m, f = motion(draw(6)), force(draw(6))
    power = np.atleast_1d(m.dot(f))
    close(np.atleast_1d(X.motion(m).dot(X.force(f))), power, 1e-11 * np.abs(flat(X.force(f))).max() ** 2)


def test_transforms_are_their_matrices(draw) -> None:
    """X = [[R, 0], [px R, R]] for motions (eq. 38, of a frame at p), its inverse transpose for forces."""
    (R, Rm), p = rotation_of(draw), draw(3)
    X = Transform(R, Vec3(*scalars(p)))
    matrix = block(Rm, 0 * Rm, skew(p) @ Rm, Rm)
    m, f = draw(6), draw(6)
    scale = np.abs(matrix).max() ** 3
    close(flat(X.motion(motion(m))), times(matrix, m), 1e-14 * scale)
    dual = block(Rm, skew(p) @ Rm, 0 * Rm, Rm)
    close(flat(X.force(force(f))), times(dual, f), 1e-14 * scale)
    close(np.swapaxes(matrix, -1, -2) @ dual, np.broadcast_to(np.eye(6), matrix.shape), 1e-13 * scale)
    close(flat(X.motion_inverse(X.motion(motion(m)))), m, 1e-13 * scale)
    (R2, R2m), p2 = rotation_of(draw), draw(3)
    both = X.compose(Transform(R2, Vec3(*scalars(p2))))
    close(np.stack([flat(c) for c in (both.R.x, both.R.y, both.R.z)], -1), Rm @ R2m, 1e-13 * scale)
    close(flat(both.p), p + times(Rm, p2), 1e-13 * scale)
    same = Transform.identity().compose(X)
    close(flat(same.p), p)


def test_inertia_is_its_matrix(draw) -> None:
    I, matrix = random_inertia(draw)
    J, other = random_inertia(draw)
    v = draw(6)
    close(flat(I @ motion(v)), times(matrix, v))
    close(flat((I + J) @ motion(v)), times(matrix + other, v))


def test_inertia_of_a_placed_body(draw) -> None:
    """The ten parameters transform as X* I X^-1."""
    x = draw(10)
    s = scalars(x)
    sym = x[:, 4:][:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    m, c = x[:, 0], x[:, 1:4]
    (R, Rm), p = rotation_of(draw), draw(3)
    placed = BodyInertia(s[0], Vec3(*s[1:4]), Sym3(*s[4:])).placed(Transform(R, Vec3(*scalars(p))))
    cx = skew(c)
    mm = m[:, None, None]
    own = block(sym - mm * cx @ cx, mm * cx, -mm * cx, mm * np.eye(3))
    dual = block(Rm, skew(p) @ Rm, 0 * Rm, Rm)
    v = draw(6)
    expected = times(dual @ own @ np.swapaxes(dual, -1, -2), v)
    close(flat(placed @ motion(v)), expected, 1e-13 * np.abs(dual).max() ** 2)


def test_coriolis_is_eq_28(draw) -> None:
    """2B in its compact form: against (v x*) I - I (v x) + (I v) xbar*, whose right half must vanish."""
    I, matrix = random_inertia(draw)
    v, m = draw(6), draw(6)
    momentum = times(matrix, v)
    twice = crf(v) @ matrix - matrix @ crm(v) + crb(momentum)
    close(twice[..., 3:], np.zeros_like(twice[..., 3:]), 1e-13 * np.abs(twice).max())
    B = Coriolis.of(I, motion(v), I @ motion(v))
    close(flat(B @ motion(m)), times(twice, m), 1e-13)
    transposed = times(np.swapaxes(twice, -1, -2), m)
    close(flat(B.transposed_times(motion(m))), transposed[..., :3], 1e-13)
    close(flat((B + B) @ motion(m)), 2 * times(twice, m), 1e-13)


def test_coriolis_of_own_velocity_is_the_gyroscopic_force(draw) -> None:
    """B v = v x* I v, and B + B^T is the rate of I carried along by v."""
    I, matrix = random_inertia(draw)
    v, m = draw(6), draw(6)
    B = Coriolis.of(I, motion(v), I @ motion(v))
    gyroscopic = flat(motion(v).cross_force(I @ motion(v)))
    close(flat(B @ motion(v)), 2 * gyroscopic, 1e-13)
    rate = times(crf(v) @ matrix - matrix @ crm(v), m)
    transposed = np.concatenate([flat(B.transposed_times(motion(m))), np.zeros((len(m), 3))], -1)
    close(flat(B @ motion(m)) + transposed, 2 * rate, 1e-13)


def test_articulated_inertia_is_its_matrix(draw) -> None:
    I, matrix = random_inertia(draw)
    J, other = random_inertia(draw)
    v, u = draw(6), draw(6)
    A = ArticulatedInertia.of(I)
    close(flat(A @ motion(v)), times(matrix, v))
    close(flat((A + ArticulatedInertia.of(J)) @ motion(v)), times(matrix + other, v))
    reduced = A.minus_outer(force(u), 0.3 * force(u))
    close(flat(reduced @ motion(v)), times(matrix, v) - 0.3 * u * (u * v).sum(-1, keepdims=True), 1e-13)


def test_matrices_in_other_frames(draw) -> None:
    """X* A X^-1 for inertias, Coriolis matrices and articulated inertias; rates of what is carried along."""
    X = Transform(rotation_of(draw)[0], Vec3(*scalars(draw(3))))
    I, _ = random_inertia(draw)
    v, u, m = draw(6), draw(6), draw(6)
    B = Coriolis.of(I, motion(v), I @ motion(v))
    A = ArticulatedInertia.of(I).minus_outer(force(u), 0.3 * force(u))
    for one in (I, B, A):
        close(flat(one.placed(X) @ motion(m)), flat(X.force(one @ X.motion_inverse(motion(m)))), 1e-12)
    rate = motion(v).cross_force(A @ motion(m)), A @ motion(v).cross(motion(m))
    close(flat(A.carried(motion(v)) @ motion(m)), flat(rate[0] - rate[1]), 1e-12)
    pair = A.minus_pair(force(u), force(v)) @ motion(m)
    dots = [(x * m).sum(-1, keepdims=True) for x in (v, u)]
    close(flat(pair), flat(A @ motion(m)) - u * dots[0] - v * dots[1], 1e-12)


def test_vectors_and_matrices_of_three(draw) -> None:
    a, b = draw(3), draw(3)
    u, v = Vec3(*scalars(a)), Vec3(*scalars(b))
    close(flat(u + v), a + b)
    close(flat(u - v), a - b)
    close(flat(-u), -a)
    close(flat(2.0 * u), 2 * a)
    close(flat(np.float64(2.0) * u), 2 * a)
    close(np.atleast_1d(u.dot(v)), (a * b).sum(-1))
    close(flat(u.cross(v)), np.cross(a, b))
    R, Rm = rotation_of(draw)
    close(flat(R.transposed_times(u)), times(np.swapaxes(Rm, -1, -2), a))
    close(flat((R + R) @ u), 2 * times(Rm, a))
    s, c = sincos(scalars(draw(1))[0])
    turned = R.rotate_z(c, s)
    zero = 0 * np.atleast_1d(c)
    Rz = np.stack([c + zero, -s + zero, zero, s + zero, c + zero, zero, zero, zero, zero + 1], -1).reshape(-1, 3, 3)
    close(np.stack([flat(x) for x in (turned.x, turned.y, turned.z)], -1), Rm @ Rz, 1e-13)
    close(np.atleast_1d(c * c + s * s), 1 + zero, 1e-13 * max(1, np.abs(c).max() ** 2))


def test_rotation_from_quaternion(draw, rng: np.random.Generator) -> None:
    _, R = rotation_of(draw)
    scale = np.abs(R).max() ** 2
    close(np.swapaxes(R, -1, -2) @ R, np.broadcast_to(np.eye(3), R.shape), 1e-13 * scale)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    ours = Mat3.from_quaternion(*q.tolist())
    close(np.stack([flat(c)[0] for c in (ours.x, ours.y, ours.z)], -1), pin.Quaternion(q[3], *q[:3]).matrix())


def test_span_and_arrays() -> None:
    rng = np.random.default_rng(0)
    columns, rates = rng.normal(size=(3, 1, 6)), rng.normal(size=3)
    total = span([motion(c) for c in columns], rates.tolist())
    close(flat(total)[0], columns[:, 0].T @ rates)
    A = rng.normal(size=(3, 3))
    close(flat(Mat3.from_array(A) @ Vec3(1.0, 2.0, 3.0))[0], A @ [1, 2, 3])
    S = A + A.T
    close(flat(Sym3.from_array(S) @ Vec3(1.0, 2.0, 3.0))[0], S @ [1, 2, 3])
    R = pin.exp3(rng.normal(size=3))
    turned = Sym3.from_array(S).rotated(Mat3.from_array(R))
    close(flat(turned @ Vec3(1.0, 2.0, 3.0))[0], R @ S @ R.T @ [1, 2, 3])
