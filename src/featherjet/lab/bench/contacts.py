"""Dynamics under contact, featherjet's beside Pinocchio's: values and derivatives with points and flat frames held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...contact import Contacts, PointContact, SurfaceContact
from ...robot.robot import Robot
from .checking import CheckedContender, States, check
from .contenders import BATCH, PIN_CALL, PIN_LOOP, REFERENCE, SINGLE
from .peer_contenders import single_results
from .peers import NotAvailable, peer, to_pinocchio
from .quantities import CONTACT_QUANTITIES, BenchmarkedQuantity
from .robots import Entrant
from .run import summary
from .timing import TimingSettings, measure

REFERENCE_SIZE = 32  # states in one call of the NumPy reference
TOLERANCE = 1e-6  # Pinocchio solves for the contact forces with a factorisation of its own

Held = Sequence[PointContact | SurfaceContact]


def race(
    entrant: Entrant,
    held: Held,
    settings: TimingSettings,
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
                contenders.append(make(name, robot, held, quantity, states))
            except NotAvailable as reason:
                missing[name] = str(reason)
        errors = check(contenders, states)
        times, quiet = measure(contenders, settings, tick)
        report[quantity.name] = {"quiet": quiet, "ways": summary(times, errors), "missing": missing}
    frames = [c.frame for c in held]
    return {"title": entrant.title, "frames": frames, "batch": entrant.batch, "quantities": report}


def featherjet_batch(
    name: str, robot: Robot, held: Held, quantity: BenchmarkedQuantity, states: States
) -> CheckedContender:
    """featherjet on one thread, or its NumPy reference, as `name` says."""
    robot = Robot(robot.model, backend="numpy" if name == REFERENCE else "compiled", threads=1)
    contacts = Contacts(robot, held)
    size = min(REFERENCE_SIZE, len(states.q)) if name == REFERENCE else len(states.q)
    results = quantity.empty_results(size, {"v": robot.nv, "rows": contacts.rows})
    call = getattr(robot, quantity.name)

    def run(n: int) -> None:
        call(states.q[:n], states.v[:n], states.tau[:n], contacts, out=tuple(x[:n] for x in results))

    return CheckedContender(name, run, size, whole=True, results=lambda: results)


def featherjet_single(
    name: str, robot: Robot, held: Held, quantity: BenchmarkedQuantity, states: States
) -> CheckedContender:
    """One state, again and again."""
    robot = Robot(robot.model, backend="compiled", threads=1)
    contacts, call = Contacts(robot, held), getattr(robot, quantity.name)
    q, v, tau = (np.ascontiguousarray(x[0]) for x in (states.q, states.v, states.tau))
    last: list[Any] = [None]

    def run(n: int) -> None:
        for _ in range(n):
            last[0] = call(q, v, tau, contacts)

    return CheckedContender(name, run, 1 << 20, results=lambda: single_results(last[0]))


class PinocchioContacts(NamedTuple):
    """Pinocchio's constraintDynamics of one robot with frames held, forces in the world's axes as featherjet's."""

    pin: Any
    model: Any
    data: Any
    constraints: Any
    constraint_data: Any
    settings: Any

    @staticmethod
    def of(robot: Robot, held: Held) -> PinocchioContacts:
        pin = peer("pinocchio")
        model, constraints = to_pinocchio(robot.model), pin.StdVec_RigidConstraintModel()
        kinds = {3: pin.ContactType.CONTACT_3D, 6: pin.ContactType.CONTACT_6D}
        for contact in held:
            frame = robot.model.frame(contact.frame)
            placement, axes = pin.SE3(np.array(frame.placement)), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            joint, there = frame.joint + 1, pin.SE3.Identity()
            constraints.append(pin.RigidConstraintModel(kinds[contact.rows], model, joint, placement, 0, there, axes))
        data = model.createData()
        constraint_data = pin.StdVec_RigidConstraintData([constraint.createData() for constraint in constraints])
        pin.initConstraintDynamics(model, data, constraints, constraint_data)
        return PinocchioContacts(pin, model, data, constraints, constraint_data, pin.ProximalSettings(1e-14, 0.0, 1))

    def values(self, q: Any, v: Any, tau: Any) -> tuple:
        """Accelerations and forces."""
        held = self.constraints, self.constraint_data, self.settings
        return self.pin.constraintDynamics(self.model, self.data, q, v, tau, *held), self.data.lambda_c

    def derivatives(self, q: Any, v: Any, tau: Any) -> tuple:
        """The values' derivatives, which need the values."""
        self.values(q, v, tau)
        held = self.constraints, self.constraint_data, self.settings
        return self.pin.computeConstraintDynamicsDerivatives(self.model, self.data, *held)


def pinocchio_loop(
    name: str, robot: Robot, held: Held, quantity: BenchmarkedQuantity, states: States
) -> CheckedContender:
    """A loop that stores its results, or (PIN_CALL) one state, again and again."""
    found = PinocchioContacts.of(robot, held)
    call = found.values if quantity.derivative_of is None else found.derivatives
    q, v, tau = states.q, states.v, states.tau
    if name == PIN_CALL:
        last: list[Any] = [None]

        def repeat(count: int) -> None:
            for _ in range(count):
                last[0] = call(q[0], v[0], tau[0])

        return CheckedContender(name, repeat, 1 << 20, results=lambda: single_results(last[0]), tolerance=TOLERANCE)
    results = quantity.empty_results(len(q), {"v": robot.nv, "rows": sum(c.rows for c in held)})

    def run(count: int) -> None:
        for k in range(count):
            for result, x in zip(results, call(q[k], v[k], tau[k]), strict=True):
                result[k] = x

    return CheckedContender(name, run, len(q), results=lambda: results, tolerance=TOLERANCE)


MAKERS = {
    BATCH: featherjet_batch, REFERENCE: featherjet_batch, SINGLE: featherjet_single,
    PIN_LOOP: pinocchio_loop, PIN_CALL: pinocchio_loop,
}  # fmt: skip
WAYS = (BATCH, SINGLE, REFERENCE, PIN_LOOP, PIN_CALL)
