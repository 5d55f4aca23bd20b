"""The memory of ready calls: what users of an evaluator have asked for before goes straight to machine code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

if TYPE_CHECKING:
    from ..jit.direct import Call
    from ..jit.kernel import Kernel
    from ..treejit.stepping import StepCompiler

Array = np.ndarray


class ReadyCalls:
    """Kernels by what is asked of an evaluator: those that it has made, and those that have run.

    A call's key has all that a user chooses besides arrays, and a kernel's key all that selects its code. A memory
    lives as long as its evaluator, and that of some contacts (see `of`) as long as these. Threads share it: what the
    first of several threads enters stays. It holds no lock, so that forked processes go on with what it knows.
    """

    def __init__(self) -> None:
        self.kernels: dict[tuple[Any, ...], Kernel | None] = {}  # None: the reference computes it
        # Direct calls, as kernels had them when they ran last; with frames, which are inputs too. What is called for
        # each state looks here itself, since a further function would take a twentieth of that time.
        self.calls: dict[Hashable, Call] = {}
        self.frame_calls: dict[Hashable, tuple[Call, Array]] = {}
        self._ran: dict[Hashable, Kernel] = {}
        self._steps: dict[Hashable, StepCompiler] = {}  # of contacts: time steps and impacts
        self._of: WeakKeyDictionary[Any, ReadyCalls] = WeakKeyDictionary()

    def kernel_of(self, key: Hashable) -> Kernel | None:
        """The kernel that a call has run before."""
        try:
            return self._ran.get(key)
        except TypeError:  # an option to refuse
            return None

    def remember(self, key: Hashable, kernel: Kernel) -> None:
        """Let a call find the kernel that it has run."""
        self._ran[key], self.calls[key] = kernel, kernel.direct

    def made(self, key: tuple[Any, ...], make: Callable[[], Kernel | None]) -> Kernel | None:
        """The kernel of that key, made when first asked for."""
        try:
            return self.kernels[key]
        except KeyError:
            return self.kernels.setdefault(key, make())

    def steps_made(self, key: Hashable, make: Callable[[], StepCompiler]) -> StepCompiler:
        """The kernels of time steps of that key, made when first asked for."""
        found = self._steps.get(key)
        return found or self._steps.setdefault(key, make())

    def of(self, contacts: Any) -> ReadyCalls:
        """The memory of calls with some contacts, which are data of their code."""
        return self._of.setdefault(contacts, ReadyCalls())

    @property
    def contacts(self) -> int:
        """How many contacts have memories of their own."""
        return len(self._of)


def call_key(name: Any, options: Mapping[str, Any], fext: Any = None, settings: Any = None) -> Hashable:
    """The key of a quantity's call: its name, alone if the call has neither options nor optional inputs."""
    if not options and fext is None and settings is None:
        return name
    return (name, fext is None, settings is None, *options.values())
