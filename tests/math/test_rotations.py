"""Rotations against SciPy, Pinocchio, mpmath and complex steps; the misprints of the sheet."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import factorial

import mpmath as mp
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from featherjet.errors import InputError, UnknownName
from featherjet.math import rotations as ro
from featherjet.math.stumpff import gamma_inverse_coefficient, stumpff

BATCHES = [(), (5,), (2, 3)]
PAIRS = list(itertools.product(ro.PARAMETERISATIONS, repeat=2))
FRAMES = ["I", "B"]
REPRESENTATIONS = ["quaternion", "matrix"]
ANGLES = [0.0, 1e-9, 1e-6, 1e-3, 0.3, 1.0, 1.99, 2.01, 2.9, np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9, np.pi]
AXES = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 1, 0], [0, 1, -1], [1, 1, 1],
     [-0.3, 0.5, 0.8], [0.2, -0.9, -0.1], [1e-8, 1, 0], [1, -1e-5, 1e-9]]
)  # fmt: skip
AXES = AXES / np.linalg.norm(AXES, axis=1, keepdims=True)
VECTORS = np.array([angle * axis for angle in ANGLES for axis in AXES])
REGULAR = VECTORS[(np.linalg.norm(VECTORS, axis=1) > 0.1) & (np.linalg.norm(VECTORS, axis=1) < 3)]
H = 1e-30


def close(actual: np.ndarray, expected: np.ndarray | float, atol: float) -> None:
    """Absolute error only: NumPy's default relative tolerance of 1e-7 would hide everything of interest."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def batch_of(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return VECTORS[rng.integers(len(VECTORS), size=shape)]


def random_vectors(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def jacobian(f: Callable[[np.ndarray], np.ndarray], n: int = 3) -> np.ndarray:
    """Columns df/dx_k at x = 0 by complex step."""
    return np.stack([f(1j * H * np.eye(n)[k]).imag / H for k in range(n)], -1)


def scipy_make(rotation: Rotation, kind: str) -> np.ndarray:
    vector = rotation.as_rotvec()
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    axis = np.where(angle > 0, vector / np.where(angle > 0, angle, 1), [1.0, 0, 0])
    return {
        "quaternion": lambda: rotation.as_quat(scalar_first=True),
        "matrix": rotation.as_matrix,
        "rotation_vector": lambda: vector,
        "angle_axis": lambda: np.concatenate([angle, axis], -1),
        "euler_zyx": lambda: rotation.as_euler("ZYX"),
        "euler_xyz": lambda: rotation.as_euler("XYZ"),
    }[kind]()


def scipy_matrix(x: np.ndarray, kind: str) -> np.ndarray:
    return {
        "quaternion": lambda: Rotation.from_quat(x, scalar_first=True),
        "matrix": lambda: Rotation.from_matrix(x),
        "rotation_vector": lambda: Rotation.from_rotvec(x),
        "angle_axis": lambda: Rotation.from_rotvec(x[..., :1] * x[..., 1:]),
        "euler_zyx": lambda: Rotation.from_euler("ZYX", x),
        "euler_xyz": lambda: Rotation.from_euler("XYZ", x),
    }[kind]().as_matrix()


def exact_matrix(v: np.ndarray) -> mp.matrix:
    """Rodrigues' formula in 50 digits."""
    with mp.workdps(50):
        x, y, z = (mp.mpf(float(c)) for c in v)
        t = mp.sqrt(x * x + y * y + z * z)
        S = mp.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        a, b = (mp.sin(t) / t, (1 - mp.cos(t)) / t**2) if t else (mp.mpf(1), mp.mpf(1) / 2)
        return mp.eye(3) + a * S + b * S * S


# Conversions


@pytest.mark.parametrize("source,target", PAIRS)
def test_every_conversion_keeps_the_rotation(source: str, target: str):
    rotation = Rotation.from_rotvec(VECTORS)
    x = scipy_make(rotation, source)
    y = ro.convert(x, source, target)
    assert y.dtype == float
    close(scipy_matrix(y, target), scipy_matrix(x, source), atol=3e-15)


@pytest.mark.parametrize("shape", BATCHES)
@pytest.mark.parametrize("source,target", PAIRS)
def test_conversions_of_a_batch_are_those_of_its_members(source: str, target: str, shape: tuple[int, ...]):
    x = ro.convert(batch_of(shape), "rotation_vector", source)
    y = ro.convert(x, source, target)
    trailing = y.shape[len(shape) :]
    assert y.shape[: len(shape)] == shape
    assert trailing == ro.convert(np.zeros(3), "rotation_vector", target).shape
    for index in np.ndindex(shape):
        close(y[index], ro.convert(x[index], source, target), atol=1e-15)


@pytest.mark.parametrize("source", ro.PARAMETERISATIONS)
def test_ranges(source: str):
    """Inputs over several turns come back in the ranges of the module's table."""
    if source == "matrix":
        x = ro.exp_matrix(VECTORS)
    else:
        x = 5 * random_vectors(500, 4 if source in ("quaternion", "angle_axis") else 3)
    if source == "quaternion":
        x = ro.quaternion_normalise(x)
    if source == "angle_axis":
        x[:, 1:] /= np.linalg.norm(x[:, 1:], axis=1, keepdims=True)
    limit = np.pi * (1 + 1e-15)
    assert (np.linalg.norm(ro.convert(x, source, "rotation_vector"), axis=-1) <= limit).all()
    angle_axis = ro.convert(x, source, "angle_axis")
    assert ((angle_axis[:, 0] >= 0) & (angle_axis[:, 0] <= limit)).all()
    close(np.linalg.norm(angle_axis[:, 1:], axis=1), 1, atol=1e-15)
    for kind in ("euler_zyx", "euler_xyz"):
        a, y, c = ro.convert(x, source, kind).T
        assert (np.abs(y) <= np.pi / 2).all()
        assert ((-np.pi <= a) & (a < np.pi) & (-np.pi <= c) & (c < np.pi)).all()


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_log_to_the_last_digits(angle: float, axis: np.ndarray):
    v = angle * axis
    exact = np.array(exact_matrix(v).tolist(), dtype=float)
    # an entry is a sum of products of sin, cos (an ulp each, by whichever library) and the axis: five eps in all
    close(ro.exp_matrix(v), exact, atol=1.1e-15)
    close(ro.matrix_from_quaternion(ro.exp(v)), exact, atol=1e-15)
    for found in (ro.log(ro.exp(v)), ro.log(exact), ro.log(-ro.exp(v))):
        sign = np.sign(found @ v) if angle > 3.14159265 else 1  # at pi both axes are right
        close(sign * found, v, atol=2e-15 * min(1, angle) if angle < 3 else 2e-15)


def test_pinocchio_agrees():
    for v in VECTORS:
        close(ro.exp_matrix(v), pin.exp3(v), atol=1e-13)
    for v in REGULAR:
        close(ro.log(pin.exp3(v)), pin.log3(pin.exp3(v)), atol=1e-14)
        close(ro.gamma(-v), pin.Jexp3(v), atol=1e-14)
        close(ro.gamma_inverse(-v), pin.Jlog3(pin.exp3(v)), atol=1e-13)


@pytest.mark.parametrize("kind", ["euler_zyx", "euler_xyz"])
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("distance", [0.0, 1e-16, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_gimbal_lock_reproduces_the_rotation(kind: str, side: int, distance: float):
    first, last = np.meshgrid(np.linspace(-3.1, 3.1, 9), np.linspace(-np.pi, 3, 9))
    angles = np.stack([first, np.full_like(first, side * (np.pi / 2 - distance)), last], -1)
    C = ro.convert(angles, kind, "matrix")
    found = ro.convert(C, "matrix", kind)
    assert np.isfinite(found).all()
    # three angles of up to pi, rounded (half an ulp of pi each, twice), their sines and cosines, and two products
    close(scipy_matrix(found.reshape(-1, 3), kind), C.reshape(-1, 3, 3), atol=6e-15)


def test_exact_gimbal_lock_sets_the_first_angle_to_zero():
    C = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    np.testing.assert_array_equal(ro.euler_zyx_from_matrix(C), [0, np.pi / 2, 0])
    np.testing.assert_array_equal(ro.euler_xyz_from_matrix(C), [0, np.pi / 2, 0])


def test_elementary_rotations():
    angle = np.linspace(-4, 4, 7)
    for axis in "xyz":
        close(
            ro.elementary_rotation(axis, angle),
            Rotation.from_euler(axis, angle[:, None]).as_matrix(),
            atol=1e-15,
        )


def test_no_rotation_has_the_axis_x():
    np.testing.assert_array_equal(ro.convert(np.zeros(3), "rotation_vector", "angle_axis"), [0, 1, 0, 0])
    np.testing.assert_array_equal(ro.convert([-1, 0, 0, 0], "quaternion", "angle_axis"), [0, 1, 0, 0])


# Quaternions


@pytest.mark.parametrize("shape", BATCHES)
def test_quaternion_algebra(shape: tuple[int, ...]):
    q, p = random_vectors(2, *shape, 4)
    product = ro.quaternion_product(q, p)
    close((ro.quaternion_matrix(q) @ p[..., None])[..., 0], product, atol=1e-14)
    close((ro.quaternion_matrix_bar(p) @ q[..., None])[..., 0], product, atol=1e-14)
    one = ro.quaternion_identity(shape)
    close(ro.quaternion_product(ro.quaternion_inverse(q), q), one, atol=1e-14)
    np.testing.assert_array_equal(ro.quaternion_product(q, one), q)
    close(np.linalg.norm(ro.quaternion_normalise(q), axis=-1), 1, atol=1e-15)
    np.testing.assert_array_equal(ro.xyzw_from_wxyz(ro.wxyz_from_xyzw(q)), q)


def test_quaternions_of_pinocchio():
    a, b = (Rotation.from_rotvec(v) for v in REGULAR[[3, 30]])
    qa, qb = (ro.quaternion_from_matrix(r.as_matrix()) for r in (a, b))
    pa, pb = (pin.Quaternion(r.as_matrix()) for r in (a, b))
    close(ro.xyzw_from_wxyz(qa), pa.coeffs(), atol=1e-15)
    close(ro.quaternion_product(qa, qb), ro.wxyz_from_xyzw((pa * pb).coeffs()), atol=1e-15)


@pytest.mark.parametrize("shape", BATCHES)
def test_skew(shape: tuple[int, ...]):
    a, b = random_vectors(2, *shape, 3)
    close((ro.skew(a) @ b[..., None])[..., 0], np.cross(a, b), atol=1e-15)
    np.testing.assert_array_equal(ro.unskew(ro.skew(a)), a)


# The group's verbs


def sample(representation: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return ro.convert(batch_of(shape, seed), "rotation_vector", representation)


def assert_same(a: np.ndarray, b: np.ndarray, representation: str):
    Ca, Cb = (ro.convert(x, representation, "matrix") for x in (a, b))
    close(Ca, Cb, atol=4e-15)


@pytest.mark.parametrize("shape", BATCHES)
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_active_and_passive_laws(representation: str, shape: tuple[int, ...]):
    a, b = sample(representation, shape, 0), sample(representation, shape, 1)
    r = random_vectors(*shape, 3)
    C = ro.convert(a, representation, "matrix")
    close(ro.rotate(a, r), np.einsum("...ij,...j->...i", C, r), 1e-14)
    close(ro.rotate_frame(a, r), np.einsum("...ji,...j->...i", C, r), 1e-14)
    close(ro.rotate(ro.inverse(a), r), ro.rotate_frame(a, r), 1e-14)
    close(ro.rotate(b, ro.rotate(a, r)), ro.rotate(ro.concatenate(b, a), r), 1e-14)
    frames = ro.rotate_frame(b, ro.rotate_frame(a, r))
    close(frames, ro.rotate_frame(ro.concatenate(a, b), r), 1e-14)
    assert_same(ro.concatenate(b, a), ro.inverse(ro.concatenate(ro.inverse(a), ro.inverse(b))), representation)


@pytest.mark.parametrize("shape", BATCHES)
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_box_plus_undoes_box_minus(representation: str, shape: tuple[int, ...]):
    a, b = sample(representation, shape, 0), sample(representation, shape, 1)
    v = ro.box_minus(a, b)
    assert v.shape == (*shape, 3)
    assert_same(ro.box_plus(b, v), a, representation)
    C = np.einsum("...ij,...jk->...ik", ro.exp_matrix(v), ro.convert(b, representation, "matrix"))
    close(C, ro.convert(a, representation, "matrix"), atol=4e-15)
    w = 0.3 * random_vectors(*shape, 3)
    close(ro.box_minus(ro.box_plus(b, w), b), w, atol=2e-15)
    close(ro.box_minus(b, ro.box_plus(b, w)), -w, atol=2e-15)


@pytest.mark.parametrize("shape", BATCHES)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_discrete_integration_and_differential(representation: str, frame: str, shape: tuple[int, ...]):
    phi, omega, dt = sample(representation, shape, 2), random_vectors(*shape, 3), np.full(shape, 0.1)
    after = ro.integrate(phi, omega, dt, frame=frame)
    close(ro.differentiate(after, phi, dt, frame=frame), omega, atol=5e-14)
    C, E = ro.convert(phi, representation, "matrix"), Rotation.from_rotvec((0.1 * omega).reshape(-1, 3))
    E = E.as_matrix().reshape(*shape, 3, 3)
    expected = E @ C if frame == "I" else C @ E
    close(ro.convert(after, representation, "matrix"), expected, atol=4e-15)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_slerp(representation: str):
    a, b = (ro.convert(v, "rotation_vector", representation) for v in ([0.3, -1, 0.4], [1.0, 0.7, -0.2]))
    t = np.array([0, 0.25, 0.5, 1])
    path = ro.slerp(a, b, t)
    Ca, Cb = (ro.convert(x, representation, "matrix") for x in (a, b))
    for ti, C in zip(t, ro.convert(path, representation, "matrix"), strict=True):
        expected = Rotation.from_rotvec(ti * Rotation.from_matrix(Cb @ Ca.T).as_rotvec()).as_matrix() @ Ca
        close(C, expected, atol=3e-15)  # two roundings of an angle of two radians, and two products, on either side
    batched = ro.slerp(np.stack([a, b]), np.stack([b, a]), np.array([0.25, 0.75]))
    assert_same(batched[0], batched[1], representation)
    if representation == "quaternion":
        assert_same(ro.slerp(a, -b, t), path, representation)  # the shorter arc


# The Jacobian of exp and the sheet's identities


def test_stumpff_functions_and_their_complex_steps():
    x = np.concatenate([np.logspace(-20, 2, 60), [4 - 1e-9, 4 + 1e-9, np.pi**2]])
    with mp.workdps(60):
        exact = [[sum((-mp.mpf(xi)) ** k / mp.factorial(2 * k + n) for k in range(90)) for xi in x] for n in range(8)]
    for n in range(6):
        value = np.array(exact[n], dtype=float)
        slope = np.array([(n * a - b) / 2 for a, b in zip(exact[n + 2], exact[n + 1], strict=True)], dtype=float)
        close(stumpff(x, n)[0], value, atol=2e-15 / factorial(n))
        close(stumpff(x + 1j * H, n)[0].imag / H, slope, atol=2e-14 / factorial(n + 2))


def test_gamma_inverse_coefficient():
    t = np.array([1e-12, 1e-6, 1e-3, 0.1, 1.999, 2.001, np.pi - 1e-9, np.pi, 4.0, 6.28, 6.2831853])
    with mp.workdps(60):
        exact = [float((1 - mp.mpf(a) / 2 * mp.cot(mp.mpf(a) / 2)) / mp.mpf(a) ** 2) for a in t]
    tolerance = 3e-15 / np.abs(np.sin(np.minimum(t, 6.2831853) / 2)) * (t > 4) + 3e-15
    assert (np.abs(gamma_inverse_coefficient(t * t) / exact - 1) < tolerance).all()


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_gamma_is_the_jacobian_of_exp(representation: str):
    exp = ro.exp if representation == "quaternion" else ro.exp_matrix
    for v in VECTORS:
        J = jacobian(lambda d, v=v: ro.box_minus(exp(v + d), exp(v)))
        close(ro.gamma(v), J, atol=4e-15)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_gamma_inverse_is_the_jacobian_of_log(representation: str):
    exp = ro.exp if representation == "quaternion" else ro.exp_matrix
    for v in VECTORS[np.linalg.norm(VECTORS, axis=1) < 3.14159265]:
        J = jacobian(lambda d, v=v: ro.log(ro.box_plus(exp(v), d)))
        close(ro.gamma_inverse(v), J, atol=1e-14)


@pytest.mark.parametrize("shape", BATCHES)
def test_gamma_identities(shape: tuple[int, ...]):
    for seed in range(20):
        v = batch_of(shape, seed)
        G, Gi, S = ro.gamma(v), ro.gamma_inverse(v), ro.skew(v)
        assert G.shape == Gi.shape == (*shape, 3, 3)
        close(G @ Gi, np.broadcast_to(np.eye(3), G.shape), 1e-14)
        close((G @ v[..., None])[..., 0], v, 1e-14)
        close((Gi @ v[..., None])[..., 0], v, 1e-14)
        close(ro.gamma(-v), np.swapaxes(G, -1, -2), 1e-14)
        close(ro.gamma_inverse(-v), Gi + S, 1e-14)
        close(Gi @ ro.exp_matrix(v), Gi + S, 1e-14)


@pytest.mark.parametrize("i", range(0, len(REGULAR), 8))
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_derivatives_of_the_sheet(representation: str, i: int):
    a, b = (ro.convert(v, "rotation_vector", representation) for v in (REGULAR[i], REGULAR[-i - 1] / 5))
    C, r = ro.convert(a, representation, "matrix"), random_vectors(3, seed=i)
    plus, minus, times, inverse, rotate = ro.box_plus, ro.box_minus, ro.concatenate, ro.inverse, ro.rotate
    e = minus(a, b)
    close(jacobian(lambda d: rotate(a, r + d)), C, 1e-14)
    close(jacobian(lambda d: rotate(plus(a, d), r)), -ro.skew(rotate(a, r)), 1e-14)
    close(jacobian(lambda d: minus(inverse(plus(a, d)), inverse(a))), -C.T, 1e-14)
    close(jacobian(lambda d: minus(times(plus(a, d), b), times(a, b))), np.eye(3), 1e-14)
    close(jacobian(lambda d: minus(times(a, plus(b, d)), times(a, b))), C, 1e-14)
    close(jacobian(lambda d: minus(plus(a, d), b)), ro.gamma_inverse(e), 1e-14)
    close(jacobian(lambda d: minus(a, plus(b, d))), -ro.gamma_inverse(-e), 1e-14)
    close(jacobian(lambda d: np.cross(r + d, e)), -ro.skew(e), 1e-14)
    close(jacobian(lambda d: np.cross(r, e + d)), ro.skew(r), 1e-14)
    close(-minus(b, a), e, 1e-14)
    omega = random_vectors(3, seed=i + 1)  # d/dt Phi_BI = -B_omega_IB
    close(minus(inverse(ro.integrate(a, omega, 1j * H, frame="B")), inverse(a)).imag / H, -omega, 1e-14)


# Rates


@pytest.mark.parametrize("shape", BATCHES)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", ro.PARAMETERISATIONS)
def test_rates_turn_the_matrix_by_omega(kind: str, frame: str, shape: tuple[int, ...]):
    """dC/dt by complex step through x + i h dx/dt is skew(I_omega) C or C skew(B_omega), for each kind."""
    v = VECTORS if not shape else REGULAR[np.random.default_rng(3).integers(len(REGULAR), size=shape)]
    if kind == "angle_axis" and not shape:
        v = VECTORS[np.linalg.norm(VECTORS, axis=1) > 0]
    x = ro.convert(v, "rotation_vector", kind)
    if kind.startswith("euler"):
        keep = np.abs(np.cos(x[..., 1])) > 1e-3
        x = x[keep] if not shape else np.where(keep[..., None], x, [0.3, 0.2, 0.1])
    C = ro.convert(x, kind, "matrix")
    omega = random_vectors(*C.shape[:-2], 3)
    dx = ro.rate(x, omega, kind, frame)
    assert dx.shape == x.shape
    dC = dx if kind == "matrix" else ro.convert(x + 1j * H * dx, kind, "matrix").imag / H
    expected = ro.skew(omega) @ C if frame == "I" else C @ ro.skew(omega)
    scale = np.maximum(1, np.abs(dx).reshape(*C.shape[:-2], -1).max(-1))[..., None, None]
    close(dC / scale, expected / scale, atol=5e-15)
    back = ro.omega_from_rate(x, dx, kind, frame)
    close(back / scale[..., 0], omega / scale[..., 0], atol=5e-15)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("order", ["zyx", "xyz"])
def test_euler_maps_are_inverse_to_each_other(order: str, frame: str):
    angles = random_vectors(40, 3)
    E = getattr(ro, f"euler_{order}_map")(angles, frame)
    Ei = getattr(ro, f"euler_{order}_map_inverse")(angles, frame)
    y = np.cos(angles[:, 1])
    close(E @ Ei, np.broadcast_to(np.eye(3), E.shape), atol=1e-14 / np.abs(y).min())
    close(np.linalg.det(E), -y if order == "zyx" else y, atol=1e-15)
    C = ro.convert(angles, f"euler_{order}", "matrix")
    E_I, E_B = (getattr(ro, f"euler_{order}_map")(angles, f) for f in FRAMES)
    close(np.swapaxes(C, -1, -2) @ E_I, E_B, atol=1e-15)  # eq. 7


@pytest.mark.parametrize("frame", FRAMES)
def test_singular_rates_are_refused(frame: str):
    omega, lock = np.ones(3), np.array([0.3, np.pi / 2, 0.1])
    for rate in (ro.euler_zyx_rate, ro.euler_xyz_rate):
        with pytest.raises(InputError, match="gimbal lock"):
            rate(np.stack([np.zeros(3), lock]), omega, frame)
    for angle in (0, 2 * np.pi):
        with pytest.raises(InputError, match="no axis"):
            ro.angle_axis_rate([angle, 0, 0, 1], omega, frame)
    with pytest.raises(InputError, match="folds"):
        ro.rotation_vector_rate([0, 2 * np.pi, 0], omega, frame)
    np.testing.assert_array_equal(ro.rotation_vector_rate(np.zeros(3), omega, frame), omega)


# Points


def test_velocity_of_a_point_in_a_rotating_frame():
    v, dv, r_A, v_A, r_AP, dr_AP = random_vectors(6, 3)
    step = 1j * H
    I_v_P = (r_A + step * v_A + ro.exp_matrix(v + step * dv) @ (r_AP + step * dr_AP)).imag / H
    C = ro.exp_matrix(v)
    B_omega = ro.omega_from_rotation_vector_rate(v, dv, "B")
    B_v_P = ro.velocity_in_rotating_frame(C.T @ v_A, dr_AP, B_omega, r_AP)
    close(C @ B_v_P, I_v_P, atol=1e-14)
    fixed = (r_A + step * v_A + ro.exp_matrix(v + step * dv) @ r_AP).imag / H
    close(C @ ro.velocity_on_body(C.T @ v_A, B_omega, r_AP), fixed, atol=1e-14)


def test_angular_velocities_compose():
    v, dv = random_vectors(3, 3), random_vectors(3, 3, seed=5)
    moved = ro.exp_matrix(v + 1j * H * dv)
    chain = moved[0] @ moved[1] @ moved[2]
    total = ro.omega_from_matrix_rate(chain.real, chain.imag / H, "B")
    C, w = ro.exp_matrix(v), ro.omega_from_rotation_vector_rate(v, dv, "B")
    in_D = [(C[1] @ C[2]).T @ w[0], C[2].T @ w[1], w[2]]
    close(ro.compose_angular_velocities(*in_D), total, atol=1e-14)


# The misprints of the sheet, numbered as in the module's docstring: printed forms fail, ours hold


def off(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a) - b).max())


def test_misprint_1_euler_xyz_product():
    x, _, z = xyz = np.array([0.4, -0.7, 1.1])
    Cx, Cy, Cz = (ro.elementary_rotation(axis, angle) for axis, angle in zip("xyz", xyz, strict=True))
    printed = Cx.copy()
    printed[1, 1] = np.cos(z)
    expected = Rotation.from_euler("XYZ", xyz).as_matrix()
    assert off(printed @ Cy @ Cz, expected) > 0.1
    assert off(Cx @ Cy @ Cz, expected) < 1e-15
    assert off(ro.matrix_from_euler_xyz(xyz), expected) < 1e-15
    assert off(Cx[1, 1], np.cos(x)) == 0


def test_misprints_2_and_3_equation_4():
    z, y = 0.4, -0.7
    true_axis = Rotation.from_euler("ZY", [z, y]).as_matrix()[:, 0]
    printed_axis = np.array([np.cos(y) * np.cos(z), np.cos(y) * np.sin(z), -np.sin(z)])
    Cy = ro.elementary_rotation("y", y)
    printed = Cy.copy()
    printed[2, 2] = np.cos(z)
    assert off(printed @ printed.T, np.eye(3)) > 0.1  # not even a rotation
    assert off(Cy @ Cy.T, np.eye(3)) < 1e-15
    assert off(printed_axis, true_axis) > 0.1
    assert off(ro.euler_zyx_map([z, y, 0.3], "I")[:, 2], true_axis) < 1e-15


def test_misprints_4_to_6_derivative_identities():
    v1, v2 = np.array([0.4, -0.7, 1.1]), np.array([0.9, 0.2, -0.3])
    a, b = ro.exp(v1), ro.exp(v2)
    e = ro.box_minus(a, b)
    true = jacobian(lambda d: ro.box_minus(a, ro.box_plus(b, d)))
    assert off(ro.gamma_inverse(-e), true) > 0.1
    assert off(-ro.gamma_inverse(-e), true) < 1e-14

    true = np.linalg.inv(ro.gamma(-e))
    assert off(ro.gamma(e) + ro.skew(e), true) > 0.1
    assert off(ro.gamma_inverse(e) + ro.skew(e), true) < 1e-14

    t, S = np.linalg.norm(e), ro.skew(e)
    true = jacobian(lambda d: ro.box_minus(ro.exp(e + d), ro.exp(e)))
    last = (t - np.sin(t)) * S @ S / t**3
    assert off(np.eye(3) + (1 - np.cos(t) * S) / t**2 + last, true) > 0.1
    assert off(np.eye(3) + (1 - np.cos(t)) * S / t**2 + last, true) < 1e-14


def test_misprints_7_and_8_ranges():
    up = ro.elementary_rotation("y", np.pi / 2)  # sin(y) = 1 leaves no choice but y = pi/2
    assert ro.euler_zyx_from_matrix(up)[1] == ro.euler_xyz_from_matrix(up)[1] == np.pi / 2
    q = -ro.exp([0.4, -0.7, 1.1])
    assert 2 * np.arccos(q[0]) > np.pi
    assert off(ro.angle_axis_from_quaternion(q)[0], np.linalg.norm([0.4, -0.7, 1.1])) < 1e-15


@pytest.mark.parametrize("turns", [1, 2])
def test_misprint_9_rates_at_whole_turns(turns: int):
    t = 2 * np.pi * turns - 1e-6  # towards an angle that the sheet admits, its factor diverges
    assert abs(np.sin(t) / (1 - np.cos(t))) > 1e6
    near_zero = np.array([1e-12, 0, 0])  # while the printed exclusion of zero is not needed
    assert off(ro.rotation_vector_rate(near_zero, [1, 2, 3], "I"), [1, 2, 3]) < 1e-11


# Errors


@pytest.mark.parametrize(
    "call,message",
    [
        (
            lambda: ro.exp(np.zeros(4)),
            r"exp: v must have shape \(..., 3\), got \(4,\)",
        ),
        (lambda: ro.skew(1.0), r"skew: a must have shape \(..., 3\), got \(\)"),
        (
            lambda: ro.quaternion_product(np.zeros((2, 4)), np.zeros(3)),
            r"quaternion_product: p .* got \(3,\)",
        ),
        (
            lambda: ro.quaternion_from_matrix(np.zeros((3, 4))),
            r"C must have shape \(..., 3, 3\), got \(3, 4\)",
        ),
        (lambda: ro.log(np.zeros((2, 3))), r"log: phi must be a quaternion .* got \(2, 3\)"),
        (lambda: ro.concatenate(np.eye(3), np.zeros(4)), "both"),
        (lambda: ro.gamma("abc"), "gamma: v must hold numbers"),
        (lambda: ro.quaternion_normalise(np.zeros(4)), "zero quaternion"),
        (
            lambda: ro.euler_zyx_rate(np.zeros(3), np.zeros(2), "I"),
            r"omega must have shape \(..., 3\), got \(2,\)",
        ),
        (lambda: ro.compose_angular_velocities(), "at least one"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], object], message: str):
    with pytest.raises(InputError, match=message):
        call()


def test_unknown_names():
    with pytest.raises(UnknownName, match="euler_zyx"):
        ro.convert(np.zeros(3), "euler_zyz", "matrix")
    with pytest.raises(UnknownName, match="rotation_vector"):
        ro.rate(np.zeros(3), np.zeros(3), "rotvec", "I")
    with pytest.raises(UnknownName, match="inertial"):
        ro.matrix_rate(np.eye(3), np.zeros(3), "world")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="axis"):
        ro.elementary_rotation("w", 0.0)
