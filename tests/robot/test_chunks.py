"""`robot.chunks`: large batches chunk by chunk, computed ahead on the worker threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError, UnknownName
from featherjet.jit.workers import ahead, on_this_thread
from featherjet.robot.chunks import CACHE
from helpers import random_state

MODEL = fj.models.chain(3)
N = 300


@pytest.fixture(params=[1, 3])
def robot(request):
    return fj.Robot(MODEL, threads=request.param)


def gathered(robot, quantity, *inputs, **options):
    """The results of all chunks, put together, after a check that the parts follow each other."""
    end, found = 0, []
    for part, x in robot.chunks(quantity, *inputs, **options):
        assert part.start == end
        end = part.stop
        found.append(x if isinstance(x, tuple) else (x,))
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def test_chunks_are_the_batch(robot):
    q, v, a, _ = random_state(robot, N)
    want = robot.inverse_dynamics_derivatives(q, v, a)
    for size in (None, 1000, 64, 7):
        found = gathered(robot, "inverse_dynamics_derivatives", q, v, a, size=size)
        for x, y in zip(found, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)


def test_results_are_named_and_parts_fit_the_cache(robot):
    q, v, a, _ = random_state(robot, 70_000)
    parts = []
    for part, d in robot.chunks("inverse_dynamics_derivatives", q, v, a, each=lambda part, d: type(d)):
        assert d is fj.InverseDynamicsDerivatives
        parts.append(part)
    size = parts[0].stop
    assert size % 64 == 0
    assert CACHE / 2 < size * 8 * (3 * 3 + 3 * 9) <= CACHE
    assert parts[-1].stop == 70_000


def test_inputs_broadcast(robot, rng):
    q, v, a, _ = random_state(robot, N)
    for x, y, z in ((q, v[0], a), (q[:, None], v[None, :4], a[0]), (q, v[:1], a)):
        (found,) = gathered(robot, "inverse_dynamics", x, y, z, size=37)
        np.testing.assert_allclose(found, robot.inverse_dynamics(x, y, z), rtol=0, atol=1e-12)
    fext = rng.normal(size=(N, robot.njoints, 6))
    (found,) = gathered(robot, "inverse_dynamics", q, v, a, fext=fext, size=37)
    np.testing.assert_allclose(found, robot.inverse_dynamics(q, v, a, fext), rtol=0, atol=1e-12)


def test_frames_methods_and_single_precision(robot):
    q, v, a, _ = random_state(robot, N)
    tip = robot.frame_names[-1]
    (found,) = gathered(robot, "jacobian", q, frame=tip, viewpoint="world", size=50)
    np.testing.assert_allclose(found, robot.frame_jacobian(q, tip, viewpoint="world"), rtol=0, atol=1e-12)
    (found,) = gathered(robot, "jacobian", q.astype(np.float32), frame=tip, size=50)
    assert found.dtype == np.float32
    found = gathered(robot, "inverse_dynamics_derivatives", q, v, a, method="chain-rule", size=50)
    np.testing.assert_allclose(found[0], robot.inverse_dynamics_derivatives(q, v, a).dtau_dq, rtol=0, atol=1e-12)


def test_files_are_read_chunk_by_chunk(robot, tmp_path):
    q = random_state(robot, N)[0]
    np.save(tmp_path / "q.npy", q)
    mapped = np.load(tmp_path / "q.npy", mmap_mode="r")
    (found,) = gathered(robot, "gravity", mapped, size=64)
    np.testing.assert_allclose(found, robot.gravity(q), rtol=0, atol=1e-12)


def test_each_runs_on_the_workers_and_stays_there(robot):
    q = random_state(robot, N)[0]

    def each(part, g):
        return threading.get_ident(), bool(on_this_thread)

    seen = [x for _, x in robot.chunks("gravity", q, each=each, size=10)]
    assert all(alone and thread != threading.get_ident() for thread, alone in seen)
    assert not on_this_thread


def test_errors_say_where(robot):
    q = random_state(robot, N)[0]
    q[123, 1] = np.nan
    with pytest.raises(InputError, match=r"chunk 100:150: q\[23, 1\] is nan"):
        list(robot.chunks("gravity", q, size=50))
    for call, said in (
        (lambda: robot.chunks("gravity", q, q), "takes q; got 2 arrays"),
        (lambda: robot.chunks("gravity", q[0]), "one state has no chunks"),
        (lambda: robot.chunks("gravity", q, size=0), "size: "),
        (lambda: robot.chunks("gravity", q, fext=np.zeros(6)), "takes no external forces"),
        (lambda: robot.chunks("jacobian", q), "needs a frame"),
        (lambda: robot.chunks("bias", q, q[:7]), "do not broadcast"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    with pytest.raises(UnknownName, match="quantity to compute in chunks"):
        robot.chunks("gravitas", q)


# The relay of workers


def test_tasks_run_ahead_but_not_far():
    """At most twice as many tasks as threads are begun before their results are taken."""
    begun = []

    def task(k):
        begun.append(k)
        return k

    found = ahead(((lambda k=k: task(k)) for k in range(40)), 2)
    for k in range(40):
        assert next(found) == k
        assert len(begun) <= k + 1 + 4
    assert list(found) == []


def test_never_more_tasks_at_once_than_threads():
    at_work, most, lock = 0, 0, threading.Lock()

    def task():
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.001)
        with lock:
            at_work -= 1

    assert len(list(ahead([task] * 50, 3))) == 50
    assert most <= 3
    together = threading.Barrier(3, timeout=60)  # three tasks that wait for each other end only if they run at once
    assert sorted(ahead([together.wait] * 3, 3)) == [0, 1, 2]


@pytest.mark.parametrize("end", ["close", "raise"])
def test_nobody_works_after_the_end(end):
    at_work, begun = set(), []

    def task(k):
        at_work.add(k)
        begun.append(k)
        time.sleep(0.002)
        at_work.discard(k)
        if end == "raise" and k == 3:
            raise ArithmeticError("task 3")
        return k

    found = ahead(((lambda k=k: task(k)) for k in range(1000)), 3)
    if end == "close":
        assert [next(found), next(found)] == [0, 1]
        found.close()
    else:
        with pytest.raises(ArithmeticError, match="task 3"):
            list(found)
    assert not at_work
    number = len(begun)
    assert number < 20
    time.sleep(0.02)
    assert len(begun) == number
