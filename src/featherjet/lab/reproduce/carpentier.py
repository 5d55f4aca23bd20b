"""[RSS18] Table I, Fig. 2: dynamics, their derivatives, finite differences, M^-1 in two ways, on three robots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...robot.robot import Robot
from ..bench.contenders import States, pinocchio_call
from ..bench.peers import NotAvailable
from ..bench.timing import Contender, measure
from . import straight
from .lab import Entry, Lab, NotInstalled, agree, contender_of, ratio
from .numerical import differences
from .plots import Bars
from .report import Claim, Column, Outcome, Table, held, sized, span
from .straight import ABA, RNEA, Way, forward, inverse

ROBOTS = {"7-dof arm": "arm", "HyQ": "hyq", "humanoid, 36 dofs": "humanoid36"}
QUICK_ROBOTS = {"7-dof arm": "arm"}
SAMPLES = 64
LIMIT = 260_000  # operations that are compiled here: the humanoid's derivatives of forward dynamics

ID, D_ID, FINITE_ID = "ID", "derivatives of ID", "finite differences of ID"
FD, D_FD, FINITE_FD = "FD", "derivatives of FD", "finite differences of FD"
DEDICATED, CHOLESKY = "M^-1, dedicated algorithm", "M^-1, sparse factorisation"
IDSVA, DIRECT = "derivatives of ID, IDSVA", "derivatives of FD, direct"
ROWS = (ID, D_ID, IDSVA, FINITE_ID, FD, D_FD, DIRECT, FINITE_FD, DEDICATED, CHOLESKY)
NAMES = "KUKA LWR", "HyQ", "Atlas"
PAPER = {  # us, on these
    ID: (1.20, 2.14, 5.51),
    D_ID: (3.34, 7.01, 16.72),
    FINITE_ID: (21.26, 88.52, 452.46),
    FD: (1.78, 4.28, 9.81),
    D_FD: (5.78, 14.24, 45.20),
    FINITE_FD: (22.67, 94.23, 470.14),
    DEDICATED: (1.82, 4.86, 12.70),
    CHOLESKY: (1.88, 5.82, 28.29),
}
WAYS: dict[str, Way] = {
    ID: RNEA,
    D_ID: inverse("pinocchio", 3),
    IDSVA: inverse("idsva", 3),
    FD: ABA,
    D_FD: forward("pinocchio"),
    DIRECT: forward("direct"),
    DEDICATED: straight.DEDICATED,
    CHOLESKY: straight.FACTORISED,
}
SAME = ((IDSVA, D_ID), (DIRECT, D_FD), (CHOLESKY, DEDICATED))  # results that must agree
RATIOS = ((D_ID, ID), (FINITE_ID, D_ID), (D_FD, FD), (FINITE_FD, D_FD), (CHOLESKY, DEDICATED))
SHIPPED = {
    ID: "inverse_dynamics",
    D_ID: "inverse_dynamics_derivatives",
    FD: "forward_dynamics",
    D_FD: "forward_dynamics_derivatives",
}


def table1(lab: Lab) -> Outcome:
    """Times, ratios and operations, beside the paper's; derivatives by the algorithm that the paper measured."""
    robots = QUICK_ROBOTS if lab.quick else ROBOTS
    lab.plan(len(robots) * (len(WAYS) + 2))
    found: dict[str, dict[str, Entry]] = {}
    remarks = [
        "The arm is the built-in one, in place of the KUKA LWR; the humanoid is the built-in one with locked grippers, "
        "which has Atlas' 36 dofs. Derivatives are by Pinocchio's algorithm of that time, unless another is named.",
        "Finite differences: 2n + 1 evaluations by q and v, one-sided, and M or M^-1 by its own kernel.",
    ]  # fmt: skip
    shipped: dict[str, dict[str, float]] = {}
    for title, name in robots.items():
        try:
            found[title] = raced(lab, name)
            shipped[title] = as_shipped(lab, name)
        except NotInstalled as missing:
            remarks.append(f"missing: {missing}")
        except NotAvailable as missing:
            remarks.append(f"missing: Pinocchio ({missing})")
    where = {title: k for k, title in enumerate(ROBOTS)}
    tables = [_times(title, e, where[title], shipped.get(title)) for title, e in found.items()]
    ratio_rows = []
    for a, b in RATIOS:
        row = [f"{a} / {b}"]
        for title, e in found.items():
            row += [ratio(e[a], e[b]), PAPER[a][where[title]] / PAPER[b][where[title]]]
        ratio_rows.append(row)
    ratio_columns = [Column(""), *(c for t in found for c in (Column(t, "ratio"), Column("paper", "ratio")))]
    groups = [f"{title}" for title in found]
    bars = {
        what: [1e6 * (e[what].seconds or np.nan) for e in found.values()]
        for what in (ID, D_ID, IDSVA, FINITE_ID, FD, D_FD, DIRECT, FINITE_FD)
    }
    return Outcome(
        [*tables, Table("The paper's ratios", ratio_columns, ratio_rows)],
        _claims(found),
        [
            Bars("inverse dynamics", groups, "us per state", {k: v for k, v in bars.items() if "ID" in k}),
            Bars("forward dynamics", groups, "us per state", {k: v for k, v in bars.items() if "FD" in k}),
            Bars(
                "M^-1",
                groups,
                "us per state",
                {k: [1e6 * (e[k].seconds or np.nan) for e in found.values()] for k in (DEDICATED, CHOLESKY)},
            ),
        ],
        remarks,
    )


def _times(title: str, found: dict[str, Entry], k: int, shipped: dict[str, float] | None) -> Table:
    """Table I for the k-th robot of the paper."""
    columns = [Column(""), Column("here", "time"), Column("operations", "count"), Column(f"paper, {NAMES[k]}", "time")]
    rows: list[list] = [
        [what, e.seconds, e.operations, 1e-6 * PAPER[what][k] if what in PAPER else None]
        for what in ROWS
        for e in [found[what]]
    ]
    if shipped:
        columns.append(Column("Pinocchio 4, from Python", "time"))
        rows = [[*row, shipped.get(row[0])] for row in rows]
    return Table(f"Table I, {title}: time per state", columns, rows)


def _claims(found: dict[str, dict[str, Entry]]) -> list[Claim]:
    def all_of(a: str, b: str) -> list[float]:
        return [x for e in found.values() if (x := ratio(e[a], e[b])) is not None]

    inverse_, finite, forward_ = all_of(D_ID, ID), all_of(FINITE_ID, D_ID), all_of(D_FD, FD)
    finite_forward, cholesky = all_of(FINITE_FD, D_FD), all_of(CHOLESKY, DEDICATED)
    ours, direct = all_of(IDSVA, ID), all_of(DIRECT, FD)
    largest = max(found, key=lambda k: found[k][ID].operations or 0)
    counts = {k: found[largest][k].operations or 1 for k in (ID, D_ID, FD, D_FD, DIRECT, DEDICATED, CHOLESKY)}
    return [
        Claim(
            "Derivatives of ID take 3 times ID",
            f"{span(inverse_)}; IDSVA {span(ours)}",
            sized(min(inverse_) > 1, max(inverse_) < 4.5),
            f"{largest}: {counts[D_ID]:,} operations against {counts[ID]:,}, {counts[D_ID] / counts[ID]:.1f}x; the "
            "rest is the writing of 3 n^2 numbers",
        ),
        Claim(
            "Finite differences of ID take 7 to 26 times the derivatives",
            span(finite),
            sized(min(finite) > 1, min(finite) > 5),
            "they take 2n + 1 times ID, and beside its derivatives ID is cheaper here than in the paper",
        ),
        Claim(
            "Derivatives of FD take at most 4 times FD",
            f"{span(forward_)}; direct {span(direct)}",
            sized(min(forward_) > 1, max(forward_) < 5),
            f"{largest}: {counts[D_FD]:,} operations against {counts[FD]:,}, {counts[D_FD] / counts[FD]:.1f}x; the "
            "rest is memory: what is multiplied is first stored, and the results are 3 n^2 numbers. The direct method "
            f"stores no such matrices, and has {counts[DIRECT]:,} operations",
        ),
        Claim(
            "Finite differences of FD take 4 to 10 times the derivatives",
            span(finite_forward),
            sized(min(finite_forward) > 1, min(finite_forward) > 3),
            f"they take 2n + 1 times FD, derivatives {counts[D_FD] / counts[FD]:.1f} times its operations ({largest})",
        ),
        Claim(
            "The dedicated algorithm for M^-1 is up to twice as fast as factorising M, and competitive for few dofs",
            f"factorisation / dedicated: {span(cholesky)}",
            held(max(cholesky) > 1.05),
            f"{largest}: {counts[DEDICATED]:,} operations against {counts[CHOLESKY]:,}. Straight-line code leaves out "
            "the zeros that branches make in M and its factor, and then factorising is cheap",
        ),
    ]


def raced(lab: Lab, name: str) -> dict[str, Entry]:
    """Every row of the table for one robot."""
    robot = Robot(lab.robot(name).model, "numpy")
    given = lab.states(name, SAMPLES)
    contenders: list[Contender] = []
    counts: dict[str, int] = {}
    results: dict[str, tuple] = {}
    for what, way in WAYS.items():
        lab.step(f"{what}, {name}")
        traced = lab.short(way, name, LIMIT)
        counts[what] = traced.operations
        contender, results[what] = contender_of(traced, given)
        contenders.append(Contender(what, contender.run, SAMPLES, whole=True))
    for a, b in SAME:
        agree(a, results[a], b, results[b])
    for what, of, third, matrix in (
        (FINITE_ID, RNEA, "a", straight.MASS),
        (FINITE_FD, ABA, "tau", straight.DEDICATED),
    ):
        lab.step(f"{what}, {name}")
        moved, _ = differences(what, lab.short(of, name, LIMIT).kernel(), robot, given, third)
        beside, _ = contender_of(lab.short(matrix, name, LIMIT), given)
        contenders.append(Contender(what, _both(moved, beside), SAMPLES, whole=True))
    times = measure(contenders, lab.settings).seconds
    return {k: Entry(counts.get(k), x) for k, x in times.items()}


def _both(a: Contender, b: Contender) -> Callable[[int], None]:
    def run(n: int) -> None:
        a.run(n)
        b.run(n)

    return run


def as_shipped(lab: Lab, name: str) -> dict[str, float]:
    """Pinocchio as it is today, one state a call: seconds, Python's own included."""
    robot = Robot(lab.robot(name).model, "numpy")
    s = lab.states(name, 4)
    states = States(s["q"], s["v"], s["a"], s["tau"])
    ways = [pinocchio_call(what, robot, quantity, states) for what, quantity in SHIPPED.items()]
    return {k: Entry(None, x).seconds or 0.0 for k, x in measure(ways, lab.settings).seconds.items()}
