"""Exact Hessians: the second derivatives of residuals and of next states, which Gauss-Newton leaves out."""

from __future__ import annotations

import numpy as np

from ...algorithms.integrators import pulled_back
from ..horizon import Quadratic
from ..residuals.signals import KINDS
from .dynamics_hessian import HessianParts, add_both, dynamics_hessian
from .motion import PhaseMotion
from .phase import CompiledPhase
from .signal_hessians import SIGNAL_HESSIANS
from .step_hessian import euler_hessian, impact_hessian, runge_kutta_hessian

Array = np.ndarray


def add_second_derivatives(
    phase: CompiledPhase, m: PhaseMotion, costates: Array, out: Quadratic, results: dict[str, Array]
) -> None:
    """Add the second derivatives of residuals and of next states to the Hessians of a phase's knots.

    costates (..., T + 1, ndx): of the horizon; results: of `CompiledPhase.write_derivatives`.
    """
    at = HessianParts.of(m.size.nv, m.size.nu)
    w_a, w_f, H = signals_hessian(phase, m, results, at)
    if phase.residual_hessians.tangents:
        H = H + residuals_hessian(phase, m)
    if not phase.is_end_of(out):
        p = costates[..., phase.start + 1 : phase.stop + 1, :]
        H = H + step_hessian(phase, m, p, np.zeros_like(m.v) if w_a is None else w_a, w_f)
    elif w_a is not None:
        H = H + dynamics_hessian(m, w_a, None)
    x, views = slice(0, 2 * m.size.nv), phase.derivatives(out)
    views["Lxx"][...] += H[..., x, x]
    if "Luu" in views:
        views["Lxu"][...] += H[..., x, at.u]
        views["Luu"][...] += H[..., at.u, at.u]


def signals_hessian(
    phase: CompiledPhase, m: PhaseMotion, results: dict[str, Array], at: HessianParts
) -> tuple[Array | None, Array | None, Array]:
    """The weights of accelerations and forces, if costs depend on them, and the Hessian of all other signals."""
    terms = phase.terms
    H = np.zeros((*m.x.shape[:-1], terms.nd, terms.nd))
    w_a = w_f = None
    for name, group in terms.groups.items():
        start = 0
        for e in group:
            w = results[f"g {name}"][..., start : start + e.tangent]
            start += e.tangent
            signal = next(s for s, entry in terms.signals.items() if entry == e)
            if signal.kind == "a":
                w_a = w
            elif signal.kind == "forces":
                w_f = w
            else:
                c = SIGNAL_HESSIANS[signal.kind](m, signal, w)
                H[..., at.q, at.q] += c.qq
                if c.qv is not None:
                    add_both(H, at.q, at.v, c.qv)
                if c.vv is not None:
                    H[..., at.v, at.v] += c.vv
    if w_f is not None and w_a is None:
        w_a = np.zeros((*w_f.shape[:-1], m.size.nv))
    return w_a, w_f, H


def residuals_hessian(phase: CompiledPhase, m: PhaseMotion) -> Array:
    """The Hessian (..., nd, nd) that costs have because residuals are not linear in their signals."""
    terms, tangents = phase.terms, phase.residual_hessians.tangents
    nd = terms.nd
    B = phase.residual_hessians.kernel.values(*terms.inputs_at(m, phase.data))[0]
    slopes = np.broadcast_to(np.eye(nd), (*B.shape[:-2], nd, nd))
    if terms.signals:
        G = {e.name: KINDS[s.kind].slopes(m, s) for s, e in terms.signals.items()}
        stacked = phase.stacked(G, list(terms.signals.values()))
        slopes = np.concatenate([slopes, np.broadcast_to(stacked, (*B.shape[:-2], *stacked.shape[-2:]))], -2)
    return pulled_back(B, slopes[..., tangents, :])


def step_hessian(phase: CompiledPhase, m: PhaseMotion, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The Hessian (..., nd, nd) of p.next + w_a.a + w_f.f."""
    dt = float(phase.dt[0])
    if m.robot.hits:
        return impact_hessian(m, p, w_a, w_f)
    if phase.runge_kutta is not None:
        return runge_kutta_hessian(phase.runge_kutta, m, dt, p, w_a, w_f)
    return euler_hessian(m, dt, p, w_a, w_f)
