"""Compiled code on threads, in other processes, and with the memory it takes."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from backends import Pair, arguments, both, in_threads, pair_of, results, spoiled
from featherjet.errors import InputError
from featherjet.jit.batches import Team
from helpers import random_state


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def arm(request: pytest.FixtureRequest) -> Pair:
    return pair_of("arm", request.param)


def on_threads(pair: Pair, threads: int) -> fj.Robot:
    return fj.Robot(pair.compiled.model, backend="compiled", threads=threads, unroll=pair.compiled.unroll)


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics"])
@pytest.mark.parametrize("size", [129, 8001])
def test_results_do_not_depend_on_threads(arm, name, size):
    """To the last bit."""
    args = arguments(name, random_state(arm.reference, size))
    found = [results(on_threads(arm, threads), name, *args) for threads in (1, 2, 3)]
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


def test_batches_really_go_to_threads(arm, monkeypatch):
    asked: list[int] = []
    real = Team.run
    monkeypatch.setattr(Team, "run", lambda self, pool, helpers: asked.append(helpers) or real(self, pool, helpers))
    s = random_state(arm.reference, 8001)
    on_threads(arm, 3).inverse_dynamics_derivatives(s.q, s.v, s.a)
    on_threads(arm, 3).inverse_dynamics_derivatives(s.q[:100], s.v[:100], s.a[:100])
    assert asked == [2], "many samples do, few do not"


def test_threads_name_the_offending_sample(arm):
    s, robot = random_state(arm.reference, 8001), on_threads(arm, 3)
    with pytest.raises(InputError, match=r"v\[6901, 5\] is nan"):
        robot.inverse_dynamics_derivatives(s.q, spoiled(s.v, (6901, 5), np.nan), s.a)
    robot.inverse_dynamics_derivatives(s.q, s.v, s.a)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_each_thread_gets_its_own_error_or_its_own_result(unroll):
    """Batches on threads, small batches, and single states by the direct call, good and bad, all at once."""
    robot = pair_of("quadruped", unroll).compiled
    s = random_state(robot, 256)
    expected, one = robot.bias(s.q, s.v), robot.bias(s.q[0], s.v[0])
    few = robot.mass_matrix(s.q[:3])
    unit = s.q.copy()
    unit[100, 3:7] *= 2

    def good() -> None:
        np.testing.assert_array_equal(robot.bias(s.q, s.v), expected)

    def direct() -> None:
        np.testing.assert_array_equal(robot.bias(s.q[0], s.v[0]), one)

    def small() -> None:
        np.testing.assert_array_equal(robot.mass_matrix(s.q[:3]), few)

    def infinite() -> None:
        with pytest.raises(InputError, match=r"v\[7, 2\] is nan"):
            robot.bias(s.q, spoiled(s.v, (7, 2), np.nan))

    def long() -> None:
        with pytest.raises(InputError, match=r"norm 2, not 1"):
            robot.bias(unit[100], s.v[0])

    in_threads(good, direct, small, infinite, long, rounds=100)


def test_robots_of_different_thread_counts_at_once(arm):
    s = random_state(arm.reference, 4096)
    expected = arm.compiled.inverse_dynamics_derivatives(s.q, s.v, s.a)

    def work(threads: int):
        robot = on_threads(arm, threads)

        def go() -> None:
            for x, y in zip(robot.inverse_dynamics_derivatives(s.q, s.v, s.a), expected, strict=True):
                np.testing.assert_array_equal(x, y)

        return go

    in_threads(work(2), work(3), work(2), work(4), rounds=10)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_first_calls_at_once(unroll):
    """Threads that compile, or load, the same kernel of one robot at the same time, for one state and for many."""
    robot, reference, _ = both(fj.models.chain(5), unroll, shared=False)
    s = random_state(robot, 3)
    expected = reference.mass_matrix(s.q)

    def many() -> None:
        np.testing.assert_allclose(robot.mass_matrix(s.q), expected, atol=1e-13 * np.abs(expected).max())

    def one() -> None:
        np.testing.assert_allclose(robot.mass_matrix(s.q[1]), expected[1], atol=1e-13 * np.abs(expected).max())

    in_threads(many, one, many, one, rounds=3)


@pytest.mark.parametrize("again", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy])
def test_robots_are_copied(arm, again):
    s = random_state(arm.compiled, 5)
    other = again(arm.compiled)
    assert (other.backend, other.threads, other.unroll) == ("compiled", 1, arm.compiled.unroll)
    for part in (slice(None), 0, 1):
        args = s.q[part], s.v[part], s.a[part]
        np.testing.assert_array_equal(other.forward_dynamics(*args), arm.compiled.forward_dynamics(*args))


def test_robots_of_other_conventions_are_copied(arm):
    robot = arm.compiled.with_convention("mujoco")
    other = pickle.loads(pickle.dumps(robot))
    assert (other.convention, other.unroll) == ("mujoco", arm.compiled.unroll)
    s = random_state(arm.reference, 5)
    np.testing.assert_array_equal(other.bias(s.q, s.v), robot.bias(s.q, s.v))


def test_what_is_derived_from_a_robot_is_compiled_alike(arm):
    robot = arm.compiled
    for other in (robot.lock({"joint1": 0.3}), robot.with_gravity((0, 0, 1)), robot.with_convention("mujoco")):
        assert (other.backend, other.threads, other.unroll) == ("compiled", 1, robot.unroll)


def in_another_process(robot: fj.Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    robot.bias(q[0], v[0])
    return robot.bias(q, v), robot.bias(q[0], v[0])


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_robots_cross_process_pools(arm, how):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {how} here")
    robot = on_threads(arm, 2)
    s = random_state(robot, 20000)
    robot.inverse_dynamics_derivatives(s.q, s.v, s.a)  # on threads, which a fork leaves behind
    expected, one = robot.bias(s.q, s.v), robot.bias(s.q[0], s.v[0])
    with multiprocessing.get_context(how).Pool(2) as pool:
        jobs = [pool.apply_async(in_another_process, (robot, s.q, s.v)) for _ in range(3)]
        for job in jobs:
            batch, first = job.get(timeout=600)
            np.testing.assert_array_equal(batch, expected)
            np.testing.assert_array_equal(first, one)
    np.testing.assert_array_equal(robot.bias(s.q, s.v), expected)


def test_memory_is_neither_left_nor_read_unwritten():
    """With a malloc of our own: NaN everywhere to begin with, and forbidden pages before and behind."""
    if not sys.platform.startswith("linux"):
        pytest.skip("pages are forbidden by Linux's mprotect")
    program = """
        import ctypes
        import llvmlite.binding as llvm
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        PAGE, live, count = 4096, {}, 0

        def guarded(size):
            global count
            pages = -(-size // PAGE)
            base = libc.mmap(None, (pages + 2) * PAGE, 3, 0x22, -1, 0)
            libc.mprotect(base, PAGE, 0)
            libc.mprotect(base + (pages + 1) * PAGE, PAGE, 0)
            ctypes.memset(base + PAGE, 0xFF, pages * PAGE)
            at = (base + (pages + 1) * PAGE - size) & ~15
            live[at] = base, (pages + 2) * PAGE
            count += 1
            return at

        def release(at):
            libc.munmap(*live.pop(at))

        allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(guarded)
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)
        llvm.add_symbol("malloc", ctypes.cast(allocate, ctypes.c_void_p).value)
        llvm.add_symbol("free", ctypes.cast(free, ctypes.c_void_p).value)

        import featherjet as fj
        import backends as t
        from helpers import random_state
        pairs = [t.pair_of(*key) for key in t.PAIRS]
        pairs += [t.both(fj.models.random_tree(n, seed=seed)) for n, seed in ((1, 0), (3, 2), (20, 5))]
        for k, pair in enumerate(pairs):
            names = t.CALLS if k < len(t.PAIRS) else t.ROLLED
            for size in (1, 9):
                t.compare(pair, random_state(pair.reference, size), names)
            if k < len(t.PAIRS):
                t.compare(pair, random_state(pair.reference, 3), names, each=True)
        assert count > 200 and not live
        print("whole")
    """
    here = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=here,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(Path(fj.__file__).parents[1])])},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout == "whole\n"
