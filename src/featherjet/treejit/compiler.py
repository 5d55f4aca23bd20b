"""Compiles the quantities of a tree: rolled code that robots share, or straight-line code for one robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..algorithms.quantities import FEXT, QUANTITIES, Quantity, sizes
from ..algorithms.scan import Scan
from ..forks import unforked
from ..jit import kernel as jit
from ..jit.data import Data
from ..jit.emit.border import Operand
from ..jit.engine import Library, target
from ..jit.fingerprint import fingerprint
from ..jit.kernel import Kernel
from ..jit.library import labelled, library
from ..jit.number import DOUBLE, Number
from ..jit.straight import Function, Straight, shortest
from ..model.configuration import Places
from ..model.tree import Tree
from .tables import Tables, unit_parts, variants

COMPARED = 12_000  # operations; below this, tracing several algorithms takes no noticeable time
UNROLLED, UNROLLED_VECTORS = 32_000, 8_000  # most operations to compile for one robot: with matrices, without


class TreeCompiler:
    """Makes the kernels of one tree.

    unroll: True compiles for this robot alone; False shares code among all robots with the same kinds of joints (never
    with mimicking joints); None chooses for each quantity. robot: its name, for messages.
    """

    def __init__(self, tree: Tree, unroll: bool | None = None, places: Places | None = None, robot: str = "") -> None:
        self.tree, self.unroll, self.places, self.robot = tree, unroll, places, robot
        self.target = target()
        self._tables: dict[Number, Tables] = {}

    def tables(self, kind: Number) -> Tables:
        """The tables that code for a kind of number reads."""
        found = self._tables.get(kind)
        return found or self._tables.setdefault(kind, Tables(self.tree, self.target.fitting(kind), kind))

    def kernel(self, quantity: Quantity, given: Sequence[str], options: dict[str, Any]) -> Kernel:
        """The kernel of a quantity for these inputs. It watches the margins: flags them, but does not return them."""
        if self.holds(quantity):
            with unforked:
                from .held import ContactCompiler

            maker = ContactCompiler(self.tree, self.tables, self._free, self.target, options["contacts"])
            return maker.kernel(quantity, given)
        if quantity.rolled and not options and not self.unrolls(quantity):
            return self._rolled(quantity, FEXT.name in given)
        return self._straight(quantity, given, options)

    def holds(self, quantity: Quantity) -> bool:
        """Whether a quantity has contacts and its code takes them as data."""
        return quantity.held is not None and self.tree.coupling is None

    def _free(self, weightless: bool) -> Kernel:
        """The derivatives of forward dynamics with external forces, with or without gravity."""
        record = QUANTITIES["forward_dynamics_derivatives"]
        maker = TreeCompiler(self.tree.weightless(), False) if weightless else self
        return maker.kernel(record, [*(i.name for i in record.inputs), FEXT.name], {})

    def unrolls(self, quantity: Quantity) -> bool:
        """Whether to compile for this robot alone, which must be quick to compile and faster to run.

        Rolled code computes matrices with columns in lanes, some of them idle; in unrolled code all lanes are samples.
        Vectors have samples in lanes either way, so unrolling only folds constants.
        """
        if self.tree.coupling is not None or not quantity.rolled or quantity.cost is None:
            return True
        if self.unroll is not None:
            return self.unroll
        return quantity.cost.of(self.tree) <= (UNROLLED if quantity.tables else UNROLLED_VECTORS)

    def _walked(self, quantity: Quantity) -> Any:
        """What a quantity's algorithm walks: the Tree, or Places."""
        return self.places if quantity.of_space and self.places else self.tree

    def short(self, quantity: Quantity) -> bool:
        """Whether straight-line code for this robot is quick to compile."""
        return quantity.cost is not None and quantity.cost.of(self.tree) <= UNROLLED

    def traced(self, quantity: Quantity, given: Sequence[str]) -> Straight:
        """The straight-line code of a quantity without options, for these inputs."""
        first, *others = self._functions(quantity, {})
        shapes = quantity.input_shapes(given, sizes(self.tree))
        return shortest((first, *others), shapes, None, len(quantity.margins))

    def _functions(self, quantity: Quantity, options: dict[str, Any]) -> list[Function]:
        """A quantity as a function of arrays of scalars; for a small robot, its alternatives follow."""
        tree = self._walked(quantity)

        def run(record: Quantity, **arrays: Any) -> list[Any]:
            return record.compute(Scan(tree, (), object), arrays, **options)

        found: list[Function] = [partial(run, quantity)]
        if tree.coupling is None and quantity.cost is not None and quantity.cost.of(tree) <= COMPARED and not options:
            found += [partial(run, replace(quantity, algorithm=f)) for f in quantity.alternatives]
        return found

    def _straight(self, quantity: Quantity, given: Sequence[str], options: dict[str, Any]) -> Kernel:
        known = tuple((k, fingerprint(x)) for k, x in sorted(options.items()))
        function, *others = self._functions(quantity, options)
        walked = self._walked(quantity)
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
            limit=None if quantity.cost is not None and not options else quantity.longest,
            whose=self.robot,
        )

    def _rolled(self, quantity: Quantity, fext: bool) -> Kernel:
        tree, cpu, robot = self.tree, self.target, self.robot
        inputs = (*quantity.inputs, *((FEXT,) if fext else ()))

        def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
            kinds, lanes = variants(tree), cpu.fitting(kind)

            def make() -> Any:
                with unforked:
                    from .emit.rolled import emit_rolled
                    from .rolled import trace_rolled

                operands = [Operand("report", ()), *(Operand(i.name, i.axes) for i in inputs)]
                operands += [Operand(r.name, r.axes, True) for r in quantity.results]
                program = trace_rolled(quantity, kinds, fext)
                return emit_rolled(program, operands, lanes, cpu.triple, kind)

            what = "rolled", quantity.name, kinds, fext, lanes, kind.name
            return library(cpu, what, labelled(quantity.name, robot), make), self.tables(kind)

        size = sizes(tree)
        shapes = quantity.input_shapes([i.name for i in inputs], size)
        return Kernel(quantity.name, shapes, quantity.result_shapes(size), load, separate_single=False)
