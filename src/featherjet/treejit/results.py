"""The results of a rolled program but its matrices over dofs, as a function of the loop language.

It brings them from where the loops have left them into arrays whose entries follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ..jit.loops.index import contiguous, size
from ..jit.loops.program import LaneRole, LoopFunction
from ..jit.loops.replay import replayed
from ..jit.loops.trace import Tracer
from .program import Output, Ref
from .walks import MemoryLayout

MATRICES = ("matrix", "blocks")  # kinds of outputs that are written where they are computed
COUNTS = ("joints", "nv", "grips", "rows", "entries", "factor", "stops")
Axes = Sequence[int | str]


def traced_results(layout: MemoryLayout, axes: Sequence[Axes]) -> LoopFunction | None:
    """What writes all results that are no matrices, if there are any; axes: those of every result.

    Its arguments are the spaces, the inputs and these results.
    """
    t = Tracer("results", True)
    memory: dict[str, Any] = {x: t.argument(x, [1], fixed=True) for x in layout.spaces}
    memory["work"] = {x: t.argument(x, contiguous(axes), fixed=True) for x, axes in layout.work.items()}
    memory |= {x: t.argument(x, [1], fixed=True) for x in layout.program.inputs}
    memory["param"] = t.table("param", [1], LaneRole.NUMBERS)
    entry, counts = t.table("entry", [1], LaneRole.INTEGERS), {name: size(name) for name in COUNTS}
    for out, core in zip(layout.program.outputs, axes, strict=True):
        if out.kind not in MATRICES:
            write(t, layout, out, core, t.argument(out.kind, [1]), memory, entry, counts)
    found = t.finished()
    return found if found.body.statements else None


def write(
    t: Any, layout: MemoryLayout, out: Output, axes: Axes, result: Any, memory: Mapping[str, Any], entry: Any,
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """One result. memory: as for `loops.run`, but of tables "param" alone; entry: the table of grips' entries."""
    rows, nv = counts["rows"], counts["nv"]
    if out.kind == "total":
        load, roots = of_sums(layout, memory, nv), [x.index for x in out.values]
        values = dict(replayed(t, layout.program.graph, roots, load))
        for k, root in enumerate(roots):
            result[k] = values[root]
    elif out.kind == "rows":
        for k in t.loop(rows * nv):
            result[k] = t.number(0.0)
        for e in t.loop(counts["entries"]):
            first = entry[3 * e + 1] * 3 * nv + entry[3 * e]
            for k, key in enumerate(out.keys):
                result[first + k * nv] = memory["E"][e * layout.NE + layout.offset[key]]
    elif out.kind in ("factor", "system"):
        for i in t.loop(rows):
            for j in t.loop(rows):
                result[i * rows + j] = memory["work"]["system"][i, j]
        for i in t.loop(rows if out.kind == "factor" else 0):
            result[rows * rows + i] = memory["work"]["dinv"][i]
    elif out.kind == "stops":
        for k in t.loop(counts["stops"]):
            for i in range(2):
                result[2 * k + i] = memory["work"]["stops"][k, 1 + i]
    else:
        numbers(t, layout, out, axes, result, memory, counts)


def numbers(
    t: Any, layout: MemoryLayout, out: Output, axes: Axes, result: Any, memory: Mapping[str, Any],
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """Numbers of each dof, joint, grip or entry, along one axis; the other axes are those of the numbers of one."""
    space, apart, count = {
        "dofs": ("D", layout.ND, counts["nv"]),
        "joints": ("J", layout.NJ, counts["joints"]),
        "grips": ("T", layout.NT, counts["grips"]),
        "entries": ("E", layout.NE, counts["entries"]),
    }[out.kind]
    axis = next(k for k, n in enumerate(axes) if isinstance(n, str))
    inner = len(out.keys) if out.kind == "grips" else prod(int(n) for n in axes[axis + 1 :])
    for i in t.loop(count):
        for k, key in enumerate(out.keys):
            before, after = divmod(k, inner)
            result[(count * before + i) * inner + after] = memory[space][i * apart + layout.offset[key]]


def of_sums(layout: MemoryLayout, memory: Mapping[str, Any], nv: Any) -> Callable[[Ref], Any]:
    """Loads sums over all bodies, and what belongs to no joint."""

    def load(ref: Ref) -> Any:
        array, first = (memory[ref.space], 0) if ref.key is None else (memory["D"], nv * layout.ND)
        return array[first + layout.at(ref)]

    return load
