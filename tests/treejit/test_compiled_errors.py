"""Compiled code and mistakes: bad input and singular mass matrices get the errors of the reference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import featherjet as fj
from backends import SINGULAR, Pair, arguments, both, compare, pair_of, results, spoiled
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, SingularMassMatrix
from helpers import random_state


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def unroll(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def every(unroll: bool) -> Pair:
    return pair_of("every kind", unroll)


@pytest.fixture
def quadruped(unroll: bool) -> Pair:
    return pair_of("quadruped", unroll)


@pytest.fixture
def arm(unroll: bool) -> Pair:
    return pair_of("arm", unroll)


BAD = {
    "nan": lambda x: spoiled(x, (7, *(2,) * (x.ndim - 1)), np.nan),
    "inf": lambda x: spoiled(x, (0, *(0,) * (x.ndim - 1)), np.inf),
    "-inf": lambda x: spoiled(x, (-1,) * x.ndim, -np.inf),
    "too short": lambda x: x[..., :-1],
    "too long": lambda x: np.concatenate([x, x[..., :1]], -1),
    "a number": lambda x: 1.0,
    "complex": lambda x: x.astype(complex),
    "bool": lambda x: np.ones(x.shape, bool),
    "object": lambda x: x.astype(object),
    "ragged": lambda x: [[1.0, 2.0], [3.0]],
    "text": lambda x: "abc",
    "none": lambda x: None,
    "other batch": lambda x: x[:4],
}
INPUT_OF = [
    (name, k)
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    for k in range(4)
] + [("mass_matrix", 0), ("gravity", 0), ("coriolis_matrix", 1), ("kinetic_energy", 1), ("centroidal_map", 0)]
MISTAKES = [
    (name, which, bad)
    for name, which in INPUT_OF
    for bad in BAD
    if not (bad == "other batch" and len(QUANTITIES[name].inputs) == 1)  # one input has no other to disagree with
    and not (bad == "none" and which == 3)  # no external forces are no mistake
]


@pytest.mark.parametrize("name, which, bad", MISTAKES)
def test_bad_input_gets_the_error_of_the_reference(every, name, which, bad):
    args = arguments(name, random_state(every.reference, 9), True)
    args[which] = BAD[bad](args[which])
    said = []
    for robot in every[:2]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InputError) as error:
                results(robot, name, *args)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("lane", range(0, 19, 3))
def test_the_offending_entry_is_named(arm, lane):
    s, robot = random_state(arm.reference, 19), arm.compiled
    with pytest.raises(InputError, match=rf"v\[{lane}, 4\] is nan"):
        robot.forward_dynamics(s.q, spoiled(s.v, (lane, 4), np.nan), s.a)
    with pytest.raises(InputError, match=rf"tau\[{lane}, 0\] is inf"):
        robot.forward_dynamics(s.q, s.v, spoiled(s.a, (lane, 0), np.inf))
    robot.forward_dynamics(s.q, s.v, s.a)  # and nothing lingers


@pytest.mark.parametrize("lane", range(0, 19, 3))
def test_a_quaternion_that_is_none_is_named(quadruped, lane):
    q = random_state(quadruped.reference, 19).q
    q[lane, 3:7] *= 1.01
    for robot in quadruped[:2]:
        with pytest.raises(InputError, match=rf"entries 3 to 6, has norm 1.01 at sample \({lane},\)"):
            robot.gravity(q)
    q[lane, 3:7] = 0
    with pytest.raises(InputError, match="has norm 0"):
        quadruped.compiled.gravity(q)


@pytest.mark.parametrize("batch", [False, True], ids=["one state", "batch"])
@pytest.mark.parametrize("off", [1 + 9e-7, 1 - 9e-7, 1 + 1.001e-6, 1 - 1.001e-6, 1 + 0.999e-6, 1 - 0.999e-6])
def test_both_backends_draw_the_line_at_the_same_norm(quadruped, off, batch):
    q = np.repeat(quadruped.reference.neutral()[None], 9, 0) if batch else quadruped.reference.neutral()
    q[..., 6] = off
    found = []
    for robot in quadruped[:2]:
        try:
            found.append(robot.gravity(q))
        except InputError:
            found.append(None)
    assert (found[0] is None) == (found[1] is None) == (abs(off - 1) > 1e-6)
    if found[1] is not None:
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13 * np.abs(found[1]).max())


def test_slightly_wrong_quaternions_are_scaled_and_inputs_left_alone(quadruped):
    s = random_state(quadruped.reference, 9)
    q = s.q.copy()
    q[:, 3:7] *= 1 + 5e-7
    before = q.copy()
    compare(quadruped, s._replace(q=q), ["mass_matrix", "inverse_dynamics_derivatives", "kinetic_energy"])
    np.testing.assert_array_equal(q, before)
    for k in (slice(None), 0, 1):
        g, expected = (quadruped.compiled.gravity(x[k]) for x in (q, s.q))
        np.testing.assert_allclose(g, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    np.testing.assert_array_equal(q, before)


def test_without_mass_there_is_no_centre_of_mass(unroll):
    b = fj.ModelBuilder("ghost")
    b.add_joint("only", "revolute", armature=0.1)
    for robot in both(b.build(), unroll)[:2]:
        for call in (robot.center_of_mass, robot.centroidal_map):
            with pytest.raises(InputError, match="has no mass"):
                call(np.zeros((3, 1)))
        np.testing.assert_allclose(robot.kinetic_energy(np.zeros((3, 1)), np.ones((3, 1))), 0.05)  # of the armature


# Singular mass matrices


def arm_with(mass: float, armature: float = 0.0) -> fj.Model:
    """A real link, and beyond it a joint that carries nothing but `mass`."""
    b = fj.ModelBuilder("leaf")
    b.add_joint("shoulder", "revolute", axis=(0, 0, 1))
    b.add_body("shoulder", 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.3]))
    b.add_joint("wrist", "revolute", "shoulder", axis=(0, 1, 0), armature=armature)
    if mass:
        b.add_body("wrist", mass, (0.1, 0.0, 0.0), np.zeros((3, 3)))
    return b.build()


@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_mass_matrix_is_refused(name, unroll):
    """One state by the general way and, if it were there, the direct one; and batches."""
    pair = both(arm_with(0.0), unroll, fext=not unroll)  # what is compiled anyway
    s = random_state(pair.reference, 9)
    for part in (0, 1, slice(0, 1), slice(0, 3), slice(0, 9)):
        args = [x[part] for x in arguments(name, s, pair.fext)]
        said = []
        for robot in pair[:2]:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                with pytest.raises(SingularMassMatrix, match="'wrist' can move without moving any inertia") as error:
                    results(robot, name, *args)
            said.append(str(error.value))
        assert said[0] == said[1]
    with np.errstate(all="raise"), pytest.raises(SingularMassMatrix):
        results(pair.compiled, name, *arguments(name, s, pair.fext))


@pytest.mark.parametrize("kind", ["prismatic", "spherical"])
def test_a_pivot_that_is_known_to_be_zero(kind, unroll):
    """A root without mass: unrolled, its pivot is the constant zero, and 0/0 folds as the code is made."""
    b = fj.ModelBuilder("nothing")
    b.add_joint("ghost", kind)
    b.add_joint("real", "revolute")
    b.add_body("real", 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.3]))
    pair = both(b.build(), unroll)
    s = random_state(pair.reference, 3)
    for robot in pair[:2]:
        for part in (slice(None), 0):
            with pytest.raises(SingularMassMatrix, match="'ghost'"):
                robot.forward_dynamics(s.q[part], s.v[part], s.a[part], s.fext[part])


@pytest.mark.parametrize("model", [arm_with(1e-9), arm_with(0.0, 1e-9)], ids=["mass", "armature"])
def test_nearly_singular_is_fine(model, unroll):
    pair = both(model, unroll, fext=not unroll)
    compare(pair, random_state(pair.reference, 9), SINGULAR)


def pin() -> fj.Model:
    """The joint's axis goes through the mass only when the slider is at zero."""
    b = fj.ModelBuilder("pin")
    b.add_joint("turn", "revolute", axis=(0, 0, 1))
    b.add_joint("slide", "prismatic", "turn", axis=(1, 0, 0))
    b.add_body("slide", 1.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))
    return b.build()


def test_singular_at_one_configuration_only(unroll):
    q = np.array([[0.3, 0.5], [0.2, 1e-3], [1.0, 0.0], [0.1, 2.0]])
    for robot in both(pin(), unroll)[:2]:
        with pytest.raises(SingularMassMatrix, match=r"at sample \(2,\): joint 'turn'"):
            robot.inverse_mass_matrix(q)
        fine = robot.inverse_mass_matrix(q[[0, 1, 3]])
        np.testing.assert_allclose(fine[:, 0, 0], q[[0, 1, 3], 1] ** -2.0, rtol=1e-9)
        for _ in range(2):
            np.testing.assert_allclose(robot.inverse_mass_matrix(q[0])[0, 0], 4.0)
            with pytest.raises(SingularMassMatrix, match="singular: joint 'turn'"):
                robot.inverse_mass_matrix(q[2])


def test_suspected_but_not_singular(unroll):
    """A margin of 1e-12 raises the flag, and the reference finds nothing wrong: the result stands."""
    q = np.array([1.0, 1e-6])  # the inertia about the axis is 1e-12, and nothing else is there to compare with
    pair = both(pin(), unroll)
    for x in (q, q, np.stack([q] * 5)):
        got, expected = (r.inverse_mass_matrix(x) for r in pair[:2])
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_singular_far_from_the_neutral_configuration():
    """Two joints on one axis, and a slider far out: rounding errors of a large inertia look like a small one."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        axis, other = rng.normal(size=(2, 3))
        b = fj.ModelBuilder("twice")
        b.add_joint("first", "revolute", axis=axis)
        b.add_joint("second", "revolute", "first", axis=axis)
        b.add_joint("slide", "prismatic", "second", axis=np.cross(axis, other))
        b.add_body("slide", 1.0, np.zeros(3), 1e-4 * np.eye(3))
        q = np.concatenate([rng.normal(size=(9, 2)), np.full((9, 1), 30.0)], -1)
        model = b.build()
        for unroll in (False, True) if seed < 3 else (False,):
            for robot in both(model, unroll)[:2]:
                with pytest.raises(SingularMassMatrix):
                    robot.inverse_mass_matrix(q[:1])


def test_every_kernel_that_divides_is_watched():
    assert {x.name for x in QUANTITIES.values() if x.margins and not x.options} == {
        "forward_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives",
        "forward_dynamics_force_derivatives", "forward_dynamics_parameter_derivatives",
        "forward_dynamics_placement_derivatives", "forward_dynamics_vjp", "forward_dynamics_force_vjp",
        "forward_dynamics_jvp", "forward_dynamics_force_jvp", "forward_dynamics_hessian",
        "forward_dynamics_second_order",
    }  # fmt: skip
