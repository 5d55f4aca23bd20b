"""The kinds of numbers that machine code computes with: double and single precision."""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ir
import numpy as np


@dataclass(frozen=True, eq=False)
class Number:
    """A kind of number: NumPy's type, LLVM's type and its name in LLVM's text.

    unit: how far a squared norm may be from one before code flags it. margin: what a watched result must exceed.
    large: an input this large is flagged, for what is computed from it may exceed the largest number.
    Whatever code flags is looked at again in double precision, so both leave room for rounding.
    """

    dtype: np.dtype
    type: ir.Type
    name: str
    unit: float
    margin: float
    large: float

    @property
    def overflowing(self) -> float:
        """A factor that takes inputs from about `large` on, and no others, beyond the largest number."""
        return self.nearest(float(np.finfo(self.dtype).max) / self.large)

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    @property
    def integer(self) -> ir.IntType:
        """The integer of the same size."""
        return ir.IntType(8 * self.bytes)

    def vector(self, lanes: int) -> ir.Type:
        return ir.VectorType(self.type, lanes) if lanes > 1 else self.type

    def suffix(self, lanes: int) -> str:
        """The suffix in the names of LLVM's intrinsics on vectors."""
        return f"v{lanes}f{8 * self.bytes}" if lanes > 1 else f"f{8 * self.bytes}"

    def nearest(self, x: float) -> float:
        """The nearest number of this kind."""
        return float(self.dtype.type(x))


DOUBLE = Number(np.dtype(np.float64), ir.DoubleType(), "double", unit=2e-6, margin=1e-11, large=1e60)
SINGLE = Number(np.dtype(np.float32), ir.FloatType(), "float", unit=1.5e-6, margin=1e-5, large=1e8)
