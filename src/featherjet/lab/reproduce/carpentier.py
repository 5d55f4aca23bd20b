"""[RSS18] Table I, Fig. 2: dynamics, derivatives, finite differences, and M^-1 by two algorithms, on three robots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.model import Array
from ..bench.checking import States
from ..bench.peer_contenders import pinocchio_call
from ..bench.peers import NotAvailable
from ..bench.quantities import QUANTITIES
from ..bench.timing import Contender, measure
from . import algorithms
from .algorithms import ABA, RNEA, Algorithm, forward, inverse
from .lab import Lab, Measurement, Measurements, NotInstalled, make_contender, ratio, require_agreement
from .numerical import differences
from .plots import Bars
from .report import FAVOURED, Claim, ExperimentResult, Figure, Table, TableColumn, about, at_most, span

ROBOTS = {"KUKA LWR": "lwr", "HyQ": "hyq", "Atlas": "atlas"}
QUICK_ROBOTS = {"KUKA LWR": "lwr"}
SAMPLES = 64
LIMIT = 260_000  # operations that are compiled here: the humanoid's derivatives of forward dynamics

ID, D_ID, FINITE_ID = "ID", "derivatives of ID", "finite differences of ID"
FD, D_FD, FINITE_FD = "FD", "derivatives of FD", "finite differences of FD"
DEDICATED, CHOLESKY = "M^-1, dedicated algorithm", "M^-1, sparse factorisation"
IDSVA, DIRECT = "derivatives of ID, IDSVA", "derivatives of FD, direct"
ROWS = (ID, D_ID, IDSVA, FINITE_ID, FD, D_FD, DIRECT, FINITE_FD, DEDICATED, CHOLESKY)
PAPER = {  # us, on ROBOTS
    ID: (1.20, 2.14, 5.51),
    D_ID: (3.34, 7.01, 16.72),
    FINITE_ID: (21.26, 88.52, 452.46),
    FD: (1.78, 4.28, 9.81),
    D_FD: (5.78, 14.24, 45.20),
    FINITE_FD: (22.67, 94.23, 470.14),
    DEDICATED: (1.82, 4.86, 12.70),
    CHOLESKY: (1.88, 5.82, 28.29),
}
ALGORITHMS: dict[str, Algorithm] = {
    ID: RNEA,
    D_ID: inverse("pinocchio", 3),
    IDSVA: inverse("idsva", 3),
    FD: ABA,
    D_FD: forward("pinocchio"),
    DIRECT: forward("direct"),
    DEDICATED: algorithms.DEDICATED,
    CHOLESKY: algorithms.FACTORISED,
}
SAME = ((IDSVA, D_ID), (DIRECT, D_FD), (CHOLESKY, DEDICATED))  # results that must agree
RATIOS = ((D_ID, ID), (FINITE_ID, D_ID), (D_FD, FD), (FINITE_FD, D_FD), (CHOLESKY, DEDICATED))
SHIPPED = {
    ID: QUANTITIES["inverse_dynamics"],
    D_ID: QUANTITIES["inverse_dynamics_derivatives"],
    FD: QUANTITIES["forward_dynamics"],
    D_FD: QUANTITIES["forward_dynamics_derivatives"],
}


Found = dict[str, Measurements]  # by robot and row


def table1(lab: Lab) -> ExperimentResult:
    """Times, ratios and operations beside the paper's; derivatives by the algorithm that the paper measured."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    lab.plan(len(robots) * (len(ALGORITHMS) + 2))
    found: Found = {}
    shipped: dict[str, dict[str, float]] = {}
    missing = []
    for title, name in robots.items():
        try:
            found[title] = race(lab, name)
            shipped[title] = time_pinocchio(lab, name)
        except NotInstalled as error:
            missing.append(f"missing: {error}")
        except NotAvailable as error:
            missing.append(f"missing: Pinocchio ({error})")
    tables = [_times(title, measured, shipped.get(title)) for title, measured in found.items()]
    return ExperimentResult(
        [*tables, _ratios(found)],
        _claims(found),
        [
            _bars("inverse dynamics", found, (ID, D_ID, IDSVA, FINITE_ID)),
            _bars("forward dynamics", found, (FD, D_FD, DIRECT, FINITE_FD)),
            _bars("M^-1", found, (DEDICATED, CHOLESKY)),
        ],
        [
            *lab.stand_ins(*robots.values()),
            "Derivatives are by Pinocchio's algorithm of that time, unless another is named.",
            "Finite differences: 2n + 1 evaluations by q and v, one-sided, and M or M^-1 by its own kernel.",
            *missing,
        ],
    )


def _times(title: str, found: Measurements, shipped: dict[str, float] | None) -> Table:
    """Table I for one robot."""
    k = list(ROBOTS).index(title)
    columns = [TableColumn(""), TableColumn("here", "time"), TableColumn("operations", "count")]
    columns.append(TableColumn("paper", "time"))
    rows: list[list] = [
        [row, found[row].seconds, found[row].operations, 1e-6 * PAPER[row][k] if row in PAPER else None] for row in ROWS
    ]
    if shipped:
        columns.append(TableColumn("Pinocchio 4, from Python", "time"))
        rows = [[*row, shipped.get(row[0])] for row in rows]
    return Table(f"Table I, {title}: time per state", columns, rows)


def _ratios(found: Found) -> Table:
    """The paper's ratios, robot by robot, beside what was measured."""
    columns = [TableColumn(""), *(c for t in found for c in (TableColumn(t, "ratio"), TableColumn("paper", "ratio")))]
    rows = []
    for a, b in RATIOS:
        row: list = [f"{a} / {b}"]
        for title, measured in found.items():
            k = list(ROBOTS).index(title)
            row += [ratio(measured[a], measured[b]), PAPER[a][k] / PAPER[b][k]]
        rows.append(row)
    return Table("The paper's ratios", columns, rows)


def _bars(title: str, found: Found, rows: Sequence[str]) -> Bars:
    seconds = {row: [1e6 * (m[row].seconds or np.nan) for m in found.values()] for row in rows}
    return Bars(title, list(found), "us per state", seconds)


def _claims(found: Found) -> list[Claim]:
    def all_of(a: str, b: str) -> list[float]:
        return [x for m in found.values() if (x := ratio(m[a], m[b])) is not None]

    def said(a: str, b: str) -> list[Figure]:
        """The paper's number for each robot that was measured."""
        known = [title for title, m in found.items() if ratio(m[a], m[b]) is not None]
        return [about(PAPER[a][k] / PAPER[b][k]) for k in map(list(ROBOTS).index, known)]

    def judged(text: str, a: str, b: str, words: str, why: str, bound: bool = False) -> Claim:
        cases = [at_most(x.high) if bound else x for x in said(a, b)]
        whole = Figure.of(x.high for x in cases) if cases else FAVOURED
        return Claim(text, at_most(whole.high) if bound else whole, all_of(a, b), words, why, cases)

    inverse_, finite, forward_ = all_of(D_ID, ID), all_of(FINITE_ID, D_ID), all_of(D_FD, FD)
    finite_forward, cholesky = all_of(FINITE_FD, D_FD), all_of(CHOLESKY, DEDICATED)
    idsva, direct = all_of(IDSVA, ID), all_of(DIRECT, FD)
    largest = max(found, key=lambda k: found[k][ID].operations or 0)
    counts = {k: found[largest][k].operations or 1 for k in (ID, D_ID, FD, D_FD, DIRECT, DEDICATED, CHOLESKY)}
    return [
        judged(
            "Derivatives of ID take 3 times ID",
            D_ID,
            ID,
            f"{span(inverse_)}; IDSVA {span(idsva)}",
            f"{largest}: {counts[D_ID]:,} operations against {counts[ID]:,}, {counts[D_ID] / counts[ID]:.1f}x; the "
            "rest is writing 3 n^2 numbers",
        ),
        judged(
            "Finite differences of ID take 7 to 26 times the derivatives",
            FINITE_ID,
            D_ID,
            span(finite),
            "they take 2n + 1 times ID, and relative to its derivatives ID is cheaper here than in the paper",
        ),
        judged(
            "Derivatives of FD take at most 4 times FD",
            D_FD,
            FD,
            f"{span(forward_)}; direct {span(direct)}",
            f"{largest}: {counts[D_FD]:,} operations against {counts[FD]:,}, {counts[D_FD] / counts[FD]:.1f}x; the "
            "rest is memory: matrices are stored before they are multiplied, and the results are 3 n^2 numbers. The "
            f"direct method stores no such matrices, and has {counts[DIRECT]:,} operations",
            bound=True,
        ),
        judged(
            "Finite differences of FD take 4 to 10 times the derivatives",
            FINITE_FD,
            D_FD,
            span(finite_forward),
            f"they take 2n + 1 times FD, derivatives {counts[D_FD] / counts[FD]:.1f} times its operations ({largest})",
        ),
        judged(
            "The dedicated algorithm for M^-1 is up to twice as fast as factorising M, and competitive for few dofs",
            CHOLESKY,
            DEDICATED,
            f"factorisation / dedicated: {span(cholesky)}",
            f"{largest}: {counts[DEDICATED]:,} operations against {counts[CHOLESKY]:,}. Straight-line code leaves out "
            "the zeros that branches make in M and its factor, which makes factorising cheap",
        ),
    ]


def race(lab: Lab, name: str) -> Measurements:
    """Every row of the table for one robot."""
    states = lab.states(name, SAMPLES)
    contenders: list[Contender] = []
    counts: dict[str, int] = {}
    results: dict[str, tuple] = {}
    for row, algorithm in ALGORITHMS.items():
        lab.step(f"{row}, {name}")
        traced = lab.traced_within(LIMIT, algorithm, name)
        counts[row] = traced.instructions
        contender, results[row] = make_contender(traced, states, row)
        contenders.append(contender)
    for a, b in SAME:
        require_agreement(a, results[a], b, results[b])
    contenders.append(_finite_differences(lab, name, states, FINITE_ID, RNEA, "a", algorithms.MASS))
    contenders.append(_finite_differences(lab, name, states, FINITE_FD, ABA, "tau", algorithms.DEDICATED))
    times = measure(contenders, lab.settings).seconds
    return {k: Measurement(counts.get(k), x) for k, x in times.items()}


def _finite_differences(
    lab: Lab, name: str, states: dict[str, Array], row: str, values: Algorithm, third: str, matrix: Algorithm
) -> Contender:
    """Differences of `values` by q and v, and the kernel for the matrix that is the derivative by the third input."""
    lab.step(f"{row}, {name}")
    compiled = lab.traced_within(LIMIT, values, name).compiled()
    by_q_and_v, _ = differences(row, compiled, lab.robot(name), states, third)
    by_third, _ = make_contender(lab.traced_within(LIMIT, matrix, name), states)

    def run(n: int) -> None:
        by_q_and_v.run(n)
        by_third.run(n)

    return Contender(row, run, SAMPLES, whole=True)


def time_pinocchio(lab: Lab, name: str) -> dict[str, float]:
    """Seconds per call of the installed Pinocchio, one state at a time, with Python's overhead."""
    s = lab.states(name, 4)
    states = States(s["q"], s["v"], s["a"], s["tau"])
    calls = [pinocchio_call(row, lab.robot(name), quantity, states) for row, quantity in SHIPPED.items()]
    return {k: Measurement(None, x).seconds or 0.0 for k, x in measure(calls, lab.settings).seconds.items()}
