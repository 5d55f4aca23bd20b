"""Dynamics under contact beside Pinocchio's: values and derivatives of a batch of states with points held fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contact import Contacts, PointContact
from ...evaluate.evaluator import processors
from ...model.model import Array
from ...robot.robot import Robot
from .contenders import BATCH, PIN_LOOP, REFERENCE, THREADS, States, Way, check
from .peers import NotAvailable, peer, to_pinocchio
from .robots import Entrant
from .run import summary
from .timing import Settings, measure

QUANTITIES = ("constrained_dynamics", "constrained_dynamics_derivatives")
WAYS = (BATCH, THREADS, REFERENCE, PIN_LOOP)


def race(
    entrant: Entrant,
    frames: Sequence[str],
    settings: Settings,
    tick: Callable[[], object] = lambda: None,
    seed: int = 0,
) -> dict[str, Any]:
    """Times of one robot whose frames are held: {"title", ..., "quantities": {quantity: {"ways": {way: ...}}}}."""
    robot = entrant.robot
    states = States.random(robot, entrant.batch, seed)
    report = {}
    for quantity in QUANTITIES:
        found = [ours(name, robot, frames, quantity, states) for name in (BATCH, REFERENCE)]
        missing = {}
        for name, make in ((THREADS, ours), (PIN_LOOP, pinocchio_loop)):
            try:
                found.append(make(name, robot, frames, quantity, states))
            except NotAvailable as why:
                missing[name] = str(why)
        errors = check(found, states)
        times, quiet = measure(found, settings, tick)
        report[quantity] = {"quiet": quiet, "ways": summary(times, errors), "missing": missing}
    return {"title": entrant.title, "frames": list(frames), "batch": entrant.batch, "quantities": report}


def ours(name: str, robot: Robot, frames: Sequence[str], quantity: str, states: States) -> Way:
    threads = processors() if name == THREADS else 1
    if name == THREADS and threads == 1:
        raise NotAvailable("there is one core only")
    robot = Robot(robot.model, "numpy" if name == REFERENCE else "compiled", threads)
    contacts = Contacts(robot, [PointContact(frame) for frame in frames])
    size = min(32, len(states.q)) if name == REFERENCE else len(states.q)
    out = room(robot, quantity, contacts.rows, size)

    def run(n: int) -> None:
        getattr(robot, quantity)(states.q[:n], states.v[:n], states.tau[:n], contacts, out=tuple(x[:n] for x in out))

    return Way(name, run, size, whole=True, pinned=threads == 1, results=lambda: out)


def room(robot: Robot, quantity: str, rows: int, size: int) -> tuple[Array, ...]:
    """Arrays for results."""
    n = robot.nv
    shapes = [(n,), (rows,)] if quantity == QUANTITIES[0] else [(n, n)] * 3 + [(rows, n)] * 3
    return tuple(np.full((size, *shape), np.nan) for shape in shapes)


def pinocchio_loop(name: str, robot: Robot, frames: Sequence[str], quantity: str, states: States) -> Way:
    """constraintDynamics, and with it computeConstraintDynamicsDerivatives; forces in the world's axes, as ours."""
    pin = peer("pinocchio")
    model = to_pinocchio(robot.model)
    held = pin.StdVec_RigidConstraintModel()
    for frame in frames:
        f = robot.model.frame(frame)
        place = pin.SE3(np.array(f.placement))
        kind, axes = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        held.append(pin.RigidConstraintModel(kind, model, f.joint + 1, place, 0, pin.SE3.Identity(), axes))
    data, datas = model.createData(), pin.StdVec_RigidConstraintData([one.createData() for one in held])
    pin.initConstraintDynamics(model, data, held, datas)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    q, v, tau = states.q, states.v, states.tau
    out = room(robot, quantity, 3 * len(frames), len(q))

    def values(count: int) -> None:
        a, forces = out
        for k in range(count):
            a[k] = pin.constraintDynamics(model, data, q[k], v[k], tau[k], held, datas, settings)
            forces[k] = data.lambda_c

    def derivatives(count: int) -> None:
        for k in range(count):
            pin.constraintDynamics(model, data, q[k], v[k], tau[k], held, datas, settings)
            found = pin.computeConstraintDynamicsDerivatives(model, data, held, datas, settings)
            for one, x in zip(out, found, strict=True):
                one[k] = x

    run = values if len(out) == 2 else derivatives
    return Way(name, run, len(q), results=lambda: out, tolerance=1e-6)
