"""Functions of robots as targets of XLA's custom calls, on CPUs.

Names hold a digest of everything the code depends on and no address, so that exported functions and XLA's own cache of
compiled programs work in other processes, once these have registered the same target.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import hashlib

import jax
import numpy as np

from ..bridges.robots import RobotFunction
from ..jit import cache
from ..jit.number import DOUBLE, SINGLE
from ..jit.xla import Handler

_registered: dict[str, Handler] = {}  # XLA may call them until the process ends


def target(f: RobotFunction, dtype: np.dtype, absent: tuple[int, ...], strict: bool, one: bool) -> str:
    """The name of a function as a target, which is registered first if it is new.

    absent: inputs that are zero, and that XLA does not pass; one: whether the batch is a single sample.
    """
    kind = SINGLE if dtype == np.float32 else DOUBLE
    threads = f.robot.evaluator.threads
    for_one = one and f.kernel.separate_single
    facts = (f.digest, cache.sources(), kind.name, absent, strict, for_one, threads > 1)
    name = f"featherjet_{f.name.replace(' ', '_')}_{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}"
    if name not in _registered:
        ports = [p.name for p in f.record.inputs]
        passed = [k for k in range(len(ports)) if k not in absent]
        zeros = {ports[k]: np.zeros(f.inputs[k]) for k in absent}
        handler = Handler(
            f.kernel, kind, for_one, {ports[k]: at for at, k in enumerate(passed)}, f.constants | zeros,
            name=repr(f), strict=strict, parallel=threads > 1 and not for_one,
        )  # fmt: skip
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.address), platform="cpu")
        jax.ffi.register_ffi_target_as_batch_partitionable(name)
        _registered[name] = handler
    return name
