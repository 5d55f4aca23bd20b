"""Dynamics under contact, featherjet's beside Pinocchio's: values and derivatives with some points held fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contact import Contacts, PointContact
from ...robot.robot import Robot
from .checking import CheckedContender, States, check
from .contenders import BATCH, PIN_LOOP, REFERENCE, THREADS, all_threads
from .peers import NotAvailable, peer, to_pinocchio
from .quantities import CONTACT_QUANTITIES, BenchmarkedQuantity
from .robots import Entrant
from .run import summary
from .timing import Settings, measure

REFERENCE_SIZE = 32  # states in one call of the NumPy reference
TOLERANCE = 1e-6  # Pinocchio solves for the contact forces with a factorisation of its own


def race(
    entrant: Entrant,
    frames: Sequence[str],
    settings: Settings,
    tick: Callable[[], object] = lambda: None,
    seed: int = 0,
) -> dict[str, Any]:
    """Times of one robot with frames held: {"title", ..., "quantities": {quantity: {"ways": {name: ...}}}}."""
    robot = entrant.robot
    states = States.random(robot, entrant.batch, seed)
    report = {}
    for quantity in CONTACT_QUANTITIES.values():
        contenders, missing = [], {}
        for name, make in MAKERS.items():
            try:
                contenders.append(make(name, robot, frames, quantity, states))
            except NotAvailable as reason:
                missing[name] = str(reason)
        errors = check(contenders, states)
        times, quiet = measure(contenders, settings, tick)
        report[quantity.name] = {"quiet": quiet, "ways": summary(times, errors), "missing": missing}
    return {"title": entrant.title, "frames": list(frames), "batch": entrant.batch, "quantities": report}


def featherjet_batch(
    name: str, robot: Robot, frames: Sequence[str], quantity: BenchmarkedQuantity, states: States
) -> CheckedContender:
    """featherjet on one thread, on all threads, or its NumPy reference, as `name` says."""
    threads = all_threads() if name == THREADS else 1
    robot = Robot(robot.model, "numpy" if name == REFERENCE else "compiled", threads)
    contacts = Contacts(robot, [PointContact(frame) for frame in frames])
    size = min(REFERENCE_SIZE, len(states.q)) if name == REFERENCE else len(states.q)
    results = quantity.empty_results(size, {"v": robot.nv, "rows": contacts.rows})
    call = getattr(robot, quantity.name)

    def run(n: int) -> None:
        call(states.q[:n], states.v[:n], states.tau[:n], contacts, out=tuple(x[:n] for x in results))

    return CheckedContender(name, run, size, whole=True, pinned=threads == 1, results=lambda: results)


def pinocchio_loop(
    name: str, robot: Robot, frames: Sequence[str], quantity: BenchmarkedQuantity, states: States
) -> CheckedContender:
    """constraintDynamics, then computeConstraintDynamicsDerivatives; forces in the world's axes, as featherjet's."""
    pin = peer("pinocchio")
    model, constraints = to_pinocchio(robot.model), pin.StdVec_RigidConstraintModel()
    for frame in map(robot.model.frame, frames):
        placement = pin.SE3(np.array(frame.placement))
        kind, axes = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        constraints.append(
            pin.RigidConstraintModel(kind, model, frame.joint + 1, placement, 0, pin.SE3.Identity(), axes)
        )
    data = model.createData()
    constraint_data = pin.StdVec_RigidConstraintData([constraint.createData() for constraint in constraints])
    pin.initConstraintDynamics(model, data, constraints, constraint_data)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    q, v, tau = states.q, states.v, states.tau
    results = quantity.empty_results(len(q), {"v": robot.nv, "rows": 3 * len(frames)})

    def values(count: int) -> None:
        a, forces = results
        for k in range(count):
            a[k] = pin.constraintDynamics(model, data, q[k], v[k], tau[k], constraints, constraint_data, settings)
            forces[k] = data.lambda_c

    def derivatives(count: int) -> None:
        for k in range(count):
            pin.constraintDynamics(model, data, q[k], v[k], tau[k], constraints, constraint_data, settings)
            found = pin.computeConstraintDynamicsDerivatives(model, data, constraints, constraint_data, settings)
            for result, x in zip(results, found, strict=True):
                result[k] = x

    run = values if quantity.derivative_of is None else derivatives
    return CheckedContender(name, run, len(q), results=lambda: results, tolerance=TOLERANCE)


MAKERS = {BATCH: featherjet_batch, REFERENCE: featherjet_batch, THREADS: featherjet_batch, PIN_LOOP: pinocchio_loop}
WAYS = (BATCH, THREADS, REFERENCE, PIN_LOOP)
