"""The library's internals as the lab uses them: trace and compile any algorithm for one robot, run its reference.

No other module of the lab but `instructions.py` and those in `loops` uses the compiler or the evaluator; exceptions are
`processors`, which counts cores, and `jit.autodiff`, whose statements an experiment counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..algorithms.quantities import quantity as find_quantity
from ..algorithms.scan import Array, Scan
from ..evaluate.crossover import remember as remember_crossovers
from ..evaluate.differentiation import tree_tangent
from ..evaluate.reference import evaluate
from ..jit.engine import NATIVE, Library, target
from ..jit.graph import Expr, TooLong
from ..jit.kernel import compile_straight
from ..jit.objects import ModuleText, compiled
from ..jit.straight import trace
from ..model.model import Model
from ..model.tree import Tree
from .instructions import quantity_instructions

__all__ = [
    "BatchFunction",
    "Symbol",
    "TooLong",
    "TracedCode",
    "count_instructions",
    "cpu_name",
    "instruction_set",
    "lanes",
    "load_function",
    "reference_results",
    "remember_crossovers",
    "tree_tangent",
]

Shape = tuple[int, ...]
BatchFunction = Callable[[Sequence[Array], "tuple[Array, ...] | None"], tuple[Array, ...]]
Symbol = Expr  # the scalar that traced algorithms compute with


class TracedCode:
    """An algorithm written out for one robot as straight-line code: constants folded, dead code removed.

    function(scan, *inputs) -> arrays; `shapes` are the shapes of its inputs, by name. Raises `TooLong` once the trace
    exceeds `limit` operations.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[Array]],
        tree: Tree,
        shapes: dict[str, Shape],
        limit: int | None,
    ) -> None:
        self._name = name
        self._code = trace(lambda **inputs: function(Scan(tree, (), object), *inputs.values()), shapes, limit)
        self.instructions = self._code.instructions

    @property
    def size(self) -> int:
        """Operations to compile, before fusing."""
        return len(self._code.graph.reachable(self._code.roots))

    def operation_counts(self) -> dict[str, int]:
        """How often each operation occurs, by name ("mul", "add", "sin", ...), nothing fused."""
        return dict(self._code.graph.count(self._code.roots))

    def compiled(self) -> BatchFunction:
        """Machine code: call it with the inputs, arrays (B, *shape), and with arrays for the results or None."""
        kernel = compile_straight(lambda: self._code, self._code.digest, self._name)
        return lambda inputs, out=None: kernel(inputs, out, 1)[0]


def instruction_set() -> str:
    """The value of FEATHERJET_CPU that code is made for."""
    return target().name


def cpu_name() -> str:
    """LLVM's name of this machine's CPU."""
    return target(NATIVE).cpu


def lanes() -> int:
    """How many doubles a vector register holds that code is made for."""
    return target().lanes


def count_instructions(model: Model, quantity: str) -> int:
    """Arithmetic instructions per state of the code that a robot gets by default for a quantity."""
    return quantity_instructions(Tree(model), quantity)


def reference_results(model: Model, quantity: str, inputs: Mapping[str, Array], method: str) -> tuple[Array, ...]:
    """A derivative by the NumPy reference, in the precision of the inputs (B, n): float64 or longdouble."""
    return evaluate(Tree(model), find_quantity(quantity), inputs, method=method)


def load_function(text: str, name: str, signature: Any) -> Callable[..., Any]:
    """Compile an LLVM module, a text, and return one of its functions; `signature` is a ctypes function type."""
    cpu = target()
    code = Library(compiled(cpu, [ModuleText(text)]), cpu)
    function = signature(code.address(name))
    function.library = code  # so that the code lives as long as the function
    return function
