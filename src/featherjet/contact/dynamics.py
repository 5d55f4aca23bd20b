"""Dynamics with contacts on batches of states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.quantities import FEXT, quantity
from ..algorithms.results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ContactInverseDynamics,
    ImpulseDynamics,
    ImpulseDynamicsDerivatives,
)
from ..arrays import Out, copied
from ..errors import ContactWarning, InputError, SingularContacts, warn
from ..evaluate.evaluator import Evaluator
from ..evaluate.margins import LEAST_MARGIN, SmallMargin
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
    jump, impulses = run(evaluator, "impulse_dynamics", (q, v, restitution_of(restitution)), contacts)
    return ImpulseDynamics._make(arrays.copied(out, (arrays.numbers(v) + jump, impulses)))


def impulse_dynamics_derivatives(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float, out: Out
) -> ImpulseDynamicsDerivatives:
    given = (q, v, restitution_of(restitution))
    found = run(evaluator, "impulse_dynamics_derivatives", given, contacts, None, out)
    if arrays.is_lazy(found[1]):
        return ImpulseDynamicsDerivatives(found[0], found[1] + np.eye(evaluator.model.nv), *found[2:])
    diagonal = np.arange(evaluator.model.nv)
    found[1][..., diagonal, diagonal] += 1.0  # v+ = v + jump
    return ImpulseDynamicsDerivatives._make(found)


def contact_jacobian(evaluator: Evaluator, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
    return run(evaluator, "contact_jacobian", (q,), contacts, None, out)[0]


def delassus(evaluator: Evaluator, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
    return run(evaluator, "delassus", (q,), contacts, None, out)[0]


def contact_inertia(evaluator: Evaluator, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
    """The inverse of the Delassus matrix, scaled to ones on its diagonal before its smallest eigenvalue is judged."""
    G = delassus(evaluator, q, contacts)
    if arrays.is_lazy(G):
        raise InputError("contact_inertia: not of Dask arrays; map it over blocks, or invert robot.delassus")
    scale = np.sqrt(np.maximum(np.diagonal(G, axis1=-2, axis2=-1), np.finfo(G.dtype).tiny))
    values, vectors = np.linalg.eigh(G / scale[..., None] / scale[..., None, :])
    vectors = vectors / scale[..., None]
    bad = values[..., 0] <= LEAST_MARGIN["contacts"]
    if bad.any():
        row = int(np.abs(vectors[bad][0, :, 0]).argmax())
        refuse("contact_inertia", contacts, SmallMargin("contacts", bad, row))
        values = np.where(bad[..., None], np.nan, values)
    return copied(out, ((vectors / values[..., None, :]) @ np.swapaxes(vectors, -1, -2),))[0]


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
        if any(map(arrays.is_lazy, (q, v, a, fext))):
            raise InputError("contact_inverse_dynamics: of Dask arrays it needs `forces`; it finds none itself")
        forces = _smallest(evaluator, q, v, a, contacts, fext)
    tau = run(evaluator, "contact_inverse_dynamics", (q, v, a, forces), contacts, fext)[0]
    return ContactInverseDynamics._make(arrays.copied(out, (tau, arrays.numbers(forces).astype(float, copy=False))))


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


def restitution_of(r: float) -> Array:
    """The coefficient of restitution, checked, as an array (1,)."""
    value = arrays.finite("restitution", r, (), "a number")
    if value.shape != () or not 0 <= value <= 1:
        raise InputError(f"restitution: expected a number from 0 (none) to 1 (all), got {r!r}")
    return value[None]


def options_of(evaluator: Evaluator, contacts: Contacts | None) -> tuple[dict[str, Any], Array | None]:
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
    evaluator: Evaluator, name: str, given: tuple, contacts: Contacts, fext: Any = None, out: Out = None
) -> tuple[Array, ...]:
    """A quantity with contacts; one state, or a short batch, by code that has run before takes the shortest way."""
    ready = contacts.ready.get(evaluator) if type(contacts) is Contacts else None
    call = None if ready is None else ready.calls.get((name, fext is None))
    if call is not None:
        inputs = given if fext is None else (*given, fext)
        results = call(*inputs) if out is None else call(*inputs, out=out)
        if results is not None:
            return results
    options, settings = options_of(evaluator, contacts)
    if ready is None:
        contacts.ready.clear()
        contacts.ready[evaluator] = evaluator.ready.of(options["contacts"])
    try:
        return evaluator.run(name, given, fext, out, settings, **options)
    except SmallMargin as margin:
        refuse(name, contacts, margin)
        return copied(out, _elsewhere(evaluator, name, given, contacts, fext, margin.samples))


def refuse(name: str, contacts: Contacts, margin: SmallMargin) -> None:
    """Raise if all samples are singular, else warn."""
    error = singular(name, contacts, margin)
    if margin.samples.all():
        raise error from None
    warn(ContactWarning(f"{error}. Results are NaN there"))


def singular(name: str, contacts: Contacts, margin: SmallMargin) -> SingularContacts:
    """The error that names a contact and samples."""
    held = zip(contacts.names, contacts.core.rows, strict=True)
    first = next(n for n, at in held if margin.row < at.stop)
    many = int(margin.samples.sum())
    where = f"{margin.where}{f' and {many - 1} more' if many > 1 else ''}"
    why = (
        f"no force at {first!r} makes it move as required: it cannot move so, or contradicts other contacts. Remove a "
        "contact, make velocities agree with the contacts"
    )
    if name == "contact_inertia":
        why = (
            f"the force at {first!r} is not determined, nor are inertias: it cannot move there anyway, or other "
            "contacts already fix it. Remove a contact"
        )
    elif name not in ("constrained_dynamics", "impulse_dynamics"):
        why = (
            f"there are no derivatives: in neighbouring states no force at {first!r} makes it move as required, or the "
            "force jumps, since here it cannot move there (a limb is stretched out), or contacts are too close to each "
            "other for rounding to tell (some 0.01 mm). Remove a contact"
        )
    return SingularContacts(
        f"contacts {', '.join(contacts.names)}: singular{where}: {why}, or give Contacts a damping, such as 1e-6"
    )


def _elsewhere(
    evaluator: Evaluator, name: str, given: tuple, contacts: Contacts, fext: Any, samples: Array
) -> tuple[Array, ...]:
    """The results of all other samples, and NaN."""
    inputs = [*zip(given, quantity(name).inputs, strict=True), *([] if fext is None else [(fext, FEXT)])]
    rest = []
    for x, record in inputs:
        x = arrays.numbers(x)
        core = x.shape[x.ndim - len(record.axes) :]
        rest.append(np.broadcast_to(x, (*samples.shape, *core))[~samples])
    found = run(evaluator, name, tuple(rest[: len(given)]), contacts, None if fext is None else rest[-1])
    results = tuple(np.full((*samples.shape, *x.shape[1:]), np.nan, x.dtype) for x in found)
    for whole, x in zip(results, found, strict=True):
        whole[~samples] = x
    return results
