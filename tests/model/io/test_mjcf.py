"""The MJCF reader against MuJoCo: structure, kinematics at random states, and the translation of states."""

import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import featherjet as fj
from featherjet.conventions import mujoco as mujoco_state
from featherjet.errors import InputError, MissingExtra, MissingFile, ModelError, ModelWarning, UnknownName
from featherjet.model.io import mjcf
from featherjet.model.io.urdf import parse_urdf
from featherjet.model.model import WORLD, Model
from urdf_helpers import forward_kinematics, quietly

mujoco.set_mju_user_warning(lambda message: None)  # else it leaves a log file in the working directory
SHIPPED = Path(mujoco.__file__).parent
GEOM = '<geom type="box" size=".1 .2 .3"/>'


def mj(body: str, top: str = "") -> str:
    return f"<mujoco>{top}<worldbody>{body}</worldbody></mujoco>"


ONE_OF_EACH = {
    "hinge": '<body pos="1 2 3" euler="10 20 30"><joint axis="1 2 3" '
    'armature=".1" damping=".2" frictionloss=".3"/>{}</body>',
    "slide": '<body pos="1 2 3" euler="10 20 30"><joint type="slide" axis="0 1 1" '
    'range="-1 2" limited="true"/>{}</body>',
    "ball": '<body pos="1 2 3" euler="10 20 30"><joint type="ball" pos=".3 .2 .1"/>{}</body>',
    "free": '<body pos="1 2 3" euler="10 20 30"><freejoint/>{}</body>',
    "ref": '<body euler="10 20 30"><joint axis="1 2 3" pos=".1 .2 .3" ref="40"/>{}</body>',
    "slide ref": '<body euler="10 20 30"><joint type="slide" axis="1 2 3" pos=".1 .2 .3" ref=".4"/>{}</body>',
    "several": '<body euler="10 20 30"><joint type="slide" axis="0 0 1" ref=".2"/>'
    '<joint axis="1 0 0" pos="0 0 .1"/><joint axis="0 1 1" pos=".2 0 .1" ref="-30"/>{}</body>',
    "slide and ball": '<body><joint type="slide" axis="1 1 0"/><joint type="ball" pos="0 .1 .2"/>{}</body>',
    "welded": '<body pos="1 0 0" euler="0 40 0"><joint/>{}<body pos="0 2 0" euler="10 0 20">{}'
    '<site name="s" pos="1 2 3" euler="10 20 30"/><body pos="0 0 1">'
    '<joint axis="0 1 0" pos="1 0 0"/>{}</body></body></body>',
    "branches": '<body><freejoint/>{}<body name="x"><joint name="x"/>{}<body><joint/>{}</body></body>'
    '<body><joint name="joint2"/>{}<site name="x"/></body></body>'
    '<body pos="0 0 5"><joint type="ball"/>{}</body>',
    "inertial": '<body euler="10 20 30"><joint/>'
    '<inertial pos=".1 .2 .3" mass="2" fullinertia="3 4 5 .1 .2 .3"/></body>',
    "on welded": '<body pos="1 0 0" euler="30 0 0">{}<body pos="0 1 0"><joint pos="0 0 1"/>{}</body></body>',
}
OWN = {name: mj(body.replace("{}", GEOM)) for name, body in ONE_OF_EACH.items()}


def compiles(path: Path) -> bool:
    try:
        return mujoco.MjModel.from_xml_path(str(path)).njnt > 0
    except ValueError:
        return False


FILES = {str(path.relative_to(SHIPPED)): str(path) for path in sorted(SHIPPED.rglob("*.xml"))}
FILES = {name: path for name, path in FILES.items() if not name.startswith("mjx/test_data/humanoid/0")}
MODELS = {name: path for name, path in FILES.items() if compiles(Path(path))} | OWN


def both(name: str) -> tuple[mujoco.MjModel, Model]:
    if name in OWN:
        return mujoco.MjModel.from_xml_string(OWN[name]), quietly(mjcf.parse_mjcf, OWN[name])
    return mujoco.MjModel.from_xml_path(MODELS[name]), quietly(mjcf.load_mjcf, MODELS[name])


def moving(theirs: mujoco.MjModel) -> np.ndarray:
    """The bodies that are not part of the world; a mocap body is its own, yet no joint moves it."""
    return np.flatnonzero((theirs.body_weldid > 0) & (theirs.body_mocapid[theirs.body_rootid] < 0))


def random_state(theirs: mujoco.MjModel, seed: int = 0) -> mujoco.MjData:
    """A state far from the reference, with random velocities."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(theirs)
    mujoco.mj_integratePos(theirs, data.qpos, rng.uniform(-1, 1, theirs.nv), 1.0)
    data.qvel, data.qacc = rng.uniform(-1, 1, (2, theirs.nv))
    return data


def placements(model: Model, q: np.ndarray) -> list[np.ndarray]:
    """Independent forward kinematics; what test_urdf has, and balls."""
    if not any(j.kind.name == "spherical" for j in model.joints):
        return forward_kinematics(model, q)
    placed: list[np.ndarray] = []
    for j, at in zip(model.joints, model.q_starts, strict=True):
        own, move = q[at : at + j.nq], pin.SE3.Identity()
        if j.kind.name == "revolute":
            move.rotation = pin.exp3(j.axis * own[0])
        elif j.kind.name == "prismatic":
            move.translation = j.axis * own[0]
        else:
            move = pin.XYZQUATToSE3(np.r_[np.zeros(7 - len(own)), own])
        before = np.eye(4) if j.parent == WORLD else placed[j.parent]
        placed.append(before @ j.placement @ move.homogeneous)
    return placed


def frame_placement(model: Model, placed: list[np.ndarray], name: str) -> np.ndarray:
    frame = model.frame(name)
    return (np.eye(4) if frame.joint == WORLD else placed[frame.joint]) @ frame.placement


@pytest.mark.parametrize("name", MODELS)
def test_structure_is_mujocos(name):
    theirs, ours = both(name)
    assert (ours.nq, ours.nv, ours.njoints) == (theirs.nq, theirs.nv, theirs.njnt)
    assert list(ours.q_starts) == list(theirs.jnt_qposadr)
    assert list(ours.v_starts) == list(theirs.jnt_dofadr)
    for mine, their in (
        ("armature", theirs.dof_armature),
        ("damping", theirs.dof_damping),
        ("friction", theirs.dof_frictionloss),
    ):
        np.testing.assert_array_equal(np.concatenate([getattr(j, mine) for j in ours.joints]), their)
    for j, joint in enumerate(ours.joints):
        if theirs.joint(j).name:
            assert joint.name == theirs.joint(j).name
        if theirs.jnt_limited[j] and joint.nq == 1:
            assert (joint.lower[0], joint.upper[0]) == tuple(theirs.jnt_range[j])
    np.testing.assert_allclose(ours.mass, theirs.body_mass[moving(theirs)].sum(), rtol=1e-13)
    off = theirs.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    np.testing.assert_array_equal(ours.gravity, theirs.opt.gravity * (not off))
    names = [f.name for f in ours.frames]
    assert len(names) == len(set(names)) == theirs.njnt + theirs.nbody - 1 + theirs.nsite


@pytest.mark.parametrize("name", MODELS)
def test_kinematics_are_mujocos(name):
    """Every body and site is where MuJoCo puts it, and so are the masses: centre and inertia of the whole."""
    theirs, ours = both(name)
    data = random_state(theirs)
    mujoco.mj_kinematics(theirs, data)
    mujoco.mj_comPos(theirs, data)
    placed = placements(ours, mujoco_state.configuration_from_mujoco(ours, data.qpos))
    bodies = [f.name for f in ours.frames if f.kind == "body"]
    sites = [f.name for f in ours.frames if f.kind == "operational"]
    scale = max(1.0, np.abs(data.xpos).max())
    for b, body in enumerate(bodies, start=1):
        T = frame_placement(ours, placed, body)
        np.testing.assert_allclose(T[:3, 3], data.xpos[b], atol=1e-12 * scale, err_msg=body)
        np.testing.assert_allclose(T[:3, :3].ravel(), data.xmat[b], atol=1e-12, err_msg=body)
    for s, site in enumerate(sites):
        T = frame_placement(ours, placed, site)
        np.testing.assert_allclose(T[:3, 3], data.site_xpos[s], atol=1e-12 * scale, err_msg=site)
        np.testing.assert_allclose(T[:3, :3].ravel(), data.site_xmat[s], atol=1e-12, err_msg=site)
    for joint, T in zip(ours.joints, placed, strict=True):
        assert joint.kind.name == "free" or joint.name not in bodies
        j = ours.joint_index(joint.name)
        if joint.kind.name in ("revolute", "spherical"):
            np.testing.assert_allclose(T[:3, 3], data.xanchor[j], atol=1e-12 * scale)
        if joint.kind.has_axis:
            np.testing.assert_allclose(T[:3, :3] @ joint.axis, data.xaxis[j], atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_inertias_are_mujocos(name):
    """First moment and inertia of all that moves, about the origin: bodies welded here, apart there."""
    theirs, ours = both(name)
    data = random_state(theirs)
    mujoco.mj_kinematics(theirs, data)
    placed = placements(ours, mujoco_state.configuration_from_mujoco(ours, data.qpos))

    def about_origin(mass, com, inertia):
        return mass * com, inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))

    mine = [
        about_origin(b.mass, b.com, b.inertia)
        for b in (j.body.placed(T) for j, T in zip(ours.joints, placed, strict=True))
    ]
    their = []
    for b in moving(theirs):
        R = data.ximat[b].reshape(3, 3)
        their.append(about_origin(theirs.body_mass[b], data.xipos[b], R @ np.diag(theirs.body_inertia[b]) @ R.T))
    for a, b in zip(map(sum, zip(*mine)), map(sum, zip(*their)), strict=True):  # noqa: B905
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", MODELS)
def test_states_translate_there_and_back(name):
    theirs, ours = both(name)
    data = [random_state(theirs, seed) for seed in range(3)]
    qpos, qvel, qacc = (np.array([getattr(d, what) for d in data]) for what in ("qpos", "qvel", "qacc"))
    q = mujoco_state.configuration_from_mujoco(ours, qpos)
    v = mujoco_state.velocity_from_mujoco(ours, qpos, qvel)
    a = mujoco_state.acceleration_from_mujoco(ours, qpos, qvel, qacc)
    tau = mujoco_state.force_from_mujoco(ours, qpos, qacc)
    close = dict(rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mujoco_state.configuration_to_mujoco(ours, q), qpos, **close)
    np.testing.assert_allclose(mujoco_state.velocity_to_mujoco(ours, q, v), qvel, **close)
    np.testing.assert_allclose(mujoco_state.acceleration_to_mujoco(ours, q, v, a), qacc, **close)
    np.testing.assert_allclose(mujoco_state.force_to_mujoco(ours, q, tau), qacc, **close)
    np.testing.assert_allclose((tau * v).sum(-1), (qacc * qvel).sum(-1), rtol=1e-12, atol=1e-12)  # power
    np.testing.assert_array_equal(mujoco_state.velocity_from_mujoco(ours, qpos[0], qvel)[0], v[0])  # broadcasts


def test_velocities_of_free_and_ball_joints_integrate_alike():
    """MuJoCo's integration over a short time, read back, is our velocity; its change, our acceleration."""
    theirs = mujoco.MjModel.from_xml_string(OWN["branches"])
    ours = quietly(mjcf.parse_mjcf, OWN["branches"])
    data, h = random_state(theirs), 1e-4
    v = mujoco_state.velocity_from_mujoco(ours, data.qpos, data.qvel)
    before = mujoco_state.configuration_from_mujoco(ours, data.qpos)
    later = data.qpos.copy()
    mujoco.mj_integratePos(theirs, later, data.qvel, h)
    after = mujoco_state.configuration_from_mujoco(ours, later)
    T0, T1 = pin.XYZQUATToSE3(before[:7]), pin.XYZQUATToSE3(after[:7])
    np.testing.assert_allclose(pin.log6(T0.actInv(T1)).vector / h, v[:6], atol=1e-3)
    ball = slice(ours.q_starts[-1], None)
    R0, R1 = (pin.XYZQUATToSE3(np.r_[0, 0, 0, q[ball]]).rotation for q in (before, after))
    np.testing.assert_allclose(pin.log3(R0.T @ R1) / h, v[-3:], atol=1e-9)
    qacc = data.qacc
    v_later = mujoco_state.velocity_from_mujoco(ours, later, data.qvel + h * qacc)
    a = mujoco_state.acceleration_from_mujoco(ours, data.qpos, data.qvel, qacc)
    np.testing.assert_allclose((v_later - v) / h, a, atol=1e-3)


def test_names_are_unique():
    names = [f.name for f in quietly(mjcf.parse_mjcf, OWN["branches"]).frames]
    assert {"joint0", "x", "x_body", "x_site", "joint2", "joint2_2"} <= set(names)
    two = mj('<body name="b"><joint type="slide"/><joint/>' + GEOM + "</body>")
    assert mjcf.parse_mjcf(two).joint_names == ("b_joint0", "b_joint1")
    one = mj('<body name="b"><joint/>' + GEOM + '<body name="b_joint"><joint/>' + GEOM + "</body></body>")
    assert mjcf.parse_mjcf(one).joint_names == ("b_joint_2", "b_joint_joint")


def test_gravity_comes_from_the_file_unless_given():
    body = f"<body><joint/>{GEOM}</body>"
    np.testing.assert_array_equal(mjcf.parse_mjcf(mj(body, '<option gravity="1 2 3"/>')).gravity, [1, 2, 3])
    off = mj(body, '<option><flag gravity="disable"/></option>')
    np.testing.assert_array_equal(mjcf.parse_mjcf(off).gravity, [0, 0, 0])
    np.testing.assert_array_equal(mjcf.parse_mjcf(off, gravity=(0, 0, -2)).gravity, [0, 0, -2])


def test_defaults_compiler_and_assets():
    top = '<compiler angle="radian"/><default><joint armature=".5" axis="0 1 0"/><geom density="7"/></default>'
    (joint,) = mjcf.parse_mjcf(mj('<body><joint ref=".25"/><geom size="1"/></body>', top)).joints
    assert joint.armature[0] == 0.5
    np.testing.assert_allclose(joint.placement[0, 0], np.cos(0.25))
    np.testing.assert_allclose(joint.body.mass, 7 * 4 / 3 * np.pi)
    included = f"<mujocoinclude><body><joint/>{GEOM}</body></mujocoinclude>".encode()
    assert mjcf.parse_mjcf(mj('<include file="x.xml"/>'), assets={"x.xml": included}).nv == 1


def test_compiled_models():
    theirs = mujoco.MjModel.from_xml_string(OWN["several"])
    assert mjcf.from_mjmodel(theirs).joint_names == mjcf.parse_mjcf(OWN["several"]).joint_names


HINGE = f'<body><joint name="j"/>{GEOM}</body>'
BALL = '<body><joint name="j" type="ball" {}/>' + GEOM + "</body>"
MOTOR = '<actuator>\n<motor name="m" joint="j" {}/></actuator>'
FIXED = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
FLOOR = '<geom name="floor" type="plane" size="1 1 1"/>\n'


@pytest.mark.parametrize(
    "text, places",
    [(text, places) for text, *places in [
        (mj(HINGE, MOTOR.format("")), "2: <motor name='m'>: does not act"),
        (mj(HINGE, MOTOR.format('forcerange="-1 1" forcelimited="true"')),
            "2: <motor name='m'>: does not act", "2: <motor name='m'>: its force range"),
        (mj(HINGE.replace("/>", ' actuatorfrcrange="-1 1" actuatorfrclimited="true"/>', 1)),
            "1: <joint name='j'>: its force range"),
        (mj(HINGE, FIXED + '<actuator><motor tendon="t" armature="1"/></actuator>'),
            "1: <motor> of <mujoco>: does not act", "1: <motor> of <mujoco>: its armature is missing in M",
            "1: <fixed name='t'>: does not act"),
        (mj(HINGE.replace("<joint", '<site name="s"/><joint'), '<actuator><general site="s"/></actuator>'),
            "1: <general> of <mujoco>: does not act", "1: <general> of <mujoco>: acts on no joint"),
        (mj(BALL.format('range="0 1" limited="true"')), "1: <joint name='j'>: its range"),
        (mj(BALL.format('stiffness="2"')), "1: <joint name='j'>: its spring"),
        (mj(HINGE.replace("/>", ' range="0 1" limited="true" margin=".1"/>', 1)), "1: <joint name='j'>: its margin"),
        (mj(FLOOR + HINGE), "1: <geom name='floor'>: touches nothing", "2: <geom> of <mujoco>: touches nothing"),
        (mj(FLOOR + HINGE.replace("<geom", '<geom margin=".1"')), "1: <geom name='floor'>: touches nothing",
            "2: <geom> of <mujoco>: touches nothing", "2: <geom> of <mujoco>: its margin"),
        (mj(HINGE, '<option><flag limit="disable"/></option>'), "1: <flag> of <mujoco>: limit='disable'"),
        (mj(HINGE, '<option density="1"/>'), "1: <option> of <mujoco>: fluid forces"),
        (mj(HINGE, '<keyframe>\n\n<key/></keyframe>'), "3: <key> of <mujoco>: is not read"),
        (mj(HINGE, '<sensor><jointpos joint="j"/></sensor>'), "1: <jointpos> of <mujoco>: measures nothing"),
        (mj(HINGE + '<body mocap="true"/>'), "1: <body> of <mujoco>: is a mocap body"),
        (mj(HINGE.replace("<body", '<body gravcomp="1"')), "1: <body> of <mujoco>: its gravcomp"),
        (mj(f'<body><joint type="free" armature="1"/>{GEOM}</body>'), "1: <joint> of <mujoco>: its armature"),
        (mj(f'<body><freejoint name="j"/>{GEOM}</body>', MOTOR.format('armature="1"')),
            "2: <motor name='m'>: does not act", "2: <freejoint name='j'>: its armature"),
        (mj(HINGE, '<equality><joint name="e" joint1="j"/></equality>'), "1: <joint name='e'>: does not hold"),
    ]],
    ids=lambda x: "" if isinstance(x, str) else x[-1][3:],
)  # fmt: skip
def test_what_is_left_out_is_said_by_line(text, places):
    with pytest.warns(ModelWarning) as record:
        mjcf.parse_mjcf(text, source="x.xml")
    said = [place for w in record for place in w.message.places or (str(w.message),)]
    assert len(said) == len(places)
    for place in places:
        assert any(line.startswith(f"x.xml:{place}") for line in said), (place, said)
    with pytest.raises(ModelError, match=r"^x\.xml:\d"):
        mjcf.parse_mjcf(text, source="x.xml", strict=True)


def test_one_warning_of_each_kind():
    arm = "".join(f'<body pos="{k} 0 0">{GEOM}<joint name="j{k}"/></body>\n' for k in range(7))
    motors = "".join(f'<motor joint="j{k}"/>\n' for k in range(7))
    with pytest.warns(ModelWarning) as record:
        mjcf.parse_mjcf(mj(arm, f"<actuator>{motors}</actuator>"), source="x.xml")
    actuators, geoms = (str(w.message) for w in record)
    assert actuators.startswith(
        "x.xml: 7 actuators: line 1: <motor> of <mujoco>: does not act here; give torques; line 2"
    )
    assert actuators.endswith("and 4 more")
    assert geoms.startswith("x.xml: 7 geoms that collide: line 8: ")


def test_what_other_files_hold_is_named():
    included = b'<mujoco><actuator><motor name="m" joint="j"/><motor joint="j"/></actuator></mujoco>'
    with pytest.warns(ModelWarning, match=r"x\.xml: 2 actuators: actuator 'm': does not act .*; actuator 1: "):
        mjcf.parse_mjcf(mj(HINGE, '<include file="y.xml"/>'), assets={"y.xml": included}, source="x.xml")


def test_geoms_that_cannot_meet_are_not_warned_of():
    """A body and its parent; masks that nobody meets; contacts switched off; one body's own geoms."""
    pendulum = f'<body>{GEOM}{GEOM}<joint/><body pos="0 0 2"><joint/>{GEOM}</body></body>'
    masked = FLOOR + HINGE.replace("<geom", '<geom contype="2" conaffinity="4"')
    off = '<option><flag contact="disable"/></option>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in (mj(pendulum), mj(masked), mj(FLOOR + HINGE, off)):
            mjcf.parse_mjcf(text)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="actuators of this MuJoCo have none")
@pytest.mark.parametrize("actuator", ["joint", "jointinparent"])
@pytest.mark.parametrize("joint", ['type="hinge" armature=".3"', 'type="slide"', 'type="ball"'])
def test_armature_of_actuators_is_part_of_the_mass_matrix(joint, actuator):
    motors = "".join(f'<motor {actuator}="j" armature=".5" gear="{gear} 1 2"/>' for gear in (1, -3))
    text = mj(f'<body pos="0 0 1"><joint/>{GEOM}<body pos="0 1 0"><joint name="j" {joint}/>{GEOM}</body></body>',
              f"<actuator>{motors}</actuator>")  # fmt: skip
    theirs, data = mujoco.MjModel.from_xml_string(text), None
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M)
    with pytest.warns(ModelWarning, match="actuators"):
        model = mjcf.parse_mjcf(text)
    assert M[-1, -1] > 5
    np.testing.assert_allclose(fj.Robot(model, backend="numpy").mass_matrix(fj.Robot(model).neutral()), M, atol=1e-12)


def test_nothing_left_out_nothing_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mjcf.parse_mjcf(OWN["branches"].replace("<geom", '<geom contype="0"'))


def test_roots():
    arm = mj(f'<body pos="0 0 1">{GEOM}<body name="b"><joint name="j"/>{GEOM}</body></body>')
    fixed, free, planar = (mjcf.parse_mjcf(arm, root) for root in ("fixed", "free", "planar"))
    assert fixed.joint_names == ("j",)
    assert free.joint_names == planar.joint_names == ("root_joint", "j")
    assert (free.nv, planar.nv) == (7, 4)
    assert free.mass == pytest.approx(2 * fixed.mass)  # the base moves now
    assert mjcf.parse_mjcf(OWN["free"], "free").joint_names == mjcf.parse_mjcf(OWN["free"]).joint_names
    for text, root in ((OWN["free"], "planar"), (OWN["branches"], "free")):
        with pytest.raises(ModelError, match=f"root='{root}': the file has a free joint of its own"):
            mjcf.parse_mjcf(text, root)
    with pytest.raises(UnknownName, match="unknown root 'ball'"):
        mjcf.parse_mjcf(arm, "ball")


@pytest.mark.parametrize(
    "text, message",
    [
        ("<mujoco", "x.xml: MuJoCo cannot compile it: XML parse error"),
        ("", "x.xml: MuJoCo cannot compile it"),
        ('<robot name="r"/>', "x.xml: not an MJCF model: its root element is <robot>"),
        ("<mujoco/>", "x.xml: robot '.*' has no moving joint"),
        (mj("<body><joint/></body>"), "x.xml: MuJoCo cannot compile it: Error: mass and inertia"),
        (mj("<body><jiont/></body>"), "jiont"),
        (mj('<include file="nobody.xml"/>'), "nobody.xml"),
    ],
)
def test_bad_documents(text, message):
    with pytest.raises(ModelError, match=message):
        mjcf.parse_mjcf(text, source="x.xml")


def test_bad_files(tmp_path):
    with pytest.raises(MissingFile):
        mjcf.load_mjcf(tmp_path / "nobody.xml")
    with pytest.raises(ModelError, match="is a directory"):
        mjcf.load_mjcf(tmp_path)
    (tmp_path / "bad.xml").write_text("<mujoco><worldbody>")
    with pytest.raises(ModelError, match=r"bad\.xml: MuJoCo cannot compile it"):
        mjcf.load_mjcf(tmp_path / "bad.xml")


def test_bad_states():
    ours = mjcf.parse_mjcf(OWN["free"])
    with pytest.raises(InputError, match=r"qpos: expected shape \(..., 7\), got \(6,\)"):
        mujoco_state.configuration_from_mujoco(ours, np.zeros(6))
    with pytest.raises(InputError, match="a quaternion is zero"):
        mujoco_state.configuration_from_mujoco(ours, np.zeros(7))
    with pytest.raises(InputError, match="expected an array of numbers"):
        mujoco_state.velocity_to_mujoco(ours, np.ones(7), "fast")
    urdf = parse_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
    with pytest.raises(InputError, match=r"joint 'j' \(continuous\): MuJoCo has no joint of this kind"):
        mujoco_state.configuration_from_mujoco(urdf, [1.0, 0.0])


def test_without_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"pip install 'featherjet\[mujoco\]'"):
        mjcf.parse_mjcf(OWN["hinge"])
