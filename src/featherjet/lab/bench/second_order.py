"""Products and second derivatives, timed beside what they are products and derivatives of.

Dynamics with contacts hold one point, the origin of the last joint's frame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.quantities import Input, quantity
from ...contact import Contacts, PointContact
from ...robot.robot import Robot
from .robots import Entrant
from .timing import Contender, Spread, TimingSettings, measure


class Ratio(NamedTuple):
    """A quantity, and the one whose time it is compared with."""

    name: str
    base: str


RATIOS = (
    Ratio("inverse_dynamics_vjp", "inverse_dynamics"),
    Ratio("inverse_dynamics_jvp", "inverse_dynamics"),
    Ratio("forward_dynamics_vjp", "forward_dynamics"),
    Ratio("forward_dynamics_jvp", "forward_dynamics"),
    Ratio("constrained_dynamics_vjp", "constrained_dynamics"),
    Ratio("constrained_dynamics_jvp", "constrained_dynamics"),
    Ratio("constrained_dynamics_vjp", "constrained_dynamics_derivatives"),
    Ratio("impulse_dynamics_vjp", "impulse_dynamics"),
    Ratio("integrate_vjp", "integrate"),
    Ratio("kinetic_energy_derivatives", "kinetic_energy"),
    Ratio("inverse_dynamics_vjp", "inverse_dynamics_derivatives"),
    Ratio("inverse_dynamics_hessian", "inverse_dynamics_derivatives"),
    Ratio("forward_dynamics_hessian", "forward_dynamics_derivatives"),
    Ratio("forward_dynamics_second_order", "forward_dynamics_derivatives"),
    Ratio("inverse_dynamics_second_derivatives", "inverse_dynamics_derivatives"),
)
NAMES = tuple(dict.fromkeys(name for ratio in RATIOS for name in (ratio.base, ratio.name)))
ENTRIES = 40_000_000  # of all results of a call, at most: 320 MB
TENSORS = 64  # the most dofs of a robot whose tensors are computed
DAMPING = 1e-3  # 1/kg, since a point may not be free to move everywhere


def race(
    entrant: Entrant, settings: TimingSettings, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """Times of one robot: {"title", ..., "seconds": {call: [median, low, high]}, "ratios": [{name, base, ratio}]}."""
    robot = Robot(entrant.robot.model, backend="compiled", threads=1)
    inputs = RandomInputs(robot, entrant.batch, np.random.default_rng(seed))
    names = [name for name in NAMES if robot.nv <= TENSORS or all(len(r.axes) < 3 for r in quantity(name).results)]
    times, quiet = measure([inputs.contender(name) for name in names], settings, tick)
    ratios = [
        {"name": r.name, "base": r.base, "ratio": float(np.nanmedian(times[r.name] / times[r.base]))}
        for r in RATIOS
        if r.name in times
    ]
    seconds = {name: Spread.of(x[np.isfinite(x)]) for name, x in times.items()}
    return {
        "title": entrant.title, "nv": robot.nv, "batch": entrant.batch, "quiet": quiet, "seconds": seconds,
        "ratios": ratios,
    }  # fmt: skip


class RandomInputs:
    """Random inputs of every quantity, for a batch."""

    def __init__(self, robot: Robot, batch: int, rng: np.random.Generator) -> None:
        self.robot, self.batch, self.rng = robot, batch, rng
        self.contacts = Contacts(robot, [PointContact(robot.joint_names[-1])], damping=DAMPING)
        self.q = robot.random_configuration(rng, batch)
        self.sizes = {"v": robot.nv, "rows": self.contacts.rows, "q": robot.nq}

    def entries(self, name: str) -> int:
        """How many numbers a quantity gives for one state."""
        return sum(int(np.prod(shape)) for shape in quantity(name).result_shapes(self.sizes))

    def sample(self, i: Input) -> np.ndarray:
        if i.axes == ("q",):
            return self.q
        return self.rng.normal(size=(self.batch, self.sizes[i.axes[0]])) if isinstance(i.axes[0], str) else np.zeros(1)

    def contender(self, name: str) -> Contender:
        """One call on the whole batch, or on as many states as memory allows, into the same arrays every time."""
        record = quantity(name)
        count = max(1, min(self.batch, ENTRIES // self.entries(name)))
        given = [x[:count] if x.ndim > 1 else x for x in map(self.sample, record.inputs)]
        options = {"contacts": self.contacts.core} if "contacts" in record.options else {}
        known = None if options else getattr(self.robot, name, None)
        run = partial(known, *given) if known else partial(self.robot.evaluator.run, name, given, **options)
        out = run()
        return Contender(name, lambda _: run(out=out), count, whole=True)
