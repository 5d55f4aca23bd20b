"""Exact Hessians: the second derivatives of residuals and of next states, which Gauss-Newton leaves out."""

from __future__ import annotations

import numpy as np

from ...algorithms.frames.curvature import Curvature
from ...algorithms.integrators import pulled_back
from ..residuals.signals import KINDS
from .dynamics_hessian import HessianParts, add_both, dynamics_hessian
from .motion import PhaseMotion
from .phase import Blocks, CompiledPhase
from .signal_hessians import SIGNAL_HESSIANS
from .step_hessian import euler_hessian, impact_hessian, runge_kutta_hessian

Array = np.ndarray


def add_second_derivatives(
    stage: CompiledPhase, m: PhaseMotion, costates: Array | None, out: Blocks, results: dict[str, Array]
) -> None:
    """Add the second derivatives of residuals and of next states to the Hessian of a stage's knots.

    costates (..., knots, ndx): those of the next states; None for the last state. results: of the terms' code.
    """
    size = m.size
    at = HessianParts.of(size.nv, size.nu)
    w_a, w_f, H = signals_hessian(stage, m, results, at)
    if stage.bending.tangents:
        H = H + residuals_hessian(stage, m)
    if costates is not None:
        H = H + step_hessian(stage, m, costates, np.zeros_like(m.v) if w_a is None else w_a, w_f)
    elif w_a is not None:
        H = H + dynamics_hessian(m, w_a, None)
    x = slice(0, 2 * size.nv)
    out.Lxx[...] += H[..., x, x]
    if out.Lxu is not None and out.Luu is not None:
        out.Lxu[...] += H[..., x, at.u]
        out.Luu[...] += H[..., at.u, at.u]


def signals_hessian(
    stage: CompiledPhase, m: PhaseMotion, results: dict[str, Array], at: HessianParts
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
                add(H, at, SIGNAL_HESSIANS[signal.kind](m, signal, w))
    if w_f is not None and w_a is None:
        w_a = np.zeros((*w_f.shape[:-1], m.size.nv))
    return w_a, w_f, H


def add(H: Array, at: HessianParts, c: Curvature) -> None:
    H[..., at.q, at.q] += c.qq
    if c.qv is not None:
        add_both(H, at.q, at.v, c.qv)
    if c.vv is not None:
        H[..., at.v, at.v] += c.vv


def residuals_hessian(stage: CompiledPhase, m: PhaseMotion) -> Array:
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


def step_hessian(stage: CompiledPhase, m: PhaseMotion, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """What next states bend by, and accelerations and forces in costs."""
    dt = float(stage.dt[0])
    if m.body.hits:
        return impact_hessian(m, p, w_a, w_f)
    if stage.staged is not None:
        return runge_kutta_hessian(stage.staged, m, dt, p, w_a, w_f)
    return euler_hessian(m, dt, p, w_a, w_f)
