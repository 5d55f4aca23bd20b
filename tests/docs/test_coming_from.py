"""The call tables of docs/coming-from: both columns of every row, side by side."""

from __future__ import annotations

import re

import numpy as np
import pytest

from helpers import ROOT, agree

PEERS = {"pinocchio": "pinocchio", "mujoco": "mujoco", "drake": "pydrake", "casadi": "casadi"}
TOLERANCES = {"inverseFD": 1e-5}  # finite differences with a step of 1e-7
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$", re.M)


def rows() -> list:
    found = []
    for page, peer in PEERS.items():
        text = (ROOT / f"docs/coming-from/{page}.md").read_text()
        found += [pytest.param(page, peer, *row, id=f"{page}-{row[1]}") for row in ROW.findall(text)]
    return found


@pytest.fixture(scope="module")
def names() -> dict[str, dict]:
    """What the first block of each page defines."""
    return {}


def defined(page: str, names: dict[str, dict]) -> dict:
    if page not in names:
        block = re.search(r"^```python\n(.*?)^```", (ROOT / f"docs/coming-from/{page}.md").read_text(), re.M | re.S)
        assert block
        names[page] = {}
        exec(block[1], names[page])
    return names[page]


def value(code: str, names: dict) -> tuple[np.ndarray, ...]:
    """Statements, then an expression: its results as arrays."""
    *first, last = code.split("; ")
    exec("\n".join(first), names)
    found = eval(last, names)
    parts = found if isinstance(found, tuple) else (found,)
    return tuple(np.array(x, float).squeeze() for x in parts)


def test_there_are_rows_of_every_peer():
    assert {row.values[0] for row in rows()} == set(PEERS)
    assert len(rows()) > 50


@pytest.mark.parametrize("page, peer, theirs, ours", rows())
def test_both_columns_agree(page, peer, theirs, ours, names):
    pytest.importorskip(peer, reason=f"{peer} is not installed")
    here = defined(page, names)
    expected, actual = value(theirs, here), value(ours, here)
    assert len(actual) == len(expected)
    tolerance = next((t for word, t in TOLERANCES.items() if word in theirs), 1e-9)
    for x, y in zip(actual, expected, strict=True):
        agree(x, y, tolerance, ours)
