"""Derivatives of a time step against central differences of the step itself, and closed forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError
from featherjet.model.builder import transform
from featherjet.model.parts import Mimic
from helpers import agree

EPS = 1e-6
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
G = 9.81


def differences(step: fj.TimeStep, robot: fj.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[np.ndarray]:
    """The fields of StepDerivatives by central differences, all directions as worlds at once."""
    nv, at = robot.nv, step(q, v, tau)
    found = []
    for k in range(3):
        ends = []
        for d in (EPS * np.eye(nv), -EPS * np.eye(nv)):
            given = [x[..., None, :] + np.zeros((nv, 1)) for x in (q, v, tau)]
            given[k] = robot.integrate(given[0], d) if k == 0 else given[k] + d
            end = step(*given)
            ends.append((robot.difference(at.q[..., None, :], end.q), end.v, end.forces))
        found.append([np.swapaxes(a - b, -1, -2) / (2 * EPS) for a, b in zip(*ends, strict=True)])
    return [found[k][i] for i in range(3) for k in range(3)]


FLOORS = {"q": 1e-4, "v": 0.05, "forces": 5.0}  # below, central differences have fewer digits than are compared


def as_differences(step: fj.TimeStep, robot: fj.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
    """Each field agrees: the steps that are compared agree to 1e-12, so that their differences by EPS do to 1e-6."""
    d = step.derivatives(q, v, tau)
    for name, x, y in zip(d._fields, d, differences(step, robot, q, v, tau), strict=True):
        agree(x, y, 5e-5, name, floor=FLOORS[name[1:].partition("_")[0]])


def quadruped(backend: str = "compiled") -> tuple[fj.Robot, np.ndarray]:
    robot = fj.load("quadruped", backend=backend)
    q = robot.neutral()
    q[8::3], q[9::3] = 0.6, -1.2
    return robot, q


# Contacts


@pytest.mark.parametrize("friction, restitution", [(0.0, 0.0), (0.3, 0.0), (2.0, 0.0), (0.5, 0.5)])
def test_a_landing_quadruped(friction: float, restitution: float) -> None:
    """Worlds that fly, land, slide and stick, on a slope; with restitution, impacts divide the step."""
    robot, q = quadruped()
    rng = np.random.default_rng(3)
    slope = fj.Plane((0.1, -0.2, 1.0), 0.05)
    ground = fj.Ground(
        robot, [fj.Foot(f, radius=0.02) for f in FEET], friction=friction, restitution=restitution, terrain=slope
    )
    q = robot.integrate(np.tile(q, (6, 1)), 0.1 * rng.normal(size=(6, robot.nv)))
    q[:, 2] -= ground.gap(robot, q).min(-1) - [1e-3, 2e-3, 1e-3, 5e-4, 0.5, 1.0]
    v, tau = 0.5 * rng.normal(size=(2, 6, robot.nv))
    v[:, 2] = -2.0
    step = fj.TimeStep(robot, ground, dt=2e-3)
    if restitution:  # their instants are found one by one
        q, v, tau = q[3:5], v[3:5], tau[3:5]
    pressed = step(q, v, tau).forces.reshape(len(q), 4, 3) @ np.array([0.1, -0.2, 1.0])
    assert (pressed.max(-1) > 1.0).sum() == (1 if restitution else 4)
    as_differences(step, robot, q, v, tau)


def test_feet_that_are_pushed_out_of_the_ground() -> None:
    robot, q = quadruped()
    ground = fj.Ground(robot, FEET, friction=0.7)
    q = np.tile(q, (2, 1))
    q[:, 2] -= ground.gap(robot, q).min(-1)
    q[:, 2] -= [1e-4, 0.05]  # slowly, and as fast as a throw
    step = fj.TimeStep(robot, ground, dt=2e-3)
    rng = np.random.default_rng(0)
    as_differences(step, robot, robot.integrate(q, 1e-5 * rng.normal(size=(2, 18))), *0.1 * rng.normal(size=(2, 2, 18)))


def rolling() -> fj.Robot:
    """A ball of radius 0.1 m whose velocity is in world axes."""
    b = fj.ModelBuilder("ball")
    b.add_joint("slide", "translation")
    b.add_joint("turn", "spherical", "slide")
    b.add_body("turn", 1.5, inertia=0.4 * 1.5 * 0.01 * np.eye(3))
    return fj.Robot(b.build(), backend="compiled")


def test_a_sliding_and_a_rolling_ball_by_closed_forms() -> None:
    """Sliding along s, v+ = v - mu g h s; rolling, v+ = (5 v + 2 r w x n) / 7, as momentum about the contact stays."""
    robot, mu, h = rolling(), 0.3, 2e-3
    ground = fj.Ground(robot, [fj.Foot("turn", radius=0.1)], friction=[mu])
    q, v = np.tile(robot.neutral(), (2, 1)), np.zeros((2, 6))
    q[:, 2] = 0.1
    v[0, :2] = 1.0, 0.5
    v[1, :2] = 1e-4, 2e-4
    d = fj.TimeStep(robot, ground, dt=h).derivatives(q, v)
    speed = np.hypot(1.0, 0.5)
    s = np.array([1.0, 0.5]) / speed
    agree(d.dv_dv[0, :2, :2], np.eye(2) - mu * G * h / speed * (np.eye(2) - np.outer(s, s)), 1e-10)
    agree(d.dv_dv[0, 2, :], np.zeros(6), 1e-12, floor=1.0)
    agree(d.dv_dv[1, :2, :2], 5 / 7 * np.eye(2), 1e-10)
    agree(d.dv_dv[1, :2, 3:5], 2 / 7 * 0.1 * np.array([[0.0, 1.0], [-1.0, 0.0]]), 1e-10)
    agree(d.dforces_dtau[1, 2, 2], -1.0, 1e-10)  # the ground gives way to who carries


def test_a_bounce_by_its_closed_form() -> None:
    """A ball thrown down from z with w meets the ground at w1^2 = w^2 + 2 g z after t = (w + w1) / g."""
    robot, e, h = rolling(), 0.8, 0.1
    ground = fj.Ground(robot, [fj.Foot("turn", radius=0.1)], friction=0.0, restitution=e)
    q, v = robot.neutral(), np.zeros(6)
    z, w = 0.05, -1.0
    q[2], v[2] = 0.1 + z, w
    d = fj.TimeStep(robot, ground, dt=h).derivatives(q, v)
    w1 = np.sqrt(w**2 + 2 * G * z)
    dw1_dz, dw1_dw = G / w1, w / w1
    dt_dz, dt_dw = dw1_dz / G, (1 + dw1_dw) / G
    rest = h - (w + w1) / G
    agree(d.dv_dq[2, 2], e * dw1_dz + G * dt_dz, 1e-8)
    agree(d.dv_dv[2, 2], e * dw1_dw + G * dt_dw, 1e-8)
    agree(d.dq_dq[2, 2], (e * dw1_dz) * rest - (e * w1 - G * rest) * dt_dz, 1e-7)
    agree(d.dq_dv[2, 2], (e * dw1_dw) * rest - (e * w1 - G * rest) * dt_dw, 1e-7)


def test_redundant_feet_have_determined_motion() -> None:
    """A box on its four corners, pressed and sliding: twelve rows on six dofs."""
    b = fj.ModelBuilder("box")
    b.add_joint("root", "free")
    b.add_body("root", 2.0, inertia=np.diag([0.02, 0.03, 0.04]))
    robot = fj.Robot(b.build(), backend="compiled")
    corners = [fj.Foot("root", radius=0.0, offset=(x, y, -0.1)) for x in (-0.2, 0.2) for y in (-0.15, 0.15)]
    q, v, tau = robot.neutral(), np.zeros(6), np.zeros(6)
    q[2], v[0] = 0.1, 1.0
    for mu, kept in ((0.5, 1.0), (0.0, 1.0)):
        d = fj.TimeStep(robot, fj.Ground(robot, corners, friction=mu), dt=1e-3).derivatives(q, v, tau)
        agree(d.dv_dv[0, 0], kept, 1e-6)
        agree(d.dv_dv[1, 1], 1.0 - mu * G * 1e-3, 1e-5)  # friction turns with the velocity
        agree(d.dv_dv[2, 2], 0.0, 1e-9, floor=1.0)
        agree(d.dv_dtau[0, 0], 1e-3 / 2.0, 1e-6)


# Joints' own laws


def arm(backend: str = "compiled", **settings: object) -> fj.Robot:
    b = fj.ModelBuilder("arm")
    for k, axis in enumerate(((0, 1, 0), (1, 0, 0), (0, 1, 0))):
        below = (f"j{k - 1}", transform(p=np.array([0.0, 0.0, -0.4]))) if k else ()
        b.add_joint(f"j{k}", "revolute", *below, axis=axis, **settings)  # type: ignore[arg-type]
        b.add_body(f"j{k}", 1.0 + k, com=(0.02, 0.01, -0.2), inertia=0.02 * np.eye(3))
    return fj.Robot(b.build(), backend=backend)


LAWS: dict[str, dict] = {
    "none": {},
    "dampers": {"damping": 0.5, "armature": 0.01},
    "springs": {"damping": 0.1, "stiffness": 40.0, "spring": 0.2},
    "limits": {"lower": -0.4, "upper": 0.4},
    "dry friction": {"friction": 0.6},
    "all": {"friction": 0.6, "lower": -0.4, "upper": 0.4, "damping": 0.2, "stiffness": 5.0, "effort_limit": 1.0},
}


@pytest.mark.parametrize("law", LAWS)
def test_joints_laws(law: str) -> None:
    robot = arm(**LAWS[law])
    rng = np.random.default_rng(1)
    q, v, tau = (s * rng.normal(size=(8, 3)) for s in (0.3, 1.0, 1.0))
    q = np.clip(q, -0.39, 0.39)
    q[0], v[0] = 0.399, 2.0  # reaches its limits
    q[1], v[1], tau[1] = [0.01, 0.0, 0.02], 0.0, 0.1  # dry friction holds
    tau[2] = [5.0, -5.0, 0.1]  # beyond the effort limits
    step = fj.TimeStep(robot, None, dt=4e-3)
    as_differences(step, robot, q, v, tau)
    if "lower" in LAWS[law]:
        assert (np.abs(step(q[0], v[0]).v) < 0.5).all()  # two of them would be without their limits
    if law == "dry friction":
        assert (np.abs(step(q[1], v[1], tau[1]).v[1:]) < 1e-15).all()
    quiet = fj.TimeStep(robot, None, dt=4e-3, passive=False).derivatives(q, v, tau)
    loud = fj.TimeStep(arm(), None, dt=4e-3).derivatives(q, v, tau)
    if "armature" not in LAWS[law]:
        agree(quiet.dv_dtau, loud.dv_dtau, 1e-12)


def test_dry_friction_that_holds_nothing_holds() -> None:
    """A joint at rest without any load sticks, though its friction does nothing."""
    b = fj.ModelBuilder("wheel")
    b.add_joint("axle", "revolute", friction=0.5)
    b.add_body("axle", 1.0, inertia=0.1 * np.eye(3))
    d = fj.TimeStep(fj.Robot(b.build(), backend="compiled")).derivatives(np.zeros(1), np.zeros(1))
    agree(d.dv_dtau, np.zeros((1, 1)), 1e-12, floor=1.0)
    agree(d.dv_dv, np.zeros((1, 1)), 1e-12, floor=1.0)


# Inertial parameters, and gains of servos


def test_by_gains_of_a_servo() -> None:
    """Of a robot that lands, with one motor at its limit; the servo is part of the step, and of its derivatives."""
    robot, q = quadruped()
    target = q.copy()
    rng = np.random.default_rng(9)
    ground = fj.Ground(robot, FEET, friction=0.5)
    q = robot.integrate(np.tile(q, (2, 1)), 0.1 * rng.normal(size=(2, 18)))
    q[:, 2] -= ground.gap(robot, q).min(-1) - 1e-4
    v, tau = 0.5 * rng.normal(size=(2, 2, 18))
    v[:, 2] = -1.0
    tau[1, 8] = 1e4

    def stepped(kp: np.ndarray, kd: np.ndarray) -> fj.TimeStep:
        return fj.TimeStep(robot, ground, dt=2e-3, servo=fj.Servo(robot, kp=kp, kd=kd, target=target))

    kp, kd = np.full(18, 300.0), np.full(18, 5.0)
    kp[:6] = kd[:6] = 0.0
    step = stepped(kp, kd)
    as_differences(step, robot, q, v, tau)
    servo = fj.Servo(robot, kp=kp, kd=kd, target=target, feedforward=tau[0])
    motion = robot.simulate(q[0], v[0], servo, ground, dt=2e-3, duration=2e-3)
    at = step(q, v, tau)
    agree(at.v[0], motion.v[1], 1e-9)
    found = step.gain_derivatives(q, v, tau)
    for name, k in (("dv_dkp", 7), ("dv_dkp", 8), ("dv_dkd", 8), ("dv_dkd", 16), ("dq_dkp", 14)):
        change = 1e-3 * np.eye(18)[k]  # velocities are nearly linear in gains
        moved = [stepped(*((kp + s * change, kd) if name[-1] == "p" else (kp, kd + s * change))) for s in (1, -1)]
        ends = [m(q, v, tau) for m in moved]
        pairs = [robot.difference(at.q, e.q) if name[1] == "q" else e.v for e in ends]
        agree(getattr(found, name)[..., k], (pairs[0] - pairs[1]) / 2e-3, 1e-5, name, floor=1e-6)
    with pytest.raises(InputError, match="this step has no servo"):
        fj.TimeStep(robot).gain_derivatives(q, v)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_by_inertial_parameters(restitution: float) -> None:
    """Of a ball with a pendulum in it that lands or flies, whose base has torques."""
    b = fj.ModelBuilder("hopper")
    b.add_joint("root", "free")
    b.add_body("root", 1.5, com=(0.02, -0.01, 0.03), inertia=np.diag([0.006, 0.007, 0.008]))
    b.add_joint("swing", "revolute", "root", axis=(0, 1, 0))
    b.add_body("swing", 0.3, com=(0.0, 0.02, -0.05), inertia=0.001 * np.eye(3))
    rng = np.random.default_rng(8)
    v, tau = rng.normal(size=(2, 2, 7))
    v[:, 2] = -2.0

    def stepped(model: fj.Model) -> fj.TimeStep:
        robot = fj.Robot(model, backend="compiled")
        ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], friction=0.3, restitution=restitution)
        return fj.TimeStep(robot, ground, dt=4e-3)

    model = b.build()
    step, robot = stepped(model), fj.Robot(model, backend="compiled")
    q = robot.integrate(robot.neutral(), 0.2 * rng.normal(size=(2, 7)))
    q[:, 2] = 0.1 + 1e-3, 1.0
    found, at = step.parameter_derivatives(q, v, tau), step(q, v, tau)
    assert at.forces[0].any()
    theta = model.inertial_parameters()
    for k in range(theta.size):
        change = 1e-6 * np.eye(theta.size)[k].reshape(theta.shape)
        ends = [stepped(model.with_inertial_parameters(theta + s * change))(q, v, tau) for s in (1, -1)]
        way = [robot.difference(at.q, end.q) for end in ends]
        agree(found.dq_dparameters[..., k], (way[0] - way[1]) / 2e-6, 5e-5, f"q {k}", floor=1e-3)
        agree(found.dv_dparameters[..., k], (ends[0].v - ends[1].v) / 2e-6, 5e-5, f"v {k}", floor=0.1)
        agree(found.dforces_dparameters[..., k], (ends[0].forces - ends[1].forces) / 2e-6, 5e-5, f"f {k}", floor=10.0)


# Robots of all kinds


def two_roots() -> fj.Robot:
    """A free box with a pendulum, and another free box: each keeps its own momentum."""
    b = fj.ModelBuilder("pair")
    b.add_joint("one", "free")
    b.add_body("one", 2.0, com=(0.1, 0.0, 0.05), inertia=np.diag([0.02, 0.03, 0.04]))
    b.add_joint("swing", "revolute", "one", axis=(0, 1, 0))
    b.add_body("swing", 0.7, com=(0.0, 0.1, -0.3), inertia=0.01 * np.eye(3))
    b.add_joint("two", "free")
    b.add_body("two", 1.0, inertia=np.diag([0.01, 0.02, 0.02]))
    return fj.Robot(b.build(), backend="compiled")


def test_flight_of_several_bodies() -> None:
    robot = two_roots()
    rng = np.random.default_rng(5)
    q = robot.random_configuration(5, size=2)
    v, tau = rng.normal(size=(2, 2, robot.nv))
    as_differences(fj.TimeStep(robot, None, dt=0.02), robot, q, v, tau)


def test_flight_by_both_ways() -> None:
    """Centroidal momentum's derivatives, and complex step through the balance itself."""
    robot, q = quadruped()
    rng = np.random.default_rng(6)
    move = rng.normal(size=(2, 18))
    move[:, 6:] *= 0.1  # within the joints' limits
    q = robot.integrate(np.tile(q, (2, 1)), move)
    v, tau = rng.normal(size=(2, 2, 18))
    step = fj.TimeStep(robot, None, dt=0.02)
    ours = step.derivatives(q, v, tau)
    as_differences(step, robot, q, v, tau)
    step._slopes.balance.rooted = False
    theirs = step.derivatives(q, v, tau)
    for engine in filter(None, (step._steps.engine, step._steps.unlimited)):
        engine.floats = False
    without = step.derivatives(q, v, tau)
    for x, y in zip(ours[:6], theirs[:6], strict=True):
        agree(x, y, 1e-11)
    assert np.abs(ours.dv_dq - without.dv_dq).max() > 1e-5  # the balance matters here


def test_joints_that_mimic_and_the_numpy_backend() -> None:
    b = fj.ModelBuilder("gripper")
    b.add_joint("lift", "prismatic")
    b.add_joint("left", "revolute", "lift", axis=(0, 1, 0))
    b.add_body("left", 0.5, com=(0.1, 0.0, -0.2), inertia=0.01 * np.eye(3))
    b.add_joint("right", "revolute", "lift", axis=(0, 1, 0), mimic=Mimic("left", -0.8, 0.1))
    b.add_body("right", 0.4, com=(-0.1, 0.05, -0.2), inertia=0.01 * np.eye(3))
    robot = fj.Robot(b.build(), backend="compiled")
    ground = fj.Ground(
        robot, [fj.Foot(f, radius=0.01, offset=(0.0, 0.0, -0.4)) for f in ("left", "right")], friction=0.2
    )
    q, v = np.array([[0.0, 0.3], [0.0, 0.3]]), np.array([[-1.0, 0.4], [-1.0, -3.0]])
    q[:, 0] -= ground.gap(robot, q).min(-1) - 1e-4
    step = fj.TimeStep(robot, ground, dt=2e-3)
    assert (step(q, v).forces.reshape(2, 2, 3)[..., 2].max(-1) > 0).all()
    as_differences(step, robot, q, v, np.full((2, 2), 0.1))


def test_on_stairs() -> None:
    """On the faces of a height field the plane below a foot stays the same."""
    robot, q = quadruped()
    x = np.linspace(-2, 2, 9)
    stairs = fj.HeightField(x, x, 0.1 * np.add.outer(x, 0.5 * x))
    ground = fj.Ground(robot, [fj.Foot(f, radius=0.02) for f in FEET], terrain=stairs)
    q[0] = 0.13
    q[2] -= ground.gap(robot, q).min() - 1e-3
    v = np.zeros(18)
    v[:3] = 0.3, 0.1, -1.0
    step = fj.TimeStep(robot, ground, dt=2e-3)
    assert step(q, v).forces.any()
    as_differences(step, robot, q, v, np.zeros(18))


# The interface


def test_products_worlds_and_out() -> None:
    robot, q = quadruped()
    ground = fj.Ground(robot, FEET)
    rng = np.random.default_rng(7)
    q = robot.integrate(np.tile(q, (2, 3, 1)), 0.05 * rng.normal(size=(2, 3, 18)))
    q[..., 2] -= ground.gap(robot, q).min(-1) - 1e-4
    v, tau, dq, dv, dtau, wq, wv = rng.normal(size=(7, 2, 3, 18))
    wf = rng.normal(size=(2, 3, 12))
    step = fj.TimeStep(robot, ground, dt=2e-3)
    d = step.derivatives(q, v, tau)
    assert d.dq_dtau.shape == (2, 3, 18, 18)
    assert d.dforces_dv.shape == (2, 3, 12, 18)
    along = step.jvp(q, v, tau, dq, dv, dtau)
    back = step.vjp(q, v, tau, wq, wv, wf)
    pairs = zip((wq, wv, wf), along, strict=True)
    forward = sum((w * x).sum(-1) for w, x in pairs)
    agree(forward, sum((g * x).sum(-1) for g, x in zip(back, (dq, dv, dtau), strict=True)), 1e-10)
    agree(step.jvp(q, v, tau, dq=dq).v, (d.dv_dq @ dq[..., None])[..., 0], 1e-10)
    out = tuple(np.empty_like(x) for x in d)
    assert step.derivatives(q, v, tau, out=out)[0] is out[0]
    agree(out[4], d.dv_dv, 1e-14)
    world = fj.World(robot, q, v, ground, dt=2e-3)
    world.tau[:] = tau
    agree(world.step_derivatives().dv_dq, d.dv_dq, 1e-14)
    one = step(q, v, tau)
    world.step()
    agree(world.v, one.v, 1e-10)
    agree(world.forces, one.forces, 1e-8)


def bad(*given: object, **more: object) -> Sequence[object]:
    return given, more


@pytest.mark.parametrize(
    "given, more, message",
    [
        (*bad("robot"), "expected a robot first"),
        (*bad(dt=0.0), "dt: expected a positive time"),
        (*bad(contacts=3), "contacts: expected a Ground of this robot"),
    ],
)
def test_bad_steps(given: tuple, more: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fj.TimeStep(*(given or (arm(),)), **more)


def test_bad_states() -> None:
    step = fj.TimeStep(arm())
    with pytest.raises(InputError, match="v: expected shape"):
        step(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="wforces: expected shape"):
        step.vjp(np.zeros(3), np.zeros(3), wforces=np.zeros(3))
