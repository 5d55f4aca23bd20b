"""Rules that translate quantities to the coordinates of another convention.

The standard velocities are v = B(q) u, accelerations a = B du + c with c = Gamma(v, v), and forces tau = B^-T tau_u
(coordinates.py). A rule translates a quantity's standard results. Two general rules serve most quantities: `axes`
applies B^T along every axis over degrees of freedom, or B^-1 to those of motion, and `derivatives` differentiates that.
Along a direction B d of the standard tangent space, the inputs change by

    dv = Gamma(v, .),   da = Gamma(B du, .) + dc,   dtau = -tau.Gamma,   dc = dc/dq at constant u

A result y with y_u = B^T y gains y.Gamma, and one with y_u = B^-1 y loses Gamma(y, .); of an acceleration, c and its
derivatives, dc and K = dc/dv = Gamma(., v) + Gamma(v, .), are subtracted first. For example

    dtau_u/dq = B^T [ID_q + ID_v dv + M da + tau.Gamma] B,        dtau_u/du = B^T [ID_v + M K] B

docs/conventions.md has the derivation. Contact forces are the same numbers in every convention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..model.model import Array
from .coordinates import Rate, VelocityBlock, VelocityMap, by_first, by_second, of_force

Inputs = Mapping[str, Array]
Results = tuple[Array, ...]
Run = Callable[..., Results]  # (quantity, inputs, **options) -> results in standard coordinates
Rule = Callable[..., Results]  # (Call, *standard results) -> the convention's


class Shaped(Protocol):
    """The facts about a result that rules read: its axes ("v": degrees of freedom), and what turns along them."""

    @property
    def axes(self) -> tuple[Any, ...]: ...

    @property
    def motion(self) -> bool: ...

    @property
    def acceleration(self) -> bool: ...


class Translatable(Protocol):
    """The facts about a quantity that rules read."""

    @property
    def results(self) -> Sequence[Shaped]: ...

    @property
    def base(self) -> Any: ...

    @property
    def by(self) -> tuple[str, ...]: ...

    @property
    def rule(self) -> Rule | None: ...


class Changed(Protocol):
    """Coordinates with velocities u of their own, v = B u: a convention's, or a user's."""

    @property
    def convention(self) -> str: ...

    def to_standard(self, given: Mapping[str, Array]) -> tuple[dict[str, Array], VelocityMap]: ...

    def velocity_map(self, q: Array) -> VelocityMap: ...


class Call(NamedTuple):
    """One evaluation of a quantity: its inputs in standard coordinates, and all that rules need."""

    quantity: Translatable
    run: Run
    inputs: dict[str, Array]
    B: VelocityMap
    options: dict[str, Any]
    coordinates: Changed

    def value(self, quantity: Any, **changed: Array) -> Results:
        """Another quantity at the same state, with some inputs replaced."""
        return self.run(quantity, self.inputs | changed, **self.options)

    @property
    def v(self) -> Array:
        return self.inputs["v"]

    def rates(self) -> list[Rate]:
        return self.B.rates(self.v)


def translated(coordinates: Changed, run: Run, quantity: Translatable, inputs: Inputs, **options: Any) -> Results:
    """A quantity in the convention's coordinates; `run` computes it in standard ones."""
    if quantity.rule is None:
        raise InputError(
            f"{quantity} is not available in the convention {coordinates.convention!r}; "
            "use robot.with_convention('pinocchio')"
        )
    given, B = coordinates.to_standard(inputs)
    at = Call(quantity, run, given, B, options, coordinates)
    if not B.blocks:
        return tuple(run(quantity, given, **options))
    if isinstance(quantity.rule, Entering):
        at = at._replace(inputs=quantity.rule.entered(at))
    return quantity.rule(at, *run(quantity, at.inputs, **options))


# The two general rules. Unnamed results (margins) come last and stay as they are.


def axes(at: Call, *results: Array) -> Results:
    """B^T along every axis over degrees of freedom, or B^-1 for results that are motions."""
    named = len(at.quantity.results)
    turned = (turn(at.B, r.axes, x, r.motion) for r, x in zip(at.quantity.results, results, strict=False))
    return *turned, *results[named:]


def turn(B: VelocityMap, names: tuple[Any, ...], x: Array, motion: bool, last: bool | None = None) -> Array:
    """x with B^-1 (motion) or B^T along its axes; `last` is whether the last one is of motion, if it differs."""
    for k, name in enumerate(names):
        if name in ("v", "dofs"):
            own = motion if last is None or k < len(names) - 1 else last
            x = B.along(x, k - len(names), len(names), own, name == "dofs")
    return x


def derivatives(at: Call, *results: Array) -> Results:
    """Derivatives of each result of `quantity.base` by each of `quantity.by`, in this order."""
    base, by = at.quantity.base, at.quantity.by
    values = at.value(base) if any("v" in r.axes for r in base.results) else (None,) * len(base.results)
    none = np.zeros(0)
    rates = at.rates() if "v" in by else [Rate(b, none, none, none) for b in at.B.blocks]
    out: list[Array] = []
    for k, (result, value) in enumerate(zip(base.results, values, strict=False)):
        group = dict(zip(by, results[k * len(by) : (k + 1) * len(by)], strict=True))
        if result.axes:
            moved = along_inputs(at, rates, group)
        else:  # the derivatives of a number are rows
            rows = along_inputs(at, rates, {name: x[..., None, :] for name, x in group.items()})
            moved = {name: x[..., 0, :] for name, x in rows.items()}
        if value is not None and "v" in result.axes:
            along_result(at, rates, moved, value, result)
        out += (turn(at.B, (*result.axes, "v"), moved[name], result.motion, name == "tau") for name in by)
    return *out, *results[len(out) :]


Rates = Sequence[Rate]


def along_inputs(at: Call, rates: Rates, by: Mapping[str, Array]) -> dict[str, Array]:
    """Derivatives by q and v, where v, a and tau depend on q, u, du and tau_u; before B is applied."""
    out = {name: np.array(x) for name, x in by.items()}
    du = at.inputs["a"] - at.B.rate(at.v) if "a" in by else None  # B du/dt
    for b, dv, K, dc in rates:
        if "v" in by:
            out["q"][..., b.v] += by["v"][..., b.v] @ dv
            if du is not None:
                out["q"][..., b.v] += by["a"][..., b.v] @ (by_second(b, du) + dc)
                out["v"][..., b.v] += by["a"][..., b.v] @ K
        if "tau" in by:
            out["q"][..., b.v] -= by["tau"][..., b.v] @ of_force(b, at.inputs["tau"])
    return out


def along_result(at: Call, rates: Rates, by: dict[str, Array], value: Array, result: Shaped) -> None:
    """Add the derivative of B^T or B^-1 to those of a result whose last axis is over degrees of freedom."""
    own = value - at.B.rate(at.v) if result.acceleration else value
    for b, _, K, dc in rates:
        by["q"][..., b.v, b.v] += by_result(b, own, result.motion)
        if result.acceleration:
            by["q"][..., b.v, b.v] -= dc
            by["v"][..., b.v, b.v] -= K


def by_result(b: VelocityBlock, y: Array, motion: bool) -> Array:
    """The derivative (..., k, k) of B^-1 y, if it is a motion, or of B^T y, before B is applied."""
    return -by_second(b, y) if motion else of_force(b, y)


class Entering:
    """A rule that also translates inputs besides v, a and tau."""

    def entered(self, at: Call) -> dict[str, Array]:
        """All inputs in standard coordinates."""
        raise NotImplementedError

    def __call__(self, at: Call, *results: Array) -> Results:
        raise NotImplementedError


# Products with derivatives: what `derivatives` does to matrices, done to vectors


@dataclass(frozen=True)
class ProductRule(Entering):
    """The rule of a product with the derivatives of a quantity `base`, all of whose results are vectors.

    motion, accelerates: whether its first result, the only one over degrees of freedom, is a motion, an acceleration.
    """

    base: str
    motion: bool = False
    accelerates: bool = False

    def own(self, at: Call) -> Array:
        """The base's first result, before B^T."""
        value = at.value(self.base)[0]
        return value - at.B.rate(at.v) if self.accelerates else value


@dataclass(frozen=True)
class Vjp(ProductRule):
    """w^T times the derivatives by q, v and, if there is one, by `third`."""

    third: str = ""
    weight: str = "w"

    def entered(self, at: Call) -> dict[str, Array]:
        w = at.inputs[self.weight]
        return at.inputs | {self.weight: at.B.force_to_standard(w) if self.motion else at.B.to_standard(w)}

    def __call__(self, at: Call, *results: Array) -> Results:
        names = ("q", "v", self.third) if self.third else ("q", "v")
        rates, w, own = at.rates(), at.inputs[self.weight], self.own(at)
        rows = along_inputs(at, rates, {name: x[..., None, :] for name, x in zip(names, results, strict=False)})
        for b, _, K, dc in rates:
            w_b = w[..., None, b.v]
            rows["q"][..., b.v] += w_b @ by_result(b, own, self.motion)
            if self.accelerates:
                rows["q"][..., b.v] -= w_b @ dc
                rows["v"][..., b.v] -= w_b @ K
        return axes(at, *(rows[name][..., 0, :] for name in names), *results[len(names) :])


@dataclass(frozen=True)
class Jvp(ProductRule):
    """The derivatives times directions dq, dv and, where they are given, da or dtau."""

    def entered(self, at: Call) -> dict[str, Array]:
        """The changes of v, a and tau.

        dv = B du + Gamma(v, dq), da = B d(du/dt) + Gamma(B du/dt, dq) + dc dq + K B du,
        dtau = B^-T dtau_u - tau.Gamma dq.
        """
        given = dict(at.inputs)
        turned = {name: at.B.to_standard(given[name]) for name in ("dq", "dv", "da") if name in given}
        turned |= {name: at.B.force_to_standard(given[name]) for name in ("dtau",) if name in given}
        batch = np.broadcast_shapes(*(x.shape for x in turned.values()), *(given[k].shape for k in ("v",)))
        given |= {name: np.array(np.broadcast_to(x, batch)) for name, x in turned.items()}
        rate = given["a"] - at.B.rate(at.v) if "da" in turned else None  # B du/dt
        for b, dv, K, dc in at.rates():
            dq = given["dq"][..., b.v, None]
            if rate is not None:
                given["da"][..., b.v] += ((by_second(b, rate) + dc) @ dq + K @ given["dv"][..., b.v, None])[..., 0]
            if "dtau" in turned:
                given["dtau"][..., b.v] -= (of_force(b, given["tau"]) @ dq)[..., 0]
            given["dv"][..., b.v] += (dv @ dq)[..., 0]
        return given

    def __call__(self, at: Call, *results: Array) -> Results:
        change, own = np.array(results[0]), self.own(at)
        for b, moved, K, dc in at.rates():
            dq, dv = at.inputs["dq"][..., b.v, None], at.inputs["dv"][..., b.v, None]
            change[..., b.v] += (by_result(b, own, self.motion) @ dq)[..., 0]
            if self.accelerates:
                change[..., b.v] -= (K @ (dv - moved @ dq) + dc @ dq)[..., 0]
        return axes(at, change, *results[1:])


# Rules for single quantities


def bias(at: Call, b: Array) -> Results:
    """The torques at du/dt = 0, where the standard acceleration is c."""
    return axes(at, *at.value("inverse_dynamics", a=at.B.rate(at.v)))


def acceleration(at: Call, a: Array, *rest: Array) -> Results:
    return axes(at, a - at.B.rate(at.v), *rest)


def coriolis_matrix(at: Call, C: Array) -> Results:
    """B^T (C B + M dB/dt), for which Mdot - 2C is skew as well."""
    (M,) = at.value("mass_matrix")
    C = np.array(C)
    for b in at.B.blocks:
        C[..., b.v] += M[..., b.v] @ by_first(b, at.v)
    return axes(at, C)


def centroidal_derivatives(at: Call, dh_dq: Array, *rate: Array) -> Results:
    """dh_dq depends on v through the centroidal map; the rows of the other derivatives do not change."""
    (dh_dv,), rates = at.value("centroidal_map"), at.rates()
    dh = along_inputs(at, rates, {"q": dh_dq, "v": dh_dv})["q"]
    return axes(at, dh, *along_inputs(at, rates, dict(zip("qva", rate, strict=True))).values())


def jacobian_derivative(at: Call, dJ: Array) -> Results:
    """dJ/dt B + J dB/dt."""
    J, dJ = at.value("jacobian")[0], np.array(dJ)
    for b in at.B.blocks:
        dJ[..., b.v] += J[..., b.v] @ by_first(b, at.v)
    return axes(at, dJ)


def jacobian_drift(at: Call, drift: Array) -> Results:
    (J,) = at.value("jacobian")
    return (drift + (J @ at.B.rate(at.v)[..., None])[..., 0],)


def projected_newton_euler(at: Call, M: Array, g: Array, f: Array) -> Results:
    return axes(at, M, g + (M @ at.B.rate(at.v)[..., None])[..., 0], f)
