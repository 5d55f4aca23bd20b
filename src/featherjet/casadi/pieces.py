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


def pieces(phase: CompiledPhase, last: bool) -> dict[str, SparseTrace]:
    """The functions of a stage by name; the last one has neither dynamics nor steps."""
    robot = phase.robot
    found: dict[str, SparseTrace] = {"terms": terms(phase.terms)}
    found |= {e.name: signal(robot, s) for s, e in phase.terms.signals.items() if s.kind in QUANTITY}
    if last:
        return found
    found["dynamics"] = sparse_function(robot, robot.dynamics, Choices(contacts=robot.contacts))
    if robot.hits or robot.integrator == "euler":
        found["step"] = step(robot)
    else:
        found |= {"rate": rate(robot), "move": sparse_function(robot, "integrate", Choices())}
    return found


def signal(robot: PhaseRobot, s: Signal) -> SparseTrace:
    choices = Choices(frame=s.of or None, viewpoint=s.viewpoint or "local")
    return sparse_function(robot, QUANTITY[s.kind], choices)


def normalised(places: Places, x: Array) -> Array:
    """The state with q / |q|."""
    q = [y for p in places.nodes for y in p.manifold.normalised(list(x[p.q]))]
    return vector([*q, *x[places.nq :]])


def terms(traced: TracedTerms) -> SparseTrace:
    """(x, u, data, signals) -> costs by term, residuals of squared costs, equalities and inequalities."""
    size = traced.size
    squared = [k for k, c in enumerate(traced.costs) if type(c.charged) is Square]
    rows = sum(traced.slices[k].rows for k in squared)
    shapes = traced.inputs

    def run(**given: Array) -> list[Array]:
        shaped = {k: given[k].reshape(s) for k, s in shapes.items()}
        shaped["x"] = normalised(size.places, shaped["x"])
        found = traced.values(shaped)
        residuals = [r for k in squared for r in traced.rows(k, shaped)]
        return [found[0], *([vector(residuals)] if rows else []), *found[1:]]

    results = {"costs": max(len(traced.costs), 1)} | ({"residuals": rows} if rows else {})
    results |= {k: n for k, (n,) in traced.constraint_shapes.items()}
    return Traced({k: int(np.prod(s)) for k, s in shapes.items()}, results, run, ("terms", traced.key))


def weights(phase: CompiledPhase) -> Array:
    """The weights (knots, rows) of the residuals of squared costs."""
    traced = phase.terms
    places = [p for c, p in zip(traced.costs, traced.slices, strict=False) if type(c.charged) is Square]
    return np.concatenate([phase.data[..., p.weights] for p in places] or [phase.data[..., :0]], -1)


def step(robot: PhaseRobot) -> SparseTrace:
    """(x, a, dt) -> next, by semi-implicit Euler; at an impact a is the jump of velocities."""
    places, nq, nv = robot.size.places, robot.size.nq, robot.size.nv

    def euler(x: Array, a: Array, dt: Array) -> list[Array]:
        return [vector(semi_implicit_euler(places, normalised(places, x), a, dt[0])[0])]

    def jump(x: Array, a: Array) -> list[Array]:
        after = normalised(places, x)
        after[nq:] = after[nq:] + a
        return [after]

    inputs = {"x": nq + nv, "a": nv} | ({} if robot.hits else {"dt": 1})
    return Traced(inputs, {"next": nq + nv}, jump if robot.hits else euler, ("step", robot.hits, places.digest))


def rate(robot: PhaseRobot) -> SparseTrace:
    """(w, v) -> R(w) v, see `algorithms.integrators`."""
    places, nv = robot.size.places, robot.size.nv

    def run(w: Array, v: Array) -> list[Array]:
        return [vector(chart_rates(places, w, v))]

    return Traced({"w": nv, "v": nv}, {"rate": nv}, run, ("rate", places.digest))
