"""Derivatives by automatic differentiation: what an algorithm does is traced for a robot, and the trace differentiated.

The methods "autodiff" (forward mode) and "autodiff-reverse" differentiate inverse dynamics (`rnea`) and forward
dynamics (`aba`, or `coupled` where joints mimic); `autodiff` differentiates whatever else a robot computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ..algorithms.derivatives import methods
from ..algorithms.derivatives.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from ..algorithms.dynamics import aba, coupled, rnea
from ..algorithms.quantities import DIVIDING, INPUTS
from ..algorithms.scan import Array, Scan
from ..errors import InputError, UnknownName
from ..evaluate.reference import Reference
from ..jit.autodiff import MODES, Tape, jacobian
from ..jit.graph import Graph, TooLong
from ..model.configuration import parts
from ..model.manifolds import Manifold, side_by_side
from ..model.model import Model
from ..model.tree import Tree

if TYPE_CHECKING:
    from ..evaluate.frames import FrameName
    from .robot import FrameChoice, Robot

LONGEST = 400_000  # operations that are traced for one robot
Shape = tuple[int, ...]
Directions = Callable[[Array], Array]  # from an input's expressions (n,), their rates along some directions (n, m)


class Derivative:
    """A function of arrays, traced, and differentiated by some of its inputs.

    by: the inputs, with the directions along which they change; plain: how many of the last results are not
    differentiated, but come along.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Array]],
        inputs: Mapping[str, Shape],
        by: Mapping[str, Directions],
        mode: str,
        plain: int = 0,
    ) -> None:
        graph = Graph(LONGEST)
        given = {name: loads(graph, name, shape) for name, shape in inputs.items()}
        results = [np.asarray(r, object) for r in function(**given)]
        outputs = results[: len(results) - plain]
        moves = [directions(given[name].ravel()) for name, directions in by.items()]
        flat = jacobian(
            [graph.lift(y) for r in outputs for y in r.flat],
            [x for name in by for x in given[name].flat],
            mode,
            side_by_side(*moves),
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
        """The derivatives of each result by each input, and the plain results, on the scan's scalars, lanes trailing.

        Inputs come with their scalars leading.
        """
        memory = {(n, k): x for n, depth in self.depths.items() for k, x in enumerate(scalars(given[n], depth))}
        played = iter(self._tape.play(memory))
        return [scan.vector([[next(played) for _ in range(prod(s))]]).reshape(*s, *scan.lanes) for s in self.shapes]


def loads(graph: Graph, name: str, shape: Shape) -> Array:
    out = np.empty(prod(shape), object)
    out[:] = [graph.load((name, k)) for k in range(len(out))]
    return out.reshape(shape)


def scalars(x: Sequence[Any], depth: int) -> list[Any]:
    return list(x) if depth == 1 else [s for part in x for s in scalars(part, depth - 1)]


# Directions


def identity(x: Array) -> Array:
    return np.eye(len(x))


def tangent(manifolds: Iterable[tuple[Manifold, slice]]) -> Directions:
    """Those of the tangent space, given the manifolds that parts of q are on."""
    known = list(manifolds)
    return lambda q: side_by_side(*(rate_map(m, q[part]) for m, part in known))


def rate_map(manifold: Manifold, q: Array) -> Array:
    """`manifold.rate_map` on scalars of any kind: F (nq, nv) with dq/dt = F v.

    Its entries are polynomials in q of the second degree at most (R of a quaternion is). So values at a few points give
    the coefficients, exactly, all being multiples of 1/2: with f the map less its constant, f(e_i) = b_i + A_ii,
    f(-e_i) = -b_i + A_ii, f(e_i + e_j) = f(e_i) + f(e_j) + A_ij.
    """
    e = np.eye(manifold.nq)
    constant = manifold.rate_map(0 * e[0])
    plus, minus, pairs = (manifold.rate_map(x) - constant for x in (e, -e, e[:, None] + e))
    F = constant.astype(object)
    for i, x in enumerate(q):
        F = F + times((plus[i] - minus[i]) / 2, x) + times((plus[i] + minus[i]) / 2, x * x)
        for j in range(i):
            F = F + times(pairs[i, j] - plus[i] - plus[j], x * q[j])
    return F


def times(A: Array, x: Any) -> Array:
    """A x for a matrix of numbers, whose zeros stay numbers."""
    out = A.astype(object)
    for k in np.flatnonzero(A):
        out.flat[k] = out.flat[k] * x
    return out


# Methods for the derivatives of dynamics

_known: WeakKeyDictionary[Tree, dict[tuple, Derivative]] = WeakKeyDictionary()
_lock = threading.RLock()


def traced(tree: Tree, quantity: str, mode: str, fext: bool) -> Derivative:
    """The derivatives of a tree's inverse or forward dynamics, traced once."""
    key = (quantity, mode, fext)
    with _lock:
        known = _known.setdefault(tree, {})
        if key not in known:
            try:
                known[key] = (inverse_dynamics if quantity == methods.ID else forward_dynamics)(tree, mode, fext)
            except TooLong as e:
                other = methods.KERNEL[quantity] if tree.coupling is None else "auto"
                raise InputError(
                    f"automatic differentiation of a robot with {tree.nv} degrees of freedom takes {e}; "
                    f"take another method of {quantity}, such as {other!r}"
                ) from e
        return known[key]


def inverse_dynamics(tree: Tree, mode: str, fext: bool) -> Derivative:
    """dtau by q, v and a, all of the tree's."""

    def run(q: Array, v: Array, a: Array, fext: Any = None) -> Sequence[Array]:
        return [rnea.inverse_dynamics(Scan(tree, (), object), q, v, a, fext)]

    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "a": (tree.nv,)} | forces(tree, fext)
    return Derivative(run, inputs, {"q": tree_tangent(tree), "v": identity, "a": identity}, mode)


def forward_dynamics(tree: Tree, mode: str, fext: bool) -> Derivative:
    """da by q, v and tau, along the independent degrees of freedom; and the margins of M."""
    G = np.eye(tree.nv) if tree.coupling is None else tree.coupling.G

    def run(q: Array, v: Array, tau: Array, fext: Any = None) -> Sequence[Array]:
        scan = Scan(tree, (), object)
        if tree.coupling is None:
            return aba.forward_dynamics(scan, q, v, tau, fext)
        return coupled.forward_dynamics(scan, G, q, v, tau, fext)

    inputs: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,), "tau": (G.shape[1],)} | forces(tree, fext)
    by = {"q": lambda q: tree_tangent(tree)(q) @ G, "v": lambda v: G, "tau": identity}
    return Derivative(run, inputs, by, mode, plain=1)


def tree_tangent(tree: Tree) -> Directions:
    return tangent((node.kind.manifold, node.q) for node in tree.nodes)


def forces(tree: Tree, given: bool) -> dict[str, Shape]:
    return {"fext": (len(tree.nodes), 6)} if given else {}


def inverse(mode: str) -> Callable[..., InverseDynamicsDerivatives]:
    """Derivatives of inverse dynamics by a mode."""

    def derivatives(scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None):
        run = traced(scan.tree, methods.ID, mode, fext is not None)
        return InverseDynamicsDerivatives(*run(scan, q=q, v=v, a=a, fext=fext))

    return derivatives


def forward(mode: str) -> Callable[..., tuple[ForwardDynamicsDerivatives, Array]]:
    """Derivatives of forward dynamics by a mode, and the margins of M."""

    def derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
        run = traced(scan.tree, methods.FD, mode, fext is not None)
        *d, margins = run(scan, q=q, v=v, tau=tau, fext=fext)
        return ForwardDynamicsDerivatives(*d), margins

    return derivatives


for _name, _mode in (("autodiff", "forward"), ("autodiff-reverse", "reverse")):
    _note = f"{_mode} mode, docs/methods.md", "no large robots"
    methods.register(methods.Method(_name, methods.ID, _note[0], "O(nd)", _note[1], inverse(_mode)))
    methods.register(methods.Method(_name, methods.FD, _note[0], "O(n^2)", _note[1], forward(_mode)))


# Of any quantity


class Differentiated(Reference):
    """`run(name, inputs, by=..., mode=...)`: the named quantity's derivatives instead of itself."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._known: dict[tuple, Derivative] = {}

    def compute(
        self, name: str, given: Mapping[str, Array], lanes: tuple[int, ...], dtype: Any, **static: Any
    ) -> Sequence[Array]:
        """As a reference's; static says by which input, in which mode."""
        core = {k: x.shape[x.ndim - (2 if k == "fext" else 1) :] for k, x in given.items()}
        wide = {k: np.broadcast_to(x, (*lanes, *core[k])) for k, x in given.items()}
        leading = {k: np.moveaxis(x, range(len(lanes)), range(-len(lanes), 0)) for k, x in wide.items()}
        return self._traced(name, core, **static)(Scan(self.tree, lanes, dtype), **leading)

    def _traced(self, name: str, core: dict[str, Shape], by: str, mode: str, **static: Any) -> Derivative:
        key = (name, *core, by, mode, *static.values())
        with _lock:
            if key not in self._known:
                space = tangent((m, part) for _, m, part, _ in parts(self.model))
                directions = {by: space if by == "q" else identity}
                run = partial(self._on_expressions, name, **static)
                try:
                    self._known[key] = Derivative(run, core, directions, mode, plain=int(name in DIVIDING))
                except TooLong as e:
                    raise InputError(
                        f"automatic differentiation of {name} of a robot with {self.tree.nv} degrees of freedom takes "
                        f"{e}; lock joints that do not matter, or use central differences (featherjet.verify)"
                    ) from e
            return self._known[key]

    def _on_expressions(self, _name: str, sight: Any = None, **given: Array) -> Sequence[Array]:
        return super().compute(_name, given, (), object, **({} if sight is None else {"sight": sight}))


def autodiff(
    robot: Robot,
    quantity: str,
    by: str = "q",
    mode: str = "auto",
    name: FrameName | None = None,
    frame: FrameChoice = "local",
) -> Callable[..., Any]:
    """The derivative of something a robot computes, as a function of the same inputs: an array (..., *shape, nv).

    `fj.autodiff(robot, "kinetic_energy", by="v")(q, v)`. Columns by q are in its tangent space; by fext there are two
    axes (njoints, 6). Where a quantity has several results, so has the derivative. `name` and `frame` are for
    quantities of a frame. mode: "forward", "reverse", or "auto", whichever takes fewer operations.
    """
    if robot.convention != "pinocchio":
        raise InputError(
            f"autodiff is not available in the convention {robot.convention!r}; "
            "take it from robot.with_convention('pinocchio')"
        )
    if quantity not in INPUTS:
        raise UnknownName("quantity", quantity, INPUTS)
    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    takes = signature(getattr(Reference, "_" + quantity)).parameters
    inputs = (*INPUTS[quantity], "fext") if "fext" in takes else INPUTS[quantity]
    if by not in inputs:
        raise UnknownName(f"input of {quantity}", by, inputs)
    if ("sight" in takes) != (name is not None):
        raise InputError(f"{quantity} {'needs the name of a frame' if name is None else 'takes no name of a frame'}")
    if quantity.startswith("cent"):
        robot._needs_mass()
    static = {} if name is None else robot._sight(name, frame)
    run = partial(robot._specialise(Differentiated(robot.model)), by=by, mode=mode, **static)

    def derivative(*given: Any, **named: Any) -> Any:
        values = {k: x for k, x in (dict(zip(inputs, given, strict=False)) | named).items() if x is not None}
        needed = {*INPUTS[quantity], by}
        if len(given) > len(inputs) or not needed <= {*values} <= {*inputs}:
            raise InputError(f"derivative of {quantity} by {by}: takes {', '.join(inputs)}; got {', '.join(values)}")
        state = [values[k] for k in INPUTS[quantity]]
        checked = robot._checked(quantity, state, values.get("fext"))
        results: tuple[Array, ...] = robot._run_reference(quantity, checked, run)
        if by == "fext":
            results = tuple(r.reshape(*r.shape[:-1], robot.njoints, 6) for r in results)
        return results[0] if len(results) == 1 else results

    return derivative
