"""Derivatives of functions, written once for the arrays of every framework.

A rule sees a `Point`: the function's inputs, and `call`, which evaluates other functions of the table so that the
framework can differentiate them again. Changes of q, and derivatives by it, are tangent vectors here. A change or a
weight that is zero is None, and so may be what a rule returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

Arrays = Sequence[Any]  # of one framework; None is zero
Shape = tuple[int, ...]


class Point(NamedTuple):
    """Where a function is differentiated.

    xp: the framework's namespace; call(name, *inputs) -> results; x: the inputs; inputs, results: the shapes of their
    tangent vectors; nv, mass: the robot's.
    """

    xp: Any
    call: Callable[..., Arrays]
    x: Arrays
    inputs: Sequence[Shape]
    results: Sequence[Shape]
    nv: int
    mass: float

    def constant(self, value: Any) -> Any:
        """An array of the framework in the precision of the inputs."""
        return self.xp.asarray(np.asarray(value, float), dtype=self.x[0].dtype)

    def zeros(self, shape: Shape) -> Any:
        return self.constant(np.zeros(shape))

    def host(self, function: Callable[..., Arrays], shapes: Sequence[Shape]) -> Arrays:
        """The results of a function of NumPy arrays at the inputs, which are vectors; shapes: of one sample's."""
        return function(*self.x)

    def filled(self, changes: Arrays, shapes: Sequence[Shape]) -> list[Any]:
        """Tangent vectors of these shapes, with zeros for None."""
        return [self.zeros(shape) if d is None else d for d, shape in zip(changes, shapes, strict=True)]


Rule = Callable[..., Arrays]  # (Point, *changes or weights) -> the changes of results, or derivatives by inputs


class BeyondOrder(InputError):
    """A derivative of higher order than a function has."""


def beyond(what: str) -> Rule:
    """The rule of functions that cannot be differentiated further."""

    def rule(at: Point, *given: Any) -> Arrays:
        raise BeyondOrder(
            f"{what} has no further derivative here: featherjet differentiates dynamics twice, and other functions "
            "once or twice (docs/frameworks.md has the table)"
        )

    return rule


def total(terms: Sequence[Any]) -> Any:
    """The sum of those terms that are not None."""
    known = [x for x in terms if x is not None]
    return sum(known[1:], known[0]) if known else None


def right(at: Point, M: Any, x: Any, rows: int = 1) -> Any:
    """M (..., *rows, n) times x (..., n); `rows` counts the axes before the last."""
    if x is None:
        return None
    letters = "ijkl"[:rows]
    return at.xp.einsum(f"...{letters}n,...n->...{letters}", M, x)


def left(at: Point, w: Any, M: Any, rows: int = 1) -> Any:
    """w (..., *rows) times M (..., *rows, n)."""
    if w is None:
        return None
    letters = "ijkl"[:rows]
    return at.xp.einsum(f"...{letters},...{letters}n->...n", w, M)


# First order


class Derivation(NamedTuple):
    """How a function is differentiated: the changes of its results, and derivatives by its inputs."""

    jvp: Rule
    vjp: Rule


def by_products(jvp: str, vjp: str) -> Derivation:
    """Differentiated by two functions of the table: derivatives times a direction, and a covector times derivatives."""
    return Derivation(
        lambda at, *d: at.call(jvp, *at.x, *at.filled(d, at.inputs)),
        lambda at, *w: at.call(vjp, *at.x, *at.filled(w, at.results)),
    )


Blocks = Callable[[Point], Sequence[Sequence[Any]]]  # for each result, its derivative by each input


def by_matrices(blocks: Blocks, *rows: int) -> Derivation:
    """Differentiated by matrices. rows: how many axes the tangent vector of each result has."""

    def jvp(at: Point, *d: Any) -> Arrays:
        return [
            total([right(at, M, x, n) for M, x in zip(row, d, strict=True)])
            for row, n in zip(blocks(at), rows, strict=True)
        ]

    def vjp(at: Point, *w: Any) -> Arrays:
        columns = zip(*blocks(at), strict=True)
        return [total([left(at, x, M, n) for x, M, n in zip(w, c, rows, strict=True)]) for c in columns]

    return Derivation(jvp, vjp)


def blocks_of(name: str, results: int = 1) -> Blocks:
    """The matrices that a function of the table gives: those of the first result by each input, then of the second."""

    return lambda at: in_rows(at.call(name, *at.x), results)


def in_rows(found: Arrays, results: int) -> list[Arrays]:
    """A row of matrices for each result: its derivatives by each input."""
    count = len(found) // results
    return [found[k * count : (k + 1) * count] for k in range(results)]


# Second order of dynamics. s = w.y has second derivatives qq, qv, vv, qt by q, v and the third input t (a or tau);
# those by (v, t) and (t, t) are zero. qq[j, i] is the derivative along dof i of ds/dq_j.


class Second:
    """How to differentiate first derivatives of a function y(q, v, t) once more: by the Hessian of s = w.y.

    name: that of y in the table, whose f"{name}_hessian" gives qq, qv, vv, qt.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def hessian(self, at: Point, x: Arrays, w: Any) -> tuple[Any, ...]:
        return tuple(at.call(f"{self.name}_hessian", *x, w))

    def forward(self, at: Point, x: Arrays, w: Any, d: Arrays) -> list[Any]:
        """The change of the gradient of w.y along d."""
        dq, dv, dt = d
        if dq is None and dv is None and dt is None:
            return [None] * 3
        qq, qv, vv, qt = self.hessian(at, x, w)
        by_q = total([right(at, qq, dq), right(at, qv, dv), right(at, qt, dt)])
        return [by_q, total([left(at, dq, qv), right(at, vv, dv)]), left(at, dq, qt)]

    def backward(self, at: Point, x: Arrays, w: Any, c: Arrays) -> list[Any]:
        """The derivative of c.g by the inputs, g the gradient of w.y."""
        cq, cv, ct = c
        qq, qv, vv, qt = self.hessian(at, x, w)
        by_q = total([left(at, cq, qq), right(at, qv, cv), right(at, qt, ct)])
        return [by_q, total([left(at, cq, qv), right(at, vv, cv)]), left(at, cq, qt)]

    def of_vjp(self) -> Derivation:
        """The derivatives of the function (*x, w) -> w^T dy/dx."""

        def jvp(at: Point, *d: Any) -> Arrays:
            *x, w = at.x
            *dx, dw = d
            found = self.forward(at, x, w, dx)
            if dw is None:
                return found
            return [total(pair) for pair in zip(found, at.call(f"{self.name}_vjp", *x, dw), strict=True)]

        def vjp(at: Point, *c: Any) -> Arrays:
            *x, w = at.x
            return [*self.backward(at, x, w, c), *at.call(f"{self.name}_jvp", *x, *at.filled(c, at.results))]

        return Derivation(jvp, vjp)

    def of_jvp(self) -> Derivation:
        """The derivatives of the function (*x, *d) -> dy/dx d."""

        def jvp(at: Point, *e: Any) -> Arrays:
            x, d, ex, ed = at.x[:3], at.x[3:], e[:3], e[3:]
            found = None
            if any(y is not None for y in ed):
                found = at.call(f"{self.name}_jvp", *x, *at.filled(ed, at.inputs[3:]))[0]
            if any(y is not None for y in ex):
                found = total([found, at.call(f"{self.name}_second", *x, *d, *at.filled(ex, at.inputs[:3]))[0]])
            return [found]

        def vjp(at: Point, w: Any) -> Arrays:
            x, d = at.x[:3], at.x[3:]
            return [*self.backward(at, x, w, d), *at.call(f"{self.name}_vjp", *x, w)]

        return Derivation(jvp, vjp)

    def along_both(self, at: Point) -> Arrays:
        """The second derivative of y along two directions d and e, (..., nv), from (*x, *d, *e)."""
        x, d, e = ([y[..., None, :] for y in at.x[k : k + 3]] for k in (0, 3, 6))
        gradients = self.forward(at, x, at.constant(np.eye(at.nv)), e)
        return [total([(g * y).sum(-1) for g, y in zip(gradients, d, strict=True)])]

    def back_along_both(self, at: Point, w: Any) -> Arrays:
        """The transpose of `along_both` as a function of e."""
        return self.backward(at, at.x[:3], w, at.x[3:6])

    def of_matrices(self) -> Derivation:
        """The derivatives of the function x -> dy/dq, dy/dv, dy/dt; row i of each matrix is the gradient of y_i."""

        def jvp(at: Point, *d: Any) -> Arrays:
            x, moved = ([None if y is None else y[..., None, :] for y in part] for part in (at.x, d))
            return self.forward(at, x, at.constant(np.eye(at.nv)), moved)

        def vjp(at: Point, *C: Any) -> Arrays:
            found = self.backward(at, [y[..., None, :] for y in at.x], at.constant(np.eye(at.nv)), C)
            return [None if g is None else g.sum(-2) for g in found]

        return Derivation(jvp, vjp)
