"""How many arithmetic instructions one sample takes, counted in the traced code.

One rule counts everything: a sum is a chain of fused multiply-adds, in which a product that only this sum uses shares
an instruction with an addition. The count is the work that must be done: entries that exist, not the idle lanes at the
end of a group of columns. Loops over bodies add terms in the order written, which can take more instructions than the
best chain, which is counted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..algorithms.quantities import QUANTITIES
from ..jit.graph import Expr, Graph
from ..jit.schedule import Schedule
from ..model.tree import Node, Tree
from ..treejit.compiler import TreeCompiler
from ..treejit.program import Blocks, Pairs, Program, Responses, Store, Sum, Torques, Triples, Variant, Walk
from ..treejit.rolled import trace_rolled
from ..treejit.tables import variants


def instructions(graph: Graph, roots: Iterable[int]) -> int:
    """Arithmetic instructions of the operations `roots` and everything they depend on."""
    return Schedule(graph, roots).instructions


def quantity_instructions(tree: Tree, quantity: str) -> int:
    """Arithmetic instructions per sample and lane of the code that the robot gets by default for a quantity."""
    compiler, record = TreeCompiler(tree), QUANTITIES[quantity]
    if compiler.chooser.choice(record).unrolls:
        return compiler.traced(record, [i.name for i in record.inputs]).instructions
    program = trace_rolled(record, variants(tree), False)
    count = _ProgramCounter(program)
    total = 0
    for loop in program.loops:
        if isinstance(loop, Walk):
            total += sum(count.walk(loop, _variant(node)) for node in tree.nodes)
        elif isinstance(loop, Pairs):
            total += _pairs(tree, loop, count)
        elif isinstance(loop, Triples):
            total += _triples(tree, loop, count)
        elif isinstance(loop, Sum):
            total += tree.nv**2 * (2 if loop.transposed else 1)
        elif isinstance(loop, Responses):
            total += _responses(tree, loop, count)
        elif isinstance(loop, Blocks):
            entries = sum((n.v.stop - n.v.start) * (tree.ends[n.index] - n.index) for n in tree.nodes)
            total += loop.width * entries * count.values(loop.values)
        elif isinstance(loop, Torques):
            total += _torques(tree, loop, count)
    return total


class _ProgramCounter:
    """Counts the pieces of one program's graph; a walk is counted once per joint variant."""

    def __init__(self, program: Program) -> None:
        self.graph, self.wanted = program.graph, program.wanted()
        self._walks: dict[tuple[int, Variant], int] = {}

    def values(self, values: Iterable[Expr]) -> int:
        return instructions(self.graph, [x.index for x in values])

    def stores(self, stores: list[Store]) -> int:
        return self.values(s.value for s in stores)

    def walk(self, loop: Walk, variant: Variant) -> int:
        key = id(loop), variant
        if key not in self._walks:
            live = [s for s in loop.stores[variant] if s.ref.key in self.wanted]
            self._walks[key] = self.stores(live) + sum(s.add for s in live)
        return self._walks[key]


def _pairs(tree: Tree, loop: Pairs, count: _ProgramCounter) -> int:
    """Instructions of all entries whose two dofs lie on one path to the root."""
    within = across = 0
    for node in tree.nodes:
        subtree = tree.subtree(node)
        within += (node.v.stop - node.v.start) * (subtree.stop - subtree.start)
        across += (node.v.stop - node.v.start) * (subtree.stop - node.v.stop)
    extra = sum(1 for x in loop.extra if x.value != 0)
    return within * count.values(loop.within) + across * count.values(loop.across) + tree.nv * extra


def _responses(tree: Tree, loop: Responses, count: _ProgramCounter) -> int:
    """Instructions of all columns: up from their joint to the root, then out over the whole tree of that root."""
    nodes = tree.nodes
    up, along, at = (
        [count.stores(part[_variant(node)]) for node in nodes] for part in (loop.up, loop.along, loop.mixed)
    )
    still, inside = (
        [0 if node.is_root else count.stores(part[_variant(node)]) for node in nodes]
        for part in (loop.still, loop.inside)
    )
    start = count.values([*loop.handed.values(), *(x for xs in loop.own.values() for x in xs)])
    root: list[int] = []
    path: list[int] = []  # up from a joint and back to it, beyond what bodies off the path take
    for node in nodes:
        p = node.parent
        root.append(node.index if node.is_root else root[p])
        path.append(0 if node.is_root else path[p] + up[p] + along[p] - still[p])
    total = 0
    for J in nodes:
        j, end = J.index, tree.ends[J.index]
        outside = sum(still[root[j] : tree.ends[root[j]]]) - sum(still[j:end])
        total += (J.v.stop - J.v.start) * (start + path[j] + outside + at[j] + sum(inside[j + 1 : end]))
    return total


def _triples(tree: Tree, loop: Triples, count: _ProgramCounter) -> int:
    """Instructions of all entries whose three dofs lie on one path to the root, and of the dofs' terms for each torque.

    Within one joint of several dofs, entries count as those within a path.
    """
    n, total = tree.nv, 0
    below = np.zeros((n, n), bool)  # [k, j]: j is strictly below k's joint
    for node in tree.nodes:
        below[node.v, node.v.stop : tree.subtree(node).stop] = True
    own = np.zeros((n, n), bool)
    for node in tree.nodes:
        own[node.v, node.v] = True
    kin = below | below.T | own
    total += int(below.sum()) * count.values(loop.below) + int((kin & ~below).sum()) * count.values(loop.above)
    for pairs, of in ((below.T | own, loop.within), (below, loop.across)):
        triples = int(np.einsum("ij,ki,kj->", pairs.astype(int), kin.astype(int), kin.astype(int)))
        total += triples * count.values(of)
    return total


def _torques(tree: Tree, loop: Torques, count: _ProgramCounter) -> int:
    """Instructions of all rows: up from their joint to the root, and out over the rest of that root's tree.

    Without other matrices than the symmetric one, only bodies beyond the joint are visited.
    """
    nodes = tree.nodes
    up, above, turn = (
        [count.stores(part[_variant(node)]) for node in nodes] for part in (loop.up, loop.above, loop.turn)
    )
    out = [0 if node.is_root else count.stores(loop.out[_variant(node)]) for node in nodes]
    start = count.values([*loop.handed.values(), *loop.state.values(), *loop.own])
    children = [0] * len(nodes)
    for node in nodes:
        if not node.is_root:
            children[node.parent] += 1
    total = 0
    for K in nodes:
        path = [node.index for node in tree.path(K.index)]
        first = path[0] if len(loop.matrices) > 1 else K.index
        beside = sum(out[i] for i in range(first, tree.ends[path[0]]) if i not in path)
        way = above[K.index] + sum(up[i] + above[i] + turn[i] * (children[i] > 1) for i in path[:-1])
        total += (K.v.stop - K.v.start) * (start + way + beside)
    return total


def _variant(node: Node) -> Variant:
    return Variant(node.kind.name, node.is_root, node.kind.nq, node.kind.nv)
