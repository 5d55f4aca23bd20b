"""The lab: robots by name, algorithms traced and compiled once, their results compared, then timed in turns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...errors import FeatherjetError, InputError, PhysicsWarning
from ...model.model import Array
from ...model.tree import Tree
from ...robot.loading import load
from ...robot.robot import Robot
from ..bench.checking import EXACT, LONG, LONG_EXACT, Disagreement, States, difference
from ..bench.robots import entrant
from ..bench.timing import QUICK, Contender, Spread, TimingSettings, measure
from ..internals import TooLong
from ..loops.kernel import LoopedKernel
from .algorithms import MATRICES, Algorithm, TracedAlgorithm
from .growth import Growth

Root = Literal["fixed", "free"]
BATCH_BYTES = 1 << 18  # that the results of a batch may fill, so that they stay in a core's cache
FEWEST, MOST, GRAIN = 64, 4096, 64  # states in a batch
CHAIN = "auto{}"  # the papers' serial chains, by number of joints; trees are "auto{}x2"
ROOTS: dict[str, Root] = {  # the papers' robots, which a user may have files of
    "lwr": "fixed", "ur3": "fixed", "baxter": "fixed", "hyq": "free", "atlas": "free", "talos_full": "free",
}  # fmt: skip
STAND_INS = {"lwr": "arm", "atlas": "humanoid36"}  # for those that no package brings
GRIPPERS = ("left_gripper", "right_gripper")
DEAD_CODE = 3  # a trace may hold this many times the operations that are compiled; the rest is dead


class NotInstalled(FeatherjetError):
    """A robot of the paper that is not installed; the message says how to get it."""


@dataclass(frozen=True)
class Measurement:
    """One algorithm on one robot: its operations, and seconds per state round by round; None if unknown."""

    operations: int | None
    rounds: Array | None = None

    @property
    def seconds(self) -> float | None:
        """The median over the rounds."""
        return None if self.rounds is None else Spread.of(self.rounds[np.isfinite(self.rounds)]).median


Measurements = dict[str, Measurement]


def ratio(slow: Measurement, fast: Measurement) -> float | None:
    """How much longer `slow` takes, round by round, so that drifts of the machine cancel; None if one is not timed."""
    if slow.rounds is None or fast.rounds is None:
        return None
    r = slow.rounds / fast.rounds
    return Spread.of(r[np.isfinite(r)]).median


def count_ratio(slow: Measurement, fast: Measurement) -> float | None:
    """How many times the operations of `fast` the algorithm `slow` needs; None if one is not counted."""
    return None if slow.operations is None or fast.operations is None else slow.operations / fast.operations


@dataclass
class Lab:
    """Where experiments run. They call plan(n) to announce n steps, then step(text) at the start of each."""

    quick: bool = False
    step: Callable[[str], object] = lambda text: None
    plan: Callable[[int], object] = lambda steps: None
    seed: int = 0
    files: Mapping[str, str] = field(default_factory=dict)  # of the papers' robots, by name
    _robots: dict[str, Robot] = field(default_factory=dict)
    _traced: dict[tuple[Algorithm, str], TracedAlgorithm | None] = field(default_factory=dict)
    _growth: dict[Algorithm, Growth] = field(default_factory=dict)

    @property
    def settings(self) -> TimingSettings:
        return QUICK if self.quick else TimingSettings(rounds=12, turn=0.01)

    @property
    def limit(self) -> int:
        """Operations of straight-line code, before fusing, beyond which it is counted but not compiled."""
        return 20_000 if self.quick else 120_000

    def robot(self, name: str) -> Robot:
        """By a name of `featherjet bench`; "humanoid36" is the built-in one with locked grippers, the size of Atlas.

        A robot of the papers comes from the user's file, if there is one, or is another that stands in for it.
        """
        if name not in self._robots:
            if name in self.files:
                self._robots[name] = _from_file(self.files[name], ROOTS[name])
                return self._robots[name]
            try:
                self._robots[name] = _load(STAND_INS.get(name, name))
            except FeatherjetError as error:
                raise NotInstalled(f"{name}: pip install 'featherjet[robots]' ({error})") from None
        return self._robots[name]

    def stand_ins(self, *names: str) -> list[str]:
        """Remarks on robots that stand in for others."""
        return [
            f"{self.robot(name).name} stands in for {name}, which no package brings (--robot {name}=FILE takes yours)."
            for name in names
            if name in STAND_INS and name not in self.files
        ]

    def traced(self, algorithm: Algorithm, name: str, limit: int | None = None) -> TracedAlgorithm | None:
        """The algorithm traced for the robot; None if it is too long to compile."""
        key = algorithm, name
        if key not in self._traced:
            limit = limit or self.limit
            try:
                traced = TracedAlgorithm(algorithm, Tree(self.robot(name).model), DEAD_CODE * limit)
                self._traced[key] = traced if traced.size <= limit else None
            except TooLong:
                self._traced[key] = None
        return self._traced[key]

    def traced_within(self, limit: int, algorithm: Algorithm, name: str) -> TracedAlgorithm:
        """The same for an algorithm that must be compiled: beyond the limit it is refused."""
        traced = self.traced(algorithm, name, limit)
        if traced is None:
            raise InputError(
                f"{algorithm.name} of {name} has more than {limit:,} operations, which take too long to compile"
            )
        return traced

    def states(self, name: str, size: int | None = None) -> dict[str, Array]:
        """A batch of random states of a robot: q, v, a, tau, and matrices by_q and by_v, (B, nv^2)."""
        robot = self.robot(name)
        s = States.random(robot, size or batch_size(robot.nv), self.seed)
        by_q, by_v = np.random.default_rng(self.seed).normal(size=(2, len(s.q), robot.nv**2))
        return {"q": s.q, "v": s.v, "a": s.a, "tau": s.tau, "by_q": by_q, "by_v": by_v}

    def race(self, name: str, algorithms: Sequence[Algorithm], limit: int | None = None) -> Measurements:
        """Compile, compare with the first, and time; algorithms that are too long to compile are only counted."""
        states = self.states(name)
        found: Measurements = {}
        contenders: list[Contender] = []
        first: tuple[Array, ...] = ()
        for algorithm in algorithms:
            self.step(f"{algorithm.name}, {name}")
            traced = self.traced(algorithm, name, limit)
            if traced is None:
                found[algorithm.name] = Measurement(self.operations(algorithm, name))
                continue
            found[algorithm.name] = Measurement(traced.instructions)
            contender, results = make_contender(traced, states)
            first = first or results
            require_agreement(algorithm.name, results, algorithms[0].name, first)
            contenders.append(contender)
        times = measure(contenders, self.settings).seconds
        return {k: Measurement(m.operations, times.get(k)) for k, m in found.items()}

    def race_loops(
        self, name: str, algorithms: Sequence[Algorithm], lanes: int | Mapping[str, int] = 1
    ) -> Measurements:
        """The same for algorithms as loops, one state at a time; those that have no such form are only counted.

        lanes: columns that are computed at a time; with 1, code is scalar. Several numbers of lanes, by name, race
        together, and their names are appended to those of the algorithms.
        """
        tree = Tree(self.robot(name).model)
        states = self.states(name, loop_batch(tree.nv))
        ways = {f", {k}": n for k, n in lanes.items()} if isinstance(lanes, Mapping) else {"": lanes}
        found: Measurements = {}
        contenders: list[Contender] = []
        first: tuple[Array, ...] = ()
        for algorithm in algorithms:
            counted = Measurement(self.operations(algorithm, name))
            for way, width in ways.items():
                title = algorithm.name + way
                found[title] = counted
                if algorithm.looped is None:
                    continue
                self.step(f"{title}, {name}, in loops")
                kernel = LoopedKernel(algorithm.looped, algorithm.inputs, tree, width, MATRICES)
                inputs = [states[key] for key in algorithm.inputs]
                results = kernel(inputs)
                first = first or results
                tolerance = LONG_EXACT if tree.nv > LONG else EXACT
                require_agreement(title, results, algorithms[0].name, first, tolerance)
                contenders.append(_bound_contender(title, kernel.bound(inputs, results), len(inputs[0])))
        times = measure(contenders, self.settings).seconds
        return {k: Measurement(m.operations, times.get(k)) for k, m in found.items()}

    def operations(self, algorithm: Algorithm, name: str) -> int | None:
        """Counted in the trace, or extrapolated on a chain; None where neither is possible."""
        traced = self._traced.get((algorithm, name))
        if traced is not None:
            return traced.instructions
        size = name.removeprefix(CHAIN.format(""))
        if size == name or not size.isdigit():
            return None
        return self.growth(algorithm).at(int(size))

    def growth(self, algorithm: Algorithm) -> Growth:
        """How the algorithm's operations grow with the length of a chain."""
        if algorithm not in self._growth:
            self._growth[algorithm] = Growth.of(algorithm)
        return self._growth[algorithm]


def _from_file(path: str, root: Root) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysicsWarning)
        return load(path, root, backend="numpy")


def _load(name: str) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysicsWarning)  # an unphysical inertia takes as long as any other
        if name == "humanoid36":
            return load("humanoid").lock(dict.fromkeys(GRIPPERS, np.zeros(1)))
        return Robot(entrant(name).robot.model, backend="numpy")


def batch_size(nv: int) -> int:
    """States in a batch: enough to make the cost of a call negligible, few enough for the cache to hold the results."""
    fitting = BATCH_BYTES // (3 * 8 * nv**2) // GRAIN * GRAIN
    return int(np.clip(fitting, FEWEST, MOST))


def loop_batch(nv: int) -> int:
    """States in a batch of code that treats them one by one: several where one takes no longer than the call."""
    return int(np.clip(4 * BATCH_BYTES // (3 * 8 * nv**2), 1, FEWEST))


def _bound_contender(name: str, call: Callable[[], None], size: int) -> Contender:
    return Contender(name, lambda _: call(), size, whole=True)


def make_contender(
    traced: TracedAlgorithm, states: Mapping[str, Array], name: str | None = None
) -> tuple[Contender, tuple[Array, ...]]:
    """A compiled algorithm as a contender on a batch of states, and its results on them."""
    compiled = traced.compiled()
    inputs = [states[key] for key in traced.algorithm.inputs]
    results = compiled(inputs, None)
    out = tuple(np.empty_like(r) for r in results)

    def run(_: int) -> None:
        compiled(inputs, out)

    return Contender(name or traced.algorithm.name, run, len(inputs[0]), whole=True), results


def require_agreement(
    name: str, results: Sequence[Array], first: str, expected: Sequence[Array], tolerance: float = EXACT
) -> None:
    """Refuse results that differ from those of the first algorithm by more than rounding."""
    worst = max(difference(x, e) for x, e in zip(results, expected, strict=True))
    if not worst <= tolerance:
        raise Disagreement(f"{name!r} differs from {first!r} by {worst:.1e} of the largest entry; it is not timed")
