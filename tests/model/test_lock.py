"""Locked joints: the smaller robot moves as the whole one does with those joints held."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherjet as fj
from featherjet.errors import InputError, ModelError, UnknownName
from featherjet.model.joints import KINDS
from helpers import State, agree, each_agrees, forces, models, random_state, to_pinocchio, with_state


def free_dofs(model: fj.Model, held: set[str]) -> tuple[list[int], list[int]]:
    """Indices of q and v that stay."""
    q, v = [], []
    for joint, iq, iv in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if joint.name not in held:
            q += range(iq, iq + joint.nq)
            v += range(iv, iv + joint.nv)
    return q, v


def positions(robot: fj.Robot, q: np.ndarray, held: set[str]) -> dict[str, np.ndarray]:
    model = robot.model
    found = {}
    for joint, iq in zip(model.joints, model.q_starts, strict=True):
        if joint.name in held:
            found[joint.name] = q[iq : iq + joint.nq]
    return found


@given(with_state(models()), st.data())
def test_a_locked_robot_is_the_original_with_joints_held(case: tuple[fj.Robot, State], data: st.DataObject) -> None:
    robot, s = case
    names = list(robot.joint_names)
    held = set(data.draw(st.lists(st.sampled_from(names), max_size=len(names) - 1, unique=True)))
    q = s.q.copy()
    iq, iv = free_dofs(robot.model, held)
    stay = np.setdiff1d(np.arange(robot.nq), iq)
    q[:, stay] = q[0, stay]
    v, a = np.zeros_like(s.v), np.zeros_like(s.a)
    v[:, iv], a[:, iv] = s.v[:, iv], s.a[:, iv]
    locked = robot.lock(positions(robot, q[0], held))
    assert locked.joint_names == tuple(n for n in names if n not in held)
    assert locked.frame_names == robot.frame_names
    tau = robot.inverse_dynamics(q, v, a)[:, iv]
    floor = 0.01 * np.abs(robot.mass_matrix(q)).max((-2, -1))
    each_agrees(locked.inverse_dynamics(q[:, iq], s.v[:, iv], s.a[:, iv]), tau, 1e-12, "tau", floor)
    each_agrees(locked.mass_matrix(q[:, iq]), robot.mass_matrix(q)[:, iv][:, :, iv], 1e-12, "M", floor)
    d, full = (
        r.inverse_dynamics_derivatives(*x)
        for r, x in ((locked, (q[:, iq], s.v[:, iv], s.a[:, iv])), (robot, (q, v, a)))
    )
    for x, y in zip(d, full, strict=True):
        each_agrees(x, y[:, iv][:, :, iv], 1e-12, "derivatives", floor)
    for name in robot.frame_names:
        agree(locked.frame_placement(q[:, iq], name), robot.frame_placement(q, name), 1e-12, name)
        J = robot.frame_jacobian(q, name, viewpoint="world_aligned")[..., iv]
        agree(locked.frame_jacobian(q[:, iq], name, viewpoint="world_aligned"), J, 1e-12, name, floor=1.0)


@given(with_state(models(armature=False), 1), st.data())
def test_equals_pinocchios_reduced_model(case: tuple[fj.Robot, State], data: st.DataObject) -> None:
    robot, s = case
    names = list(robot.joint_names)
    held = set(data.draw(st.lists(st.sampled_from(names), max_size=len(names) - 1, unique=True)))
    m = to_pinocchio(robot.model)
    reduced = pin.buildReducedModel(m, sorted(m.getJointId(name) for name in held), s.q[0])
    locked = robot.lock(positions(robot, s.q[0], held))
    assert (locked.nq, locked.nv, locked.njoints) == (reduced.nq, reduced.nv, reduced.njoints - 1)
    assert locked.joint_names == tuple(reduced.names)[1:]
    t = random_state(locked, 1, seed=5)
    q, v, a, f = (x[0] for x in t)
    theirs = pin.rnea(reduced, reduced.createData(), q, v, a, forces(f))
    agree(locked.inverse_dynamics(q, v, a, f), theirs, 1e-12, floor=0.01 * np.abs(locked.mass_matrix(q)).max())


@pytest.mark.parametrize(
    "name, held",
    [
        ("panda", {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.02}),
        ("panda", {"panda_joint4": -1.5, "panda_joint1": 0.3}),
        ("talos_full", {"torso_1_joint": 0.2, "leg_left_4_joint": 1.0, "arm_right_3_joint": -0.4}),
        ("hyq", {"rf_haa_joint": 0.1}),
        ("tiago", {"wheel_left_joint": 0.5}),
    ],
)
def test_robots_equal_pinocchios_reduced_model(name: str, held: dict[str, float]) -> None:
    robot = fj.load(name)
    m = pin.buildModelFromUrdf(fj.robots()[next(n for n in fj.robots() if n.startswith(name))])
    q = pin.neutral(m)
    for joint, value in held.items():
        at = m.joints[m.getJointId(joint)]
        q[at.idx_q : at.idx_q + at.nq] = value if at.nq == 1 else [np.cos(value), np.sin(value)]
    reduced = pin.buildReducedModel(m, [m.getJointId(joint) for joint in held], q)
    locked = robot.lock(held)
    assert locked.joint_names == tuple(reduced.names)[1:]
    s = random_state(locked, 2)
    d = reduced.createData()
    expected = [pin.rnea(reduced, d, *x[:3], forces(x[3])).copy() for x in zip(*s, strict=True)]
    each_agrees(locked.inverse_dynamics(*s), np.stack(expected), 1e-12)


def test_locking_nothing_changes_nothing() -> None:
    robot = fj.load("arm")
    s = random_state(robot)
    np.testing.assert_array_equal(robot.lock({}).inverse_dynamics(*s), robot.inverse_dynamics(*s))


def test_locking_in_turn_is_locking_at_once() -> None:
    robot = fj.Robot(fj.models.random_tree(9, seed=2))
    q = robot.random_configuration(0)
    at = positions(robot, q, {"joint1", "joint3", "joint6"})
    once = robot.lock(at)
    turn = robot.lock({"joint3": at["joint3"]}).lock({"joint6": at["joint6"]}).lock({"joint1": at["joint1"]})
    s = random_state(once)
    agree(turn.inverse_dynamics(*s), once.inverse_dynamics(*s), 1e-13)


def test_a_locked_joint_keeps_what_the_robot_was_made_with() -> None:
    robot = fj.load("arm").with_gravity((1, 2, 3)).lock({"joint3": 0.1})
    np.testing.assert_array_equal(robot.model.gravity, [1, 2, 3])
    assert robot.name == "arm"
    assert robot.model.frame("joint3").kind == "fixed_joint"


def test_bad_locks_are_refused() -> None:
    robot = fj.load("arm")
    with pytest.raises(UnknownName, match="unknown joint 'joint9'"):
        robot.lock({"joint9": 0.0})
    for bad in ([0.0, 1.0], np.nan, np.inf, "zero", None, 1j, [], {}, [[0.0]]):
        with pytest.raises(InputError, match="joint 'joint1'"):
            robot.lock({"joint1": bad})
    with pytest.raises(ModelError, match="every joint is locked"):
        robot.lock({name: 0.0 for name in robot.joint_names})
    for bad in (["joint1"], "joint1", None, 3):
        with pytest.raises(InputError):
            robot.lock(bad)


@pytest.mark.parametrize("kind", [k for k in KINDS if KINDS[k].manifold.units])
def test_locking_checks_unit_norm(kind: str) -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", kind)
    b.add_joint("k", "revolute", "j")
    b.add_body("k", 1.0, (0.1, 0.2, 0.3), np.eye(3))
    robot = fj.Robot(b.build())
    n = KINDS[kind].nq
    with pytest.raises(InputError, match=r"joint 'j'.*norm 1"):
        robot.lock({"j": np.full(n, 0.9)})
    with pytest.raises(InputError, match="joint 'j'"):
        robot.lock({"j": np.zeros(n + 1)})


def test_a_continuous_joint_takes_its_angle_or_its_pair() -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("j", "continuous", axis=(1, 2, 3))
    b.add_joint("k", "revolute", "j")
    b.add_body("k", 1.0, (0.1, 0.2, 0.3), np.eye(3))
    robot = fj.Robot(b.build())
    one, other = robot.lock({"j": 0.7}), robot.lock({"j": [np.cos(0.7), np.sin(0.7)]})
    s = random_state(one)
    np.testing.assert_array_equal(one.inverse_dynamics(*s), other.inverse_dynamics(*s))
