"""Robots in JAX: `fj.jax.wrap(robot)` has the robot's quantities as JAX functions, with all transformations.

Each is machine code that XLA calls directly. Derivatives are analytic: products with derivatives where JAX asks for
products, matrices for jacfwd and jacrev, contracted Hessians for second derivatives. docs/frameworks.md has more.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    from ..errors import MissingExtra

    raise MissingExtra("fj.jax", "JAX", "jax") from error

from .robot import JaxRobot, wrap

__all__ = ["JaxRobot", "wrap"]
