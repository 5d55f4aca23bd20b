"""How the joints' own laws change a quantity: rules, which records name.

With p(q, v) what dampers, springs and friction take (`model.passive`), K = dp/dq and D = dp/dv, both diagonal,
    inverse dynamics    tau = ID(q, v, a) + p                     dtau_dq + K,  dtau_dv + D
    forward dynamics    a = FD(q, v, tau - p)                     da_dq - da_dtau K,  da_dv - da_dtau D
and products and second derivatives follow. A rule makes a `PlainCall`, perhaps with other torques, and adds what is
missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..model.model import Array
from ..model.passive import PassiveJoints

Results = list[Any]


class PlainCall(NamedTuple):
    """A quantity to be computed as if joints had no laws of their own, for the rules that then add them.

    inputs: by name. run(name, inputs): plain results of another quantity, or of this one if the name is None.
    """

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


LawRule = Callable[[PlainCall], Results]


def added(call: PlainCall) -> Results:
    """tau + p, the first result."""
    first, *rest = call.plain()
    return [first + call.force, *rest]


def inverse_derivatives(call: PlainCall) -> Results:
    """dtau_dq + K, and dtau_dv + D if there is one."""
    slopes = call.plain()
    slopes[0] = slopes[0] + diagonal(call.K)
    if "v" in call.inputs:
        slopes[1] = slopes[1] + diagonal(call.D)
    return slopes


def inverse_vjp(call: PlainCall) -> Results:
    w, (by_q, by_v, *rest) = call.inputs["w"], call.plain()
    return [by_q + call.K * w, by_v + call.D * w, *rest]


def torque_slopes(call: PlainCall) -> Results:
    """tau, and the gradients at w = weights tau."""
    tau = call.run("inverse_dynamics", call.inputs)[0] + call.force
    w = call.inputs["weights"] * tau
    by_q, by_v, by_a = call.run("inverse_dynamics_vjp", call.inputs | {"w": w})[:3]
    return [tau, by_q + call.K * w, by_v + call.D * w, by_a]


def inverse_jvp(call: PlainCall) -> Results:
    return [call.plain()[0] + call.along()]


def inverse_hessian(call: PlainCall) -> Results:
    qq, qv, vv, qa = call.plain()
    return [qq, qv, vv + diagonal(call.passive.bend(call.inputs["v"]) * call.inputs["w"]), qa]


def inverse_second_derivatives(call: PlainCall) -> Results:
    qq, qv, vv, qa = call.plain()
    bend = call.passive.bend(call.inputs["v"])
    n = np.arange(bend.shape[-1])
    vv = vv + np.zeros((*bend.shape[:-1], 1, 1, 1))
    vv[..., n, n, n] += bend
    return [qq, qv, vv, qa]


def pushed(call: PlainCall) -> Results:
    """Forward dynamics under what is left of the torques."""
    return call.pushed()


def taken(call: PlainCall) -> Results:
    """The last result, a torque that acts, loses p."""
    *rest, last = call.plain()
    return [*rest, last - call.force]


def forward_derivatives(call: PlainCall) -> Results:
    """Results come in threes: by q, v and tau."""
    found, slopes = [], call.pushed()
    for by_q, by_v, by_tau in zip(slopes[0:6:3], slopes[1:6:3], slopes[2:6:3], strict=False):
        found += [by_q - by_tau * call.K, by_v - by_tau * call.D[..., None, :], by_tau]
    return found + slopes[len(found) :]


def forward_vjp(call: PlainCall) -> Results:
    by_q, by_v, by_tau, *rest = call.pushed()
    return [by_q - call.K * by_tau, by_v - call.D * by_tau, by_tau, *rest]


def forward_jvp(call: PlainCall) -> Results:
    return call.pushed(dtau=call.inputs["dtau"] - call.along())


def forward_hessian(call: PlainCall) -> Results:
    """s = w.a(q, v, tau - p): each derivative by q brings -K times one by tau, each by v -D times one."""
    tau = call.inputs["tau"] - call.force
    qq, qv, vv, qtau, *slopes = call.pushed()
    K, D = call.K, call.D[..., None, :]
    qq = qq - qtau * K - np.swapaxes(qtau * K, -1, -2)
    if call.passive.friction.any():
        by_tau = call.run("forward_dynamics_vjp", call.inputs | {"tau": tau})[2]
        vv = vv - diagonal(call.passive.bend(call.inputs["v"]) * by_tau)
    if slopes:
        da_dq, da_dv, da_dtau, *rest = slopes
        slopes = [da_dq - da_dtau * K, da_dv - da_dtau * D, da_dtau, *rest]
    return [qq, qv - qtau * D, vv, qtau, *slopes]


def diagonal(x: Array) -> Array:
    """Diagonal matrices (..., n, n)."""
    return x[..., None] * np.eye(x.shape[-1])
