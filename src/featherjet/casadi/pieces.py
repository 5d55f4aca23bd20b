"""What a stage of an optimal control problem is made of: traced functions that CasADi calls one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..algorithms.integrators import chart_rates, semi_implicit_euler
from ..arrays import Array
from ..control.compiled.motion import PhaseRobot
from ..control.compiled.phase import CompiledPhase
from ..control.compiled.terms import TracedTerms, vector
from ..control.residuals.activations import Square
from ..control.residuals.signals import Signal
from ..evaluate.entries import SparseTrace
from ..export.functions import Choices
from ..model.configuration import Places
from .functions import sparse_function

QUANTITY = {  # that a signal is, of the robot
    "placement": "frame_placement",
    "velocity": "frame_velocity",
    "com": "center_of_mass",
    "momentum": "centroidal_momentum",
    "kinetic": "kinetic_energy",
    "potential": "potential_energy",
}


class Traced(SparseTrace):
    """A function of traced vectors, which `own` determines."""

    def __init__(
        self, inputs: Mapping[str, int], results: Mapping[str, int], run: Callable[..., list[Array]], own: Any
    ) -> None:
        super().__init__(inputs, results, "")
        self.run, self.own = run, own

    @property
    def key(self) -> tuple[Any, ...]:
        return ("control in casadi", self.own, tuple(self.inputs.items()))

    def values(self, given: Mapping[str, Array]) -> list[Array]:
        return self.run(**{k: given[k] for k in self.inputs})


def pieces(stage: CompiledPhase, last: bool) -> dict[str, SparseTrace]:
    """The functions of a stage by name; the last one has neither dynamics nor steps."""
    body = stage.body
    found: dict[str, SparseTrace] = {"terms": terms(stage.form)}
    found |= {e.name: signal(body, s) for s, e in stage.form.known.items() if s.kind in QUANTITY}
    if last:
        return found
    found["dynamics"] = sparse_function(body, body.dynamics, Choices(contacts=body.contacts))
    if body.hits or body.integrator == "euler":
        found["step"] = step(body)
    else:
        found |= {"rate": rate(body), "move": sparse_function(body, "integrate", Choices())}
    return found


def signal(body: PhaseRobot, s: Signal) -> SparseTrace:
    choices = Choices(frame=s.of or None, viewpoint=s.viewpoint or "local")
    return sparse_function(body, QUANTITY[s.kind], choices)


def normalised(places: Places, x: Array) -> Array:
    """The state with q / |q|."""
    q = [y for p in places.nodes for y in p.manifold.normalised(list(x[p.q]))]
    return vector([*q, *x[places.nq :]])


def terms(form: TracedTerms) -> SparseTrace:
    """(x, u, data, signals) -> costs by term, residuals of squared costs, equalities and inequalities."""
    size = form.size
    squared = [k for k, c in enumerate(form.costs) if type(c.charged) is Square]
    rows = sum(form.places[k].rows for k in squared)
    shapes = form.inputs

    def run(**given: Array) -> list[Array]:
        shaped = {k: given[k].reshape(s) for k, s in shapes.items()}
        shaped["x"] = normalised(size.places, shaped["x"])
        found = form.plain(shaped)
        residuals = [r for k in squared for r in form.rows(k, shaped)]
        return [found[0], *([vector(residuals)] if rows else []), *found[1:]]

    results = {"costs": max(len(form.costs), 1)} | ({"residuals": rows} if rows else {})
    results |= {k: n for k, (n,) in form.limited.items()}
    return Traced({k: int(np.prod(s)) for k, s in shapes.items()}, results, run, ("terms", form.key))


def weights(stage: CompiledPhase) -> Array:
    """The weights (knots, rows) of the residuals of squared costs."""
    form = stage.form
    places = [p for c, p in zip(form.costs, form.places, strict=False) if type(c.charged) is Square]
    return np.concatenate([stage.data[..., p.weights] for p in places] or [stage.data[..., :0]], -1)


def step(body: PhaseRobot) -> SparseTrace:
    """(x, a, dt) -> next, by semi-implicit Euler; at an impact a is the jump of velocities."""
    places, nq, nv = body.size.places, body.size.nq, body.size.nv

    def euler(x: Array, a: Array, dt: Array) -> list[Array]:
        return [vector(semi_implicit_euler(places, normalised(places, x), a, dt[0])[0])]

    def jump(x: Array, a: Array) -> list[Array]:
        after = normalised(places, x)
        after[nq:] = after[nq:] + a
        return [after]

    inputs = {"x": nq + nv, "a": nv} | ({} if body.hits else {"dt": 1})
    return Traced(inputs, {"next": nq + nv}, jump if body.hits else euler, ("step", body.hits, places.digest))


def rate(body: PhaseRobot) -> SparseTrace:
    """(w, v) -> R(w) v, see `algorithms.integrators`."""
    places, nv = body.size.places, body.size.nv

    def run(w: Array, v: Array) -> list[Array]:
        return [vector(chart_rates(places, w, v))]

    return Traced({"w": nv, "v": nv}, {"rate": nv}, run, ("rate", places.digest))
