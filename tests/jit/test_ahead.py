"""Code that is asked for together compiles together; code made with less effort gives the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit import library as libraries
from featherjet.jit.effort import Effort
from featherjet.jit.library import Ahead
from featherjet.jit.number import DOUBLE
from helpers import random_state

FEET = ("LF_foot", "LH_foot", "RF_foot")


@pytest.fixture
def fresh(monkeypatch, tmp_path) -> None:
    """No code in memory or on disk."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(libraries, "_loaded", {})


def kernel(robot: fj.Robot, name: str, effort: Effort, contacts: Any = None) -> Any:
    record = QUANTITIES[name]
    options = {} if contacts is None else {"contacts": contacts.core}
    return robot.evaluator.kernel(record, [i.name for i in record.inputs], options, effort)


def refuse(*_: Any) -> bytes:
    raise AssertionError("something is compiled")


@pytest.mark.parametrize("kept", [True, False], ids=["on disk", "in memory"])
def test_what_was_asked_for_is_there_afterwards(fresh, monkeypatch, kept):
    if not kept:
        monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)
    kernels = [kernel(robot, name, Effort.FULL) for name in ("gravity", "bias", "mass_matrix")]
    with Ahead("some code") as ahead:
        libraries_ahead = [k.load(DOUBLE, False)[0] for k in kernels]
        assert [k.load(DOUBLE, False)[0] for k in kernels] == libraries_ahead
        assert not any(library.loaded for library in libraries_ahead)
    assert all(library.loaded for library in libraries_ahead)
    monkeypatch.setattr(libraries, "compiled", refuse)
    reference = fj.Robot(fj.models.arm(), backend="numpy")
    s = random_state(robot, 9)
    for k, given in zip(kernels, ((s.q,), (s.q, s.v), (s.q,)), strict=True):
        (found,) = k.values(*given)
        np.testing.assert_allclose(found, getattr(reference, k.name)(*given), rtol=0, atol=1e-11)
    if kept:
        monkeypatch.setattr(libraries, "_loaded", {})
        del ahead
        again = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)
        kernel(again, "bias", Effort.FULL).values(s.q, s.v)


def test_an_error_while_text_is_written_leaves_nothing_behind(fresh):
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)

    def fail() -> None:
        with Ahead("some code"):
            kernel(robot, "gravity", Effort.FULL).load(DOUBLE, False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    s = random_state(robot, 3)
    expected = fj.Robot(fj.models.arm(), backend="numpy").gravity(s.q)
    np.testing.assert_allclose(robot.gravity(s.q), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
@pytest.mark.parametrize("name", ["forward_dynamics_derivatives", "inverse_dynamics_derivatives", "gravity"])
def test_code_for_one_use_gives_the_same_numbers(name, unroll):
    robot = fj.Robot(fj.models.quadruped(), backend="compiled", unroll=unroll)
    for size in (1, 3, 9):
        s = random_state(robot, size)
        given = [s.q, s.v, s.a][: len(QUANTITIES[name].inputs)]
        expected = kernel(robot, name, Effort.FULL).values(*given)
        for effort in (Effort.ONE, Effort.BATCHES):
            for x, y in zip(kernel(robot, name, effort).values(*given), expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * np.abs(y).max())


@pytest.mark.parametrize("name", ["constrained_dynamics", "constrained_dynamics_derivatives", "contact_jacobian"])
def test_code_for_one_use_holds_contacts_alike(name):
    robot = fj.Robot(fj.models.quadruped(), backend="compiled")
    held = fj.Contacts(robot, [fj.PointContact(f) for f in FEET])
    for size in (1, 3, 9):
        s = random_state(robot, size)
        given = [s.q, s.v, s.a][: len(QUANTITIES[name].inputs)]
        expected = kernel(robot, name, Effort.FULL, held).values(*given)
        for effort in (Effort.ONE, Effort.BATCHES):
            for x, y in zip(kernel(robot, name, effort, held).values(*given), expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * np.abs(y).max())
