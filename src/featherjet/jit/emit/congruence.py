"""LLVM that adds G^T g and G^T C G to gradients and Hessians, sample after sample; sizes are known.

G has blocks from several arrays, and columns of states x, then of controls u. Samples whose g and C are zero are left.
"""

from __future__ import annotations

from typing import NamedTuple

import llvmlite.ir as ir

from .lanes import I64, PTR, VOID, Value, external
from .panels import Matrix, Panels
from .platform import Platform

COUNTS = ("samples", "work")


class Block(NamedTuple):
    """Where an array is within G; stride: numbers from one of its rows to the next."""

    row: int
    column: int
    rows: int
    columns: int
    stride: int


class Congruence(NamedTuple):
    """rows: of G; x, u: its columns of states and controls; stride: numbers from one row of Lxx to the next."""

    rows: int
    x: int
    u: int
    stride: int
    blocks: tuple[Block, ...]

    @property
    def arrays(self) -> tuple[str, ...]:
        """The arrays of a job; each has two words, its address and the numbers from one sample to the next."""
        names = "C", "g", "Lx", "Lxx", *(("Lu", "Lxu", "Luu") if self.u else ())
        return *names, *(f"G{k}" for k in range(len(self.blocks)))

    @property
    def words(self) -> int:
        """How many words of eight bytes a job has: the counts, then those of the arrays."""
        return len(COUNTS) + 2 * len(self.arrays)

    @property
    def work(self) -> int:
        """The numbers of G and C G; entries of G outside its blocks must be zero, and stay so."""
        return 2 * self.rows * (self.x + self.u)


def emit_congruence(size: Congruence, lanes: int, platform: Platform) -> ir.Module:
    """A module whose `entry` does a job."""
    module = platform.module("congruence")
    w = Panels(module, lanes)
    m, x, u, n = size.rows, size.x, size.u, size.x + size.u
    times = w.emit_product("times", (m, n, m), (m, n, n, n), fresh=True)
    onto = {
        "Lx": w.emit_product("onto_x", (1, x, m), (1, n, x, x)),
        "Lxx": w.emit_product("onto_xx", (x, x, m), (n, n, size.stride, size.stride)),
    }
    if u:
        onto["Lu"] = w.emit_product("onto_u", (1, u, m), (1, n, u, u))
        onto["Lxu"] = w.emit_product("onto_xu", (x, u, m), (n, n, u, u))
        onto["Luu"] = w.emit_product("onto_uu", (u, u, m), (n, n, u, u))
    f = ir.Function(module, ir.FunctionType(VOID, [PTR]), "entry")
    f.attributes.add("nounwind")
    b = ir.IRBuilder(f.append_basic_block("entry"))
    word = [b.load(b.gep(f.args[0], [I64(k)], source_etype=I64), typ=I64) for k in range(size.words)]
    G = b.inttoptr(word[1], PTR)
    CG, Gu, CGu = (w.number(b, G, I64(k)) for k in (m * n, x, m * n + x))
    with w.loop(b, I64(0), word[0]) as s:
        pairs = zip(size.arrays, word[2::2], word[3::2], strict=True)
        at = {name: w.number(b, b.inttoptr(base, PTR), b.mul(s, step)) for name, base, step in pairs}
        with b.if_then(is_set(w, b, ((at["C"], m * m), (at["g"], m)))):
            for k, block in enumerate(size.blocks):
                copy_block(w, b, block, at[f"G{k}"], Matrix(G, n))
            b.call(times, [at["C"], G, CG, CG])
            left = {"Lx": at["g"], "Lu": at["g"], "Lxx": G, "Lxu": G, "Luu": Gu}
            right = {"Lx": G, "Lu": Gu, "Lxx": CG, "Lxu": CGu, "Luu": CGu}
            for name, product in onto.items():
                b.call(product, [left[name], right[name], at[name], at[name]])
    b.ret_void()
    return module


def is_set(w: Panels, b: ir.IRBuilder, arrays: tuple[tuple[Value, int], ...]) -> Value:
    """Whether any number of some arrays is not zero."""
    bits: Value = I64(0)
    for base, count in arrays:

        def step(i: Value, known: list[Value], base: Value = base) -> list[Value]:
            return [b.or_(known[0], b.load(w.number(b, base, i), typ=I64, align=8))]

        (bits,) = w.sums(b, I64(0), I64(count), [bits], step)
    return b.icmp_signed("!=", b.shl(bits, I64(1)), I64(0))  # without the sign


def copy_block(w: Panels, b: ir.IRBuilder, block: Block, source: Value, G: Matrix) -> None:
    move = external(w.module, "llvm.memcpy.p0.p0.i64", VOID, PTR, PTR, I64, ir.IntType(1))
    with w.loop(b, I64(0), I64(block.rows)) as i:
        to = w.at(b, G, b.add(i, I64(block.row)), block.column)
        b.call(move, [to, w.at(b, Matrix(source, block.stride), i, 0), I64(8 * block.columns), ir.IntType(1)(0)])
