"""The ways an algorithm walks a tree: outward, inward, over pairs and triples of dofs, by responses, and by torques.

An algorithm passes small step functions on spatial quantities to these walks; it never loops over bodies itself. `Scan`
runs the steps one body after the other in Python, on whatever scalars it is given.
Vectors and matrices over degrees of freedom are arrays with those axes leading and the lanes (samples) trailing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from ..model.tree import Tree

Array = np.ndarray
Entries = Mapping[tuple[int, int], tuple]  # by row and column: one entry for each of some matrices
T = TypeVar("T")
A = TypeVar("A")


class Scan:
    """Walks over a tree on scalars that are arrays of shape `lanes` and type `dtype`."""

    def __init__(self, tree: Tree, lanes: tuple[int, ...] = (), dtype: Any = float) -> None:
        self.tree, self.lanes, self.dtype = tree, lanes, dtype

    @property
    def nv(self) -> int:
        return self.tree.nv

    # Fields: one entry for each joint

    def coordinates(self, q: Array) -> list[tuple]:
        """q (nq, lanes...) as one tuple of scalars for each joint."""
        return [tuple(q[node.q]) for node in self.tree.nodes]

    def rates(self, v: Array) -> list[tuple]:
        """A vector (nv, lanes...) of velocities, accelerations or torques as one tuple of scalars for each joint."""
        return [tuple(v[node.v]) for node in self.tree.nodes]

    def forces(self, fext: Array) -> list[tuple]:
        """Forces (njoints, 6, lanes...) as one tuple of scalars for each joint."""
        return [tuple(f) for f in fext]

    def numbers(self, x: Array, count: int) -> tuple:
        """Numbers (count, lanes...) that belong to no joint, as scalars."""
        return tuple(x[:count])

    def number(self, x: Array) -> Any:
        """A vector of one number (1, lanes...) as a scalar."""
        return x[0]

    def no_rates(self) -> list[tuple]:
        """Zero for every degree of freedom."""
        return [(0.0,) * node.kind.nv for node in self.tree.nodes]

    def constant(self, value: Any) -> list:
        """The same value for every joint."""
        return [value] * len(self.tree.nodes)

    def vector(self, field: Sequence[Sequence]) -> Array:
        """One sequence of scalars for each joint, as a vector over degrees of freedom (nv, lanes...)."""
        return self.stack([x for entries in field for x in entries])

    def configuration(self, field: Sequence[Sequence]) -> Array:
        """One sequence of scalars for each joint, as a vector of coordinates (nq, lanes...)."""
        return self.vector(field)

    def joint_rows(self, field: Sequence[tuple]) -> Array:
        """One tuple of k scalars for each joint, as an array (njoints, k, lanes...)."""
        return np.stack([self.stack(x) for x in field])

    def dof_rows(self, field: Sequence[Sequence[tuple]]) -> Array:
        """One tuple of k scalars for each degree of freedom, as an array (nv, k, lanes...)."""
        return np.stack([self.stack(x) for joint in field for x in joint])

    def dof_columns(self, field: Sequence[Sequence[tuple]]) -> Array:
        """One tuple of k scalars for each degree of freedom, as the columns of an array (k, nv, lanes...)."""
        return np.swapaxes(self.dof_rows(field), 0, 1)

    def total(self, field: Sequence[Any]) -> Any:
        """The sum over all bodies."""
        return sum(field[1:], start=field[0])

    # Walks

    def each(self, step: Callable[..., T], *inputs: Sequence) -> list[T]:
        """Every body by itself."""
        return [step(node, *(f[node.index] for f in inputs)) for node in self.tree.nodes]

    def outward(self, step: Callable[..., T], *inputs: Sequence) -> list[T]:
        """From the roots to the leaves: step(node, its parent's result or None at a root, *inputs) -> result."""
        out: list[T] = []
        for node in self.tree.nodes:
            parent = None if node.is_root else out[node.parent]
            out.append(step(node, parent, *(f[node.index] for f in inputs)))
        return out

    def inward(self, step: Callable[..., tuple[A, T]], seed: Sequence[A], *inputs: Sequence) -> list[T]:
        """From the leaves to the roots: step(node, accumulated, *inputs) -> (handed to the parent, result).

        `accumulated` is the body's own seed plus what its children handed over.
        """
        total: list[Any] = list(seed)
        out: list[Any] = [None] * len(total)
        for node in reversed(self.tree.nodes):
            handed, out[node.index] = step(node, total[node.index], *(f[node.index] for f in inputs))
            if not node.is_root:
                total[node.parent] = total[node.parent] + handed
        return out

    def pairs(
        self,
        within: Callable[[T, T], tuple],
        across: Callable[[T, T], tuple],
        dofs: Sequence[Sequence[T]],
        diagonal: Callable[[T], tuple] | None = None,
        own: Callable[[T, T], tuple] | None = None,
    ) -> tuple[Array, ...]:
        """Matrices over pairs of degrees of freedom on a common path to the root; all other entries are exact zeros.

        `dofs` holds for each joint one record per degree of freedom. With dof i and dof k in i's subtree,
        within(i, k) gives entry [k, i] of each matrix, also for k of i's own joint unless own(i, k) gives those, and
        across(i, k) gives entry [i, k] for k strictly below i's joint. diagonal(i) is added to the entries [i, i].
        """
        records = stacked([r for joint in dofs for r in joint], self.stack)
        matrices: list[Array] = []
        for node in self.tree.nodes:
            subtree = self.tree.subtree(node)
            below = slice(node.v.stop, subtree.stop)
            for i in node.dofs:
                dof = picked(records, i)
                lower = within(dof, picked(records, subtree))
                if not matrices:
                    matrices = [self.zeros(self.nv, self.nv) for _ in lower]
                for M, column in zip(matrices, lower, strict=True):
                    M[subtree, i] = column
                for M, column in zip(matrices, own(dof, picked(records, node.v)) if own else (), strict=False):
                    M[node.v, i] = column
                if below.start < below.stop:
                    for M, row in zip(matrices, across(dof, picked(records, below)), strict=True):
                        M[i, below] = row
                for M, extra in zip(matrices, diagonal(dof) if diagonal else (), strict=False):
                    M[i, i] = M[i, i] + extra
        return tuple(matrices)

    def triples(
        self,
        given: Callable[[T, T, bool], A],
        within: Callable[[A, A], tuple],
        across: Callable[[A, A], tuple],
        own: Callable[[A, A], tuple],
        dofs: Sequence[Sequence[T]],
    ) -> tuple[Array, ...]:
        """Tensors over triples of degrees of freedom on a common path to the root; all other entries are exact zeros.

        Slab k has the matrices of `pairs` over the dofs on a path with dof k, whose records are given(k, j, below):
        `below` says whether dof j is strictly below k's joint.
        """
        records = [r for joint in dofs for r in joint]
        tensors: list[Array] = []
        for K in self.tree.nodes:
            after = self.tree.subtree(K).stop
            kin = np.array([*self.tree.dof_path(K.index), *range(K.v.stop, after)])
            nodes = [*self.tree.path(K.index), *self.tree.nodes[K.index + 1 : self.tree.ends[K.index]]]
            for k in K.dofs:
                found = stacked([given(records[k], records[j], bool(j >= K.v.stop)) for j in kin], self.stack)
                for node in nodes:
                    end = self.tree.subtree(node).stop
                    here, subtree, below = (
                        slice(*np.searchsorted(kin, ends))
                        for ends in ((node.v.start, node.v.stop), (node.v.start, end), (node.v.stop, end))
                    )
                    for i, dof in ((i, picked(found, int(np.searchsorted(kin, i)))) for i in node.dofs):
                        lower = within(dof, picked(found, subtree))
                        if not tensors:
                            tensors = [self.zeros(self.nv, self.nv, self.nv) for _ in lower]
                        upper = across(dof, picked(found, below)) if below.start < below.stop else ()
                        for T3, column in zip(tensors, lower, strict=True):
                            T3[k, kin[subtree], i] = column
                        for T3, column in zip(tensors, own(dof, picked(found, here)), strict=True):
                            T3[k, kin[here], i] = column
                        for T3, row in zip(tensors, upper, strict=False):
                            T3[k, i, kin[below]] = row
        return tuple(tensors)

    def responses(
        self,
        start: Callable[..., tuple],
        up: Callable[..., tuple],
        out: Callable[..., tuple],
        joints: Sequence[Any],
        columns: Sequence[Sequence[Any]],
    ) -> tuple[Array, ...]:
        """Matrices whose column j is the response of all bodies to an event at dof j, of joint J.

        start(node, j, own)                      what J hands to its parent, and what is left for each of its dofs
        up(node, handed, own)                    the same for J's ancestors, given what was handed to them
        out(node, state, own, left, below, here) outward over all bodies: the body's state and the entries of its dofs,
                                                 given its parent's state (None at a root) and what was left on the path
        j is the dof's number within its joint, own the joint's record. `left` is None for bodies off J's path to the
        root; `below` is the record of dof j for bodies of J's subtree, `here` for J itself, and None elsewhere. None
        counts as zero, and `out` must be linear in it: compiled code mixes columns by masks.
        """
        columns_of = [r for joint in columns for r in joint]
        matrices: list[Array] = []
        for J in self.tree.nodes:
            path = self.tree.path(J.index)
            root, ancestors = path[0], path[:-1]
            for j, c in enumerate(J.dofs):
                handed, own_left = start(J, j, joints[J.index])
                found = {J.index: own_left}
                for node in reversed(ancestors):
                    handed, found[node.index] = up(node, handed, joints[node.index])
                states: dict[int, Any] = {}
                for i in range(root.index, self.tree.ends[root.index]):
                    node = self.tree.nodes[i]
                    parent = None if node.is_root else states[node.parent]
                    below = columns_of[c] if J.index <= i < self.tree.ends[J.index] else None
                    here = below if i == J.index else None
                    states[i], entries = out(node, parent, joints[i], found.get(i), below, here)
                    for k, entry in zip(node.dofs, entries, strict=True):
                        if not matrices:
                            matrices = [self.zeros(self.nv, self.nv) for _ in entry]
                        for M, x in zip(matrices, entry, strict=True):
                            M[k, c] = x
        return tuple(matrices)

    def blocks(self, entry: Callable[[T, A], Any], dofs: Sequence[Sequence[T]], columns: Sequence[tuple]) -> Array:
        """A matrix (nv, width njoints, lanes...): a block of columns for each body, one for each of its records.

        entry(dof i, record of body k) where k is moved by i; all other entries are exact zeros.
        """
        records, width = [r for joint in dofs for r in joint], len(columns[0])
        rows: list[list[Any]] = [[0.0] * (width * len(columns)) for _ in range(self.nv)]
        for k, given in enumerate(columns):
            for i in self.tree.dof_path(k):
                rows[i][width * k : width * (k + 1)] = [entry(records[i], x) for x in given]
        return self.matrix_of(rows)

    # Matrices over degrees of freedom

    def matrix(self, entries: Array) -> Array:
        """A matrix (nv, nv, lanes...) from its entries row by row (nv^2, lanes...)."""
        return entries.reshape(self.nv, self.nv, *entries.shape[1:])

    def entries(self, field: Sequence[Entries]) -> tuple[Array, ...]:
        """Matrices from the entries that each joint has found; all others are zero."""
        n = self.nv
        count = len(next(iter(next(iter(field)).values())))
        rows: list[list[list[Any]]] = [[[0.0] * n for _ in range(n)] for _ in range(count)]
        for entries in field:
            for (i, k), values in entries.items():
                for M, x in zip(rows, values, strict=True):
                    M[i][k] = x
        return tuple(self.matrix_of(M) for M in rows)

    def wide(self, matrix: Array) -> Scan:
        """A scan that takes the columns of a matrix (nv, columns, lanes...) as further lanes."""
        return Scan(self.tree, matrix.shape[1:], matrix.dtype)

    def product(self, left: Array, right: Array) -> Array:
        """The product of two matrices."""
        return np.einsum("ij...,jk...->ik...", left, right)

    def negative(self, matrix: Array) -> Array:
        return -matrix

    def added(self, A: Array, B: Array, transposed: bool = False) -> Array:
        """A + B, or A + B + B^T, for matrices over degrees of freedom; A itself may be overwritten."""
        return A + B + np.swapaxes(B, 0, 1) if transposed else A + B

    def torques(
        self,
        start: Callable[..., tuple],
        up: Callable[..., Any],
        above: Callable[..., list],
        turn: Callable[..., Any],
        out: Callable[..., tuple],
        joints: Sequence[Any],
    ) -> tuple[Array, ...]:
        """Matrices whose row k has, for every dof j, the effect at j of a unit torque at dof k, of joint K.

        start(node, k, own)       what K hands to its parent, the state of K's body, and entry [k, j] of the first
                                  matrix for each dof j of K
        up(node, handed, own)     what an ancestor of K hands on, given what was handed to it
        above(node, handed, own)  for each dof of K or of an ancestor, its entries in the other matrices, given what the
                                  joint hands on
        turn(node, handed, own)   the state of an ancestor's body, given what was handed to it: there the way branches
        out(node, state, own)     for bodies beyond K or off its path to the root: the body's state, and for each dof
                                  its entries in all matrices, given the parent's state
        k is the dof's number within its joint, own the joint's record. The first matrix is symmetric: of its entries,
        those with j >= k are computed. Entries of other trees than K's are exact zeros.
        """
        matrices: list[Array] = []
        for K in self.tree.nodes:
            path = self.tree.path(K.index)
            for k, row in enumerate(K.dofs):
                handed, state, entries = start(K, k, joints[K.index])
                found: dict[int, tuple] = {}
                states = {K.index: state}
                for node in reversed(path):
                    if node is not K:
                        states[node.index] = turn(node, handed, joints[node.index])
                        handed = up(node, handed, joints[node.index])
                    found |= zip(node.dofs, above(node, handed, joints[node.index]), strict=True)
                found |= {j: (x, *found[j]) for j, x in zip(K.dofs, entries, strict=True)}
                for i in range(path[0].index, self.tree.ends[path[0].index]):
                    if i not in states:
                        node = self.tree.nodes[i]
                        states[i], entries = out(node, states[node.parent], joints[i])
                        found |= zip(node.dofs, entries, strict=True)
                if not matrices:
                    matrices = [self.zeros(self.nv, self.nv) for _ in found[row]]
                for j, x in found.items():
                    for M, entry in zip(matrices[-len(x) :] if x else [], x, strict=True):
                        if M is not matrices[0]:
                            M[row, j] = entry
                        elif j >= row:
                            M[row, j] = M[j, row] = entry
        return tuple(matrices)

    # Arrays with lanes trailing

    def stack(self, scalars: Sequence) -> Array:
        """Scalars as an array (len, lanes...)."""
        out = self.zeros(len(scalars))
        for k, x in enumerate(scalars):
            out[k] = x
        return out

    def zeros(self, *shape: int) -> Array:
        """Zeros of this shape, lanes appended."""
        return np.zeros(shape + self.lanes, self.dtype)

    def matrix_of(self, entries: Sequence[Sequence]) -> Array:
        """A matrix (rows, columns, lanes...) from rows of scalars."""
        return np.stack([self.stack(row) for row in entries])


def stacked(records: Sequence[T], stack: Callable[[Sequence], Array]) -> T:
    """One record whose scalars are arrays over the given records."""
    first: Any = records[0]
    if not hasattr(first, "__dataclass_fields__"):
        return stack(records)  # type: ignore[return-value]
    parts = [stacked([getattr(r, f.name) for r in records], stack) for f in fields(first)]
    return type(first)(*parts)


def picked(record: T, index: int | slice) -> T:
    """The record, or records, at an index of a stacked record."""
    if not hasattr(record, "__dataclass_fields__"):
        return record[index]  # type: ignore[index]
    parts = [picked(getattr(record, f.name), index) for f in fields(record)]  # type: ignore[arg-type]
    return type(record)(*parts)
