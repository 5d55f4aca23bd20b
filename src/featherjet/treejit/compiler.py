"""Compiles the quantities of a tree: rolled code that robots share, or straight-line code for one robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from ..algorithms.quantities import FEXT, QUANTITIES, Quantity, shape, sizes
from ..algorithms.scan import Scan
from ..forks import unforked
from ..jit import kernel as jit
from ..jit.chain import Chain, Link
from ..jit.data import Data
from ..jit.effort import Effort
from ..jit.emit.border import operands_of
from ..jit.engine import CPU, Library, target
from ..jit.fingerprint import fingerprint
from ..jit.kernel import Kernel
from ..jit.library import labelled, library
from ..jit.number import DOUBLE, Number
from ..jit.straight import Function, Straight, shortest
from ..model.configuration import Places
from ..model.tree import Tree
from .choice import CodeChooser, CodeKind
from .coupled import CoupledCompiler
from .linear import product_kernel
from .tables import Tables, unit_parts, variants


class TreeCompiler:
    """Makes the kernels of one tree.

    unroll: True compiles for this robot alone; False shares code among all robots with the same kinds of joints, where
    joints mimic between two maps; None chooses for each quantity. robot: its name, for messages. cpu: what to compile
    for; by default the one FEATHERJET_CPU selects.
    """

    def __init__(
        self, tree: Tree, unroll: bool | None = None, places: Places | None = None, robot: str = "",
        cpu: CPU | None = None,
    ) -> None:  # fmt: skip
        self.tree, self.unroll, self.places, self.robot = tree, unroll, places, robot
        self.target = cpu or target()
        self.chooser = CodeChooser(tree, unroll, places)
        self._tables: dict[Number, Tables] = {}

    def tables(self, kind: Number) -> Tables:
        """The tables that code for a kind of number reads."""
        found = self._tables.get(kind)
        return found or self._tables.setdefault(kind, Tables(self.tree, self.target.fitting(kind), kind))

    def kernel(
        self, quantity: Quantity, given: Sequence[str], options: dict[str, Any], effort: Effort = Effort.FULL
    ) -> Kernel:
        """The kernel of a quantity for these inputs. It watches the margins: flags them, but does not return them.

        effort: what the compiler does for the code.
        """
        kind = self.chooser.choice(quantity).kind
        if kind is CodeKind.CONTACTS:
            with unforked:
                from .held import ContactCompiler

            free = partial(self._free, effort)
            maker = ContactCompiler(self.tree, self.tables, free, self.target, options["contacts"], effort=effort)
            return maker.kernel(quantity, given)
        if kind is CodeKind.CHAIN:
            return self._solved(quantity, given)
        if "method" not in options and kind is not CodeKind.UNROLLED:
            if kind is CodeKind.FOLDED:
                return self._coupled.make(quantity, given, options)
            return self._rolled(quantity, FEXT.name in given, options, effort)
        return self._straight(quantity, given, options, effort.fast_compile)

    def _free(self, effort: Effort, weightless: bool) -> Kernel:
        """The derivatives of forward dynamics with external forces, with or without gravity."""
        record = QUANTITIES["forward_dynamics_derivatives"]
        maker = TreeCompiler(self.tree.weightless(), False, cpu=self.target) if weightless else self
        return maker.kernel(record, [*(i.name for i in record.inputs), FEXT.name], {}, effort)

    def _solved(self, quantity: Quantity, given: Sequence[str]) -> Chain:
        """-M^-1 times another quantity as a chain: accelerations, if it needs them, M^-1, the other, their product."""
        of, inverse, forward = (QUANTITIES[x] for x in (quantity.solves, "inverse_mass_matrix", "forward_dynamics"))
        (result,) = quantity.results
        names = [i.name for i in of.inputs] + [x for x in given if x == FEXT.name and of.forces]
        temporaries: dict[str, Sequence[int | str]] = {"inverse": inverse.results[0].axes, "columns": result.axes}
        links = [
            Link(self.kernel(inverse, ["q"], {}), ("q", "inverse")),
            Link(self.kernel(of, names, {}), (*names, "columns")),
            Link(self._product(result.axes), ("inverse", "columns", result.name)),
        ]
        if "a" in names:
            temporaries["a"] = forward.results[0].axes
            links.insert(0, Link(self.kernel(forward, given, {}), (*given, "a")))
        inputs = {name: quantity.input(name).axes for name in given}
        size = sizes(self.tree)
        return Chain(quantity.name, self.target, inputs, {result.name: result.axes}, temporaries, links, size)

    def _product(self, axes: Sequence[int | str]) -> Kernel:
        """The kernel of -A B, for a square A and for B with these axes."""
        return product_kernel(shape(axes, sizes(self.tree)), self.target)

    @cached_property
    def _coupled(self) -> CoupledCompiler:
        independent = TreeCompiler(self.tree.independent(), self.unroll, robot=self.robot, cpu=self.target)
        return CoupledCompiler(
            self.tree,
            independent.kernel,
            lambda name, given: self.kernel(QUANTITIES[name], given, {}),
            self._product,
            self.tables(DOUBLE).digest,
            self.target,
        )

    def traced(self, quantity: Quantity, given: Sequence[str], **options: Any) -> Straight:
        """The straight-line code of a quantity for these inputs and options."""
        shapes = quantity.input_shapes(given, sizes(self.tree))
        return shortest(self._functions(quantity, options), shapes, None, len(quantity.margins))

    def _functions(self, quantity: Quantity, options: dict[str, Any]) -> list[Function]:
        """A quantity as a function of arrays of scalars; for a small robot, several to choose from."""
        tree = self.chooser.walked(quantity)

        def run(record: Quantity, **arrays: Any) -> list[Any]:
            return record.compute(Scan(tree, (), object), arrays, **options)

        if options or tree.coupling is not None:
            return [partial(run, quantity)]
        return [partial(run, replace(quantity, algorithm=f)) for f in self.chooser.choice(quantity).algorithms]

    def _straight(
        self, quantity: Quantity, given: Sequence[str], options: dict[str, Any], fast_compile: bool
    ) -> Kernel:
        known = tuple((k, fingerprint(x)) for k, x in sorted(options.items()))
        function, *others = self._functions(quantity, options)
        walked = self.chooser.walked(quantity)
        size = sizes(walked, options.get("contacts"))
        if isinstance(walked, Places):
            digest, units = walked.digest, walked.units
        else:
            digest, units = self.tables(DOUBLE).digest, unit_parts(walked)
        return jit.compile(
            function,
            quantity.input_shapes(given, size),
            (quantity.name, digest, tuple(given), known),
            quantity.name,
            cpu=self.target,
            outputs=quantity.result_shapes(size),
            alternatives=others,
            watch=len(quantity.margins),
            units={i.name: units for i in quantity.inputs if i.expands == "q"},
            limit=self.chooser.choice(quantity, bool(options)).longest,
            whose=self.robot,
            fast_compile=fast_compile,
        )

    def _rolled(self, quantity: Quantity, fext: bool, options: dict[str, Any], effort: Effort) -> Kernel:
        tree, cpu, robot = self.tree, self.target, self.robot
        inputs = (*quantity.inputs, *((FEXT,) if fext else ()))

        def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
            kinds, lanes = variants(tree), cpu.fitting(kind)

            def make() -> Any:
                with unforked:
                    from .emit.rolled import emit_rolled
                    from .rolled import trace_rolled

                operands = operands_of({i.name: i.axes for i in inputs}, {r.name: r.axes for r in quantity.results})
                program = trace_rolled(quantity, kinds, fext, options)
                return emit_rolled(program, operands, lanes, cpu.platform, kind, effort)

            chosen = tuple(sorted(options.items()))
            what = "rolled", quantity.name, kinds, fext, chosen, lanes, kind.name, effort.value
            return library(cpu, what, labelled(quantity.name, robot), make), self.tables(kind)

        size = sizes(tree)
        shapes = quantity.input_shapes([i.name for i in inputs], size)
        return Kernel(quantity.name, shapes, quantity.result_shapes(size), load, separate_single=False)
