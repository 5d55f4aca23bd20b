"""Dynamics with contacts on batches of states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ContactInverseDynamics,
    ImpulseDynamics,
    ImpulseDynamicsDerivatives,
)
from ..arrays import Out
from ..errors import InputError, SingularContacts
from ..evaluate.evaluator import Evaluator, SmallMargin
from ..model.model import WORLD, Array
from .bilateral import Contacts


def constrained_dynamics(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, tau: ArrayLike, contacts: Contacts, fext: Any, out: Out
) -> ConstrainedDynamics:
    return ConstrainedDynamics._make(run(evaluator, "constrained_dynamics", (q, v, tau), contacts, fext, out))


def constrained_dynamics_derivatives(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, tau: ArrayLike, contacts: Contacts, fext: Any, out: Out
) -> ConstrainedDynamicsDerivatives:
    found = run(evaluator, "constrained_dynamics_derivatives", (q, v, tau), contacts, fext, out)
    return ConstrainedDynamicsDerivatives._make(found)


def impulse_dynamics(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float, out: Out
) -> ImpulseDynamics:
    jump, impulses = run(evaluator, "impulse_dynamics", (q, v, _restitution(restitution)), contacts)
    return ImpulseDynamics._make(arrays.copied(out, (np.asarray(v) + jump, impulses)))


def impulse_dynamics_derivatives(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float, out: Out
) -> ImpulseDynamicsDerivatives:
    given = (q, v, _restitution(restitution))
    found = run(evaluator, "impulse_dynamics_derivatives", given, contacts, None, out)
    diagonal = np.arange(evaluator.model.nv)
    found[1][..., diagonal, diagonal] += 1.0  # v+ = v + jump
    return ImpulseDynamicsDerivatives._make(found)


def contact_jacobian(evaluator: Evaluator, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
    return run(evaluator, "contact_jacobian", (q,), contacts, None, out)[0]


def contact_inverse_dynamics(
    evaluator: Evaluator,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    contacts: Contacts,
    forces: ArrayLike | None,
    fext: Any,
    out: Out,
) -> ContactInverseDynamics:
    """Torques for the given forces, or for the smallest forces that leave no torque at a free root joint."""
    if forces is None:
        forces = _smallest(evaluator, q, v, a, contacts, fext)
    tau = run(evaluator, "contact_inverse_dynamics", (q, v, a, forces), contacts, fext)[0]
    return ContactInverseDynamics._make(arrays.copied(out, (tau, np.asarray(forces, float))))


def _smallest(evaluator: Evaluator, q: ArrayLike, v: ArrayLike, a: ArrayLike, contacts: Contacts, fext: Any) -> Array:
    """The forces of least norm for which the torques at free roots vanish."""
    model = evaluator.model
    roots = [k for k, j in enumerate(model.joints) if j.parent == WORLD and j.kind.name == "free"]
    dofs = [i for k in roots for i in range(model.v_starts[k], model.v_starts[k] + 6)]
    tau = evaluator("inverse_dynamics", q, v, a, fext=fext)
    A = np.swapaxes(contact_jacobian(evaluator, q, contacts)[..., dofs], -1, -2)
    forces = (np.linalg.pinv(A, rcond=1e-10) @ tau[..., dofs, None])[..., 0]
    left = np.abs((A @ forces[..., None])[..., 0] - tau[..., dofs])
    if left.size and (left > 1e-8 * np.maximum(np.abs(tau[..., dofs]).max(-1, keepdims=True), 1e-3)).any():
        raise InputError(
            f"contacts {', '.join(contacts.names)} cannot give the base this acceleration: {left.max():.3g} N or N m "
            "remain. Give `forces` to see all torques, or add contacts"
        )
    return np.broadcast_to(forces, (*tau.shape[:-1], contacts.rows))


def _restitution(r: float) -> Array:
    """The coefficient of restitution, checked, as an array (1,)."""
    value = arrays.finite("restitution", r, (), "a number")
    if value.shape != () or not 0 <= value <= 1:
        raise InputError(f"restitution: expected a number from 0 (none) to 1 (all), got {r!r}")
    return value[None]


def options_of(evaluator: Evaluator, contacts: Contacts) -> tuple[dict[str, Any], Array | None]:
    """Contacts as options of quantities, and their settings if these are inputs; raises for another robot's."""
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts: expected fj.Contacts(robot, [...]), got {type(contacts).__name__}")
    model, other = evaluator.model, contacts.model
    if not model.same_robot(other):
        raise InputError(f"contacts: these belong to another robot ({other.name!r}); make them with this one")
    if evaluator.tree.coupling is None:
        return {"contacts": contacts.core}, None
    # compiled for these frames; places and gains are inputs of the code
    return {"contacts": contacts.outline}, contacts.settings if contacts.settings.size else None


def run(
    evaluator: Evaluator, quantity: str, given: tuple, contacts: Contacts, fext: Any = None, out: Out = None
) -> tuple[Array, ...]:
    """A quantity with contacts; one state by code that has run before takes the shortest way."""
    ready = contacts.ready.get((quantity, fext is not None)) if type(contacts) is Contacts else None
    if ready is not None and ready[0] is evaluator:
        inputs = given if fext is None else (*given, fext)
        results = ready[1](*inputs) if out is None else ready[1](*inputs, out=out)
        if results is not None:
            return results
    options, settings = options_of(evaluator, contacts)
    try:
        results = evaluator.run(quantity, given, fext, out, settings, **options)
        if evaluator.tree.coupling is None:
            contacts.remember(evaluator, quantity, fext is not None, results)
        return results
    except SmallMargin as margin:
        held = zip(contacts.names, contacts.core.rows, strict=True)
        name = next(n for n, at in held if margin.row < at.stop)
        raise SingularContacts(
            f"contacts {', '.join(contacts.names)}: singular{margin.where}: the force at {name!r} is not "
            "determined: it cannot move there anyway, or other contacts already fix it. Remove a contact, or give "
            "Contacts a damping, such as 1e-6"
        ) from None
