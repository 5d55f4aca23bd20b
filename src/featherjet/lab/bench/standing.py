"""Steps of a quadruped that stands on four feet, beside MuJoCo's with the same dt; and of a box on many points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...contact.bilateral import Contacts, PointContact
from ...contact.ground import Foot, Ground
from ...model.builder import ModelBuilder, transform
from ...model.builtin import quadruped
from ...model.model import Array, Model
from ...robot.robot import Robot
from ...simulation.world import World
from .peers import NotAvailable, mujoco_spec, peer
from .run import spread, summary
from .timing import Contender, TimingSettings, measure

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
RADIUS, FRICTION, DT = 0.02, 0.8, 2e-3
WORLDS, STEPS = 1000, 10
ONE, SIMULATED = "featherjet, one World", "featherjet, simulate with a function"
MANY, POINTS = f"featherjet, {WORLDS} worlds", "featherjet, a box on 36 points"
THEIRS, ROLLOUT = "MuJoCo, one world", f"MuJoCo's rollout, {WORLDS} worlds"
WAYS = (ONE, SIMULATED, THEIRS, MANY, ROLLOUT, POINTS)
KP, KD = 200.0, 5.0


class Stance:
    """A quadruped in its stance, the torques that hold it, and a controller around them."""

    def __init__(self) -> None:
        self.robot = Robot(quadruped(), backend="compiled", threads=1)
        robot = self.robot
        self.ground = Ground(robot, [Foot(f, radius=RADIUS) for f in FEET], friction=FRICTION)
        self.q, self.v = robot.neutral(), np.zeros(robot.nv)
        self.q[8::3], self.q[9::3] = 0.6, -1.2
        self.q[2] -= self.ground.gap(robot, self.q).min()
        held = Contacts(robot, [PointContact(f) for f in FEET])
        self.tau = robot.contact_inverse_dynamics(self.q, self.v, self.v, held).tau

    def control(self, t: float, q: Array, v: Array) -> Array:
        tau = self.tau.copy()
        tau[6:] += KP * (self.q[7:] - q[7:]) - KD * v[6:]
        return tau

    def many(self) -> Array:
        q = np.tile(self.q, (WORLDS, 1))
        q[:, 7:] += 0.01 * np.random.default_rng(0).normal(size=(WORLDS, 12))
        q[:, 2] -= self.ground.gap(self.robot, q).min(-1)
        return q


def race(settings: TimingSettings, tick: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """{"ways": {name: seconds per step of one world, ratio to MuJoCo's}, "missing": {...}, "height": {...}}."""
    stance = Stance()
    contenders, missing = ours(stance), {}
    try:
        contenders += theirs(stance)
    except NotAvailable as reason:
        missing = dict.fromkeys((THEIRS, ROLLOUT), str(reason))
    times, quiet = measure(contenders, settings, tick)
    ways = summary(times, {})
    for way, other in ((ONE, THEIRS), (SIMULATED, THEIRS), (MANY, ROLLOUT)):
        if other in times:
            ways[way]["ratio"] = spread(times[other] / times[way])
    return {"quiet": quiet, "ways": ways, "missing": missing}


def ours(s: Stance) -> list[Contender]:
    robot, many = s.robot, s.many()
    still = np.zeros((WORLDS, robot.nv))
    points, q = box()
    ground = Ground(points, [f.name for f in points.model.frames if f.name.startswith("point")], friction=FRICTION)

    world = World(robot, s.q, s.v, s.ground, dt=DT)

    def one(n: int) -> None:
        world.q[:], world.v[:] = s.q, s.v
        goal, hold = s.q[7:], s.tau[6:]
        for _ in range(n):
            world.tau[6:] = hold + KP * (goal - world.q[7:]) - KD * world.v[6:]
            world.step()

    def simulated(n: int) -> None:
        robot.simulate(s.q, s.v, s.control, s.ground, dt=DT, duration=n * DT, progress=False)

    def worlds(n: int) -> None:
        robot.simulate(many, still, s.tau, s.ground, dt=DT, duration=STEPS * DT, progress=False)

    def on_points(n: int) -> None:
        points.simulate(q, np.zeros(6), None, ground, dt=DT, duration=n * DT, progress=False)

    return [
        Contender(ONE, one, 1000),
        Contender(SIMULATED, simulated, 1000),
        Contender(MANY, worlds, WORLDS * STEPS, whole=True),
        Contender(POINTS, on_points, 1000),
    ]


def box() -> tuple[Robot, Array]:
    """A box that stands on 36 points."""
    b = ModelBuilder("box")
    b.add_joint("root", "free")
    b.add_body("root", 2.0, inertia=np.diag([0.02, 0.03, 0.04]))
    for k, (x, y) in enumerate((x, y) for x in np.linspace(-0.2, 0.2, 6) for y in np.linspace(-0.15, 0.15, 6)):
        b.add_frame(f"point{k}", "root", transform(p=(x, y, -0.1)))
    robot = Robot(b.build(), backend="compiled", threads=1)
    q = robot.neutral()
    q[2] = 0.1
    return robot, q


def theirs(s: Stance) -> list[Contender]:
    mujoco = peer("mujoco")
    from mujoco import rollout

    m = mujoco_ground(mujoco, s.robot.model)
    data = mujoco.MjData(m)

    def state(q: Array) -> Array:
        return np.concatenate([q[..., :3], q[..., 6:7], q[..., 3:6], q[..., 7:]], -1)

    def one(n: int) -> None:
        mujoco.mj_resetData(m, data)
        data.qpos[:] = state(s.q)
        goal, hold = s.q[7:], s.tau[6:]
        for _ in range(n):
            data.qfrc_applied[6:] = hold + KP * (goal - data.qpos[7:]) - KD * data.qvel[6:]
            mujoco.mj_step(m, data)

    many = s.many()
    full = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.zeros((WORLDS, mujoco.mj_stateSize(m, full)))
    start[:, 1 : 1 + m.nq] = state(many)
    control = np.tile(s.tau, (WORLDS, STEPS, 1))
    given = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)

    def worlds(n: int) -> None:
        rollout.rollout(m, data, start, control, control_spec=given)

    return [Contender(THEIRS, one, 1000), Contender(ROLLOUT, worlds, WORLDS * STEPS, whole=True)]


def mujoco_ground(mujoco: Any, model: Model) -> Any:
    """The quadruped for MuJoCo, with spheres as feet and a plane."""
    spec, bodies = mujoco_spec(mujoco, model)
    spec.option.timestep = DT
    friction = [FRICTION, 0.0, 0.0]
    kinds = mujoco.mjtGeom
    spec.worldbody.add_geom(type=kinds.mjGEOM_PLANE, size=[10, 10, 1], friction=friction, contype=0, conaffinity=1)
    for name in FEET:
        frame = model.frame(name)
        bodies[frame.joint].add_geom(
            type=kinds.mjGEOM_SPHERE, size=[RADIUS, 0, 0], pos=frame.placement[:3, 3], friction=friction, contype=1,
            conaffinity=0,
        )  # fmt: skip
    return spec.compile()
