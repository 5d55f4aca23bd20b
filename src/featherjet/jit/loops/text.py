"""Loop programs as text, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import program
from .program import ArrayPart, EntryRef, LoopFunction, Statements


def text(function: LoopFunction) -> str:
    """A function and those that it calls, those first."""
    return "\n\n".join("\n".join(lines_of(f)) for f in (*function.callees(), function))


def lines_of(function: LoopFunction) -> Iterator[str]:
    arrays = [f"{name(function, a.number)}: {a.lanes.value}" for a in function.arrays if not a.local and not a.table]
    integers = [f"i{k}" for k in range(function.integers)]
    yield f"{function.name}({', '.join([*arrays, *integers])})"
    yield from block_lines(function, function.body, 1)


def name(function: LoopFunction, number: int) -> str:
    array = function.arrays[number]
    return array.table or f"{array.name}{number}"


def block_lines(function: LoopFunction, block: Statements, depth: int) -> Iterator[str]:
    for statement in block.statements:
        head, inner = described(function, statement)
        yield "  " * depth + head
        for label, body in inner:
            if label:
                yield "  " * (depth + 1) + label
            yield from block_lines(function, body, depth + (2 if label else 1))


def described(function: LoopFunction, s: Any) -> tuple[str, list[tuple[str, Statements]]]:
    """A statement's first line, and its blocks."""
    ops = function.graph.ops

    def value(i: int) -> str:
        return repr(ops[i].data[0]) if ops[i].name == "const" else f"%{i}"  # type: ignore[index]

    if isinstance(s, program.Let):
        ref = ops[s.operation].data
        if isinstance(ref, EntryRef):
            return f"%{s.operation} = {name(function, ref.array)}[{ref.at}]", []
        op = ops[s.operation]
        return f"%{s.operation} = {' '.join([op.name, *map(value, op.args)])}", []
    if isinstance(s, program.LetIndex):
        return f"let {s.index}", []
    if isinstance(s, program.Put):
        return f"{name(function, s.array)}[{s.at}] = {value(s.operation)}", []
    if isinstance(s, program.LocalArray):
        return f"local {name(function, s.array)}[{function.arrays[s.array].local}]", []
    if isinstance(s, program.Loop):
        word, way = ("columns" if s.columns else "for"), " down" if s.down else ""
        by = f" by {s.step}" if s.step > 1 else ""
        return f"{word} i{s.variable} from {s.start} below {s.stop}{by}{way}:", [("", s.body)]
    if isinstance(s, program.Until):
        again = f"again while {value(s.low)} < {value(s.high)}"
        return f"for i{s.variable} at most {s.most} times, {again}:", [("", s.body)]
    if isinstance(s, program.When):
        low, high = (value(x) if isinstance(x, int) else str(x) for x in (s.low, s.high))
        return f"when {low} < {high}:", [("", s.body)]
    if isinstance(s, program.Cases):
        return f"case {s.index}:", [(f"{k}:", body) for k, body in s.bodies.items()]
    if isinstance(s, program.FunctionCall):
        passed = [part_text(function, x) for x in s.parts]
        return f"{s.function.name}({', '.join([*passed, *map(str, s.integers)])})", []
    if isinstance(s, program.ScheduledProduct):
        start = part_text(function, s.start) if s.start else "0"
        product = f"{part_text(function, s.left)}^T {part_text(function, s.right)}"
        sizes = " x ".join(map(str, s.sizes))
        return f"{part_text(function, s.target)} = {start} {'+' if s.plus else '-'} {product} ({sizes})", []
    if isinstance(s, program.ScheduledTranspose):
        sizes = " x ".join(map(str, s.sizes))
        return f"{part_text(function, s.target)} = {part_text(function, s.source)}^T ({sizes})", []
    if isinstance(s, program.Watch):
        return f"watch {value(s.operation)}", []
    raise TypeError(f"unknown statement {s!r}")


def part_text(function: LoopFunction, part: ArrayPart) -> str:
    return f"{name(function, part.array)}@{part.offset}"
