"""LLVM for `Responses`: columns of matrices, each a start, a way up and a way out over the tree."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from .emit import I64, PTR, Emitter
from .program import Responses, Store, Variant


def emit_responses(e: Emitter, number: int, loop: Responses) -> ir.Function:
    """(data, J, D, H, buffer, first, last): columns first to last, into a buffer [matrix][row][column]."""
    f = e.function(f"responses{number}", [PTR, PTR, PTR, PTR, PTR, I64, I64])
    data, _, _, H, buffer, first, last = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    n = e.slot(b, data, "nv")
    tables = {name: e.slot(b, data, name) for name in ("parent", "variant", "v_start", "joint_end", "root", "joint_of")}
    D = f.args[2]
    width = b.sub(last, first)
    plane = b.mul(n, width)
    variants = e.program.variants

    with e.loop(b, first, last) as c:
        J = e.at(b, tables["joint_of"], c)
        local = b.sub(c, e.at(b, tables["v_start"], J))
        column = b.sub(c, first)
        root, end_J = e.at(b, tables["root"], J), e.at(b, tables["joint_end"], J)
        end = e.at(b, tables["joint_end"], root)
        source = e.vector_at(b, D, b.mul(c, I64(e.ND)))

        def cell(m: int, row: ir.Value, column=column) -> ir.Value:
            at = b.add(b.add(b.mul(plane, I64(m)), b.mul(row, width)), column)
            return e.vector_at(b, buffer, at)

        def clear(lo: ir.Value, hi: ir.Value, cell=cell) -> None:
            with e.loop(b, lo, hi) as row:
                for m in range(len(loop.matrices)):
                    e.store(b, e.const(0.0), cell(m, row))

        def step(
            i: ir.Value, v: Variant, stores: list[Store], path: bool, cell=cell, source=source
        ) -> Callable[[], None]:
            def body() -> None:
                parent = None if v.is_root else e.at(b, tables["parent"], i)
                env = e.body_env(b, f.args[:3], i, parent)
                env["D", "col"], env["H"] = source, H
                late: list[Callable[[], None]] = []  # H is read and written in one step: write when all is read
                sinks = []
                for s in stores:
                    if s.ref.key is not None and s.ref.key.field == loop.entry and s.ref.space == "D":
                        m, row = int(s.ref.key.path[0]), b.add(env["first"], I64(s.ref.k))
                        sinks.append((s.value, lambda x, m=m, row=row: e.store(b, x, cell(m, row))))
                    elif s.ref.space == "H":
                        put = e.sink(b, env, s)
                        sinks.append((s.value, lambda x, put=put: late.append(lambda: put(x))))
                    elif s.ref.key in e.offset:
                        sinks.append((s.value, e.sink(b, env, s)))
                e.straight(b, sinks, lambda ref: e.pointer(b, env, ref))
                for write in late:
                    write()

            return body

        def run(i: ir.Value, bodies: dict[Variant, list[Store]], step=step) -> None:
            code = e.at(b, tables["variant"], i)
            e.switch(b, code, [(variants.index(v), step(i, v, stores, True)) for v, stores in bodies.items()])

        clear(I64(0), e.at(b, tables["v_start"], root))
        clear(e.at(b, tables["v_start"], end), n)
        code = b.add(b.mul(e.at(b, tables["variant"], J), I64(8)), local)
        e.switch(
            b,
            code,
            [(8 * variants.index(v) + j, step(J, v, stores, True)) for (v, j), stores in loop.start.items()],
        )
        way_up(e, b, tables["parent"], J, lambda i, run=run: run(i, loop.up))
        with e.loop(b, root, J) as i:
            on_path = b.icmp_signed(">", e.at(b, tables["joint_end"], i), J)
            with b.if_else(on_path) as (yes, no):
                with yes:
                    run(i, loop.along_path)
                with no:
                    run(i, loop.along)
        run(J, loop.inside_at)
        with e.loop(b, b.add(J, I64(1)), end_J) as i:
            run(i, loop.inside)
        with e.loop(b, end_J, end) as i:
            run(i, loop.along)
    b.ret_void()
    return f


def way_up(
    e: Emitter, b: ir.IRBuilder, parents: ir.Value, start: ir.Value, body: Callable[[ir.Value], None]
) -> None:
    """for (i = parent[start]; i >= 0; i = parent[i])."""
    first = e.at(b, parents, start)
    before, head, end = b.block, b.append_basic_block("up"), b.append_basic_block("top")
    b.cbranch(b.icmp_signed(">=", first, I64(0)), head, end)
    b.position_at_end(head)
    i = b.phi(I64)
    i.add_incoming(first, before)
    body(i)
    following = e.at(b, parents, i)
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed(">=", following, I64(0)), head, end)
    b.position_at_end(end)
