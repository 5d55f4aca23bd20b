"""A robot's quantities as JAX functions."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..bridges.robots import Selection
from ..bridges.wrapped import NONE, WrappedRobot
from ..errors import InputError
from ..evaluate.evaluator import HasEvaluator
from .primitive import call


def wrap(robot: HasEvaluator, *, strict: bool = False) -> JaxRobot:
    """A robot's quantities as JAX functions; see JaxRobot."""
    return JaxRobot(robot, strict=strict)


class JaxRobot(WrappedRobot):
    """A robot's quantities as JAX functions of arrays q (..., nq), v, a, tau (..., nv), whose leading axes broadcast.

    They work with jit, vmap, jvp, grad, jacfwd, jacrev, hessian, scan, checkpoint, export and sharded arrays, in single
    and double precision (jax_enable_x64). q is any array of numbers: its quaternions are normalised inside, and
    derivatives by its entries are those of f(q / |q|). Inputs that are not finite give results that are not; with
    strict=True they raise, and so do quaternions that are not of norm one, and singular mass matrices.
    """

    def __init__(self, robot: HasEvaluator, *, strict: bool = False) -> None:
        super().__init__(robot, "fj.jax")
        self.strict = bool(strict)

    def call(self, name: str, *given: Any, selection: Selection = NONE) -> list[Any]:
        f = self.function(name, selection)
        for p, core, x in zip(f.record.inputs, f.inputs, given, strict=True):
            shape = np.shape(x)
            if shape[max(len(shape) - len(core), 0) :] != core:
                raise InputError(f"{p.name}: expected shape (..., {', '.join(map(str, core))}), got {tuple(shape)}")
            check_precision(p.name, x)
        return call(f, given, self.strict)

    def neutral(self) -> jnp.ndarray:
        """The configuration of no displacement, (nq,)."""
        places = self._functions.evaluator.places.nodes
        return jnp.asarray(np.concatenate([x.manifold.neutral() for x in places]))

    def normalised(self, q: Any) -> jnp.ndarray:
        """q with quaternions and cosine-sine pairs of norm one."""
        check_precision("q", q)
        return self._functions.ambient.normalised(jnp, jnp.asarray(q))


def check_precision(name: str, x: Any) -> None:
    """Raise for arrays of complex numbers, truth values, or fewer digits than single precision."""
    dtype = x.dtype if hasattr(x, "dtype") else jnp.result_type(x)
    if dtype not in (jnp.float32, jnp.float64) and not jnp.issubdtype(dtype, jnp.integer):
        raise InputError(f"{name}: expected float32 or float64, got {dtype}; convert it with .astype(...)")
