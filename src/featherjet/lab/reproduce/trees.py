"""[IDSVA] Figs. 4 and 6: IDSVA and FDSVA against Pinocchio's algorithms of that time, on chains and branched trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...evaluate.evaluator import processors
from ...robot.robot import Robot
from ..bench.timing import Contender, measure
from .algorithms import forward, inverse
from .chains import FDSVA
from .lab import CHAIN, Lab, Measurement, ratio
from .plots import Lines
from .report import FAVOURED, Claim, Outcome, Table, TableColumn, about, counted, span
from .sweep import Comparison, Sweep, at_largest, below, extrapolation_remark, ratio_lines

FAMILIES = {"chain": CHAIN, "branching 2": "auto{}x2", "branching 5": "auto{}x5"}
ID_SIZES, FD_SIZES, QUICK_SIZES = (2, 5, 10, 20, 30), (2, 5, 10, 16), (2, 6)
LONG, QUICK_LONG = (50, 100, 200, 500), (20, 40)
BLAS = "M^-1 times matrices, by BLAS"

Comparisons = dict[str, Comparison]


def figure4(lab: Lab) -> Outcome:
    """IDSVA against Pinocchio 2.6's derivatives of inverse dynamics."""
    sizes = QUICK_SIZES if lab.quick else ID_SIZES
    algorithms = [inverse(k) for k in ("idsva", "pinocchio")]
    lab.plan(len(FAMILIES) * len(sizes) * len(algorithms))
    sweeps = {k: Sweep.run(lab, family, sizes, algorithms) for k, family in FAMILIES.items()}
    slower = {k: s.compare("pinocchio", "idsva") for k, s in sweeps.items()}
    return Outcome(
        [s.comparisons(f"How much longer Pinocchio's takes: {k}", [("pinocchio", "idsva")]) for k, s in sweeps.items()]
        + [s.times(f"Time per state: {k}") for k, s in sweeps.items()],
        [
            _twice_as_fast(sweeps["chain"], slower["chain"]),
            _outperforms("IDSVA improves upon Pinocchio's algorithm for all N >= 2, serial and branched", slower),
        ],
        [
            _time_lines(sweeps, "idsva", "pinocchio"),
            ratio_lines("Pinocchio / IDSVA, by time", {k: c.times for k, c in slower.items()}, marked=True),
            ratio_lines("Pinocchio / IDSVA, by operations", {k: c.counts for k, c in slower.items()}, marked=False),
        ],
        [extrapolation_remark(lab, algorithms)],
    )


def _twice_as_fast(chain: Sweep, pinocchio: Comparison) -> Claim:
    count, long = pinocchio.counts[100], chain.found[100]
    return Claim(
        "IDSVA is 2x faster than Pinocchio's algorithm on a chain of 100",
        about(2),
        [pinocchio.times[100]] if 100 in pinocchio.times else [],
        f"measured {at_largest(pinocchio.times)}; {count:.2f}x fewer operations at N = 100",
        "both compute the same quantities, as the paper says. The paper's gain comes from memory access (products of "
        "matrices instead of a loop over ancestors), and straight-line code has neither. What remains is that half "
        f"of the matrix 2B is zero: {long['pinocchio'].operations:,} operations against "
        f"{long['idsva'].operations:,}",
    )


def _outperforms(said: str, slower: Comparisons) -> Claim:
    return Claim(
        said,
        FAVOURED,
        [x for c in slower.values() for x in c.times.values()],
        "; ".join(f"{k}: time {span(list(c.times.values()))}" for k, c in slower.items()),
        counted([x for c in slower.values() for x in c.counts.values()]),
    )


def figure6(lab: Lab) -> Outcome:
    """FDSVA against Pinocchio 2.6's derivatives of forward dynamics, and the direct method against both."""
    sizes, long = (QUICK_SIZES, QUICK_LONG) if lab.quick else (FD_SIZES, LONG)
    algorithms = [forward(k) for k in ("fdsva-dmm", "fdsva-aza", "pinocchio", "direct")]
    lab.plan(len(FAMILIES) * len(sizes) * len(algorithms) + len(long))
    sweeps = {k: Sweep.run(lab, family, sizes, algorithms) for k, family in FAMILIES.items()}
    for sweep in sweeps.values():
        sweep.add_best(FDSVA, ("fdsva-dmm", "fdsva-aza"))
    slower = {k: s.compare("pinocchio", FDSVA) for k, s in sweeps.items()}
    direct = {k: s.compare(FDSVA, "direct") for k, s in sweeps.items()}
    rows = [LongChain(n, *_time_long_chain(lab, n)) for n in long]
    pairs = [("pinocchio", FDSVA), (FDSVA, "direct")]
    return Outcome(
        [s.comparisons(f"{k}: how much longer", pairs) for k, s in sweeps.items()]
        + [s.times(f"Time per state: {k}") for k, s in sweeps.items()]
        + [_long_table(rows)],
        [
            _outperforms(
                "FDSVA outperforms Pinocchio's derivatives of forward dynamics for all N, serial and branched", slower
            ),
            _order_changes(slower["chain"].counts),
        ],
        [
            _time_lines(sweeps, FDSVA, "pinocchio"),
            ratio_lines("Pinocchio / FDSVA, by time", {k: c.times for k, c in slower.items()}, marked=True),
            ratio_lines("Pinocchio / FDSVA, by operations", {k: c.counts for k, c in slower.items()}, marked=False),
            ratio_lines("FDSVA / direct, by time", {k: c.times for k, c in direct.items()}, marked=True),
            _long_lines(rows),
        ],
        [_where_fdsva_wins(direct), extrapolation_remark(lab, algorithms)],
    )


def _order_changes(counts: dict[int, float]) -> Claim:
    return Claim(
        "Beyond the crossover FDSVA takes AZA, and its order changes from N^3 to N^2",
        about(500 / 50),
        [counts[500] / counts[50]],
        f"fewer operations than Pinocchio's on a chain: {counts[2]:.2f}x at N = 2, {counts[50]:.2f}x at 50, "
        f"{counts[500]:.1f}x at 500; from 50 to 500, N^3 over N^2 would gain ten times",
        "at N = 50 most of the operations are not yet those of the product",
    )


def _where_fdsva_wins(direct: Comparisons) -> str:
    fewer = {k: below(c.counts) for k, c in direct.items()}
    sizes = "; ".join(f"{k} at N = {', '.join(map(str, ns))}" for k, ns in fewer.items() if ns)
    return (
        f"FDSVA needs fewer operations than the direct method on {sizes or 'none of these'}: small or bushy trees, in "
        "whose M^-1 and dtau/dq straight-line code leaves out the zeros."
    )


def _time_lines(sweeps: dict[str, Sweep], *names: str) -> Lines:
    curves = {f"{name}, {k}": s.time_curves([name])[name] for k, s in sweeps.items() for name in names}
    return Lines("measured", "N", "us per state", curves, marked=True, alike=len(names))


# Long chains, in code that loops over bodies


class LongChain(NamedTuple):
    """Seconds per state on a chain of n joints: DMM with products by BLAS, the direct method, and their ratio."""

    n: int
    blas: float
    direct: float
    ratio: float


def _long_table(rows: list[LongChain]) -> Table:
    note = "The product is charged wall-clock time on all cores; everything else the processor time of one core."
    return Table(
        "Long chains, loops over bodies: the direct method, and M^-1 (rolled) times dtau/dq, dtau/dv (rolled) by BLAS",
        [
            TableColumn("N", "count"),
            TableColumn(BLAS, "time"),
            TableColumn("direct", "time"),
            TableColumn("ratio", "ratio"),
        ],
        [list(row) for row in rows],
        note if processors() > 1 else "",
    )


def _long_lines(rows: list[LongChain]) -> Lines:
    n = [float(row.n) for row in rows]
    curves = {BLAS: (n, [1e6 * row.blas for row in rows]), "direct": (n, [1e6 * row.direct for row in rows])}
    return Lines("long chains, in loops", "N", "us per state", curves, marked=True)


def _time_long_chain(lab: Lab, n: int) -> tuple[float, float, float]:
    """Seconds per state: DMM with products by BLAS, and the direct method; and their ratio."""
    name = CHAIN.format(n)
    lab.step(f"{name}, rolled")
    size = 16 if n <= 200 else 4
    robot = Robot(lab.robot(name).model, "compiled", 1, unroll=False)
    states = lab.states(name, size)
    q, v, tau = states["q"], states["v"], states["tau"]
    dtau = tuple(np.empty((size, n, n)) for _ in range(3))
    Minv, a = np.empty((size, n, n)), np.empty((size, n))
    out = tuple(np.empty((size, n, n)) for _ in range(3))

    def prepare(_: int) -> None:
        robot.forward_dynamics(q, v, tau, out=a)
        robot.inverse_dynamics_derivatives(q, v, a, out=dtau)
        robot.inverse_mass_matrix(q, out=Minv)

    def multiply(_: int) -> None:
        for k in range(2):
            np.matmul(Minv, dtau[k], out=out[k])
            np.negative(out[k], out=out[k])

    def direct(_: int) -> None:
        robot.forward_dynamics_derivatives(q, v, tau, out=out)

    prepare(0)
    contenders = [
        Contender("prepare", prepare, size, whole=True),
        Contender("multiply", multiply, size, whole=True, pinned=processors() == 1),
        Contender("direct", direct, size, whole=True),
    ]
    t = measure(contenders, lab.settings).seconds
    slow, fast = Measurement(None, t["prepare"] + t["multiply"]), Measurement(None, t["direct"])
    return slow.seconds or 0.0, fast.seconds or 0.0, ratio(slow, fast) or 0.0
