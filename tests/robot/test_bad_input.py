"""Bad input gets an error that names the thing, and never a number."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from backends import both
from featherjet.errors import InputError, SingularMassMatrix, UnknownName
from featherjet.evaluate.evaluator import BACKENDS
from helpers import CALLS, every_kind, random_state

ARGUMENTS = [(call, name) for call, names in CALLS.items() for name in names]
FORWARD = ["forward_dynamics", "forward_dynamics_derivatives", "inverse_mass_matrix"]


@pytest.fixture(scope="module", params=BACKENDS)
def robot(request: pytest.FixtureRequest) -> fj.Robot:
    pair = both(every_kind(0, 8).model)
    return pair.compiled if request.param == "compiled" else pair.reference


def arguments(robot: fj.Robot, call: str, size: int = 3) -> dict[str, np.ndarray]:
    s = random_state(robot, size)
    given = {"q": s.q, "q0": s.q, "q1": s.q, "v": s.v, "dv": s.v, "a": s.a, "tau": s.a, "fext": s.fext}
    return {name: given[name] for name in CALLS[call]}


BAD = {
    "one number too few": (lambda x: x[..., :-1], "expected shape"),
    "one number too many": (lambda x: np.concatenate([x, x[..., :1]], -1), "expected shape"),
    "transposed": (lambda x: np.swapaxes(x, 0, -1), "expected shape"),
    "a number": (lambda x: 1.0, "expected shape"),
    "empty": (lambda x: [], "expected"),
    "ragged": (lambda x: [[1.0, 2.0], [3.0]], "ragged"),
    "nan": (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 2, np.nan, x), "nan.*finite"),
    "inf": (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 2, np.inf, x), "inf.*finite"),
    "-inf": (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 2, -np.inf, x), "-inf.*finite"),
    "complex": (lambda x: x.astype(complex), "real numbers, got dtype complex128"),
    "bool": (lambda x: np.ones(x.shape, bool), "real numbers, got dtype bool"),
    "object": (lambda x: x.astype(object), "real numbers, got dtype object"),
    "string": (lambda x: x.astype(str), "real numbers, got dtype"),
    "text": (lambda x: "zero", "real numbers"),
    "dict": (lambda x: {"q": 1}, "real numbers, got dtype object"),
    "date": (lambda x: np.zeros(x.shape, "datetime64[s]"), "real numbers"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("call, name", ARGUMENTS)
def test_bad_arrays_are_refused_by_name(robot: fj.Robot, call: str, name: str, bad: str) -> None:
    given = arguments(robot, call)
    spoil, message = BAD[bad]
    given[name] = spoil(given[name])
    with pytest.raises(InputError, match=f"^{name}\\b.*{message}"):
        getattr(robot, call)(**given)


@pytest.mark.parametrize("call, name", [(c, n) for c, n in ARGUMENTS if n != "fext"])
def test_nothing_is_not_a_state(robot: fj.Robot, call: str, name: str) -> None:
    """None is no array: it must not be taken for zero."""
    given = arguments(robot, call)
    given[name] = None  # type: ignore[assignment]
    with pytest.raises(InputError, match=f"^{name}\\b"):
        getattr(robot, call)(**given)


@pytest.mark.parametrize("call", [c for c, names in CALLS.items() if len(names) > 1])
def test_batches_that_do_not_broadcast_are_refused(robot: fj.Robot, call: str) -> None:
    given = arguments(robot, call)
    last = CALLS[call][-1]
    given[last] = given[last][:2]
    with pytest.raises(InputError, match=f"batch shapes do not broadcast:.*{last} \\(2,\\)"):
        getattr(robot, call)(**given)


def test_the_place_of_a_nan_is_told(robot: fj.Robot) -> None:
    s = random_state(robot, 4)
    s.v[2, 5] = np.nan
    with pytest.raises(InputError, match=r"v\[2, 5\] is nan"):
        robot.bias(s.q, s.v)


@pytest.mark.parametrize("value", [1e200, 1e308, -1e308])
def test_overflow_is_no_number(robot: fj.Robot, value: float) -> None:
    """Finite, yet too large for the answer to be: an error, or at least nothing that looks like a torque."""
    s = random_state(robot, 1)
    v = np.full_like(s.v, value)
    try:
        with np.errstate(all="ignore"):
            tau = robot.inverse_dynamics(s.q, v, s.a)
    except fj.FeatherjetError:
        return
    assert not np.isfinite(tau).all()


# Unit quaternions and cosine-sine pairs


def unit_parts(robot: fj.Robot) -> list[tuple[str, slice]]:
    found = []
    for joint, start in zip(robot.model.joints, robot.model.q_starts, strict=True):
        for part in joint.kind.manifold.units:
            found.append((joint.name, slice(start + part.start, start + part.stop)))
    return found


def test_there_are_four_kinds_of_unit_parts(robot: fj.Robot) -> None:
    kinds = {robot.model.joints[robot.model.joint_index(name)].kind.name for name, _ in unit_parts(robot)}
    assert kinds == {"continuous", "planar", "spherical", "free"}


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("scale", [1 + 1e-7, 1 - 1e-7])
def test_slightly_off_unit_norm_is_normalised(robot: fj.Robot, k: int, scale: float) -> None:
    s = random_state(robot)
    q = s.q.copy()
    q[:, unit_parts(robot)[k][1]] *= scale
    tau = robot.inverse_dynamics(*s)
    np.testing.assert_allclose(robot.inverse_dynamics(q, *s[1:]), tau, rtol=0, atol=1e-14 * np.abs(tau).max())
    assert not np.array_equal(q, s.q)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.999, 1.00001, 2.0, -3.0])
@pytest.mark.parametrize("call", ["inverse_dynamics", "mass_matrix", "integrate", "difference", "forward_kinematics"])
def test_far_off_unit_norm_is_refused(robot: fj.Robot, call: str, scale: float, k: int) -> None:
    given = arguments(robot, call)
    name = CALLS[call][0]
    joint, part = unit_parts(robot)[k]
    given[name] = given[name].copy()
    given[name][1, part] *= scale
    with pytest.raises(InputError, match=f"{name}: joint '{joint}'.*norm.*at sample \\(1,\\)"):
        getattr(robot, call)(**given)
    alone = {k: x[1] for k, x in given.items()}
    with pytest.raises(InputError, match=f"{name}: joint '{joint}'.*norm") as caught:
        getattr(robot, call)(**alone)
    assert "sample" not in str(caught.value)


def test_second_configuration_is_checked_too(robot: fj.Robot) -> None:
    q = robot.neutral()
    joint, part = unit_parts(robot)[0]
    bad = q.copy()
    bad[part] = 0
    with pytest.raises(InputError, match=f"q1: joint '{joint}'"):
        robot.difference(q, bad)
    with pytest.raises(InputError, match=f"q1: joint '{joint}'"):
        robot.interpolate(q, bad, 0.5)


# Names


def test_unknown_names_are_refused_with_suggestions(robot: fj.Robot) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    for call in (
        lambda: robot.frame_placement(q, "link77"),
        lambda: robot.frame_jacobian(q, "link77"),
        lambda: robot.frame_velocity(q, v, "link77"),
    ):
        with pytest.raises(UnknownName, match="unknown frame 'link77'; did you mean: link") as caught:
            call()
        assert caught.value.choices == robot.frame_names
    with pytest.raises(UnknownName, match="unknown joint 'joint77'"):
        robot.lock({"joint77": 0.0})
    for frame in ("globe", "LOCAL", ""):
        for call in (
            lambda frame=frame: robot.frame_jacobian(q, "link0", viewpoint=frame),
            lambda frame=frame: robot.frame_velocity(q, v, "link0", viewpoint=frame),
        ):
            with pytest.raises(UnknownName, match=f"viewpoint '{frame}'.*") as caught:
                call()
            assert caught.value.choices == ("local", "world", "world_aligned")
    with pytest.raises(UnknownName, match="derivatives 'fdsv'; did you mean: fdsva") as caught:
        robot.forward_dynamics_derivatives(q, v, v, method="fdsv")
    assert "auto" in caught.value.choices
    with pytest.raises(UnknownName, match="unknown backend 'nump'; did you mean: numpy"):
        fj.Robot(robot.model, backend="nump")
    with pytest.raises(UnknownName, match="unknown robot"):
        fj.load("no such robot at all")


@pytest.mark.parametrize("name", [None, 3, 1.5, ["link0"], b"link0"])
def test_names_of_the_wrong_type_are_refused(robot: fj.Robot, name) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    for call in (
        lambda: robot.frame_placement(q, name),
        lambda: robot.frame_jacobian(q, "link0", viewpoint=name),
        lambda: robot.forward_dynamics_derivatives(q, v, v, method=name),
        lambda: fj.Robot(robot.model, backend=name or 0.5),  # None is the default backend
        lambda: fj.load("arm", backend=name or 0.5),
    ):
        with pytest.raises(fj.FeatherjetError):
            call()


def test_frames_check_their_arrays_too(robot: fj.Robot) -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", "revolute")
    b.add_frame("here", None)
    fixed = fj.Robot(b.build())
    for name in ("here", "j"):
        for bad in ([np.nan], [1.0, 2.0], ["a"]):
            with pytest.raises(InputError, match="q"):
                fixed.frame_placement(bad, name)
            with pytest.raises(InputError, match="q"):
                fixed.frame_jacobian(bad, name)
            with pytest.raises(InputError, match="q"):
                fixed.frame_velocity(bad, [0.0], name)
        with pytest.raises(InputError, match="broadcast"):
            fixed.frame_velocity([[0.0]] * 2, [[0.0]] * 3, name)


@pytest.mark.parametrize("bad", [None, "arm", 3, fj.models])
def test_a_robot_needs_a_model(bad) -> None:
    with pytest.raises(InputError, match="expected a Model"):
        fj.Robot(bad)


@pytest.mark.parametrize("t", [np.nan, np.inf, "half", None, 1j, [[0.0], [0.0, 1.0]]])
def test_bad_times_are_refused(robot: fj.Robot, t) -> None:
    q = robot.neutral()
    with pytest.raises(InputError, match=r"^t\b"):
        robot.interpolate(q, q, t)


# Singular mass matrices


def massless_leaf() -> fj.ModelBuilder:
    b = fj.ModelBuilder("massless")
    b.add_joint("arm", "revolute")
    b.add_body("arm", 1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))
    b.add_joint("ghost", "revolute", "arm", axis=(1, 0, 0))
    return b


def massless_root() -> fj.ModelBuilder:
    b = fj.ModelBuilder("nothing")
    b.add_joint("ghost", "prismatic")
    return b


def massless_free() -> fj.ModelBuilder:
    b = fj.ModelBuilder("nothing")
    b.add_joint("ghost", "free")
    return b


def coincident_axes() -> fj.ModelBuilder:
    b = fj.ModelBuilder("coincident")
    b.add_joint("ghost", "revolute", axis=(1, 2, 3))
    b.add_joint("second", "revolute", "ghost", axis=(1, 2, 3))
    b.add_body("second", 1.0, (0.1, 0.3, 0.0), np.diag([0.01, 0.02, 0.025]))
    return b


def point_mass() -> fj.ModelBuilder:
    b = fj.ModelBuilder("point")
    b.add_joint("ghost", "free")
    b.add_body("ghost", 1.0, (0.1, 0.2, 0.3))
    return b


def thin_rod() -> fj.ModelBuilder:
    """Inertia about every axis but its own."""
    b = fj.ModelBuilder("rod")
    b.add_joint("ghost", "spherical")
    b.add_body("ghost", 1.0, (0.0, 0.0, 0.4), np.diag([0.1, 0.1, 0.0]))
    return b


def two_sliders() -> fj.ModelBuilder:
    b = fj.ModelBuilder("sliders")
    b.add_joint("ghost", "prismatic", axis=(1, 1, 0))
    b.add_joint("second", "prismatic", "ghost", axis=(1, 1, 0))
    b.add_body("second", 2.0, inertia=np.eye(3))
    return b


SINGULAR = [massless_leaf, massless_root, massless_free, coincident_axes, point_mass, thin_rod, two_sliders]


@pytest.mark.parametrize("call", FORWARD)
@pytest.mark.parametrize("make", SINGULAR)
def test_singular_mass_matrices_are_refused(make, call: str) -> None:
    """The message names robot, sample and the joint that moves no inertia; inverse dynamics still work."""
    robot = fj.Robot(make().build())
    for size in (3, 1):
        given = arguments(robot, call, size)
        with pytest.raises(SingularMassMatrix, match=f"'{robot.name}'.*at sample \\(0,\\).*joint 'ghost'"):
            getattr(robot, call)(**given)
    alone = {k: x[0] for k, x in given.items()}
    with pytest.raises(SingularMassMatrix, match="joint 'ghost'") as caught:
        getattr(robot, call)(**alone)
    assert "sample" not in str(caught.value)
    s = random_state(robot)
    assert np.isfinite(robot.inverse_dynamics(*s)).all()
    assert all(np.isfinite(x).all() for x in robot.inverse_dynamics_derivatives(*s))


@pytest.mark.parametrize("method", ["fdsva-dmm", "fdsva-aza", "direct"])
@pytest.mark.parametrize("make", SINGULAR)
def test_singular_mass_matrices_are_refused_by_every_method(make, method: str) -> None:
    robot = fj.Robot(make().build())
    with pytest.raises(SingularMassMatrix, match="joint 'ghost'"):
        robot.forward_dynamics_derivatives(**arguments(robot, "forward_dynamics_derivatives"), method=method)


@pytest.mark.parametrize("make", SINGULAR)
def test_armature_makes_them_regular(make) -> None:
    model = make().build()
    b = fj.ModelBuilder("regular")
    for j in model.joints:
        parent = None if j.parent < 0 else model.joints[j.parent].name
        b.add_joint(j.name, j.kind.name, parent, j.placement, axis=j.axis, armature=0.1)
        b.add_body(j.name, j.body.mass, j.body.com, j.body.inertia)
    robot = fj.Robot(b.build())
    s = random_state(robot)
    a = robot.forward_dynamics(*s)
    np.testing.assert_allclose(robot.inverse_dynamics(s.q, s.v, a, s.fext), s.a, atol=1e-10)


def test_a_sample_that_becomes_singular_is_named() -> None:
    """Two hinges whose axes coincide only at q2 = 0."""
    b = fj.ModelBuilder("gimbal")
    b.add_joint("outer", "revolute", axis=(0, 0, 1))
    b.add_joint("middle", "revolute", "outer", axis=(0, 1, 0))
    b.add_joint("inner", "revolute", "middle", axis=(0, 0, 1))
    b.add_body("inner", 1.0, inertia=0.1 * np.eye(3))
    robot = fj.Robot(b.build())
    q = np.tile([0.3, 0.5, 0.7], (2, 4, 1))
    zero = np.zeros(3)
    assert np.isfinite(robot.forward_dynamics(q, zero, zero)).all()
    q[1, 2, 1] = 0
    with pytest.raises(SingularMassMatrix, match=r"at sample \(1, 2\).*joint 'outer'"):
        robot.forward_dynamics(q, zero, zero)


def test_light_is_not_singular() -> None:
    """Milligrams on tons are badly conditioned, not singular."""
    b = fj.ModelBuilder("crane")
    b.add_joint("boom", "revolute", axis=(0, 1, 0))
    b.add_body("boom", 1e4, (5.0, 0.0, 0.0), 1e4 * np.eye(3))
    b.add_joint("hook", "revolute", "boom", axis=(1, 1, 0))
    b.add_body("hook", 1e-6, (0.001, 0.0, 0.001), 1e-12 * np.eye(3))
    robot = fj.Robot(b.build())
    s = random_state(robot)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    np.testing.assert_allclose(robot.forward_dynamics(s.q, s.v, tau)[:, 0], s.a[:, 0], rtol=1e-9)


def test_no_mass_no_centre() -> None:
    robot = fj.Robot(massless_root().build())
    for call in (
        lambda: robot.center_of_mass([0.0]),
        lambda: robot.centroidal_map([0.0]),
        lambda: robot.centroidal_momentum([0.0], [0.0]),
    ):
        with pytest.raises(InputError, match="no mass"):
            call()
