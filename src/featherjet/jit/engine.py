"""LLVM: from a module's text to machine code in memory, for the CPU this runs on."""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding as llvm
import llvmlite.ir as ir


@cache
def target_machine() -> llvm.TargetMachine:
    """For this CPU; shared, so not to be handed to an engine, which would own and dispose of it."""
    return new_target_machine()


def new_target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )


@cache
def host_lanes() -> int:
    """How many doubles fit a register of this CPU, of those wide enough to be worth it."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2


def compile_module(module: ir.Module, straight: str = "") -> bytes:
    """Optimised object code; `straight` is the text of straight-line functions, where there is nothing to optimise."""
    machine = target_machine()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    if straight:
        parsed.link_in(llvm.parse_assembly(f'target triple = "{module.triple}"\n{straight}'))
    return machine.emit_object(parsed)


class Library:
    """Object code, loaded; it lives as long as this object does."""

    def __init__(self, code: bytes) -> None:
        symbol = "PyLong_FromLongLong"  # of Python itself, which not every system finds by name
        llvm.add_symbol(symbol, ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        return self._engine.get_function_address(name)

    def text(self, name: str) -> str:
        """A text that the code has with it."""
        return ctypes.string_at(self._engine.get_global_value_address(name)).decode()


@cache
def host_name() -> str:
    """What determines machine code, besides its source."""
    import llvmlite

    features = llvm.get_host_cpu_features().flatten()
    return "\n".join(
        [
            llvmlite.__version__,
            str(llvm.llvm_version_info),
            llvm.get_process_triple(),
            llvm.get_host_cpu_name(),
            features,
        ]
    )
