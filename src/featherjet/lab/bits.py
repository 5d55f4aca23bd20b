"""Fixed computations whose results have the same bits on every processor that can fuse a product with a sum.

Inputs are fractions of a power of two, so that they are the same numbers everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import control
from ..algorithms.quantities import FRAME, QUANTITIES, Quantity
from ..contact import Contacts, Ground, PointContact
from ..robot.loading import load
from ..robot.robot import Robot
from ..simulation import Servo

Array = np.ndarray
ROBOTS = ("arm", "quadruped", "humanoid")
FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
PRECISIONS = (np.float64, np.float32)
SAMPLES = 13
SECONDS, STEP = 2.0, 0.0078125
KNOTS = 20


Group = tuple[str, Callable[[], list[Array]]]  # what is computed, and how


def groups(robots: Sequence[str] = ROBOTS, seconds: float = SECONDS) -> list[Group]:
    """All that is compared."""
    found: list[Group] = [
        (f"{name}, {np.dtype(dtype).name}", partial(quantities, name, dtype)) for name in robots for dtype in PRECISIONS
    ]
    return [
        *found,
        ("contacts and impacts", contacts),
        (f"{seconds:g} s on the ground", partial(rollout, seconds)),
        ("optimal control", solution),
    ]


def digest(arrays: list[Array]) -> str:
    """A hash of the bits of some arrays."""
    found = hashlib.sha256()
    for x in arrays:
        found.update(np.ascontiguousarray(x).tobytes())
    return found.hexdigest()


def quantities(name: str, dtype: Any) -> list[Array]:
    """Every quantity of a robot that needs neither contacts nor frames, for a batch and for one state."""
    robot = load(name, backend="compiled")
    found: list[Array] = []
    for record in QUANTITIES.values():
        if not (record.options or record.inside or FRAME in record.inputs):
            given = inputs(robot, record, dtype)
            for part in (slice(None), 0):
                found += robot.evaluator.run(record.name, [x[part] for x in given])
    return found


def inputs(robot: Robot, record: Quantity, dtype: Any, samples: int = SAMPLES) -> list[Array]:
    """Inputs of a quantity: entries of [-1, 1), and configurations that far from the neutral one."""
    size = robot.evaluator.inputs.sizes(None)
    shapes = record.input_shapes([i.name for i in record.inputs], size)
    found = {}
    for k, (name, shape) in enumerate(shapes.items()):
        x = fractions(k, samples, *shape)
        if record.input(name).axes == ("q",):
            x = robot.integrate(np.tile(robot.neutral(), (samples, 1)), fractions(k, samples, robot.nv))
        found[name] = x.astype(dtype)
    return list(found.values())


def fractions(seed: int, *shape: int) -> Array:
    """Numbers in [-1, 1) with twenty bits."""
    return np.random.default_rng(seed).integers(-(2**20), 2**20, shape) / 2.0**20


def standing(robot: Robot, samples: int) -> Array:
    """Configurations of the quadruped with bent legs."""
    q = np.tile(robot.neutral(), (samples, 1))
    q[:, 8::3], q[:, 9::3] = 0.625, -1.25
    return robot.integrate(q, fractions(0, samples, robot.nv) / 16)


def contacts() -> list[Array]:
    """Accelerations, forces and derivatives of a quadruped on four feet, and after an impact."""
    robot = load("quadruped", backend="compiled")
    feet = Contacts(robot, [PointContact(name) for name in FEET])
    q, v, tau = standing(robot, SAMPLES), fractions(1, SAMPLES, robot.nv), fractions(2, SAMPLES, robot.nv)
    found = (
        robot.constrained_dynamics(q, v, tau, feet),
        robot.constrained_dynamics_derivatives(q, v, tau, feet),
        robot.impulse_dynamics(q, v, feet),
    )
    return [robot.delassus(q, feet), *(x for part in found for x in part)]


def rollout(seconds: float) -> list[Array]:
    """Quadrupeds with servos that fall onto the ground and stand, as many as fill no vector."""
    robot = load("quadruped", backend="compiled")
    ground = Ground(robot, FEET)
    q = standing(robot, 5)
    q[:, 2] += 0.5 + np.arange(5) / 32
    servo = Servo(robot, kp=256.0, kd=8.0, target=q)
    motion = robot.simulate(q, np.zeros((5, robot.nv)), servo, ground, dt=STEP, duration=seconds)
    return [motion.q, motion.v, motion.forces]


def solution() -> list[Array]:
    """An arm that reaches for a point."""
    robot = load("arm", backend="compiled")
    goal = robot.frame_placement(np.full(robot.nq, 0.375), "tool")
    reach = control.Placement("tool", goal)
    costs = [
        control.Cost(reach, 1.0),
        control.Cost(control.State(), 2.0**-7),
        control.Cost(control.Control(), 2.0**-13),
    ]
    problem = control.Problem(
        robot, np.zeros(14), [control.Phase(KNOTS, 2.0**-6, costs)], [control.Cost(reach, 1024.0)]
    )
    found = control.solve(problem)
    return [found.xs, found.us, found.K]
