"""The machines that code can be exported to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import UnknownName
from ..jit.emit.platform import Platform
from ..jit.engine import CPU, LEVELS, foreign_machine
from ..jit.engine import target as host
from ..jit.number import Number

NATIVE = "native"


@dataclass(frozen=True)
class Machine(CPU):
    """A machine to export to.

    foreign: LLVM's triple; abi: LLVM's name of its calling convention, if not the usual; scalar: whether registers hold
    one number. Rolled code computes with columns in lanes, of which it needs two: LLVM then takes them one by one.
    """

    foreign: str
    abi: str = ""
    scalar: bool = False

    def fitting(self, kind: Number) -> int:
        return self.lanes if self.scalar else super().fitting(kind)

    def machine(self, level: int = 1) -> Any:
        return foreign_machine(self.foreign, level, cpu=self.cpu, features=self.features, abiname=self.abi)

    @property
    def several_objects(self) -> bool:
        return False

    @property
    def platform(self) -> Platform:
        return Platform(self.foreign, alone=True)

    @property
    def pointer_bytes(self) -> int:
        return 4 if self.foreign.startswith(("arm", "thumb", "wasm32")) and not self.foreign.startswith("arm64") else 8


TARGETS: Mapping[str, Machine] = {
    target.name: target
    for target in (
        *(Machine(name, lanes, name, "", "x86_64-unknown-linux-gnu") for name, (lanes, _) in LEVELS.items()),
        Machine("aarch64", 2, "generic", "+neon", "aarch64-unknown-linux-gnu"),
        Machine("riscv64", 2, "generic-rv64", "+m,+a,+f,+d,+c", "riscv64-unknown-linux-gnu", "lp64d", scalar=True),
        Machine("armv7", 2, "cortex-a9", "+neon", "armv7-unknown-linux-gnueabihf"),
        Machine("cortex-m7", 2, "cortex-m7", "", "thumbv7em-none-eabihf", scalar=True),
        Machine("wasm32", 2, "generic", "+simd128", "wasm32-unknown-unknown"),
    )
}


def names() -> tuple[str, ...]:
    return (NATIVE, *TARGETS)


def find(name: str) -> Machine:
    """The target of that name; "native" is this machine as FEATHERJET_CPU describes it."""
    if name == NATIVE:
        return _native(host())
    if name not in TARGETS:
        raise UnknownName("target", name, names())
    return TARGETS[name]


@cache
def _native(cpu: CPU) -> Machine:
    return Machine(NATIVE, cpu.lanes, cpu.cpu, cpu.features, cpu.triple)
