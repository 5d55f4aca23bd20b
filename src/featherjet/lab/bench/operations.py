"""How many arithmetic instructions one sample takes, counted in the traced program.

A multiplication whose result only goes into one addition is fused with it and counts once, as it does in a core. What
is counted is the work that has to be done: entries that exist, not the idle lanes at the end of a group of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...jit import straight as unrolled
from ...jit.graph import Expr, Graph
from ...jit.schedule import SINCOS, Schedule
from ...model.tree import Node, Tree
from ...treejit.kernels import KERNELS, unrolls
from ...treejit.program import Pairs, Program, Responses, Store, Variant, Walk
from ...treejit.rolled import trace_kernel
from ...treejit.tables import variants


def operations(tree: Tree, quantity: str) -> int:
    """Arithmetic instructions of one sample, in one lane, of the code that the robot gets by default."""
    if unrolls(quantity, tree):
        program = unrolled.trace_kernel(tree, KERNELS[quantity], False)
        return Schedule(program.graph, program.roots).instructions
    rolled = trace_kernel(KERNELS[quantity], variants(tree), False)
    count = _Counted(rolled)
    total = 0
    for loop in rolled.loops:
        if isinstance(loop, Walk):
            total += sum(count.walk(loop, _variant(node)) for node in tree.nodes)
        elif isinstance(loop, Pairs):
            total += pairs(tree, loop, count)
        else:
            total += responses(tree, loop, count)
    return total


def pairs(tree: Tree, loop: Pairs, count: _Counted) -> int:
    """All entries whose dofs are on a common way to the root."""
    within = across = 0
    for node in tree.nodes:
        subtree = tree.subtree(node)
        within += (node.v.stop - node.v.start) * (subtree.stop - subtree.start)
        across += (node.v.stop - node.v.start) * (subtree.stop - node.v.stop)
    extra = sum(1 for x in loop.extra if x.value != 0)
    return within * count.values(loop.within) + across * count.values(loop.across) + tree.nv * extra


def responses(tree: Tree, loop: Responses, count: _Counted) -> int:
    """All columns: up from their joints, and out over the tree they are in."""
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
    way: list[int] = []  # up from a joint and back to it, beyond what bodies off the way do
    for node in nodes:
        p = node.parent
        root.append(node.index if node.is_root else root[p])
        way.append(0 if node.is_root else way[p] + up[p] + along[p] - still[p])
    total = 0
    for J in nodes:
        j, end = J.index, tree.ends[J.index]
        outside = sum(still[root[j] : tree.ends[root[j]]]) - sum(still[j:end])
        total += (J.v.stop - J.v.start) * (start + way[j] + outside + at[j] + sum(inside[j + 1 : end]))
    return total


class _Counted:
    """Counts of pieces of one program's graph, each made once."""

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


def instructions(graph: Graph, roots: Iterable[int]) -> int:
    """Arithmetic instructions that the roots need, multiplications fused into additions where they can be."""
    roots = list(roots)
    order = graph.reachable(roots)
    uses: Counter[int] = Counter(roots)
    for i in order:
        uses.update(graph.ops[i].args)
    total = 0
    for i in order:
        op = graph.ops[i]
        if op.name in ("add", "sub"):
            fused = any(graph.ops[_bare(graph, a)].name == "mul" and uses[a] == 1 for a in op.args)
            total += 1 - fused  # the multiplication is counted where it stands
        elif op.name in ("mul", "div", "sqrt"):
            total += 1
        elif op.name == "sin":
            total += SINCOS
    return total


def _bare(graph: Graph, i: int) -> int:
    """What is negated, if something is: signs are free."""
    return graph.ops[i].args[0] if graph.ops[i].name == "neg" else i


def _variant(node: Node) -> Variant:
    return Variant(node.kind.name, node.is_root, node.kind.nq, node.kind.nv)
