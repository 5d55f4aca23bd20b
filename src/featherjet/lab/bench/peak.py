"""The most fused multiply-adds per second that one core can do, measured with nothing else in the way."""

from __future__ import annotations

import ctypes
import time

from ..internals import lanes, load_function
from .timing import one_core

CHAINS = 12  # independent ones: enough to hide the latency, few enough to stay in registers


def fma_peak(seconds: float = 0.2) -> float:
    """Fused multiply-adds of doubles per second on one core, the best of many short runs."""
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double, ctypes.c_double)
    run = load_function(_text(lanes()), "peak", signature)
    turns, best = 100_000, 0.0
    with one_core():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            run(turns, 0.999, 1e-3)
            best = max(best, turns * CHAINS * lanes() / (time.perf_counter() - started))
    return best


def _text(width: int) -> str:
    """LLVM's text of double peak(turns, a, b): x = a x + b in every chain and lane, `turns` times."""
    V, starts = f"<{width} x double>", [", ".join([f"double {1.0 + k}"] * width) for k in range(CHAINS)]
    chains = [f"%x{k} = phi {V} [ <{start}>, %entry ], [ %y{k}, %loop ]" for k, start in enumerate(starts)]
    steps = [f"%y{k} = call {V} @llvm.fmuladd.v{width}f64({V} %x{k}, {V} %a, {V} %b)" for k in range(CHAINS)]
    sums = [f"%s{k} = fadd {V} {f'%s{k - 1}' if k > 1 else '%y0'}, %y{k}" for k in range(1, CHAINS)]
    everywhere = f"{V} undef, <{width} x i32> zeroinitializer"
    return "\n".join([
        f"declare {V} @llvm.fmuladd.v{width}f64({V}, {V}, {V})",
        "define double @peak(i64 %turns, double %factor, double %addend) {",
        "entry:",
        f"%a0 = insertelement {V} undef, double %factor, i32 0",
        f"%b0 = insertelement {V} undef, double %addend, i32 0",
        f"%a = shufflevector {V} %a0, {everywhere}",
        f"%b = shufflevector {V} %b0, {everywhere}",
        "br label %loop",
        "loop:",
        "%turn = phi i64 [ 0, %entry ], [ %done, %loop ]",
        *chains, *steps,
        "%done = add i64 %turn, 1",
        "%more = icmp slt i64 %done, %turns",
        "br i1 %more, label %loop, label %end",
        "end:",
        *sums,
        f"%result = extractelement {V} %s{CHAINS - 1}, i32 0",
        "ret double %result",
        "}",
    ])  # fmt: skip
