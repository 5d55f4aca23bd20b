"""One relocatable object out of the code of several quantities, in which only the functions for C are visible."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..jit.chain import ChainData
from ..jit.data import Data
from ..jit.emit.workspace import FRAME
from ..jit.engine import Excerpt, Library
from ..jit.objects import Linker
from .assembly import Constants, EntryPoint, wrapper
from .targets import Machine

MANY = 1 << 16  # samples; no code treats more of them at a time
MOST_STEPS = 64  # of the operands of any code


class KernelCode(NamedTuple):
    """The code of a kernel for one kind of number, and the data it reads."""

    library: Library
    data: Data

    @property
    def stages(self) -> list[KernelCode]:
        """The code that a chain calls."""
        return [KernelCode(*stage) for stage in self.data.stages] if isinstance(self.data, ChainData) else []  # type: ignore[arg-type]


class ObjectBuilder:
    """Collects functions for C, and makes an object of them."""

    def __init__(self, target: Machine) -> None:
        self.target = target
        self._linker = Linker(target.machine())
        self._codes: dict[Library, str] = {}  # names of entries
        self._calls: list[tuple[KernelCode, Callable[[str, str], EntryPoint]]] = []

    def add(self, code: KernelCode, call: Callable[[str, str], EntryPoint]) -> None:
        """A function for C: call(name of the entry, name of the data) describes it."""
        for part in (*code.stages, code):
            if part.library not in self._codes:
                name = self._codes[part.library] = f"code{len(self._codes)}"
                self._linker.add(part.library.modules, name)
        self._calls.append((code, call))

    def build(self) -> bytes:
        """The object."""
        constants = Constants(self._codes, self.target.pointer_bytes)
        calls = [call(self._codes[code.library], constants.block(code.data)) for code, call in self._calls]
        declared = [f"declare void @{name}(ptr, ptr, ptr, ptr)" for name in self._codes.values()]
        text = "\n".join([*declared, *constants.lines, *map(wrapper, calls)])
        return self._linker.emit(text, {call.symbol for call in calls})


class WorkspaceQuery:
    """Finds out how much workspace code needs: called without memory, it stores how much it would take, and returns.

    What is called is the same code on this machine, without the functions that come after asking for memory.
    """

    def __init__(self, code: KernelCode) -> None:
        self._stages = [WorkspaceQuery(stage) for stage in code.stages]
        counts = [x if isinstance(x, int) else x.ctypes.data for x in code.data.entries]
        self._block = np.array(counts, np.uint64)
        self._code = Excerpt((part for part in code.library.modules if part.simplify), asks)

    def bytes(self, samples: int, steps: Sequence[int]) -> int:
        """The bytes that the code takes for so many samples, of operands with these steps (see `steps_of`)."""
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(self._code.address("entry"))
        report, frame = np.zeros(1, np.int64), np.zeros(len(FRAME), np.int64)
        frame[0] = report.ctypes.data
        args = np.full(len(steps), frame.ctypes.data, np.uint64)
        dims, by = np.array([samples], np.int64), np.array(steps, np.int64)
        call(*(x.ctypes.data for x in (args, dims, by, self._block)))
        later = max((stage.bytes(samples, [0] * MOST_STEPS) for stage in self._stages), default=0)
        return int(frame[FRAME.index("most")]) + later


def asks(function: str) -> bool:
    """Whether a function, by its name, asks for memory, or calls one that does."""
    return function.partition("_")[0] in ("entry", "samples")
