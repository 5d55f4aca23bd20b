"""Compiled code of problems: traced functions, found again on disk by the sources that trace them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ..jit.engine import target
from ..jit.kernel import Kernel
from ..jit.kernel import compile as compile_kernel
from ..jit.straight import Function, Shape

TRACED = (
    "activations", "bending", "code", "frame_curvature", "grip_curvature", "integrators", "references", "residuals",
    "rollout", "runge_kutta", "signals", "step_curvature", "terms",
)  # fmt: skip

REMEMBERED = 256  # kernels: windows and parts of a problem use them again
_known: dict[str, Kernel] = {}


@cache
def sources() -> str:
    """A hash of the sources that determine what is traced."""
    digest = hashlib.sha256()
    for name in TRACED:
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return digest.hexdigest()


def compiled(
    function: Function, inputs: Mapping[str, Shape], key: Hashable, name: str, outputs: Sequence[Shape]
) -> Kernel:
    """A kernel of a function of scalars, which `key` determines; see `jit.kernel.compile`."""
    whole = repr((target().name, key, tuple(inputs.items()), tuple(outputs)))
    found = _known.get(whole)  # other threads may forget it at any time
    if found is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        found = _known[whole] = compile_kernel(
            function, inputs, ("control", sources(), key), name, outputs=outputs, fast_compile=True
        )
    return found
