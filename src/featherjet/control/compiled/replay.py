"""Records the steps of an evaluation, calls of code on arrays that stay where they are, to run them again.

An iteration of a solver evaluates the same horizon at other numbers: dozens of short calls, whose way through Python
would take as long as the code they run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...arrays import Array
from ...jit.kernel import Kernel
from ...jit.sequence import AtOnce


class Direct:
    """Runs steps of an evaluation as they come, and keeps nothing."""

    def run(self, kernel: Kernel, *inputs: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """The results of a kernel, in `out` if given."""
        return kernel.values(*inputs, out=out)

    def do(self, step: Callable[[], object]) -> None:
        """Call a function of arrays that stay."""
        step()


class Replay(Direct):
    """Runs steps of an evaluation and records them; calling it runs them again, on the same arrays."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def run(self, kernel: Kernel, *inputs: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        results = kernel.values(*inputs, out=out)
        fits = AtOnce.fits(kernel, inputs, results)
        self._steps.append(AtOnce(kernel, inputs, results) if fits else partial(kernel.values, *inputs, out=results))
        return results

    def do(self, step: Callable[[], object]) -> None:
        step()  # which may itself take steps that come before it
        self._steps.append(step)

    def __call__(self) -> None:
        for step in self._steps:
            step()


DIRECT = Direct()
