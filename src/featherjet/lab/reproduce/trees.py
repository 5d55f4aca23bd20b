"""[IDSVA] Figs. 4 and 6: IDSVA and FDSVA against Pinocchio's algorithms of that time, on chains and branched trees."""

from __future__ import annotations

import numpy as np

from ...evaluate.evaluator import processors
from ...robot.robot import Robot
from ..bench.timing import Contender, measure
from .chains import FDSVA, extrapolated
from .lab import Entry, Lab, ratio
from .plots import Lines
from .report import Claim, Column, Outcome, Table, counted, held, sized, span
from .straight import forward, inverse
from .sweep import NOISE, Sweep, at_largest, below, curve

FAMILIES = {"chain": "chain{}", "branching 2": "tree{}x2", "branching 5": "tree{}x5"}
ID_SIZES, FD_SIZES, QUICK_SIZES = (2, 5, 10, 20, 30), (2, 5, 10, 16), (2, 6)
LONG, QUICK_LONG = (50, 100, 200, 500), (20, 40)
DGEMM = "M^-1 times matrices, by BLAS"


def figure4(lab: Lab) -> Outcome:
    """IDSVA against Pinocchio 2.6's derivatives of inverse dynamics."""
    sizes = QUICK_SIZES if lab.quick else ID_SIZES
    ways = [inverse(k) for k in ("idsva", "pinocchio")]
    lab.plan(len(FAMILIES) * len(sizes) * len(ways))
    sweeps = {k: Sweep.run(lab, family, sizes, ways) for k, family in FAMILIES.items()}
    times = {k: s.ratios("pinocchio", "idsva") for k, s in sweeps.items()}
    counts = {k: s.count_ratios("pinocchio", "idsva") for k, s in sweeps.items()}
    serial, long = counts["chain"][100], sweeps["chain"].entries[100]
    claims = [
        Claim(
            "IDSVA is 2x faster than Pinocchio's algorithm on a chain of 100",
            f"{serial:.2f}x fewer operations at N = 100; measured {at_largest(times['chain'])}",
            sized(serial > 1, 1.6 < serial < 2.5),
            "both compute the same quantities, as the paper says; what it gained is the way through memory (products "
            "of matrices instead of a loop over ancestors), and straight-line code has neither. What is left is that "
            f"the matrix 2B is half empty: {long['pinocchio'].operations:,} operations against "
            f"{long['idsva'].operations:,}",
        ),
        Claim(
            "IDSVA improves upon Pinocchio's algorithm for all N >= 2, serial and branched",
            "; ".join(f"{k}: time {span(list(times[k].values()))}" for k in times),
            held(not any(below(times[k], NOISE) + below(counts[k]) for k in times)),
            counted([x for r in counts.values() for x in r.values()]),
        ),
    ]
    return Outcome(
        [s.compared(f"How much longer Pinocchio's takes: {k}", [("pinocchio", "idsva")]) for k, s in sweeps.items()]
        + [s.times(f"Time per state: {k}") for k, s in sweeps.items()],
        claims,
        [
            _together(sweeps, "idsva", "pinocchio"),
            Lines("Pinocchio / IDSVA, by time", "N", "ratio", {k: curve(r) for k, r in times.items()}, True, 1),
            Lines("Pinocchio / IDSVA, by operations", "N", "ratio", {k: curve(r) for k, r in counts.items()}, False, 1),
        ],
        [extrapolated(lab, ways)],
    )


def figure6(lab: Lab) -> Outcome:
    """FDSVA against Pinocchio 2.6's derivatives of forward dynamics, and the direct method against both."""
    sizes, long = (QUICK_SIZES, QUICK_LONG) if lab.quick else (FD_SIZES, LONG)
    ways = [forward(k) for k in ("fdsva-dmm", "fdsva-aza", "pinocchio", "direct")]
    lab.plan(len(FAMILIES) * len(sizes) * len(ways) + len(long))
    sweeps = {k: Sweep.run(lab, family, sizes, ways) for k, family in FAMILIES.items()}
    for s in sweeps.values():
        s.best(FDSVA, ("fdsva-dmm", "fdsva-aza"))
    times = {k: s.ratios("pinocchio", FDSVA) for k, s in sweeps.items()}
    counts = {k: s.count_ratios("pinocchio", FDSVA) for k, s in sweeps.items()}
    direct = {k: s.ratios(FDSVA, "direct") for k, s in sweeps.items()}
    fewer = {k: below(s.count_ratios(FDSVA, "direct")) for k, s in sweeps.items()}
    rows = [[n, *_long(lab, n)] for n in long]
    table = Table(
        "Long chains, loops over bodies: the direct method, and M^-1 (rolled) times dtau/dq, dtau/dv (rolled) by BLAS",
        [Column("N", "count"), Column(DGEMM, "time"), Column("direct", "time"), Column("ratio", "ratio")],
        rows,
        "The product is charged the clock's time, on all cores; everything else the processor time of one."
        if processors() > 1
        else "",
    )
    slow = {DGEMM: [1e6 * row[1] for row in rows], "direct": [1e6 * row[2] for row in rows]}
    chain = counts["chain"]
    claims = [
        Claim(
            "FDSVA outperforms Pinocchio's derivatives of forward dynamics for all N, serial and branched",
            "; ".join(f"{k}: time {span(list(times[k].values()))}" for k in times),
            held(not any(below(times[k], NOISE) + below(counts[k]) for k in times)),
            counted([x for r in counts.values() for x in r.values()]),
        ),
        Claim(
            "Beyond the crossover FDSVA takes AZA, and its order changes from N^3 to N^2",
            f"fewer operations than Pinocchio's on a chain: {chain[2]:.2f}x at N = 2, {chain[50]:.2f}x at 50, "
            f"{chain[500]:.1f}x at 500",
            held(chain[500] > chain[50] > 1),
        ),
    ]  # fmt: skip
    return Outcome(
        [s.compared(f"{k}: how much longer", [("pinocchio", FDSVA), (FDSVA, "direct")]) for k, s in sweeps.items()]
        + [s.times(f"Time per state: {k}") for k, s in sweeps.items()]
        + [table],
        claims,
        [
            _together(sweeps, FDSVA, "pinocchio"),
            Lines("Pinocchio / FDSVA, by time", "N", "ratio", {k: curve(r) for k, r in times.items()}, True, 1),
            Lines("Pinocchio / FDSVA, by operations", "N", "ratio", {k: curve(r) for k, r in counts.items()}, False, 1),
            Lines("FDSVA / direct, by time", "N", "ratio", {k: curve(r) for k, r in direct.items()}, True, 1),
            Lines("long chains, in loops", "N", "us per state", {k: (long, ts) for k, ts in slow.items()}, True),
        ],
        [
            "FDSVA needs fewer operations than the direct method on "
            + ("; ".join(f"{k} at N = {', '.join(map(str, ns))}" for k, ns in fewer.items() if ns) or "none of these")
            + ": small or bushy trees, whose zeros straight-line code leaves out of M^-1 and dtau/dq.",
            extrapolated(lab, ways),
        ],
    )  # fmt: skip


def _together(sweeps: dict[str, Sweep], *names: str) -> Lines:
    curves = {f"{name}, {k}": s.time_curves([name])[name] for k, s in sweeps.items() for name in names}
    return Lines("measured", "N", "us per state", curves, True, alike=len(names))


def _long(lab: Lab, n: int) -> tuple[float, float, float]:
    """Seconds for one state of a long chain: DMM with a product by BLAS, the direct method, and how they compare."""
    lab.step(f"chain{n}, rolled")
    size = 16 if n <= 200 else 4
    robot = Robot(lab.robot(f"chain{n}").model, "compiled", 1, unroll=False)
    s = lab.states(f"chain{n}", size)
    q, v, tau = s["q"], s["v"], s["tau"]
    by = tuple(np.empty((size, n, n)) for _ in range(3))
    Minv, acceleration = np.empty((size, n, n)), np.empty((size, n))
    out = tuple(np.empty((size, n, n)) for _ in range(3))

    def prepared(_: int) -> None:
        robot.forward_dynamics(q, v, tau, out=acceleration)
        robot.inverse_dynamics_derivatives(q, v, acceleration, out=by)
        robot.inverse_mass_matrix(q, out=Minv)

    def multiplied(_: int) -> None:
        for k in range(2):
            np.matmul(Minv, by[k], out=out[k])
            np.negative(out[k], out=out[k])

    def direct(_: int) -> None:
        robot.forward_dynamics_derivatives(q, v, tau, out=out)

    prepared(0)
    contenders = [
        Contender("prepared", prepared, size, whole=True),
        Contender("multiplied", multiplied, size, whole=True, pinned=processors() == 1),
        Contender("direct", direct, size, whole=True),
    ]
    t = measure(contenders, lab.settings).seconds
    dmm, fast = Entry(None, t["prepared"] + t["multiplied"]), Entry(None, t["direct"])
    return dmm.seconds or 0.0, fast.seconds or 0.0, ratio(dmm, fast) or 0.0
