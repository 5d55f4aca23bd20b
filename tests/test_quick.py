"""`make quick` runs what a change touches and one test of each kind of the rest, until time is up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quick

TESTS = quick.ROOT / "tests"


@pytest.mark.parametrize(
    ("changed", "test", "how"),
    [
        ("src/featherjet/jit/graph.py", "jit/test_graph.py", "concerned"),  # by its name
        ("src/featherjet/jit/library.py", "jit/test_first_use.py", "touched"),  # imported from its package
        ("src/featherjet/jit/kernel.py", "jit/test_first_use.py", "touched"),  # imported from
        ("src/featherjet/jit/graph.py", "jit/test_first_use.py", ""),
        ("tests/jit/test_graph.py", "jit/test_graph.py", "concerned"),
        ("tests/jit/test_graph.py", "jit/test_autodiff.py", ""),
        ("tests/helpers.py", "jit/test_ahead.py", "touched"),
        ("tools/files.py", "test_files.py", "concerned"),
        ("tools/files.py", "test_layers.py", ""),
        ("docs/methods.md", "test_docs.py", "concerned"),
        ("docs/methods.md", "test_layers.py", ""),
    ],
)
def test_what_a_change_reaches(changed: str, test: str, how: str) -> None:
    concerned, touched = quick.chosen([TESTS / test], [changed])
    assert (bool(concerned), bool(touched)) == (how == "concerned", how == "touched")


def items(name: str, *cases: str, function: Any = None) -> list[Any]:
    path = Path(name)
    return [SimpleNamespace(path=path, nodeid=f"{name}::{case}", function=function) for case in cases]


def test_the_order_of_tests() -> None:
    drawn = given(st.integers())(lambda x: None)
    every = [
        *items("other", "draws[1]", "draws[2]", function=drawn),
        *items("other", "second[1]", "second[2]", "third"),
        *items("touched", "first", "second"),
        *items("concerned", "first[1]", "first[2]", "second"),
    ]
    rank = quick.Rank({Path("concerned")}, {Path("touched")}, every)
    assert {x.nodeid: rank(x) for x in every} == {
        "other::draws[1]": 4, "other::draws[2]": None,
        "other::second[1]": 1, "other::second[2]": None, "other::third": 3,
        "touched::first": 1, "touched::second": 2,
        "concerned::first[1]": 0, "concerned::first[2]": 2, "concerned::second": 0,
    }  # fmt: skip


@pytest.mark.parametrize(("until", "says"), [("inf", "2 passed, 13 deselected"), ("0", "2 tests were left out")])
def test_a_process_runs_its_part(until: str, says: str) -> None:
    told = {
        quick.UNTIL: until,
        quick.CONCERNED: "",
        quick.TOUCHED: "",
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    }
    command = [sys.executable, "-m", "pytest", "-p", "quick", str(TESTS / "test_files.py")]
    done = subprocess.run(command, env=os.environ | told, cwd=quick.ROOT, capture_output=True, text=True, check=False)
    assert says in done.stdout
