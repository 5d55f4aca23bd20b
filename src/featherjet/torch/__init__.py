"""Robots in PyTorch: `fj.torch.wrap(robot)` has the robot's quantities as functions of tensors, with derivatives.

Machine code reads and writes the tensors' own memory. Derivatives are analytic: products with derivatives for
`backward`, matrices for `jacrev` and `jacfwd`, contracted Hessians for second derivatives. docs/frameworks.md has more.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from ..errors import MissingExtra

    raise MissingExtra("fj.torch", "PyTorch", "torch") from error

from .robot import TorchRobot, wrap

__all__ = ["TorchRobot", "wrap"]
