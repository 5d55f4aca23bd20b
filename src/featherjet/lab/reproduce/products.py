"""[IDSVA] Fig. 7, Table III: the size from which AZA beats the product of matrices (DMM); LTL, the direct method."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...algorithms.scan import Scan
from ...model.tree import Tree
from ..bench.timing import Contender, measure
from ..internals import lanes, remember_crossovers
from .algorithms import AZA, DMM, LTL, PRODUCTS, Algorithm, forward
from .lab import CHAIN, Lab, Measurement, Measurements, ratio
from .report import Claim, ExperimentResult, Figure, Table, TableColumn, about
from .sweep import LARGE, SizeSweep, extrapolation_remark, ratio_lines

SIZES, QUICK_SIZES = (4, 8, 16, 22, 28), (3, 5, 7)
TREES = {"branching 2": "auto{}x2", "branching 5": "auto{}x5"}
TREE_SIZES, QUICK_TREE_SIZES = (8, 16), (3, 6)
NUMPY_SIZES, QUICK_NUMPY_SIZES, NUMPY_BATCH = (40, 70, 100, 130, 160), (4, 8), 32
LOOP_SIZES, QUICK_LOOP_SIZES = (16, 24, 36, 50, 75, 100, 150, 200, 300, 400, 500), (8, 16)
SCALAR, LANES = "scalar", "lanes"
PAIRS = {  # Table III: what is compared
    "all scalar": (f"DMM, {SCALAR}", f"AZA, {SCALAR}"),
    "product in lanes, recursion scalar": (f"DMM, {LANES}", f"AZA, {SCALAR}"),
    "all in lanes": (f"DMM, {LANES}", f"AZA, {LANES}"),
}
WHOLE_LARGEST = 16  # joints, up to which whole derivatives are timed
LIMIT = 150_000  # operations that are compiled here, to reach the crossover
PAPER = (("gcc 9, AVX off", 50), ("gcc 9, AVX on", 450), ("clang 10, AVX off", 80), ("clang 10, AVX on", 350))
WHOLE = tuple(forward(k) for k in ("fdsva-dmm", "fdsva-aza", "fdsva-ltl", "direct"))


class Sweeps(NamedTuple):
    """The step of eq. 5 alone on a chain and on trees, and the whole derivatives on a chain."""

    chain: SizeSweep
    trees: dict[str, SizeSweep]
    whole: SizeSweep

    @property
    def step(self) -> dict[str, SizeSweep]:
        return {"chain": self.chain, **self.trees}


class Crossovers(NamedTuple):
    """The sizes of a chain from which the second of two is better; None if there is no such size."""

    straight: float | None  # DMM and AZA as straight-line code, by time
    on_numpy: float | None  # on NumPy arrays
    scalar: float | None  # as scalar loops
    product_in_lanes: float | None  # the product in lanes, the recursion scalar
    lanes: float | None  # both in lanes
    dmm_aza: int | None
    ltl_aza: int | None
    others_direct: int | None


def figure7(lab: Lab) -> ExperimentResult:
    """The step of eq. 5 alone, on dense matrices, and the whole derivatives of forward dynamics."""
    sweeps = _run(lab)
    loops = _time_loops(lab)
    crossovers = _crossovers(lab, sweeps.chain, loops, _time_numpy(lab))
    step, whole = sweeps.step, sweeps.whole
    pairs = [("DMM", "AZA"), ("LTL", "AZA")]
    ratios = {k: s.compare("DMM", "AZA") for k, s in step.items()}
    return ExperimentResult(
        [
            _table3(crossovers),
            *_loops_tables(loops),
            sweeps.chain.times("The step alone, chain: time per state"),
            sweeps.chain.operations("The step alone, chain: operations per state"),
            *(s.comparisons(f"The step alone, {k}: how much longer", pairs) for k, s in step.items()),
            whole.times("All derivatives of forward dynamics, chain: time per state"),
            whole.operations("All derivatives of forward dynamics, chain: operations per state"),
        ],
        [overtakes(crossovers, lab.quick), _gain_is_linear(loops, sweeps.chain)],
        [
            *sweeps.chain.panels("step alone, chain"),
            ratio_lines("DMM / AZA, by time", {k: c.times for k, c in ratios.items()}, marked=True),
            ratio_lines("DMM / AZA, by operations", {k: c.counts for k, c in ratios.items()}, marked=False),
            *whole.panels("FD derivatives, chain"),
            ratio_lines(
                "DMM / AZA in loops, by time", {k: loops.ratios(*names) for k, names in PAIRS.items()}, marked=True
            ),
        ],
        [*_remarks(lab, whole), _remember(lab, crossovers)],
    )


def _run(lab: Lab) -> Sweeps:
    sizes, tree_sizes = (QUICK_SIZES, QUICK_TREE_SIZES) if lab.quick else (SIZES, TREE_SIZES)
    whole_sizes = [n for n in sizes if n <= WHOLE_LARGEST]
    limit = None if lab.quick else LIMIT
    steps = [SizeSweep.steps(lab, sizes, PRODUCTS), len(TREES) * SizeSweep.steps(lab, tree_sizes, PRODUCTS)]
    steps += [SizeSweep.steps(lab, whole_sizes, WHOLE), 6 * len(QUICK_LOOP_SIZES if lab.quick else LOOP_SIZES)]
    steps += [len(QUICK_NUMPY_SIZES if lab.quick else NUMPY_SIZES)]
    lab.plan(sum(steps))
    return Sweeps(
        SizeSweep.run(lab, CHAIN, sizes, PRODUCTS, limit),
        {k: SizeSweep.run(lab, family, tree_sizes, PRODUCTS, limit) for k, family in TREES.items()},
        SizeSweep.run(lab, CHAIN, whole_sizes, WHOLE, limit),
    )


class BySize(NamedTuple):
    """The step alone on chains: DMM and AZA, in some ways, by size."""

    found: dict[int, Measurements]

    def ratios(self, slow: str, fast: str) -> dict[int, float]:
        """How much longer one takes than the other."""
        return {n: x for n, m in self.found.items() if (x := ratio(m[slow], m[fast])) is not None}


def _time_loops(lab: Lab) -> BySize:
    found: dict[int, Measurements] = {}
    for n in QUICK_LOOP_SIZES if lab.quick else LOOP_SIZES:
        found[n] = lab.race_loops(CHAIN.format(n), PRODUCTS, {SCALAR: 1, LANES: lanes()})
    return BySize(found)


def _time_numpy(lab: Lab) -> BySize:
    """The reference, on a batch of states."""
    found: dict[int, Measurements] = {}
    for n in QUICK_NUMPY_SIZES if lab.quick else NUMPY_SIZES:
        name = CHAIN.format(n)
        lab.step(f"DMM and AZA, {name}, on NumPy")
        tree, states = Tree(lab.robot(name).model), lab.states(name, NUMPY_BATCH)
        inputs = [np.ascontiguousarray(states[key].T) for key in DMM.inputs]

        def run(algorithm: Algorithm, tree: Tree = tree, inputs: list = inputs) -> Callable[[int], object]:
            return lambda _: algorithm.function(Scan(tree, (NUMPY_BATCH,)), *inputs)

        contenders = [Contender(x.name, run(x), NUMPY_BATCH, whole=True) for x in (DMM, AZA)]
        found[n] = {k: Measurement(None, x) for k, x in measure(contenders, lab.settings).seconds.items()}
    return BySize(found)


def _remember(lab: Lab, found: Crossovers) -> str:
    """Let the method `fdsva` know from which size to take AZA on this host."""
    sizes = {"compiled": found.straight, "numpy": found.on_numpy}
    known = {backend: math.ceil(n) for backend, n in sizes.items() if n is not None}
    if lab.quick or not known:
        return "The crossovers of the method fdsva are kept from full runs alone."
    remember_crossovers(known)
    text = " and ".join(f"from {n} dofs on ({backend})" for backend, n in known.items())
    return f"The method fdsva now takes AZA {text} on this host; FEATHERJET_AZA_FROM=N pins another crossover."


def _crossovers(lab: Lab, chain: SizeSweep, loops: BySize, on_numpy: BySize) -> Crossovers:
    dmm, aza, ltl = (lab.growth(x) for x in (DMM, AZA, LTL))
    *others, direct = (lab.growth(x) for x in WHOLE)
    straight = {n: x for n, x in chain.compare("DMM", "AZA").times.items() if n not in LARGE}
    scalar, product_in_lanes, in_lanes = (crossing(loops.ratios(*names)) for names in PAIRS.values())
    return Crossovers(
        crossing(straight),
        crossing(on_numpy.ratios("DMM", "AZA")),
        scalar,
        product_in_lanes,
        in_lanes,
        first(lambda n: dmm.at(n) > aza.at(n)),
        first(lambda n: ltl.at(n) > aza.at(n)),
        first(lambda n: min(x.at(n) for x in others) > direct.at(n)),
    )


def _table3(found: Crossovers) -> Table:
    rows: list[list] = [[setting, n] for setting, n in PAPER]
    timed = (found.scalar, found.product_in_lanes, found.lanes)
    rows += [[f"here, loops, {k}", size(n)] for k, n in zip(PAIRS, timed, strict=True)]
    rows += [
        ["here, straight-line code, states in lanes", size(found.straight)],
        ["here, NumPy arrays", size(found.on_numpy)],
        ["here, by operations", found.dmm_aza],
        ["here, LTL against AZA, by operations", found.ltl_aza],
        ["here, direct against the best of DMM, AZA, LTL, by operations", found.others_direct],
    ]
    columns = [TableColumn("setting"), TableColumn("N", "count")]
    return Table("Table III: the N from which AZA is faster than DMM, on a chain", columns, rows)


def size(n: float | None) -> int | str:
    return "not at these sizes" if n is None else round(n)


def _loops_tables(loops: BySize) -> list[Table]:
    names = [f"{k.name}, {how}" for how in (SCALAR, LANES) for k in PRODUCTS]
    N = TableColumn("N", "count")
    times: list[list] = [[n, *(m[k].seconds for k in names)] for n, m in loops.found.items()]
    ratios: list[list] = [[n, *(ratio(m[a], m[b]) for a, b in PAIRS.values())] for n, m in loops.found.items()]
    return [
        Table(
            "The step alone, chain, in loops: time per state",
            [N, *(TableColumn(k, "time") for k in names)],
            times,
            f"One state at a time. Lanes are {lanes()} columns; products go by blocks in registers, as in a BLAS.",
        ),
        Table(
            "The step alone, chain, in loops: DMM / AZA",
            [N, *(TableColumn(k, "ratio") for k in PAIRS)],
            ratios,
        ),
    ]


def overtakes(found: Crossovers, quick: bool) -> Claim:
    """A pair without a crossover at these sizes has it nowhere; quick runs end before any."""
    timed = dict(zip(PAIRS, (found.scalar, found.product_in_lanes, found.lanes), strict=True))
    return Claim(
        "AZA overtakes DMM at N = 50 to 450, depending on compiler and vector instructions",
        Figure.of(n for _, n in PAPER),
        [] if quick else [math.inf if n is None else n for n in timed.values()],
        ", ".join([*(f"{k}: {size(n)}" for k, n in timed.items()), f"by operations: {found.dmm_aza}"]),
        "in the paper vector instructions speed up the product of matrices (hence 450 with AVX) but not the recursion",
    )


def _gain_is_linear(loops: BySize, chain: SizeSweep) -> Claim:
    counts, times, N = chain.compare("DMM", "AZA").counts, loops.ratios(*PAIRS["all scalar"]), max(LARGE)
    known = {n: times[n] for n in (100, N) if n in times}
    found = ", ".join(f"{x:.1f}x at N = {n}" for n, x in known.items()) or "not timed"
    return Claim(
        "For high N AZA is efficient: its gain grows linearly with N",
        about(N / 100),
        [known[N] / known[100]] if len(known) == 2 else [],
        f"DMM / AZA, scalar loops: {found}; operations {counts[100]:.1f}x and {counts[N]:.1f}x",
        "by operations it does; in loops AZA takes longer for each of them, as every body carries all columns along",
    )


def _remarks(lab: Lab, whole: SizeSweep) -> list[str]:
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
