"""Models: the builder, depth-first order, several roots, frozenness, pickling, built-in robots."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given

import featherjet as fj
from featherjet.errors import InputError, ModelError, PhysicsWarning, UnknownName
from featherjet.model import Body, Mimic
from featherjet.model.builder import transform
from featherjet.model.joints import KINDS
from featherjet.model.model import WORLD
from featherjet.model.tree import Tree, axis_alignment
from helpers import agree, every_kind, models, random_state, to_pinocchio


def branched() -> fj.ModelBuilder:
    """Two roots, added breadth first."""
    b = fj.ModelBuilder("branched")
    for name, parent in [("a", None), ("b", None), ("a1", "a"), ("b1", "b"), ("a2", "a"), ("a11", "a1")]:
        b.add_joint(name, "revolute", parent)
        b.add_body(name, 1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))
    return b


def test_joints_come_out_depth_first() -> None:
    model = branched().build()
    assert model.joint_names == ("a", "a1", "a11", "a2", "b", "b1")
    assert [j.parent for j in model.joints] == [WORLD, 0, 1, 0, WORLD, 4]
    assert model.subtree_end == (4, 3, 3, 4, 6, 6)


@given(models())
def test_every_subtree_is_a_range(model: fj.Model) -> None:
    for i, end in enumerate(model.subtree_end):
        below = {i}
        for k in range(i + 1, model.njoints):
            if model.joints[k].parent in below:
                below.add(k)
        assert below == set(range(i, end))
    parents = Tree(model).dof_parents
    assert all(p < k for k, p in enumerate(parents))
    assert len(parents) == model.nv


@given(models())
def test_sizes_and_starts_are_pinocchios(model: fj.Model) -> None:
    m = to_pinocchio(model)
    assert (model.nq, model.nv, model.njoints) == (m.nq, m.nv, m.njoints - 1)
    assert list(model.q_starts) == list(m.idx_qs)[1:]
    assert list(model.v_starts) == list(m.idx_vs)[1:]


def test_wrong_order_is_refused() -> None:
    model = branched().build()
    a, a1, a11, a2, b, b1 = model.joints
    swapped = (a, a2, a1, dataclasses.replace(a11, parent=2), b, b1)
    fj.Model("x", swapped, ())
    with pytest.raises(ModelError, match="'a2': joints are not in depth-first order"):
        fj.Model("x", (a, b, dataclasses.replace(a2, parent=0)), ())
    with pytest.raises(ModelError, match="depth-first"):
        fj.Model("x", (dataclasses.replace(a, parent=3),), ())


def test_models_are_frozen() -> None:
    model = fj.models.quadruped()
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.joints[0].name = "other"  # type: ignore[misc]
    joint = model.joints[1]
    arrays = [
        model.gravity,
        joint.placement,
        joint.axis,
        joint.lower,
        joint.upper,
        joint.armature,
        joint.damping,
    ]
    arrays += [joint.friction, joint.velocity_limit, joint.effort_limit, joint.body.com, joint.body.inertia]
    arrays += [frame.placement for frame in model.frames]
    for x in arrays:
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 0


def test_a_model_does_not_share_the_callers_arrays() -> None:
    placement, axis, com, inertia, g = (
        np.eye(4),
        np.array([0.0, 1, 0]),
        np.ones(3),
        np.eye(3),
        np.array([0.0, 0, -1]),
    )
    b = fj.ModelBuilder("x", gravity=g)
    b.add_joint("j", "revolute", None, placement, axis=axis)
    b.add_body("j", 1.0, com, inertia)
    model = b.build()
    for x in (placement, axis, com, inertia, g):
        x += 1
    j = model.joints[0]
    np.testing.assert_array_equal(j.placement, np.eye(4))
    np.testing.assert_array_equal(j.axis, [0, 1, 0])
    np.testing.assert_array_equal(j.body.com, np.ones(3))
    np.testing.assert_array_equal(j.body.inertia, np.eye(3))
    np.testing.assert_array_equal(model.gravity, [0, 0, -1])


@pytest.mark.parametrize("wrap", [lambda m: m, fj.Robot], ids=["Model", "Robot"])
def test_pickling(wrap) -> None:
    for model in (fj.models.humanoid(), every_kind().model):
        original = fj.Robot(model)
        copy = pickle.loads(pickle.dumps(wrap(model)))
        robot = copy if isinstance(copy, fj.Robot) else fj.Robot(copy)
        assert robot.joint_names == original.joint_names
        assert robot.model.joints[0].kind is model.joints[0].kind
        s = random_state(original)
        for x, y in zip(robot.inverse_dynamics_derivatives(*s), original.inverse_dynamics_derivatives(*s), strict=True):
            np.testing.assert_array_equal(x, y)


def test_fixed_bodies_are_merged_and_kept_as_frames() -> None:
    """Two bodies on one joint weigh as their sum; a body on the world only gives a frame."""
    b = fj.ModelBuilder("x")
    b.add_joint("j", "revolute")
    b.add_body("j", 1.0, (1.0, 0.0, 0.0), name="one")
    b.add_body("j", 3.0, (0.0, 0.0, 0.0), placement=transform(p=(-1.0, 0.0, 0.0)), name="other")
    b.add_body(None, 100.0, name="ground")
    model = b.build()
    body = model.joints[0].body
    assert body.mass == model.mass == 4.0
    np.testing.assert_allclose(body.com, [-0.5, 0, 0])
    np.testing.assert_allclose(body.inertia, np.diag([0, 3.0, 3.0]), atol=1e-15)
    assert model.frame("ground").joint == WORLD
    np.testing.assert_array_equal(model.frame("other").placement[:3, 3], [-1, 0, 0])
    robot = fj.Robot(model)
    assert robot.frame_jacobian([[0.1]] * 2, "ground").shape == (2, 6, 1)
    assert not robot.frame_velocity([0.1], [[1.0]] * 2, "ground").any()
    np.testing.assert_array_equal(robot.frame_placement([0.1], "ground"), np.eye(4))


def test_bodies_without_mass() -> None:
    assert (Body() + Body()).mass == 0
    one = Body(2.0, np.ones(3), np.eye(3))
    both = one + Body()
    assert both.mass == 2.0
    np.testing.assert_array_equal(both.com, one.com)


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(kind="ball"), "unknown joint kind 'ball'"),
        (dict(parent="nobody"), "parent 'nobody' has not been added"),
        (dict(axis=(0, 0, 0)), "no direction"),
        (dict(axis=(0, np.nan, 0)), "NaN"),
        (dict(axis=(0, np.inf, 0)), "no direction"),
        (dict(axis=(0, 1)), "expected shape"),
        (dict(placement=np.ones((4, 4))), "not a rigid transform"),
        (dict(placement=np.diag([1.0, 1, -1, 1])), "not a rigid transform"),
        (dict(placement=np.eye(3)), "expected shape"),
        (dict(armature=-1.0), "armature"),
        (dict(armature=np.inf), "armature"),
        (dict(armature=[1.0, 2.0]), "armature"),
        (dict(pitch=np.inf), "pitch"),
        (dict(pitch=np.nan), "pitch"),
        (dict(lower=[0.0, 1.0]), "lower limits"),
        (dict(lower=np.nan), "lower limits"),
    ],
)
def test_bad_joints_are_refused(settings: dict, message: str) -> None:
    b = fj.ModelBuilder("x")
    with pytest.raises(fj.FeatherjetError, match=message):
        b.add_joint("j", **{"kind": "revolute"} | settings)


def test_a_refused_joint_leaves_no_trace() -> None:
    b = fj.ModelBuilder("x")
    for settings in (dict(pitch=np.inf), dict(armature=-1.0)):
        with pytest.raises(ModelError):
            b.add_joint("j", "helical", **settings)
    b.add_joint("j", "helical")
    assert b.build().njoints == 1


@pytest.mark.parametrize(
    "args, message",
    [
        ((np.nan,), "finite"),
        ((np.inf,), "finite"),
        ((1.0, (0, np.nan, 0)), "finite"),
        ((1.0, (0, 0)), "expected shape"),
        ((1.0, (0, 0, 0), np.eye(2)), "expected shape"),
        ((1.0, (0, 0, 0), np.full((3, 3), np.inf)), "finite"),
    ],
)
def test_bad_bodies_are_refused(args: tuple, message: str) -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", "revolute")
    with pytest.raises(ModelError, match=message):
        b.add_body("j", *args)


@pytest.mark.parametrize(
    "args, message",
    [
        ((-1.0,), "negative mass"),
        ((1.0, (0, 0, 0), np.diag([1.0, 1, -1])), "not positive"),
        ((1.0, (0, 0, 0), np.diag([1.0, 1, 3])), "triangle"),
        ((1.0, (0, 0, 0), [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        ((0.0, (0, 0, 0), np.eye(3)), "without mass"),
    ],
)
def test_impossible_bodies_are_warned_of_or_refused(args: tuple, message: str) -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", "revolute")
    b.add_body("j", *args)
    with pytest.warns(PhysicsWarning, match=message):
        b.build()
    strict = fj.ModelBuilder("x", strict=True)
    strict.add_joint("j", "revolute")
    with pytest.raises(ModelError, match=f"'j'.*{message}|{message}"):
        strict.add_body("j", *args)


def test_one_warning_tells_of_all_impossible_bodies_at_the_line_of_the_user() -> None:
    b = fj.ModelBuilder("x")
    for k in range(5):
        b.add_joint(f"j{k}", "revolute")
        b.add_body(f"j{k}", -1.0)
    with pytest.warns(PhysicsWarning) as caught:
        b.build()
    (warning,) = caught
    assert str(warning.message) == (
        "5 impossible inertias: body 'j0': negative mass -1; body 'j1': negative mass -1; "
        "body 'j2': negative mass -1; and 2 more"
    )
    assert len(warning.message.places) == 5  # type: ignore[union-attr]
    assert warning.filename == __file__


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(name=""), "its name is empty"),
        (dict(name=3), "expected a name, got int"),
        (dict(name="a\nb"), "control characters"),
        (dict(parent="nobody"), "its parent 'nobody' has not been added"),
        (dict(kind="hinge"), "unknown joint kind 'hinge'"),
        (dict(mimic="leader"), r"mimic: expected a Mimic, such as Mimic\('leader'\)"),
        (dict(velocity_limit=-1), "its velocity limit must not be negative, got -1"),
        (dict(effort_limit=[-2.0]), "its effort limit must not be negative"),
        (dict(lower=[0, 0]), r"lower limits: expected shape \(1,\), got \(2,\)"),
        (dict(axis=(0, 0, 0)), "has no direction"),
        (dict(placement=np.eye(3)), r"placement: expected shape \(4, 4\)"),
        (dict(armature="much"), "armature: expected numbers, got str"),
    ],
)
def test_what_is_wrong_with_a_joint(settings: dict, message: str) -> None:
    b = fj.ModelBuilder("x")
    with pytest.raises(fj.FeatherjetError, match=message):
        b.add_joint(**{"name": "j", "kind": "revolute", **settings})


def test_models_are_equal_if_their_numbers_are() -> None:
    model = branched().build()
    for same in (branched().build(), pickle.loads(pickle.dumps(model)), model.with_gravity(model.gravity)):
        assert same == model
        assert hash(same) == hash(model)
    assert model.joints[0] == branched().build().joints[0]
    moved = np.eye(4)
    moved[0, 3] = 1e-12
    others = (
        model.with_gravity((0, 0, -9.8)), model.with_placements({"a1": moved}), dataclasses.replace(model, name="z"),
        model.with_inertial_parameters({"b": np.r_[1.0 + 1e-12, np.zeros(3), 0.1, 0, 0.1, 0, 0, 0.1]}),
    )  # fmt: skip
    for other in (*others, "branched", None):
        assert other != model
    assert len({model, branched().build(), *others}) == 5


@given(models())
def test_inertial_parameters_make_the_same_bodies_again(model: fj.Model) -> None:
    again = model.with_inertial_parameters(model.inertial_parameters())
    for old, new in zip(model.joints, again.joints, strict=True):
        scale = np.abs(old.body.parameters).max() + np.abs(old.body.com).max()
        assert np.allclose(old.body.parameters, new.body.parameters, rtol=0, atol=1e-14 * scale)
        assert old.body.mass == new.body.mass


def test_inertial_parameters_are_checked() -> None:
    model = branched().build()
    with pytest.raises(ModelError, match=r"expected shape \(60,\), got \(59,\)"):
        model.with_inertial_parameters(np.zeros(59))
    with pytest.raises(UnknownName, match="unknown joint 'zz'"):
        model.with_inertial_parameters({"zz": np.zeros(10)})
    with pytest.raises(ModelError, match="of joint 'a': the mass is zero, but"):
        model.with_inertial_parameters({"a": np.r_[0, 1, np.zeros(8)]})
    with pytest.raises(ModelError, match="must be finite"):
        model.with_inertial_parameters({"a": np.full(10, np.nan)})
    with pytest.warns(PhysicsWarning, match="joint 'a': negative mass"):
        model.with_inertial_parameters({"a": np.r_[-1, np.zeros(9)]})


def test_names_must_be_unique_and_known() -> None:
    b = branched()
    with pytest.raises(ModelError, match="'a' is defined twice"):
        b.add_joint("a", "revolute")
    with pytest.raises(ModelError, match="no joint 'zz'"):
        b.add_body("zz", 1.0)
    with pytest.raises(ModelError, match="no joint 'zz'"):
        b.add_frame("tool", "zz")
    b.add_frame("tool", "a")
    b.add_frame("tool", "b")
    with pytest.raises(ModelError, match="frame 'tool' is defined twice"):
        b.build()
    model = branched().build()
    with pytest.raises(UnknownName, match="unknown joint 'a12'; did you mean: a") as caught:
        model.joint_index("a12")
    assert caught.value.name == "a12"
    assert caught.value.choices == model.joint_names
    with pytest.raises(UnknownName, match="unknown frame 'tol'"):
        model.frame("tol")


def test_no_joints_no_robot() -> None:
    b = fj.ModelBuilder("stone")
    b.add_body(None, 1.0)
    with pytest.raises(ModelError, match="'stone' has no moving joint"):
        b.build()


def test_gravity() -> None:
    model = fj.models.arm()
    np.testing.assert_array_equal(model.gravity, [0, 0, -9.81])
    np.testing.assert_array_equal(model.with_gravity((1, 2, 3)).gravity, [1, 2, 3])
    for bad in ((0, 0), (np.nan, 0, 0), (np.inf, 0, 0)):
        with pytest.raises(ModelError, match="gravity"):
            model.with_gravity(bad)
    robot = fj.Robot(model)
    for bad in ((0, 0), (np.nan, 0, 0), (np.inf, 0, 0), "down", None):
        with pytest.raises(InputError, match="gravity"):
            robot.with_gravity(bad)  # type: ignore[arg-type]
    for bad in ((0, 0), (np.nan, 0, 0), (np.inf, 0, 0)):
        b = fj.ModelBuilder("x", gravity=bad)
        b.add_joint("j", "revolute")
        with pytest.raises(ModelError, match="gravity"):
            b.build()


@pytest.mark.parametrize(
    "follower, leader, message",
    [
        (("revolute", Mimic("l")), ("spherical", None), "one coordinate"),
        (("spherical", Mimic("l")), ("revolute", None), "one coordinate"),
        (("continuous", Mimic("l")), ("continuous", None), "one coordinate"),
        (("revolute", Mimic("other")), ("revolute", None), "unknown joint 'other'"),
        (("revolute", Mimic("f")), ("revolute", None), "itself mimics"),
    ],
)
def test_bad_mimics_are_refused(follower, leader, message: str) -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("l", leader[0])
    b.add_joint("f", follower[0], mimic=follower[1])
    with pytest.raises(fj.FeatherjetError, match=message):
        b.build()


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), (1, 2, 3), (-1, 1e-9, 0), (1, 1, 1), (0, 1e-3, -1)])
def test_axis_alignment_is_a_rotation_to_the_axis(axis) -> None:
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    A = axis_alignment(axis)
    agree(A.T @ A, np.eye(3), 1e-15)
    assert np.linalg.det(A) > 0
    np.testing.assert_array_equal(A[:, 2], axis)


# Built-in robots


def test_builtin_sizes() -> None:
    assert (fj.models.chain(7).nv, fj.models.tree(15, branching=3).nv) == (7, 15)
    assert [fj.models.arm().nv, fj.models.quadruped().nv, fj.models.humanoid().nv] == [7, 18, 38]
    assert fj.models.arm().mass == pytest.approx(18.0)
    assert fj.models.quadruped().mass == pytest.approx(30.0)
    assert fj.models.humanoid().mass == pytest.approx(72.0, abs=1.5)
    assert {j.kind.name for j in fj.models.random_tree(len(KINDS)).joints} == set(KINDS)


def test_trees_branch_as_asked() -> None:
    model = fj.models.tree(15, branching=3)
    children = [sum(j.parent == i for j in model.joints) for i in range(15)]
    assert max(children) == 3
    assert [j.parent for j in fj.models.chain(5).joints] == [-1, 0, 1, 2, 3]


def test_auto_trees_are_those_of_the_literature() -> None:
    """Joint i hangs on joint floor((i - 2 + ceil(b)) / b), counted from one, at its end; links are thin tubes."""
    model = fj.models.auto_tree(9, branching=1.5, skew=0.4, taper=0.9)
    for joint in model.joints:
        number = int(joint.name.removeprefix("joint")) + 1
        parent = int((number - 2 + 2) / 1.5) if number > 1 else 0
        above = model.joints[joint.parent] if number > 1 else None
        assert (above.name if above else "joint-1") == f"joint{parent - 1}"
        length = 0.9 ** (parent - 1) if above else 0.0
        turn = fj.models.auto_tree(2, skew=0.4).joints[1].placement[:3, :3] if above else np.eye(3)
        assert np.allclose(joint.placement[:3, 3], (length, 0, 0))
        assert np.allclose(joint.placement[:3, :3], turn)
    assert np.allclose(turn @ [0, 0, 1], [0, -np.sin(0.4), np.cos(0.4)])
    planar = fj.Robot(fj.models.auto_tree(2), backend="numpy").with_gravity((0.0, -9.81, 0.0))
    assert np.allclose(planar.gravity(np.zeros(2)), [9.81 * (0.5 + 1.5), 9.81 * 0.5])  # two rods of 1 kg and 1 m
    M = planar.mass_matrix(np.zeros(2))
    tube = 1 / 12 + 1 / 800 + 1 / 4
    assert np.allclose(M, [[2 * tube + 1 + 1, tube + 0.5], [tube + 0.5, tube]])


@pytest.mark.parametrize(
    "given, message",
    [({"branching": 0.5}, "branching: expected a number of at least 1"), ({"taper": 0}, "taper: expected a positive"),
     ({"skew": float("nan")}, "skew: expected an angle"), ({"taper": True}, "taper")],
)  # fmt: skip
def test_bad_auto_trees_are_refused(given: dict, message: str) -> None:
    with pytest.raises(fj.FeatherjetError, match=message):
        fj.models.auto_tree(3, **given)


def test_seeds() -> None:
    one, same, other = (fj.models.chain(3, seed=k) for k in (1, 1, 2))
    np.testing.assert_array_equal(one.joints[1].placement, same.joints[1].placement)
    assert not np.array_equal(one.joints[1].placement, other.joints[1].placement)


@pytest.mark.parametrize("make", [fj.models.chain, fj.models.tree, fj.models.random_tree])
@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
def test_bad_sizes_are_refused(make, n) -> None:
    with pytest.raises(InputError, match="whole number"):
        make(n)


@pytest.mark.parametrize("branching", [0, -2, 1.5, "2"])
def test_bad_branching_is_refused(branching) -> None:
    with pytest.raises(InputError, match="branching"):
        fj.models.tree(3, branching=branching)


@pytest.mark.parametrize("name", ["arm", "quadruped", "humanoid"])
def test_builtin_robots_are_physical_and_verified(name: str) -> None:
    robot = fj.load(name)
    assert not [d for j in robot.model.joints for d in j.body.defects]
    assert max(finding.error for finding in fj.verify.check(robot)) < 1e-11


def test_repr_names_the_robot() -> None:
    assert repr(fj.load("arm")) == "<Robot arm: 7 joints, nq 7, nv 7>"
