"""Mutants of valid inputs: bytes changed, numbers made odd, pieces repeated or swapped.

Most mutants of a form we know (XML, JSON, archives of arrays) keep that form, so that they reach what lies behind the
parser: an attribute, an element, a value or an array changes.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
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
VALUES = [None, -1, 0, 10**400, 1e308, 1e-320, "x", "", [], {}, [[1], [2, 3]], True, "\x1b[31m", [1e200] * 3]
KINDS = ["f8", "f4", "i8", "u1", "?", "c16", "U5", "S3", "f2", "M8[s]", "V8", "i4,f8"]


def mutant(rng: np.random.Generator, seeds: list[bytes], form: str = "") -> bytes:
    """One mutant of a seed of a form ("xml", "json", "npz"; "" if unknown), by a few changes."""
    data = seeds[rng.integers(len(seeds))]
    if form and rng.random() < 0.8:
        for _ in range(rng.geometric(0.6)):
            data = FORMS[form](rng, data)
        return data
    for _ in range(rng.geometric(0.5)):
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
    start, _ = place(rng, data)
    at = NUMBER.search(data, start) or NUMBER.search(data)
    if at is None:
        return data
    return data[: at.start()] + ODD[rng.integers(len(ODD))] + data[at.end() :]


CHANGES = (flip, cut, repeat, move, truncate, insert, odd_number, odd_number, odd_number)


def of_arrays(rng: np.random.Generator, data: bytes) -> bytes:
    """An .npz file with one array of another kind, shape or value, missing, or added."""
    try:
        found: dict[str, Any] = unpacked(data)
    except Exception:  # no longer an archive of arrays
        found = {}
    if not found:
        return flip(rng, data)
    name = list(found)[rng.integers(len(found))]
    x = found[name]
    how = int(rng.integers(7))
    if how == 0:
        del found[name]
    elif how == 1:
        found[name] = np.zeros(SHAPES[rng.integers(len(SHAPES))], KINDS[rng.integers(len(KINDS))])
    elif how == 2 and x.dtype.kind == "f" and x.size:
        x = x.copy()
        with np.errstate(over="ignore"):
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
    if not text.startswith("{") or rng.random() < 0.3:
        return CHANGES[rng.integers(len(CHANGES))](rng, text.encode()).decode("utf-8", "replace").replace("\0", "")
    return of_json(rng, text.encode()).decode("utf-8", "replace")


def of_json(rng: np.random.Generator, data: bytes) -> bytes:
    """A JSON object with one value, however deep, replaced, missing or repeated; texts that hold JSON, likewise."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not value:
        return odd_number(rng, data)
    at: Any = value
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[rng.integers(len(keys))]
        deeper = at[key]
        if isinstance(deeper, str) and deeper.startswith("{"):
            at[key] = _text(rng, deeper)
            break
        if not isinstance(deeper, (dict, list)) or not deeper or rng.random() < 0.1:
            _spoil(rng, at, key)
            break
        at = deeper
    try:
        return json.dumps(value).encode()
    except ValueError:  # an integer of too many digits, which Python reads but does not write
        return odd_number(rng, data)


def _spoil(rng: np.random.Generator, at: Any, key: Any) -> None:
    """One entry of a dict or list: another value, a large or slightly wrong number, missing, or twice."""
    how = int(rng.integers(6))
    if how == 0:
        del at[key]
    elif how == 1 and isinstance(at, list):
        at.append(at[key])
    elif how == 1:
        at[f"{key}2"] = at[key]
    elif how == 2 and isinstance(at[key], float):
        at[key] = at[key] * (1 + 1e-3 * rng.normal()) + 1e-3 * rng.normal()
    else:
        at[key] = VALUES[rng.integers(len(VALUES))]


def of_xml(rng: np.random.Generator, data: bytes) -> bytes:
    """An XML document with one attribute or element changed."""
    try:
        root = ET.fromstring(data)
    except (ET.ParseError, ValueError):
        return odd_number(rng, data)
    parents = [x for x in root.iter() if len(x)] or [root]
    elements = list(root.iter())
    element, parent = elements[rng.integers(len(elements))], parents[rng.integers(len(parents))]
    how = int(rng.integers(10))
    if how < 6:
        _spoil_attribute(rng, element, elements)
    elif how == 6 and len(parent):
        parent.remove(parent[rng.integers(len(parent))])
    elif how == 7 and len(parent):
        parent.append(parent[rng.integers(len(parent))])
    elif how == 8:
        parent.append(ET.Element(element.tag, element.attrib))
    else:
        element.tag = elements[rng.integers(len(elements))].tag
    return ET.tostring(root, encoding="utf-8")


def _spoil_attribute(rng: np.random.Generator, element: ET.Element, others: list[ET.Element]) -> None:
    """One attribute: a number or all of it odd, missing, or as that of another element."""
    names = list(element.attrib)
    if not names:
        return
    name, how = names[rng.integers(len(names))], int(rng.integers(5))
    text = element.attrib[name]
    other = others[rng.integers(len(others))].attrib
    if how == 0:
        del element.attrib[name]
    elif how == 1 and other:
        element.attrib[name] = list(other.values())[rng.integers(len(other))]
    elif how == 2:
        element.attrib[name] = ODD[rng.integers(len(ODD))].decode("utf-8", "replace")
    else:
        element.attrib[name] = odd_number(rng, text.encode()).decode("utf-8", "replace")


Change = Callable[[np.random.Generator, bytes], bytes]
FORMS: dict[str, Change] = {"npz": of_arrays, "json": of_json, "xml": of_xml}
