"""Second derivatives: against complex step of first derivatives, Pinocchio, closed forms and each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from backends import branches
from featherjet.algorithms.derivatives import methods
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError
from featherjet.model import configuration
from featherjet.model.builder import transform
from helpers import agree, each_agrees, every_kind, models, random_state, to_pinocchio

STEP = 1e-30
INVERSE, FORWARD = 1e-12, 1e-9  # forward dynamics divides by M
DYNAMICS = ("inverse_dynamics", "forward_dynamics")


def moved(robot: fj.Robot, x: np.ndarray, on_manifold: bool) -> np.ndarray:
    """x moved along each dof by an imaginary step, (nv, n, ...)."""
    e = np.broadcast_to(1j * STEP * np.eye(robot.nv)[:, None], (robot.nv, len(x), robot.nv))
    return configuration.integrate(robot.evaluator.space, x, e) if on_manifold else x + e


def expected(robot: fj.Robot, name: str, s, w: np.ndarray) -> list[np.ndarray]:
    """qq, qv, vv and the last block by complex step of the first derivatives, which are other algorithms.

    Row j, column i of each product is the derivative along dof i of (w^T D)_j.
    """
    third = "a" if name == "inverse_dynamics" else "tau"
    given = {"q": s.q, "v": s.v, third: s.a, "fext": s.fext}

    def slopes(**changed: np.ndarray) -> list[np.ndarray]:
        found = robot.evaluator.reference(f"{name}_derivatives", given | changed)[:3]
        return [np.einsum("nk,inkj->nji", w, np.imag(D) / STEP) for D in found]

    by_q = slopes(q=moved(robot, s.q, True))
    by_v = slopes(v=moved(robot, s.v, False))
    return [by_q[0], by_q[1].swapaxes(1, 2), by_v[1], by_q[2].swapaxes(1, 2)]


def check(robot: fj.Robot, name: str, seed: int, tolerance: float, size: int = 2) -> None:
    s = random_state(robot, size, seed)
    w = np.random.default_rng(seed).normal(size=(size, robot.nv))
    want = expected(robot, name, s, w)
    floor = 1e-2 * np.abs(want[0]).max((1, 2)) + 1e-6 * np.abs(w).max(1)
    for method in ("auto", "analytic") if not robot.model.has_mimic else ("auto",):
        got = getattr(robot, f"{name}_hessian")(s.q, s.v, s.a, w, s.fext, method=method)
        for field, x, y in zip(got._fields, got, want, strict=True):
            each_agrees(x, y, tolerance, f"{name}, {method}: {field}", floor)


@settings(max_examples=25)
@given(model=models(most=7), seed=st.integers(0, 99))
def test_inverse_dynamics_of_drawn_trees(model, seed):
    check(fj.Robot(model, backend="numpy"), "inverse_dynamics", seed, INVERSE)


@settings(max_examples=15)
@given(model=models(most=5), seed=st.integers(0, 99))
def test_forward_dynamics_of_drawn_trees(model, seed):
    check(fj.Robot(model, backend="numpy"), "forward_dynamics", seed, FORWARD)


@pytest.mark.parametrize("name, tolerance", [*zip(DYNAMICS, (INVERSE, FORWARD), strict=True)])
@pytest.mark.parametrize("load", ["panda", "quadruped", "every kind"])
def test_robots(name, tolerance, load):
    check(every_kind(n=9) if load == "every kind" else fj.load(load, mimic=True), name, 3, tolerance)


@pytest.mark.parametrize("name", ["hyq", "ur3"])
@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning")
def test_files(name, root):
    robot = fj.load(name, root=root)
    check(robot, "inverse_dynamics", 1, INVERSE, 1)
    check(robot, "forward_dynamics", 1, FORWARD, 1)


@pytest.mark.skipif(float(np.finfo(np.longdouble).eps) > 1e-18, reason="long doubles are doubles here")
@pytest.mark.parametrize("name", ["icub", "tiago_no_hand"])
@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning")
def test_errors_of_forward_dynamics_are_those_of_the_mass_matrix(name, root):
    """Robots with light fingers on heavy arms: up to 1e-8 between method and oracle, since M^-1 magnifies rounding.

    In long doubles both agree a thousand times better. What remains follows the condition of M in either precision.
    """
    robot = fj.Robot(fj.load(name, root=root).model, backend="numpy")
    s, w = random_state(robot, 1, 1), np.random.default_rng(1).normal(size=(1, robot.nv))
    long = s._replace(**{k: x.astype(np.longdouble) for k, x in s._asdict().items()})
    want = expected(robot, "forward_dynamics", long, w.astype(np.longdouble))
    inputs = {"q": long.q, "v": long.v, "tau": long.a, "w": w.astype(np.longdouble), "fext": long.fext}
    found = robot.evaluator.reference("forward_dynamics_hessian", inputs, method="analytic")[:4]
    condition = float(np.linalg.cond(robot.mass_matrix(s.q[0])))
    for x, y, z in zip(found, want, robot.forward_dynamics_hessian(s.q, s.v, s.a, w, s.fext), strict=True):
        assert y.dtype == np.longdouble
        agree(x, y, 64 * condition * float(np.finfo(np.longdouble).eps))
        agree(z, y, 64 * condition * float(np.finfo(float).eps))


# Methods


@pytest.mark.parametrize("quantity", [methods.ID_HESSIAN, methods.FD_HESSIAN])
def test_methods_agree(quantity):
    for robot in (every_kind(1, 6), fj.load("panda", mimic=True)):
        s = random_state(robot, 2)
        call = getattr(robot, quantity)
        want = call(s.q, s.v, s.a, s.v, s.fext)
        for m in fj.methods(quantity):
            if m.mimic or not robot.model.has_mimic:
                got = call(s.q, s.v, s.a, s.v, s.fext, method=m.name)
                for field, x, y in zip(want._fields, got, want, strict=True):
                    agree(x, y, 1e-6 if m.name == "finite-difference" else 1e-10, f"{m.name}: {field}")
    with pytest.raises(InputError, match="mimic"):
        fj.load("panda", mimic=True).forward_dynamics_hessian(*random_state(robot)[:3], s.v[0], method="analytic")


def test_hessian_and_first_derivatives_in_one():
    robot = every_kind(3)
    s = random_state(robot, 2)
    both = robot.forward_dynamics_second_order(s.q, s.v, s.a, s.v, s.fext)
    hessian = robot.forward_dynamics_hessian(s.q, s.v, s.a, s.v, s.fext)
    first = robot.forward_dynamics_derivatives(s.q, s.v, s.a, s.fext)
    for x, y in zip(both, (*hessian, *first), strict=True):
        agree(x, y, 1e-13)


# All Hessians at once


@pytest.mark.parametrize("name", DYNAMICS)
def test_second_derivatives_are_the_hessians_of_every_entry(name):
    for robot in (every_kind(3, 5), fj.load("panda", mimic=True)):
        s = random_state(robot, 2)
        tensors = getattr(robot, f"{name}_second_derivatives")(s.q, s.v, s.a, s.fext)
        for k, w in enumerate(np.eye(robot.nv)):
            H = getattr(robot, f"{name}_hessian")(s.q, s.v, s.a, w, s.fext)
            for x, y in zip(tensors, H, strict=True):
                agree(x[:, k], y, 1e-13, floor=np.abs(x).max())


def test_compiled_second_derivatives():
    """Small robots have code of their own; large ones without loops take that of the contracted Hessians."""
    for model, unroll in ((fj.models.chain(3), None), (fj.models.chain(3), False)):
        robot, reference = fj.Robot(model, backend="compiled", unroll=unroll), fj.Robot(model, backend="numpy")
        if unroll is False:
            robot.evaluator.kernels.computing = lambda r: QUANTITIES[r.contracted]  # type: ignore[method-assign]
        s = random_state(reference, 11)
        want = reference.inverse_dynamics_second_derivatives(s.q, s.v, s.a)
        for x, y in zip(robot.inverse_dynamics_second_derivatives(s.q, s.v, s.a), want, strict=True):
            agree(x, y, 1e-13)


# Pinocchio, which has only first derivatives in Python (4.1): their central differences


@pytest.mark.parametrize("load", ["arm", "quadruped"])
def test_against_differences_of_pinocchios_derivatives(load):
    robot, h = fj.load(load), 1e-5
    model = to_pinocchio(robot.model)
    data = model.createData()
    s, eye = random_state(robot, 1, 2), np.eye(robot.nv)
    q, v, a, w = s.q[0], s.v[0], s.a[0], np.random.default_rng(5).normal(size=robot.nv)

    def gradient(q, v) -> list[np.ndarray]:
        by_q, by_v, M = pin.computeRNEADerivatives(model, data, q, v, a)
        return [w @ by_q, w @ by_v, w @ (np.triu(M) + np.triu(M, 1).T)]

    def along(move) -> list[np.ndarray]:
        ends = [[gradient(*move(sign * h * e)) for e in eye] for sign in (1, -1)]
        there, back = ([np.array(x) for x in zip(*end, strict=True)] for end in ends)
        return [(x - y) / (2 * h) for x, y in zip(there, back, strict=True)]

    by_q, by_v = along(lambda d: (pin.integrate(model, q, d), v)), along(lambda d: (q, v + d))
    got = robot.inverse_dynamics_hessian(q, v, a, w)
    for x, y in zip(got, (by_q[0].T, by_q[1], by_v[1], by_q[2]), strict=True):
        agree(x, y, 1e-7)


# Closed forms


def test_a_pendulum():
    """tau = I a + m g l sin q, so that d2(w tau)/dq2 = -w m g l sin q and all else vanishes."""
    b = fj.ModelBuilder("pendulum", gravity=(0, 0, -9.81))
    b.add_joint("swing", "revolute", axis=(0, 1, 0), armature=0.2)
    b.add_body("swing", 2.0, (0, 0, -0.5), np.diag([0.1, 0.1, 0.1]))
    robot = fj.Robot(b.build(), backend="numpy")
    q, v, a, w = np.array([[0.7], [1.3], [-0.4], [1.7]])
    H = robot.inverse_dynamics_hessian(q, v, a, w)
    agree(H.qq, [[-1.7 * 2 * 9.81 * 0.5 * np.sin(0.7)]], 1e-14)
    assert not np.any([H.qv, H.vv, H.qa])
    I = 0.1 + 2 * 0.25 + 0.2
    F = robot.forward_dynamics_hessian(q, v, a, w)
    agree(F.qq, [[1.7 / I * 2 * 9.81 * 0.5 * np.sin(0.7)]], 1e-14)
    assert np.abs([F.qv, F.vv, F.qtau]).max() < 1e-15


def test_a_double_pendulum():
    """Point masses 1 on massless rods of length 1, angles q1 and q1 + q2 from the hanging position, no gravity:
    tau1 = (3 + 2c) a1 + (1 + c) a2 - s (2 v1 v2 + v2^2), tau2 = (1 + c) a1 + a2 + s v1^2, c = cos q2, s = sin q2."""
    b = fj.ModelBuilder("double pendulum", gravity=(0, 0, 0))
    b.add_joint("upper", "revolute", axis=(0, 1, 0))
    b.add_body("upper", 1.0, (0, 0, -1), np.zeros((3, 3)))
    b.add_joint("lower", "revolute", "upper", transform(p=(0, 0, -1)), axis=(0, 1, 0))
    b.add_body("lower", 1.0, (0, 0, -1), np.zeros((3, 3)))
    robot = fj.Robot(b.build(), backend="numpy")
    (q, v, a, w), s, c = np.array([[0.3, 0.8], [1.1, -0.6], [0.5, 1.9], [0.7, -1.2]]), np.sin(0.8), np.cos(0.8)
    H = robot.inverse_dynamics_hessian(q, v, a, w)
    tau1 = -c * (2 * a[0] + a[1]) + s * (2 * v[0] * v[1] + v[1] ** 2)
    tau2 = -c * a[0] - s * v[0] ** 2
    agree(H.qq, [[0, 0], [0, w @ [tau1, tau2]]], 1e-14)
    agree(H.qv, [[0, 0], [w @ [-2 * c * v[1], 2 * c * v[0]], w @ [-2 * c * (v[0] + v[1]), 0]]], 1e-14)
    agree(H.vv, [[2 * s * w[1], -2 * s * w[0]], [-2 * s * w[0], -2 * s * w[0]]], 1e-14)
    agree(H.qa, [[0, 0], [w @ [-2 * s, -s], w @ [-s, 0]]], 1e-14)


# Structure


def test_symmetry_and_zeros():
    """vv is symmetric; qq is, except within joints that are no vector spaces; dofs on different branches are apart."""
    robot = every_kind(2)
    s = random_state(robot, 3)
    H = robot.inverse_dynamics_hessian(s.q, s.v, s.a, s.v, s.fext)
    F = robot.forward_dynamics_hessian(s.q, s.v, s.a, s.v, s.fext)
    path, kin = branches(robot)
    joint = np.repeat(np.arange(robot.njoints), [j.nv for j in robot.model.joints])
    other = joint[:, None] != joint
    for found, pattern, tolerance in ((H, path, INVERSE), (F, kin, FORWARD)):
        agree(found.vv, found.vv.swapaxes(1, 2), tolerance)
        agree(found.qq[:, other], found.qq.swapaxes(1, 2)[:, other], tolerance)
        assert np.abs(found.qq - found.qq.swapaxes(1, 2))[:, ~other].max() > 1e-3
        for x in found:
            assert not x[:, ~pattern].any()


def test_the_hessian_predicts_the_gradient():
    """On the manifold: the gradient a small step away, to third order of the step."""
    robot = every_kind(4, 7)
    s, w = random_state(robot, 1, 4), np.random.default_rng(0).normal(size=robot.nv)
    H = robot.inverse_dynamics_hessian(s.q, s.v, s.a, w)
    d = 1e-5 * np.random.default_rng(1).normal(size=robot.nv)
    there, here = (robot.vjp("inverse_dynamics", robot.integrate(s.q, x), s.v, s.a, w) for x in (d, -d))
    agree((there.by_q - here.by_q) / 2, H.qq @ d, 1e-8)
    agree((there.by_v - here.by_v) / 2, np.einsum("nij,i->nj", H.qv, d), 1e-8)
    agree((there.by_a - here.by_a) / 2, np.einsum("nij,i->nj", H.qa, d), 1e-8)
