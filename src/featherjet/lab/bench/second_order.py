"""Products and second derivatives, timed beside what they are products and derivatives of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.quantities import quantity
from ...robot.robot import Robot
from .robots import Entrant
from .timing import Contender, Settings, Spread, measure


class Ratio(NamedTuple):
    """A call of `Robot`, and the call whose time it is compared with."""

    name: str
    base: str


RATIOS = (
    Ratio("inverse_dynamics_vjp", "inverse_dynamics"),
    Ratio("inverse_dynamics_jvp", "inverse_dynamics"),
    Ratio("forward_dynamics_vjp", "forward_dynamics"),
    Ratio("forward_dynamics_jvp", "forward_dynamics"),
    Ratio("inverse_dynamics_vjp", "inverse_dynamics_derivatives"),
    Ratio("inverse_dynamics_hessian", "inverse_dynamics_derivatives"),
    Ratio("forward_dynamics_hessian", "forward_dynamics_derivatives"),
    Ratio("forward_dynamics_second_order", "forward_dynamics_derivatives"),
)
NAMES = tuple(dict.fromkeys(name for ratio in RATIOS for name in (ratio.base, ratio.name)))


def race(
    entrant: Entrant, settings: Settings, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """Times of one robot: {"title", ..., "seconds": {call: [median, low, high]}, "ratios": [{name, base, ratio}]}."""
    robot = Robot(entrant.robot.model, "compiled", threads=1)
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, entrant.batch)
    vectors = rng.normal(size=(5, entrant.batch, robot.nv))
    times, quiet = measure([contender(robot, name, q, vectors) for name in NAMES], settings, tick)
    ratios = [
        {"name": r.name, "base": r.base, "ratio": float(np.nanmedian(times[r.name] / times[r.base]))} for r in RATIOS
    ]
    seconds = {name: Spread.of(x[np.isfinite(x)]) for name, x in times.items()}
    return {
        "title": entrant.title, "nv": robot.nv, "batch": entrant.batch, "quiet": quiet, "seconds": seconds,
        "ratios": ratios,
    }  # fmt: skip


def contender(robot: Robot, name: str, q: np.ndarray, vectors: np.ndarray) -> Contender:
    """One call on the whole batch, which writes into the same arrays every time."""
    given = [q, *vectors[: len(quantity(name).inputs) - 1]]
    call = getattr(robot, name)
    found = call(*given)
    out = tuple(found) if isinstance(found, tuple) else found
    return Contender(name, lambda _: call(*given, out=out), len(q), whole=True)
