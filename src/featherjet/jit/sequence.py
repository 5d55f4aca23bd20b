"""Kernels on operands that stay where they are, to be run again and again without looking at them.

`AtOnce` runs a kernel for a batch; `InSequence` for one sample after another, each of which may read what the one
before it wrote; `InRows` for one row of samples after another, likewise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from .kernel import Code, Kernel

Array = np.ndarray
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class Repeated:
    """Code, to be run on `count` samples of operands, inputs first; flags are ignored.

    cores: how many axes a sample of each operand has. An operand without a further axis is the same for all samples.
    """

    def __init__(self, code: Code, count: int, operands: Sequence[Array], cores: Sequence[int]) -> None:
        flags = np.zeros(1, np.int64)
        report = np.array(flags.ctypes.data, np.int64)
        self._addresses: Array = np.array([x.ctypes.data for x in (report, *operands)], np.uintp)
        pairs = list(zip(operands, cores, strict=True))
        along = [0 if x.ndim == core else x.strides[0] if len(x) > 1 else x[0].nbytes for x, core in pairs]
        within = [step for x, core in pairs for step in x.strides[x.ndim - core :]]
        steps, dims = np.array([0, *along, *within], np.intp), np.zeros(len(operands) + 1, np.intp)
        dims[0] = count
        self._dims, self._run = dims, _ENTRY(code.entry)
        self._given = *(x.ctypes.data for x in (self._addresses, dims, steps)), code.data
        self._keep = code, flags, report, steps, operands

    def __call__(self) -> None:
        self._run(*self._given)

    def move(self, operand: int, address: int) -> None:
        """Let an operand begin at another address; its rows are as far apart as before."""
        self._addresses[operand + 1] = address

    @property
    def count(self) -> int:
        """How many samples it runs."""
        return int(self._dims[0])

    @count.setter
    def count(self, count: int) -> None:
        self._dims[0] = count


class InSequence(Repeated):
    """A kernel's code for one sample, to be run `count` times.

    operands: inputs, then results, of doubles: (count, n), one row for each sample; or (n,), the same for all. NumPy
    would copy operands that overlap; this does not, so that a sample's input may be the result before it.
    """

    def __init__(self, kernel: Kernel, count: int, operands: Sequence[Array]) -> None:
        super().__init__(kernel.single, count, operands, [1] * len(operands))


class InRows(Repeated):
    """A kernel's code for batches, to be run for row after row of samples.

    operands: inputs, then results, of doubles: (samples, rows, ...), or of one sample, the same for all. A row's inputs
    may be the results of the row before it.
    """

    def __init__(self, kernel: Kernel, operands: Sequence[Array]) -> None:
        cores = kernel_cores(kernel)
        pairs = list(zip(operands, cores, strict=True))
        samples, self._rows = next(x.shape[:2] for x, core in pairs if x.ndim > core)
        super().__init__(kernel.batch, samples, operands, cores)
        self._first: Array = self._addresses.copy()
        self._by_row = np.array([0, *(x.strides[1] if x.ndim > core else 0 for x, core in pairs)], np.uintp)

    def __call__(self) -> None:
        self._addresses[:] = self._first
        for _ in range(self._rows):
            self._run(*self._given)
            self._addresses += self._by_row


class AtOnce(Repeated):
    """A kernel's code for batches, on operands of doubles that have at most one axis of samples; see `fits`."""

    def __init__(self, kernel: Kernel, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        operands, cores = [*inputs, *results], kernel_cores(kernel)
        counts = [len(x) for x, core in zip(operands, cores, strict=True) if x.ndim > core]
        super().__init__(kernel.batch, counts[0] if counts else 1, operands, cores)

    @staticmethod
    def fits(kernel: Kernel, inputs: Sequence[Array], results: Sequence[Array]) -> bool:
        """Whether these arrays can be operands."""
        pairs = list(zip((*inputs, *results), kernel_cores(kernel), strict=True))
        counts = {len(x) for x, core in pairs if x.ndim > core}
        return len(counts) <= 1 and all(x.dtype == np.float64 and x.ndim - core in (0, 1) for x, core in pairs)


def kernel_cores(kernel: Kernel) -> list[int]:
    """How many axes a sample of each operand has."""
    return [*kernel.cores, *map(len, kernel.shapes)]
