"""Derivatives by automatic differentiation of an algorithm's trace for one robot.

The methods "autodiff" (forward mode) and "autodiff-reverse" differentiate inverse dynamics (`rnea`) and forward
dynamics (`aba`, or `coupled` with mimicking joints). `differentiated` makes a quantity of any quantity's derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..algorithms.derivatives import gradients, methods
from ..algorithms.dynamics import aba, coupled, rnea
from ..algorithms.quantities import Quantity, Result
from ..algorithms.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from ..algorithms.scan import Array, Scan
from ..errors import InputError
from ..forks import Lock
from ..jit.autodiff import Tape, jacobian
from ..jit.graph import Graph, TooLong
from ..jit.straight import loads
from ..model.manifolds import Manifold, side_by_side
from ..model.model import Model
from ..model.tree import Tree

LONGEST = 400_000  # most operations of a trace
Shape = tuple[int, ...]
Directions = Callable[[Array], Array]  # an input's expressions (n,) -> their rates along m directions (n, m)


class Derivative:
    """The derivative of a function of arrays by some of its inputs, traced once.

    by: these inputs, with the directions along which they change.
    undifferentiated: the number of last results to return as they are.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Array]],
        inputs: Mapping[str, Shape],
        by: Mapping[str, Directions],
        mode: str,
        undifferentiated: int = 0,
    ) -> None:
        graph = Graph(LONGEST)
        given = {name: loads(graph, name, shape) for name, shape in inputs.items()}
        results = [np.asarray(r, object) for r in function(**given)]
        outputs = results[: len(results) - undifferentiated]
        moves = [directions(given[name].ravel()) for name, directions in by.items()]
        flat = jacobian(
            [graph.lift(y) for r in outputs for y in r.flat],
            [x for name in by for x in given[name].flat],
            mode,
            np.array(side_by_side(*moves), object),
        )
        rows = np.split(flat, np.cumsum([r.size for r in outputs])[:-1])
        ends = np.cumsum([m.shape[1] for m in moves])[:-1]
        found = [
            block.reshape(*r.shape, block.shape[1])
            for r, strip in zip(outputs, rows, strict=True)
            for block in np.split(strip, ends, axis=1)
        ]
        found += results[len(outputs) :]
        self.depths = {name: len(shape) for name, shape in inputs.items()}
        self.shapes = [r.shape for r in found]
        self._tape = Tape([graph.lift(x) for r in found for x in r.flat])

    def __call__(self, scan: Scan, **given: Any) -> list[Array]:
        """The derivatives of each result by each input, then the undifferentiated results, on the scan's scalars.

        Inputs have their lanes trailing, and so have results.
        """
        memory = {(n, k): x for n, depth in self.depths.items() for k, x in enumerate(scalars(given[n], depth))}
        played = iter(self._tape.play(memory))
        return [scan.vector([[next(played) for _ in range(prod(s))]]).reshape(*s, *scan.lanes) for s in self.shapes]


def scalars(x: Sequence[Any], depth: int) -> list[Any]:
    return list(x) if depth == 1 else [s for part in x for s in scalars(part, depth - 1)]


# Directions


def identity(x: Array) -> Array:
    return np.eye(len(x))


def tangent(manifolds: Iterable[tuple[Manifold, slice]]) -> Directions:
    """The directions of the tangent space of q, from the manifolds of its parts."""
    known = list(manifolds)
    return lambda q: np.array(side_by_side(*(m.rate_map(q[part]) for m, part in known)), object)


# Methods for the derivatives of dynamics

_known: WeakKeyDictionary[Tree, dict[tuple, Derivative]] = WeakKeyDictionary()
_lock = Lock(reentrant=True)


def traced(tree: Tree, quantity: str, mode: str, fext: bool) -> Derivative:
    """The derivatives of a tree's inverse or forward dynamics, traced once per tree."""
    key = (quantity, mode, fext)
    make, other = MAKERS[quantity]
    with _lock:
        known = _known.setdefault(tree, {})
        if key not in known:
            try:
                known[key] = make(tree, mode, fext)
            except TooLong as e:
                raise InputError(
                    f"automatic differentiation of a robot with {tree.nv} degrees of freedom takes {e}; "
                    f"use another method of {quantity}, such as {other if tree.coupling is None else 'auto'!r}"
                ) from e
        return known[key]


def inverse_dynamics(tree: Tree, mode: str, fext: bool) -> Derivative:
    """dtau by q, v and a of the whole tree."""

    def run(q: Array, v: Array, a: Array, fext: Any = None) -> Sequence[Array]:
        return [rnea.inverse_dynamics(Scan(tree, (), object), q, v, a, fext)]

    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "a": (tree.nv,)} | forces(tree, fext)
    return Derivative(run, inputs, {"q": tree_tangent(tree), "v": identity, "a": identity}, mode)


def forward_dynamics(tree: Tree, mode: str, fext: bool) -> Derivative:
    """da by q, v and tau along the independent degrees of freedom, then the margins of M."""
    G = np.eye(tree.nv) if tree.coupling is None else tree.coupling.G

    def run(q: Array, v: Array, tau: Array, fext: Any = None) -> Sequence[Array]:
        return solved(tree, q, v, tau, fext)

    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "tau": (G.shape[1],)} | forces(tree, fext)
    by = {"q": lambda q: tree_tangent(tree)(q) @ G, "v": lambda v: G, "tau": identity}
    return Derivative(run, inputs, by, mode, undifferentiated=1)


def solved(tree: Tree, q: Array, v: Array, tau: Array, fext: Any) -> aba.Forward:
    """Forward dynamics on expressions."""
    scan = Scan(tree, (), object)
    if tree.coupling is None:
        return aba.forward_dynamics(scan, q, v, tau, fext)
    return coupled.forward_dynamics(scan, tree.coupling.G, q, v, tau, fext)


def tree_tangent(tree: Tree) -> Directions:
    return tangent((node.kind.manifold, node.q) for node in tree.nodes)


def forces(tree: Tree, given: bool) -> dict[str, Shape]:
    return {"fext": (len(tree.nodes), 6)} if given else {}


def inverse(mode: str) -> Callable[..., InverseDynamicsDerivatives]:
    """The derivatives of inverse dynamics, by a mode of automatic differentiation."""

    def derivatives(scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None):
        run = traced(scan.tree, methods.ID, mode, fext is not None)
        return InverseDynamicsDerivatives(*run(scan, q=q, v=v, a=a, fext=fext))

    return derivatives


def forward(mode: str) -> Callable[..., tuple[ForwardDynamicsDerivatives, Array]]:
    """The derivatives of forward dynamics by a mode, and the margins of M."""

    def derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
        run = traced(scan.tree, methods.FD, mode, fext is not None)
        *d, margins = run(scan, q=q, v=v, tau=tau, fext=fext)
        return ForwardDynamicsDerivatives(*d), margins

    return derivatives


for _name, _mode in (("autodiff", "forward"), ("autodiff-reverse", "reverse")):
    _note = f"{_mode} mode, docs/methods.md", "no large robots"
    for _quantity, _effort, _function in (
        ("inverse_dynamics_derivatives", "O(nd)", inverse(_mode)),
        ("forward_dynamics_derivatives", "O(n^2)", forward(_mode)),
    ):
        methods.register(methods.Method(_name, _quantity, _note[0], _effort, _note[1], _function))


# Hessians of dynamics: gradients by reverse mode, differentiated by forward mode


def inverse_hessian(tree: Tree, mode: str, fext: bool) -> Derivative:
    """The derivatives by q and v of the gradient (3 nv,) of w.tau by q, v and a."""

    def run(q: Array, v: Array, a: Array, w: Array, fext: Any = None) -> Sequence[Array]:
        tau = rnea.inverse_dynamics(Scan(tree, (), object), q, v, a, fext)
        return [reverse(w @ tau, {"q": q, "v": v, "a": a}, by)]

    by: dict[str, Directions] = {"q": tree_tangent(tree), "v": identity, "a": identity}
    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "a": (tree.nv,), "w": (tree.nv,)}
    return Derivative(run, inputs | forces(tree, fext), {"q": by["q"], "v": by["v"]}, mode)


def forward_hessian(tree: Tree, mode: str, fext: bool) -> Derivative:
    """The same for w.a by q, v and tau, along the independent degrees of freedom; then the margins of M."""
    G = np.eye(tree.nv) if tree.coupling is None else tree.coupling.G

    def run(q: Array, v: Array, tau: Array, w: Array, fext: Any = None) -> Sequence[Array]:
        a, margins = solved(tree, q, v, tau, fext)
        return [reverse(w @ a, {"q": q, "v": v, "tau": tau}, by), margins]

    n = G.shape[1]
    by: dict[str, Directions] = {"q": lambda q: tree_tangent(tree)(q) @ G, "v": lambda v: G, "tau": identity}
    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "tau": (n,), "w": (n,)}
    return Derivative(run, inputs | forces(tree, fext), {"q": by["q"], "v": by["v"]}, mode, 1)


def reverse(s: Any, state: Mapping[str, Array], by: Mapping[str, Directions]) -> Array:
    """The gradient of a scalar along the directions of its inputs, one after the other."""
    moves = np.array(side_by_side(*(by[name](x) for name, x in state.items())), object)
    return jacobian([s], [entry for x in state.values() for entry in x], "reverse", moves)[0]


def hessian_by_autodiff(quantity: str) -> Callable[..., Any]:
    """A method of a quantity of second derivatives."""

    def hessian(scan: Scan, q: Array, v: Array, third: Array, w: Array, fext: Sequence | None = None) -> tuple:
        run = traced(scan.tree, quantity, "forward", fext is not None)
        name = "a" if quantity == methods.ID_HESSIAN else "tau"
        by_q, by_v, *margins = run(scan, q=q, v=v, w=w, fext=fext, **{name: third})
        return *gradients.blocks(by_q, by_v), *margins

    return hessian


# by quantity: what traces its derivatives, and another method for robots that are too large for it
MAKERS: dict[str, tuple[Callable[[Tree, str, bool], Derivative], str]] = {
    methods.ID: (inverse_dynamics, "idsva"),
    methods.FD: (forward_dynamics, "direct"),
    methods.ID_HESSIAN: (inverse_hessian, "analytic"),
    methods.FD_HESSIAN: (forward_hessian, "analytic"),
}
for _quantity in (methods.ID_HESSIAN, methods.FD_HESSIAN):
    _note = "forward over reverse mode", "O(n^2)", "no large robots"
    methods.register(methods.Method("autodiff", _quantity, *_note, hessian_by_autodiff(_quantity)))


# The derivative of any quantity


@dataclass(frozen=True, eq=False)
class DerivedQuantity(Quantity):
    """The derivative of another quantity by one of its inputs, by automatic differentiation.

    A derivative by q is in the tangent space. Its axes follow those of the results; fext has one axis, 6 njoints.
    """

    of: Quantity | None = None
    model: Model | None = None
    along: str = "q"
    mode: str = "auto"
    known: dict[tuple, Derivative] = field(default_factory=dict)

    def compute(self, scan: Scan, given: Mapping[str, Any], method: str | None = None, **options: Any) -> list[Array]:
        shapes = {k: tuple(x.shape[: x.ndim - len(scan.lanes)]) for k, x in given.items()}
        return self._traced(scan.tree, shapes, options)(scan, **given)

    def _traced(self, tree: Tree, shapes: dict[str, Shape], options: dict[str, Any]) -> Derivative:
        assert self.of is not None
        assert self.model is not None
        of, key = self.of, (*shapes, *options.items())
        with _lock:
            if key not in self.known:
                directions = {self.along: identity}
                if of.input(self.along).axes == ("q",):
                    directions = {self.along: tangent((m, part) for _, m, part, _ in self.model.parts)}

                def run(**given: Array) -> list[Array]:
                    return of.compute(Scan(tree, (), object), given, **options)

                try:
                    derivative = Derivative(run, shapes, directions, self.mode, len(of.margins))
                except TooLong as e:
                    raise InputError(
                        f"automatic differentiation of {of.name} of a robot with {tree.nv} degrees of freedom takes "
                        f"{e}; lock joints that do not matter, or use central differences (featherjet.verify)"
                    ) from e
                self.known[key] = derivative
            return self.known[key]


def differentiated(model: Model, of: Quantity, by: str, mode: str) -> DerivedQuantity:
    """The derivative of a quantity of one model by an input."""
    axes = {("q",): ("v",), ("joints", 6): (6 * model.njoints,)}.get(of.input(by).axes) or of.input(by).axes
    return DerivedQuantity(
        name=f"{of.name} by {by}, {mode}",
        summary=f"derivative of {of.name} by {by}",
        inputs=of.inputs,
        results=tuple(Result(f"d{r.name}_d{by}", (*r.axes, *axes)) for r in of.results),
        algorithm=of.algorithm,
        forces=of.forces,
        options=of.options,
        margins=of.margins,
        needs_mass=of.needs_mass,
        of_space=of.of_space,
        of=of,
        model=model,
        along=by,
        mode=mode,
    )
