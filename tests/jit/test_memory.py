"""Memory of results is used again, but never while anybody can see it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError
from featherjet.jit.memory import LINE, SMALL, Pool, budget
from helpers import random_state

FLOAT = np.dtype(float)
SHAPE = (SMALL // 8, 2)


@pytest.fixture
def pool() -> Pool:
    return Pool(lambda: 16 * SMALL)


def address(x: np.ndarray) -> int:
    return x.ctypes.data


def test_dropped_memory_is_used_again(pool):
    x = pool.empty(SHAPE, FLOAT)
    assert x.shape == SHAPE
    assert x.dtype == FLOAT
    assert x.flags.c_contiguous
    assert x.flags.writeable
    assert address(x) % LINE == 0
    first = address(x)
    del x
    assert address(pool.empty(SHAPE, FLOAT)) == first
    assert address(pool.empty(SHAPE[::-1], FLOAT)) == first, "only the size counts"


@pytest.mark.parametrize(
    "hold",
    [lambda x: x, lambda x: x[3:5, 1], lambda x: x.T, memoryview, lambda x: x.view(np.int64), lambda x: iter(x)],
    ids=["itself", "part", "transposed", "memoryview", "view", "iterator"],
)
def test_held_memory_is_not(pool, hold):
    x = pool.empty(SHAPE, FLOAT)
    first, held = address(x), hold(x)
    del x
    other = pool.empty(SHAPE, FLOAT)
    assert address(other) != first
    del held
    gc.collect()
    assert address(pool.empty(SHAPE, FLOAT)) == first


def test_sizes_do_not_mix(pool):
    first = address(pool.empty(SHAPE, FLOAT))
    assert address(pool.empty((SHAPE[0] + 1, 2), FLOAT)) != first


def test_it_keeps_no_more_than_its_budget(pool):
    held = [pool.empty(SHAPE, FLOAT) for _ in range(20)]
    for k in range(20):
        held[k][:] = k
    assert [x[0, 0] for x in held] == list(range(20)), "each has its own"
    assert pool.unused == 0, "what is held is not kept"
    del held
    gc.collect()
    assert pool.budget / 2 < pool.unused <= pool.budget + LINE
    pool.clear()
    assert pool.unused == 0


def test_small_and_huge_arrays_are_left_to_numpy(pool):
    for shape in ((3, 3), (0, 5), (pool.budget,)):
        assert pool.empty(shape, FLOAT).base is None


def test_threads_never_share(pool):
    wrong = []

    def work(k: int) -> None:
        for _ in range(300):
            x = pool.empty(SHAPE, FLOAT)
            x[:] = k
            if not (x == k).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_how_much_is_kept(monkeypatch):
    monkeypatch.setenv("FEATHERJET_KEEP_MB", "3")
    assert budget() == 3 << 20
    monkeypatch.setenv("FEATHERJET_KEEP_MB", "much")
    with pytest.raises(InputError, match="FEATHERJET_KEEP_MB: expected a whole number of megabytes, got 'much'"):
        budget()


def test_a_wrong_budget_is_told_where_memory_is_wanted():
    """Not by a traceback of the import."""
    script = """
import featherjet as fj
import numpy as np
robot = fj.load("arm", backend="compiled")
robot.mass_matrix(np.zeros(7))
try:
    robot.mass_matrix(np.zeros((1000, 7)))
except fj.errors.InputError as error:
    print(error)
"""
    environment = {**os.environ, "FEATHERJET_KEEP_MB": "9" * 5000}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert found.stdout == f"FEATHERJET_KEEP_MB: expected a whole number of megabytes, got '{'9' * 20}'\n", found.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_results_of_a_robot(threads):
    robot = fj.Robot(fj.models.chain(7), backend="compiled", threads=threads)
    n = 2000
    s, other = random_state(robot, n), random_state(robot, n, 1)
    kept = robot.inverse_dynamics_derivatives(s.q, s.v, s.a)
    copies = [x.copy() for x in kept]
    again = robot.inverse_dynamics_derivatives(other.q, other.v, other.a)
    for k in range(3):
        np.testing.assert_array_equal(kept[k], copies[k])
        assert not np.shares_memory(kept[k], again[k])
    places = {address(x) for x in kept}
    del kept
    assert {address(x) for x in robot.inverse_dynamics_derivatives(s.q, s.v, s.a)} == places
