"""Functions of the loop language as kernels.

f(t, inputs..., results..., work..., sizes...) computes one sample. With `Fill.SAMPLES` each lane is a sample, with
`Fill.COLUMNS` samples go one by one and the columns of their rows fill the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...forks import unforked
from ..data import Data
from ..engine import CPU, Library, target
from ..library import library
from ..number import Number
from ..objects import ModuleText
from ..rows import RowKernel
from ..straight import is_own
from .spec import Fill, LoopSpec


class LoopKernel(RowKernel):
    """The kernel of a function of the loop language, for given sizes and tables."""

    def __init__(
        self,
        spec: LoopSpec,
        sizes: Mapping[str, int] | None = None,
        tables: Mapping[str, np.ndarray] | None = None,
        cpu: CPU | None = None,
    ) -> None:
        self.spec, self.sizes, self.tables = spec, dict(sizes or {}), dict(tables or {})
        self.whole_results = self.whole_inputs = self.whole_vectors = spec.fill is Fill.COLUMNS
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


def key_of(spec: LoopSpec) -> Any:
    """What determines the code of a function, besides the sources of this package."""
    f, sides = spec.function, (spec.inputs, spec.results, spec.work)
    axes = tuple(tuple((k, *x) for k, x in side.items()) for side in sides)
    tables = spec.sizes, spec.tables, spec.factors, spec.scattered, spec.many
    own = "loops", spec.name, spec.fill.value, axes, tables
    named = "<" not in getattr(f, "__qualname__", "<")  # and not made by another function, of which there may be many
    if named and is_own(f, *(x for _, x in spec.constants)):
        return *own, f.__module__, f.__qualname__, spec.constants
    with unforked:
        from .emit import trace
        from .text import text
    return *own, text(trace(spec))
