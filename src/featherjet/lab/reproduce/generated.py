"""[RSS18] Sec. V-A.2: analytical derivatives against automatic differentiation with generated code.

Two tools differentiate: featherjet's own `autodiff`, whose derivatives are compiled like everything else here, and
CasADi, which differentiates the same algorithms on its own symbols and writes C, compiled by the system's compiler.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.dynamics import aba, rnea
from ...algorithms.scan import Scan
from ...errors import FeatherjetError
from ...model.model import Array
from ...model.tree import Tree
from ..bench.timing import Contender, measure
from ..internals import tree_tangent
from .algorithms import Algorithm, forward, inverse
from .lab import Lab, Measurement, Measurements, NotInstalled, make_contender, ratio, require_agreement
from .plots import Bars
from .report import Claim, ExperimentResult, Table, TableColumn, about, span

ROBOTS, QUICK_ROBOTS = {"HyQ": "hyq"}, {"chain of 3": "auto3"}
SAMPLES = 64
LIMIT = 260_000  # operations that are compiled here
CASADI = "CasADi's generated C"
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-march=native", "-shared", "-fPIC")


class Contest(NamedTuple):
    """Inverse or forward dynamics: the paper's times [us] on HyQ, and the contenders; the first is the analytical."""

    name: str
    third: str
    analytical_us: float
    generated_us: float
    analytical: dict[str, Algorithm]
    differentiated: dict[str, Algorithm]
    values: Callable[..., Any]


CONTESTS = (
    Contest(
        "ID", "a", 5.06, 6.92, {"Pinocchio's algorithm": inverse("pinocchio", 3), "IDSVA": inverse("idsva", 3)},
        {"autodiff, forward": inverse("autodiff", 3), "autodiff, reverse": inverse("autodiff-reverse", 3)},
        rnea.inverse_dynamics,
    ),
    Contest(
        "FD", "tau", 8.72, 20.52, {"Pinocchio's algorithm": forward("pinocchio"), "direct": forward("direct")},
        {"autodiff, forward": forward("autodiff"), "autodiff, reverse": forward("autodiff-reverse")},
        lambda *given: aba.forward_dynamics(*given).a,
    ),
)  # fmt: skip


class NoCasadi(FeatherjetError):
    """CasADi or a C compiler is missing; the message says which."""


def section5a2(lab: Lab) -> ExperimentResult:
    """Times of analytical derivatives and of differentiated code, per state."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    lab.plan(len(robots) * sum(len(s.analytical) + len(s.differentiated) + 1 for s in CONTESTS))
    found: dict[tuple[str, str], Measurements] = {}
    remarks: dict[str, None] = {}
    for title, name in robots.items():
        for contest in CONTESTS:
            try:
                found[title, contest.name], said = race(lab, name, contest)
                remarks |= dict.fromkeys(said)
            except NotInstalled as error:
                remarks[f"missing: {error}"] = None
    return ExperimentResult(
        [_table(title, name, m) for (title, name), m in found.items()],
        [_claim(contest, {t: m for (t, name), m in found.items() if name == contest.name}) for contest in CONTESTS],
        [
            Bars(f"derivatives of {name}, {title}", list(m), "us per state", {"time": [_us(x) for x in m.values()]})
            for (title, name), m in found.items()
        ],
        [
            "The paper compares with figures that another group had published for its own machine and code.",
            f"CasADi's C ({' '.join(FLAGS[:2])}) treats one state at a time; all other code has states in lanes.",
            *remarks,
        ],
    )


def race(lab: Lab, name: str, contest: Contest) -> tuple[Measurements, list[str]]:
    """All contenders of one contest on one robot, and what is missing."""
    states = lab.states(name, SAMPLES)
    contenders: list[Contender] = []
    counts: dict[str, int] = {}
    first: tuple[Array, ...] = ()
    for title, algorithm in (contest.analytical | contest.differentiated).items():
        lab.step(f"{title}, {contest.name}, {name}")
        traced = lab.traced_within(LIMIT, algorithm, name)
        contender, results = make_contender(traced, states, title)
        first = first or results
        require_agreement(title, results, next(iter(contest.analytical)), first)
        counts[title] = traced.instructions
        contenders.append(contender)
    lab.step(f"{CASADI}, {contest.name}, {name}")
    with tempfile.TemporaryDirectory() as folder:
        missing = []
        try:
            run, results = by_casadi(Tree(lab.robot(name).model), contest, states, Path(folder), lab.quick)
            require_agreement(CASADI, results, next(iter(contest.analytical)), first)
            contenders.append(Contender(CASADI, run, SAMPLES, whole=True))
        except NoCasadi as error:
            missing.append(f"missing: {error}")
        times = measure(contenders, lab.settings).seconds
    return {k: Measurement(counts.get(k), x) for k, x in times.items()}, missing


def _table(title: str, name: str, found: Measurements) -> Table:
    columns = [TableColumn("derivatives by"), TableColumn("time", "time"), TableColumn("operations", "count")]
    columns.append(TableColumn("of the first", "ratio"))
    first = next(iter(found.values()))
    rows = [[k, m.seconds, m.operations, ratio(m, first)] for k, m in found.items()]
    return Table(f"Derivatives of {name}, {title}: time per state", columns, rows)


def _claim(contest: Contest, found: dict[str, Measurements]) -> Claim:
    """The paper's factor beside the one of the fastest differentiated code that was measured."""
    analytical = next(iter(contest.analytical))
    factors, words = [], []
    for title, m in found.items():
        ratios = {k: x for k in m if k not in contest.analytical and (x := ratio(m[k], m[analytical])) is not None}
        factors.append(min(ratios.values()))
        words.append(f"{title}: " + ", ".join(f"{k} {x:.2f}x" for k, x in ratios.items()))
    said = contest.generated_us / contest.analytical_us
    return Claim(
        f"Generated code of automatic differentiation of {contest.name} takes {said:.1f} times the analytical",
        about(said),
        factors,
        "; ".join(words) + (f"; the fastest {span(factors)}" if factors else ""),
        "differentiated straight-line code shares and folds what it can, but not what the analytical forms leave out",
    )


def _us(m: Measurement) -> float:
    return 1e6 * (m.seconds or np.nan)


# CasADi


def by_casadi(
    tree: Tree, contest: Contest, states: dict[str, Array], folder: Path, quick: bool
) -> tuple[Callable[[int], None], tuple[Array, ...]]:
    """Generated C in a loop over the states, and its results."""
    library = ctypes.CDLL(str(compiled(generated(tree, contest, folder), quick)))
    given = [np.ascontiguousarray(states[k]) for k in ("q", "v", contest.third)]
    n, size = tree.nv, len(given[0])
    found = tuple(np.zeros((size, n, n)) for _ in range(3))
    arrays = (*given, *found)

    def run(_: int) -> None:
        library.batch(ctypes.c_long(size), *(ctypes.c_void_p(x.ctypes.data) for x in arrays))

    run(size)
    return run, tuple(x.swapaxes(1, 2).copy() for x in found)  # CasADi stores columns


def generated(tree: Tree, contest: Contest, folder: Path) -> Path:
    """C of the derivatives by q (in the tangent space), v and the third input, and of a loop over states."""
    try:
        import casadi  # type: ignore[import-not-found]
    except ImportError:
        raise NoCasadi("CasADi is not installed (pip install casadi)") from None
    sx: Any = casadi.SX
    inputs = [sx.sym(name, size) for name, size in (("q", tree.nq), ("v", tree.nv), (contest.third, tree.nv))]
    arrays = [_objects([symbol[k] for k in range(symbol.shape[0])]) for symbol in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # CasADi announces that NumPy's functions will return other types
        values = casadi.vertcat(*contest.values(Scan(tree, (), object), *arrays))
    by = [casadi.jacobian(values, symbol) for symbol in inputs]
    F = tree_tangent(tree)(arrays[0])
    by[0] = by[0] @ casadi.vertcat(*(casadi.horzcat(*row) for row in F))
    function = casadi.Function("derivatives", inputs, [casadi.densify(m) for m in by])
    source = casadi.CodeGenerator("derivatives.c")
    source.add(function)
    source.generate(f"{folder}/")
    path = folder / "derivatives.c"
    arg, res, iw, w = function.sz_arg(), function.sz_res(), function.sz_iw(), function.sz_w()
    loop = f"""
void batch(long n, const double *q, const double *v, const double *x, double *a, double *b, double *c) {{
  const double *arg[{max(arg, 3)}]; double *res[{max(res, 3)}]; casadi_int iw[{iw + 1}]; static double w[{w + 1}];
  for (long k = 0; k < n; k++) {{
    arg[0] = q + k * {tree.nq}; arg[1] = v + k * {tree.nv}; arg[2] = x + k * {tree.nv};
    res[0] = a + k * {tree.nv**2}; res[1] = b + k * {tree.nv**2}; res[2] = c + k * {tree.nv**2};
    derivatives(arg, res, iw, w, 0);
  }}
}}
"""
    path.write_text(path.read_text() + loop)
    return path


def _objects(entries: Sequence[Any]) -> Array:
    out = np.empty(len(entries), object)
    out[:] = entries
    return out


def compiled(source: Path, quick: bool) -> Path:
    """A shared library, by whichever C compiler there is."""
    compiler = next((c for c in COMPILERS if shutil.which(c)), None)
    if compiler is None:
        raise NoCasadi(f"no C compiler for CasADi's code (looked for {', '.join(COMPILERS)})")
    flags = ("-O0", *FLAGS[1:]) if quick else FLAGS
    target = source.with_suffix(".so")
    subprocess.run([compiler, *flags, str(source), "-o", str(target), "-lm"], check=True, capture_output=True)
    return target
