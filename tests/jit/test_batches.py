"""Long batches in slices: the same numbers, soon interrupted, and nothing written afterwards."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherjet as fj
import featherjet.jit.batches
import featherjet.jit.kernel
from featherjet.jit.batches import FEWEST, SLICE, Team, flattened, rows_within
from featherjet.jit.kernel import Kernel
from helpers import random_state

MODEL = fj.models.chain(3)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=3), st.floats(1.0, 1e8))
def test_parts_are_short_and_cut_between_whole_vectors(batch, cost):
    rows = rows_within(batch, cost, SLICE)
    samples = rows * prod(batch[1:])
    assert rows == 1 or samples < FEWEST + prod(batch[1:]) or samples * cost <= SLICE
    if len(batch) == 1:
        assert rows % FEWEST == 0


@given(st.integers(1, 5000), st.integers(0, 4), st.integers(0, 12), st.integers(0, 5))
def test_a_team_computes_every_row_once(count, least, more, helpers):
    """Whatever helpers do, and parts are cut at multiples of the shortest."""
    shortest = 1 << least
    seen, parts = np.zeros(count, int), []

    def work(part: slice) -> int:
        seen[part] += 1
        parts.append(part)
        return 0

    with ThreadPoolExecutor(6) as pool:
        Team(work, count, shortest, shortest + more).run(pool, helpers)
    assert (seen == 1).all()
    assert all(part.start % shortest == 0 and part.stop - part.start <= shortest + more for part in parts)


def test_batches_are_flattened_where_that_needs_no_copy():
    x, one, out = np.zeros((3, 5, 7)), np.zeros(7), np.zeros((3, 5, 2))
    batch, wide, outs = flattened((3, 5), [x, one], [1, 1], [out])
    assert batch == (15,)
    assert [w.shape for w in wide] == [(15, 7), (15, 7)]
    assert [o.shape for o in outs] == [(15, 2)]
    assert np.shares_memory(wide[0], x)
    assert np.shares_memory(outs[0], out)
    for inputs, o in (([x[:, :1], x], out), ([x[:, ::-1], one], out), ([x, one], np.zeros((5, 3, 2)).swapaxes(0, 1))):
        batch, wide, outs = flattened((3, 5), inputs, [1, 1], [o])
        assert batch == (3, 5)
        assert all(np.shares_memory(w, i) for w, i in zip(wide, inputs, strict=True))
        assert np.shares_memory(outs[0], o)


@pytest.fixture
def thin(monkeypatch) -> list[int]:
    """Slices of about a hundred samples; and the number of samples of each call of machine code."""
    for module in (featherjet.jit.batches, featherjet.jit.kernel):
        monkeypatch.setattr(module, "SLICE", 1e4)
    for name in ("WORTH", "LEAST"):
        monkeypatch.setattr(featherjet.jit.kernel, name, 1e4)
    seen: list[int] = []
    run = Kernel._run

    def counted(self, code, inputs, out):
        seen.append(prod(out[0].shape[:1]) if out else 0)
        return run(self, code, inputs, out)

    monkeypatch.setattr(Kernel, "_run", counted)
    return seen


@pytest.mark.parametrize("threads", [1, 3])
def test_where_a_batch_is_cut_does_not_change_a_bit(thin, monkeypatch, threads, rng):
    s = random_state(fj.Robot(MODEL, backend="numpy"), 8003)
    robot = fj.Robot(MODEL, backend="compiled", threads=threads)
    cut = robot.inverse_dynamics_derivatives(s.q, s.v, s.a)
    assert len(thin) > 50
    monkeypatch.undo()
    whole = fj.Robot(MODEL, backend="compiled", threads=1).inverse_dynamics_derivatives(s.q, s.v, s.a)
    for x, y in zip(cut, whole, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(2, 4000), (4000, 2), (3, 50, 7), (1, 1, 5000)])
@pytest.mark.parametrize("layout", ["plain", "broadcast", "strided", "overlapping"])
def test_batches_of_every_shape_are_right(thin, shape, layout):
    robot, reference = fj.Robot(MODEL, backend="compiled", threads=2), fj.Robot(MODEL, backend="numpy")
    s = random_state(reference, prod(shape))
    q, v, a = (x.reshape(*shape, 3).copy() for x in (s.q, s.v, s.a))
    if layout == "broadcast":
        v, a = v[:1], a[..., :1, :]
    if layout == "strided":
        q, v = q[..., ::-1], v[::-1]
    expected = reference.inverse_dynamics(q, v, a)
    found = robot.inverse_dynamics(q, v, a, out=a if layout == "overlapping" else None)
    assert np.shares_memory(found, a) == (layout == "overlapping")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_long_batches_are_many_calls(thin, monkeypatch):
    """Also those with small results, and those whose first axis is short."""
    s = random_state(fj.Robot(MODEL, backend="numpy"), 8000)
    robot = fj.Robot(MODEL, backend="compiled", threads=1)
    robot.kinetic_energy(s.q, s.v)
    assert len(thin) > 20
    del thin[:]
    robot.kinetic_energy(s.q.reshape(2, 4000, 3), s.v.reshape(2, 4000, 3))
    assert len(thin) > 20


@pytest.mark.parametrize("shape", [(0,), (5, 0), (0, 20), (20, 0, 2)])
def test_batches_of_nothing(shape):
    x, out = np.zeros((*shape, 3)), np.zeros((*shape, 3))
    assert fj.Robot(MODEL, backend="compiled").inverse_dynamics(x, x, x, out=out) is out


# Ctrl-C


def test_one_thread_is_interrupted_between_slices(thin, monkeypatch):
    s = random_state(fj.Robot(MODEL, backend="numpy"), 8000)
    robot = fj.Robot(MODEL, backend="compiled", threads=1)
    counted = Kernel._run

    def interrupting(self, code, inputs, out):
        if len(thin) == 5:
            signal.raise_signal(signal.SIGINT)
        return counted(self, code, inputs, out)

    monkeypatch.setattr(Kernel, "_run", interrupting)
    with pytest.raises(KeyboardInterrupt):
        robot.inverse_dynamics(s.q, s.v, s.a)
    assert len(thin) < 10


def test_no_helper_writes_after_the_exception(thin, monkeypatch):
    """Helpers are in the middle of a slice when Ctrl-C comes; they finish it first."""
    s = random_state(fj.Robot(MODEL, backend="numpy"), 8000)
    robot = fj.Robot(MODEL, backend="compiled", threads=3)
    out = np.zeros((8000, 3))
    busy, noticed = threading.Barrier(3), threading.Event()
    ended: list[int] = []
    real, end, main = Kernel._run, Team._end, threading.main_thread().ident

    def ending(self):
        noticed.set()
        end(self)

    def slow(self, code, inputs, out):
        if not noticed.is_set():
            busy.wait(60)  # all three are at work
            if threading.get_ident() == main:
                signal.raise_signal(signal.SIGINT)
            assert noticed.wait(60)
            threading.Event().wait(0.1)  # long enough to be too late, if the main thread did not wait
        found = real(self, code, inputs, out)
        ended.append(1)
        return found

    monkeypatch.setattr(Team, "_end", ending)
    monkeypatch.setattr(Kernel, "_run", slow)
    with pytest.raises(KeyboardInterrupt):
        robot.inverse_dynamics(s.q, s.v, s.a, out=out)
    assert len(ended) == 2, "both helpers have ended their slices, and nobody began another"
    assert (out == 0).any(), "it was interrupted"


def test_ctrl_c_while_the_caller_waits_for_a_helper():
    """It is raised once the helper has ended its part."""
    begun, ended, main = threading.Event(), [], threading.main_thread().ident

    def work(part: slice) -> int:
        if threading.get_ident() == main:
            assert begun.wait(60), "the helper has a part"
            return 0
        begun.set()
        threading.Event().wait(0.2)  # the caller waits by now
        signal.pthread_kill(main, signal.SIGINT)
        threading.Event().wait(0.2)
        ended.append(part)
        return 0

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        Team(work, 2, 1, 1).run(pool, 1)
    assert len(ended) == 1


@pytest.mark.parametrize("who", ["caller", "helper"])
def test_one_that_fails_stops_the_others(who):
    both, stopped, done, main = threading.Barrier(2), threading.Event(), [], threading.main_thread().ident

    class Watched(Team):
        def _begin_nothing(self) -> None:
            super()._begin_nothing()
            stopped.set()

    def work(part: slice) -> int:
        if not done:
            both.wait(60)
        if (threading.get_ident() == main) == (who == "caller"):
            raise MemoryError
        assert stopped.wait(60)
        done.append(part.start)
        return 1

    with ThreadPoolExecutor(1) as pool, pytest.raises(MemoryError):
        Watched(work, 1000, 1, 1).run(pool, 1)
    assert len(done) == 1


def test_helpers_that_never_come_are_not_waited_for():
    """Other programs may have their processors."""
    hold, done = threading.Event(), []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold.wait, 60)
        Team(lambda part: done.append(part) or 0, 100, 1, 10).run(pool, 1)
        hold.set()
    assert sum(part.stop - part.start for part in done) == 100, "the caller did it all, and a late helper nothing"


def test_flags_of_all_parts_are_collected():
    with ThreadPoolExecutor(2) as pool:
        assert Team(lambda part: 1 << part.start, 4, 1, 1).run(pool, 2) == 15


@pytest.mark.parametrize("layout", ["plain", "Fortran", "strided", "backwards", "broadcast"])
def test_inputs_of_several_axes_are_read_in_any_layout(layout):
    """Also those that are not six wide, and by code for one sample as well as for vectors of them."""
    kernel = featherjet.jit.kernel.compile(
        lambda x, y: [x.T + 1.0, 2.0 * y], {"x": (3, 4), "y": (2, 3, 5)}, "several axes", "several axes"
    )
    rng = np.random.default_rng(0)
    for batch in ((), (21,)):
        given = [rng.normal(size=(*batch, *shape)) for shape in kernel.inputs.values()]
        if layout == "Fortran":
            given = [np.asfortranarray(x) for x in given]
        elif layout == "strided":
            given = [np.repeat(x, 2, -1)[..., ::2] for x in given]
        elif layout == "backwards":
            given = [x[..., ::-1, :] for x in given]
        elif layout == "broadcast":
            given[0] = np.broadcast_to(given[0][..., :1, :], given[0].shape)
        x, y = given
        found = kernel(given, None, 1)[0]
        np.testing.assert_array_equal(found[0], np.swapaxes(x, -1, -2) + 1.0)
        np.testing.assert_array_equal(found[1], 2.0 * y)
