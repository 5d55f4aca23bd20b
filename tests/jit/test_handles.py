"""Handles of machine code keep it alive: whoever can call code, or read what it reads, owns it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from backends import kernel_of
from featherjet.jit import gufunc as gufuncs
from featherjet.jit import library as libraries
from featherjet.jit.engine import Library, target
from featherjet.jit.kernel import REPORT, direct_call_code
from featherjet.treejit.tables import Tables

Q = np.array([0.3, 0.4, -0.2])
Handle = Callable[[], Any]


def by_gufunc(robot: fj.Robot) -> Handle:
    call = kernel_of(robot, "mass_matrix").batch.call
    return lambda: call(REPORT.address, Q)


def by_direct_code(robot: fj.Robot) -> Handle:
    call, M = kernel_of(robot, "mass_matrix").direct_code(), np.zeros((3, 3))
    return lambda: (call(Q, M), M)[1]


def by_bare_call(robot: fj.Robot) -> Handle:
    robot.mass_matrix(Q)
    kernel = robot.evaluator.ready.kernel_of("mass_matrix")
    assert kernel is not None
    call = kernel.direct
    return lambda: call(Q)[0]


def by_bound_call(robot: fj.Robot) -> Handle:
    step = robot.bind("mass_matrix")
    step.q = Q
    return lambda: (step(), step.M)[1]


def by_partial(robot: fj.Robot) -> Handle:
    step = robot.bind("mass_matrix")
    step.q = Q
    go, M = step._go, step.M
    return lambda: (go(), M)[1]


def by_method(robot: fj.Robot) -> Handle:
    call = robot.mass_matrix
    call(Q)
    return lambda: call(Q)


HANDLES = [by_gufunc, by_direct_code, by_bare_call, by_bound_call, by_partial, by_method]


@pytest.fixture
def canaries(monkeypatch) -> list[Any]:
    """Weak references to every library and table that is made, in a process that keeps but direct calls for later."""
    direct_call_code(target().name)
    monkeypatch.setattr(libraries, "_loaded", weakref.WeakValueDictionary())
    monkeypatch.setattr(libraries, "_recent", libraries.deque(maxlen=0))
    seen: list[Any] = []
    for kind in (Library, Tables):
        made = kind.__init__

        def noted(self, *args, made=made):
            made(self, *args)
            seen.append(weakref.ref(self))

        monkeypatch.setattr(kind, "__init__", noted)
    return seen


def alive(canaries: list[Any]) -> list[Any]:
    gc.collect()
    return [type(x()) for x in canaries if x() is not None]


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
@pytest.mark.parametrize("handle", HANDLES)
def test_a_handle_keeps_its_code(canaries, handle, unroll):
    """After its robot has gone, its memory is used by others; and not longer than the handle itself."""
    model = fj.models.chain(3)
    expected = fj.Robot(model, backend="numpy").mass_matrix(Q)
    call = handle(fj.Robot(model, backend="compiled", unroll=unroll))
    assert Library in alive(canaries), "the code is gone"
    assert unroll or Tables in alive(canaries), "what it reads is gone"
    others = [fj.Robot(fj.models.chain(n), backend="compiled", unroll=True).gravity(np.zeros(n)) for n in (1, 2)]
    np.testing.assert_allclose(call(), expected, rtol=1e-13)
    del call, others
    assert not alive(canaries), "nothing is kept for ever"


def test_a_gufunc_of_another_layout_is_never_freed(canaries, monkeypatch):
    """Should NumPy move its fields one day: code that stays too long is better than code that goes too soon."""
    kept: list[Any] = []
    monkeypatch.setattr(gufuncs, "_immortal", kept)
    monkeypatch.setattr(gufuncs, "NAME", gufuncs.NAME + 8)
    by_gufunc(fj.Robot(fj.models.chain(3), backend="compiled"))
    assert Library in alive(canaries)
    kept.clear()
    assert not alive(canaries)
