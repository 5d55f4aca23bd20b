"""Whole solves of Crocoddyl's benchmark problems, featherjet's beside Crocoddyl's C++, in turns on one core."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...control import solve
from ...errors import InputError
from .checking import Disagreement
from .control_problems import PROBLEMS
from .timing import Spread, TimingSettings, one_core

VARIABLE = "FEATHERJET_CROCODDYL"
AGREE = 1e-8  # of costs, relative
BARS = {"arm": 2.0, "biped walk": 3.0}
USUAL_BAR = 3.5
REGULARISATION, TOLERANCE = 0.1, 1e-9  # as in crocoddyl_peer.py


class RaceResult(NamedTuple):
    """Seconds of whole solves of one problem, beside Crocoddyl's if it ran."""

    problem: str
    knots: int
    iterations: int
    cost: float
    ours: Spread
    first: float  # seconds until the first solution in this process
    theirs: Spread | None
    their_iterations: int | None
    difference: float | None  # of the costs, relative

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.theirs.median / self.ours.median

    @property
    def bar(self) -> float:
        return BARS.get(self.problem, USUAL_BAR)


class Crocoddyl:
    """A process of a Python that has Crocoddyl."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("crocoddyl_peer.py")
        try:
            self.process = subprocess.Popen(
                [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise InputError(f"{python!r}: no Python to run Crocoddyl with: {error.strerror}") from error

    def solve(self, problem: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(problem + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise InputError(
                "Crocoddyl stopped; its environment needs crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0 "
                "example-robot-data (Pinocchio 4.1 crashes it)"
            )
        return json.loads(answer)

    def close(self) -> None:
        self.process.communicate()


def races(settings: TimingSettings, python: str | None) -> Iterator[RaceResult]:
    """Every problem in turn; `python`: the path of a Python that has Crocoddyl, or None to run alone."""
    peer = Crocoddyl(python) if python else None
    try:
        with one_core():
            for name in PROBLEMS:
                yield race(name, settings.rounds, peer)
    finally:
        if peer is not None:
            peer.close()


def race(name: str, rounds: int, peer: Crocoddyl | None) -> RaceResult:
    start = time.perf_counter()
    problem = PROBLEMS[name]()
    problem.evaluator.threads = 1

    def ours() -> Any:
        return solve(problem, regularisation=REGULARISATION, tolerance=TOLERANCE)

    solution = ours()
    first = time.perf_counter() - start
    times: list[float] = []
    theirs: list[dict[str, Any]] = []
    for _ in range(rounds):
        begin = time.thread_time()
        ours()
        times.append(time.thread_time() - begin)
        if peer is not None:
            theirs.append(peer.solve(name))
    cost, iterations = float(solution.cost), int(solution.iterations)
    found = None if peer is None else theirs[-1]
    difference = None if found is None else abs(cost / found["cost"] - 1.0)
    if difference is not None and not difference < AGREE:
        raise Disagreement(f"{name}: our cost {cost!r} differs from Crocoddyl's by {difference:.1e}, relatively")
    return RaceResult(
        name, problem.T, iterations, cost, Spread.of(times), first,
        Spread.of([x["seconds"] for x in theirs]) if theirs else None,
        None if found is None else found["iterations"], difference,
    )  # fmt: skip
