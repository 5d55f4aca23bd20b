"""LLVM for `ContactSolve`: percussions at feet and stops by Gauss-Seidel sweeps; each lane is a sample.

Sweeps converge slowly where feet share a body and stick. So every few sweeps all feet that stick are solved for at
once, with what slides or is open held fixed; what this makes worse is undone, lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ir

from ...algorithms.contacts.solver import SWEEPS, TOLERANCE
from ...jit.emit.dense import emit_factorise, entry
from ...jit.emit.lanes import I32, I64, PTR, Value
from ...jit.graph import Expr
from ..program import ContactSolve, GripLoop, Hold, Ref, Walk
from .contacts import STOP, ContactWalks, HoldCode

TOGETHER_EVERY = 2  # sweeps
ROUNDS = 4  # solutions at most, each without the feet that the one before would have to pull
REFINED = 2  # solutions with one factor: the second removes what REGULAR makes wrong
REGULAR = 1e-10  # of the diagonal; feet that stick may be redundant
WIDE = 2  # times as many rows as dofs are too many to solve for at once


class SolveWalks(ContactWalks):
    """Walks over bodies, and percussions. W holds two systems: that of all feet, and that of those that stick."""

    def after_system(self, b: ir.IRBuilder, data: Value, k: Value) -> Value:
        rows, nv = self.slot(b, data, "rows"), self.slot(b, data, "nv")
        return b.add(k, b.add(nv, b.mul(rows, b.add(b.add(rows, rows), I64(5)))))

    def emit(self, number: int, loop: Walk | GripLoop | Hold) -> ir.Function:
        return SolveCode(self, loop).emit(number) if isinstance(loop, ContactSolve) else super().emit(number, loop)


class SolveCode(HoldCode):
    """Emits one `ContactSolve`."""

    w: ContactWalks
    loop: ContactSolve

    def emit(self, number: int) -> ir.Function:
        w, loop = self.w, self.loop
        climb = self.emit_climb(number)
        f = w.function(f"strike{number}", [PTR] * w.arguments)
        self.sweep = self.emit_sweep(number)
        self.together = self.emit_together(number)
        b = self.enter(f)
        self.p = b.alloca(w.V, I32(18))
        self.p.align = w.bytes * w.L  # type: ignore[attr-defined]
        self.goal, self.landed = (w.cell(b) for _ in range(2))
        w.store(b, w.const(0.0), self.goal)
        held = I64(w.offset[loop.held])
        with w.loop(b, I64(0), self.nv) as k:
            dof = w.vector(b, self.D, b.mul(k, I64(w.ND)))
            w.store(b, w.values(b, [loop.rest], self.loader(b, dof))[0][0], w.vector(b, dof, held))
        with w.loop(b, I64(0), self.grips) as t:
            self.begin_grip(climb, t)
        if loop.inputs:
            with w.loop(b, I64(0), self.stops) as k:
                self.begin_stop(climb, k)
        sweeps = self.sweeps()
        self.finish(sweeps)
        b.ret_void()
        return f

    def enter(self, f: ir.Function) -> ir.IRBuilder:
        """Begin a function whose first arguments are those of a walk."""
        w, (self.data, _, self.D, self.T, self.E, self.W) = self.w, f.args[:6]
        self.memory = f.args[: w.arguments]
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.grips, self.nv, self.rows = (w.slot(b, self.data, name) for name in ("grips", "nv", "rows"))
        self.stops = w.slot(b, self.data, "stops") if self.loop.inputs else I64(0)
        self.G = self.W
        return b

    # Memory

    def own(self, t: Value, k: int) -> Value:
        """Number k of what a grip keeps."""
        w, b = self.w, self.b
        return w.vector(b, self.T, b.add(b.mul(t, I64(w.NT)), I64(w.offset[self.loop.own[k]])))

    def owned(self, t: Value, start: int, count: int) -> list[Value]:
        return [self.w.load(self.b, self.own(t, k)) for k in range(start, start + count)]

    def left_at(self, e: Value) -> Value:
        """Where what is left at an entry's dof is, percussions included."""
        w, b = self.w, self.b
        dof = w.entry_field(b, self.data, e, 0)
        return w.vector(b, self.D, b.add(b.mul(dof, I64(w.ND)), I64(w.offset[self.loop.held])))

    def ends(self, t: Value) -> tuple[Value, Value]:
        """A grip's first entry, and the one after its last."""
        first, _, _, last = self.bounds(t)
        return first, last

    def stop_field(self, k: Value, i: int) -> Value:
        """A stop's dof, its first entry, and the one after its last."""
        w, b = self.w, self.b
        return w.integer(b, w.slot(b, self.data, "stop"), b.add(b.mul(k, I64(3)), I64(i)))

    def stop_number(self, k: Value, i: int) -> Value:
        """Where a stop's own number i is."""
        w, b = self.w, self.b
        return w.vector(b, self.W, w.after_system(b, self.data, b.add(b.mul(k, I64(STOP)), I64(i))))

    def given(self, which: int, at: Value) -> Value:
        """A number of one of the loop's inputs."""
        w, b = self.w, self.b
        place = list(w.program.inputs).index(self.loop.inputs[which])
        return w.load(b, w.vector(b, self.memory[1 + len(w.spaces) + place], at))

    # Laws

    def laws(self, of: Sequence[Expr], handed: Sequence[Value], env: dict | None = None) -> list[Value]:
        """Expressions of a law from the numbers handed to it, and of a grip's."""
        w, b = self.w, self.b

        def load(ref: Ref) -> Value:
            return handed[ref.k] if ref.space == "H" else w.fetch(b, env or {}, ref)

        return w.values(b, list(of), load)[0]

    def largest(self, cell: Value, found: Sequence[Value], scale: Value | None = None) -> None:
        """The cell becomes the largest of itself and of the sizes of some values."""
        w, b = self.w, self.b
        most = w.load(b, cell)
        for x in found:
            size = b.select(b.fcmp_ordered("<", x, w.const(0.0)), b.fneg(x), x)
            size = size if scale is None else b.fmul(size, scale)
            most = b.select(b.fcmp_unordered(">", size, most), size, most)
        w.store(b, most, cell)

    def felt(self, start: Value, end: Value, first: Sequence[Value], count: int) -> list[Value]:
        """What rows feel of all that is left at their dofs, added to `first`."""
        w, b = self.w, self.b

        def add(e: Value, total: list[Value]) -> list[Value]:
            left = w.load(b, self.left_at(e))
            return [w.plus_product(b, s, y, left) for s, y in zip(total, self.row(e, 0)[:count], strict=True)]

        return w.carrying(b, start, end, first, add)

    def push(self, start: Value, end: Value, change: Sequence[Value]) -> None:
        """Add a change of percussions to what is left at the dofs."""
        w, b = self.w, self.b
        with w.loop(b, start, end) as e:
            at = self.left_at(e)
            total = w.load(b, at)
            for z, x in zip(self.row(e, 1), change, strict=False):
                total = w.plus_product(b, total, z, x)
            w.store(b, total, at)

    # The beginning

    def begin_grip(self, climb: ir.Function, t: Value) -> None:
        w, b, loop = self.w, self.b, self.loop
        self.climb(climb, t)
        env = w.grip_environment(b, self.memory, t)
        start, end = self.ends(t)

        def add(e: Value, total: list[Value]) -> list[Value]:
            y, z = self.row(e, 0), self.row(e, 1)
            pairs = ((i, j) for i in range(3) for j in range(i, 3))
            return [w.plus_product(b, s, y[i], z[j]) for s, (i, j) in zip(total, pairs, strict=True)]

        G = w.carrying(b, start, end, [w.const(0.0)] * 6, add)
        setup = self.laws(loop.setup, G)
        (before,) = w.values(b, loop.drift, lambda ref: w.fetch(b, env, ref))
        P = self.laws(loop.start, [], env)
        for k, x in enumerate([*G, *setup, *before, *P]):
            w.store(b, x, self.own(t, k))
        gamma = self.felt(start, end, before, 3)
        lands = b.fcmp_ordered("<", gamma[2], w.const(0.0))
        self.largest(self.goal, [b.select(lands, x, w.const(0.0)) for x in gamma], setup[6])
        self.push(start, end, P)

    def begin_stop(self, climb: ir.Function, k: Value) -> None:
        """A stop's row is one at its own dof, which hands on K."""
        w, b, loop = self.w, self.b, self.loop
        dof, first, end = (self.stop_field(k, i) for i in range(3))
        load = self.loader(b, w.vector(b, self.D, b.mul(dof, I64(w.ND))))
        (found,) = w.values(b, [*loop.pass_K, loop.dinv], load)
        for i in range(18):
            w.store(b, found[i] if i < 6 else w.const(0.0), w.vector(b, self.p, I64(i)))
        row = w.vector(b, self.E, b.mul(first, I64(w.NE)))
        values = [w.const(1.0), w.const(0.0), w.const(0.0), found[6], w.const(0.0), w.const(0.0)]
        for key, x in zip(loop.Y, values, strict=True):
            w.store(b, x, w.vector(b, row, I64(w.offset[key])))
        b.call(climb, [self.data, self.D, self.E, self.p, b.add(first, I64(1)), end])

        def add(e: Value, total: list[Value]) -> list[Value]:
            return [w.plus_product(b, total[0], self.row(e, 0)[0], self.row(e, 1)[0])]

        (G,) = w.carrying(b, first, end, [w.const(0.0)], add)
        P = [self.given(2, b.add(b.mul(k, I64(2)), I64(i))) for i in range(2)]
        for i, x in enumerate([G, *P]):
            w.store(b, x, self.stop_number(k, i))
        rate = self.felt(first, end, [self.given(0, dof)], 1)
        self.largest(self.goal, rate, b.fdiv(w.const(1.0), G))
        self.push(first, end, [b.fadd(*P)])

    # Sweeps

    def sweeps(self) -> Value:
        """Sweep until no lane changes; returns the number of sweeps."""
        w, b = self.w, self.b
        goal = b.fmul(w.load(b, self.goal), w.const(TOLERANCE))
        self.worst = w.cell(b)
        small = b.icmp_signed("<=", self.rows, b.mul(self.nv, I64(WIDE)))
        with b.if_then(small), w.loop(b, I64(0), self.grips) as t, w.loop(b, I64(0), b.add(t, I64(1))) as s:
            self.block(t, s)
        before, head, end = b.block, b.append_basic_block("sweep"), b.append_basic_block("swept")
        b.branch(head)
        b.position_at_end(head)
        count = b.phi(I64)
        count.add_incoming(I64(0), before)
        b.call(self.sweep, [*self.memory, self.worst])
        more = b.add(count, I64(1))
        moving = w.any_lane(b, b.fcmp_unordered(">", w.load(b, self.worst), goal))
        turn = b.icmp_signed("==", b.and_(more, I64(TOGETHER_EVERY - 1)), I64(1))
        with b.if_then(b.and_(b.and_(moving, small), turn)):
            b.call(self.together, [*self.memory, self.worst])
        unsettled = w.any_lane(b, b.fcmp_unordered(">", w.load(b, self.worst), goal))
        count.add_incoming(more, b.block)
        b.cbranch(b.and_(unsettled, b.icmp_signed("<", more, I64(SWEEPS))), head, end)
        b.position_at_end(end)
        return more

    def emit_sweep(self, number: int) -> ir.Function:
        """(a walk's arguments, worst): visit all feet and stops; `worst` gets the largest change."""
        w = self.w
        f = w.function(f"visit{number}", [PTR] * (w.arguments + 1))
        b, self.worst = self.enter(f), f.args[-1]
        w.store(b, w.const(0.0), self.worst)
        with w.loop(b, I64(0), self.grips) as t:
            self.visit_grip(t)
        if self.loop.inputs:
            with w.loop(b, I64(0), self.stops) as k:
                self.visit_stop(k)
        b.ret_void()
        return f

    def emit_together(self, number: int) -> ir.Function:
        """(a walk's arguments, worst): solve for all feet that stick, sweep, and undo where `worst` does not fall."""
        w = self.w
        factorise, solve = emit_factorise(w), w.solve
        f = w.function(f"together{number}", [PTR] * (w.arguments + 1))
        b, worst = self.enter(f), f.args[-1]
        self.worst, dropped = w.cell(b), w.cell(b)
        n = self.rows
        square = b.mul(n, n)
        A, dinv = w.vector(b, self.W, square), w.vector(b, self.W, b.add(square, square))
        margins, x, P, mask, left = (w.vector(b, dinv, b.mul(n, I64(k))) for k in range(1, 6))
        self.copy(P, left, None)
        with w.loop(b, I64(0), self.grips) as t:
            env = w.grip_environment(b, self.memory, t)
            for i, m in enumerate(self.laws(self.loop.sticks, self.owned(t, 16, 3), env)):
                w.store(b, m, w.vector(b, mask, b.add(b.mul(t, I64(3)), I64(i))))
        before, head, end = b.block, b.append_basic_block("round"), b.append_basic_block("rounded")
        b.branch(head)
        b.position_at_end(head)
        count = b.phi(I64)
        count.add_incoming(I64(0), before)
        self.masked(A, mask)
        b.call(factorise, [A, dinv, margins, n])
        with w.loop(b, I64(0), I64(REFINED)):
            self.right_side(x, mask)
            b.call(solve, [A, dinv, x, n])
            with w.loop(b, I64(0), self.grips) as t:
                self.change(t, [w.load(b, w.vector(b, x, b.add(b.mul(t, I64(3)), I64(i)))) for i in range(3)])
        self.drop(mask, dropped)
        more = b.add(count, I64(1))
        count.add_incoming(more, b.block)
        again = w.any_lane(b, b.fcmp_ordered(">", w.load(b, dropped), w.const(0.0)))
        b.cbranch(b.and_(again, b.icmp_signed("<", more, I64(ROUNDS))), head, end)
        b.position_at_end(end)
        b.call(self.sweep, [*self.memory, self.worst])
        better = b.fcmp_ordered("<", w.load(b, self.worst), w.load(b, worst))
        self.copy(P, left, better)
        w.store(b, b.select(better, w.load(b, self.worst), w.load(b, worst)), worst)
        b.ret_void()
        return f

    def masked(self, A: Value, mask: Value) -> None:
        """The system of the rows that stick; the others are those of the identity."""
        w, b, n = self.w, self.b, self.rows
        with w.loop(b, I64(0), n) as i:
            mi = w.load(b, w.vector(b, mask, i))
            with w.loop(b, I64(0), i) as j:
                both = b.fmul(mi, w.load(b, w.vector(b, mask, j)))
                w.store(b, b.fmul(both, w.load(b, entry(w, b, self.G, n, i, j))), entry(w, b, A, n, i, j))
            d = b.fmul(w.load(b, entry(w, b, self.G, n, i, i)), w.const(1.0 + REGULAR))
            w.store(b, b.select(b.fcmp_ordered(">", mi, w.const(0.0)), d, w.const(1.0)), entry(w, b, A, n, i, i))

    def right_side(self, x: Value, mask: Value) -> None:
        """The velocities to cancel."""
        w, b = self.w, self.b
        with w.loop(b, I64(0), self.grips) as t:
            gamma = self.felt(*self.ends(t), self.owned(t, 13, 3), 3)
            for i, y in enumerate(gamma):
                row = b.add(b.mul(t, I64(3)), I64(i))
                m = w.load(b, w.vector(b, mask, row))
                w.store(b, b.fneg(b.fmul(m, y)), w.vector(b, x, row))

    def change(self, t: Value, change: Sequence[Value]) -> None:
        """Change a foot's percussion."""
        w, b = self.w, self.b
        for i, y in enumerate(change):
            at = self.own(t, 16 + i)
            w.store(b, b.fadd(w.load(b, at), y), at)
        self.push(*self.ends(t), change)

    def drop(self, mask: Value, dropped: Value) -> None:
        """Feet that would have to pull open: their percussions vanish, and their rows leave the system."""
        w, b = self.w, self.b
        zero = w.const(0.0)
        w.store(b, zero, dropped)
        with w.loop(b, I64(0), self.grips) as t:
            P = self.owned(t, 16, 3)
            pulls = b.fcmp_ordered("<", P[2], zero)
            self.change(t, [b.select(pulls, b.fneg(y), zero) for y in P])
            for i in range(3):
                at = w.vector(b, mask, b.add(b.mul(t, I64(3)), I64(i)))
                w.store(b, b.select(pulls, zero, w.load(b, at)), at)
            self.largest(dropped, [b.select(pulls, w.const(1.0), zero)])

    def copy(self, P: Value, left: Value, better: Value | None) -> None:
        """Copy percussions, and what is left at the dofs, to P and `left`; or back, in lanes that did not improve."""
        w, b = self.w, self.b

        def move(at: Value, place: Value) -> None:
            now = w.load(b, at)
            if better is None:
                w.store(b, now, place)
            else:
                w.store(b, b.select(better, now, w.load(b, place)), at)

        with w.loop(b, I64(0), self.grips) as t:
            for i in range(3):
                move(self.own(t, 16 + i), w.vector(b, P, b.add(b.mul(t, I64(3)), I64(i))))
        with w.loop(b, I64(0), self.nv) as k:
            move(w.vector(b, self.D, b.add(b.mul(k, I64(w.ND)), I64(w.offset[self.loop.held]))), w.vector(b, left, k))
        if self.loop.inputs:
            with w.loop(b, I64(0), self.stops) as k:
                for i in (1, 2):
                    move(self.stop_number(k, i), self.stop_number(k, i + 2))

    def visit_grip(self, t: Value) -> None:
        w, b = self.w, self.b
        start, end = self.ends(t)
        env = self.w.grip_environment(b, self.memory, t)
        gamma = self.felt(start, end, self.owned(t, 13, 3), 3)
        P = self.owned(t, 16, 3)
        new = self.laws(self.loop.law, [*self.owned(t, 0, 13), *gamma, *P], env)
        change = [b.fsub(x, y) for x, y in zip(new, P, strict=True)]
        for k, x in enumerate(new):
            w.store(b, x, self.own(t, 16 + k))
        self.largest(self.worst, change)
        self.push(start, end, change)

    def visit_stop(self, k: Value) -> None:
        w, b = self.w, self.b
        dof, first, end = (self.stop_field(k, i) for i in range(3))
        (rate,) = self.felt(first, end, [self.given(0, dof)], 1)
        G, *P = (w.load(b, self.stop_number(k, i)) for i in range(3))
        stop = [self.given(1, b.add(b.mul(k, I64(3)), I64(i))) for i in range(3)]
        whole = dict(zip(w.program.inputs, self.memory[1 + len(w.spaces) :], strict=True))
        new = self.laws(self.loop.stop_law, [G, rate, *stop, *P], whole)
        change = b.fsub(b.fadd(*new), b.fadd(*P))
        for i, x in enumerate(new):
            w.store(b, x, self.stop_number(k, 1 + i))
        self.largest(self.worst, [change])
        self.push(first, end, [change])

    # The end

    def finish(self, sweeps: Value) -> None:
        """Store percussions in world axes, and the report."""
        w, b, loop, landed = self.w, self.b, self.loop, self.landed
        w.store(b, w.const(0.0), landed)
        with w.loop(b, I64(0), self.grips) as t:
            env = w.grip_environment(b, self.memory, t)
            start, end = self.ends(t)
            before, P = self.owned(t, 13, 3), self.owned(t, 16, 3)
            gamma = self.felt(start, end, before, 3)
            self.largest(landed, self.laws(loop.lands, [*before, *gamma, *P], env))
            for key, x in zip(loop.forces, self.laws(loop.world, P, env), strict=True):
                w.store(b, x, w.vector(b, self.T, b.add(b.mul(t, I64(w.NT)), I64(w.offset[key]))))
        afloat = b.fcmp_ordered("==", w.load(b, landed), w.const(0.0))
        with w.loop(b, I64(0), self.stops) as k:
            self.largest(landed, [w.load(b, self.stop_number(k, 2))], w.const(1e300))
        flies = b.fcmp_ordered("==", w.load(b, landed), w.const(0.0))
        flags = [b.select(x, w.const(1.0), w.const(0.0)) for x in (flies, afloat)]
        count = w.splat(b, b.sitofp(sweeps, w.N))
        for key, x in zip(loop.report, (w.load(b, self.worst), flags[0], count, flags[1]), strict=True):
            w.store(b, x, w.vector(b, w.sums(b, self.data, self.D), I64(w.offset[key])))
