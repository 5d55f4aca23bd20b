"""[IDSVA] Table I: the effort, speed and accuracy of each kind of method; the paper's words beside numbers."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...algorithms.derivatives import chain_rule, idsva, methods, numeric, pinocchio
from ...jit import autodiff
from ...model.model import Array
from ...robot.robot import Robot
from ..bench.checking import difference
from ..bench.timing import Contender, measure
from ..internals import reference_results
from . import twins
from .accuracy import WIDE
from .algorithms import RNEA, inverse
from .lab import Lab, Measurement, NotInstalled, make_contender, ratio
from .numerical import Results, differences, directions
from .plots import Bars
from .report import FAVOURED, Cell, Claim, ExperimentResult, Table, TableColumn, about

ROBOTS, QUICK_ROBOTS = {"arm": "arm", "HyQ": "hyq"}, {"chain of 3": "auto3"}
SAMPLES = 64
LIMIT = 120_000


class MethodKind(NamedTuple):
    """A row of the paper's table, and the featherjet module that implements it."""

    name: str
    effort: str
    speed: str
    accuracy: str
    module: ModuleType


FINITE, STEP, DUAL = "finite difference", "complex step", "automatic differentiation (dual numbers)"
AUTODIFF = "automatic differentiation (of the traced graph)"
CHAIN, PINOCCHIO, IDSVA = "analytical chain rule", "special-purpose: Pinocchio 2.6", "special-purpose: IDSVA"
KINDS = (
    MethodKind(FINITE, "Easy", "Medium", "Low", numeric),
    MethodKind(STEP, "Easy", "Slow/Medium", "High", numeric),
    MethodKind(DUAL, "Easy/Medium", "Slow/Medium", "High", twins),
    MethodKind(AUTODIFF, "Easy/Medium", "Slow/Medium", "High", autodiff),
    MethodKind(CHAIN, "Medium/Hard", "Medium", "High", chain_rule),
    MethodKind(PINOCCHIO, "Hard", "Medium/Fast", "High", pinocchio),
    MethodKind(IDSVA, "Hard", "Medium/Fast", "High", idsva),
)
COMPILED = {AUTODIFF: "autodiff", CHAIN: "chain-rule", PINOCCHIO: "pinocchio", IDSVA: "idsva"}


class Measured(NamedTuple):
    """One robot: for each kind its time relative to IDSVA's, and its error relative to the largest entry."""

    time: dict[str, float]
    error: dict[str, float]


def table1(lab: Lab) -> ExperimentResult:
    """Derivatives of inverse dynamics by q and v, all compiled alike."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    lab.plan(len(robots) * len(KINDS))
    found: dict[str, Measured] = {}
    missing = []
    for title, name in robots.items():
        try:
            found[title] = _measure(lab, name)
        except NotInstalled as error:
            missing.append(f"missing: {error}")
    times = {k.name: [m.time[k.name] for m in found.values()] for k in KINDS}
    digits = {k.name: [-np.log10(max(m.error[k.name], 1e-17)) for m in found.values()] for k in KINDS}
    work = ", ".join(f"{k}: {_work(lab, name)}" for k, name in robots.items() if k in found)
    return ExperimentResult(
        [_table(found)],
        [_special_are_fastest(found), _step_is_slower(found), _both_medium(found, work), _low_accuracy(found)],
        [
            Bars("time, relative to IDSVA", list(found), "ratio", times),
            Bars("accuracy", list(found), "digits", digits, log=False),
        ],
        [
            "Statements are those of the module that adds the method to inverse dynamics, without docstrings and "
            "imports; times are relative to IDSVA's, errors relative to the largest entry"
            + (", against IDSVA on 80-bit numbers." if WIDE else "."),
            "The moved states of finite differences, and the directions, are prepared beforehand and not charged.",
            *missing,
        ],
    )


def _measure(lab: Lab, name: str) -> Measured:
    robot = lab.robot(name)
    states = lab.states(name, SAMPLES)
    contenders: list[Contender] = []
    results: dict[str, Results] = {}
    for kind, method in COMPILED.items():
        lab.step(f"{method}, {name}")
        contender, found = make_contender(lab.traced_within(LIMIT, inverse(method), name), states, kind)
        contenders.append(contender)
        results[kind] = lambda found=found: (found[0], found[1])
    lab.step(f"finite difference, {name}")
    rnea = lab.traced_within(LIMIT, RNEA, name).compiled()
    contender, results[FINITE] = differences(FINITE, rnea, robot, states, "a")
    contenders.append(contender)
    for kind, square in ((STEP, -1.0), (DUAL, 0.0)):
        lab.step(f"{kind}, {name}")
        along = lab.traced_within(LIMIT, twins.inverse_dynamics(kind, square), name).compiled()
        contender, results[kind] = directions(kind, along, robot, states, "a")
        contenders.append(contender)
    for contender in contenders:
        contender.run(SAMPLES)
    truth = _truth(robot, states)
    error = {k: max(difference(x, t) for x, t in zip(found(), truth, strict=True)) for k, found in results.items()}
    seconds = measure(contenders, lab.settings).seconds
    fast = Measurement(None, seconds[IDSVA])
    return Measured({k: ratio(Measurement(None, x), fast) or 0.0 for k, x in seconds.items()}, error)


def _truth(robot: Robot, states: dict[str, Array]) -> tuple[Array, ...]:
    """dtau/dq and dtau/dv by IDSVA on the longest numbers there are."""
    inputs = {k: states[k].astype(np.longdouble if WIDE else np.float64) for k in ("q", "v", "a")}
    return reference_results(robot.model, methods.ID, inputs, "idsva")[:2]


def _table(found: dict[str, Measured]) -> Table:
    columns = [TableColumn("method"), TableColumn("effort"), TableColumn("statements", "count"), TableColumn("speed")]
    columns += [TableColumn(f"time, {k}", "ratio") for k in found]
    columns += [TableColumn("accuracy"), *(TableColumn(f"error, {k}", "error") for k in found)]
    rows: list[list[Cell]] = [
        [k.name, k.effort, statements(k.module), k.speed, *(m.time[k.name] for m in found.values()),
         k.accuracy, *(m.error[k.name] for m in found.values())]
        for k in KINDS
    ]  # fmt: skip
    return Table("Table I, with measured columns", columns, rows)


def _special_are_fastest(found: dict[str, Measured]) -> Claim:
    special = (PINOCCHIO, IDSVA)
    slowest = max(m.time[k] for m in found.values() for k in special)
    fastest = min(m.time[k.name] for m in found.values() for k in KINDS if k.name not in special)
    return Claim(
        "Special-purpose methods are the fastest",
        FAVOURED,
        [fastest / slowest],
        f"they take up to {slowest:.2f}x IDSVA's time, all others at least {fastest:.2f}x",
        "where paths to the root are short, the chain rule carries little along",
    )


def _step_is_slower(found: dict[str, Measured]) -> Claim:
    ratios = {k: m.time[STEP] / m.time[FINITE] for k, m in found.items()}
    return Claim(
        "Complex step is slower than finite differences",
        FAVOURED,
        list(ratios.values()),
        ", ".join(f"{k}: {x:.2f}x" for k, x in ratios.items()),
        "it evaluates 2n times on numbers of two parts, finite differences 2n + 1 times on real numbers",
    )


def _both_medium(found: dict[str, Measured], work: str) -> Claim:
    ratios = {k: m.time[CHAIN] / m.time[FINITE] for k, m in found.items()}
    return Claim(
        "Finite differences and the analytical chain rule are both of medium speed",
        about(1.0),
        list(ratios.values()),
        ", ".join(f"{k}: the chain rule takes {x:.2f}x the time" for k, x in ratios.items()),
        "compiled for one robot, the chain rule shares what its partials have in common and drops what is zero: "
        + work,
    )


def _low_accuracy(found: dict[str, Measured]) -> Claim:
    low = min(m.error[FINITE] for m in found.values())
    high = max(m.error[k.name] for m in found.values() for k in KINDS if k.name != FINITE)
    return Claim(
        "Finite differences have low accuracy, all others high",
        FAVOURED,
        [low / high],
        f"{low:.0e} against at most {high:.0e}",
    )


def _work(lab: Lab, name: str) -> str:
    """Operations of the chain rule, and of the evaluations that finite differences take."""
    algorithms = inverse(COMPILED[CHAIN]), RNEA
    chain, once = (lab.traced_within(LIMIT, x, name).instructions for x in algorithms)
    return f"{chain:,} operations against {(2 * lab.robot(name).nv + 1) * once:,}"


def statements(module: ModuleType) -> int:
    """The number of statements in a module, without imports and docstrings."""
    tree = ast.parse(inspect.getsource(module))
    imports = (ast.Import, ast.ImportFrom)
    return sum(
        isinstance(node, ast.stmt) and not isinstance(node, imports) and not _docstring(node) for node in ast.walk(tree)
    )


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
