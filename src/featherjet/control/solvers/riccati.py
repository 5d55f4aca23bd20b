"""The backward pass: gains and value function of a quadratic horizon, by compiled code of `recursion`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from ...arrays import Array
from ...jit.engine import target
from ...jit.loops.kernel import LoopKernel
from ...jit.loops.spec import Fill
from ...jit.sequence import Repeated, kernel_cores
from ..horizon import Quadratic
from .recursion import RESULTS, riccati_spec

derivatives = attrgetter("Fx", "Fu", "Lx", "Lu", "Lxx", "Lxu", "Luu")
REMEMBERED = 64  # kernels, for solves of other horizons
SMALL = 2  # directions of states and controls for each lane, up to which problems in lanes are clearly faster
KNOT = 1.5e-8  # seconds for each direction of states and controls that a knot takes, roughly
WORTH = 0.3  # seconds of passes after which code with problems in lanes is worth compiling
SECONDS: defaultdict[tuple[str, int, int, bool], float] = defaultdict(float)  # of passes with columns in lanes, by size


@dataclass
class Gains:
    """A policy u = us - alpha k - K (x (-) xs), and the value function around xs (+) gaps, for p problems.

    k (p, T, nu), K (p, T, nu, ndx), Vx (p, T + 1, ndx), Vf (p, T + 1, ndx): Vxx gaps;
    Vxx (p, T + 1, ndx, ndx), if it was to be kept;
    slope (p,), bend (p,): sum_t Qu^T k and sum_t k^T Quu k; without gaps, a step of length alpha gains
    alpha slope - alpha^2 bend / 2;
    failed (p,): one where some Quu is not positive definite, which leaves the rest undefined; else zero.
    """

    K: Array
    k: Array
    Vx: Array
    Vf: Array
    Vxx: Array
    slope: Array
    bend: Array
    failed: Array


class Riccati:
    """Backward passes over T knots; each overwrites what the one before found for the same problems.

    most: how many problems there are; together: how many a pass takes, by default all. keep: whether Vxx is wanted.
    bounded: whether controls have limits.
    """

    def __init__(
        self,
        T: int,
        ndx: int,
        nu: int,
        most: int = 1,
        together: int | None = None,
        keep: bool = True,
        bounded: bool = False,
    ) -> None:
        new, together = np.zeros, together or most
        self._size = T, ndx, nu, bounded, keep
        self.gains = Gains(
            K=new((most, T, nu, ndx)), k=new((most, T, nu)), Vx=new((most, T + 1, ndx)),
            Vf=new((most, T + 1, ndx)), Vxx=new((most, T + 1, ndx, ndx) if keep else (2, ndx, ndx)), slope=new(most),
            bend=new(most), failed=new(most),
        )  # fmt: skip
        self._results = {x: getattr(self.gains, x) for x in RESULTS}
        self._regularisation = new(together)
        self._passes: dict[tuple[bool, Fill], Pass] = {}
        self._lanes = target().lanes

    def __call__(
        self,
        horizon: Quadratic,
        gaps: Array | None,
        regularisation: Array,
        bounds: tuple[Array, Array] | None = None,
        first: int = 0,
    ) -> Gains:
        """Gains of p problems, the first of which is number `first` of all.

        The regularisation (p,) is added to the diagonals of Quu and Vxx. bounds: the least and the most by which
        controls may change, (p, T, nu) each.
        """
        p = len(regularisation)
        self._regularisation[:p] = regularisation
        inputs = *derivatives(horizon), horizon.Lx if gaps is None else gaps, self._regularisation, *(bounds or ())
        which = gaps is not None, self.fill(p)
        run = self._passes.get(which)
        if run is None:
            kernel = recursion_kernel(target().name, *self._size, *which)
            run = self._passes[which] = Pass(kernel, self._results, not self._size[-1])
        run(inputs, p, first)
        return self.gains if p == len(self.gains.k) else self._part(slice(first, first + p))

    def fill(self, p: int) -> Fill:
        """What to put into lanes, which changes no bit: problems if these fill them, are small, and there are many."""
        T, n, m, bounded, _ = self._size
        if p % self._lanes or n + m > SMALL * self._lanes:
            return Fill.COLUMNS
        size = target().name, n, m, bounded
        if SECONDS[size] > WORTH:
            return Fill.SAMPLES
        SECONDS[size] += p * T * (n + m) * KNOT
        return Fill.COLUMNS

    def _part(self, which: slice) -> Gains:
        shared = not self._size[-1]
        return Gains(**{name: x if name == "Vxx" and shared else x[which] for name, x in self._results.items()})


class Pass:
    """Code of the recursion on arrays that mostly stay where they are.

    shared: whether all problems have the same room for Vxx.
    """

    def __init__(self, kernel: LoopKernel, results: Mapping[str, Array], shared: bool) -> None:
        self._kernel, self._results = kernel, results
        self._apart = [name for name in results if not (name == "Vxx" and shared)]  # what each problem has for itself
        self._inputs = list[Any]()
        self._run: Repeated | None = None
        self._first = self._count = 0

    def __call__(self, inputs: Sequence[Array], p: int, first: int) -> None:
        """Compute the gains of p problems, the first of which is number `first` of all."""
        run = self._run
        if run is None:
            self._inputs = list(map(np.ascontiguousarray, inputs))
            operands = [*self._inputs, *self._results.values()]
            run = self._run = Repeated(self._kernel.batch, p, operands, kernel_cores(self._kernel))
        k = 0
        for x, before in zip(inputs, self._inputs, strict=True):
            if x is not before:  # horizons use theirs again
                self._inputs[k] = x = np.ascontiguousarray(x)
                run.move(k, x.__array_interface__["data"][0])  # half the time of x.ctypes.data
            k += 1
        if first != self._first:
            self._first = first
            for k, (name, x) in enumerate(self._results.items(), len(inputs)):
                run.move(k, x.ctypes.data + first * x.strides[0] * (name in self._apart))
        if p != self._count:
            self._count = run.count = p
        run()


@lru_cache(REMEMBERED)
def recursion_kernel(
    cpu_name: str, T: int, ndx: int, nu: int, bounded: bool, keep: bool = True, gaps: bool = False,
    fill: Fill = Fill.COLUMNS,
) -> LoopKernel:  # fmt: skip
    """The kernel of the recursion over T knots, for the CPU of that name; `keep` and `gaps` do not change the code."""
    sizes = {"T": T, "knots": T + 1, "kept": T + 1 if keep else 2, "gaps": int(gaps)}
    return LoopKernel(riccati_spec(ndx, nu, bounded, fill), sizes)
