"""Functions of the loop language as kernels.

f(t, inputs..., results..., work..., sizes...) computes one sample. With `Fill.SAMPLES` each lane is a sample, with
`Fill.COLUMNS` samples go one by one and the columns of their rows fill the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...forks import unforked
from ..data import Data
from ..engine import CPU, Library, target
from ..kernel import Kernel
from ..library import library
from ..number import Number
from ..objects import ModuleText
from ..straight import is_own
from .spec import Fill, LoopSpec


class LoopKernel(Kernel):
    """The kernel of a function of the loop language, for given sizes and tables."""

    def __init__(
        self,
        spec: LoopSpec,
        sizes: Mapping[str, int] | None = None,
        tables: Mapping[str, np.ndarray] | None = None,
        cpu: CPU | None = None,
    ) -> None:
        self.spec, self.sizes, self.tables = spec, dict(sizes or {}), dict(tables or {})
        lengths, cpu = self.sizes, cpu or target()
        entries = [*(int(lengths[k]) for k in spec.sizes), *(self.tables[k] for k in spec.tables)]

        def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
            lanes = cpu.fitting(kind)

            def make() -> Iterator[ModuleText]:
                with unforked:
                    from .emit import emit_loops
                return emit_loops(spec, lanes, cpu.platform, kind)

            factors = [self.tables[k].astype(kind.dtype) for k in spec.factors]
            return library(cpu, (key_of(spec), lanes, kind.name), spec.name, make), Data(kind, [*entries, *factors])

        shapes = [
            {k: tuple(lengths[a] if isinstance(a, str) else a for a in axes) for k, axes in side.items()}
            for side in (spec.inputs, spec.results)
        ]
        super().__init__(spec.name, shapes[0], list(shapes[1].values()), load, separate_single=False)

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results and the flags; columns that fill the lanes must follow each other."""
        if self.spec.fill is Fill.SAMPLES:
            return super().__call__(inputs, out, threads)
        pairs = zip(inputs, self.cores, strict=True)
        inputs = [x if rows_are_whole(x, core) else np.ascontiguousarray(x) for x, core in pairs]
        if out is None or all(rows_are_whole(x, len(c)) for x, c in zip(out, self.shapes, strict=True)):
            return super().__call__(inputs, out, threads)
        found, flags = super().__call__(inputs, None, threads)
        for x, y in zip(out, found, strict=True):
            np.copyto(x, y)
        return out, flags


def rows_are_whole(x: np.ndarray, axes: int) -> bool:
    """Whether the axes of a sample after the first, or its only one, are contiguous."""
    first = x.ndim - axes + (axes > 1)
    return all(x.strides[k] == x.itemsize * prod(x.shape[k + 1 :]) for k in range(first, x.ndim))


def key_of(spec: LoopSpec) -> Any:
    """What determines the code of a function, besides the sources of this package."""
    f, sides = spec.function, (spec.inputs, spec.results, spec.work)
    axes = tuple(tuple((k, *x) for k, x in side.items()) for side in sides)
    tables = spec.sizes, spec.tables, spec.factors, spec.scattered
    own = "loops", spec.name, spec.fill.value, axes, tables
    if is_own(f, *(x for _, x in spec.constants)):
        return *own, f.__module__, f.__qualname__, spec.constants
    with unforked:
        from .emit import trace
        from .text import text
    return *own, text(trace(spec))
