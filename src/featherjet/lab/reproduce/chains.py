"""[IDSVA] Fig. 2: methods against the number of joints of a serial chain; Fig. 3: ground against body coordinates."""

from __future__ import annotations

from .lab import Lab
from .plots import Lines
from .report import Claim, Outcome, counted, held, sized, span
from .straight import forward, inverse
from .sweep import NOISE, Sweep, at_largest, below, curve

SIZES, FD_SIZES, QUICK_SIZES = (2, 4, 8, 12, 16, 20), (2, 4, 8, 12, 16), (2, 4, 6)
CHAIN = "chain{}"
FDSVA = "FDSVA"  # DMM or AZA, whichever is better


def figure2(lab: Lab) -> Outcome:
    """IDSVA against RNEACR, and FDSVA against FDCR and ABACR."""
    sizes, fd_sizes = (QUICK_SIZES, QUICK_SIZES) if lab.quick else (SIZES, FD_SIZES)
    id_ways = [inverse(k) for k in ("idsva", "chain-rule")]
    fd_ways = [forward(k) for k in ("fdsva-dmm", "fdsva-aza", "fdcr", "abacr", "fdsva-ltl", "direct")]
    lab.plan(len(sizes) * len(id_ways) + len(fd_sizes) * len(fd_ways))
    ID, FD = Sweep.run(lab, CHAIN, sizes, id_ways), Sweep.run(lab, CHAIN, fd_sizes, fd_ways)
    FD.best(FDSVA, ("fdsva-dmm", "fdsva-aza"))
    times, counts = ID.ratios("chain-rule", "idsva"), ID.count_ratios("chain-rule", "idsva")
    fdcr, fdcr_counts = FD.ratios("fdcr", FDSVA), FD.count_ratios("fdcr", FDSVA)
    abacr, abacr_counts = FD.ratios("abacr", FDSVA), FD.count_ratios("abacr", FDSVA)
    slower = below(times, NOISE) + below(counts)
    claims = [
        Claim(
            "IDSVA is 15x faster than RNEACR at N = 100",
            f"{counts[100]:.1f}x fewer operations at N = 100; measured {at_largest(times)}",
            sized(counts[100] > 1, 10 < counts[100] < 22),
            "neither has loops or calls here, so that the factor is that of the operations: "
            f"{ID.entries[100]['chain-rule'].operations:,} against {ID.entries[100]['idsva'].operations:,}",
        ),
        Claim(
            "IDSVA outperforms RNEACR for all N >= 2",
            f"time {span(list(times.values()))}, operations {span(list(counts.values()))}",
            held(not slower),
            f"not at N = {', '.join(map(str, sorted(set(slower))))}: with hardly any ancestors there is little to save"
            if slower
            else "",
        ),
        Claim(
            "FDSVA outperforms FDCR for all N >= 2",
            f"time {span(list(fdcr.values()))}, operations {span(list(fdcr_counts.values()))}",
            held(not below(fdcr, NOISE) + below(fdcr_counts)),
            counted(list(fdcr_counts.values())),
        ),
        Claim(
            "FDSVA outperforms ABACR for all N >= 2",
            f"time {span(list(abacr.values()))}, operations {span(list(abacr_counts.values()))}",
            held(not below(abacr, NOISE) + below(abacr_counts)),
            counted(list(abacr_counts.values())),
        ),
    ]  # fmt: skip
    pairs = [("fdcr", FDSVA), ("abacr", FDSVA), (FDSVA, "direct")]
    speedups = {"RNEACR / IDSVA": curve(counts)} | {f"{a} / {b}": curve(FD.count_ratios(a, b)) for a, b in pairs}
    measured = {"RNEACR / IDSVA": curve(times)} | {f"{a} / {b}": curve(FD.ratios(a, b)) for a, b in pairs}
    return Outcome(
        [
            ID.times("Derivatives of inverse dynamics: time per state"),
            ID.operations("Derivatives of inverse dynamics: operations per state"),
            ID.compared("How much longer RNEACR takes", [("chain-rule", "idsva")]),
            FD.times("Derivatives of forward dynamics: time per state"),
            FD.operations("Derivatives of forward dynamics: operations per state"),
            FD.compared("How much longer; FDSVA is the better of DMM and AZA", pairs),
        ],
        claims,
        [
            *ID.panels("ID derivatives"),
            Lines("speedups, by time", "N", "ratio", measured, marked=True, level=1),
            *FD.panels("FD derivatives"),
            Lines("speedups, by operations", "N", "ratio", speedups, level=1),
        ],
        [extrapolated(lab, [*id_ways, *fd_ways])],
    )


def figure3(lab: Lab) -> Outcome:
    """IDSVA in ground and in body coordinates."""
    sizes = QUICK_SIZES if lab.quick else (*SIZES, 30)
    ways = [inverse(k) for k in ("idsva", "idsva-body")]
    lab.plan(len(sizes) * len(ways))
    sweep = Sweep.run(lab, CHAIN, sizes, ways)
    times, counts = sweep.ratios("idsva-body", "idsva"), sweep.count_ratios("idsva-body", "idsva")
    slower = below(times, NOISE) + below(counts)
    inside = all(1.2 < x < 2.1 for x in [*times.values(), *counts.values()])
    large = max(counts)
    ground, body = (2 * (sweep.entries[large][way.name].operations or 0) / large**2 for way in ways)
    why = (
        f"on long chains a pair of joints takes {ground:.0f} operations in ground coordinates and {body:.0f} in body "
        "coordinates, and straight-line code has nothing else to dilute that; on short ones there is little to turn"
    )
    claim = Claim(
        "Ground coordinates are 1.3 to 1.9x faster, for N = 2 to 500",
        f"time {span(list(times.values()))}, operations {span(list(counts.values()))}"
        + (f"; body coordinates need less at N = {', '.join(map(str, sorted(set(slower))))}" if slower else ""),
        sized(not slower, inside),
        "" if inside and not slower else why,
    )
    both = {"time": curve(times), "operations": curve(counts)}
    return Outcome(
        [
            sweep.times("Derivatives of inverse dynamics: time per state"),
            sweep.operations("Operations per state"),
            sweep.compared("How much longer in body coordinates", [("idsva-body", "idsva")]),
        ],
        [claim],
        [*sweep.panels("IDSVA"), Lines("body / ground", "N", "ratio", both, marked=True, level=1)],
        [extrapolated(lab, ways)],
    )


def extrapolated(lab: Lab, ways: list) -> str:
    """How good the counts for large N are."""
    worst = max(ways, key=lambda way: lab.growth(way).error)
    error = lab.growth(worst).error
    exact = "exactly" if error == 0 else f"within {error:.1%} ({worst.name})"
    return f"Operations beyond the sizes timed are polynomials in N, which meet a count that was kept back {exact}."
