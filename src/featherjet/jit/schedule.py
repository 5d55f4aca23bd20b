"""Cuts a large graph into pieces of a few hundred instructions; sums become chains of fused multiply-adds.

LLVM is very slow on functions of many thousand operations. Values that a later piece needs go through memory slots. A
slot is free again after its last use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .graph import Graph

PIECE = 300  # instructions
SINCOS = 35  # instructions of a vector sine and cosine together
SUMS = ("add", "sub", "neg")


@dataclass
class Piece:
    """Operations in order, and the slots of the values it exchanges with other pieces."""

    ops: list[int] = field(default_factory=list)
    loads: dict[int, int] = field(default_factory=dict)  # operation -> slot it is read from
    stores: dict[int, int] = field(default_factory=dict)  # operation -> slot it is written to


class Schedule:
    """The operations that some roots need; a sum computes its `inlined` operands, which nothing else uses."""

    def __init__(self, graph: Graph, roots: Iterable[int], piece: int = PIECE) -> None:
        self.graph = graph
        roots = list(roots)
        order = graph.reachable(roots)
        uses = dict.fromkeys(order, 0)
        consumer: dict[int, int] = {}
        for i in order:
            for a in graph.ops[i].args:
                uses[a] += 1
                consumer[a] = i
        for r in roots:
            uses[r] += 2
        self.inlined = {
            i
            for i in order
            if uses[i] == 1 and graph.ops[i].name in (*SUMS, "mul") and graph.ops[consumer[i]].name in SUMS
        }
        made = [i for i in order if i not in self.inlined and graph.ops[i].name not in ("const", "load")]
        self._terms = {i: self._terms_of(i) for i in made if graph.ops[i].name in SUMS}
        self.pieces = self._cut(made, piece)
        self.slots = self._assign()

    def terms(self, i: int) -> list[tuple[bool, int]]:
        """A sum's terms as (is it subtracted, operation); another operation is its own term."""
        return self._terms.get(i) or [(False, i)]

    def _terms_of(self, i: int) -> list[tuple[bool, int]]:
        found: list[tuple[bool, int]] = []
        stack = [(False, i)]
        while stack:
            minus, k = stack.pop()
            op = self.graph.ops[k]
            if (k == i or k in self.inlined) and op.name in SUMS:
                first, *second = op.args
                stack += [(minus ^ (op.name == "sub"), a) for a in second]
                stack.append((minus ^ (op.name == "neg"), first))
            else:
                found.append((minus, k))
        return found

    def chain(self, i: int) -> tuple[tuple[bool, int], list[tuple[bool, int]], bool]:
        """A sum's terms in the order to add them: the first, the rest, and whether to negate the total.

        Single values come first, then products, which fuse with their additions. The first is never subtracted.
        """
        terms = self.terms(i)
        flip = all(minus for minus, _ in terms)
        ordered = sorted(terms, key=lambda t: (t[1] in self.inlined, t[0]))
        first = next(t for t in ordered if t[0] == flip)
        ordered.remove(first)
        return first, [(minus ^ flip, k) for minus, k in ordered], flip

    def operands(self, i: int) -> list[int]:
        """The operands of an operation, including those of its inlined terms."""
        op = self.graph.ops[i]
        if op.name not in SUMS:
            return list(op.args)
        found: list[int] = []
        for _, k in self.terms(i):
            found += self.graph.ops[k].args if k in self.inlined else (k,)
        return found

    @property
    def instructions(self) -> int:
        """Arithmetic instructions; a product that only one sum uses fuses with its addition: one instruction."""
        total = 0
        for i in (i for piece in self.pieces for i in piece.ops):
            name = self.graph.ops[i].name
            if name in SUMS:
                terms = self.terms(i)
                total += len(terms) - any(k not in self.inlined for _, k in terms)
            else:
                total += SINCOS // 2 if name in ("sin", "cos") else 1
        return total

    def _cut(self, made: list[int], size: int) -> list[Piece]:
        pieces, weight = [Piece()], 0
        for i in made:
            if weight >= size:
                pieces.append(Piece())
                weight = 0
            pieces[-1].ops.append(i)
            weight += max(1, len(self.terms(i)) if self.graph.ops[i].name in ("add", "sub") else 1)
        return pieces

    def _assign(self) -> int:
        """Assign a slot to each value that a later piece needs; returns the number of slots."""
        where: dict[int, int] = {}
        last: dict[int, int] = {}
        for p, piece in enumerate(self.pieces):
            where.update(dict.fromkeys(piece.ops, p))
            for i in piece.ops:
                for a in self.operands(i):
                    last[a] = p
        dying: dict[int, list[int]] = {}
        for i, p in last.items():
            if i in where and p > where[i]:
                dying.setdefault(p, []).append(i)
        slot: dict[int, int] = {}
        free: list[int] = []
        count = 0
        for p, piece in enumerate(self.pieces):
            for i in piece.ops:
                for a in self.operands(i):
                    if a in slot and where[a] < p:
                        piece.loads[a] = slot[a]
            for i in piece.ops:
                if last.get(i, p) > p:
                    if not free:
                        free.append(count)
                        count += 1
                    slot[i] = piece.stores[i] = free.pop()
            free += [slot[i] for i in dying.get(p, ())]
        return count
