"""From LLVM text to object code, on all processors.

llvmlite lets one thread at a time into LLVM. LLVM itself compiles modules of different contexts side by side, so the
calls that take long go past llvmlite's lock: parsing, simplifying and generating code. Should llvmlite hide these
functions one day, they take the lock again.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import llvmlite.binding as llvm
import llvmlite.ir as ir
from llvmlite.binding import ffi

from ..forks import unforked
from .workers import on_all_processors

TOGETHER = 2000  # letters; shorter functions share a module
SHARED = 30_000  # letters of a part that other kernels may have too
_GLOBAL = re.compile(r'@"([^"]+)"')


class ObjectTarget(Protocol):
    """What code is made for; several_objects: whether it may consist of several objects."""

    @property
    def several_objects(self) -> bool: ...

    def machine(self, level: int) -> llvm.TargetMachine:
        """A new target machine; level: how much it optimises."""
        ...


@dataclass(frozen=True)
class ModuleText:
    """The text of an LLVM module, without triple and data layout. Straight-line code needs no simplifying.

    level: of optimisation while generating code. Levels 2 and 3 take a third longer than 1, for code that is as fast;
    0 takes a quarter of the time, for straight-line code that is 5 to 30 % slower.
    """

    text: str
    simplify: bool = True
    level: int = 1


def sources(module: ir.Module, fast_compile: Container[str] = ()) -> Iterator[ModuleText]:
    """A module in parts that compile side by side: one for each long function, longest first.

    fast_compile: functions for which code that compiles fast will do.

    Parts call each other's functions, so none of these stays internal. Functions to be inlined and private tables are
    in every part that uses them.
    """
    inlined: dict[str, str] = {}
    declared: dict[str, str] = {}
    defined: dict[str, str] = {}
    for f in module.functions:
        if "alwaysinline" in f.attributes:
            inlined[f.name] = str(f)
            continue
        kind: Any = f.ftype
        declared[f.name] = f'declare {kind.return_type} @"{f.name}"({", ".join(map(str, kind.args))})'
        if f.blocks:
            f.linkage = ""
            defined[f.name] = str(f)
    parts = [[name] for name, text in sorted(defined.items(), key=lambda x: -len(x[1])) if len(text) > TOGETHER]
    parts.append([name for name, text in defined.items() if len(text) <= TOGETHER])
    variables = [x for x in module.global_values if not isinstance(x, ir.Function)]
    shared = {x.name: str(x) for x in variables if x.linkage == "private"} | inlined
    constants = [str(x) for x in variables if x.linkage != "private"]
    metadata = list(map(str, module.metadata))
    for part in parts:
        own = [defined[name] for name in part] + (constants if part is parts[-1] else [])
        used, left = names_in(own), dict(shared)
        while found := [name for name in left if name in used]:
            own[:0] = texts = [left.pop(name) for name in found]
            used |= names_in(texts)
        others = [text for name, text in declared.items() if name in used and name not in part]
        level = 0 if all(name in fast_compile for name in part) else 1
        yield ModuleText("\n".join([*others, *own, *metadata]), level=level)
    for f in module.functions:  # blocks and instructions refer to each other; freed here, they cost no search later
        for block in f.blocks:
            block.instructions.clear()
        f.blocks.clear()


def names_in(texts: Iterable[str]) -> set[str]:
    """The global names that texts mention."""
    return {name for text in texts for name in _GLOBAL.findall(text)}


def compiled(target: ObjectTarget, parts: Iterable[ModuleText]) -> bytes:
    """Object code of all parts, packed. Parts are compiled while later ones are being written."""
    if not target.several_objects:
        return packed([object_of(target, *parts)])
    return packed(on_all_processors(partial(object_of, target, part) for part in parts))


def packed(objects: Sequence[bytes]) -> bytes:
    """Objects in one block, each after its length."""
    return b"".join(x for code in objects for x in (len(code).to_bytes(8, "little"), code))


def unpacked(block: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(block):
        size = int.from_bytes(block[at : at + 8], "little")
        yield block[at + 8 : at + 8 + size]
        at += 8 + size


def object_of(target: ObjectTarget, *parts: ModuleText) -> bytes:
    """Parts as one object; parts that many kernels share are compiled once."""
    short = sum(len(part.text) for part in parts) <= SHARED
    return (_once if short else _compiled)(target, *parts)


def _compiled(target: ObjectTarget, *parts: ModuleText) -> bytes:
    """Parts as one object, compiled in a context of its own by a target machine of this thread's own."""
    tools = _tools.of(target, min(part.level for part in parts))
    module = tools.read(parts, llvm.create_context())
    error = ctypes.c_char_p()
    buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory", tools.machine, module, 1, ctypes.byref(error))
    if not buffer:
        raise RuntimeError(f"LLVM cannot generate code: {said(error)}")
    try:
        return ctypes.string_at(_short("LLVMPY_GetBufferStart", buffer), _short("LLVMPY_GetBufferSize", buffer))
    finally:
        _short("LLVMPY_DisposeMemoryBuffer", buffer)


def parsed(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    error = ctypes.c_char_p()
    found = _unlocked("LLVMPY_ParseAssembly", context, text.encode(), ctypes.byref(error))
    if not found:
        raise RuntimeError(f"LLVM cannot parse: {said(error)}")
    if _unlocked("LLVMPY_VerifyModule", found, ctypes.byref(error)):
        raise RuntimeError(f"LLVM finds fault with a module: {said(error)}")
    return llvm.ModuleRef(found, context)


def said(error: ctypes.c_char_p) -> str:
    """What LLVM says of an error; the process keeps the text, since there is one at most."""
    return (error.value or b"nothing more").decode(errors="replace")


class Tools:
    """What turns text into code: a target machine, the first lines of each text, and the few passes that pay.

    The graph is simplified already, and the rest of LLVM's usual pipeline gains nothing here, but takes as long as
    generating code.
    """

    def __init__(self, machine: llvm.TargetMachine) -> None:
        self.machine = machine
        self.head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
        self.passes = llvm.create_new_module_pass_manager()
        self.passes.add_always_inliner_pass()
        self.passes.add_sroa_pass()
        self.passes.add_instruction_combine_pass()
        self.passes.add_simplify_cfg_pass()
        self.builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())

    def read(self, parts: Sequence[ModuleText], context: llvm.ContextRef) -> llvm.ModuleRef:
        """Parts of code as one module, simplified."""
        module, *others = modules = [parsed(self.head + part.text, context) for part in parts]
        for x, part in zip(modules, parts, strict=True):
            if part.simplify:
                _unlocked("LLVMPY_RunNewModulePassManager", self.passes, x, self.builder)
        for other in others:
            module.link_in(other)
        return module


class Linker:
    """Joins the code of several entries into one relocatable object."""

    def __init__(self, machine: llvm.TargetMachine) -> None:
        self._tools, self._context = Tools(machine), llvm.create_context()
        self._modules: list[llvm.ModuleRef] = []

    def add(self, parts: Sequence[ModuleText], name: str) -> None:
        """Add code, whose `entry` gets a name of its own."""
        module = self._tools.read(parts, self._context)
        hide(module, {"entry"})
        module.get_function("entry").name = name
        self._modules.append(module)

    def emit(self, text: str, visible: set[str]) -> bytes:
        """The object: the code, and a module that calls it by those names. Only functions in `visible` can be seen."""
        machine, module = self._tools.machine, parsed(self._tools.head + text, self._context)
        for code in self._modules:
            module.link_in(code)
        hide(module, visible)
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._tools.builder)
        return machine.emit_object(module)


def hide(module: llvm.ModuleRef, visible: set[str]) -> None:
    """Make everything that a module defines internal, but for some names."""
    for x in (*module.functions, *module.global_variables):
        if not x.is_declaration and x.name not in visible:
            x.linkage = "internal"


class _Tools(threading.local):
    """The tools of one thread."""

    def __init__(self) -> None:
        self._made: dict[tuple[ObjectTarget, int], Tools] = {}

    def of(self, target: ObjectTarget, level: int) -> Tools:
        if (target, level) not in self._made:
            self._made[target, level] = Tools(target.machine(level))
        return self._made[target, level]


def _unlocked(name: str, *args: Any) -> Any:
    """Call a function of llvmlite's library without the lock around it; the process does not fork meanwhile."""
    function = getattr(ffi.lib, name)
    with unforked:
        return getattr(function, "_cfn", function)(*args)


def _short(name: str, *args: Any) -> Any:
    """Call a function that takes less time than letting other threads run meanwhile, and waiting for them."""
    if name not in _shorts:
        function = getattr(ffi.lib, name)
        raw = getattr(function, "_cfn", None)
        if raw is not None:
            address = ctypes.cast(raw, ctypes.c_void_p).value or 0
            function = ctypes.PYFUNCTYPE(raw.restype, *raw.argtypes)(address)
        _shorts[name] = function
    return _shorts[name](*args)


_shorts: dict[str, Any] = {}
_tools = _Tools()
_once = lru_cache(64)(_compiled)
