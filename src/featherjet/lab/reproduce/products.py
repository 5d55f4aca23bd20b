"""[IDSVA] Fig. 7, Table III: from which size on AZA beats the product of matrices (DMM); LTL, the direct method."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from .chains import extrapolated
from .lab import Lab
from .plots import Lines
from .report import Claim, Column, Outcome, Table
from .straight import PRODUCTS, forward
from .sweep import LARGE, Sweep, curve

SIZES, QUICK_SIZES = (4, 8, 16, 22, 28), (3, 5, 7)
TREES = {"branching 2": "tree{}x2", "branching 5": "tree{}x5"}
TREE_SIZES, QUICK_TREE_SIZES = (8, 16), (3, 6)
LIMIT = 150_000  # operations that are compiled here, to reach the crossover
PAPER = (("gcc 9, AVX off", 50), ("gcc 9, AVX on", 450), ("clang 10, AVX off", 80), ("clang 10, AVX on", 350))
WHOLE = ("fdsva-dmm", "fdsva-aza", "fdsva-ltl", "direct")


def figure7(lab: Lab) -> Outcome:
    """The step of eq. 5 alone, on full matrices, and all of forward dynamics' derivatives."""
    sizes, tree_sizes = (QUICK_SIZES, QUICK_TREE_SIZES) if lab.quick else (SIZES, TREE_SIZES)
    whole_ways = [forward(k) for k in WHOLE]
    limit = None if lab.quick else LIMIT
    whole_sizes = [n for n in sizes if n <= 16]
    lab.plan(len(PRODUCTS) * (len(sizes) + 2 * len(tree_sizes)) + len(whole_ways) * len(whole_sizes))
    chain = Sweep.run(lab, "chain{}", sizes, PRODUCTS, limit)
    trees = {k: Sweep.run(lab, family, tree_sizes, PRODUCTS, limit) for k, family in TREES.items()}
    whole = Sweep.run(lab, "chain{}", whole_sizes, whole_ways, limit)
    by_time = crossing(chain.ratios("DMM", "AZA"))
    by_count = first(lambda n: lab.growth(PRODUCTS[0]).at(n) > lab.growth(PRODUCTS[1]).at(n))
    ltl = first(lambda n: lab.growth(PRODUCTS[2]).at(n) > lab.growth(PRODUCTS[1]).at(n))
    *others, direct = (lab.growth(way) for way in whole_ways)
    best = first(lambda n: min(way.at(n) for way in others) > direct.at(n))
    rows: list[list] = [[setting, n] for setting, n in PAPER]
    rows += [
        ["here, step alone, by operations", by_count],
        ["here, step alone, by time", by_time if by_time else f"not up to {max(sizes)}"],
        ["here, LTL against AZA, by operations", ltl],
        ["here, direct against the best of DMM, AZA, LTL, by operations", best],
    ]
    columns = [Column("setting"), Column("N", "count")]
    table = Table("Table III: from which N on AZA is faster than DMM, on a chain", columns, rows)
    N = max(LARGE)
    slope = chain.count_ratios("DMM", "AZA")
    claims = [
        Claim(
            "AZA overtakes DMM at N = 50 to 450, depending on compiler and vector instructions",
            f"at N = {by_count} by operations"
            + (f", at about {by_time:.0f} measured" if by_time else f"; measured, not up to {max(sizes)}"),
            "holds, but not in size",
            "here lanes are samples, so that both are vectorised fully and operations decide. In the paper a product "
            "of matrices gains by vector instructions (hence 450 with AVX) and the recursion does not",
        ),
        Claim(
            "For high N AZA is efficient: its gain grows linearly with N",
            f"DMM / AZA, operations: {slope[100]:.1f}x at N = 100, {slope[N]:.1f}x at N = {N}",
            "holds" if 0.7 < slope[N] / slope[100] / (N / 100) < 1.3 else "holds, but not in size",
        ),
    ]
    count = whole.entries[N]
    remarks = [
        f"All derivatives at N = {N}, operations: " + ", ".join(f"{k} {e.operations:,}" for k, e in count.items()),
        "The step alone is given matrices full of numbers, as a library gives them to dgemm. Within the derivatives of "
        "a branched robot, straight-line code leaves out the zeros of dtau/dq, which DMM gains more by than AZA.",
        extrapolated(lab, [*PRODUCTS, *whole_ways]),
    ]  # fmt: skip
    every = {"chain": chain, **trees}
    ratios = {k: curve(s.count_ratios("DMM", "AZA")) for k, s in every.items()}
    measured = {k: curve(s.ratios("DMM", "AZA")) for k, s in every.items()}
    pairs = [("DMM", "AZA"), ("LTL", "AZA")]
    return Outcome(
        [
            table,
            chain.times("The step alone, chain: time per state"),
            chain.operations("The step alone, chain: operations per state"),
            *(s.compared(f"The step alone, {k}: how much longer", pairs) for k, s in every.items()),
            whole.times("All derivatives of forward dynamics, chain: time per state"),
            whole.operations("All derivatives of forward dynamics, chain: operations per state"),
        ],
        claims,
        [
            *chain.panels("step alone, chain"),
            Lines("DMM / AZA, by time", "N", "ratio", measured, True, 1),
            Lines("DMM / AZA, by operations", "N", "ratio", ratios, False, 1),
            *whole.panels("FD derivatives, chain"),
        ],
        remarks,
    )  # fmt: skip


def crossing(ratios: dict[int, float]) -> float | None:
    """Where a ratio that grows reaches one, between the sizes that were measured."""
    for (n, x), (m, y) in pairwise(ratios.items()):
        if x < 1 <= y:
            return n + (m - n) * (1 - x) / (y - x)
    return None


def first(holds: Callable[[int], bool], start: int = 5, end: int = 1000) -> int | None:
    """The smallest size from which on something holds."""
    found = None
    for n in range(start, end):
        if not holds(n):
            found = None
        elif found is None:
            found = n
    return found
