"""The compiler on random programs; `make fuzz` tries tens of thousands."""

from __future__ import annotations

import os

import numpy as np
import pytest

from featherjet.jit import graph
from featherjet.jit.loops import interpret
from fuzz import graphs, loops
from fuzz.bounded import Bounded, SingleBounded

PROGRAMS = int(os.environ.get("FEATHERJET_PROGRAMS", "40"))


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")


def test_graphs() -> None:
    rng, shares = np.random.default_rng(11), []
    for _ in range(PROGRAMS):
        said, share = graphs.attempt(rng)
        assert not said, said
        shares.append(share)
    assert np.mean(shares) > 0.5, "most results are known well enough to be compared"


def test_loops() -> None:
    rng = np.random.default_rng(12)
    for _ in range(PROGRAMS):
        said = loops.attempt(rng)
        assert not said, said


def test_a_wrong_instruction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = graph.OPERATIONS | {"sub": graph.OPERATIONS["sub"]._replace(instruction="fadd")}  # type: ignore[operator]
    for name, instruction in wrong.items():
        monkeypatch.setitem(graph.OPERATIONS, name, instruction)  # type: ignore[arg-type]
    rng = np.random.default_rng(13)
    assert any(graphs.attempt(rng)[0] for _ in range(10))
    assert any(loops.attempt(rng) for _ in range(10))


def test_a_wrong_interpreter_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = interpret.Interpreter.on_Loop
    monkeypatch.setattr(
        interpret.Interpreter, "on_Loop", lambda self, s: loop(self, type(s)(**{**vars(s), "down": not s.down}))
    )
    rng = np.random.default_rng(14)
    assert any("interpreter" in loops.attempt(rng) for _ in range(30))


@pytest.mark.parametrize("kind, dtype", [(Bounded, np.float64), (SingleBounded, np.float32)])
def test_bounds_hold_in_any_order_of_sums(kind: type[Bounded], dtype: type) -> None:
    """By numbers of four times the digits or, in single precision, of twice as many."""
    rng = np.random.default_rng(15)
    terms = rng.normal(size=(200, 7)).astype(dtype) * 10.0 ** rng.integers(-3, 4, (200, 7)).astype(dtype)
    total = sum((kind(terms[:, k], error=0.0) for k in range(1, 7)), kind(terms[:, 0], error=0.0))
    for order in (range(7), reversed(range(7)), rng.permutation(7)):
        found = np.zeros(200, dtype)
        for k in order:
            found = found + terms[:, k]
        exact = terms.astype(np.longdouble).sum(1)
        assert (np.abs(found - total.value) <= total.error).all()
        assert (np.abs(exact - total.value) <= total.error).all()
    assert np.median(total.error / total.size) < 100 * kind.eps
