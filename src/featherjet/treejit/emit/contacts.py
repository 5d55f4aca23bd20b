"""LLVM for loops over contacts, in which each lane is a sample: `GripLoop` and `Hold`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property

import llvmlite.ir as ir

from ...jit.emit.dense import emit_factorise, emit_solve, entry
from ...jit.emit.lanes import I32, I64, PTR, Value
from ...jit.graph import Expr
from ...jit.number import DOUBLE, Number
from ..program import GRIP, GripLoop, Hold, Key, Meet, Ref, Walk
from ..walks import BODIES, MemoryLayout
from .redundant import Proximal, any_redundant, room
from .walks import Walks

STOP = 5  # numbers of a stop in W: its row's y D^-1 y, its two percussions, and a copy of them
MU = sum(size for name, size in itertools.takewhile(lambda item: item[0] != "mu", GRIP.items()))


class ContactWalks(Walks):
    """Walks over bodies and contacts.

    T holds NT vectors for each grip, E holds NE for each entry; W holds G, 1 / D, margins and one vector over rows, and
    then, where contacts may be redundant, another vector over rows and what `Proximal` works in.
    """

    spaces = ("J", "D", "T", "E", "W")

    def __init__(self, module: ir.Module, layout: MemoryLayout, lanes: int, kind: Number) -> None:
        super().__init__(module, layout, lanes, kind)
        self.NT, self.NE = layout.NT, layout.NE
        self.width = sum(GRIP.values())

    @cached_property
    def solve(self) -> ir.Function:
        return emit_solve(self)

    def areas(self, b: ir.IRBuilder, data: Value) -> list[Value]:
        """How many vectors each space has; the world is a body after the last joint."""
        joints, nv, grips, entries = (self.slot(b, data, s) for s in ("joints", "nv", "grips", "entries"))
        J = b.mul(b.add(joints, I64(1)), I64(self.NJ))
        more = b.mul(self.slot(b, data, "stops"), I64(STOP))
        if any(isinstance(loop, Hold) and loop.redundant for loop in self.program.loops):
            rows = self.slot(b, data, "rows")
            more = b.add(more, b.add(rows, room(b, rows)))
        system = self.after_system(b, data, more)
        D = b.add(b.mul(nv, I64(self.ND)), I64(self.counts["G"]))
        return [J, D, b.mul(grips, I64(self.NT)), b.mul(entries, I64(self.NE)), system]

    def after_system(self, b: ir.IRBuilder, data: Value, k: Value) -> Value:
        """Where number k after the system is, in W."""
        rows = self.slot(b, data, "rows")
        return b.add(b.mul(b.add(rows, I64(3)), rows), k)

    def emit(self, number: int, loop: Walk | GripLoop | Hold) -> ir.Function:
        if isinstance(loop, Walk | GripLoop):
            return super().emit(number, loop)
        code = HoldCode(self, loop)
        return code.emit_meet(number) if isinstance(loop, Meet) else code.emit(number)

    def grip_field(self, b: ir.IRBuilder, data: Value, g: Value, k: int) -> Value:
        """Integer k of a grip's row: its case, then BODIES."""
        return self.integer(b, self.slot(b, data, "grip"), b.add(b.mul(g, I64(1 + len(BODIES))), I64(k)))

    def entry_field(self, b: ir.IRBuilder, data: Value, e: Value, k: int) -> Value:
        """Integer k of an entry's row: its dof, grip and case."""
        return self.integer(b, self.slot(b, data, "entry"), b.add(b.mul(e, I64(3)), I64(k)))

    def grip_environment(self, b: ir.IRBuilder, memory: Sequence[Value], g: Value) -> dict:
        """Pointers to the memory of a grip and of its bodies."""
        data, J, _, T = memory[:4]
        env: dict = {
            ("T", "self"): self.vector(b, T, b.mul(g, I64(self.NT))),
            "grip": self.number(b, self.slot(b, data, "grip_values"), b.mul(g, I64(self.width))),
            "param": self.slot(b, data, "param"),
        }
        for k, role in enumerate(BODIES):
            at = b.mul(self.grip_field(b, data, g, 1 + k), I64(self.NJ))
            env["J", role] = self.vector(b, J, at)
        for (name, entries), pointer in zip(self.program.inputs.items(), memory[1 + len(self.spaces) :], strict=True):
            env[name] = self.vector(b, pointer, b.mul(g, I64(entries)) if isinstance(entries, int) else I64(0))
        return env


class HoldCode:
    """Emits one `Hold`."""

    def __init__(self, w: ContactWalks, loop: Hold) -> None:
        self.w, self.loop = w, loop

    def emit(self, number: int) -> ir.Function:
        w = self.w
        found = self.loop.again
        climb, factorise = (None, None) if found else (self.emit_climb(number), emit_factorise(w))
        f = w.function(f"hold{number}", [PTR] * w.arguments)
        b = self.begin(f)
        rows, grips = self.rows, w.slot(b, self.data, "grips")
        dinv, margins, x = (w.vector(b, self.G, b.mul(rows, b.add(rows, I64(k)))) for k in range(3))
        proximal = Proximal(w, factorise, w.solve).emit() if self.settles and factorise else None
        with w.loop(b, I64(0), grips) as t:
            if climb:
                self.climb(climb, t)
            self.cancel(t, x)
            if not found:
                with w.loop(b, I64(0), b.add(t, I64(1))) as s:
                    self.block(t, s)
                self.damp(t)
        if factorise:
            b.call(factorise, [self.G, dinv, margins, rows])
        b.call(w.solve, [self.G, dinv, x, rows])
        if proximal:
            redundant = b.fcmp_ordered(">", any_redundant(w, b, margins, rows), w.const(0.0))
            with b.if_then(w.any_lane(b, redundant), likely=False):
                self.settle(proximal, margins, x, grips)
        self.spread(grips, x)
        b.ret_void()
        return f

    def emit_meet(self, number: int) -> ir.Function:
        """How grips accelerate under each other's forces, alone."""
        w, climb = self.w, self.emit_climb(number)
        f = w.function(f"meet{number}", [PTR] * w.arguments)
        b = self.begin(f)
        with w.loop(b, I64(0), w.slot(b, self.data, "grips")) as t:
            self.climb(climb, t)
            with w.loop(b, I64(0), b.add(t, I64(1))) as s:
                self.block(t, s)
        with w.loop(b, I64(0), self.rows) as i, w.loop(b, I64(0), i) as j:
            w.store(b, w.load(b, entry(w, b, self.G, self.rows, i, j)), entry(w, b, self.G, self.rows, j, i))
        b.ret_void()
        return f

    def begin(self, f: ir.Function) -> ir.IRBuilder:
        """The function's memory."""
        w = self.w
        self.data, _, self.D, self.T, self.E, self.G = f.args[:6]
        self.memory = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.rows = w.slot(b, self.data, "rows")
        self.p, self.saved = (b.alloca(w.V, I32(18)) for _ in range(2))
        for cell in (self.p, self.saved):
            cell.align = w.bytes * w.L  # type: ignore[attr-defined]
        return b

    @property
    def settles(self) -> bool:
        """Whether redundant contacts are solved here; code in single precision leaves them to that in double."""
        return self.loop.redundant and self.w.kind is DOUBLE

    def settle(self, proximal: ir.Function, margins: Value, x: Value, grips: Value) -> None:
        """The forces of redundant contacts: G again, whose factor is of no use, and what forces must cancel."""
        w, b = self.w, self.b
        rhs = w.vector(b, x, self.rows)
        with w.loop(b, I64(0), grips) as t:
            self.cancel(t, rhs)
            with w.loop(b, I64(0), b.add(t, I64(1))) as s:
                self.block(t, s)
            self.damp(t)
        b.call(proximal, [self.G, margins, rhs, x, w.vector(b, rhs, self.rows), self.rows])

    # Rows going up

    def emit_climb(self, number: int) -> ir.Function:
        """(data, D, E, p, from, to): three forces p pass the dofs of some entries, which keep what they feel."""
        w, loop = self.w, self.loop
        f = w.function(f"climb{number}", [PTR] * 4 + [I64, I64])
        data, D, E, p, start, end = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        with b.if_then(b.icmp_signed(">=", start, end)):
            b.ret_void()
        handed = [w.load(b, w.vector(b, p, I64(k))) for k in range(18)]

        def step(e: Value, h: list[Value]) -> list[Value]:
            dof = w.vector(b, D, b.mul(w.entry_field(b, data, e, 0), I64(w.ND)))
            load = self.loader(b, dof, h)
            (found,) = w.values(b, [*loop.felt, *loop.handed, loop.dinv], load)
            felt, passed, dinv = found[:3], found[3:21], found[21]
            row = w.vector(b, E, b.mul(e, I64(w.NE)))
            for key, y in zip(loop.Y, [*felt, *(b.fmul(y, dinv) for y in felt)], strict=True):
                w.store(b, y, w.vector(b, row, I64(w.offset[key])))
            return passed

        for k, x in enumerate(w.carrying(b, start, end, handed, step)):
            w.store(b, x, w.vector(b, p, I64(k)))
        b.ret_void()
        return f

    def loader(self, b: ir.IRBuilder, dof: Value, handed: Sequence[Value] = ()) -> Callable[[Ref], Value]:
        """A loader of a dof's numbers, and of the forces handed to it."""
        w = self.w
        names = {key: k for k, key in enumerate(self.handed_keys())}

        def load(ref: Ref) -> Value:
            assert ref.key is not None
            if ref.space == "H":
                return handed[names[ref.key]]
            return w.load(b, w.vector(b, dof, I64(w.offset[ref.key])))

        return load

    def handed_keys(self) -> list[Key]:
        """The keys of "H", in the order of `first` and `handed`."""
        fields = [(part, x) for part in ("ang", "lin") for x in "xyz"]
        return [Key("J", 0, (str(k), *path)) for k in range(3) for path in fields]

    def bounds(self, t: Value) -> list[Value]:
        """Where the grip's entries begin that move its first body, its second, both; and where they end."""
        w, b = self.w, self.b
        return [w.integer(b, w.slot(b, self.data, "climbs"), b.add(b.mul(t, I64(4)), I64(k))) for k in range(4)]

    def climb(self, climb: ir.Function, t: Value) -> None:
        """The grip's three rows go up the tree."""
        w, b, bounds = self.w, self.b, self.bounds(t)
        env = w.grip_environment(b, self.memory, t)

        def run(values: Sequence[Expr], k: int) -> None:
            (found,) = w.values(b, list(values), lambda ref: w.fetch(b, env, ref))
            for i, y in enumerate(found):
                w.store(b, y, w.vector(b, self.p, I64(i)))
            b.call(climb, [self.data, self.D, self.E, self.p, bounds[k], bounds[k + 1]])

        run(self.loop.first, 0)
        if self.loop.second:
            for i in range(18):
                w.store(b, w.load(b, w.vector(b, self.p, I64(i))), w.vector(b, self.saved, I64(i)))
            run(self.loop.second, 1)
            for i in range(18):
                at = w.vector(b, self.p, I64(i))
                w.store(b, b.fadd(w.load(b, at), w.load(b, w.vector(b, self.saved, I64(i)))), at)
            b.call(climb, [self.data, self.D, self.E, self.p, bounds[2], bounds[3]])

    def cancel(self, t: Value, x: Value) -> None:
        """x gets the grip's accelerations, which its forces must cancel."""
        w, b, bounds = self.w, self.b, self.bounds(t)
        env = w.grip_environment(b, self.memory, t)
        (start,) = w.values(b, self.loop.drift, lambda ref: w.fetch(b, env, ref))

        def add(e: Value, total: list[Value]) -> list[Value]:
            left = self.left(e)
            return [w.plus_product(b, s, y, left) for s, y in zip(total, self.row(e, 0), strict=True)]

        for i, y in enumerate(w.carrying(b, bounds[0], bounds[3], start, add)):
            w.store(b, y, w.vector(b, x, b.add(b.mul(t, I64(3)), I64(i))))

    def left(self, e: Value) -> Value:
        w, b = self.w, self.b
        dof = w.vector(b, self.D, b.mul(w.entry_field(b, self.data, e, 0), I64(w.ND)))
        return w.values(b, [self.loop.rest], self.loader(b, dof))[0][0]

    def row(self, e: Value, part: int) -> list[Value]:
        """An entry's three numbers Y, or (part 1) the same times 1 / d."""
        w, b = self.w, self.b
        row = w.vector(b, self.E, b.mul(e, I64(w.NE)))
        return [w.load(b, w.vector(b, row, I64(w.offset[key]))) for key in self.loop.Y[3 * part : 3 * part + 3]]

    # The system

    def block(self, t: Value, s: Value) -> None:
        """G[t, s], three by three: the sum over the dofs that move both grips."""
        w, b = self.w, self.b
        pair = b.add(b.sdiv(b.mul(t, b.add(t, I64(1))), I64(2)), s)
        meets, meeting = w.slot(b, self.data, "meets"), w.slot(b, self.data, "meeting")
        start, end = (w.integer(b, meets, b.add(pair, I64(k))) for k in range(2))

        def add(m: Value, total: list[Value]) -> list[Value]:
            mine, theirs = (w.integer(b, meeting, b.add(b.mul(m, I64(2)), I64(k))) for k in range(2))
            y, z = self.row(mine, 0), self.row(theirs, 1)
            return [w.plus_product(b, total[3 * i + j], y[i], z[j]) for i in range(3) for j in range(3)]

        def put(values: Sequence[Value]) -> None:
            for k, x in enumerate(values):
                i, j = b.add(b.mul(t, I64(3)), I64(k // 3)), b.add(b.mul(s, I64(3)), I64(k % 3))
                w.store(b, x, entry(w, b, self.G, self.rows, i, j))

        zeros = [w.const(0.0)] * 9
        with b.if_else(b.icmp_signed("<", start, end)) as (some, none):
            with some:
                put(w.carrying(b, start, end, zeros, add))
            with none:
                put(zeros)

    def damp(self, t: Value) -> None:
        """Add mu to the diagonal."""
        w, b = self.w, self.b
        at = w.number(b, w.slot(b, self.data, "grip_values"), b.add(b.mul(t, I64(w.width)), I64(MU)))
        mu = w.splat(b, w.load_number(b, at))
        for i in range(3):
            row = b.add(b.mul(t, I64(3)), I64(i))
            at = entry(w, b, self.G, self.rows, row, row)
            w.store(b, b.fadd(w.load(b, at), mu), at)

    def spread(self, grips: Value, x: Value) -> None:
        """Store the forces, and add D^-1 Y lambda to what is left at the dofs."""
        w, b, loop = self.w, self.b, self.loop
        held = I64(w.offset[loop.held])
        with w.loop(b, I64(0), w.slot(b, self.data, "nv")) as k:
            dof = w.vector(b, self.D, b.mul(k, I64(w.ND)))
            w.store(b, w.values(b, [loop.rest], self.loader(b, dof))[0][0], w.vector(b, dof, held))
        with w.loop(b, I64(0), grips) as t:
            forces = []
            for i, key in enumerate(loop.forces):
                forces.append(b.fneg(w.load(b, w.vector(b, x, b.add(b.mul(t, I64(3)), I64(i))))))
                at = b.add(b.mul(t, I64(w.NT)), I64(w.offset[key]))
                w.store(b, forces[-1], w.vector(b, self.T, at))
            climbs = w.slot(b, self.data, "climbs")
            start, end = (w.integer(b, climbs, b.add(b.mul(t, I64(4)), I64(k))) for k in (0, 3))
            with w.loop(b, start, end) as e:
                dof = w.entry_field(b, self.data, e, 0)
                at = w.vector(b, self.D, b.add(b.mul(dof, I64(w.ND)), held))
                total = w.load(b, at)
                for z, force in zip(self.row(e, 1), forces, strict=True):
                    total = w.plus_product(b, total, z, force)
                w.store(b, total, at)
