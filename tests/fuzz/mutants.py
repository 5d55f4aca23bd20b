"""Mutants of valid inputs: bytes changed, numbers made odd, pieces repeated or swapped, arrays of other kinds."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from fuzz.targets import packed, unpacked

NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][+-]?\d+)?")
ODD = [
    b"nan", b"NaN", b"inf", b"-Infinity", b"1e308", b"-1e308", b"1e400", b"1e-320", b"0", b"-0.0", b"-1", b"9" * 400,
    b"9" * 5000, b"1e31", b"2147483648", b"18446744073709551616", b"0x10", b"1_000", b"", b"null", b"true", b"[]",
    b"{}", b'"text"', b"[[1], [2, 3]]", b"\x1b[31m", b"\0", "\u202e".encode(), b"\xff\xfe", b"1 2", b"1,5",
    b"[" * 2000,
]  # fmt: skip
SHAPES = [(), (0,), (1,), (3, 0), (3, 7, 7), (7,), (2, 8), (5, 7), (1, 1, 1)]
KINDS = ["f8", "f4", "i8", "u1", "?", "c16", "U5", "S3", "f2", "M8[s]", "V8", "i4,f8"]


def mutant(rng: np.random.Generator, seeds: list[bytes], arrays: bool) -> bytes:
    """One mutant of a seed, by a few changes."""
    data = seeds[rng.integers(len(seeds))]
    if arrays and rng.random() < 0.8:
        return of_arrays(rng, data)
    for _ in range(1 + rng.geometric(0.5)):
        data = CHANGES[rng.integers(len(CHANGES))](rng, data)
    return data


def place(rng: np.random.Generator, data: bytes) -> tuple[int, int]:
    i = int(rng.integers(len(data) + 1))
    return i, min(len(data), i + int(rng.geometric(0.1)))


def flip(rng: np.random.Generator, data: bytes) -> bytes:
    i, _ = place(rng, data)
    return data[:i] + bytes([rng.integers(256)]) + data[i + 1 :]


def cut(rng: np.random.Generator, data: bytes) -> bytes:
    i, j = place(rng, data)
    return data[:i] + data[j:]


def repeat(rng: np.random.Generator, data: bytes) -> bytes:
    i, j = place(rng, data)
    return data[:i] + data[i:j] * int(rng.integers(2, 5)) + data[j:]


def move(rng: np.random.Generator, data: bytes) -> bytes:
    i, j = place(rng, data)
    k, _ = place(rng, data)
    return data[:k] + data[i:j] + data[k:]


def truncate(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: place(rng, data)[0]]


def insert(rng: np.random.Generator, data: bytes) -> bytes:
    i, _ = place(rng, data)
    return data[:i] + ODD[rng.integers(len(ODD))] + data[i:]


def odd_number(rng: np.random.Generator, data: bytes) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    at = found[rng.integers(len(found))]
    return data[: at.start()] + ODD[rng.integers(len(ODD))] + data[at.end() :]


CHANGES = (flip, cut, repeat, move, truncate, insert, odd_number, odd_number, odd_number)


def of_arrays(rng: np.random.Generator, data: bytes) -> bytes:
    """An .npz file with one array of another kind, shape or value, missing, or added."""
    found: dict[str, Any] = unpacked(data)
    name = list(found)[rng.integers(len(found))]
    x = found[name]
    how = int(rng.integers(7))
    if how == 0:
        del found[name]
    elif how == 1:
        found[name] = np.zeros(SHAPES[rng.integers(len(SHAPES))], KINDS[rng.integers(len(KINDS))])
    elif how == 2 and x.dtype.kind == "f" and x.size:
        x = x.copy()
        x.flat[rng.integers(x.size)] = [np.nan, np.inf, -1e308, 1e200, 0.0, -1.0][rng.integers(6)]
        found[name] = x
    elif how == 3 and x.ndim:
        found[name] = x[: len(x) // 2]
    elif how == 4 and x.ndim:
        found[name] = np.concatenate([x, x])
    elif how == 5:
        found["\x1b[2Jextra\n"] = x
    elif x.dtype.kind == "U" and x.ndim == 0:
        found[name] = np.array(_text(rng, str(x)))
    return packed(found)


def _text(rng: np.random.Generator, text: str) -> str:
    """A text with bytes changed; if it is JSON, often one of its values, however deep."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or rng.random() < 0.3:
        return CHANGES[rng.integers(len(CHANGES))](rng, text.encode()).decode("utf-8", "replace").replace("\0", "")
    at: Any = value
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[rng.integers(len(keys))]
        deeper = at[key]
        if isinstance(deeper, str) and deeper.startswith("{"):
            at[key] = _text(rng, deeper)
            break
        if not isinstance(deeper, (dict, list)) or not deeper or rng.random() < 0.2:
            at[key] = [None, -1, 10**400, 1e308, "x", [], {}, [[1], [2, 3]], True, "\x1b[31m", [1e200] * 3][
                rng.integers(11)
            ]
            break
        at = deeper
    return json.dumps(value)
