"""featherjet in CasADi, beside CasADi's own code of the same dynamics: an optimal control problem under IPOPT."""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ...algorithms.quantities import QUANTITIES
from ...casadi import function, library
from ...casadi.shared import found_compiler
from ...errors import InputError
from ...evaluate.sparse import SparseFunction
from ...jit import autodiff
from ...robot.robot import Robot
from .frameworks import Duel, Make
from .peers import NotAvailable
from .robots import entrant

KNOTS = 40
QUANTITY = "inverse_dynamics"
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")
TIMED = ("nlp_g", "nlp_jac_g", "nlp_grad_f", "nlp_hess_l")
START, END = (0.0, 0.3, 0.0, -1.2, 0.0, 1.5, 0.5), (1.2, 0.8, -0.6, -2.0, 0.7, 2.2, -0.4)  # rad


@cache
def panda() -> Robot:
    return Robot(entrant("panda").robot.model, backend="compiled", threads=1)


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Where libraries lie as long as this process runs."""
    return tempfile.TemporaryDirectory(prefix="featherjet-casadi-")


@cache
def generated() -> ca.Function:
    """Inverse dynamics of one state in CasADi's own symbols, with derivatives by CasADi, as C by CasADi.

    The operations are those of featherjet's trace of the recursion, the shortest there is.
    """
    robot = panda()
    value = SparseFunction(robot.evaluator, QUANTITIES[QUANTITY]).value
    tape = autodiff.Tape([x for _, entries in value.straight.outputs for x in entries])
    symbols = {name: ca.SX.sym(name, robot.nv) for name in value.straight.inputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # CasADi's, of NumPy's functions on its symbols
        played = tape.play({(name, k): x[k] for name, x in symbols.items() for k in range(robot.nv)})
    f = ca.Function("own", list(symbols.values()), [ca.vertcat(*played)])
    writer = ca.CodeGenerator("own.c")
    adjoint = f.reverse(1)
    for each in (f, f.jacobian(), adjoint, adjoint.jacobian()):
        writer.add(each)
    place = Path(folder().name)
    writer.generate(f"{place}/")
    compiler = found_compiler()
    done = subprocess.run([*compiler, *FLAGS, str(place / "own.c"), "-lm", "-o", str(place / "own.so")], check=False)
    if done.returncode:
        raise NotAvailable(f"{compiler[0]} cannot compile CasADi's code")
    return ca.external("own", str(place / "own.so"))


def problem(dynamics: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rest to rest in a second, with least torque; dynamics(Q, V, A) -> torques, a column for each knot."""
    n, h = len(START), 1.0 / KNOTS
    Q, V, A, U = (ca.MX.sym(k, n, KNOTS) for k in "QVAU")
    moves = [V[:, 1:] - V[:, :-1] - h * A[:, :-1], Q[:, 1:] - Q[:, :-1] - h * V[:, 1:]]
    g = ca.veccat(dynamics(Q, V, A) - U, *moves)
    cost = 1e-2 * h * ca.sumsqr(U) + 1e-4 * h * ca.sumsqr(A)
    bounds = [np.full((KNOTS, n), limit) for limit in (3.0, 2.5, np.inf, 87.0)]
    low, high = [-x for x in bounds], bounds
    for knot, place in ((0, START), (-1, END)):
        low[0][knot] = high[0][knot] = place
        low[1][knot] = high[1][knot] = 0.0
    guess = np.concatenate([np.linspace(START, END, KNOTS).ravel(), np.zeros(3 * KNOTS * n)])
    given = {"x0": guess, "lbx": np.ravel(low), "ubx": np.ravel(high), "lbg": 0, "ubg": 0}
    return {"x": ca.veccat(Q, V, A, U), "f": cost, "g": g}, given


class Solved:
    """A problem solved by IPOPT with exact Hessians, and the functions that it evaluated in each iteration."""

    def __init__(self, dynamics: Callable[..., Any]) -> None:
        parts, given = problem(dynamics)
        quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.max_iter": 300}
        solver = ca.nlpsol("solver", "ipopt", parts, quiet)
        found = solver(**given)
        self.cost, self.iterations = float(found["f"]), solver.stats()["iter_count"]
        self._calls = []
        for name in TIMED:
            f = solver.get_function(name)
            buffer, call = f.buffer()
            put: Any = buffer
            known = {"x": found["x"], "p": ca.DM(0, 1), "lam_f": 1.0, "lam_g": found["lam_g"]}
            arrays = [np.array(known[f.name_in(i)], float).ravel(order="F") for i in range(f.n_in())]
            arrays += [np.zeros(f.nnz_out(i)) for i in range(f.n_out())]
            for i in range(f.n_in()):
                put.set_arg(i, arrays[i].data)
            for i in range(f.n_out()):
                put.set_res(i, arrays[f.n_in() + i].data)
            self._calls.append((call, buffer, arrays))

    def evaluate(self) -> None:
        """What one iteration evaluates."""
        for call, *_ in self._calls:
            call()


@cache
def peer() -> Solved:
    try:
        own = generated()
    except InputError as reason:
        raise NotAvailable(str(reason)) from reason
    return Solved(own.map(KNOTS))


def duel(title: str, dynamics: Callable[..., Any]) -> Duel:
    ours, other = Solved(dynamics), peer()
    return Duel(
        title, ours.evaluate, other.evaluate, 0.5, f"CasADi's generated C, {FLAGS[0]}",
        difference=lambda: abs(ours.cost - other.cost) / abs(other.cost),
    )  # fmt: skip


def by_library() -> Duel:
    try:
        path = library(panda(), QUANTITY, out=folder().name, horizon=KNOTS, overwrite=True)
    except InputError as reason:
        raise NotAvailable(str(reason)) from reason
    return duel(LIBRARY, ca.external(QUANTITY, str(path)))


def in_process() -> Duel:
    return duel(PROCESS, function(panda(), QUANTITY, horizon=KNOTS))


LIBRARY = f"functions of IPOPT, exact, panda, {KNOTS} knots: as a library"
PROCESS = f"functions of IPOPT, exact, panda, {KNOTS} knots: no compiler"
DUELS: tuple[tuple[str, Make], ...] = ((LIBRARY, by_library), (PROCESS, in_process))
