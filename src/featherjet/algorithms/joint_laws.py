"""How the joints' own laws change a quantity: rules, which records name.

With p(q, v) what dampers, springs and friction take (`model.passive`), K = dp/dq and D = dp/dv, both diagonal,
    inverse dynamics    tau = ID(q, v, a) + p                     dtau_dq + K,  dtau_dv + D
    forward dynamics    a = FD(q, v, tau - p)                     da_dq - da_dtau K,  da_dv - da_dtau D
and products and second derivatives follow. A rule computes the plain quantity at an `At`, perhaps with other torques,
and adds what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..model.model import Array
from ..model.passive import PassiveJoints

Results = list[Any]


class At(NamedTuple):
    """Where a quantity is computed: its inputs by name; run(name or None for itself, inputs) gives plain results."""

    passive: PassiveJoints
    inputs: dict[str, Array]
    run: Callable[..., Results]

    @property
    def force(self) -> Array:
        return self.passive.force(self.inputs["q"], self.inputs.get("v"))

    @property
    def K(self) -> Array:
        return self.passive.by_q

    @property
    def D(self) -> Array:
        return self.passive.by_v(self.inputs["v"])

    def plain(self, **changed: Array) -> Results:
        return list(self.run(None, self.inputs | changed))

    def pushed(self, **changed: Array) -> Results:
        """The plain results under what is left of the torques."""
        return self.plain(tau=self.inputs["tau"] - self.force, **changed)

    def along(self) -> Array:
        """The change of p along dq and dv."""
        return self.K * self.inputs["dq"] + self.D * self.inputs["dv"]


LawRule = Callable[[At], Results]


def added(at: At) -> Results:
    """tau + p, the first result."""
    first, *rest = at.plain()
    return [first + at.force, *rest]


def inverse_derivatives(at: At) -> Results:
    """dtau_dq + K, and dtau_dv + D if there is one."""
    slopes = at.plain()
    slopes[0] = slopes[0] + diagonal(at.K)
    if "v" in at.inputs:
        slopes[1] = slopes[1] + diagonal(at.D)
    return slopes


def inverse_vjp(at: At) -> Results:
    w, (by_q, by_v, *rest) = at.inputs["w"], at.plain()
    return [by_q + at.K * w, by_v + at.D * w, *rest]


def torque_slopes(at: At) -> Results:
    """tau, and the gradients at w = weights tau."""
    tau = at.run("inverse_dynamics", at.inputs)[0] + at.force
    w = at.inputs["weights"] * tau
    by_q, by_v, by_a = at.run("inverse_dynamics_vjp", at.inputs | {"w": w})[:3]
    return [tau, by_q + at.K * w, by_v + at.D * w, by_a]


def inverse_jvp(at: At) -> Results:
    return [at.plain()[0] + at.along()]


def inverse_hessian(at: At) -> Results:
    qq, qv, vv, qa = at.plain()
    return [qq, qv, vv + diagonal(at.passive.bend(at.inputs["v"]) * at.inputs["w"]), qa]


def inverse_second_derivatives(at: At) -> Results:
    qq, qv, vv, qa = at.plain()
    bend = at.passive.bend(at.inputs["v"])
    n = np.arange(bend.shape[-1])
    vv = vv + np.zeros((*bend.shape[:-1], 1, 1, 1))
    vv[..., n, n, n] += bend
    return [qq, qv, vv, qa]


def pushed(at: At) -> Results:
    """Forward dynamics under what is left of the torques."""
    return at.pushed()


def taken(at: At) -> Results:
    """The last result, a torque that acts, loses p."""
    *rest, last = at.plain()
    return [*rest, last - at.force]


def forward_derivatives(at: At) -> Results:
    """Results come in threes: by q, v and tau."""
    found, slopes = [], at.pushed()
    for by_q, by_v, by_tau in zip(slopes[0:6:3], slopes[1:6:3], slopes[2:6:3], strict=False):
        found += [by_q - by_tau * at.K, by_v - by_tau * at.D[..., None, :], by_tau]
    return found + slopes[len(found) :]


def forward_vjp(at: At) -> Results:
    by_q, by_v, by_tau, *rest = at.pushed()
    return [by_q - at.K * by_tau, by_v - at.D * by_tau, by_tau, *rest]


def forward_jvp(at: At) -> Results:
    return at.pushed(dtau=at.inputs["dtau"] - at.along())


def forward_hessian(at: At) -> Results:
    """s = w.a(q, v, tau - p): each derivative by q brings -K times one by tau, each by v -D times one."""
    tau = at.inputs["tau"] - at.force
    qq, qv, vv, qtau, *slopes = at.pushed()
    K, D = at.K, at.D[..., None, :]
    qq = qq - qtau * K - np.swapaxes(qtau * K, -1, -2)
    if at.passive.friction.any():
        by_tau = at.run("forward_dynamics_vjp", at.inputs | {"tau": tau})[2]
        vv = vv - diagonal(at.passive.bend(at.inputs["v"]) * by_tau)
    if slopes:
        da_dq, da_dv, da_dtau, *rest = slopes
        slopes = [da_dq - da_dtau * K, da_dv - da_dtau * D, da_dtau, *rest]
    return [qq, qv - qtau * D, vv, qtau, *slopes]


def diagonal(x: Array) -> Array:
    """Diagonal matrices (..., n, n)."""
    return x[..., None] * np.eye(x.shape[-1])
