"""LLVM for the fastest calls: contiguous arrays of one sample, or of some, read through the arrays' own headers.

A gufunc spends two microseconds before it computes anything. `quick` is machine code that Python calls as a built-in
function, with the array objects themselves. It reads their headers, whose layout NumPy guarantees to compiled code, and
declines everything but one sample of contiguous numbers of one kind; the gufunc takes the rest. `quick_batch` is the
same for arrays that have one more axis, of samples; inputs but the first may be the same for all.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.ir as ir
import numpy as np

from .border import Operand, constant_dimension
from .lanes import I8, I32, I64, PTR, Lanes, Value, external
from .platform import runs_alone

# Offsets in PyArrayObject, in bytes.
TYPE, DATA, NDIM, SHAPE, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
DECLINED = -1
FASTCALL = 0x80  # METH_FASTCALL, Python's calling convention: (self, array of objects, their number)
RESULT = "PyLong_FromLongLong"


Dimension = Callable[[Lanes, ir.IRBuilder, Value, int | str], Value]


def emit_quick(
    w: Lanes, operands: Sequence[Operand], dimension: Dimension = constant_dimension, apart: bool = False
) -> None:
    """`quick` and `quick_batch`: (an array for each operand but the word for flags) -> flags, or DECLINED.

    apart: decline results that overlap inputs, which the caller needs again if a watched result is flagged.
    """
    if runs_alone(w.module):
        return  # there is no Python to call them
    _emit(w, "quick", operands, dimension, apart)
    _emit(w, "quick_batch", operands, dimension, True)


def _emit(w: Lanes, name: str, operands: Sequence[Operand], dimension: Dimension, apart: bool) -> None:
    given, batched = operands[1:], name == "quick_batch"
    f = ir.Function(w.module, ir.FunctionType(PTR, [PTR, PTR, I64]), name)
    f.attributes.add("nounwind")
    block, arguments, n_arguments = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    integer = external(w.module, RESULT, PTR, I64)

    def require(condition: Value) -> None:
        with b.if_then(b.not_(condition), likely=False):
            b.ret(b.call(integer, [I64(DECLINED)]))

    require(b.icmp_signed("==", n_arguments, I64(len(given))))
    data = field(b, block, DATA, PTR)
    objects = [b.load(b.gep(arguments, [I64(k)], source_etype=PTR), typ=PTR, align=8) for k in range(len(given))]
    count: Value = I64(1)
    extras: list[Value] = []

    def size(name: int | str) -> Value:
        return dimension(w, b, data, name)

    for k, (object, operand) in enumerate(zip(objects, given, strict=True)):
        require(b.icmp_unsigned("==", field(b, object, TYPE, I64), w.slot(b, data, "ndarray")))
        want = CONTIGUOUS | ALIGNED | (WRITEABLE if operand.output else 0)
        same = b.icmp_unsigned("==", b.and_(field(b, object, FLAGS, I32), I32(want)), I32(want))
        same = b.and_(same, b.icmp_unsigned("==", field(b, object, DESCR, I64), w.slot(b, data, "dtype")))
        require(same)
        axes, shape = b.zext(field(b, object, NDIM, I32), I64), field(b, object, SHAPE, PTR)
        extra = b.sub(axes, I64(len(operand.core)))  # axes of samples: one, or none where all share an input
        if not batched:
            require(b.icmp_signed("==", extra, I64(0)))
        elif k == 0 or operand.output:
            require(b.icmp_signed("==", extra, I64(1)))
            count = w.integer(b, shape, I64(0)) if k == 0 else count
            require(b.icmp_signed("==", w.integer(b, shape, I64(0)), count))
        else:
            require(b.icmp_unsigned("<=", extra, I64(1)))
            alone = b.icmp_signed("==", extra, I64(0))
            with b.if_then(b.not_(alone)):
                require(b.icmp_signed("==", w.integer(b, shape, I64(0)), count))
        extras.append(extra)
        for axis, dim in enumerate(operand.core):
            require(b.icmp_signed("==", w.integer(b, shape, b.add(extra, I64(axis))), size(dim)))
    # For each operand the bytes of one step along each of its axes, and of a sample.
    strides: list[list[Value]] = [[I64(w.bytes)] for _ in operands]
    for operand, found in zip(operands, strides, strict=True):
        for dim in reversed(operand.core):
            found.insert(0, b.mul(found[0], size(dim)))
    starts = [field(b, object, DATA, I64) for object in objects]
    along = [b.mul(extra, found[0]) for extra, found in zip(extras, strides[1:], strict=True)]
    ends = [
        b.add(x, b.add(found[0], b.mul(b.sub(count, I64(1)), step)))
        for x, found, step in zip(starts, strides[1:], along, strict=True)
    ]
    spans = list(zip(starts, ends, [operand.output for operand in given], strict=True))
    for k, (start, end, written) in enumerate(spans):  # results never overlap, and inputs only if that does no harm
        for begin, stop, output in spans[:k]:
            if written and (output or apart):
                require(b.or_(b.icmp_unsigned("<=", end, begin), b.icmp_unsigned("<=", stop, start)))
    pointers = [field(b, object, DATA, PTR) for object in objects]
    flags = run_samples(w, b, count, pointers, along, [x for found in strides for x in found[1:]], data)
    b.ret(b.call(integer, [flags]))


def field(b: ir.IRBuilder, object: Value, offset: int, typ: ir.Type) -> Value:
    """A field of a Python object."""
    return b.load(b.gep(object, [I64(offset)], source_etype=I8), typ=typ, align=4)


def run_samples(
    w: Lanes,
    b: ir.IRBuilder,
    count: Value,
    pointers: Sequence[Value],
    along: Sequence[Value],
    within: Sequence[Value],
    data: Value,
) -> Value:
    """Call `entry` for samples of operands at `pointers`; returns the flags.

    along: strides from sample to sample; within: those of core axes.
    """
    operands = 1 + len(pointers)
    report, address, dims = (b.alloca(I64) for _ in range(3))
    args = b.alloca(PTR, I32(operands))
    steps = b.alloca(I64, I32(operands + len(within)))
    b.store(I64(0), report)
    b.store(count, dims)
    b.store(b.ptrtoint(report, I64), address)
    for k, pointer in enumerate([address, *pointers]):
        b.store(pointer, b.gep(args, [I64(k)], source_etype=PTR))
    for k, stride in enumerate([I64(0), *along, *within]):
        b.store(stride, b.gep(steps, [I64(k)], source_etype=I64))
    b.call(w.module.globals["entry"], [args, dims, steps, data])
    return b.load(report, typ=I64, align=8)


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def quick_call(address: int, block: np.ndarray, keep: object) -> Any:
    """The function `quick` of loaded code as a Python function of arrays; its `self` is the code's data block.

    Python's function object holds bare pointers to its definition and to the code. Its `__module__` holds their owners
    and keeps them alive.
    """
    definition = _Definition(b"quick", address, FASTCALL, b"compiled by featherjet")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.POINTER(_Definition), ctypes.py_object, ctypes.py_object]
    return new(ctypes.byref(definition), block, (definition, keep))


@cache
def headers_are_known() -> bool:
    """Whether array headers have the layout that `quick` assumes; tested on one array."""
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
