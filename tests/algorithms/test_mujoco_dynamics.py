"""Robots from MJCF against MuJoCo itself: mj_inverse, mj_forward and the full mass matrix."""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherjet as fj
from featherjet.conventions.mujoco import (
    acceleration_from_mujoco,
    acceleration_to_mujoco,
    configuration_from_mujoco,
    configuration_to_mujoco,
    force_from_mujoco,
    force_to_mujoco,
    velocity_from_mujoco,
    velocity_to_mujoco,
)
from featherjet.errors import ModelWarning, SingularMassMatrix
from featherjet.model.io.mjcf import from_mjmodel
from featherjet.verify import check
from helpers import agree, random_state

ID, FD = 1e-11, 1e-9
mujoco.set_mju_user_warning(lambda message: None)  # by default MuJoCo writes a log file where the tests run
OFF = mujoco.mjtDisableBit
PASSIVE = (
    OFF.mjDSBL_CONSTRAINT
    | OFF.mjDSBL_CONTACT
    | OFF.mjDSBL_LIMIT
    | OFF.mjDSBL_EQUALITY
    | OFF.mjDSBL_FRICTIONLOSS
    | OFF.mjDSBL_DAMPER
    | OFF.mjDSBL_SPRING
    | OFF.mjDSBL_ACTUATION
)
FOLDER = Path(mujoco.__file__).parent / "mjx" / "test_data"
MORE_OF_THE_SAME = {f"{n:02}_humanoids.xml" for n in range(4, 11)}  # three humanoids in one file suffice
FILES = sorted(path for path in FOLDER.rglob("*.xml") if path.name not in MORE_OF_THE_SAME)
INERTIAL = '<inertial pos="0.03 -0.02 0.05" mass="1.3" diaginertia="0.02 0.03 0.04" euler="20 30 40"/>'


def world(bodies: str, head: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{bodies.replace('INERTIAL', INERTIAL)}</worldbody></mujoco>"


OWN = {
    "hinges": world("""<body euler="10 20 30"><joint axis="1 2 3" pos="0.1 0.2 0.3" armature="0.05"/>INERTIAL
        <body pos="0.3 0 0.1" euler="40 0 -20"><joint axis="0 0 1" ref="35"/>INERTIAL</body></body>"""),
    "slide with reference": world("""<body><joint type="slide" axis="1 1 0" ref="0.4"/>INERTIAL
        <body pos="0 0.2 0"><joint axis="0 1 0" ref="-50"/>INERTIAL</body></body>"""),
    "ball": world("""<body pos="0 0 1" euler="30 0 10"><joint type="ball" pos="0.1 -0.1 0.2"/>INERTIAL
        <body pos="0.3 0 0"><joint type="ball" armature="0.1"/>INERTIAL</body></body>"""),
    "free": world("""<body pos="1 2 3" euler="30 0 10"><freejoint/>INERTIAL
        <body pos="0.3 0 0"><joint axis="1 0 1"/>INERTIAL</body>
        <body pos="-0.3 0 0"><joint type="ball"/>INERTIAL</body></body>"""),
    "several joints on one body": world("""<body pos="0 0 1">
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0" ref="0.2"/>
        <joint axis="0 0 1" pos="0.1 0 0" armature="0.2"/><joint axis="0 1 0" ref="20"/>INERTIAL
        <body pos="0 0.3 0"><joint axis="1 0 0"/><joint type="ball" pos="0 0 0.1"/>INERTIAL</body></body>"""),
    "welded and several roots": world("""<body pos="1 0 0">INERTIAL
        <body pos="0 0 1"><joint axis="0 1 0"/>INERTIAL<body pos="0.2 0 0" euler="0 0 45">INERTIAL
        <body pos="0.2 0 0"><joint type="slide" axis="0 0 1"/>INERTIAL</body></body></body></body>
        <body><freejoint/>INERTIAL</body>"""),
    "masses from geoms": world(
        """<body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.1 0.2 0.5" size="0.05"/>
        <geom type="box" pos="0.1 0 0" euler="10 20 0" size="0.1 0.2 0.05" density="500"/>
        <body pos="0 0 0.5"><joint type="ball"/>
        <geom type="ellipsoid" size="0.1 0.05 0.2" pos="0 0.1 0.1"/></body></body>""",
        '<option gravity="1 2 -3"/>',
    ),
    "weightless": world("<body><freejoint/>INERTIAL</body>", '<option><flag gravity="disable"/></option>'),
}


def passive(m: mujoco.MjModel) -> mujoco.MjModel:
    """The same with everything off that is not the motion of a tree of bodies."""
    m.opt.disableflags |= PASSIVE
    return m


def compare(m: mujoco.MjModel) -> None:
    m = passive(m)
    robot = fj.Robot(from_mjmodel(m))
    model = robot.model
    assert (robot.nq, robot.nv) == (m.nq, m.nv)
    d = mujoco.MjData(m)
    s = random_state(robot, 3)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    M = robot.mass_matrix(s.q)
    for k in range(3):
        q, v, a = s.q[k], s.v[k], s.a[k]
        d.qpos, d.qvel = configuration_to_mujoco(model, q), velocity_to_mujoco(model, q, v)
        d.qacc = acceleration_to_mujoco(model, q, v, a)
        mujoco.mj_inverse(m, d)
        agree(tau[k], force_from_mujoco(model, d.qpos, d.qfrc_inverse), ID, "mj_inverse")
        full = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, full)
        columns = np.stack([velocity_to_mujoco(model, q, e) for e in np.eye(m.nv)], -1)
        agree(M[k], columns.T @ full @ columns, ID, "M")
        d.qfrc_applied = force_to_mujoco(model, q, tau[k])
        mujoco.mj_forward(m, d)
        if d.warning[mujoco.mjtWarning.mjWARN_INERTIA].number:
            with pytest.raises(SingularMassMatrix):
                robot.forward_dynamics(q, v, tau[k])
            continue
        theirs = acceleration_from_mujoco(model, d.qpos, d.qvel, d.qacc)
        agree(robot.forward_dynamics(q, v, tau[k]), theirs, FD, "mj_forward")
        for i in range(1, m.nbody):
            T = robot.frame_placement(q, model_frame(robot, m, i))
            agree(T[:3, 3], d.xpos[i], ID, f"position of body {i}", floor=1.0)
            agree(T[:3, :3], d.xmat[i].reshape(3, 3), ID, f"rotation of body {i}")


def model_frame(robot: fj.Robot, m: mujoco.MjModel, body: int) -> str:
    """The frame of a body: bodies' frames come in MuJoCo's order."""
    return [f.name for f in robot.model.frames if f.kind == "body"][body - 1]


@pytest.mark.parametrize("name", OWN)
def test_own_models(name: str) -> None:
    compare(mujoco.MjModel.from_xml_string(OWN[name]))


@pytest.mark.parametrize("name", OWN)
def test_own_models_are_verified(name: str) -> None:
    robot = fj.Robot(from_mjmodel(mujoco.MjModel.from_xml_string(OWN[name])))
    assert max(finding.error for finding in check(robot)) < 1e-11


def compiled(path: Path) -> mujoco.MjModel | None:
    """None for the few files that this version of MuJoCo refuses."""
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return None


SAID = {
    "tendon armature": "tendon",
    "gravity compensation": "gravcomp",
    "fluid": "fluid forces",
    "flex": "does not move",
    "armature of a free joint": "its armature acts in the body's axes",
}


def unlike(m: mujoco.MjModel) -> list[str]:
    """What of a model moves otherwise than a tree of rigid bodies, whatever flags are set."""
    free_armature = any(m.jnt_type[m.dof_jntid[i]] == 0 for i in np.flatnonzero(m.dof_armature))
    present = {
        "tendon armature": np.any(m.tendon_armature),
        "gravity compensation": np.any(m.body_gravcomp),
        "fluid": m.opt.density or m.opt.viscosity,
        "flex": m.nflex,
        "armature of a free joint": free_armature,
        "nothing moves": m.nv == 0,
    }
    return [what for what, there in present.items() if there]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_models_of_the_mjx_wheel(path: Path) -> None:
    """Trees of rigid bodies must agree; of the others, the loader must say what it leaves out."""
    m = compiled(path)
    if m is None:
        with pytest.raises(fj.errors.ModelError, match="MuJoCo cannot compile"):
            fj.load(path)
        return
    differences = unlike(m)
    if differences == ["nothing moves"]:
        with pytest.raises(fj.errors.ModelError, match="no moving joint"):
            from_mjmodel(m)
    elif differences:
        with pytest.warns(ModelWarning) as record:
            from_mjmodel(m)
        said = " ".join(str(w.message) for w in record)
        assert all(SAID[what] in said for what in differences)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            compare(m)


def test_enough_models_agree() -> None:
    found = [m for m in map(compiled, FILES) if m is not None]
    assert len(found) >= len(FILES) - 3
    assert sum(not unlike(m) for m in found) >= 15


def test_conversions_undo_each_other() -> None:
    model = from_mjmodel(mujoco.MjModel.from_xml_string(OWN["free"]))
    robot = fj.Robot(model)
    s = random_state(robot, 5)
    qpos, qvel = configuration_to_mujoco(model, s.q), velocity_to_mujoco(model, s.q, s.v)
    agree(configuration_from_mujoco(model, qpos), s.q, 1e-14)
    agree(velocity_from_mujoco(model, qpos, qvel), s.v, 1e-14)
    qacc = acceleration_to_mujoco(model, s.q, s.v, s.a)
    agree(acceleration_from_mujoco(model, qpos, qvel, qacc), s.a, 1e-14)
    force = force_to_mujoco(model, s.q, s.a)
    agree(force_from_mujoco(model, qpos, force), s.a, 1e-14)
    agree((force * qvel).sum(-1), (s.a * s.v).sum(-1), 1e-13)


def test_integration_is_mujocos_for_small_steps() -> None:
    """One explicit step of each agrees to second order: the tangent spaces are converted rightly."""
    m = passive(mujoco.MjModel.from_xml_string(OWN["free"]))
    model = from_mjmodel(m)
    robot = fj.Robot(model)
    s = random_state(robot, 1)
    q, v, dt = s.q[0], s.v[0], 1e-4
    qpos = configuration_to_mujoco(model, q)
    mujoco.mj_integratePos(m, qpos, velocity_to_mujoco(model, q, v), dt)
    moved = robot.difference(q, configuration_from_mujoco(model, qpos))
    agree(moved / dt, v, 1e-3)
    assert np.abs(moved / dt - v).max() < 10 * dt * np.abs(v).max() ** 2
