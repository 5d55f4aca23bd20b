"""[IDSVA] Fig. 2: methods against the number of joints of a serial chain; Fig. 3: ground against body coordinates."""

from __future__ import annotations

from .algorithms import Algorithm, forward, inverse
from .lab import CHAIN, Lab
from .report import FAVOURED, Claim, ExperimentResult, Figure, about, counted
from .sweep import Comparison, SizeSweep, at_large, extrapolation_remark, ratio_lines

SIZES, FD_SIZES, QUICK_SIZES = (2, 4, 8, 12, 16, 20), (2, 4, 8, 12, 16), (2, 4, 6)
FDSVA = "FDSVA"  # the better of DMM and AZA
ID_METHODS = ("idsva", "chain-rule")
FD_METHODS = ("fdsva-dmm", "fdsva-aza", "fdcr", "abacr", "fdsva-ltl", "direct")
FD_PAIRS = (("fdcr", FDSVA), ("abacr", FDSVA), (FDSVA, "direct"))


def figure2(lab: Lab) -> ExperimentResult:
    """IDSVA against RNEACR, and FDSVA against FDCR and ABACR."""
    sizes, fd_sizes = (QUICK_SIZES, QUICK_SIZES) if lab.quick else (SIZES, FD_SIZES)
    of_ID, of_FD = [inverse(k) for k in ID_METHODS], [forward(k) for k in FD_METHODS]
    lab.plan(SizeSweep.steps(lab, sizes, of_ID) + SizeSweep.steps(lab, fd_sizes, of_FD))
    ID = SizeSweep.run(lab, CHAIN, sizes, of_ID)
    FD = SizeSweep.run(lab, CHAIN, fd_sizes, of_FD)
    FD.add_best(FDSVA, ("fdsva-dmm", "fdsva-aza"))
    rneacr = ID.compare("chain-rule", "idsva")
    comparisons = {"RNEACR / IDSVA": rneacr} | {f"{a} / {b}": FD.compare(a, b) for a, b in FD_PAIRS}
    return ExperimentResult(
        [
            ID.times("Derivatives of inverse dynamics: time per state"),
            ID.operations("Derivatives of inverse dynamics: operations per state"),
            ID.comparisons("How much longer RNEACR takes", [("chain-rule", "idsva")]),
            FD.times("Derivatives of forward dynamics: time per state"),
            FD.operations("Derivatives of forward dynamics: operations per state"),
            FD.comparisons("How much longer; FDSVA is the better of DMM and AZA", FD_PAIRS),
        ],
        [
            _large_speedup(ID, rneacr),
            _outperforms("IDSVA outperforms RNEACR for all N >= 2", rneacr, _few_ancestors(rneacr)),
            _outperforms("FDSVA outperforms FDCR for all N >= 2", comparisons[f"fdcr / {FDSVA}"]),
            _outperforms("FDSVA outperforms ABACR for all N >= 2", comparisons[f"abacr / {FDSVA}"]),
        ],
        [
            *ID.panels("ID derivatives"),
            ratio_lines("speedups, by time", {k: c.times for k, c in comparisons.items()}, marked=True),
            *FD.panels("FD derivatives"),
            ratio_lines("speedups, by operations", {k: c.counts for k, c in comparisons.items()}, marked=False),
        ],
        [extrapolation_remark(lab, [*ID.algorithms, *FD.algorithms])],
    )


def _large_speedup(ID: SizeSweep, rneacr: Comparison) -> Claim:
    large, count = ID.found[100], rneacr.counts[100]
    return Claim(
        "IDSVA is 15x faster than RNEACR at N = 100",
        about(15),
        [rneacr.times[100]] if 100 in rneacr.times else [],
        f"measured {at_large(rneacr.times)}; {count:.1f}x fewer operations at N = 100",
        "compiled loops spend no time on calls or on temporary matrices. What remains are the operations, "
        f"{large['chain-rule'].operations:,} against {large['idsva'].operations:,}, and partials that no cache holds",
    )


def _few_ancestors(slow: Comparison) -> str:
    return f"not at N = {', '.join(map(str, slow.slower))}, where joints have hardly any ancestors to save work on"


def _outperforms(said: str, slow: Comparison, why: str = "") -> Claim:
    return Claim(said, FAVOURED, list(slow.times.values()), slow.text, why or counted(list(slow.counts.values())))


def figure3(lab: Lab) -> ExperimentResult:
    """IDSVA in ground and in body coordinates."""
    sizes = QUICK_SIZES if lab.quick else (*SIZES, 30)
    algorithms = [inverse(k) for k in ("idsva", "idsva-body")]
    lab.plan(SizeSweep.steps(lab, sizes, algorithms))
    sweep = SizeSweep.run(lab, CHAIN, sizes, algorithms)
    body = sweep.compare("idsva-body", "idsva")
    both = {"time": body.times, "operations": body.counts}
    return ExperimentResult(
        [
            sweep.times("Derivatives of inverse dynamics: time per state"),
            sweep.operations("Operations per state"),
            sweep.comparisons("How much longer in body coordinates", [("idsva-body", "idsva")]),
        ],
        [_ground_is_faster(sweep, algorithms, body)],
        [*sweep.panels("IDSVA"), ratio_lines("body / ground", both, marked=True)],
        [extrapolation_remark(lab, algorithms)],
    )


def _ground_is_faster(sweep: SizeSweep, algorithms: list[Algorithm], body: Comparison) -> Claim:
    large = max(body.counts)
    per_pair = [2 * (sweep.found[large][x.name].operations or 0) / large**2 for x in algorithms]
    why = (
        f"on long chains a pair of joints takes {per_pair[0]:.0f} operations in ground coordinates and "
        f"{per_pair[1]:.0f} in body coordinates; on short chains there is little to transform, and on very long ones "
        "no cache holds the terms in every body's frame"
    )
    sizes = ", ".join(map(str, body.slower))
    return Claim(
        "Ground coordinates are 1.3 to 1.9x faster, for N = 2 to 500",
        Figure(1.3, 1.9),
        list(body.times.values()),
        body.text + (f"; body coordinates need less at N = {sizes}" if sizes else ""),
        why,
    )
