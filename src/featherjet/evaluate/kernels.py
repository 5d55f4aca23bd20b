"""The kernels of one robot's quantities: which one computes a quantity, if any, made when first asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

from ..algorithms.contacts.scene import ContactSet
from ..algorithms.derivatives import methods
from ..algorithms.quantities import QUANTITIES, Quantity
from ..forks import unforked
from ..jit.effort import Effort
from ..jit.fingerprint import Fingerprints
from ..jit.graph import TooLong
from ..model.configuration import Places
from ..model.model import Array, Model
from ..model.tree import Tree
from .crossover import aza_from
from .inputs import InputChecks
from .ready import ReadyCalls

if TYPE_CHECKING:
    from ..jit.kernel import Kernel
    from ..treejit.choice import CodeChoice
    from ..treejit.compiler import TreeCompiler
    from ..treejit.stepping import StepCompiler

MOST_ENTRIES = 1_000_000  # of the results of a quantity of configurations that is compiled
_log = logging.getLogger("featherjet")


class QuantityKernels:
    """Finds or makes the kernels of a robot's quantities; None where NumPy must compute.

    backend: "compiled" or "numpy", which has none. unroll: see TreeCompiler. ready: where kernels are remembered.
    """

    def __init__(
        self, model: Model, tree: Tree, inputs: InputChecks, backend: str, unroll: bool | None, ready: ReadyCalls
    ) -> None:
        self.model, self.tree, self.places, self._sizes = model, tree, Places(inputs.space), inputs.sizes()
        self.backend, self.unroll, self.ready = backend, unroll, ready
        self._fingerprint = Fingerprints()
        self._slow: set[str] = set()  # quantities that the reference computes, as the log has said

    @cached_property
    def compiler(self) -> TreeCompiler:
        with unforked:
            from ..treejit.compiler import TreeCompiler

        return TreeCompiler(self.tree, self.unroll, self.places, self.model.name)

    def choice(self, record: Quantity) -> CodeChoice:
        """Which algorithm the compiler takes for a quantity, and how it compiles it."""
        return self.compiler.chooser.choice(record)

    def computing(self, record: Quantity) -> Quantity:
        """The quantity whose code gives another one: itself, or the one that gives it row by row."""
        if not record.contracted or self.backend == "numpy" or self.choice(record).fast:
            return record
        return QUANTITIES[record.contracted]

    def gave_up(self, record: Quantity) -> bool:
        """Whether a quantity has turned out to be too long to compile."""
        return any(
            key[0] is record and kernel is None and not any(isinstance(x, tuple) and x[0] == "method" for x in key)
            for key, kernel in list(self.ready.kernels.items())
        )

    def key(self, record: Quantity, names: Sequence[str], options: Mapping[str, Any]) -> tuple:
        """What selects a kernel; equal for equal options."""
        return (record, *names, *((k, self._fingerprint(x)) for k, x in sorted(options.items())))

    def kernel(self, record: Quantity, names: Sequence[str], options: dict[str, Any], effort: Effort) -> Kernel | None:
        """The kernel of a quantity for these inputs, or None if the reference must compute it.

        None on the numpy backend, for methods that are not compiled, and for quantities that have more operations than
        their record allows, or too many entries, and would take too long to compile.
        """
        if self.backend != "compiled":
            return None
        if record.of_space and sum(map(prod, record.result_shapes(self._sizes))) > MOST_ENTRIES:
            self._warn_slow(record, f"{MOST_ENTRIES} entries")
            return None
        make = partial(self._made, record, names, options, effort)
        if "contacts" in options and self.choice(record).holds:
            return self.ready.of(options["contacts"]).made((record, *names, effort), make)
        return self.ready.made((*self.key(record, names, options), effort), make)

    def steps(self, contacts: ContactSet, stops: tuple[int, ...] = (), balanced: bool = False) -> StepCompiler:
        """What makes the kernels of time steps and impacts with these feet; see `treejit.stepping.StepCompiler`."""

        def make() -> StepCompiler:
            with unforked:
                from ..treejit.stepping import StepCompiler

            record = QUANTITIES["integrate"]
            integrate = self.kernel(record, [i.name for i in record.inputs], {}, Effort.FULL)
            assert integrate is not None
            tables, cpu = self.compiler.tables, self.compiler.target
            return StepCompiler(self.tree, tables, integrate, cpu, contacts, stops, balanced)

        return self.ready.of(contacts).steps_made((stops, balanced), make)

    def _made(self, record: Quantity, names: Sequence[str], options: dict[str, Any], effort: Effort) -> Kernel | None:
        method = options.get("method")
        if method and not record.methods[method].traced:
            return None
        kernel = self.compiler.kernel(record, names, options, effort)
        kernel.in_double = not self.model.modest
        return kernel

    def give_up(self, record: Quantity, names: Sequence[str], options: Mapping[str, Any]) -> None:
        """Let the reference compute a quantity from now on, since its code is too long."""
        self.ready.kernels[(*self.key(record, names, options), Effort.FULL)] = None
        self._warn_slow(record, f"{record.longest} operations")

    def _warn_slow(self, record: Quantity, much: str) -> None:
        """Log, once for each quantity, that the reference computes it because compiling would take too long."""
        if record.name not in self._slow:
            self._slow.add(record.name)
            text = "%s of robot %r has more than %s, too many to compile: NumPy computes it, slowly"
            _log.warning(text, record.name, self.model.name, much)

    def prepare(self, record: Quantity, names: Sequence[str], options: dict[str, Any]) -> None:
        """Compile a quantity's code for one state and for batches of doubles, if it has any."""
        kernel = self.kernel(record, names, options, Effort.FULL)
        try:
            if kernel is not None:
                _ = kernel.batch, kernel.single  # loads them
        except TooLong:
            self.give_up(record, names, options)

    def bound(
        self, record: Quantity, options: Mapping[str, Any], inputs: Mapping[str, Array], results: Sequence[Array]
    ) -> Callable[[], int] | None:
        """() -> flags: machine code for one state of doubles in these arrays; None if there is none."""
        options = self.with_method(record, dict(options))
        kernel = self.kernel(record, tuple(inputs), options, Effort.FULL)
        try:
            return None if kernel is None else kernel.bound(*inputs.values(), *results)
        except TooLong:
            self.give_up(record, tuple(inputs), options)
            return None

    def with_method(self, record: Quantity, options: dict[str, Any]) -> dict[str, Any]:
        """Options without a method that is the default anyway, or with the one that suits the robot's size."""
        if "method" not in options:
            return options
        method = options["method"]
        found = methods.find(record.name, method, self.tree.coupling is not None)
        if found.sized:
            method = found.sized[self.tree.nv >= aza_from(self.backend)]
            found = record.methods[method]
        rest = {k: x for k, x in options.items() if k != "method"}
        if method == "auto" or (self.backend == "compiled" and self.choice(record).algorithms == (found.function,)):
            return rest
        return {**rest, "method": method}
