"""Bound calls: the same numbers as the ordinary calls, in arrays that stay."""

from __future__ import annotations

import copy
import gc
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from backends import ROBOTS
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, SingularContacts, SingularMassMatrix, UnknownName
from featherjet.evaluate.bound import Bound
from helpers import agree, random_state

RESULTS = [
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "gravity", "bias", "coriolis_matrix",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_kinematics", "kinetic_energy",
]  # fmt: skip
FORCES = [name for name in RESULTS if QUANTITIES[name].forces]
BACKENDS = ("compiled", "numpy")


@pytest.fixture(scope="module", params=["rolled", "unrolled", "numpy"])
def robot(request) -> fj.Robot:
    """A floating base, whose quaternion is q[3:7]."""
    return fj.Robot(
        ROBOTS["quadruped"](),
        backend="numpy" if request.param == "numpy" else "compiled",
        threads=1,
        unroll=request.param == "unrolled",
    )


@pytest.fixture(scope="module", params=[False, True], ids=["rolled", "unrolled"])
def arm(request) -> fj.Robot:
    return fj.Robot(fj.models.arm(), backend="compiled", threads=1, unroll=request.param)


def inputs(robot: fj.Robot, step: Bound, seed: int) -> list[np.ndarray]:
    s = random_state(robot, 1, seed)
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a, "fext": s.fext}
    return [given[name][0] for name in step.inputs]


def fill(step: Bound, values: list[np.ndarray]) -> None:
    for name, x in zip(step.inputs, values, strict=True):
        getattr(step, name)[:] = x


def ordinary(robot: fj.Robot, step: Bound, values: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    found = getattr(robot, step.quantity)(*values)
    return tuple(found) if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("quantity", RESULTS)
def test_bound_calls_equal_ordinary_calls(robot, quantity):
    step = robot.bind(quantity)
    for seed in range(3):
        values = inputs(robot, step, seed)
        fill(step, values)
        assert step() is None
        for name, x in zip(step.results, ordinary(robot, step, values), strict=True):
            np.testing.assert_array_equal(getattr(step, name), x)


@pytest.mark.parametrize("quantity", FORCES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_external_forces(quantity, backend):
    """With forces they count, and without they are not asked for."""
    robot = fj.Robot(fj.models.arm(), backend=backend, unroll=quantity != "inverse_dynamics")
    step, plain = robot.bind(quantity, fext=True), robot.bind(quantity)
    assert step.inputs[-1] == "fext"
    assert step.fext.shape == (7, 6)
    assert "fext" not in plain.inputs
    values = inputs(robot, step, 1)
    fill(step, values)
    fill(plain, values[:-1])
    step()
    plain()
    for name, x in zip(step.results, ordinary(robot, step, values), strict=True):
        np.testing.assert_array_equal(getattr(step, name), x)
    assert not np.array_equal(getattr(step, step.results[0]), getattr(plain, plain.results[0]))


def test_it_begins_at_rest_in_the_neutral_configuration(robot):
    step = robot.bind("inverse_dynamics")
    np.testing.assert_array_equal(step.q, robot.neutral())
    assert not step.v.any()
    assert not step.a.any()
    step()
    agree(step.tau, robot.gravity(robot.neutral()), 1e-14)


def test_arrays_stay_the_same_objects(robot):
    step = robot.bind("forward_dynamics_derivatives")
    names = (*step.inputs, *step.results)
    before = {name: (getattr(step, name), getattr(step, name).ctypes.data) for name in names}
    for seed in range(3):
        fill(step, inputs(robot, step, seed))
        step()
    for name, (array, address) in before.items():
        assert getattr(step, name) is array
        assert array.ctypes.data == address
    assert step.inputs == ("q", "v", "tau")
    assert step.results == ("da_dq", "da_dv", "da_dtau")


def test_inputs_are_not_written(robot):
    step = robot.bind("inverse_dynamics_derivatives")
    values = inputs(robot, step, 0)
    values[0][3:7] *= 1 + 3e-7  # scaled inside, not in the user's array
    fill(step, values)
    step()
    for name, x in zip(step.inputs, values, strict=True):
        np.testing.assert_array_equal(getattr(step, name), x)


def test_two_bound_calls_do_not_share_arrays(arm):
    one, two = arm.bind("bias"), arm.bind("bias")
    fill(one, inputs(arm, one, 1))
    fill(two, inputs(arm, two, 2))
    one()
    kept = one.b.copy()
    two()
    np.testing.assert_array_equal(one.b, kept)
    assert not np.array_equal(one.b, two.b)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_it_outlives_its_robot(unroll):
    reference = fj.Robot(fj.models.arm(), backend="numpy")
    step = fj.Robot(fj.models.arm(), backend="compiled", unroll=unroll).bind("inverse_dynamics")
    values = inputs(reference, step, 0)
    gc.collect()
    fill(step, values)
    step()
    agree(step.tau, reference.inverse_dynamics(*values), 1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_dof(backend):
    robot = fj.Robot(fj.models.chain(1), backend=backend, unroll=True)
    for quantity in ("inverse_dynamics_derivatives", "forward_dynamics"):
        step = robot.bind(quantity)
        values = inputs(robot, step, 0)
        fill(step, values)
        step()
        for name, x in zip(step.results, ordinary(robot, step, values), strict=True):
            np.testing.assert_array_equal(getattr(step, name), x)


def test_mimicking_joints():
    """In the coordinates of the independent ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot, reference = (fj.load("panda", mimic=True, backend=b) for b in BACKENDS)
    step = robot.bind("forward_dynamics")
    assert step.q.shape == step.a.shape == (8,)
    values = inputs(robot, step, 0)
    fill(step, values)
    step()
    np.testing.assert_array_equal(step.a, robot.forward_dynamics(*values))
    agree(step.a, reference.forward_dynamics(*values), 1e-11)


# Mistakes


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "v", "tau"])
def test_bad_values_are_named_and_do_not_linger(robot, name, bad):
    step = robot.bind("forward_dynamics")
    values = inputs(robot, step, 0)
    fill(step, values)
    getattr(step, name)[2] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=rf"{name}\[2\] is {bad}: every entry must be finite"):
            step()
    fill(step, values)
    step()
    np.testing.assert_array_equal(step.a, robot.forward_dynamics(*values))


def test_a_bad_quaternion_is_named(robot):
    step = robot.bind("gravity")
    step.q[6] = 0.5
    with pytest.raises(InputError, match=r"quaternion x y z w, entries 3 to 6, has norm 0\.5, not 1"):
        step()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_singular_mass_matrix_is_refused(backend):
    b = fj.ModelBuilder("leaf")
    b.add_joint("shoulder", "revolute")
    b.add_body("shoulder", 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.3]))
    b.add_joint("wrist", "revolute", "shoulder", axis=(0, 1, 0))
    step = fj.Robot(b.build(), backend=backend, unroll=True).bind("forward_dynamics")
    for _ in range(2):
        with pytest.raises(SingularMassMatrix, match="'wrist'"):
            step()


def test_unknown_quantities_are_refused(arm):
    with pytest.raises(UnknownName, match="did you mean: forward_dynamics") as error:
        arm.bind("forward_dynamic")
    assert set(error.value.choices) == set(QUANTITIES)
    with pytest.raises(InputError, match="constrained_dynamics needs contacts"):
        arm.bind("constrained_dynamics")
    with pytest.raises(InputError, match="jacobian needs a frame"):
        arm.bind("jacobian")
    with pytest.raises(InputError, match="gravity takes no frame"):
        arm.bind("gravity", frame=arm.frame_names[0])
    with pytest.raises(UnknownName, match="viewpoint"):
        arm.bind("jacobian", frame=arm.frame_names[0], viewpoint="moon")
    with pytest.raises(UnknownName, match="unknown method"):
        arm.bind("forward_dynamics_derivatives", method="guess")
    with pytest.raises(InputError, match="gravity has no methods"):
        arm.bind("gravity", method="rnea")


@pytest.mark.parametrize("quantity", [name for name in RESULTS if name not in FORCES])
def test_forces_are_refused_where_they_make_no_sense(arm, quantity):
    with pytest.raises(InputError, match=f"{quantity} takes no external forces"):
        arm.bind(quantity, fext=True)


def test_unknown_arrays_are_refused(arm):
    step = arm.bind("forward_dynamics")
    with pytest.raises(
        UnknownName, match="unknown array of a bound forward_dynamics 'force'; choose from: q, v, tau, a"
    ):
        step.force = 1.0
    with pytest.raises(AttributeError, match="force"):
        _ = step.force
    with pytest.raises(InputError, match="q: expected shape"):
        step.q = [1.0, 2.0]


def test_it_can_be_asked_for_what_it_has(arm):
    step = arm.bind("gravity")
    assert hasattr(step, "q")
    assert not hasattr(step, "v")
    assert getattr(step, "v", None) is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_arrays_of_its_own(arm, copied):
    """It starts from rest; neither call sees what is written into the other's arrays."""
    step = arm.bind("gravity")
    step.q[:] = 0.3
    step()
    before = step.g.copy()
    other = copied(step)
    assert (other.quantity, other.inputs, other.results) == (step.quantity, step.inputs, step.results)
    assert not any(np.shares_memory(getattr(other, name), getattr(step, name)) for name in ("q", "g"))
    other.q[:] = -0.2
    other()
    np.testing.assert_array_equal(other.g, arm.gravity(other.q))
    np.testing.assert_array_equal(step.q, 0.3)
    np.testing.assert_array_equal(step.g, before)
    assert not np.array_equal(other.g, before)


def test_assigning_to_an_array_fills_it(arm):
    step = arm.bind("gravity")
    q, array = inputs(arm, step, 0)[0], step.q
    step.q = q
    assert step.q is array
    assert array is not q
    np.testing.assert_array_equal(array, q)
    step()
    np.testing.assert_array_equal(step.g, arm.gravity(q))


# With contacts, frames and methods


@pytest.mark.parametrize("fext", [False, True])
@pytest.mark.parametrize("quantity", ["constrained_dynamics", "impulse_dynamics", "contact_jacobian"])
def test_contacts(robot, quantity, fext):
    if fext and not QUANTITIES[quantity].forces:
        return
    contacts = fj.Contacts(robot, [fj.PointContact(robot.joint_names[-1])])
    step = robot.bind(quantity, fext=fext, contacts=contacts)
    s = random_state(robot, 1)
    given = {"q": s.q[0], "v": s.v[0], "tau": s.a[0], "fext": s.fext[0], "restitution": np.array([0.5])}
    fill(step, [given[name] for name in step.inputs])
    step()
    call = getattr(robot, quantity)
    if quantity == "impulse_dynamics":
        after, impulses = call(given["q"], given["v"], contacts, 0.5)
        expected: tuple[np.ndarray, ...] = (after - given["v"], impulses)
    elif quantity == "contact_jacobian":
        expected = (call(given["q"], contacts),)
    else:
        expected = tuple(call(*s_(given), contacts, given["fext"] if fext else None))
    for name, x in zip(step.results, expected, strict=True):
        agree(getattr(step, name), x, 1e-13, name, floor=1.0)


def s_(given: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [given[name] for name in ("q", "v", "tau")]


def test_singular_contacts_are_named(arm):
    """An arm stretched out cannot move its tool along itself, nor stop it from falling inward as it turns."""
    step = arm.bind("constrained_dynamics", contacts=fj.Contacts(arm, [fj.PointContact("tool")]))
    step.v[:] = 1.0
    with pytest.raises(SingularContacts, match="no force at 'tool' makes it move as required"):
        step()
    step.q[0] = np.nan
    with pytest.raises(InputError, match=r"q\[0\] is nan"):
        step()


@pytest.mark.parametrize("viewpoint", ["local", "world", "world_aligned"])
def test_frames(robot, viewpoint):
    s = random_state(robot, 1)
    for name in (robot.frame_names[-1], (robot.joint_names[-1], [0.1, 0.2, 0.3])):
        step = robot.bind("jacobian", frame=name, viewpoint=viewpoint)
        assert step.inputs == ("q",)
        step.q[:] = s.q[0]
        step()
        np.testing.assert_array_equal(step.J, robot.frame_jacobian(s.q[0], name, viewpoint=viewpoint))
    place = robot.bind("frame_placement", frame=robot.frame_names[-1])
    place.q[:] = s.q[0]
    place()
    np.testing.assert_array_equal(place.placement, robot.frame_placement(s.q[0], robot.frame_names[-1]))


@pytest.mark.parametrize("method", ["auto", "idsva", "chain-rule"])
def test_methods(robot, method):
    step = robot.bind("inverse_dynamics_derivatives", method=method)
    values = inputs(robot, step, 0)
    fill(step, values)
    step()
    expected = robot.inverse_dynamics_derivatives(*values, method=method)
    agree(step.dtau_dq, expected.dtau_dq, 1e-13)


def test_configurations(robot):
    step = robot.bind("integrate")
    np.testing.assert_array_equal(step.q, robot.neutral())
    step.dv[:] = np.linspace(-1, 1, robot.nv)
    step()
    np.testing.assert_array_equal(step.end, robot.integrate(step.q, step.dv))


TYPED = """
import numpy as np
import featherjet as fj

robot = fj.load("arm")
step = robot.bind("forward_dynamics_derivatives")
step.q[:] = robot.neutral()
step.q[:], step.v[:] = robot.neutral(), np.zeros(robot.nv)
step.tau = np.zeros(robot.nv)
step()
total: np.ndarray = step.da_dq @ step.v
place: np.ndarray = robot.integrate(step.q, step.v, out=step.q)
"""


def test_type_checkers_know_the_arrays(tmp_path):
    pyright = Path(sys.executable).with_name("pyright")
    if not pyright.exists():
        pytest.skip("pyright is not installed")
    (tmp_path / "typed.py").write_text(TYPED)
    settings = {"extraPaths": [str(Path(fj.__file__).parent.parent)], "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    args = [str(pyright), "--pythonpath", sys.executable, "-p", str(tmp_path)]
    found = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert "0 errors" in found.stdout, found.stdout
