"""What a record says of a quantity: its inputs and results, its algorithm, its cost; and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..conventions import rules
from ..conventions.rules import Rule
from ..model.tree import Tree
from .derivatives.methods import Method
from .dynamics import coupled
from .joint_laws import LawRule
from .scan import Array, Scan

Axis = str | int  # a name in `sizes`, or a length
Shape = tuple[int, ...]


class Input(NamedTuple):
    """Something a quantity takes; `expands` says whether mimicking joints add to it, as coordinates or as rates."""

    name: str
    axes: tuple[Axis, ...]
    expands: str = ""


class Result(NamedTuple):
    """Something a quantity gives; conventions need to know what turns along its axes over degrees of freedom."""

    name: str
    axes: tuple[Axis, ...]
    motion: bool = False  # velocities or accelerations, which are B^-1 times the standard ones, where forces are B^T
    acceleration: bool = False  # conventions whose axes turn see another one


class Flops(NamedTuple):
    """Roughly how many operations a quantity takes: for each dof, each pair of dofs on a path, each pair of dofs."""

    dofs: float
    paths: float = 0
    pairs: float = 0

    def of(self, tree: Tree) -> float:
        paths = sum((n.v.stop - n.v.start) * (tree.subtree(n).stop - n.v.start) for n in tree.nodes)
        return self.dofs * tree.nv + self.paths * paths + self.pairs * tree.nv**2


class Product(NamedTuple):
    """The derivatives of a quantity, times weights from the left or directions from the right.

    kind: "vjp" or "jvp". Its inputs are those of the quantity `of`, then the weights or directions. under_forces:
    whether it treats the derivative by external forces, too.
    """

    kind: str
    of: str
    under_forces: bool = False


REDUCE, ITSELF = "reduce", "itself"


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity.

    algorithm(scan, *inputs, fext=None, **options) gives the results and then the margins, if there are any.
    mimic: what happens where joints mimic. REDUCE: the algorithm treats them as independent, and its results shrink to
    the independent joints along every axis "v"; ITSELF: the algorithm knows; or a function (scan, G, *inputs, fext) to
    run in its place, v_tree = G v.
    """

    name: str
    summary: str
    inputs: tuple[Input, ...]
    results: tuple[Result, ...]
    algorithm: Callable[..., Any]
    returns: Callable[[Sequence[Array]], Any] | None = None  # makes the named tuple that users get of several results
    forces: bool = False  # whether external forces may be given
    options: tuple[str, ...] = ()  # what else it takes by keyword: a frame's `view`, `contacts`, ...
    margins: tuple[str, ...] = ()  # after the results: how far "contacts" or "mass" matrix are from singular
    needs_mass: bool = False
    mimic: str | Callable[..., Any] = REDUCE
    on_numpy: Callable[..., Any] | None = None  # an algorithm that suits arrays better
    for_small: tuple[Callable[..., Any], ...] = ()  # for small robots, the one that takes the fewest operations
    methods: dict[str, Method] = field(default_factory=dict)
    cost: Flops | None = None  # None: known once it is traced
    rolled: bool = False  # whether it is made of walks alone, and one piece of code serves all robots
    contact_walk: Callable[..., Any] | None = None  # the same as walks over bodies and contacts, which are data
    longest: int = 100_000  # operations that are worth compiling for one robot
    unrolls: int | None = None  # operations up to which code for one robot replaces rolled code; None: as others
    solves: str = ""  # it is -M^-1 times another quantity, at the accelerations of forward dynamics
    contracted: str = ""  # the quantity that gives it row by row, which is faster where its own code would be long
    base: Quantity | None = None  # what this is the derivative of
    by: tuple[str, ...] = ()  # and by which of its inputs, for each of its results
    rule: Rule | None = rules.axes  # how it reads in other conventions; None: it is refused there
    laws: LawRule | None = None  # how the joints' own laws change it; None: not at all
    note: str = ""  # what users should know besides the summary and the shapes of the results
    called: str = ""  # the method of Robot, if its name is another
    inside: bool = False  # whether it serves other parts alone, so that Robot has no method for it
    product: Product | None = None  # with the derivatives of which quantity, if it is one
    of_space: bool = False  # whether it walks the joints of the configuration space, each convention's own, and no tree

    def __str__(self) -> str:
        return self.name

    @property
    def optional(self) -> tuple[Input, ...]:
        """Inputs that may be left out."""
        return ((FEXT,) if self.forces else ()) + ((SETTINGS,) if "contacts" in self.options else ())

    @property
    def matrices(self) -> bool:
        """Whether it has results over pairs of degrees of freedom."""
        return any(r.axes == ("v", "v") for r in self.results)

    def input(self, name: str) -> Input:
        return next(i for i in (*self.inputs, *self.optional) if i.name == name)

    def input_shapes(self, given: Sequence[str], size: Mapping[str, int]) -> dict[str, Shape]:
        """The core shapes of the inputs that are given, by name."""
        return {name: shape(self.input(name).axes, size) for name in given}

    def result_shapes(self, size: Mapping[str, int]) -> list[Shape]:
        return [shape(r.axes, size) for r in self.results]

    def packed(self, results: Sequence[Array]) -> Any:
        """Results as users get them: an array, or a named tuple of several."""
        return results[0] if len(self.results) == 1 else self.returns(results) if self.returns else tuple(results)

    def compute(self, scan: Scan, given: Mapping[str, Any], method: str | None = None, **options: Any) -> list[Array]:
        """Results, then margins, from inputs of the robot's: core axes lead, lanes trail, on scalars of any kind."""
        coupling = scan.tree.coupling
        inputs = [
            given[i.name] if coupling is None else coupled.expand(coupling, i, given[i.name]) for i in self.inputs
        ]
        if "fext" in given:
            options["fext"] = scan.forces(given["fext"])
        if "settings" in given:
            options["settings"] = given["settings"]
        if method is not None:
            found = self.methods[method].function(scan, *inputs, **options)
        elif coupling is not None and callable(self.mimic):
            found = self.mimic(scan, coupling.G, *inputs, **options)
        else:
            algorithm = (None if scan.dtype is object else self.on_numpy) or self.algorithm
            found = algorithm(scan, *inputs, **options)
        results = flat(found)
        size = sizes(scan.tree, options.get("contacts"))
        reduce = coupling is not None and self.mimic == REDUCE
        if reduce:
            size = size | {"v": size["dofs"]}
        for k, r in enumerate(self.results):
            results[k] = shaped(results[k], (*shape(r.axes, size), *scan.lanes))
            if reduce and coupling is not None:
                results[k] = coupled.reduce(coupling.G, r.axes, results[k])
        return results


def flat(found: Any) -> list[Any]:
    """Arrays out of tuples within tuples."""
    return [x for part in found for x in flat(part)] if isinstance(found, tuple) else [found]


def shape(axes: Sequence[Axis], size: Mapping[str, int]) -> Shape:
    return tuple(size[a] if isinstance(a, str) else a for a in axes)


def shaped(x: Any, want: Shape) -> Array:
    x = np.asarray(x)
    return x if x.shape == want else x.reshape(want) if x.size == prod(want) else np.broadcast_to(x, want)


def sizes(tree: Tree, contacts: Any = None) -> dict[str, int]:
    """The lengths of named axes; "q" and "v" are those of the independent joints, where some mimic."""
    c, joints = tree.coupling, len(tree.nodes)
    nq, nv = (int(c.qi.max()) + 1, c.G.shape[1]) if c else (tree.nq, tree.nv)
    found = {"q": nq, "v": nv, "dofs": tree.nv, "joints": joints, "parameters": 10 * joints}
    if contacts is not None:
        found |= {"rows": contacts.rows[-1].stop, "settings": len(contacts.settings)}
    return found


Q, V, A = Input("q", ("q",), "q"), Input("v", ("v",), "v"), Input("a", ("v",), "v")
TAU, FORCES = Input("tau", ("v",)), Input("forces", ("rows",))
RESTITUTION, FEXT, SETTINGS = Input("restitution", (1,)), Input("fext", ("joints", 6)), Input("settings", ("settings",))
FRAME = Input("frame", (13,))  # see `frames.jacobians.View`
VV: tuple[Axis, ...] = ("v", "v")
SIX_V: tuple[Axis, ...] = (6, "v")
LONG_CONTACTS = 300_000  # a humanoid on two flat feet


def named(result: Any, *axes: tuple[Axis, ...]) -> tuple[Result, ...]:
    """Results called as the fields of a named tuple, with their axes, or all with the same."""
    each = axes if len(axes) > 1 else axes * len(result._fields)
    return tuple(Result(name, a) for name, a in zip(result._fields, each, strict=True))
