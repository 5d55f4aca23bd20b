"""SE(3) against Pinocchio, SciPy's expm and logm, 50-digit series and complex steps."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm, logm

from featherjet.errors import InputError
from featherjet.math import rotations as ro
from featherjet.math import se3

BATCHES = [(), (5,), (2, 3)]
ANGLES = [0.0, 1e-9, 1e-6, 1e-3, 0.3, 1.0, 1.99, 2.01, 2.9, np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9]
H = 1e-30


def close(actual: np.ndarray, expected: np.ndarray | float, atol: float) -> None:
    """Absolute error only: NumPy's default relative tolerance of 1e-7 would hide everything of interest."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def twists(angle: float, n: int = 4, seed: int = 0) -> np.ndarray:
    xi = np.random.default_rng(seed).normal(size=(n, 6))
    xi[:, 3:] *= angle / np.linalg.norm(xi[:, 3:], axis=1, keepdims=True)
    return xi


def batch_of(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    pool = np.concatenate([twists(angle, seed=seed) for angle in ANGLES])
    return pool[np.random.default_rng(seed).integers(len(pool), size=shape)]


def hat(xi: np.ndarray) -> np.ndarray:
    X = np.zeros((4, 4))
    X[:3, :3], X[:3, 3] = ro.skew(xi[3:]), xi[:3]
    return X


def jacobian(f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.stack([f(1j * H * e).imag / H for e in np.eye(6)], -1)


def exact_left_jacobian(xi: np.ndarray) -> np.ndarray:
    """sum_k ad(xi)^k / (k + 1)! in 50 digits, with ad built here from cross products."""
    ad = np.block([[ro.skew(xi[3:]), ro.skew(xi[:3])], [np.zeros((3, 3)), ro.skew(xi[3:])]])
    with mp.workdps(50):
        A, term, total = mp.matrix(ad.tolist()), mp.eye(6), mp.eye(6)
        for k in range(1, 60):
            term = term * A / (k + 1)
            total += term
        return np.array(total.tolist(), dtype=float)


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_log(angle: float):
    for xi in twists(angle):
        T = se3.exp(xi)
        close(T, expm(hat(xi)), atol=1e-14)
        close(T, pin.exp6(xi).homogeneous, atol=1e-13)
        close(se3.log(T), xi, atol=2e-14)
    close(se3.log(se3.exp(-xi)), -xi, atol=2e-14)


def test_log_agrees_where_the_oracles_are_accurate():
    for angle in (0.3, 1.0, 2.0, 3.0):
        for xi in twists(angle):
            M = pin.exp6(xi)
            close(se3.log(M.homogeneous), pin.log6(M).vector, atol=1e-13)
            close(hat(se3.log(M.homogeneous)), logm(M.homogeneous).real, atol=1e-12)


@pytest.mark.parametrize("axis", [*np.eye(3), [0.6, -0.8, 0], [1 / 3, 2 / 3, -2 / 3]])
def test_log_at_pi(axis: np.ndarray):
    T = se3.exp(np.concatenate([[0.3, -1.2, 0.7], np.pi * np.asarray(axis)]))
    close(se3.exp(se3.log(T)), T, atol=1e-14)


@pytest.mark.parametrize("angle", ANGLES)
def test_jacobians_of_exp(angle: float):
    for xi in twists(angle):
        J, E = se3.left_jacobian(xi), se3.exp(xi)
        close(J, exact_left_jacobian(xi), atol=3e-15)
        close(se3.right_jacobian(xi), exact_left_jacobian(-xi), atol=3e-15)
        close(J @ se3.left_jacobian_inverse(xi), np.eye(6), atol=2e-14)
        close(se3.right_jacobian_inverse(xi) @ se3.right_jacobian(xi), np.eye(6), atol=2e-14)
        close(se3.adjoint(E) @ se3.right_jacobian(xi), J, atol=1e-14)
        step = jacobian(lambda d, xi=xi, E=E: se3.box_minus(se3.exp(xi + d), E))
        close(step, se3.right_jacobian(xi), atol=1e-14)
        step = jacobian(lambda d, E=E: se3.log(se3.box_plus(E, d)))
        close(step, se3.right_jacobian_inverse(xi), atol=1e-13)


def test_jacobians_of_pinocchio():
    """Pinocchio's own Q block is only good to 1e-7 at an angle of 1e-3, hence the larger angles."""
    for angle in (0.5, 1.0, 2.0, 3.0):
        for xi in twists(angle):
            close(se3.right_jacobian(xi), pin.Jexp6(xi), atol=1e-13)
            close(se3.right_jacobian_inverse(xi), pin.Jlog6(pin.exp6(xi)), atol=1e-13)


@pytest.mark.parametrize("shape", BATCHES)
def test_group_verbs_on_batches(shape: tuple[int, ...]):
    A, B = se3.exp(batch_of(shape, 0)), se3.exp(batch_of(shape, 1))
    r = np.random.default_rng(2).normal(size=(*shape, 3))
    assert A.shape == (*shape, 4, 4)
    close(se3.compose(se3.inverse(A), A), se3.identity(shape), atol=1e-14)
    close(se3.apply(A, se3.apply(B, r)), se3.apply(se3.compose(A, B), r), atol=1e-14)
    xi = se3.box_minus(B, A)
    assert xi.shape == (*shape, 6)
    close(se3.box_plus(A, xi), B, atol=3e-14)
    close(se3.exp(xi), se3.compose(se3.inverse(A), B), atol=3e-14)
    for f in (se3.left_jacobian, se3.right_jacobian, se3.left_jacobian_inverse, se3.right_jacobian_inverse):
        J = f(xi)
        assert J.shape == (*shape, 6, 6)
        for index in np.ndindex(shape):
            close(J[index], f(xi[index]), atol=1e-13)


@pytest.mark.parametrize("shape", BATCHES)
def test_adjoints(shape: tuple[int, ...]):
    A, B = se3.exp(batch_of(shape, 0)), se3.exp(batch_of(shape, 1))
    Ad, dual = se3.adjoint(A), se3.adjoint_dual(A)
    close(se3.adjoint(se3.compose(A, B)), Ad @ se3.adjoint(B), atol=1e-13)
    unit = np.broadcast_to(np.eye(6), Ad.shape)
    close(np.swapaxes(dual, -1, -2) @ Ad, unit, atol=1e-13)  # power does not change
    for index in np.ndindex(shape):
        M = pin.SE3(A[index][:3, :3], A[index][:3, 3])
        close(Ad[index], M.action, atol=1e-14)
        close(dual[index], M.dualAction, atol=1e-14)
    xi, eta = 0.3 * batch_of(shape, 3), batch_of(shape, 4)
    close(se3.adjoint(se3.exp(xi)), _expm_each(se3.small_adjoint(xi)), atol=1e-13)
    for index in np.ndindex(shape):
        X, Y = hat(xi[index]), hat(eta[index])
        close(hat(se3.small_adjoint(xi[index]) @ eta[index]), X @ Y - Y @ X, atol=1e-14)


def _expm_each(A: np.ndarray) -> np.ndarray:
    return np.stack([expm(M) for M in A.reshape(-1, 6, 6)]).reshape(A.shape)


def test_interpolate():
    A, B = se3.exp(twists(1.0, 2))
    t = np.array([0, 0.3, 1])
    path = se3.interpolate(A, B, t)
    assert path.shape == (3, 4, 4)
    MA, MB = (pin.SE3(T[:3, :3], T[:3, 3]) for T in (A, B))
    for ti, T in zip(t, path, strict=True):
        close(T, pin.SE3.Interpolate(MA, MB, ti).homogeneous, atol=1e-14)


def test_homogeneous_transform_of_a_point():
    C, r, p = ro.exp_matrix([0.3, 1.0, -0.4]), np.array([1.0, 2, 3]), np.array([-1.0, 0.5, 2])
    T = se3.transform(C, r)
    np.testing.assert_array_equal(T[3], [0, 0, 0, 1])
    close((T @ [*p, 1])[:3], C @ p + r, atol=1e-15)
    close(se3.apply(T, p), C @ p + r, atol=1e-15)
    close(se3.inverse(T), np.linalg.inv(T), atol=1e-15)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: se3.exp(np.zeros(3)), r"exp: xi must have shape \(..., 6\), got \(3,\)"),
        (lambda: se3.log(np.eye(3)), r"log: T must have shape \(..., 4, 4\), got \(3, 3\)"),
        (lambda: se3.compose(np.eye(4), np.zeros((4, 3))), r"compose: T_BC .* got \(4, 3\)"),
        (lambda: se3.right_jacobian(np.zeros(7)), r"right_jacobian: xi .* got \(7,\)"),
        (lambda: se3.transform(np.eye(3), np.zeros(4)), r"transform: r_IB .* got \(4,\)"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], object], message: str):
    with pytest.raises(InputError, match=message):
        call()
