"""Compiles all code that the first iterations of a solver will run, on all processors at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ...arrays import Array
from ...jit.kernel import Kernel
from ...jit.library import Ahead
from ...jit.number import DOUBLE
from .gauss_newton import GaussNewtonSum
from .replay import Direct


class CodeList(Direct):
    """Lists the code that the steps of an evaluation would run, without running them."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[Kernel, bool], None] = {}

    def run(self, kernel: Kernel, *inputs: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """Arrays of the shapes that the results would have."""
        self.note([kernel])
        if out is not None:
            return out
        batch = np.broadcast_shapes(*(x.shape[: x.ndim - core] for x, core in zip(inputs, kernel.cores, strict=True)))
        return tuple(np.empty((*batch, *shape)) for shape in kernel.shapes)

    def do(self, step: Callable[[], object]) -> None:
        if isinstance(step, GaussNewtonSum):
            self.note([step.kernel])

    def note(self, kernels: Iterable[Kernel], for_one: bool = False) -> None:
        """Kernels that will be run, for batches or for one sample after the other."""
        self._kernels |= {(kernel, for_one): None for kernel in kernels}

    def compile(self, what: str) -> None:
        """Load all code, from disk or compiled now; what takes long says so, once."""
        with Ahead(what) as ahead:
            for kernel, for_one in self._kernels:
                kernel.load(DOUBLE, for_one and kernel.separate_single)
        for kernel, for_one in self._kernels:
            kernel.code(DOUBLE, for_one)
        del ahead  # which has kept the code until kernels and others refer to it
