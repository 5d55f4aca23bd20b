"""A benchmark: every contender for every quantity of a robot, side by side, as numbers ready for JSON."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from ...evaluate.evaluator import processors
from ...model.model import WORLD
from ...robot.robot import Robot
from ..internals import count_instructions, cpu_name, instruction_set, lanes
from . import robots
from .checking import States, check
from .contenders import BATCH, PIN_LOOP, WAYS, batch, make_contenders
from .quantities import QUANTITIES, BenchmarkedQuantity
from .robots import Entrant
from .timing import Spread, TimingSettings, measure

FAMILIES = ("chain{}", "tree{}x2", "tree{}x4")  # robots of growing size, for `scaling`


def race(
    entrant: Entrant, settings: TimingSettings, peak: float, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """Times of one robot: {"title", "nv", ..., "quantities": {quantity: {"ways": {name: ...}, ...}}}."""
    robot = entrant.robot
    states = States.random(robot, entrant.batch, seed)
    quantities = {}
    for name, quantity in QUANTITIES.items():
        quantities[name] = _race_quantity(robot, quantity, states, settings, peak, tick)
    return {
        "title": entrant.title,
        "joints": robot.njoints,
        "nv": robot.nv,
        "batch": entrant.batch,
        "quantities": quantities,
    }


def turns(settings: TimingSettings) -> int:
    """How often `race` ticks, at most."""
    return len(QUANTITIES) * (len(WAYS) + settings.rounds)


def _race_quantity(
    robot: Robot,
    quantity: BenchmarkedQuantity,
    states: States,
    settings: TimingSettings,
    peak: float,
    tick: Callable[[], object],
) -> dict[str, Any]:
    contenders, missing = make_contenders(robot, quantity, states)
    errors = check(contenders, states)
    times, quiet = measure(contenders, settings, tick)
    report = summary(times, errors)
    operations = count_instructions(robot.model, quantity.name)
    return {
        "operations": operations,
        "share_of_peak": operations / report[BATCH]["seconds"]["median"] / peak,
        "quiet": quiet,
        "ways": report,
        "missing": missing,
    }


def summary(times: dict[str, np.ndarray], errors: dict[str, float]) -> dict[str, Any]:
    """For each contender its seconds per state, its speed relative to Pinocchio's loop, and its error."""
    loop = times.get(PIN_LOOP)
    report = {}
    for name, seconds in times.items():
        entry: dict[str, Any] = {"seconds": spread(seconds), "ratio": None, "difference": errors.get(name)}
        if loop is not None:
            entry["ratio"] = spread(loop / seconds)  # round by round, so that drifts of the machine cancel
        report[name] = entry
    return report


def spread(x: np.ndarray) -> dict[str, float]:
    return Spread.of(x[np.isfinite(x)])._asdict()


def scaling(
    sizes: Sequence[int], settings: TimingSettings, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """How the cost of derivatives of inverse dynamics grows: exponents of time over N and over N*d, d the depth."""
    report = {}
    for family in FAMILIES:
        rows = [_time_derivatives(family.format(n), n, settings, tick, seed) for n in sizes]
        n, d, operations = (np.array([row[key] for row in rows], float) for key in ("n", "depth", "operations"))
        time = np.array([row["seconds"]["median"] for row in rows])
        report[family.format("N")] = {
            "rows": rows,
            "time_over_n": slope(n, time),
            "time_over_nd": slope(n * d, time),
            "operations_over_nd": slope(n * d, operations),
        }
    return report


def _time_derivatives(
    name: str, n: int, settings: TimingSettings, tick: Callable[[], object], seed: int
) -> dict[str, Any]:
    """One size of one family: its depth, seconds per state, and operations."""
    _, robot, size = robots.entrant(name, batch=max(16, min(512, 1_000_000 // n**2)))
    quantity = QUANTITIES["inverse_dynamics_derivatives"]
    contender = batch(BATCH, robot, quantity, States.random(robot, size, seed))
    seconds = measure([contender], settings, tick).seconds[BATCH]
    operations = count_instructions(robot.model, quantity.name)
    return {"n": n, "depth": _depth(robot), "seconds": spread(seconds), "operations": operations}


def _depth(robot: Robot) -> int:
    """Joints on the longest path to the root."""
    depths: list[int] = []
    for joint in robot.model.joints:
        depths.append(1 + (0 if joint.parent == WORLD else depths[joint.parent]))
    return max(depths)


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The exponent p of y ~ x^p, by least squares in logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def machine() -> dict[str, Any]:
    """The machine and the versions that a measurement depends on."""
    from ... import __version__

    return {
        "cpu": cpu_name(),
        "lanes": lanes(),
        "instruction_set": instruction_set(),
        "cores": processors(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "llvmlite": version("llvmlite"),
        "featherjet": __version__,
    }
