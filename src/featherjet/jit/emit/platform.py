"""Where code runs: in this process, which has memory and a math library; or alone, perhaps with neither."""

from __future__ import annotations

from dataclasses import dataclass

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


def runs_alone(module: ir.Module) -> bool:
    return isinstance(module, CodeModule) and module.alone
