"""Kernels of traced functions; windows and parts of a problem, and phases of the same form, share them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...jit.engine import target
from ...jit.kernel import Kernel
from ...jit.kernel import compile as compile_kernel
from ...jit.straight import Function, Shape

REMEMBERED = 256  # kernels: windows and parts of a problem use them again
_kernels: dict[str, Kernel] = {}


def traced_kernel(
    function: Function, inputs: Mapping[str, Shape], key: Hashable, name: str, outputs: Sequence[Shape]
) -> Kernel:
    """A kernel of a function of scalars, which `key` determines; see `jit.kernel.compile`."""
    whole = repr((target().name, key, tuple(inputs.items()), tuple(outputs)))
    kernel = _kernels.get(whole)  # other threads may forget it at any time
    if kernel is None:
        if len(_kernels) >= REMEMBERED:
            _kernels.clear()
        kernel = _kernels[whole] = compile_kernel(
            function, inputs, ("control", key), name, outputs=outputs, fast_compile=True
        )
    return kernel
