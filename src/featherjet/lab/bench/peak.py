"""The most fused multiply-adds per second that one core can do, measured with nothing else in the way."""

from __future__ import annotations

import ctypes
import time

import llvmlite.ir as ir

from ..internals import lanes, load_function
from .timing import one_core

DOUBLE, I32, I64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
CHAINS = 12  # independent ones: enough to hide the latency, few enough to stay in registers


def fma_peak(seconds: float = 0.2) -> float:
    """Fused multiply-adds of doubles per second on one core, the best of many short runs."""
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double, ctypes.c_double)
    run = load_function(_module(), "peak", signature)
    turns, best = 100_000, 0.0
    with one_core():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            run(turns, 0.999, 1e-3)
            best = max(best, turns * CHAINS * lanes() / (time.perf_counter() - started))
    return best


def _module() -> ir.Module:
    """double peak(turns, a, b): repeats x = a x + b in every chain and lane `turns` times."""
    width = lanes()
    V = ir.VectorType(DOUBLE, width)
    module = ir.Module("peak")
    f = ir.Function(module, ir.FunctionType(DOUBLE, [I64, DOUBLE, DOUBLE]), "peak")
    fma = ir.Function(module, ir.FunctionType(V, [V, V, V]), f"llvm.fmuladd.v{width}f64")
    entry, loop, end = (f.append_basic_block(name) for name in ("entry", "loop", "end"))
    b = ir.IRBuilder(entry)
    factors = [_in_all_lanes(b, x, V) for x in f.args[1:]]
    b.branch(loop)
    b.position_at_end(loop)
    turn = b.phi(I64)
    turn.add_incoming(I64(0), entry)
    chains = [b.phi(V) for _ in range(CHAINS)]
    following = []
    for k, x in enumerate(chains):
        x.add_incoming(ir.Constant(V, [1.0 + k] * width), entry)
    for x in chains:
        following.append(b.call(fma, [x, *factors]))
        x.add_incoming(following[-1], loop)
    done = b.add(turn, I64(1))
    turn.add_incoming(done, loop)
    b.cbranch(b.icmp_signed("<", done, f.args[0]), loop, end)
    b.position_at_end(end)
    total = following[0]
    for x in following[1:]:
        total = b.fadd(total, x)
    b.ret(b.extract_element(total, I32(0)))
    return module


def _in_all_lanes(b: ir.IRBuilder, x: ir.Value, V: ir.VectorType) -> ir.Value:
    undefined = ir.Constant(V, ir.Undefined)
    first = b.insert_element(undefined, x, I32(0))
    return b.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, V.count), [0] * V.count))
