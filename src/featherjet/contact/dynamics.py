"""Dynamics with contacts on batches of states: inputs checked, singular systems refused, results named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..arrays import Out, into, outputs
from ..errors import InputError, SingularContacts
from ..model.model import WORLD, Array
from .bilateral import Contacts

if TYPE_CHECKING:
    from ..robot.robot import Robot

CHUNK = 1024  # samples treated at a time, so that a large batch does not fill the memory
SINGULAR = 1e-12  # a margin of the contacts' inverse inertia this small is rounding error
# Their last two results are the margins of contacts and of the mass matrix.
SOLVED = {
    "constrained_dynamics", "constrained_dynamics_derivatives", "impulse_dynamics", "impulse_dynamics_derivatives",
}  # fmt: skip


class ConstrainedDynamics(NamedTuple):
    """Accelerations (..., nv) and contact forces (..., rows)."""

    a: Array
    forces: Array


class ConstrainedDynamicsDerivatives(NamedTuple):
    """Partials of accelerations (..., nv, nv) and of contact forces lambda (..., rows, nv)."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array
    dlambda_dq: Array
    dlambda_dv: Array
    dlambda_dtau: Array


class ImpulseDynamics(NamedTuple):
    """Velocities after the impact (..., nv) and impulses (..., rows) [N s]."""

    v: Array
    impulses: Array


class ImpulseDynamicsDerivatives(NamedTuple):
    """Partials of the velocities after the impact (..., nv, nv) and of impulses lambda (..., rows, nv)."""

    dv_dq: Array
    dv_dv: Array
    dlambda_dq: Array
    dlambda_dv: Array


class ContactInverseDynamics(NamedTuple):
    """Torques (..., nv) and the contact forces (..., rows) they go with."""

    tau: Array
    forces: Array


def constrained_dynamics(
    robot: Robot, contacts: Contacts, fext: Any, out: Out = None, **state: ArrayLike
) -> ConstrainedDynamics:
    return ConstrainedDynamics(*_run(robot, "constrained_dynamics", contacts, state, fext, out)[:2])


def constrained_dynamics_derivatives(
    robot: Robot, contacts: Contacts, fext: Any, out: Out = None, **state: ArrayLike
) -> ConstrainedDynamicsDerivatives:
    found = _run(robot, "constrained_dynamics_derivatives", contacts, state, fext, out)
    return ConstrainedDynamicsDerivatives(*found[:6])


def impulse_dynamics(robot: Robot, contacts: Contacts, restitution: float, **state: ArrayLike) -> ImpulseDynamics:
    given = state | {"restitution": _restitution(restitution)}
    jump, impulses, *_ = _run(robot, "impulse_dynamics", contacts, given)
    return ImpulseDynamics(np.asarray(state["v"]) + jump, impulses)


def impulse_dynamics_derivatives(
    robot: Robot, contacts: Contacts, restitution: float, **state: ArrayLike
) -> ImpulseDynamicsDerivatives:
    given = state | {"restitution": _restitution(restitution)}
    by_q, by_v, *forces = _run(robot, "impulse_dynamics_derivatives", contacts, given)
    return ImpulseDynamicsDerivatives(by_q, np.eye(robot.nv) + by_v, *forces[:2])


def contact_jacobian(robot: Robot, contacts: Contacts, q: ArrayLike) -> Array:
    return _run(robot, "contact_jacobian", contacts, {"q": q})[0]


def contact_inverse_dynamics(
    robot: Robot, contacts: Contacts, forces: ArrayLike | None, fext: Any, **state: ArrayLike
) -> ContactInverseDynamics:
    """With the forces given, or else with the smallest ones that leave nothing to do for a free root joint."""
    if forces is None:
        forces = _smallest(robot, contacts, fext, **state)
    given = {**state, "forces": forces}
    tau = _run(robot, "contact_inverse_dynamics", contacts, given, fext)[0]
    return ContactInverseDynamics(tau, np.asarray(forces, float))


def _smallest(robot: Robot, contacts: Contacts, fext: Any, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Forces of least norm that make the torques at free roots vanish."""
    model = robot.model
    roots = [k for k, j in enumerate(model.joints) if j.parent == WORLD and j.kind.name == "free"]
    dofs = [i for k in roots for i in range(model.v_starts[k], model.v_starts[k] + 6)]
    tau = robot.inverse_dynamics(q, v, a, fext)
    A = np.swapaxes(contact_jacobian(robot, contacts, q)[..., dofs], -1, -2)
    forces = (np.linalg.pinv(A, rcond=1e-10) @ tau[..., dofs, None])[..., 0]
    left = np.abs((A @ forces[..., None])[..., 0] - tau[..., dofs])
    if left.size and (left > 1e-8 * np.maximum(np.abs(tau[..., dofs]).max(-1, keepdims=True), 1e-3)).any():
        raise InputError(
            f"contacts {', '.join(contacts.names)} cannot give the base this acceleration: {left.max():.3g} N or N m "
            "are left. Give `forces` to see all torques, or use more contacts"
        )
    return np.broadcast_to(forces, (*tau.shape[:-1], contacts.rows))


def _restitution(r: float) -> Array:
    """As an input of one number."""
    value = arrays.numbers("restitution", r, (), "a number")
    if value.shape != () or not 0 <= value <= 1:
        raise InputError(f"restitution: expected a number from 0 (none) to 1 (all), got {r!r}")
    return value[None]


def _run(
    robot: Robot, quantity: str, contacts: Contacts, given: dict[str, ArrayLike], fext: Any = None, out: Out = None
) -> tuple[Array, ...]:
    """A quantity on any batch, in the robot's convention; SOLVED ones are followed by their margins.

    As it is written, chunk by chunk; compiled, in one go, and into `out` if that has one batch axis.
    """
    _check_robot(robot, contacts)
    inputs = {name: _checked(robot, contacts, name, x) for name, x in given.items()}
    if fext is not None:
        inputs["fext"] = arrays.numbers("fext", fext, (robot.njoints, 6), f"njoints = {robot.njoints}, force, moment")
    cores = {name: 2 if name == "fext" else 1 for name in inputs}
    batch = arrays.common_batch({name: (x, cores[name]) for name, x in inputs.items()})
    compiled = robot.backend == "compiled"
    direct = out is not None and compiled and len(batch) == 1 and robot.convention == "pinocchio"
    places: dict[str, Any] = {"out": outputs(out)} if direct else {}
    settings = {"settings": contacts.settings} if contacts.settings.size else {}
    total = max(int(np.prod(batch)), 1)
    chunk = total if compiled else CHUNK
    run = robot._specialise(robot._touching)

    def plain(quantity: str, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
        """In our coordinates; singular systems are refused."""
        flat = {}
        for name, x in inputs.items():
            core = x.shape[x.ndim - cores[name] :]
            flat[name] = np.broadcast_to(x, (*batch, *core)).reshape(-1, *core)
        pieces = []
        for start in range(0, total, chunk):
            part = {name: x[start : start + chunk] for name, x in flat.items()} | settings
            results = run(quantity, part, contacts=contacts.outline, **places)
            if quantity in SOLVED:
                robot._refuse_singular(results[-1], start, batch)
                _refuse_singular(contacts, results[-2], start, batch)
            pieces.append(results)
        whole = pieces[0] if len(pieces) == 1 else map(np.concatenate, zip(*pieces, strict=True))
        return tuple(r.reshape((*batch, *r.shape[1:])) for r in whole)

    results = robot._translated(plain, quantity, inputs)
    if out is not None and not direct:
        into(out, results[: len(outputs(out))])
    return results


def _check_robot(robot: Robot, contacts: Contacts) -> None:
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts: expected fj.Contacts(robot, [...]), got {type(contacts).__name__}")
    ours, theirs = robot.model, contacts.model
    if ours is not theirs and (ours.joints is not theirs.joints or ours.frames is not theirs.frames):
        raise InputError(f"contacts: made for another robot ({theirs.name!r}); make them with this one")


def _checked(robot: Robot, contacts: Contacts, name: str, x: ArrayLike) -> Array:
    if name == "restitution":
        return np.asarray(x)
    if name == "forces":
        return arrays.numbers(name, x, (contacts.rows,), f"rows = {contacts.rows}")
    return robot._q(name, x) if name == "q" else robot._v(name, x)


def _refuse_singular(contacts: Contacts, margins: Array, start: int, batch: tuple[int, ...]) -> None:
    bad = ~(margins > SINGULAR)
    if bad.any():
        sample = int(np.argwhere(bad)[0, 0])
        row = int(np.flatnonzero(bad[sample])[-1])
        name = next(n for n, at in zip(contacts.names, contacts.core.rows, strict=True) if row < at.stop)
        where = f" at sample {tuple(map(int, np.unravel_index(start + sample, batch)))}" if batch else ""
        raise SingularContacts(
            f"contacts {', '.join(contacts.names)}: singular{where}: {name!r} cannot move where it is "
            "held, or others hold it there already, so that its force is not determined. Leave a contact out, or give "
            "Contacts a damping, such as 1e-6"
        )
