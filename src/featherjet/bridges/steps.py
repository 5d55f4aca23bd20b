"""A time step as a differentiable function: NumPy computes it, on the host, and its derivatives are matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..algorithms.quantities import shape
from ..simulation.timestep import StepDerivatives, StepResult, TimeStep
from . import rules
from .ambient import Ambient
from .rules import Arrays, Point, Rule, Shape
from .table import FunctionRecord, Port, Role, ended

Arguments = Sequence[np.ndarray]


def records(step: TimeStep) -> dict[str, FunctionRecord]:
    """The functions "step" and "step_derivatives" of q, v and tau."""
    forces, ambient = step.forces, Ambient(step.evaluator.places)
    inputs = (Port("q", ("q",), Role.CONFIGURATION), Port("v", ("v",)), Port("tau", ("v",)))
    ends = (Port("q", ("q",), Role.CONFIGURATION), Port("v", ("v",)), Port("forces", (forces,)))
    rows = {"q": "v", "v": "v", "forces": forces}
    slopes = tuple(Port(name, (rows[name[1:].partition("_")[0]], "v")) for name in StepDerivatives._fields)
    by_matrices = rules.by_matrices(rules.blocks_of("step_derivatives", len(StepResult._fields)), 1, 1, 1)
    size = {"q": ambient.nq, "v": ambient.nv}
    shapes = lambda ports: [shape(p.axes, size) for p in ports]  # noqa: E731
    end = ended("the derivative of a time step")
    found = (
        FunctionRecord("step", None, inputs, ends, by_matrices, value=_on_host(step, ambient, shapes(ends))),
        FunctionRecord(
            "step_derivatives", None, inputs, slopes, end, value=_on_host(step.derivatives, ambient, shapes(slopes))
        ),
    )
    return {record.name: record for record in found}


def _on_host(function: Callable[..., Sequence[np.ndarray]], ambient: Ambient, shapes: Sequence[Shape]) -> Rule:
    """The rule that evaluates a function of q, v, tau in NumPy; samples that are not finite give NaN."""

    def compute(*given: np.ndarray) -> Arguments:
        kind = np.float32 if all(x.dtype == np.float32 for x in given) else np.float64
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        q, v, tau = (np.broadcast_to(np.asarray(x, float), (*batch, x.shape[-1])) for x in given)
        bad = np.asarray(~(np.isfinite(q).all(-1) & np.isfinite(v).all(-1) & np.isfinite(tau).all(-1)))
        if bad.any():
            still = (ambient.neutral, 0.0, 0.0)
            q, v, tau = (np.where(bad[..., None], y, x) for x, y in zip((q, v, tau), still, strict=True))
        found = function(ambient.normalised(np, q), v, tau)
        for x in found if bad.any() else ():
            x[bad] = np.nan
        return [x.astype(kind, copy=False) for x in found]

    def rule(at: Point) -> Arrays:
        return at.host(compute, shapes)

    return rule
