"""Kernels of quantities with contacts, whose held frames are data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..algorithms.contacts.scene import ContactSet
from ..algorithms.record import VV, Axis, Quantity, shape, sizes
from ..forks import unforked
from ..jit.chain import Chain, Link
from ..jit.data import Data
from ..jit.effort import Effort
from ..jit.emit.border import operands_of
from ..jit.emit.lanes import LINE
from ..jit.engine import CPU, Library
from ..jit.kernel import Kernel
from ..jit.library import library
from ..jit.number import Number
from ..jit.objects import sources
from ..model.tree import Tree
from .contact_tables import ContactTables, Layout
from .contacts import trace_contacts
from .tables import Tables, variants

Axes = Mapping[str, Sequence[Axis]]
WASTE = 0.85  # half vectors cost a tenth more for each column, but cross fewer cache lines
MANY_ROWS, FEW_ROWS = 6, 4  # rows that are corrected together, with 32 vector registers and with 16
ENTRY_OF_ONE, ENTRY_OF_TWO = 12, 24  # numbers of `grips.entry`: if the world holds all contacts, or also other bodies


def fitting_columns(lanes: int, kind: Number, columns: int) -> int:
    """Lanes for rows of so many columns: half of the widest if these would leave much more of the last vector empty."""
    wide, half = (-(-columns // n) * n for n in (lanes, lanes // 2))
    return lanes // 2 if lanes * kind.bytes == LINE and half < WASTE * wide else lanes


class ContactProgram(NamedTuple):
    """An algorithm of `grips` as a program: its inputs and results with their axes, and whether M has margins."""

    name: str
    algorithm: Callable[..., Any]
    inputs: Axes
    results: Axes
    margins: bool


class ContactCompiler:
    """Makes the kernels of one tree with one set of contacts.

    tables(kind): the tree's tables for a kind of number; free(weightless): the derivatives of its forward dynamics with
    external forces, with or without gravity.
    """

    def __init__(
        self,
        tree: Tree,
        tables: Callable[[Number], Tables],
        free: Callable[[bool], Kernel],
        cpu: CPU,
        contacts: ContactSet,
        stops: Sequence[int] = (),
        effort: Effort = Effort.FULL,
    ) -> None:
        self.tree, self.free, self.cpu, self.use = tree, free, cpu, effort
        layout = Layout(tree, contacts, stops)  # kernels keep this, not the contacts, whose end is theirs
        self.data = cache(lambda kind: ContactTables(tables(kind), layout))
        self.closed, self.sizes = layout.closed, sizes(tree, contacts) | layout.counts

    def kernel(self, quantity: Quantity, given: Sequence[str]) -> Kernel:
        """The kernel of a quantity for these inputs."""
        assert quantity.contact_walk is not None
        inputs = {name: quantity.input(name).axes for name in given}
        results = {r.name: r.axes for r in quantity.results}
        if quantity.base is not None:
            return self.chain(quantity, inputs, results)
        return self.rolled(
            ContactProgram(quantity.name, quantity.contact_walk, inputs, results, bool(quantity.margins))
        )

    def chain(self, quantity: Quantity, inputs: Axes, results: Axes) -> Kernel:
        """Derivatives in three stages: what contacts add, forward dynamics with the contact forces, and both together.

        Impulses make a robot jump as forces accelerate it at rest, without gravity.
        """
        assert quantity.contact_walk is not None
        size = ENTRY_OF_TWO if self.closed else ENTRY_OF_ONE
        slopes: Axes = {"on bodies": ("joints", 6), "entries": ("entries", size), "factor": ("factor",)}
        stage = ContactProgram(quantity.name, quantity.contact_walk, inputs, slopes, True)
        square, wide = [k for k, x in results.items() if x == VV], [k for k, x in results.items() if x != VV]
        if impulsive := "tau" not in quantity.by:
            square, wide = [*square, "inverse"], [*wide, "by torque"]
        spare: Axes = {"rest": ("v",), "inverse": VV, "by torque": ("rows", "v")} if impulsive else {}
        v, tau = ("rest", "rest") if impulsive else ("v", "tau")
        links = (
            Link(self.rolled(stage), (*inputs, *slopes)),
            Link(self.free(impulsive), ("q", v, tau, "on bodies", *square)),
            Link(self.correction(size), (*square, "entries", "factor", *wide)),
        )
        return Chain(quantity.name, self.cpu, inputs, results, {**slopes, **spare}, links, self.sizes)

    def correction(self, size: int) -> Kernel:
        """The kernel that makes derivatives with contacts of those without."""

        def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
            cpu, lanes = self.cpu, fitting_columns(self.cpu.fitting(kind), kind, self.sizes["v"])
            rows = MANY_ROWS if cpu.fitting(kind) * kind.bytes == LINE else FEW_ROWS

            def make() -> Any:
                with unforked:
                    from .emit.correction import emit_correction

                return sources(emit_correction(lanes, rows, size, cpu.platform, kind))

            what = "correction", size, lanes, rows, kind.name
            return library(cpu, what, "derivatives with contacts", make), self.data(kind)

        return Kernel("correction", {}, [], load, separate_single=False)

    def called(self, stage: str) -> str:
        """What messages call the code of a stage."""
        return stage

    def rolled(self, stage: ContactProgram) -> Kernel:
        """The kernel of a program that walks over bodies and contacts."""
        cpu, closed, kinds, effort = self.cpu, self.closed, variants(self.tree), self.use

        def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
            lanes = cpu.fitting(kind)

            def make() -> Any:
                with unforked:
                    from .emit.rolled import emit_rolled

                operands = operands_of(stage.inputs, stage.results)
                program = trace_contacts(stage.algorithm, list(stage.inputs), kinds, closed, stage.margins)
                return emit_rolled(program, operands, lanes, cpu.platform, kind, effort)

            what = "held", stage.name, kinds, tuple(stage.inputs), closed, lanes, kind.name, effort.value
            return library(cpu, what, self.called(stage.name), make), self.data(kind)

        shapes, results = ({k: shape(x, self.sizes) for k, x in side.items()} for side in (stage.inputs, stage.results))
        return Kernel(stage.name, shapes, list(results.values()), load, separate_single=False)
