"""Stages of optimal control problems as CasADi functions of one knot, in the form that acados takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import casadi as ca
import numpy as np

from .. import arrays
from ..algorithms.integrators import TABLEAUX
from ..control.compiled.phase import CompiledPhase
from ..control.problem.problem import Problem
from ..errors import InputError
from ..evaluate.entries import SparseTrace
from ..export.functions import identifier
from .functions import call
from .pieces import QUANTITY, pieces, weights
from .shared import SUFFIX, command_of, write_library

Calls = Mapping[str, Callable[..., ca.MX]]


@dataclass(frozen=True)
class StageFunction:
    """A phase, an impact or the end of a problem, as a function of one knot.

    function: (x, u, p) -> next, cost, residuals, equality, inequality; at an impact u does nothing. That of the end has
    no u and no next.
    p: the numbers of the knots (knots, np): weights, references, bounds. weights: of the residuals (knots, rows).
    knots: which of the horizon's; library: what holds the code, if it has been written.
    """

    function: ca.Function
    p: np.ndarray
    weights: np.ndarray
    knots: range
    library: Path | None = None


def stages(
    problem: Problem,
    out: str | PathLike[str] | None = None,
    *,
    name: str = "stage",
    hessian: bool = True,
    compiler: str | Sequence[str] | None = None,
    overwrite: bool = False,
) -> list[StageFunction]:
    """The phases of a problem, and its end, each as a function of one knot: what acados wants of a model.

    A function takes x (nx), u (nu) and the knot's numbers p, and gives the next state, the cost, residuals, equalities
    (= 0) and inequalities (<= 0); the cost is half the weighted squares of the residuals, and what has other
    activations. q stands for q / |q|. First and second derivatives are exact.

    Without `out` the functions call code in this process. With it, the folder has a shared library libNAME.so of all
    stages, which code that CasADi generates from the functions, and so acados, is linked to; it needs neither Python
    nor featherjet. hessian=False leaves second derivatives out of the library, for solvers that take Gauss-Newton's:
    those of contacts take long to compile. compiler, overwrite: as in `library`.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"stages: expected a Problem, got {type(problem).__name__}")
    if problem.batch:
        raise InputError("stages: expected one problem, this is a batch; use problem.take")
    name = identifier(name, "name")
    command = command_of(compiler) if out is not None else []
    parts, functions, shared = [], dict[str, SparseTrace](), dict[str, str]()
    for k, phase in enumerate(problem.every):
        last = phase is problem.terminal
        title, symbols = f"{name}_end" if last else f"{name}{k}", dict[str, str]()
        for piece, traced in pieces(phase, last).items():
            symbol = shared.setdefault(repr((traced.key, traced.results)), f"{title}_{piece}")  # phases share code
            functions.setdefault(symbol, traced)
            symbols[piece] = symbol
        parts.append((title, phase, range(phase.start, phase.stop), symbols))
    path = None
    if out is not None:
        file = f"lib{name}{SUFFIX}"
        path = write_library(
            problem.evaluator, functions, arrays.path_of(out), name, file, command, overwrite, second=hessian
        )
        calls = {symbol: ca.external(symbol, str(path.resolve())) for symbol in functions}
    else:
        calls = {symbol: call(symbol, traced) for symbol, traced in functions.items()}
    return [
        StageFunction(
            composed(problem, title, phase, {piece: calls[symbol] for piece, symbol in symbols.items()}),
            phase.data, weights(phase), knots, path,
        )
        for title, phase, knots, symbols in parts
    ]  # fmt: skip


def composed(problem: Problem, title: str, phase: CompiledPhase, calls: Calls) -> ca.Function:
    """The function of a knot, from those of its pieces."""
    nq, traced = problem.nq, phase.terms
    x, u, p = ca.MX.sym("x", problem.nx), ca.MX.sym("u", problem.nu), ca.MX.sym("p", traced.width)
    q, v = x[:nq], x[nq:]
    last = "dynamics" not in calls
    found = several([] if last else calls["dynamics"](q, v, torques(problem, phase, u)))
    signals = []
    for s, entry in traced.signals.items():
        if s.kind in QUANTITY:
            takes_v = s.kind in ("velocity", "momentum", "kinetic")
            signals.append(calls[entry.name](q, v) if takes_v else calls[entry.name](q))
        else:
            signals.append(found[0 if s.kind == "a" else 1])
    own = [x, u] if traced.size.nu else [x]
    given = several(calls["terms"](*own, p, *signals))
    terms = calls["terms"]
    assert isinstance(terms, ca.Function)
    results = dict(zip(terms.name_out(), given, strict=True))
    outs = {} if last else {"next": after(phase, calls, x, u, found[0], problem)}
    outs["cost"] = ca.sum1(results["costs"])
    outs |= {k: results.get(k, ca.MX(0, 1)) for k in ("residuals", "equality", "inequality")}
    inputs = {"x": x, "p": p} if last else {"x": x, "u": u, "p": p}
    return ca.Function(title, [*inputs.values()], [*outs.values()], [*inputs], [*outs])


def several(found: ca.MX | Sequence[ca.MX]) -> tuple[ca.MX, ...]:
    """The results of a function, which CasADi gives alone if there is one."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)  # type: ignore[arg-type]


def torques(problem: Problem, phase: CompiledPhase, u: ca.MX) -> ca.MX:
    """All torques; at an impact, no restitution instead."""
    if phase.robot.hits:
        return ca.MX.zeros(1)
    choice = np.zeros((problem.nv, problem.nu))
    choice[problem.driven, range(problem.nu)] = 1.0
    return ca.mtimes(ca.sparsify(ca.DM(choice)), u)


def after(phase: CompiledPhase, calls: Calls, x: ca.MX, u: ca.MX, a: ca.MX, problem: Problem) -> ca.MX:
    """The next state; by Runge-Kutta as in `algorithms.integrators`."""
    dt, nq = float(phase.dt[0]), problem.nq
    if "step" in calls:
        return calls["step"](x, a) if phase.robot.hits else calls["step"](x, a, dt)
    tableau, tau = TABLEAUX[phase.robot.integrator], torques(problem, phase, u)
    q, start = x[:nq], x[nq:]
    w, v, W, V = ca.MX.zeros(problem.nv), start, ca.MX.zeros(problem.nv), start
    for share, weight in zip((*tableau.shares, 0.0), tableau.weights, strict=True):
        rate = calls["rate"](w, v)
        W, V = W + weight * dt * rate, V + weight * dt * a
        if share:
            w, v = share * dt * rate, start + share * dt * a
            a = several(calls["dynamics"](calls["move"](q, w), v, tau))[0]
    return ca.vertcat(calls["move"](q, W), V)
