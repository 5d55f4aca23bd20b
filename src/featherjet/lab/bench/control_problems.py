"""The problems of Crocoddyl's benchmarks: an arm that reaches, gaits of a quadruped, a walking biped.

Numbers are those of its examples arm_manipulation, quadrupedal_gaits and bipedal_walk; only so can solutions agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...contact import Contacts, PointContact, SurfaceContact
from ...control import (
    Barrier,
    CenterOfMass,
    Control,
    Cost,
    FrictionCone,
    Impact,
    Phase,
    Placement,
    Problem,
    State,
    Translation,
    WrenchCone,
)
from ...model.model import WORLD, Model
from ...model.parts import Body
from ...robot.loading import load
from ...robot.robot import Robot

Array = np.ndarray
LEGS = ("lf_foot", "rf_foot", "lh_foot", "rh_foot")
SOLES = ("right_sole_link", "left_sole_link")
ARM_UP = [np.cos(1.5707), np.sin(1.5707), 2.618, -1.5707, np.cos(3.1415), np.sin(3.1415), 2.618, 1.0, 0.0]
HALF_SITTING = [0.0, 0.0, 1.01927, 0.0, 0.0, 0.0, 1.0, *[0.0, 0.0, -0.411354, 0.859395, -0.448041, -0.001708] * 2]
STANDING = [0.0, 0.0, 0.5775, 0.0, 0.0, 0.0, 1.0, *[-0.2, 0.75, -1.5, -0.2, -0.75, 1.5] * 2]
DT = 1e-2
MU = 0.7


class Swing(NamedTuple):
    """Feet that swing to new places, over a number of knots."""

    feet: tuple[str, ...]
    length: float
    height: float
    knots: int


class Walker:
    """A robot on feet, and where the feet and the centre of mass are while phases are added."""

    def __init__(self, robot: Robot, q0: Sequence[float], feet: Sequence[str], kd: float, dt: float) -> None:
        self.robot, self.feet, self.kd, self.dt = robot, tuple(feet), kd, dt
        q = np.array(q0)
        self.x0 = np.concatenate([q, np.zeros(robot.nv)])
        self.at = {f: robot.frame_placement(q, f)[:3, 3] for f in feet}
        self.com = np.mean(list(self.at.values()), 0)
        self.com[2] = robot.center_of_mass(q)[2]
        self.phases: list[Phase | Impact] = []

    # What kinds of robots do differently

    def contacts(self, feet: Sequence[str], kd: float = 0.0) -> Contacts | None:
        raise NotImplementedError

    def tracking(self, foot: str, place: Array, weight: float) -> Cost:
        raise NotImplementedError

    def friction(self, foot: str) -> Cost:
        raise NotImplementedError

    def posture(self) -> list[Cost]:
        raise NotImplementedError

    def landing_posture(self) -> Cost:
        raise NotImplementedError

    strike_weight = 1e7

    # Phases

    def costs(self, support: Sequence[str], com: Array | None, swing: Mapping[str, Array]) -> list[Cost]:
        out = [] if com is None else [Cost(CenterOfMass(com), 1e6)]
        out += [self.friction(f) for f in support]
        out += [self.tracking(f, places, 1e6) for f, places in swing.items()]
        return [*out, *self.posture(), Cost(Control(), 1e-1)]

    def stand(self, knots: int, com: Array | None = None, support: Sequence[str] | None = None) -> None:
        feet = self.feet if support is None else support
        if knots:
            costs = self.costs(feet, com, {})
            self.phases.append(Phase(knots, self.dt, costs, self.contacts(feet, self.kd)))

    def step(self, step: Swing) -> None:
        """Swing feet, and let them strike the ground."""
        support = [f for f in self.feet if f not in step.feet]
        share = len(step.feet) / len(self.feet)
        ways = swing_ways(step)
        com = self.com + share * ways * [1.0, 0.0, 0.0]
        swing = {f: self.at[f] + ways for f in step.feet}
        costs = self.costs(support, com, swing)
        self.phases.append(Phase(step.knots, self.dt, costs, self.contacts(support, self.kd)))
        self.strike({f: places[-1] for f, places in swing.items()})
        ahead = np.array([step.length, 0.0, 0.0])
        self.com = self.com + share * ahead
        for f in step.feet:
            self.at[f] = self.at[f] + ahead

    def strike(self, places: Mapping[str, Array]) -> None:
        held = self.contacts(list(places))
        assert held is not None
        self.phases.append(Impact(held, self.strike_costs(places)))

    def strike_costs(self, places: Mapping[str, Array]) -> list[Cost]:
        return [*(self.tracking(f, p, self.strike_weight) for f, p in places.items()), self.landing_posture()]

    def problem(self, terminal: Sequence[Cost]) -> Problem:
        return Problem(self.robot, self.x0, self.phases, terminal)


def swing_ways(step: Swing) -> Array:
    """Where a swinging foot goes (knots, 3): forward, up and down again."""
    k, half = np.arange(step.knots), step.knots / 2
    up = np.where(k <= half, k / half, 1.0 - (k - half) / half)
    return np.stack([step.length * (k + 1) / step.knots, 0.0 * k, step.height * up], -1)


class Quadruped(Walker):
    def __init__(self) -> None:
        super().__init__(load("hyq", root="free"), STANDING, LEGS, 50.0, DT)
        n, m = self.robot.nv, self.robot.nv - 6
        self.weights = np.r_[np.zeros(3), np.full(3, 500.0), np.full(m, 0.01), np.full(6, 10.0), np.ones(m)] ** 2
        self.landing = np.r_[np.ones(6), np.full(m, 10.0), np.full(n, 10.0)] ** 2
        limits, free = self.robot.limits(), np.full(6, np.inf)
        self.bounds = Barrier(
            np.r_[-free, limits.lower[7:], -free, -limits.velocity[6:]],
            np.r_[free, limits.upper[7:], free, limits.velocity[6:]],
        )

    def contacts(self, feet: Sequence[str], kd: float = 0.0) -> Contacts | None:
        return Contacts(self.robot, [PointContact(f) for f in feet], baumgarte=(0.0, kd)) if feet else None

    def tracking(self, foot: str, place: Array, weight: float) -> Cost:
        return Cost(Translation(foot, place), weight)

    def friction(self, foot: str) -> Cost:
        return Cost(FrictionCone(foot, MU), 10.0)

    def posture(self) -> list[Cost]:
        limits = Cost(State(), 1e3, self.bounds, name="limits")
        return [Cost(State(self.x0), 10.0 * self.weights), limits]

    def landing_posture(self) -> Cost:
        return Cost(State(self.x0), 10.0 * self.landing)


class Biped(Walker):
    strike_weight = 1e8

    def __init__(self) -> None:
        super().__init__(legs(load("talos", root="free")), HALF_SITTING, SOLES, 30.0, 0.03)
        n, m = self.robot.nv, self.robot.nv - 6
        self.weights = np.r_[np.zeros(3), np.full(3, 500.0), np.full(m, 0.01), np.full(n, 10.0)] ** 2
        self.landing = np.r_[np.ones(6), np.full(m, 0.1), np.full(n, 10.0)] ** 2

    def contacts(self, feet: Sequence[str], kd: float = 0.0) -> Contacts | None:
        return Contacts(self.robot, [SurfaceContact(f) for f in feet], baumgarte=(0.0, kd)) if feet else None

    def tracking(self, foot: str, place: Array, weight: float) -> Cost:
        placement = np.zeros((*place.shape[:-1], 4, 4))
        placement[..., range(4), range(4)], placement[..., :3, 3] = 1.0, place
        return Cost(Placement(foot, placement), weight)

    def friction(self, foot: str) -> Cost:
        return Cost(WrenchCone(foot, MU, (0.05, 0.025)), 10.0)

    def posture(self) -> list[Cost]:
        return [Cost(State(self.x0), 10.0 * self.weights)]

    def landing_posture(self) -> Cost:
        return Cost(State(self.x0), 10.0 * self.landing)


def legs(robot: Robot) -> Robot:
    """The base and the legs of a humanoid alone, with the inertias that they have in example-robot-data's talos_legs.

    That model has rotors, and counts the soles twice: once with the feet, once as frames.
    """
    model, ends = robot.model, {robot.model.frame(f).joint: robot.model.frame(f).placement for f in SOLES}
    sole = Body(0.01, np.zeros(3), 1e-4 * np.eye(3))
    joints = []
    for k, j in enumerate(model.joints):
        if j.name.startswith("leg_"):
            body = j.body + sole.placed(ends[k]) if k in ends else j.body
            joints.append(replace(j, armature=np.full(1, 0.1), body=body))
        elif j.parent == WORLD:
            joints.append(j)
    frames = tuple(f for f in model.frames if f.joint < len(joints))
    return Robot(Model("talos_legs", tuple(joints), frames, model.gravity))


def arm() -> Problem:
    robot = load("kinova")
    goal = np.eye(4)
    goal[:3, 3] = 0.6, 0.2, 0.5
    reach = Placement("j2s6s200_end_effector", goal)
    costs = [Cost(reach, 1.0), Cost(State(), 0.1), Cost(Control(), 0.1)]
    x0 = np.concatenate([ARM_UP, np.zeros(robot.nv)])
    return Problem(robot, x0, [Phase(100, DT, costs)], [Cost(reach, 1e3)])


def gait(order: Sequence[tuple[str, ...]], length: float, height: float, support: int, half_first: bool) -> Problem:
    """Feet step in order, the first half of them after standing, the others after standing again."""
    w, half = Quadruped(), len(order) // 2
    for k, feet in enumerate(order):
        if k % half == 0:
            w.stand(support)
        w.step(Swing(feet, (0.5 if half_first and k < half else 1.0) * length, height, 25))
    return w.problem(w.posture())


def walk() -> Problem:
    return gait([("rh_foot",), ("rf_foot",), ("lh_foot",), ("lf_foot",)], 0.25, 0.25, 2, True)


def trot() -> Problem:
    return gait([("rf_foot", "lh_foot"), ("lf_foot", "rh_foot")], 0.15, 0.1, 2, True)


def pace() -> Problem:
    return gait([("rf_foot", "rh_foot"), ("lf_foot", "lh_foot")], 0.15, 0.1, 5, True)


def bound() -> Problem:
    return gait([("lf_foot", "rf_foot"), ("lh_foot", "rh_foot")], 0.15, 0.1, 5, False)


def jump() -> Problem:
    """Take off, fly up and down again, land to the left."""
    w, ground, flying, height = Quadruped(), 10, 20, 0.15
    ahead = np.array([0.0, 0.3, 0.0])
    drop = ahead[2] - w.at["rf_foot"][2]
    feet = {f: np.array([*p[:2], 0.0]) for f, p in w.at.items()}
    com = np.array([*np.mean(list(feet.values()), 0)[:2], w.com[2]])
    rise = (ahead / 2 + [0.0, 0.0, height]) * (np.arange(flying)[:, None] + 1) / flying
    w.stand(ground)
    w.stand(flying, com + rise, ())
    w.stand(flying, None, ())
    w.strike({f: p + ahead for f, p in feet.items()})
    landed = com + np.array([*ahead[:2], drop])
    w.stand(ground - 1, landed)
    return w.problem([Cost(CenterOfMass(landed), 1e6), *w.posture()])


def biped_walk() -> Problem:
    w = Biped()
    for k, foot in enumerate(SOLES):
        w.stand(10)
        w.step(Swing((foot,), 0.3 if k == 0 else 0.6, 0.1, 35))
    last = w.phases.pop()
    return w.problem(list(last.costs))


PROBLEMS: dict[str, Any] = {
    "arm": arm, "walk": walk, "trot": trot, "pace": pace, "bound": bound, "jump": jump, "biped walk": biped_walk,
}  # fmt: skip
