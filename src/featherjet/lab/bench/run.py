"""A benchmark: every way to compute every quantity of a robot, side by side, as numbers ready for JSON."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...evaluate.evaluator import processors
from ...robot.robot import Robot
from .contenders import BATCH, PIN_LOOP, QUANTITIES, States, check, ways
from .operations import operations
from .robots import Entrant
from .timing import Settings, Spread, measure


def race(
    entrant: Entrant, settings: Settings, peak: float, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """Times of one robot: {"title", "nv", ..., "quantities": {quantity: {"ways": {way: ...}, ...}}}."""
    robot = entrant.robot
    states = States.random(robot, entrant.batch, seed)
    quantities = {}
    for quantity in QUANTITIES:
        quantities[quantity] = _quantity(robot, quantity, states, settings, peak, tick)
    return {
        "title": entrant.title,
        "joints": robot.njoints,
        "nv": robot.nv,
        "batch": entrant.batch,
        "quantities": quantities,
    }


def turns(settings: Settings) -> int:
    """How often `race` ticks, at most."""
    from .contenders import WAYS

    return len(QUANTITIES) * (len(WAYS) + settings.rounds)


def _quantity(
    robot: Robot,
    quantity: str,
    states: States,
    settings: Settings,
    peak: float,
    tick: Callable[[], object],
) -> dict[str, Any]:
    found, missing = ways(robot, quantity, states)
    errors = check(found, states)
    times, quiet = measure(found, settings, tick)
    report = summary(times, errors)
    work = operations(robot._reference.tree, quantity)
    return {
        "operations": work,
        "share_of_peak": work / report[BATCH]["seconds"]["median"] / peak,
        "quiet": quiet,
        "ways": report,
        "missing": missing,
    }


def summary(times: dict[str, np.ndarray], errors: dict[str, float]) -> dict[str, Any]:
    """Of each way its seconds, how many times faster than Pinocchio's loop it is, and how far off its results were."""
    loop = times.get(PIN_LOOP)
    report = {}
    for name, seconds in times.items():
        entry: dict[str, Any] = {"seconds": _spread(seconds), "ratio": None, "difference": errors.get(name)}
        if loop is not None:
            entry["ratio"] = _spread(loop / seconds)  # round by round, so that drifts of the machine cancel
        report[name] = entry
    return report


def _spread(x: np.ndarray) -> dict[str, float]:
    return Spread.of(x[np.isfinite(x)])._asdict()


def scaling(
    sizes: Sequence[int], settings: Settings, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """How the cost of derivatives of inverse dynamics grows: exponents of time over N and over N*d, d the depth."""
    from .contenders import batch
    from .robots import entrant

    report = {}
    for family in ("chain{}", "tree{}x2", "tree{}x4"):
        rows = []
        for n in sizes:
            e = entrant(family.format(n), batch=max(16, min(512, 1_000_000 // n**2)))
            states = States.random(e.robot, e.batch, seed)
            quantity = "inverse_dynamics_derivatives"
            way = batch(BATCH, e.robot, quantity, states)
            tree = e.robot._reference.tree
            depth: list[int] = []
            for node in tree.nodes:
                depth.append(1 + (0 if node.is_root else depth[node.parent]))
            seconds = measure([way], settings, tick).seconds[BATCH]
            work = operations(tree, quantity)
            rows.append({"n": n, "depth": max(depth), "seconds": _spread(seconds), "operations": work})
        n, d = np.array([r["n"] for r in rows], float), np.array([r["depth"] for r in rows], float)
        time, work = (
            np.array([r["seconds"]["median"] for r in rows]),
            np.array([r["operations"] for r in rows], float),
        )
        report[family.format("N")] = {
            "rows": rows,
            "time_over_n": slope(n, time),
            "time_over_nd": slope(n * d, time),
            "operations_over_nd": slope(n * d, work),
        }
    return report


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The exponent p of y ~ x^p, by least squares in logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def machine() -> dict[str, Any]:
    """What it was measured on."""
    import llvmlite
    import llvmlite.binding as llvm

    from ... import __version__
    from ...jit.engine import host_lanes

    return {
        "cpu": llvm.get_host_cpu_name(),
        "lanes": host_lanes(),
        "cores": processors(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "featherjet": __version__,
    }
