"""Kernels as XLA sees them: an address to register as a target of custom calls."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from .batches import GRAIN
from .emit.xla import ARGUMENT, CONSTANT, JOB, RESULT, emit_handler
from .engine import Library, target
from .flags import Flag
from .kernel import Kernel
from .library import code_of
from .number import DOUBLE, SINGLE, Number

DTYPES = {SINGLE: 11, DOUBLE: 12}  # XLA's codes
TASK = 2e5  # nanoseconds of work, as kernels estimate it, that are worth a task of their own
MESSAGES = {
    Flag.LARGE: "an input is not finite, or too large",
    Flag.NOT_UNIT: "a quaternion or cosine-sine pair in q is not of norm one",
    Flag.SMALL_MARGIN: "the mass matrix, or the contacts, are singular or nearly so",
    Flag.NO_MEMORY: "no memory to compute in; try a smaller batch",
}


class Handler:
    """Machine code that XLA calls, for one kernel and kind of number; it must outlive every use of `address`.

    constants: inputs of the kernel that XLA does not pass, by name; the others are XLA's arguments in their order.
    order: the number of XLA's argument for each other input of the kernel. name: what errors call the function.
    """

    def __init__(
        self,
        kernel: Kernel,
        kind: Number,
        for_one: bool,
        order: Mapping[str, int],
        constants: Mapping[str, np.ndarray],
        *,
        name: str,
        strict: bool = False,
        parallel: bool = True,
    ) -> None:
        code = kernel.code(kind, for_one)
        fixed = {k: np.ascontiguousarray(x, kind.dtype) for k, x in constants.items()}
        sources, sizes = [], []
        for k, shape in kernel.inputs.items():
            sources.append((CONSTANT, fixed[k].ctypes.data) if k in fixed else (ARGUMENT, order[k]))
            sizes.append(0 if k in fixed else prod(shape) * kind.bytes)
        for k, shape in enumerate(kernel.shapes):
            sources.append((RESULT, k))
            sizes.append(prod(shape) * kind.bytes)
        cores = [*kernel.inputs.values(), *kernel.shapes]
        steps = [0, *sizes, *(x for shape in cores for x in strides(shape, kind.bytes))]
        least = max(GRAIN, int(TASK / kernel.cost) // GRAIN * GRAIN)
        words = {
            "entry": code.entry, "data": code.data, "steps": np.array(steps, np.int64),
            "sources": np.array(sources, np.int64), "operands": len(sources), "dtype": DTYPES[kind],
            "core": len(kernel.shapes[0]), "raising": sum(Flag) if strict else int(Flag.NO_MEMORY),
            "task": least if parallel else 0, "messages": messages(name),
        }  # fmt: skip
        self._library, job = loaded()
        self._keep: Sequence[object] = [code, fixed, *words.values()]
        for k, key in enumerate(JOB):
            word = words[key]
            job[k] = word.ctypes.data if isinstance(word, np.ndarray) else word
        self.address = self._library.address("handler")


def strides(shape: Sequence[int], item: int) -> list[int]:
    """Byte strides of a contiguous array."""
    return [item * prod(shape[k + 1 :]) for k in range(len(shape))]


class Texts(np.ndarray):
    """Addresses of C strings, which it keeps."""

    texts: list[ctypes.Array]


def messages(name: str) -> Texts:
    """For each flag, the address of what an error says."""
    found = np.zeros(len(MESSAGES), np.int64).view(Texts)
    found.texts = [ctypes.create_string_buffer(f"featherjet: {name}: {MESSAGES[flag]}".encode()) for flag in Flag]
    found[:] = [ctypes.addressof(text) for text in found.texts]
    return found


def loaded() -> tuple[Library, ctypes.Array]:
    """A copy of the handler's code of its own, and the words that tell it what to do."""
    cpu = target()
    code = code_of(cpu, ("xla",), "XLA's calls", partial(emit_handler, cpu.platform))
    library = Library(code, cpu)
    return library, (ctypes.c_int64 * len(JOB)).from_address(library.variable("job"))
