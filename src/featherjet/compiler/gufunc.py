"""A NumPy generalised ufunc from the address of an inner loop, through NumPy's C API and ctypes alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

FROM_SIGNATURE = 31  # slot of PyUFunc_FromFuncAndDataAndSignature in NumPy's table of ufunc functions
NPY_DOUBLE = 12
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


def gufunc(address: int, data: int, signature: str, name: str, keep: Any) -> np.ufunc:
    """A gufunc on float64 that calls (args, dims, steps, data) at `address`.

    NumPy keeps bare pointers to the tables and strings made here; `KEPT` holds them, and `keep`, for as long as the
    process lives, since a ufunc may outlive whoever made it.
    """
    inputs, outputs = (side.count("(") for side in signature.split("->"))
    functions = (ctypes.c_void_p * 1)(address)
    datas = (ctypes.c_void_p * 1)(data)
    types = ctypes.create_string_buffer(bytes([NPY_DOUBLE] * (inputs + outputs)))
    texts = name.encode(), b"compiled by featherjet", signature.encode()
    KEPT.append((functions, datas, types, texts, keep))
    return _maker()(
        ctypes.addressof(functions), ctypes.addressof(datas), ctypes.addressof(types),
        1, inputs, outputs, NO_IDENTITY, texts[0], texts[1], 0, texts[2],
    )  # fmt: skip


KEPT: list[Any] = []
