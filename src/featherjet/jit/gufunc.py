"""A NumPy generalised ufunc from the address of an inner loop, through NumPy's C API and ctypes alone.

NumPy makes gufuncs for users of its C API only, whose table a C extension finds at `_UFUNC_API`, as its header does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

FROM_SIGNATURE = 31  # slot of PyUFunc_FromFuncAndDataAndSignature in NumPy's table of ufunc functions
NO_IDENTITY = -1
NAME, OWNED = 56, 88  # offsets in PyUFuncObject, in bytes: its name, and an object that dies with it
_immortal: list[Any] = []


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
    return ctypes.PYFUNCTYPE(ctypes.py_object, P, P, P, I, I, I, I, P, S, I, S)(table[FROM_SIGNATURE])


def gufunc(address: int, data: int, signature: str, name: str, number: Any, keep: object) -> np.ufunc:
    """A NumPy gufunc whose inner loop (args, dims, steps, data) is at an address; operands: an int64, then `number`s.

    The gufunc keeps alive `keep`, the owner of the code and of its data, and the tables made here, to which NumPy has
    bare pointers.
    """
    inputs, outputs = (side.count("(") for side in signature.split("->"))
    functions, datas = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(data)
    kinds = [np.dtype(np.int64).num] + [np.dtype(number).num] * (inputs + outputs - 1)
    types, title = ctypes.create_string_buffer(bytes(kinds)), ctypes.create_string_buffer(name.encode())
    texts = b"compiled by featherjet", signature.encode()
    made = _maker()(
        ctypes.addressof(functions), ctypes.addressof(datas), ctypes.addressof(types),
        1, inputs, outputs, NO_IDENTITY, ctypes.addressof(title), texts[0], 0, texts[1],
    )  # fmt: skip
    owned = (functions, datas, types, title, texts, keep)
    place = ctypes.c_void_p.from_address(id(made) + OWNED)
    if ctypes.c_void_p.from_address(id(made) + NAME).value == ctypes.addressof(title) and place.value is None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owned))
        place.value = id(owned)
    else:  # a NumPy of another layout: better kept for ever than too short
        _immortal.append(owned)
    return made
