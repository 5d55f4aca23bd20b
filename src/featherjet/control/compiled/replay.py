"""Steps on arrays that stay where they are, recorded as they are taken, so that they can be taken again at once.

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
    """Takes steps, and keeps nothing."""

    def run(self, kernel: Kernel, *given: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """The results of a kernel, in `out` if given."""
        return kernel.values(*given, out=out)

    def do(self, step: Callable[[], object]) -> None:
        """Call a function of arrays that stay."""
        step()


class Replay(Direct):
    """Takes steps and records them; calling it takes them again, on the same arrays."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def run(self, kernel: Kernel, *given: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        found = kernel.values(*given, out=out)
        fits = AtOnce.fits(kernel, given, found)
        self._steps.append(AtOnce(kernel, given, found) if fits else partial(kernel.values, *given, out=found))
        return found

    def do(self, step: Callable[[], object]) -> None:
        step()  # which may itself take steps that come before it
        self._steps.append(step)

    def __call__(self) -> None:
        for step in self._steps:
            step()


DIRECT = Direct()
