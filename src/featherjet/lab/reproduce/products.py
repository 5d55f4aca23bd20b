"""[IDSVA] Fig. 7, Table III: the size from which AZA beats the product of matrices (DMM); LTL, the direct method."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from .algorithms import AZA, DMM, LTL, PRODUCTS, forward
from .lab import CHAIN, Lab
from .report import Claim, Figure, Outcome, Table, TableColumn, about
from .sweep import LARGE, Sweep, extrapolation_remark, ratio_lines

SIZES, QUICK_SIZES = (4, 8, 16, 22, 28), (3, 5, 7)
TREES = {"branching 2": "auto{}x2", "branching 5": "auto{}x5"}
TREE_SIZES, QUICK_TREE_SIZES = (8, 16), (3, 6)
WHOLE_LARGEST = 16  # joints, up to which whole derivatives are timed
LIMIT = 150_000  # operations that are compiled here, to reach the crossover
PAPER = (("gcc 9, AVX off", 50), ("gcc 9, AVX on", 450), ("clang 10, AVX off", 80), ("clang 10, AVX on", 350))
WHOLE = tuple(forward(k) for k in ("fdsva-dmm", "fdsva-aza", "fdsva-ltl", "direct"))


class Sweeps(NamedTuple):
    """The step of eq. 5 alone on a chain and on trees, and the whole derivatives on a chain."""

    chain: Sweep
    trees: dict[str, Sweep]
    whole: Sweep

    @property
    def step(self) -> dict[str, Sweep]:
        return {"chain": self.chain, **self.trees}


class Crossovers(NamedTuple):
    """The sizes of a chain from which the second of two is better; None if there is no such size."""

    dmm_aza_by_time: float | None
    dmm_aza: int | None
    ltl_aza: int | None
    others_direct: int | None


def figure7(lab: Lab) -> Outcome:
    """The step of eq. 5 alone, on dense matrices, and the whole derivatives of forward dynamics."""
    sweeps = _run(lab)
    crossovers = _crossovers(lab, sweeps.chain)
    step, whole = sweeps.step, sweeps.whole
    pairs = [("DMM", "AZA"), ("LTL", "AZA")]
    ratios = {k: s.compare("DMM", "AZA") for k, s in step.items()}
    return Outcome(
        [
            _table3(crossovers, max(sweeps.chain.timed)),
            sweeps.chain.times("The step alone, chain: time per state"),
            sweeps.chain.operations("The step alone, chain: operations per state"),
            *(s.comparisons(f"The step alone, {k}: how much longer", pairs) for k, s in step.items()),
            whole.times("All derivatives of forward dynamics, chain: time per state"),
            whole.operations("All derivatives of forward dynamics, chain: operations per state"),
        ],
        [_overtakes(crossovers, max(sweeps.chain.timed)), _gain_is_linear(sweeps.chain)],
        [
            *sweeps.chain.panels("step alone, chain"),
            ratio_lines("DMM / AZA, by time", {k: c.times for k, c in ratios.items()}, marked=True),
            ratio_lines("DMM / AZA, by operations", {k: c.counts for k, c in ratios.items()}, marked=False),
            *whole.panels("FD derivatives, chain"),
        ],
        _remarks(lab, whole),
    )


def _run(lab: Lab) -> Sweeps:
    sizes, tree_sizes = (QUICK_SIZES, QUICK_TREE_SIZES) if lab.quick else (SIZES, TREE_SIZES)
    whole_sizes = [n for n in sizes if n <= WHOLE_LARGEST]
    limit = None if lab.quick else LIMIT
    lab.plan(len(PRODUCTS) * (len(sizes) + len(TREES) * len(tree_sizes)) + len(WHOLE) * len(whole_sizes))
    return Sweeps(
        Sweep.run(lab, CHAIN, sizes, PRODUCTS, limit),
        {k: Sweep.run(lab, family, tree_sizes, PRODUCTS, limit) for k, family in TREES.items()},
        Sweep.run(lab, CHAIN, whole_sizes, WHOLE, limit),
    )


def _crossovers(lab: Lab, chain: Sweep) -> Crossovers:
    dmm, aza, ltl = (lab.growth(x) for x in (DMM, AZA, LTL))
    *others, direct = (lab.growth(x) for x in WHOLE)
    return Crossovers(
        crossing(chain.compare("DMM", "AZA").times),
        first(lambda n: dmm.at(n) > aza.at(n)),
        first(lambda n: ltl.at(n) > aza.at(n)),
        first(lambda n: min(x.at(n) for x in others) > direct.at(n)),
    )


def _table3(found: Crossovers, largest: int) -> Table:
    rows: list[list] = [[setting, n] for setting, n in PAPER]
    rows += [
        ["here, step alone, by operations", found.dmm_aza],
        ["here, step alone, by time", found.dmm_aza_by_time or f"not up to {largest}"],
        ["here, LTL against AZA, by operations", found.ltl_aza],
        ["here, direct against the best of DMM, AZA, LTL, by operations", found.others_direct],
    ]
    columns = [TableColumn("setting"), TableColumn("N", "count")]
    return Table("Table III: the N from which AZA is faster than DMM, on a chain", columns, rows)


def _overtakes(found: Crossovers, largest: int) -> Claim:
    by_time = found.dmm_aza_by_time
    return Claim(
        "AZA overtakes DMM at N = 50 to 450, depending on compiler and vector instructions",
        Figure.of(n for _, n in PAPER),
        [by_time] if by_time else [],
        f"at N = {found.dmm_aza} by operations"
        + (f", at about {by_time:.0f} measured" if by_time else f"; measured, not up to {largest}"),
        "here lanes are samples, so that both are fully vectorised and operations decide. In the paper vector "
        "instructions speed up the product of matrices (hence 450 with AVX) but not the recursion",
    )


def _gain_is_linear(chain: Sweep) -> Claim:
    ratios, N = chain.compare("DMM", "AZA").counts, max(LARGE)
    return Claim(
        "For high N AZA is efficient: its gain grows linearly with N",
        about(N / 100),
        [ratios[N] / ratios[100]],
        f"DMM / AZA, operations: {ratios[100]:.1f}x at N = 100, {ratios[N]:.1f}x at N = {N}",
    )


def _remarks(lab: Lab, whole: Sweep) -> list[str]:
    N = max(LARGE)
    counts = ", ".join(f"{k} {m.operations:,}" for k, m in whole.found[N].items())
    return [
        f"All derivatives at N = {N}, operations: {counts}",
        "The step alone takes dense matrices, as a library passes them to dgemm. Within the derivatives of a branched "
        "robot, straight-line code leaves out the zeros of dtau/dq, which helps DMM more than AZA.",
        extrapolation_remark(lab, [*PRODUCTS, *WHOLE]),
    ]


def crossing(ratios: dict[int, float]) -> float | None:
    """Where a growing ratio reaches one, interpolated between the measured sizes."""
    for (n, x), (m, y) in pairwise(ratios.items()):
        if x < 1 <= y:
            return n + (m - n) * (1 - x) / (y - x)
    return None


def first(holds: Callable[[int], bool], start: int = 5, end: int = 1000) -> int | None:
    """The smallest size from which something holds for all larger ones."""
    found = None
    for n in range(start, end):
        if not holds(n):
            found = None
        elif found is None:
            found = n
    return found
