"""Checks of what users give a Problem, each with an error that says what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ... import arrays
from ...algorithms.contacts.scene import Contact
from ...arrays import Array
from ...contact import Contacts
from ...errors import InputError, UnknownName
from ...evaluate.evaluator import Evaluator, HasEvaluator
from ...model.configuration import limits, unit_parts
from ...model.model import WORLD, Model
from .phases import Impact, Phase


def compiled_evaluator(robot: HasEvaluator) -> Evaluator:
    """The evaluator of a robot, or one like it that compiles."""
    evaluator = getattr(robot, "evaluator", None)
    if not isinstance(evaluator, Evaluator):
        raise InputError(f"Problem: expected a robot first, such as fj.load(...), got {type(robot).__name__}")
    if evaluator.coordinates is not None:
        raise InputError("Problem: takes states in Pinocchio's convention; use robot.with_convention('pinocchio')")
    if evaluator.tree.coupling is not None:
        raise InputError("Problem: robots with mimicking joints are not supported; lock these joints with robot.lock")
    if evaluator.backend == "compiled":
        return evaluator
    return Evaluator(evaluator.model, "compiled", evaluator.threads, evaluator.unroll)


def checked_state(evaluator: Evaluator, x0: ArrayLike) -> Array:
    """States (..., nx), with quaternions of norm one."""
    model = evaluator.model
    x = np.array(arrays.finite("x0", x0, (model.nq + model.nv,), f"nq + nv = {model.nq + model.nv}"))
    x[..., : model.nq] = unit_parts(model, "x0", x[..., : model.nq])
    return x


def driven_dofs(model: Model, actuated: Sequence[str] | None) -> Array:
    """The dofs that controls drive."""
    names = list(model.joint_names)
    if actuated is None:
        chosen = [k for k, j in enumerate(model.joints) if j.parent != WORLD or j.kind.name != "free"]
    else:
        for name in actuated:
            if name not in names:
                raise UnknownName("joint", name, names)
        chosen = [names.index(name) for name in actuated]
    dofs = [i for k in chosen for i in range(model.v_starts[k], model.v_starts[k] + model.joints[k].kind.manifold.nv)]
    if not dofs:
        raise InputError("actuated: no joint is driven; name at least one")
    return np.array(dofs)


def control_limits(evaluator: Evaluator, driven: Array, given: object) -> tuple[Array, Array]:
    """The least and the largest controls (nu,): those of the joints for True, or a pair that a user gives."""
    if given is True:
        effort = limits(evaluator.space).effort[driven]
        if np.isinf(effort).all():
            raise InputError("limits: no driven joint of this model has an effort limit; give a pair (lower, upper)")
        return -effort, effort
    try:
        lower, upper = (np.broadcast_to(np.asarray(x, float), len(driven)) for x in given)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise InputError(
            f"limits: expected True, False or a pair (lower, upper), each a number or one for each of {len(driven)} "
            f"controls; got {arrays.shortened(given)}"
        ) from None
    if not (lower <= upper).all():
        raise InputError("limits: a lower limit exceeds its upper limit, or one is nan")
    return lower, upper


def refuse_exact(evaluator: Evaluator, x0: Array, phases: Sequence[Phase | Impact]) -> None:
    """Raise for contacts whose second derivatives featherjet does not have."""
    for contacts in [p.contacts for p in phases if p.contacts is not None]:
        for name, c in zip(contacts.names, contacts.core.each, strict=True):
            refuse_contact(name, c, contacts)
        q = x0[..., : evaluator.model.nq].reshape(-1, evaluator.model.nq)[:1]
        J = evaluator.run("contact_jacobian", (q,), contacts=contacts.core)[0]
        if not contacts.damping and np.linalg.matrix_rank(J[0]) < contacts.rows:
            raise InputError(
                f"hessian='exact': contacts {', '.join(contacts.names)} are redundant at x0, so that their forces are "
                "not determined; leave one out, give them damping, or use hessian='gauss-newton'"
            )


def refuse_contact(name: str, contact: Contact, contacts: Contacts) -> None:
    if contact.other != WORLD:
        raise InputError(
            f"hessian='exact': contact {name!r} is between two bodies, and only contacts with the world have exact "
            "second derivatives; use hessian='gauss-newton'"
        )
    if contacts.damping and contact.world_axes:
        raise InputError(
            f"hessian='exact': contact {name!r} is damped and has forces in world axes; give it axes='local', leave "
            "damping out, or use hessian='gauss-newton'"
        )
