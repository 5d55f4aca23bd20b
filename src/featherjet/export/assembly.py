"""LLVM text around exported code: what it reads, as constants; and functions that C can call."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..jit.chain import ChainData
from ..jit.data import Data
from ..jit.emit.workspace import FRAME
from ..jit.number import Number

Shape = tuple[int, ...]
Operands = Sequence[tuple[Shape, "np.ndarray | None"]]


@dataclass(frozen=True)
class EntryPoint:
    """A C function: its name, its code, and the arrays it takes in the order of the code's operands.

    operands: (shape, fixed): what the caller passes a pointer to, or numbers that are part of the object.
    batch: whether it takes a number of samples first. workspace: the bytes it needs.
    """

    symbol: str
    operands: Operands
    kind: Number
    batch: bool
    workspace: int
    code: str
    data: str


def constant_array(name: str, x: np.ndarray) -> str:
    """A table of numbers."""
    floats = {4: "float", 8: "double"}
    kind = floats[x.itemsize] if x.dtype.kind == "f" else f"i{8 * x.itemsize}"
    numbers = [as_hex(y) if x.dtype.kind == "f" else str(int(y)) for y in x.ravel().tolist()]
    body = ", ".join(f"{kind} {y}" for y in numbers)
    return f"@{name} = internal constant [{len(numbers)} x {kind}] [{body}], align 64"


def as_hex(x: float) -> str:
    """A number as LLVM reads it exactly: floats, too, have the digits of doubles."""
    return "0x" + struct.pack(">d", x).hex()


class Constants:
    """The blocks that code reads, as text; arrays that several blocks share appear once.

    code: names of the entries of code, by its modules; pointer_bytes: of the target's addresses.
    """

    def __init__(self, code: Mapping[Any, str], pointer_bytes: int) -> None:
        self.code, self.pointer_bytes = code, pointer_bytes
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._keep: list[object] = []  # ids are names, so what they name must live

    def block(self, data: Data) -> str:
        """The name of a block's constant: eight bytes for each entry."""
        if id(data) in self._names:
            return self._names[id(data)]
        fields: list[str] = []
        for x in data.entries:
            fields += [f"i64 {x}"] if isinstance(x, int) else self._pointer(self._array(x))
        for library, of_stage in data.stages if isinstance(data, ChainData) else ():
            fields += [*self._pointer(self.code[library]), *self._pointer(self.block(of_stage))]
        name = self._name(data, "data")
        kinds = ", ".join(x.split()[0] for x in fields)
        self.lines.append(f"@{name} = internal constant {{ {kinds} }} {{ {', '.join(fields)} }}, align 64")
        return name

    def _array(self, x: np.ndarray) -> str:
        if id(x) not in self._names:
            self.lines.append(constant_array(self._name(x, "table"), x))
        return self._names[id(x)]

    def _name(self, x: object, what: str) -> str:
        self._keep.append(x)
        return self._names.setdefault(id(x), f"{what}{len(self._names)}")

    def _pointer(self, name: str) -> list[str]:
        return [f"ptr @{name}", *["i32 0"] * (self.pointer_bytes < 8)]


def wrapper(call: EntryPoint) -> str:
    """A C function of (arrays..., workspace), or of (count, arrays..., workspace); and the constants it needs."""
    lines = [constant_array(f"{call.symbol}.steps", np.array(steps_of(call.operands, call.kind), np.int64))]
    places = []
    for k, (_, fixed) in enumerate(call.operands):
        if fixed is not None:
            lines.append(constant_array(f"{call.symbol}.fixed{k}", fixed.astype(call.kind.dtype)))
        places.append(f"%p{k}" if fixed is None else f"@{call.symbol}.fixed{k}")
    given = ["i64 %count"] * call.batch + [f"ptr {place}" for place in places if place.startswith("%")]
    body = [
        f"define i32 @{call.symbol}({', '.join([*given, 'ptr %workspace'])}) nounwind {{",
        "  %report = alloca i64, align 8",
        f"  %frame = alloca [{len(FRAME)} x i64], align 8",
        "  %dims = alloca i64, align 8",
        f"  %args = alloca [{1 + len(places)} x ptr], align 8",
        "  store i64 0, ptr %report, align 8",
        f"  store i64 {'%count' if call.batch else 1}, ptr %dims, align 8",
        "  %flags = ptrtoint ptr %report to i64",
        "  %start = ptrtoint ptr %workspace to i64",
        f"  %end = add i64 %start, {call.workspace}",
    ]
    for k, x in enumerate(("%flags", "%start", "%end", "0")):
        body += [
            f"  %word{k} = getelementptr i64, ptr %frame, i64 {k}",
            f"  store i64 {x}, ptr %word{k}, align 8",
        ]
    for k, place in enumerate(["%frame", *places]):
        body += [f"  %arg{k} = getelementptr ptr, ptr %args, i64 {k}", f"  store ptr {place}, ptr %arg{k}"]
    body += [
        f"  call void @{call.code}(ptr %args, ptr %dims, ptr @{call.symbol}.steps, ptr @{call.data})",
        "  %found = load i64, ptr %report, align 8",
        "  %result = trunc i64 %found to i32",
        "  ret i32 %result",
        "}",
    ]
    return "\n".join([*lines, *body])


def steps_of(operands: Operands, kind: Number) -> list[int]:
    """Bytes from sample to sample of each operand of a kernel, then those along the axes of each."""
    steps = [0, *(0 if fixed is not None else kind.bytes * prod(shape) for shape, fixed in operands)]
    return steps + [kind.bytes * prod(shape[k + 1 :]) for shape, _ in operands for k in range(len(shape))]
