"""Where experiments are run: robots by name, ways traced and compiled once, results compared, then timed in turns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ...errors import FeatherjetError, InputError, PhysicsWarning
from ...evaluate.reference import Reference
from ...jit.graph import TooLong
from ...model.model import Array
from ...robot.loading import load
from ...robot.robot import Robot
from ..bench.contenders import EXACT, Disagreement, States, difference
from ..bench.robots import entrant
from ..bench.timing import QUICK, Contender, Settings, Spread, measure
from .straight import Traced, Way, operations

ROOM = 1 << 18  # bytes of results that a batch may fill, so that they stay in a core's cache
FEWEST, MOST, GRAIN = 64, 4096, 64  # states in a batch
GRIPPERS = ("left_gripper", "right_gripper")
SAMPLED = {1: ((5, 6), 8), 2: ((5, 7, 9), 10), 3: ((5, 6, 7, 8), 9)}  # degree -> chains traced, and one to check by
SLACK = 3  # a trace may be so many times what is compiled of it, the rest being dead


class NotInstalled(FeatherjetError):
    """A robot of the paper that is not there; the message says how to get it."""


@dataclass(frozen=True)
class Entry:
    """What was found for one way on one robot: `rounds` in seconds for one state, None where it was not timed."""

    operations: int | None
    rounds: Array | None = None

    @property
    def seconds(self) -> float | None:
        return None if self.rounds is None else Spread.of(self.rounds[np.isfinite(self.rounds)]).median


Entries = dict[str, Entry]


def ratio(slow: Entry, fast: Entry) -> float | None:
    """How much longer, round by round, so that drifts of the machine cancel; None if one was not timed."""
    if slow.rounds is None or fast.rounds is None:
        return None
    r = slow.rounds / fast.rounds
    return Spread.of(r[np.isfinite(r)]).median


def count_ratio(slow: Entry, fast: Entry) -> float | None:
    return None if slow.operations is None or fast.operations is None else slow.operations / fast.operations


@dataclass
class Lab:
    """Settings of a run. step(text) tells whoever watches what is being done; plan(n), how many steps there are."""

    quick: bool = False
    step: Callable[[str], object] = lambda text: None
    plan: Callable[[int], object] = lambda steps: None
    seed: int = 0
    _robots: dict[str, Robot] = field(default_factory=dict)
    _traced: dict[tuple[Way, str], Traced | None] = field(default_factory=dict)
    _growth: dict[Way, Growth] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return QUICK if self.quick else Settings(rounds=12, turn=0.01)

    @property
    def limit(self) -> int:
        """Operations of straight-line code, before fusing, beyond which a way is counted and not compiled."""
        return 20_000 if self.quick else 120_000

    def robot(self, name: str) -> Robot:
        """By a name of `featherjet bench`; "humanoid36" is the built-in one with locked grippers, the size of Atlas."""
        if name not in self._robots:
            try:
                self._robots[name] = self._made(name)
            except FeatherjetError as error:
                raise NotInstalled(f"{name}: pip install 'featherjet[robots]' ({error})") from None
        return self._robots[name]

    @staticmethod
    def _made(name: str) -> Robot:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PhysicsWarning)  # a doubtful inertia takes as long as any other
            if name == "humanoid36":
                return load("humanoid").lock(dict.fromkeys(GRIPPERS, np.zeros(1)))
            robot = entrant(name).robot
        return Robot(robot.model, "numpy")

    def traced(self, way: Way, name: str, limit: int | None = None) -> Traced | None:
        """The way for the robot; None if it is too long to be compiled."""
        key = way, name
        if key not in self._traced:
            limit = limit or self.limit
            try:
                traced = Traced(way, Reference(self.robot(name).model).tree, SLACK * limit)
                self._traced[key] = traced if traced.size <= limit else None
            except TooLong:
                self._traced[key] = None
        return self._traced[key]

    def short(self, way: Way, name: str, limit: int) -> Traced:
        """The same for what must be compiled."""
        traced = self.traced(way, name, limit)
        if traced is None:
            raise InputError(f"{way.name} of {name} has more than {limit:,} operations, which take too long to compile")
        return traced

    def states(self, name: str, size: int | None = None) -> dict[str, Array]:
        """Random states of a robot, as many as a batch has: q, v, a, tau; and matrices, for ways that take some."""
        robot = Robot(self.robot(name).model, "numpy")
        s = States.random(robot, size or batch(robot.nv), self.seed)
        by_q, by_v = np.random.default_rng(self.seed).normal(size=(2, len(s.q), robot.nv**2))
        return {"q": s.q, "v": s.v, "a": s.a, "tau": s.tau, "by_q": by_q, "by_v": by_v}

    def race(self, name: str, ways: Sequence[Way], limit: int | None = None) -> Entries:
        """Compile, compare with the first, and time; ways that are too long have no time."""
        given = self.states(name)
        found: Entries = {}
        contenders: list[Contender] = []
        true: tuple[Array, ...] = ()
        for way in ways:
            self.step(f"{way.name}, {name}")
            traced = self.traced(way, name, limit)
            if traced is None:
                found[way.name] = Entry(self.operations(way, name))
                continue
            found[way.name] = Entry(traced.operations)
            contender, results = contender_of(traced, given)
            true = true or results
            agree(way.name, results, ways[0].name, true)
            contenders.append(contender)
        times = measure(contenders, self.settings).seconds
        return {k: Entry(e.operations, times.get(k)) for k, e in found.items()}

    def operations(self, way: Way, name: str) -> int | None:
        """Traced, or on a chain by what its growth says; None where neither is known."""
        traced = self._traced.get((way, name))
        if traced is not None:
            return traced.operations
        size = name.removeprefix("chain")
        if size == name or not size.isdigit():
            return None
        return self.growth(way).at(int(size))

    def growth(self, way: Way) -> Growth:
        if way not in self._growth:
            self._growth[way] = Growth.of(way)
        return self._growth[way]


def batch(nv: int) -> int:
    """Enough states to forget what a call costs, few enough for three matrices to stay in the cache."""
    fitting = ROOM // (3 * 8 * nv**2) // GRAIN * GRAIN
    return int(np.clip(fitting, FEWEST, MOST))


def contender_of(traced: Traced, given: Mapping[str, Array]) -> tuple[Contender, tuple[Array, ...]]:
    """A compiled way on a batch, and its results."""
    kernel = traced.kernel()
    inputs = [given[name] for name in traced.way.inputs]
    results, _ = kernel(inputs, None, 1)
    out = tuple(np.empty_like(r) for r in results)

    def run(_: int) -> None:
        kernel(inputs, out, 1)

    return Contender(traced.way.name, run, len(inputs[0]), whole=True), results


def agree(name: str, results: Sequence[Array], first: str, true: Sequence[Array]) -> None:
    """Wrong results are not timed."""
    worst = max(difference(x, t) for x, t in zip(results, true, strict=True))
    if not worst <= EXACT:
        raise Disagreement(f"{name!r} differs from {first!r} by {worst:.1e} of the largest entry; it is not timed")


@dataclass(frozen=True)
class Growth:
    """Operations on chains as a polynomial in N: traced at a few sizes, and held to one more.

    In straight-line code of a chain with placements and inertias like any other, nothing happens by chance, so that
    counts are polynomials from a few joints on. `error` is how far it is off at the size that was kept back.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    error: float

    @staticmethod
    def of(way: Way) -> Growth:
        from ...model.builtin import chain

        sizes, known = SAMPLED[way.degree]
        *counts, check = (operations(way, Reference(chain(n)).tree) for n in (*sizes, known))
        found = Growth(sizes, tuple(counts), 0.0)
        return Growth(sizes, tuple(counts), abs(found.at(known) - check) / check)

    def at(self, n: int) -> int:
        """By Lagrange's formula, exactly."""
        total = Fraction(0)
        for i, c in zip(self.sizes, self.counts, strict=True):
            term = Fraction(c)
            for j in self.sizes:
                term *= Fraction(n - j, i - j) if j != i else 1
            total += term
        return round(total)
