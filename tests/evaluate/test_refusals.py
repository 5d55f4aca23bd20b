"""Results that are refused: those that are not finite, and those of impossible bodies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import IndefiniteMassMatrix, ModelError, NonFiniteResult
from featherjet.model.builder import transform
from featherjet.model.checks import LARGEST
from featherjet.model.io.urdf import parse_urdf
from featherjet.model.parts import Body, Mimic

BOTH = pytest.mark.parametrize("backend", ["compiled", "numpy"])
HUGE = 1e200


def arm(mass: float) -> fj.Model:
    m = fj.ModelBuilder("arm")
    m.add_joint("a", "revolute", axis=(0, 1, 0))
    m.add_body("a", 1.0, (0.1, 0.0, 0.3), np.eye(3) * 0.1)
    m.add_joint("b", "revolute", "a", transform(p=(1.0, 0.0, 0.0)), axis=(0, 1, 0))
    m.add_body("b", mass, (0.5, 0.0, 0.0), np.eye(3) * 0.1 * np.sign(mass))
    return m.build()


def overflowing(size: int) -> np.ndarray:
    v = np.ones((size, 2))
    v[size // 2] = HUGE
    return v


@BOTH
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("size", [3, 20, 3000])
def test_a_result_that_is_not_finite_names_quantity_and_sample(backend, size):
    robot, q, v = fj.Robot(arm(1.0), backend=backend), np.zeros((size, 2)), overflowing(size)
    with pytest.raises(NonFiniteResult, match=rf"bias: b\[\d\] is (nan|-?inf) at sample \({size // 2},\)") as caught:
        robot.bias(q, v)
    assert isinstance(caught.value, FloatingPointError)
    with np.errstate(over="ignore", invalid="ignore"):
        found = robot.bias(q, v)
    assert not np.isfinite(found[size // 2]).all()
    assert np.isfinite(np.delete(found, size // 2, 0)).all()


@BOTH
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_single_states_too(backend):
    robot, q = fj.Robot(arm(1.0), backend=backend), np.zeros(2)
    for _ in range(3):  # the later ones by the direct call
        robot.bias(q, np.ones(2))
    with pytest.raises(NonFiniteResult, match=r"bias: b\[0\] is"):
        robot.bias(q, np.full(2, HUGE))
    step = robot.bind("bias")
    step.v = HUGE
    with pytest.raises(NonFiniteResult):
        step()


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_numbers_are_fine_where_results_are_finite(backend, dtype):
    robot = fj.Robot(arm(1.0), backend=backend)
    v = np.array([[1.0, 2.0], [1e9, 1.0]], dtype)
    assert np.isfinite(robot.bias(np.zeros((2, 2), dtype), v)).all()
    assert np.isfinite(robot.mass_matrix(np.array([1e100, 3.0]))).all()


def test_single_precision_overflows_earlier():
    robot, q = fj.Robot(arm(1.0), backend="compiled"), np.zeros((4, 2), np.float32)
    with pytest.raises(NonFiniteResult, match="too large for float32"):
        robot.bias(q, np.full((4, 2), 1e25, np.float32))


@BOTH
@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_models_too_large_for_single_precision_are_computed_in_double(backend, unroll):
    """Rounded to the nearest float32; where that is infinite, an error names quantity and sample."""
    robot = fj.Robot(arm(1e28), backend=backend, unroll=unroll)
    assert not robot.model.modest
    for size in ((), (3,), (300,)):
        q, v = np.full((*size, 2), 0.5), np.ones((*size, 2))
        fast = v.copy()
        fast[(-1,) * len(size)] = 1e6  # m v^2 = 1e40
        assert np.isfinite(robot.bias(q, fast)).all()
        want, (q, v, fast) = robot.bias(q, v).astype(np.float32), (x.astype(np.float32) for x in (q, v, fast))
        out = np.zeros_like(v)
        where = rf" at sample \({size[0] - 1},\)" if size else ": "
        for _ in range(2):  # single states: the direct call too
            found = robot.bias(q, v)
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(robot.bias(q, v, out=out), want)
            for more in ({}, {"out": out}):
                with pytest.raises(NonFiniteResult, match=rf"bias: b\[0\] is -?inf{where}.*too large for float32"):
                    robot.bias(q, fast, **more)
        with np.errstate(over="ignore"):
            assert np.isinf(robot.bias(q, fast)).any()


@pytest.mark.parametrize("mass, modest", [(1.0, True), (1e7, True), (1e-10, True), (1e-14, False), (1e12, False)])
def test_most_models_have_room_in_single_precision(mass, modest):
    assert arm(mass).modest == modest


@BOTH
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_doubles_that_do_not_fit_into_out_are_refused(backend):
    robot, q, out = fj.Robot(arm(1.0), backend=backend), np.full((4, 2), 0.5), np.zeros((4, 2), np.float32)
    robot.bias(q, 1e10 * q, out=out)
    assert np.isfinite(out).all()
    with pytest.raises(NonFiniteResult, match="too large for float32"):
        robot.bias(q, 1e25 * q, out=out)


@BOTH
@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("mass", [-1.0, -0.01])
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning")
def test_a_mass_matrix_that_is_not_positive_definite_is_refused(backend, unroll, mass):
    """Both its margin d and its diagonal are negative, so their ratio is positive and says nothing."""
    robot = fj.Robot(arm(mass), backend=backend, unroll=unroll)
    q = np.array([[0.1, 0.4], [0.2, 0.3]])
    assert np.linalg.eigvalsh(robot.mass_matrix(q)).min() < 0
    for x in (q, q[0]):
        for _ in range(2):
            with pytest.raises(IndefiniteMassMatrix, match="joint 'b' is physically impossible"):
                robot.forward_dynamics(x, x, x)
            with pytest.raises(IndefiniteMassMatrix):
                robot.forward_dynamics_derivatives(x, x, x)
    with pytest.raises(IndefiniteMassMatrix):
        robot.bind("forward_dynamics")()
    robot.inverse_dynamics(q, q, q)


def test_an_impossible_body_in_a_possible_robot():
    """Its neighbours carry enough: the mass matrix is positive definite."""
    m = fj.ModelBuilder("arm")
    m.add_joint("a", "prismatic")
    m.add_body("a", -1.0)
    m.add_joint("b", "revolute", "a")
    m.add_body("b", 5.0, (0.1, 0.0, 0.0), np.eye(3))
    with pytest.warns(fj.errors.PhysicsWarning):
        robot = fj.Robot(m.build(), backend="numpy")
    a = robot.forward_dynamics(np.zeros(2), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(robot.inverse_dynamics(np.zeros(2), np.zeros(2), a), 1.0)


# Numbers of models


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{mass}"/><origin xyz="{com} 0 0"/>
<inertia ixx="1" iyy="1" izz="1" ixy="{ixy}" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit effort="1" velocity="1"/></joint></robot>"""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "change", [{"ixy": "1e308"}, {"mass": "1e308", "com": "1e10"}, {"com": "1e200"}, {"mass": "1e31"}]
)
def test_numbers_that_overflow_in_derived_inertias_are_refused(change, strict):
    given = {"mass": "1", "com": "0", "ixy": "0"} | change
    with pytest.raises(ModelError, match="too large to compute with"):
        parse_urdf(URDF.format(**given), strict=strict)


def test_a_body_too_far_from_its_joint_is_refused():
    with pytest.raises(ModelError, match="mass times squared distance"):
        Body(1e20, (1e10, 0.0, 0.0), np.eye(3))


def chain_of_mimics(n: int, multiplier: str = "1") -> str:
    links = "".join(f'<link name="l{k}"/>' for k in range(n + 1))
    joints = "".join(
        f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 0 1"/>'
        f'<limit effort="1" velocity="1"/>'
        + (f'<mimic joint="j{k - 1}" multiplier="{multiplier}" offset="1"/>' if k else "") + "</joint>"
        for k in range(n)
    )  # fmt: skip
    return f'<robot name="r">{links}{joints}</robot>'


def test_long_integers_in_models_are_floats():
    assert type(Mimic("a", 10**25).multiplier) is type(Mimic("a", 1, 10**25).offset) is float


def test_chains_of_mimics_that_overflow_are_refused():
    with pytest.raises(ModelError, match=r"<joint name='j31'>: mimics joint 'j0': its multiplier: 1e\+31 is too large"):
        parse_urdf(chain_of_mimics(40, "10"), mimic=True)


def test_chains_of_mimics_cost_linear_time():
    """Each joint's <mimic> is read once, not once for every joint that follows it."""
    from featherjet.model.io.xmltree import Element

    asked, child = [], Element.child

    def counted(self, tag):
        asked.append(tag)
        return child(self, tag)

    with pytest.MonkeyPatch.context() as m:
        m.setattr(Element, "child", counted)
        model = parse_urdf(chain_of_mimics(300), mimic=True)
    assert asked.count("mimic") < 5 * 300
    assert model.nv == 1
    assert model.joints[-1].mimic == Mimic("j0", 1.0, 299.0)


# Models that crossed a border


@pytest.mark.parametrize("through", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_models_stay_read_only(through):
    model = through(fj.models.quadruped())
    joint = model.joints[1]
    for x in (model.gravity, joint.placement, joint.axis, joint.lower, joint.armature, joint.body.com,
              joint.body.inertia, model.frames[3].placement):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 3.0


def test_a_models_parts_are_checked_however_they_are_made():
    from dataclasses import replace

    joint = fj.models.arm().joints[0]
    for change, says in (
        (dict(placement=2 * np.eye(4)), "not a rigid"),
        (dict(placement=np.eye(4)[::-1]), "not a rigid"),
        (dict(placement=np.diag([1.001, 1, 1, 1])), "not orthonormal"),
        (dict(placement=np.diag([-1.0, 1, 1, 1])), "not orthonormal"),
        (dict(placement=np.eye(4) + np.eye(4, k=1) * [0, 0.01, 0, 0]), "not orthonormal"),
        (dict(axis=(0, 0, 2)), "norm 1"),
        (dict(armature=[-1.0]), "negative"),
        (dict(armature=[np.inf]), "finite"),
        (dict(lower=[1.0, 2.0]), "shape"),
        (dict(pitch=10 * LARGEST), "too large"),
        (dict(parent=0.5), "whole number"),
        (dict(parent=True), "whole number"),
    ):
        with pytest.raises(ModelError, match=says):
            replace(joint, **change)
