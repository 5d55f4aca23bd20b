"""LLVM: compiles modules to machine code and loads it.

FEATHERJET_CPU chooses the instruction set: `native` (the default) uses everything this CPU has; `x86-64-v2`,
`x86-64-v3` and `x86-64-v4` limit it to SSE4, AVX2 or AVX-512.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ..errors import InputError, UnknownName
from ..forks import Lock
from ..settings import setting
from .emit.platform import Platform
from .number import DOUBLE, Number
from .objects import ModuleText, Tools, parsed, unpacked

VARIABLE = "FEATHERJET_CPU"
NATIVE = "native"

# The levels of the x86-64 psABI: doubles per register, and the features that each level adds to the previous one.
LEVELS: dict[str, tuple[int, tuple[str, ...]]] = {
    "x86-64-v2": (2, ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")),
    "x86-64-v3": (4, ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")),
    "x86-64-v4": (8, ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
}


@dataclass(frozen=True)
class CPU:
    """The CPU to compile for.

    name: the value of FEATHERJET_CPU; lanes: doubles per vector register; cpu, features: LLVM's names.
    """

    name: str
    lanes: int
    cpu: str
    features: str

    def fitting(self, kind: Number) -> int:
        """Numbers of a kind per vector register."""
        return self.lanes * DOUBLE.bytes // kind.bytes

    def machine(self, level: int = 1) -> llvm.TargetMachine:
        """A new target machine that optimises as much as `level` says."""
        return self._machine(cpu=self.cpu, features=self.features, opt=level)

    def loader(self) -> llvm.TargetMachine:
        """A new target machine for an engine, which takes ownership of it, and which only loads code."""
        return self._machine()  # a tenth of the time that the CPU's features take

    def _machine(self, **options: Any) -> llvm.TargetMachine:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # Absolute addresses: LLVM's loader mixes up the offset tables of several objects of position-independent code.
        relocation = "static" if self.several_objects else "pic"
        return llvm.Target.from_default_triple().create_target_machine(reloc=relocation, **options)

    @property
    def several_objects(self) -> bool:
        """Whether code may consist of several objects, which compile side by side."""
        return llvm.get_process_triple().startswith("x86_64")

    @cached_property
    def shared(self) -> llvm.TargetMachine:
        """The target machine of all compilation; never pass it to an engine."""
        return self.machine()

    @property
    def triple(self) -> str:
        return self.shared.triple

    @property
    def platform(self) -> Platform:
        """Where code for this CPU runs."""
        return Platform(self.triple)

    @cached_property
    def text(self) -> str:
        """Everything besides the source that determines machine code: LLVM's version, triple, CPU, features."""
        versions = llvmlite.__version__, str(llvm.llvm_version_info)
        return "\n".join([*versions, llvm.get_process_triple(), self.cpu, self.features])


def target(name: str = "") -> CPU:
    """The CPU that FEATHERJET_CPU selects now, or would select with another value."""
    return _target(name or setting(VARIABLE) or NATIVE)


def foreign_machine(triple: str, level: int, **options: Any) -> llvm.TargetMachine:
    """A new target machine for another system than this; options: LLVM's names of its CPU, features and ABI."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    system = llvm.Target.from_triple(triple)
    return system.create_target_machine(opt=level, reloc="pic", codemodel="default", **options)


def targets() -> tuple[str, ...]:
    """The values of FEATHERJET_CPU that this machine can run."""
    return tuple(name for name in _choices() if not _missing(name))


@cache
def _target(name: str) -> CPU:
    if name not in _choices():
        raise UnknownName(VARIABLE, name, _choices())
    if name == NATIVE:
        return _native()
    missing = _missing(name)
    if missing:
        usable = ", ".join(targets())
        raise InputError(f"{VARIABLE}={name}: this CPU lacks {', '.join(missing)}; it can run: {usable}")
    return CPU(name, LEVELS[name][0], name, "")


def _native() -> CPU:
    features = llvm.get_host_cpu_features()
    lanes = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    return CPU(NATIVE, lanes, llvm.get_host_cpu_name(), features.flatten())


def _choices() -> tuple[str, ...]:
    return (NATIVE, *LEVELS) if llvm.get_process_triple().startswith("x86_64") else (NATIVE,)


def _missing(name: str) -> list[str]:
    """The features of a level that this CPU lacks."""
    if name == NATIVE:
        return []
    has = llvm.get_host_cpu_features()
    needed: list[str] = []
    for level, (_, features) in LEVELS.items():
        needed += features
        if level == name:
            break
    return [feature for feature in needed if not has.get(feature)]


class Library:
    """Machine code, for whoever needs its addresses. It is loaded on first use, and stays as long as this object lives.

    code: the object code, or what finds it. modules: the LLVM modules of code that runs elsewhere and is never loaded.
    """

    def __init__(self, code: bytes | Callable[[], bytes], target: CPU, modules: Iterable[ModuleText] = ()) -> None:
        self.target, self.modules = target, tuple(modules)
        self._code, self._lock = code, Lock()
        self._engine: llvm.ExecutionEngine | None = None

    @property
    def loaded(self) -> bool:
        return self._engine is not None

    def load(self, code: bytes | None = None) -> llvm.ExecutionEngine:
        """The engine that holds the code; the first of several threads loads it. code: what `code` would find."""
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    found = code or self._code
                    self._engine = self._engine_of(found if isinstance(found, bytes) else found())
                    self._code = b""
        return self._engine

    def _engine_of(self, code: bytes) -> llvm.ExecutionEngine:
        symbol = "PyLong_FromLongLong"  # part of Python itself; not every system finds it by name
        llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target.loader())
        parts = list(unpacked(code))  # LLVM reads them until the end of finalize_object
        for part in parts:
            engine.add_object_file(llvm.ObjectFileRef.from_data(part))
        engine.finalize_object()
        return engine

    def address(self, name: str) -> int:
        """The address of a function."""
        return self.load().get_function_address(name)

    def variable(self, name: str) -> int:
        """The address of a variable."""
        return self.load().get_global_value_address(name)

    def number(self, name: str) -> int:
        """An integer constant of the code."""
        return ctypes.c_int64.from_address(self.variable(name)).value

    def text(self, name: str) -> str:
        """A string constant of the code."""
        return ctypes.string_at(self.variable(name)).decode()


class Excerpt(Library):
    """Those modules of some code that have a function that is `wanted`, by its name, loaded unoptimised for this
    machine. What they call in other modules does nothing.
    """

    def __init__(self, parts: Iterable[ModuleText], wanted: Callable[[str], bool]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
        head, context = Tools(machine).head, llvm.create_context()
        read = (parsed(head + part.text, context) for part in parts)
        first, *others = [m for m in read if any(not f.is_declaration and wanted(f.name) for f in m.functions)]
        for other in others:
            first.link_in(other)
        missing = [f.name for f in first.functions if f.is_declaration and not f.name.startswith("llvm.")]
        stubs = "\n".join(f'define void @"{name}"(ptr %m) {{ ret void }}' for name in missing)
        first.link_in(parsed(head + stubs, context))
        super().__init__(b"", target())
        self._engine = llvm.create_mcjit_compiler(first, machine)
        self._engine.finalize_object()
