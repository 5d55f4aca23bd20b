"""Exact Hessians: what Gauss-Newton's leave out, the second derivatives of residuals and of next states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.contacts.scene import Contact
from ..contact import Contacts
from ..errors import InputError
from ..evaluate.evaluator import Evaluator
from ..model.model import WORLD
from .dynamics_curvature import Parts, both, dynamics_curvature
from .frame_curvature import Curvature
from .motion import Motion
from .problem.phases import Impact, Phase
from .signal_curvature import CURVES
from .signals import KINDS
from .stage import Blocks, Stage
from .step_curvature import euler_curvature, impact_curvature, pulled_back, runge_kutta_curvature

Array = np.ndarray


def add_curvature(stage: Stage, m: Motion, costates: Array | None, out: Blocks, results: dict[str, Array]) -> None:
    """Add the second derivatives of residuals and of next states to the Hessian of a stage's knots.

    costates (..., knots, ndx): those of the next states; None for the last state. results: of the terms' code.
    """
    size = m.size
    at = Parts.of(size.nv, size.nu)
    w_a, w_f, H = signals_curvature(stage, m, results, at)
    if stage.bending.tangents:
        H = H + residuals_curvature(stage, m)
    if costates is not None:
        H = H + step_curvature(stage, m, costates, np.zeros_like(m.v) if w_a is None else w_a, w_f)
    elif w_a is not None:
        H = H + dynamics_curvature(m, w_a, None)
    x = slice(0, 2 * size.nv)
    out.Lxx[...] += H[..., x, x]
    if out.Lxu is not None and out.Luu is not None:
        out.Lxu[...] += H[..., x, at.u]
        out.Luu[...] += H[..., at.u, at.u]


def signals_curvature(
    stage: Stage, m: Motion, results: dict[str, Array], at: Parts
) -> tuple[Array | None, Array | None, Array]:
    """The weights of accelerations and forces, if costs know them, and the Hessian of all other signals."""
    form, nd = stage.form, 2 * m.size.nv + m.size.nu
    H = np.zeros((*m.x.shape[:-1], nd, nd))
    w_a = w_f = None
    for group in ("still", "moving"):
        start = 0
        for e in getattr(form, group):
            w = results[f"g {group}"][..., start : start + e.tangent]
            start += e.tangent
            signal = next(s for s, known in form.known.items() if known == e)
            if signal.kind == "a":
                w_a = w
            elif signal.kind == "forces":
                w_f = w
            else:
                add(H, at, CURVES[signal.kind](m, signal, w, m.body.order))
    if w_f is not None and w_a is None:
        w_a = np.zeros((*w_f.shape[:-1], m.size.nv))
    return w_a, w_f, H


def add(H: Array, at: Parts, c: Curvature) -> None:
    H[..., at.q, at.q] += c.qq
    if c.qv is not None:
        both(H, at.q, at.v, c.qv)
    if c.vv is not None:
        H[..., at.v, at.v] += c.vv


def residuals_curvature(stage: Stage, m: Motion) -> Array:
    """What residuals bend by as functions of their signals."""
    form, tangents = stage.form, stage.bending.tangents
    nd = form.nd
    B = stage.bending.kernel.values(*stage.given(m))[0]
    own = np.broadcast_to(np.eye(nd), (*B.shape[:-2], nd, nd))
    if form.known:
        G = {e.name: KINDS[s.kind].slopes(m, s) for s, e in form.known.items()}
        stacked = stage.stacked(G, list(form.known.values()))
        own = np.concatenate([own, np.broadcast_to(stacked, (*B.shape[:-2], *stacked.shape[-2:]))], -2)
    return pulled_back(B, own[..., tangents, :])


def step_curvature(stage: Stage, m: Motion, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """What next states bend by, and accelerations and forces in costs."""
    dt = float(stage.dt[0])
    if m.body.hits:
        return impact_curvature(m, p, w_a, w_f)
    if stage.staged is not None:
        return runge_kutta_curvature(stage.staged, m, dt, p, w_a, w_f)
    return euler_curvature(m, dt, p, w_a, w_f)


def refuse_exact(evaluator: Evaluator, x0: Array, phases: Sequence[Phase | Impact]) -> None:
    """Raise where second derivatives of the dynamics are not known."""
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
