"""What a time step is made of, on batches of worlds: compiled code, or NumPy (`reference`)."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..contact.ground import Ground
from ..evaluate.evaluator import Evaluator
from ..jit.flags import Flag
from ..model.model import Array

IN_FLIGHT = np.array([0.0, 1.0, 0.0, 1.0])  # the solver's report where nothing touches


class WorldStep(NamedTuple):
    """The state after a step (..., nq), (..., nv); percussions at feet (..., 3 n) [N s] in world axes.

    solver_report (..., 4): the largest change in the last sweep [N s], 1 if in flight else 0, the number of sweeps, 1
    unless a foot touches the ground else 0.
    held (..., stops, 2): percussions of dry friction and of limits.
    """

    q: Array
    v: Array
    P: Array
    solver_report: Array
    held: Array | None = None


class Struck(NamedTuple):
    """Velocities u+ (..., nv) that obey the contact laws at the end of a step (`contacts.feet`), the rest as in
    `WorldStep`."""

    v: Array
    P: Array
    solver_report: Array
    held: Array | None = None


class Engine(Protocol):
    """Steps and impacts; arguments as in `treejit.stepping.StepCompiler`.

    floats: whether free roots keep their momentum in flight.
    """

    floats: bool

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]: ...
    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep: ...  # fmt: skip
    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck: ...  # fmt: skip
    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep: ...
    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array: ...


class Compiled:
    """Compiled code."""

    def __init__(
        self, evaluator: Evaluator, ground: Ground, stops: tuple[int, ...] = (), balanced: bool = False
    ) -> None:
        self.evaluator = evaluator
        self.nq, self.nv, self.n = evaluator.model.nq, evaluator.model.nv, len(ground.feet)
        self.kernels = evaluator.steps(ground.core, stops, balanced)
        self.one, self.floats = np.ones(1), balanced

    def _run(self, kernel: Any, inputs: list[Array], q: Array, v: Array) -> tuple[Array, ...]:
        if q.ndim == 1:  # one world: the code takes it, or says that it cannot
            found = kernel.direct(*inputs)
            if found is not None:
                return found
        results, flags = kernel(inputs, None, self.evaluator.threads)
        if flags & Flag.SMALL_MARGIN:
            self.evaluator.refuse_singular("forward_dynamics", {"q": q, "v": v, "tau": np.zeros(self.nv)})
        return results

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]:
        height, rate = self._run(self.kernels.approach, [q, v, table], q, v)
        return height, rate

    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep:  # fmt: skip
        inputs = [q, v, tau, soft, table, away, start, h]
        if stops is not None and held is not None:
            inputs += [stops, held]
        return WorldStep(*self._run(self.kernels.step, inputs, q, v))

    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck:  # fmt: skip
        inputs = [half, v, mid, tau, soft, table, height, start, h]
        if stops is not None and held is not None:
            inputs += [stops, held]
        after, P, _, _, *rest = self._run(self.kernels.strike, inputs, half, v)
        return Struck(after, P, *rest)

    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep:
        kernel = getattr(self.kernels, law)
        after, P, solver_report = self._run(kernel, [q, v, table, height, start, self.one], q, v)
        return WorldStep(q, after, P, solver_report)

    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array:
        return self._run(self.kernels.balanced, [q, v, end, after, tau, IN_FLIGHT, h], q, v)[0]
