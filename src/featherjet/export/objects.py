"""One relocatable object out of the code of several quantities, in which only the functions for C are visible."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from ..jit.chain import ChainData
from ..jit.data import Data
from ..jit.emit.workspace import FRAME
from ..jit.engine import Library
from ..jit.objects import parsed, simplify
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
        self.target, self.machine = target, target.machine()
        self._context = llvm.create_context()
        self._codes: dict[int, str] = {}  # names of entries, by id of libraries
        self._modules: list[llvm.ModuleRef] = []
        self._calls: list[tuple[KernelCode, Callable[[str, str], EntryPoint]]] = []
        self._keep: list[Library] = []

    def add(self, code: KernelCode, call: Callable[[str, str], EntryPoint]) -> None:
        """A function for C: call(name of the entry, name of the data) describes it."""
        for part in (*code.stages, code):
            self._add_code(part.library)
        self._calls.append((code, call))

    def _add_code(self, library: Library) -> None:
        if id(library) in self._codes:
            return
        name = f"code{len(self._codes)}"
        self._codes[id(library)] = name
        self._keep.append(library)
        linked = self._linked(library)
        hide(linked, {"entry"})
        linked.get_function("entry").name = name
        self._modules.append(linked)

    def _linked(self, library: Library) -> llvm.ModuleRef:
        head = self._head()
        first, *others = [parsed(head + part.text, self._context) for part in library.modules]
        for module, part in zip((first, *others), library.modules, strict=True):
            if part.simplify:
                simplify(module, self.machine)
        for other in others:
            first.link_in(other)
        return first

    def _head(self) -> str:
        return f'target triple = "{self.machine.triple}"\ntarget datalayout = "{self.machine.target_data}"\n'

    def build(self) -> bytes:
        """The object."""
        constants = Constants(self._codes, self.target.pointer_bytes)
        calls = [call(self._codes[id(code.library)], constants.block(code.data)) for code, call in self._calls]
        declared = [f"declare void @{name}(ptr, ptr, ptr, ptr)" for name in self._codes.values()]
        text = "\n".join([self._head(), *declared, *constants.lines, *map(wrapper, calls)])
        module = parsed(text, self._context)
        for code in self._modules:
            module.link_in(code)
        hide(module, {call.symbol for call in calls})
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, llvm.create_pass_builder(self.machine, llvm.create_pipeline_tuning_options()))
        return self.machine.emit_object(module)


def hide(module: llvm.ModuleRef, visible: set[str]) -> None:
    """Make everything that a module defines internal, but for some names."""
    for x in (*module.functions, *module.global_variables):
        if not x.is_declaration and x.name not in visible:
            x.linkage = "internal"


class Asked:
    """Tells how much workspace code needs: called without memory, it says how much it would take, and returns.

    What is called is the same code on this machine, without the functions that come after asking for memory.
    """

    def __init__(self, code: KernelCode) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
        self._stages = [Asked(stage) for stage in code.stages]
        counts = [x if isinstance(x, int) else x.ctypes.data for x in code.data.entries]
        self._block = np.array(counts, np.uint64)
        context = llvm.create_context()
        head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
        read = (parsed(head + part.text, context) for part in code.library.modules if part.simplify)
        first, *others = [module for module in read if any(asks(f) for f in module.functions)]
        for other in others:
            first.link_in(other)
        missing = [f.name for f in first.functions if f.is_declaration and not f.name.startswith("llvm.")]
        stubs = "\n".join(f'define void @"{name}"(ptr %m) {{ ret void }}' for name in missing)
        first.link_in(parsed(head + stubs, context))
        self._engine = llvm.create_mcjit_compiler(first, machine)
        self._engine.finalize_object()

    def bytes(self, samples: int, steps: Sequence[int]) -> int:
        """For so many samples of operands with these steps (see `steps_of`)."""
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(self._engine.get_function_address("entry"))
        report, frame = np.zeros(1, np.int64), np.zeros(len(FRAME), np.int64)
        frame[0] = report.ctypes.data
        args = np.full(len(steps), frame.ctypes.data, np.uint64)
        dims, by = np.array([samples], np.int64), np.array(steps, np.int64)
        call(*(x.ctypes.data for x in (args, dims, by, self._block)))
        later = max((stage.bytes(samples, [0] * MOST_STEPS) for stage in self._stages), default=0)
        return int(frame[FRAME.index("most")]) + later


def asks(f: llvm.ValueRef) -> bool:
    """Whether a function asks for memory, or calls one that does."""
    return not f.is_declaration and f.name.partition("_")[0] in ("entry", "samples")
