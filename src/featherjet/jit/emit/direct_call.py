"""LLVM for the fastest calls: contiguous arrays of one sample, or of some, read through the arrays' own headers.

A gufunc spends two microseconds before it computes anything. `direct_call` is machine code that Python calls as a
built-in function, with the array objects themselves. It reads their headers, whose layout NumPy guarantees to compiled
code, and declines everything but samples of contiguous numbers of one kind; the gufunc takes the rest. Arrays hold one
sample, or have one more axis, of samples; then inputs but the first may be the same for all.

One piece of code serves all kernels. What it expects of arrays, and what it calls, are numbers in a block.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ..number import Number
from .border import ENTRY
from .foreign import at, field, function_at, plain_lanes
from .lanes import I1, I32, I64, PTR, VOID, Function, FunctionType, Lanes, Module, Value, begun, external
from .platform import Platform

# Offsets in PyArrayObject, in bytes.
TYPE, DATA, NDIM, SHAPE, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
DECLINED = -1
FASTCALL = 0x80  # METH_FASTCALL, Python's calling convention: (self, array of objects, their number)
RESULT = "PyLong_FromLongLong"
UNKNOWN = I64(-1)

# The block begins with these words: addresses of NumPy's array type and dtype, of `entry` and of what it reads; how
# many operands there are, how many axes of samples, whether results must lie apart from inputs, how many words describe
# an operand, and how many strides there are.
WORDS = ("ndarray", "dtype", "entry", "data", "operands", "axes", "apart", "width", "strides")
# Of each operand: the flags it must have, whether it must have the axes of samples (others may), whether it is a
# result, the bytes of a sample, and how many axes a sample has; then their lengths. Strides as for `entry` come last.
OPERAND = ("flags", "all", "output", "bytes", "core")


def direct_call_block(
    kind: Number, entry: int, data: int, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]],
    batched: bool, apart: bool,
) -> np.ndarray:  # fmt: skip
    """The block for a kernel whose samples have these shapes."""
    shapes = [*inputs, *outputs]
    width = len(OPERAND) + max(map(len, shapes))
    operands, within = [], []
    for k, shape in enumerate(shapes):
        output, size = k >= len(inputs), kind.bytes * prod(shape)
        flags = CONTIGUOUS | ALIGNED | (WRITEABLE if output else 0)
        row = [flags, k == 0 or output, output, size, len(shape), *shape]
        operands += [*row, *[0] * (width - len(row))]
        within += [kind.bytes * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    strides = [0] * (1 + len(shapes)) + within
    addresses = id(np.ndarray), id(kind.dtype), entry, data
    counts = len(shapes), batched, apart or batched, width, len(strides)
    return np.array([*addresses, *counts, *operands, *strides], np.int64)


def emit_direct_call(platform: Platform) -> Module:
    """`direct_call`: (a block as an array, an array for each operand but the word for flags) -> flags, or DECLINED."""
    w = plain_lanes(platform, "direct_call")
    DirectCallCode(w).emit()
    return w.module


class DirectCallCode:
    """Checks operand after operand, then calls `entry`."""

    def __init__(self, w: Lanes) -> None:
        self.w = w

    def emit(self) -> None:
        w = self.w
        f = Function(w.module, FunctionType(PTR, [PTR, PTR, I64]), "direct_call")
        f.attributes.add("nounwind")
        owner, arguments, given = f.args
        b = self.b = begun(f)
        self.integer = external(w.module, RESULT, PTR, I64)
        block = field(b, owner, DATA, PTR)
        self.word = {name: w.integer(b, block, I64(k)) for k, name in enumerate(WORDS)}
        count = self.word["operands"]
        self.require(b.icmp_signed("==", given, count))
        self.pointers = b.alloca(PTR, b.add(count, I64(1)))
        self.ends = b.alloca(I64, count)
        self.samples, report, address = (b.alloca(I64) for _ in range(3))
        operands = at(b, block, I64(len(WORDS)))
        fixed = at(b, operands, b.mul(count, self.word["width"]))
        batched = b.icmp_signed("!=", self.word["axes"], I64(0))
        own = b.alloca(I64, b.select(batched, self.word["strides"], I64(0)))
        with b.if_then(batched):
            copy = external(w.module, "llvm.memcpy.p0.p0.i64", VOID, PTR, PTR, I64, I1)
            b.call(copy, [own, fixed, b.mul(self.word["strides"], I64(8)), I1(0)])
        b.store(b.select(batched, UNKNOWN, I64(1)), self.samples)  # the first operand says how many
        b.store(I64(0), report)
        b.store(b.ptrtoint(report, I64), address)
        b.store(address, self.pointers)
        with w.loop(b, I64(0), count) as k:
            object = b.load(at(b, arguments, k, PTR), typ=PTR, align=8)
            operand = at(b, operands, b.mul(k, self.word["width"]))
            extra = self.check(object, operand)
            with b.if_then(batched):
                b.store(b.mul(extra, self.of(operand, "bytes")), at(b, own, b.add(k, I64(1))))
            self.place(object, operand, operands, extra, k)
        callee = function_at(b.inttoptr(self.word["entry"], PTR), ENTRY)
        strides, data = b.select(batched, own, fixed), b.inttoptr(self.word["data"], PTR)
        b.call(callee, [self.pointers, self.samples, strides, data])
        b.ret(b.call(self.integer, [b.load(report, typ=I64, align=8)]))

    def require(self, condition: Value) -> None:
        """Decline unless a condition holds."""
        with self.b.if_then(self.b.not_(condition), likely=False):
            self.b.ret(self.b.call(self.integer, [I64(DECLINED)]))

    def of(self, operand: Value, name: str) -> Value:
        """What an operand must have."""
        return self.w.integer(self.b, operand, I64(OPERAND.index(name)))

    def check(self, object: Value, operand: Value) -> Value:
        """Check the header of an array; returns its number of axes of samples."""
        b, w = self.b, self.w
        self.require(b.icmp_unsigned("==", field(b, object, TYPE, I64), self.word["ndarray"]))
        flags = self.of(operand, "flags")
        same = b.icmp_unsigned("==", b.and_(b.zext(field(b, object, FLAGS, I32), I64), flags), flags)
        self.require(b.and_(same, b.icmp_unsigned("==", field(b, object, DESCR, I64), self.word["dtype"])))
        core, shape = self.of(operand, "core"), field(b, object, SHAPE, PTR)
        extra = b.sub(b.zext(field(b, object, NDIM, I32), I64), core)
        missing = b.sub(self.word["axes"], extra)
        may_miss = b.select(b.icmp_signed("==", self.of(operand, "all"), I64(0)), self.word["axes"], I64(0))
        self.require(b.icmp_unsigned("<=", missing, may_miss))
        with b.if_then(b.icmp_signed("!=", extra, I64(0))):
            count, known = w.integer(b, shape, I64(0)), b.load(self.samples, typ=I64, align=8)
            self.require(b.or_(b.icmp_signed("==", known, UNKNOWN), b.icmp_signed("==", known, count)))
            b.store(count, self.samples)
        with w.loop(b, I64(0), core) as axis:
            length = w.integer(b, shape, b.add(extra, axis))
            expected = w.integer(b, operand, b.add(axis, I64(len(OPERAND))))
            self.require(b.icmp_signed("==", length, expected))
        return extra

    def place(self, object: Value, operand: Value, operands: Value, extra: Value, k: Value) -> None:
        """Note where an operand is. Results never overlap, and inputs only if that does no harm."""
        b, w = self.b, self.w
        size = self.of(operand, "bytes")
        start = field(b, object, DATA, I64)
        more = b.sub(b.load(self.samples, typ=I64, align=8), I64(1))
        end = b.add(start, b.add(size, b.mul(more, b.mul(extra, size))))
        b.store(b.inttoptr(start, PTR), at(b, self.pointers, b.add(k, I64(1)), PTR))
        b.store(end, at(b, self.ends, k))
        with b.if_then(b.icmp_signed("!=", self.of(operand, "output"), I64(0))), w.loop(b, I64(0), k) as other:
            output = self.of(at(b, operands, b.mul(other, self.word["width"])), "output")
            begin = b.ptrtoint(b.load(at(b, self.pointers, b.add(other, I64(1)), PTR), typ=PTR, align=8), I64)
            before = b.icmp_unsigned("<=", end, begin)
            after = b.icmp_unsigned("<=", w.integer(b, self.ends, other), start)
            harmless = b.icmp_signed("==", b.or_(output, self.word["apart"]), I64(0))
            self.require(b.or_(harmless, b.or_(before, after)))


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def direct_call(address: int, block: np.ndarray, keep: object) -> Any:
    """The function `direct_call` as a Python function of arrays; its `self` is the block.

    Python's function object holds bare pointers to its definition and to the code. Its `__module__` holds their owners
    and keeps them alive.
    """
    definition = _Definition(b"direct_call", address, FASTCALL, b"compiled by featherjet")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.POINTER(_Definition), ctypes.py_object, ctypes.py_object]
    return new(ctypes.byref(definition), block, (definition, keep))


@cache
def headers_are_known() -> bool:
    """Whether array headers have the layout that `direct_call` assumes; tested on one array."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or np.intp(0).nbytes != 8:
        return False
    x = np.zeros((3, 5))

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(x) + offset).value

    def half(offset: int) -> int:
        return ctypes.c_int32.from_address(id(x) + offset).value

    shape = (ctypes.c_int64 * 2).from_address(word(SHAPE)) if half(NDIM) == 2 else ()
    flags = CONTIGUOUS | ALIGNED | WRITEABLE
    return (
        word(TYPE) == id(np.ndarray)
        and word(DATA) == x.ctypes.data
        and word(DESCR) == id(x.dtype)
        and tuple(shape) == (3, 5)
        and half(FLAGS) & flags == flags
    )
