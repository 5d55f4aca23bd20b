"""[IDSVA] Table I: what each kind of method costs to write, to run, and in digits; the paper's words, our numbers."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ...algorithms.derivatives import chain_rule, idsva, methods, numeric, pinocchio
from ...jit import autodiff
from ...robot.robot import Robot
from ..bench.contenders import difference
from ..bench.timing import Contender, measure
from . import twins
from .accuracy import WIDE
from .lab import Entry, Lab, NotInstalled, contender_of, ratio
from .numerical import Results, differences, directions
from .plots import Bars
from .report import Claim, Column, Outcome, Table, held
from .straight import RNEA, inverse

ROBOTS, QUICK_ROBOTS = {"arm": "arm", "HyQ": "hyq"}, {"chain of 3": "chain3"}
SAMPLES = 64
LIMIT = 120_000


class Kind(NamedTuple):
    """A row of the paper's table, and the module that holds our version of it."""

    name: str
    effort: str
    speed: str
    accuracy: str
    module: ModuleType


FINITE, STEP, DUAL = "finite difference", "complex step", "automatic differentiation (dual numbers)"
AUTODIFF = "automatic differentiation (of the traced graph)"
CHAIN, PINOCCHIO, IDSVA = "analytical chain rule", "special-purpose: Pinocchio 2.6", "special-purpose: IDSVA"
KINDS = (
    Kind(FINITE, "Easy", "Medium", "Low", numeric),
    Kind(STEP, "Easy", "Slow/Medium", "High", numeric),
    Kind(DUAL, "Easy/Medium", "Slow/Medium", "High", twins),
    Kind(AUTODIFF, "Easy/Medium", "Slow/Medium", "High", autodiff),
    Kind(CHAIN, "Medium/Hard", "Medium", "High", chain_rule),
    Kind(PINOCCHIO, "Hard", "Medium/Fast", "High", pinocchio),
    Kind(IDSVA, "Hard", "Medium/Fast", "High", idsva),
)
COMPILED = {AUTODIFF: "autodiff", CHAIN: "chain-rule", PINOCCHIO: "pinocchio", IDSVA: "idsva"}


def table1(lab: Lab) -> Outcome:
    """Derivatives of inverse dynamics by q and v, all compiled alike."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    lab.plan(len(robots) * len(KINDS))
    speed: dict[str, dict[str, float]] = {}
    wrong: dict[str, dict[str, float]] = {}
    remarks = [
        "Statements are counted in the module that adds the method to inverse dynamics, without docstrings and "
        "imports; times are relative to IDSVA's, errors relative to the largest entry"
        + (", against IDSVA on 80-bit numbers." if WIDE else "."),
        "Finite differences and directions are prepared beforehand and not charged.",
    ]
    for title, name in robots.items():
        try:
            speed[title], wrong[title] = measured(lab, name)
        except NotInstalled as missing:
            remarks.append(f"missing: {missing}")
    columns = [Column("method"), Column("effort"), Column("statements", "count"), Column("speed")]
    columns += [Column(f"time, {k}", "ratio") for k in speed]
    columns += [Column("accuracy"), *(Column(f"error, {k}", "error") for k in speed)]
    rows = [
        [k.name, k.effort, statements(k.module), k.speed, *(s[k.name] for s in speed.values()),
         k.accuracy, *(w[k.name] for w in wrong.values())]
        for k in KINDS
    ]  # fmt: skip
    everywhere = [(a, s) for a in KINDS for s in speed.values()]
    slowest_special = max(s[k] for s in speed.values() for k in (PINOCCHIO, IDSVA))
    fastest_other = min(s[a.name] for a, s in everywhere if a.name not in (PINOCCHIO, IDSVA))
    low = min(w[FINITE] for w in wrong.values())
    high = max(w[k.name] for w in wrong.values() for k in KINDS[1:])
    steps = {k: s[STEP] / s[FINITE] for k, s in speed.items()}
    chain = {k: s[CHAIN] / s[FINITE] for k, s in speed.items()}
    claims = [
        Claim(
            "Special-purpose methods are the fastest",
            f"they take up to {slowest_special:.2f}x IDSVA's time, all others from {fastest_other:.2f}x",
            held(slowest_special < fastest_other),
            "where the way to the root is short, the chain rule has little to carry along",
        ),
        Claim(
            "Complex step is slower than finite differences",
            ", ".join(f"{k}: {x:.2f}x" for k, x in steps.items()),
            held(all(x > 1 for x in steps.values())),
            "it evaluates 2n times on numbers of two parts, they 2n + 1 times on plain ones",
        ),
        Claim(
            "Finite differences and the analytical chain rule are both of medium speed",
            ", ".join(f"{k}: the chain rule takes {x:.2f}x the time" for k, x in chain.items()),
            held(all(x > 0.5 for x in chain.values())),
            "compiled for one robot, the chain rule shares what its partials have in common and drops what is zero: "
            + ", ".join(f"{k}: {_work(lab, name)}" for k, name in robots.items() if k in speed),
        ),
        Claim(
            "Finite differences have low accuracy, all others high",
            f"{low:.0e} against at most {high:.0e}",
            held(low > 1e3 * high),
        ),
    ]
    bars = {k.name: [s[k.name] for s in speed.values()] for k in KINDS}
    digits = {k.name: [-np.log10(max(w[k.name], 1e-17)) for w in wrong.values()] for k in KINDS}
    return Outcome(
        [Table("Table I, with measured columns", columns, rows)],
        claims,
        [
            Bars("time, relative to IDSVA", list(speed), "ratio", bars),
            Bars("accuracy", list(speed), "digits", digits, log=False),
        ],
        remarks,
    )


def measured(lab: Lab, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Time relative to IDSVA's, and error relative to the largest entry, of each kind."""
    robot = Robot(lab.robot(name).model, "numpy")
    given = lab.states(name, SAMPLES)
    contenders: list[Contender] = []
    results: dict[str, Results] = {}
    for kind, way in COMPILED.items():
        lab.step(f"{way}, {name}")
        contender, found = contender_of(lab.short(inverse(way), name, LIMIT), given)
        contenders.append(Contender(kind, contender.run, SAMPLES, whole=True))
        results[kind] = lambda found=found: (found[0], found[1])
    lab.step(f"finite difference, {name}")
    contender, results[FINITE] = differences(FINITE, lab.short(RNEA, name, LIMIT).kernel(), robot, given, "a")
    contenders.append(contender)
    for kind, square in ((STEP, -1.0), (DUAL, 0.0)):
        lab.step(f"{kind}, {name}")
        way = twins.inverse_dynamics(kind, square)
        contender, results[kind] = directions(kind, lab.short(way, name, LIMIT).kernel(), robot, given, "a")
        contenders.append(contender)
    for contender in contenders:
        contender.run(SAMPLES)
    number = np.longdouble if WIDE else np.float64
    inputs = {k: given[k].astype(number) for k in ("q", "v", "a")}
    truth = robot._reference.run(methods.ID, inputs, method="idsva")[:2]
    wrong = {k: max(difference(x, t) for x, t in zip(found(), truth, strict=True)) for k, found in results.items()}
    times = measure(contenders, lab.settings).seconds
    fast = Entry(None, times[IDSVA])
    return {k: ratio(Entry(None, x), fast) or 0.0 for k, x in times.items()}, wrong


def _work(lab: Lab, name: str) -> str:
    """Operations of the chain rule, and of the evaluations that finite differences take."""
    chain, once = (lab.short(way, name, LIMIT).operations for way in (inverse(COMPILED[CHAIN]), RNEA))
    return f"{chain:,} operations against {(2 * lab.robot(name).nv + 1) * once:,}"


def statements(module: ModuleType) -> int:
    """Statements of a module, but for imports and docstrings."""
    tree = ast.parse(inspect.getsource(module))
    idle = (ast.Import, ast.ImportFrom)
    return sum(
        isinstance(node, ast.stmt) and not isinstance(node, idle) and not _docstring(node) for node in ast.walk(tree)
    )


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
