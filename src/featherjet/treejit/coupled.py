"""Kernels of robots with mimicking joints, of any size: those of the tree with independent joints, between two maps.

v_tree = G v: inputs are expanded, then the tree's own code computes, and its results are folded along every axis over
degrees of freedom (G^T x, G^T M G). Forward dynamics and its derivatives follow from the inverse of G^T M G:

    a = -M^-1 (b - tau)      da/dx = -M^-1 dtau/dx      w^T da/dx = y^T dtau/dx,  y = -M^-1 w
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..algorithms.dynamics.coupled import expand
from ..algorithms.record import FEXT, REDUCE, VV, Axis, Quantity, shape, sizes
from ..jit import kernel as jit
from ..jit.chain import Chain, Link
from ..jit.engine import CPU
from ..jit.kernel import Kernel
from ..model.tree import Coupling, Tree
from .linear import Runs, fold_kernel, inverse_kernel

Axes = dict[str, Sequence[Axis]]
V: tuple[Axis, ...] = ("v",)


def fold_stages(axes: Sequence[Axis]) -> list[list[int]]:
    """The axes "v" of a result that are folded together: the first of all axes, and one more."""
    found = [k for k, axis in enumerate(axes) if axis == "v"]
    if 0 not in found:
        return [[k] for k in found]
    return [found[:2], *([k] for k in found[2:])]


class CoupledCompiler:
    """Makes the kernels of a tree whose joints mimic others.

    of_tree(quantity, given, options): the kernel of the tree with independent joints; kernel(quantity, given): that of
    a quantity of this robot; product(axes): of -A B; digest: identifies the tree.
    """

    def __init__(
        self,
        tree: Tree,
        of_tree: Callable[[Quantity, Sequence[str], dict[str, Any]], Kernel],
        kernel: Callable[[str, Sequence[str]], Kernel],
        product: Callable[[Sequence[Axis]], Kernel],
        digest: str,
        cpu: CPU,
    ) -> None:
        assert tree.coupling is not None
        self.coupling: Coupling = tree.coupling
        self.of_tree, self.kernel, self.product, self.digest, self.cpu = of_tree, kernel, product, digest, cpu
        self.sizes = {**sizes(tree), "tree q": tree.nq}

    def make(self, quantity: Quantity, given: Sequence[str], options: dict[str, Any]) -> Kernel:
        """The kernel of a quantity for these inputs and options."""
        recipe = RECIPES.get(quantity.name)
        return self.folded(quantity, given, options) if recipe is None else recipe(self, quantity, given)

    def chain(self, quantity: Quantity, given: Sequence[str], temporaries: Axes, links: Sequence[Link]) -> Kernel:
        inputs = {name: quantity.input(name).axes for name in given}
        results = {r.name: r.axes for r in quantity.results}
        return Chain(quantity.name, self.cpu, inputs, results, temporaries, links, self.sizes)

    # The tree's own quantities

    def folded(self, quantity: Quantity, given: Sequence[str], options: dict[str, Any]) -> Kernel:
        """Expand the inputs, compute with independent joints, fold the results."""
        temporaries: Axes = {}
        expanded = [i for i in map(quantity.input, given) if i.expands]
        for i in expanded:
            temporaries[f"tree {i.name}"] = ("tree q",) if i.expands == "q" else ("dofs",)
        links = [Link(self.expansion(quantity, expanded), (*(i.name for i in expanded), *temporaries))]
        computed, folds = [], []
        for r in quantity.results:
            name, axes = r.name, [("dofs" if axis == "v" else axis) for axis in r.axes]
            computed.append(f"tree {name}" if "v" in r.axes else name)
            source, stages = f"tree {name}", fold_stages(r.axes)
            for folded in stages:
                temporaries[source] = tuple(axes)
                target = name if folded is stages[-1] else f"{source}, folded"
                folds.append(Link(self.fold(axes, folded), (source, target)))
                axes, source = [("v" if k in folded else axis) for k, axis in enumerate(axes)], target
        read = [f"tree {name}" if f"tree {name}" in temporaries else name for name in given]
        links.append(Link(self.of_tree(quantity, given, options), (*read, *computed)))
        return self.chain(quantity, given, temporaries, [*links, *folds])

    def expansion(self, quantity: Quantity, inputs: Sequence[Any]) -> Kernel:
        """The tree's coordinates and rates from those of the independent joints."""
        shapes = {i.name: shape(i.axes, self.sizes) for i in inputs}
        outputs = [(self.sizes["tree q" if i.expands == "q" else "dofs"],) for i in inputs]

        def function(**arrays: Any) -> list[Any]:
            return [expand(self.coupling, i, arrays[i.name]) for i in inputs]

        key = ("expansion", self.digest, tuple((i.name, i.expands) for i in inputs))
        return jit.compile(function, shapes, key, "mimicking joints", cpu=self.cpu, outputs=outputs)

    def fold(self, axes: Sequence[Axis], folded: Sequence[int]) -> Kernel:
        """The kernel that folds the first axis of a result, another one, or both, from the tree's dofs to "v"."""
        leaders = Runs.of(self.coupling.vi, self.coupling.vs)
        return fold_kernel(shape(axes, self.sizes), folded, leaders, self.sizes["v"], self.cpu)

    # Forward dynamics, by the inverse of the mass matrix

    def inverted(self, quantity: Quantity, given: Sequence[str]) -> Kernel:
        mass = Link(self.kernel("mass_matrix", ["q"]), ("q", "M"))
        return self.chain(
            quantity,
            given,
            {"M": VV},
            [mass, Link(inverse_kernel(self.sizes["v"], self.cpu), ("M", quantity.results[0].name))],
        )

    def accelerated(self, given: Sequence[str], inverse: str, a: str) -> tuple[Axes, list[Link]]:
        """M^-1 and accelerations: temporaries, and links that store them under these names."""
        forces = [x for x in given if x == FEXT.name]
        links = [
            Link(self.kernel("inverse_mass_matrix", ["q"]), ("q", inverse)),
            Link(self.kernel("inverse_dynamics", ["q", "v", "a", *forces]), ("q", "v", "rest", *forces, "bias")),
            Link(self.difference(), ("bias", "tau", "lack")),
            Link(self.product(V), (inverse, "lack", a)),
        ]
        return {"rest": V, "bias": V, "lack": V}, links

    def forward(self, quantity: Quantity, given: Sequence[str]) -> Kernel:
        temporaries, links = self.accelerated(given, "inverse", quantity.results[0].name)
        return self.chain(quantity, given, {**temporaries, "inverse": VV}, links)

    def derivatives(self, quantity: Quantity, given: Sequence[str]) -> Kernel:
        da_dq, da_dv, inverse = (r.name for r in quantity.results)
        temporaries, links = self.accelerated(given, inverse, "a")
        forces = [x for x in given if x == FEXT.name]
        of_torques = self.kernel("inverse_dynamics_derivatives", ["q", "v", "a", *forces])
        links += [
            Link(of_torques, ("q", "v", "a", *forces, "by q", "by v", "by a")),
            Link(self.product(VV), (inverse, "by q", da_dq)),
            Link(self.product(VV), (inverse, "by v", da_dv)),
        ]
        return self.chain(quantity, given, {**temporaries, "a": V, "by q": VV, "by v": VV, "by a": VV}, links)

    def vjp(self, quantity: Quantity, given: Sequence[str], of: str) -> Kernel:
        by_q, by_v, by_tau, *by_fext = (r.name for r in quantity.results)
        temporaries, links = self.accelerated(given, "inverse", "a")
        of_torques = self.kernel(of, [("a" if x == "tau" else x) for x in given])
        read = {"tau": "a", "w": "y"}
        links += [
            Link(self.product(V), ("inverse", "w", "y")),
            Link(of_torques, (*(read.get(x, x) for x in given), by_q, by_v, "by a", *by_fext)),
            Link(self.difference(), ("rest", "y", by_tau)),
        ]
        return self.chain(quantity, given, {**temporaries, "inverse": VV, "a": V, "y": V, "by a": V}, links)

    def jvp(self, quantity: Quantity, given: Sequence[str], of: str) -> Kernel:
        temporaries, links = self.accelerated(given, "inverse", "a")
        renamed = {"tau": "a", "dtau": "da"}
        of_torques = self.kernel(of, [renamed.get(x, x) for x in given])
        read = {"tau": "a", "dtau": "rest"}
        links += [
            Link(of_torques, (*(read.get(x, x) for x in given), "change")),
            Link(self.difference(), ("change", "dtau", "left")),
            Link(self.product(V), ("inverse", "left", quantity.results[0].name)),
        ]
        return self.chain(quantity, given, {**temporaries, "inverse": VV, "a": V, "change": V, "left": V}, links)

    def difference(self) -> Kernel:
        """The kernel of x - y for vectors over degrees of freedom."""
        n = self.sizes["v"]
        return jit.compile(
            lambda x, y: [x - y], {"x": (n,), "y": (n,)}, ("difference", n), "difference", cpu=self.cpu, outputs=[(n,)]
        )


RECIPES: Mapping[str, Callable[[CoupledCompiler, Quantity, Sequence[str]], Kernel]] = {  # `of`: of torques
    "inverse_mass_matrix": CoupledCompiler.inverted,
    "forward_dynamics": CoupledCompiler.forward,
    "forward_dynamics_derivatives": CoupledCompiler.derivatives,
    "forward_dynamics_vjp": partial(CoupledCompiler.vjp, of="inverse_dynamics_vjp"),
    "forward_dynamics_force_vjp": partial(CoupledCompiler.vjp, of="inverse_dynamics_force_vjp"),
    "forward_dynamics_jvp": partial(CoupledCompiler.jvp, of="inverse_dynamics_jvp"),
    "forward_dynamics_force_jvp": partial(CoupledCompiler.jvp, of="inverse_dynamics_force_jvp"),
}


def is_foldable(quantity: Quantity) -> bool:
    """Whether a quantity can be computed by a chain around the code of independent joints."""
    return quantity.rolled and (quantity.mimic == REDUCE or quantity.name in RECIPES)
