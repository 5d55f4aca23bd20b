"""Where code runs: in this process, which has memory and a math library; or alone, perhaps with neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir


@dataclass(frozen=True)
class Platform:
    """What code is made for: LLVM's triple, and whether the code runs alone."""

    triple: str
    alone: bool = False

    def module(self, name: str) -> CodeModule:
        return CodeModule(name, self)


class CodeModule(ir.Module):
    """A module of code for a platform."""

    def __init__(self, name: str, platform: Platform) -> None:
        super().__init__(name)
        self.triple, self.alone = platform.triple, platform.alone


def variable(module: ir.Module, name: str, value: ir.Constant, private: bool = False, fixed: bool = True) -> Any:
    """A variable of a module, or a constant if `fixed`."""
    made: Any = ir.GlobalVariable(module, value.type, name)
    made.initializer, made.global_constant = value, fixed
    if private:
        made.linkage = "private"
    return made


def integers(numbers: Sequence[int]) -> ir.Constant:
    """A table of integers."""
    return ir.Constant(ir.ArrayType(ir.IntType(64), len(numbers)), list(numbers))


def letters(text: str) -> ir.Constant:
    """A string that C reads."""
    found = bytearray(text.encode() + b"\0")
    return ir.Constant(ir.ArrayType(ir.IntType(8), len(found)), found)


def runs_alone(module: ir.Module) -> bool:
    return isinstance(module, CodeModule) and module.alone
