"""LLVM for the Riccati recursion of discrete optimal control, over a whole horizon and problem after problem.

From the last knot to the first; V, v: the value function's Hessian and gradient; f: the gap; r: the regularisation:

    Qxx = Lxx + Fx^T V Fx   Qux = Lxu^T + Fu^T V Fx   Quu = Luu + Fu^T V Fu + r   Qx = Lx + Fx^T v   Qu = Lu + Fu^T v
    U^T U = Quu,  Y = U^-T Qux,  y = U^-T Qu,  K = U^-1 Y,  k = U^-1 y
    V = Qxx - Y^T Y + r,  v = Qx - Y^T y + V f

Every product has the form C0 +- A^T B. [Quu Qux Qu] is one matrix, whose rows are eliminated to [U Y y]. Where controls
have limits, k solves a quadratic program with bounds (`box`), Y and K have only the rows of controls that are free, and
v = Qx - Qux^T k + V f.
"""

from __future__ import annotations

from collections.abc import Iterator

import llvmlite.ir as ir

from ..number import DOUBLE
from . import box
from .lanes import I64, PTR, VOID, Value, external
from .panels import Matrix, Panels, Piece
from .platform import Platform

# The first words of a job. gaps: whether there are any; kept: whether Vxx of all knots and problems is wanted, else its
# array has room for two knots, which all problems share.
COUNTS = ("problems", "knots", "gaps", "kept")
ONE, LAST = 0, 1  # knots beyond T: none, or the terminal one


def arrays(n: int, m: int, bounded: bool) -> dict[str, tuple[int, int]]:
    """The arrays of a job: numbers at a knot, and knots beyond T. They follow the counts as addresses.

    low, high: how far controls may change."""
    bounds = {"low": (m, ONE), "high": (m, ONE)} if bounded else {}
    return {
        "Fx": (n * n, ONE), "Fu": (n * m, ONE), "Lx": (n, LAST), "Lu": (m, ONE), "Lxx": (n * n, LAST),
        "Lxu": (n * m, ONE), "Luu": (m * m, ONE), "f": (n, LAST), "K": (m * n, ONE), "k": (m, ONE), "Vx": (n, LAST),
        "Vf": (n, LAST), "Vxx": (n * n, LAST), **bounds,
    }  # fmt: skip


# A number for each problem: slope = sum of Qu.k, bend = sum of k.Quu k; failed: one where a Quu is not positive.
SCALARS = ("regularisation", "slope", "bend", "failed")


def work(n: int, m: int, bounded: bool) -> dict[str, int]:
    """Temporary arrays of a knot, which follow each other in memory, and their sizes."""
    wide = m + n + 1
    own = {"W": n * n, "Wu": n * m, "Qxx": n * n, "Qx": n, "Qu": m, "Lux": max(m, 1) * n, "G": m * wide, "pivots": m}
    return {**own, **(box.work(m, wide) if bounded else {})}


def words(n: int, m: int, bounded: bool) -> tuple[str, ...]:
    """What a job consists of, eight bytes each."""
    return (*COUNTS, *arrays(n, m, bounded), *SCALARS, "work")


def emit_riccati(n: int, m: int, bounded: bool, lanes: int, platform: Platform) -> ir.Module:
    """A module whose `entry` does a job, for n tangent directions of states and m controls, which may have bounds."""
    module = platform.module("riccati")
    sweep = Sweep(module, lanes, n, m, bounded).emit()
    f = ir.Function(module, ir.FunctionType(VOID, [PTR]), "entry")
    f.attributes.add("nounwind")
    b = ir.IRBuilder(f.append_basic_block("entry"))
    word = {
        x: b.load(b.gep(f.args[0], [I64(k)], source_etype=I64), typ=I64) for k, x in enumerate(words(n, m, bounded))
    }
    w = Panels(module, lanes)
    with w.loop(b, I64(0), word["problems"]) as p:
        given = [word["knots"], word["gaps"], word["kept"]]
        for name, (size, beyond) in arrays(n, m, bounded).items():
            knots = b.add(word["knots"], I64(beyond))
            if name == "Vxx":
                knots = b.mul(knots, word["kept"])
            given.append(w.number(b, b.inttoptr(word[name], PTR), b.mul(p, b.mul(knots, I64(size)))))
        given += [w.number(b, b.inttoptr(word[name], PTR), p) for name in SCALARS]
        b.call(sweep, [*given, b.inttoptr(word["work"], PTR)])
    b.ret_void()
    return module


class Sweep(Panels):
    """The recursion for one problem."""

    def __init__(self, module: ir.Module, lanes: int, n: int, m: int, bounded: bool) -> None:
        super().__init__(module, lanes)
        self.n, self.m, self.wide, self.bounded = n, m, m + n + 1, bounded

    def emit(self) -> ir.Function:
        """(knots, gaps, kept, arrays, scalars, work)."""
        n, m, wide = self.n, self.m, self.wide
        names = arrays(n, m, self.bounded)
        f = self.function("sweep", [I64, I64, I64, *[PTR] * (len(names) + len(SCALARS) + 1)])
        T, gaps, kept = f.args[:3]
        given = dict(zip((*names, *SCALARS), f.args[3:-1], strict=True))
        b = ir.IRBuilder(f.append_basic_block("entry"))
        own, start = {}, 0
        for name, size in work(n, m, self.bounded).items():
            own[name] = self.number(b, f.args[-1], I64(start))
            start += size
        forward = self.emit_product("forward", (n, n, n), (n, n, n, n), fresh=True)
        forward_u = self.emit_product("forward_u", (n, m, n), (n, m, m, m), fresh=True)
        xx = self.emit_product("xx", (n, n, n), (n, n, n, n), upper=True)
        ux = self.emit_product("ux", (m, n, n), (m, n, n, wide))
        uu = self.emit_product("uu", (m, m, n), (m, m, m, wide))
        onto_x = self.emit_product("onto_x", (1, n, n), (1, n, n, n))
        moved = self.emit_product("moved", (1, n, n), (1, n, n, n), fresh=True)
        onto_u = self.emit_product("onto_u", (1, m, n), (1, m, m, m))
        less_xx = self.emit_product("less_xx", (n, n, m), (wide, wide, n, n), plus=False, upper=True)
        less_x = self.emit_product("less_x", (1, n, m), (wide, wide, n, n), plus=False)
        less_bounded = self.emit_product("less_bounded", (1, n, m), (1, wide, n, n), plus=False)
        eliminate, back = self.emit_eliminate(), self.emit_back()
        program = box.Box(self.module, self.L, m, wide).emit(eliminate, back) if self.bounded else None
        r = self.load_number(b, given["regularisation"])

        def at(name: str, t: Value) -> Value:
            if name == "Vxx":
                t = b.select(b.icmp_signed("!=", kept, I64(0)), t, b.and_(t, I64(1)))
            return self.number(b, given[name], b.mul(t, I64(names[name][0])))

        def value_shifted(t: Value, v: Value) -> None:
            """Vf[t] = Vxx[t] f[t], Vx[t] = v + Vf[t]."""
            with b.if_else(b.icmp_signed("!=", gaps, I64(0))) as (some, none):
                with some:
                    b.call(moved, [at("f", t), at("Vxx", t), v, at("Vf", t)])
                    self.add(b, v, at("Vf", t), at("Vx", t))
                with none:
                    self.copy(b, v, at("Vx", t), n)

        one, zero = ir.Constant(DOUBLE.type, 1.0), ir.Constant(DOUBLE.type, 0.0)
        self.copy(b, at("Lxx", T), at("Vxx", T), n * n)
        self.raise_diagonal(b, Matrix(at("Vxx", T), n), n, r)
        value_shifted(T, at("Lx", T))
        for name in ("slope", "bend", "failed"):
            b.store(zero, given[name], align=8)
        G, Y, y = own["G"], self.number(b, own["G"], I64(m)), self.number(b, own["G"], I64(m + n))
        with self.loop(b, b.sub(T, I64(1)), I64(0), -1) as t:
            later = b.add(t, I64(1))
            V, v, Fx, Fu = at("Vxx", later), at("Vx", later), at("Fx", t), at("Fu", t)
            b.call(forward, [V, Fx, own["W"], own["W"]])
            b.call(forward_u, [V, Fu, own["Wu"], own["Wu"]])
            b.call(xx, [Fx, own["W"], at("Lxx", t), own["Qxx"]])
            b.call(onto_x, [v, Fx, at("Lx", t), own["Qx"]])
            b.call(onto_u, [v, Fu, at("Lu", t), own["Qu"]])
            self.transpose(b, Matrix(at("Lxu", t), m), Matrix(own["Lux"], n), n, m)
            b.call(ux, [Fu, own["W"], own["Lux"], Y])
            b.call(uu, [Fu, own["Wu"], at("Luu", t), G])
            self.raise_diagonal(b, Matrix(G, wide), m, r)
            self.transpose(b, Matrix(own["Qu"], m), Matrix(y, wide), 1, m)
            K, k = at("K", t), at("k", t)
            if program is None:
                positive = b.call(eliminate, [G, own["pivots"]])
            else:
                self.copy(b, G, own["given"], m * wide)
                temporary = [own[x] for x in ("d", "next", "slope", "next_slope", "free")]
                bounds = [at("low", t), at("high", t)]
                positive = b.call(program, [own["given"], G, own["pivots"], *bounds, *temporary, K, k])
            with b.if_then(b.icmp_signed("==", positive, I64(0)), likely=False):
                b.store(one, given["failed"], align=8)
                b.ret_void()
            b.call(less_xx, [Y, Y, own["Qxx"], at("Vxx", t)])
            self.mirror(b, Matrix(at("Vxx", t), n), n)
            self.raise_diagonal(b, Matrix(at("Vxx", t), n), n, r)
            if program is None:
                b.call(back, [G, own["pivots"], K, k])
                b.call(less_x, [y, Y, own["Qx"], own["Lux"]])
                for total in ("slope", "bend"):
                    self.add_product(b, Matrix(y, wide), Matrix(y, wide), given[total])
            else:
                self.negate(b, own["d"], k)
                b.call(less_bounded, [k, self.number(b, own["given"], I64(m)), own["Qx"], own["Lux"]])
                self.add_product(b, Matrix(own["Qu"], 1), Matrix(k, 1), given["slope"])
                self.add_bend(b, own["slope"], own["Qu"], k, given["bend"])
            value_shifted(t, own["Lux"])
        b.ret_void()
        return f

    def emit_eliminate(self) -> ir.Function:
        """(G, pivots) -> whether all pivots are positive. G = [Quu Qux Qu] becomes [U Y y]; pivots: 1 / diagonal of U.

        Row i is G_i - sum_{k<i} U_ki G_k, divided by the root of its diagonal entry.
        """
        f = self.function("eliminate", [PTR, PTR], I64)
        G, pivots = Matrix(f.args[0], self.wide), f.args[1]
        b = ir.IRBuilder(f.append_basic_block("entry"))
        root = external(self.module, "llvm.sqrt.f64", DOUBLE.type, DOUBLE.type)
        groups = list(self.groups(self.wide, 8))
        with self.loop(b, I64(0), I64(self.m)) as i:
            for group in groups:

                def step(k: Value, totals: list[Value], group: list[Piece] = group, i: Value = i) -> Iterator[Value]:
                    u = self.entry(b, G, k, i)
                    for p, total in zip(group, totals, strict=True):
                        yield self.minus_product(b, total, self.spread(b, u, p), self.read(b, G, k, p))

                rows = self.sums(b, I64(0), i, [self.read(b, G, i, p) for p in group], step)
                for p, x in zip(group, rows, strict=True):
                    self.write(b, x, G, i, p)
            d = self.entry(b, G, i, i)
            with b.if_then(b.not_(b.fcmp_ordered(">", d, ir.Constant(DOUBLE.type, 0.0))), likely=False):
                b.ret(I64(0))
            pivot = b.fdiv(ir.Constant(DOUBLE.type, 1.0), b.call(root, [d]))
            b.store(pivot, self.number(b, pivots, i), align=8)
            for p in self.pieces(self.wide):
                self.write(b, self.scaled(b, self.read(b, G, i, p), self.spread(b, pivot, p)), G, i, p)
        b.ret(I64(1))
        return f

    def emit_back(self) -> ir.Function:
        """(G, pivots, K, k): K = U^-1 Y, k = U^-1 y, row i being (Y_i - sum_{j>i} U_ij K_j) / U_ii."""
        m, n = self.m, self.n
        f = self.function("back", [PTR] * 4)
        G, pivots = Matrix(f.args[0], self.wide), f.args[1]
        b = ir.IRBuilder(f.append_basic_block("entry"))
        parts = [(Matrix(f.args[2], n), m, group) for group in self.groups(n, 8)]
        parts.append((Matrix(f.args[3], 1), m + n, [Piece(0, 1)]))
        with self.loop(b, I64(m - 1), I64(0), -1) as i:
            pivot = self.load_number(b, self.number(b, pivots, i))
            for K, shift, group in parts:

                def step(
                    j: Value, totals: list[Value], K: Matrix = K, group: list[Piece] = group, i: Value = i
                ) -> Iterator[Value]:
                    u = self.entry(b, G, i, j)
                    for p, total in zip(group, totals, strict=True):
                        yield self.minus_product(b, total, self.spread(b, u, p), self.read(b, K, j, p))

                given = [self.read(b, G, i, Piece(shift + p.start, p.width)) for p in group]
                for p, x in zip(group, self.sums(b, b.add(i, I64(1)), I64(m), given, step), strict=True):
                    self.write(b, self.scaled(b, x, self.spread(b, pivot, p)), K, i, p)
        b.ret_void()
        return f

    # Small loops

    def copy(self, b: ir.IRBuilder, source: Value, to: Value, count: int) -> None:
        move = external(self.module, "llvm.memcpy.p0.p0.i64", VOID, PTR, PTR, I64, ir.IntType(1))
        b.call(move, [to, source, I64(8 * count), ir.IntType(1)(0)])

    def add(self, b: ir.IRBuilder, x: Value, y: Value, to: Value) -> None:
        """to = x + y, a number for each direction of states."""
        for p in self.pieces(self.n):
            vectors = [self.read(b, Matrix(z, 0), I64(0), p) for z in (x, y)]
            self.write(b, b.fadd(*vectors), Matrix(to, 0), I64(0), p)

    def raise_diagonal(self, b: ir.IRBuilder, x: Matrix, size: int, by: Value) -> None:
        with self.loop(b, I64(0), I64(size)) as i:
            b.store(b.fadd(self.entry(b, x, i, i), by), self.at(b, x, i, i), align=8)

    def transpose(self, b: ir.IRBuilder, x: Matrix, to: Matrix, rows: int, columns: int) -> None:
        with self.loop(b, I64(0), I64(columns)) as j, self.loop(b, I64(0), I64(rows)) as i:
            b.store(self.entry(b, x, i, j), self.at(b, to, j, i), align=8)

    def mirror(self, b: ir.IRBuilder, x: Matrix, size: int) -> None:
        """Copy the upper triangle into the lower one."""
        with self.loop(b, I64(1), I64(size)) as i, self.loop(b, I64(0), i) as j:
            b.store(self.entry(b, x, j, i), self.at(b, x, i, j), align=8)

    def add_product(self, b: ir.IRBuilder, x: Matrix, y: Matrix, total: Value) -> None:
        """total += x^T y of two columns with an entry for each control."""

        def step(i: Value, sums: list[Value]) -> list[Value]:
            return [self.plus_product(b, sums[0], self.entry(b, x, i, 0), self.entry(b, y, i, 0))]

        found = self.sums(b, I64(0), I64(self.m), [self.load_number(b, total)], step)
        b.store(found[0], total, align=8)

    def add_bend(self, b: ir.IRBuilder, slope: Value, Qu: Value, k: Value, total: Value) -> None:
        """total += k^T Quu k, where slope = Qu - Quu k."""

        def step(i: Value, sums: list[Value]) -> list[Value]:
            g, q, x = (self.load_number(b, self.number(b, y, i)) for y in (slope, Qu, k))
            return [self.plus_product(b, sums[0], x, b.fsub(q, g))]

        found = self.sums(b, I64(0), I64(self.m), [self.load_number(b, total)], step)
        b.store(found[0], total, align=8)

    def negate(self, b: ir.IRBuilder, x: Value, to: Value) -> None:
        with self.loop(b, I64(0), I64(self.m)) as i:
            b.store(b.fneg(self.load_number(b, self.number(b, x, i))), self.number(b, to, i), align=8)
