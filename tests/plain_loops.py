"""What the loops of a rolled program compute, as plain loops: the definition of the schedules in `treejit/emit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from featherjet.jit.graph import Expr
from featherjet.jit.loops.replay import replayed
from featherjet.jit.number import DOUBLE
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.model.tree import Tree
from featherjet.treejit.loops import INTEGERS, run
from featherjet.treejit.program import (
    Blocks,
    Key,
    Pairs,
    Program,
    Ref,
    Responses,
    Store,
    Sum,
    Torques,
    Triples,
    Variant,
    Walk,
)
from featherjet.treejit.results import COUNTS, write
from featherjet.treejit.tables import Tables, variants
from featherjet.treejit.tiles import ACROSS, DIAGONAL, OWN, UNRELATED, WITHIN, entry_codes
from featherjet.treejit.walks import MemoryLayout

Array = np.ndarray
Load = Callable[[Ref], Any]
COLUMN = ("col", "below", "here")  # roles of the dof that a response starts at


class PlainLoops:
    """Runs a program without contacts on arrays (samples, n), joint by joint, dof by dof, entry by entry."""

    def __init__(self, program: Program, tree: Tree, inputs: Mapping[str, Array]) -> None:
        self.program, self.tree, self.graph, self.samples = (
            program,
            tree,
            program.graph,
            len(next(iter(inputs.values()))),
        )
        self.t, self.layout = ArrayLoops((self.samples,)), MemoryLayout(program, ("J", "D"))
        self.arrays, self.codes = Tables(tree, 1, DOUBLE).arrays, entry_codes(tree)
        self.counts = {**dict.fromkeys(COUNTS, 0), "joints": len(tree.nodes), "nv": tree.nv}
        lengths = {"J": len(tree.nodes) * self.layout.NJ, "D": tree.nv * self.layout.ND + self.layout.counts["G"]}
        self.memory: dict[str, Any] = {k: LoopArray(np.zeros((n, self.samples)), 1) for k, n in lengths.items()}
        self.memory |= {name: LoopArray(self.arrays[name].ravel()) for name in ("table", "dofs", "param")}
        self.memory |= {name: LoopArray(x.T, 1) for name, x in inputs.items()}
        self.joint = [node.index for node in tree.nodes for _ in node.dofs]  # of each dof
        self.variants = [variants(tree)[k] for k in self.arrays["variant"]]
        self.matrices: dict[int, Array] = {}

    def results(self, axes: Sequence[Sequence[Any]], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """All results (samples, ...) with these axes and shapes."""
        for loop in self.program.loops:
            if isinstance(loop, Walk):
                tables = {x: self.arrays[x] for x in INTEGERS}
                run(self.t, self.layout, loop, self.memory, tables, self.counts)
            else:
                getattr(self, type(loop).__name__.lower())(loop)
        found = []
        for out, core, shape in zip(self.program.outputs, axes, shapes, strict=True):
            entries = self.matrices.get(out.matrix)
            if entries is None:
                entries = np.zeros((int(np.prod(shape)), self.samples))
                write(self.t, self.layout, out, core, LoopArray(entries, 1), self.memory, None, self.counts)
            found.append(np.moveaxis(entries.reshape(*shape, self.samples), -1, 0))
        return found

    # Numbers

    def values(self, of: Iterable[Expr], load: Load) -> list[Any]:
        roots = [x.index for x in of]
        found = dict(replayed(self.t, self.graph, roots, load))
        return [found[i] for i in roots]

    def stored(self, stores: Sequence[Store], load: Load) -> list[tuple[Ref, Any]]:
        return list(zip((s.ref for s in stores), self.values([s.value for s in stores], load), strict=True))

    def dof(self, j: int, key: Key) -> Any:
        """A number of a dof."""
        return self.memory["D"][j * self.layout.ND + self.layout.offset[key]]

    def new(self, numbers: Sequence[int], *axes: int) -> list[Array]:
        """Matrices of zeros by their numbers, which the loop fills."""
        self.matrices |= {m: np.zeros((*axes, self.samples)) for m in numbers}
        return [self.matrices[m] for m in numbers]

    # Pairs and triples of dofs

    def pairs(self, loop: Pairs) -> None:
        n = self.tree.nv
        found = self.new(loop.matrices, n, n)
        kinds = {WITHIN: loop.within, ACROSS: loop.across, OWN: loop.own, DIAGONAL: loop.own}
        for r, c in np.argwhere(self.codes != UNRELATED).tolist():
            at = {"row": r, "col": c}

            def load(ref: Ref, at: dict[str, int] = at) -> Any:
                return self.dof(at[ref.role], ref.key)  # type: ignore[arg-type]

            entries = self.values(kinds[self.codes[r, c]], load)
            extra = self.values(loop.extra, load) if r == c else [0.0] * len(entries)
            for matrix, x, y in zip(found, entries, extra, strict=True):
                matrix[r, c] = x + y

    def triples(self, loop: Triples) -> None:
        n = self.tree.nv
        found = self.new(loop.matrices, n, n, n)
        kinds = {WITHIN: loop.within, ACROSS: loop.across, OWN: loop.own, DIAGONAL: loop.own}
        for k in range(n):
            kin = np.flatnonzero(self.codes[k] != UNRELATED).tolist()
            records = {}
            for j in kin:
                of = loop.below if self.codes[k, j] == ACROSS else loop.above

                def of_slab(ref: Ref, k: int = k, j: int = j) -> Any:
                    return self.dof(k if ref.role == "slab" else j, ref.key)  # type: ignore[arg-type]

                records |= {(j, key): x for key, x in zip(loop.keys, self.values(of, of_slab), strict=True)}
            for r, c in ((r, c) for r in kin for c in kin if self.codes[r, c] != UNRELATED):
                at = {"row": r, "col": c}

                def load(ref: Ref, at: dict[str, int] = at, records: dict = records) -> Any:
                    j = at[ref.role]
                    return records[j, ref.key] if ref.space == "R" else self.dof(j, ref.key)  # type: ignore[arg-type]

                for tensor, x in zip(found, self.values(kinds[self.codes[r, c]], load), strict=True):
                    tensor[k, r, c] = x

    def sum(self, loop: Sum) -> None:
        target, addend = self.matrices[loop.target], self.matrices[loop.addend]
        target += addend + (np.swapaxes(addend, 0, 1) if loop.transposed else 0.0)

    # Dofs and bodies

    def blocks(self, loop: Blocks) -> None:
        (found,) = self.new([loop.matrix], self.tree.nv, len(self.tree.nodes) * loop.width)
        for j, i in enumerate(self.joint):
            for column in range(i * loop.width, self.tree.ends[i] * loop.width):
                body, c = divmod(column, loop.width)

                def load(ref: Ref, j: int = j, body: int = body, c: int = c) -> Any:
                    if ref.role == "row":
                        return self.dof(j, ref.key)  # type: ignore[arg-type]
                    key = loop.keys[c][loop.keys[0].index(ref.key)]  # type: ignore[arg-type]
                    return self.memory["J"][body * self.layout.NJ + self.layout.offset[key]]

                (found[j, column],) = self.values([loop.entry], load)

    def responses(self, loop: Responses) -> None:
        n = self.tree.nv
        found = self.new(loop.matrices, n, n)
        for j, J in enumerate(self.joint):
            handed = self.started(loop.handed, j)
            left = {}
            for path, xs in loop.own.items():
                of_dofs = self.values(xs[: self.variants[J].nv], self.of_dof(j))
                left |= {(self.first(J) + k, Key("J", 0, path)): x for k, x in enumerate(of_dofs)}
            for i in self.above(J):
                new = dict(handed)
                for ref, x in self.stored(loop.up[self.variants[i]], self.loader(i, j, handed, left)):
                    if ref.space == "H":
                        new[ref.key] = x
                    else:
                        left[self.first(i) + ref.k, ref.key] = x
                handed = new
            states: dict[int, dict] = {}
            for i in self.kin(J):
                v, states[i] = self.variants[i], {}
                state = states.get(self.tree.nodes[i].parent, {})
                rule = self.way_out(loop, i, J)[v]
                for ref, x in self.stored(rule, self.loader(i, j, state, left)):
                    if ref.space == "A":
                        states[i][ref.key] = x
                    else:
                        found[int(ref.key.path[0])][self.first(i) + ref.k, j] = x  # type: ignore[union-attr]

    def way_out(self, loop: Responses, i: int, J: int) -> dict[Variant, list[Store]]:
        """What body i does outward for a column of joint J."""
        if i == J:
            return loop.mixed
        if J < i < self.tree.ends[J]:
            return loop.inside
        return loop.along if i in self.above(J) or self.tree.nodes[i].is_root else loop.still

    def torques(self, loop: Torques) -> None:
        n = self.tree.nv
        found = self.new(loop.matrices, n, n)
        for j, K in enumerate(self.joint):
            handed, states = self.started(loop.handed, j), {K: self.started(loop.state, j)}

            def enter(i: int, entries: Iterable[tuple[Ref, Any]], j: int = j) -> None:
                for ref, x in entries:
                    found[int(ref.key.path[0])][j, self.first(i) + ref.k] = x  # type: ignore[union-attr]

            enter(K, self.stored(loop.above[self.variants[K]], self.loader(K, j, handed)))
            for k, x in enumerate(self.values(loop.own[: self.variants[K].nv], self.of_dof(j))):
                found[0][j, self.first(K) + k] = x
            for i in self.above(K):
                v = self.variants[i]
                states[i] = {ref.key: x for ref, x in self.stored(loop.turn[v], self.loader(i, j, handed))}
                handed = {ref.key: x for ref, x in self.stored(loop.up[v], self.loader(i, j, handed))}
                enter(i, self.stored(loop.above[v], self.loader(i, j, handed)))
            for i in (i for i in self.kin(K) if i not in states):
                state = states[self.tree.nodes[i].parent]
                stored = self.stored(loop.out[self.variants[i]], self.loader(i, j, state))
                states[i] = {ref.key: x for ref, x in stored if ref.space == "A"}
                enter(i, [(ref, x) for ref, x in stored if ref.space == "E"])
        below = np.tril_indices(n, -1)  # of the first matrix, which is symmetric, only the rest is computed
        found[0][below] = found[0][below[::-1]]

    def started(self, values: Mapping[tuple, Expr], j: int) -> dict[Key | None, Any]:
        """What a column or row of dof j starts with."""
        found = self.values(values.values(), self.of_dof(j))
        return {Key("J", 0, path): x for path, x in zip(values, found, strict=True)}

    def of_dof(self, j: int) -> Load:
        return lambda ref: self.dof(j, ref.key)  # type: ignore[arg-type]

    def loader(self, i: int, j: int, carried: Mapping, left: Mapping | None = None) -> Load:
        """Loads at body i for the column of dof j: what is carried to it and left at its dofs, and their numbers."""

        def load(ref: Ref) -> Any:
            if ref.space in ("A", "H"):
                return carried[ref.key]
            if ref.space == "L":
                assert left is not None
                return left[self.first(i) + ref.k, ref.key]
            return self.dof(j if ref.role in COLUMN else self.first(i) + ref.k, ref.key)  # type: ignore[arg-type]

        return load

    def first(self, i: int) -> int:
        return self.tree.nodes[i].v.start

    def above(self, i: int) -> list[int]:
        """The bodies above a joint, nearest first."""
        return [k for k in range(i - 1, -1, -1) if i < self.tree.ends[k]]

    def kin(self, i: int) -> range:
        """The bodies of a joint's tree."""
        root = (self.above(i) or [i])[-1]
        return range(root, self.tree.ends[root])
