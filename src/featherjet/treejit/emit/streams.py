"""LLVM that writes large results past the caches, in whole cache lines."""

from __future__ import annotations

from ...jit.emit.lanes import I1, I32, I64, LINE, PTR, Constant, Function, Lanes, Value, begun


def emit_stream(e: Lanes) -> Function:
    """A function of (to, its end, from or null, whether past the caches) that copies numbers, or fills in zeros."""
    f = e.function("stream", [PTR, PTR, PTR, I1])
    b = begun(f)
    start, end, source = (b.ptrtoint(x, I64) for x in f.args[:3])
    up = b.and_(b.add(start, I64(LINE - 1)), I64(-LINE))
    first = b.select(b.icmp_unsigned("<", up, end), up, end)
    after = b.and_(end, I64(-LINE))
    after = b.select(b.icmp_unsigned("<", first, after), after, first)
    shift = b.sub(source, start)

    def put(to: Value, zero: Constant, align: int, copy: bool, past: bool) -> None:
        x = b.load(b.inttoptr(b.add(to, shift), PTR), typ=zero.type, align=e.bytes) if copy else zero
        store = b.store(x, b.inttoptr(to, PTR), align=align)
        if past:
            store.set_metadata("nontemporal", e.module.add_metadata([I32(1)]))

    def run(copy: bool, past: bool) -> None:
        """Numbers up to the first whole line, lines, and numbers after the last."""
        number, vector = Constant(e.N, 0.0), e.const(0.0)
        size = e.bytes * e.L
        with e.loop(b, start, first, e.bytes) as at:
            put(at, number, e.bytes, copy, False)
        with e.loop(b, first, after, LINE) as at:
            for n in range(0, LINE, size):
                put(b.add(at, I64(n)), vector, size, copy, past)
        with e.loop(b, after, end, e.bytes) as at:
            put(at, number, e.bytes, copy, False)

    copies, past = b.zext(b.icmp_unsigned("!=", source, I64(0)), I64), b.zext(f.args[3], I64)
    cases = [(n, lambda n=n: run(bool(n & 1), bool(n & 2))) for n in range(4)]
    e.switch(b, b.add(copies, b.mul(past, I64(2))), cases)
    b.ret_void()
    return f
