"""The few ways an algorithm walks a tree: outward, inward, and over pairs of degrees of freedom.

An algorithm hands small step functions on spatial quantities to these; it never loops over bodies itself. `Scan` runs
them one body after the other in Python, on whatever scalars it is given.
Vectors and matrices over degrees of freedom are arrays with those axes leading and the lanes (samples) trailing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from ..model.tree import Node, Tree

Array = np.ndarray
T = TypeVar("T")
A = TypeVar("A")


class Scan:
    """Walks over a tree with scalars of the given lanes and dtype."""

    def __init__(self, tree: Tree, lanes: tuple[int, ...] = (), dtype: Any = float) -> None:
        self.tree, self.lanes, self.dtype = tree, lanes, dtype

    @property
    def nv(self) -> int:
        return self.tree.nv

    # Fields: one entry for each joint

    def coordinates(self, q: Array) -> list[tuple]:
        """q, given with its coordinates leading, as one tuple of scalars for each joint."""
        return [tuple(q[node.q]) for node in self.tree.nodes]

    def rates(self, v: Array) -> list[tuple]:
        """Likewise for a vector over degrees of freedom: velocities, accelerations, torques."""
        return [tuple(v[node.v]) for node in self.tree.nodes]

    def no_rates(self) -> list[tuple]:
        """Zero for every degree of freedom."""
        return [(0.0,) * node.kind.nv for node in self.tree.nodes]

    def constant(self, value: Any) -> list:
        """The same for every joint."""
        return [value] * len(self.tree.nodes)

    def vector(self, field: Sequence[Sequence]) -> Array:
        """One sequence of scalars for each joint, as a vector over degrees of freedom."""
        return self._stack([x for entries in field for x in entries])

    def numbers(self, field: Sequence[tuple]) -> Array:
        """A tuple of scalars for each joint, as an array (njoints, k)."""
        return np.stack([self._stack(x) for x in field])

    def dof_numbers(self, field: Sequence[Sequence[tuple]]) -> Array:
        """A tuple of scalars for each degree of freedom, as an array (nv, k)."""
        return np.stack([self._stack(x) for joint in field for x in joint])

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

        What has accumulated is the body's own seed plus what its children handed over.
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
    ) -> tuple[Array, ...]:
        """Matrices over pairs of degrees of freedom on a common path to the root; all other entries are exact zeros.

        `dofs` holds for each joint one record per degree of freedom. With dof i and dof k in i's subtree,
        within(i, k) gives entry [k, i] of each matrix, also for k of i's own joint, and across(i, k) gives entry
        [i, k] for k strictly below i's joint. diagonal(i) is added to the entries [i, i].
        """
        records = stacked([r for joint in dofs for r in joint], self._stack)
        matrices: list[Array] = []
        for node in self.tree.nodes:
            subtree = self.tree.subtree(node)
            below = slice(node.v.stop, subtree.stop)
            for i in range(node.v.start, node.v.stop):
                dof = picked(records, i)
                lower = within(dof, picked(records, subtree))
                if not matrices:
                    matrices = [self._zeros(self.nv, self.nv) for _ in lower]
                for M, column in zip(matrices, lower, strict=True):
                    M[subtree, i] = column
                if below.start < below.stop:
                    for M, row in zip(matrices, across(dof, picked(records, below)), strict=True):
                        M[i, below] = row
                for M, extra in zip(matrices, diagonal(dof) if diagonal else (), strict=False):
                    M[i, i] = M[i, i] + extra
        return tuple(matrices)

    def responses(
        self,
        start: Callable[..., tuple],
        up: Callable[..., tuple],
        out: Callable[..., tuple],
        joints: Sequence[Any],
        columns: Sequence[Sequence[Any]],
    ) -> tuple[Array, ...]:
        """Matrices whose column j is how all bodies answer to something that happens at dof j, of joint J.

        start(node, j, own)                      what J hands to its parent, and what is left for each of its dofs
        up(node, handed, own)                    the same for J's ancestors, given what was handed to them
        out(node, state, own, left, below, here) outward over all bodies: the body's state and the entries of its dofs,
                                                 given its parent's state (None at a root) and what was left on the way
        j is the dof's number within its joint, own the joint's record. `left` is None for bodies not on J's way to the
        root; `below` is the record of dof j for bodies of J's subtree, `here` for J itself, and None elsewhere. What is
        None counts as zero, and `out` must be linear in it: compiled code mixes columns by masks.
        """
        columns_of = [r for joint in columns for r in joint]
        matrices: list[Array] = []
        for J in self.tree.nodes:
            path = self._path(J)
            root = path[-1] if path else J
            for j in range(J.v.stop - J.v.start):
                c = J.v.start + j
                handed, own_left = start(J, j, joints[J.index])
                found = {J.index: own_left}
                for node in path:
                    handed, found[node.index] = up(node, handed, joints[node.index])
                states: dict[int, Any] = {}
                for i in range(root.index, self.tree.ends[root.index]):
                    node = self.tree.nodes[i]
                    parent = None if node.is_root else states[node.parent]
                    below = columns_of[c] if J.index <= i < self.tree.ends[J.index] else None
                    here = below if i == J.index else None
                    states[i], entries = out(node, parent, joints[i], found.get(i), below, here)
                    for k, entry in zip(range(node.v.start, node.v.stop), entries, strict=True):
                        if not matrices:
                            matrices = [self._zeros(self.nv, self.nv) for _ in entry]
                        for M, x in zip(matrices, entry, strict=True):
                            M[k, c] = x
        return tuple(matrices)

    def _path(self, node: Node) -> list[Node]:
        """The node's ancestors, nearest first."""
        found = []
        while not node.is_root:
            node = self.tree.nodes[node.parent]
            found.append(node)
        return found

    # Arrays with lanes trailing

    def _stack(self, scalars: Sequence) -> Array:
        out = self._zeros(len(scalars))
        for k, x in enumerate(scalars):
            out[k] = x
        return out

    def _zeros(self, *shape: int) -> Array:
        return np.zeros(shape + self.lanes, self.dtype)

    def matrix_of(self, entries: Sequence[Sequence]) -> Array:
        """A matrix from rows of scalars."""
        return np.stack([self._stack(row) for row in entries])


def stacked(records: Sequence[T], stack: Callable[[Sequence], Array]) -> T:
    """One record whose scalars are arrays over the given records."""
    first: Any = records[0]
    if not hasattr(first, "__dataclass_fields__"):
        return stack(records)  # type: ignore[return-value]
    parts = [stacked([getattr(r, f.name) for r in records], stack) for f in fields(first)]
    return type(first)(*parts)


def picked(record: T, index: int | slice) -> T:
    """The record(s) at an index of a stacked record."""
    if not hasattr(record, "__dataclass_fields__"):
        return record[index]  # type: ignore[index]
    parts = [picked(getattr(record, f.name), index) for f in fields(record)]  # type: ignore[arg-type]
    return type(record)(*parts)
