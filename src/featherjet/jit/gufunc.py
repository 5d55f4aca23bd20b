"""A NumPy generalised ufunc from the address of an inner loop, through NumPy's C API and ctypes alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

FROM_SIGNATURE = 31  # slot of PyUFunc_FromFuncAndDataAndSignature in NumPy's table of ufunc functions
NO_IDENTITY = -1


@cache
def _maker() -> Callable[..., Any]:
    try:
        from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath  # type: ignore[attr-defined,no-redef]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    P, I, S = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    return ctypes.PYFUNCTYPE(ctypes.py_object, P, P, P, I, I, I, I, S, S, I, S)(table[FROM_SIGNATURE])


class Gufunc:
    """A NumPy gufunc whose inner loop (args, dims, steps, data) is at an address; operands: an int64, then `number`s.

    NumPy keeps bare pointers to the tables and strings made here, so this object must outlive every use of `call`.
    """

    def __init__(self, address: int, data: int, signature: str, name: str, number: Any = np.float64) -> None:
        inputs, outputs = (side.count("(") for side in signature.split("->"))
        self._functions = (ctypes.c_void_p * 1)(address)
        self._datas = (ctypes.c_void_p * 1)(data)
        kinds = [np.dtype(np.int64).num] + [np.dtype(number).num] * (inputs + outputs - 1)
        self._types = ctypes.create_string_buffer(bytes(kinds))
        self._texts = name.encode(), b"compiled by featherjet", signature.encode()
        self.signature = signature
        self.call: np.ufunc = _maker()(
            ctypes.addressof(self._functions), ctypes.addressof(self._datas), ctypes.addressof(self._types),
            1, inputs, outputs, NO_IDENTITY, self._texts[0], self._texts[1], 0, self._texts[2],
        )  # fmt: skip
