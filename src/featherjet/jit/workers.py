"""The worker threads of this process: one pool for everything, however many threads are asked for."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ..forks import Lock

MOST, BESIDES = 64, 7  # threads: at most, and besides one for each processor: these wait for the disk
LOOK = 0.05  # seconds between two looks for signals while waiting

Result = TypeVar("Result")


def processors() -> int:
    """The number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers(Executor):
    """Threads that start all at once, before memory is short; where none can start, a caller does its tasks itself."""

    def __init__(self, most: int) -> None:
        self._pool = _started(most)

    def submit(self, fn: Callable[..., Result], /, *args: Any, **settings: Any) -> Future[Result]:
        """The result of a call, now or later."""
        try:
            if self._pool is not None:
                return self._pool.submit(fn, *args, **settings)
        except RuntimeError:  # the interpreter is about to end
            pass
        found: Future[Result] = Future()
        try:
            found.set_result(fn(*args, **settings))
        except BaseException as failure:  # as of a thread's tasks
            found.set_exception(failure)
        return found


def _started(most: int) -> ThreadPoolExecutor | None:
    """A pool whose threads all run: as many as this process may have now, up to `most`; None if it may have none."""
    while most:
        pool, begin, running = ThreadPoolExecutor(most, thread_name_prefix="featherjet"), threading.Event(), 0
        with suppress(RuntimeError):
            while running < most:  # a pool starts a thread for each task that finds none at leisure
                pool.submit(begin.wait)
                running += 1
        begin.set()
        if running == most:
            return pool
        pool.shutdown(cancel_futures=True)
        most = running
    return None


def workers() -> Workers:
    """The threads of this process; a forked process starts its own."""
    global _workers
    with _lock:
        if _workers is None:
            _workers = Workers(min(MOST, processors() + BESIDES))
        return _workers


def awaited(future: Future[Result]) -> Result:
    """The result of a future, for a thread that Ctrl-C must reach.

    A signal that comes just before a thread falls asleep does not wake it, so this one wakes up to look.
    """
    while not future.done():
        wait([future], LOOK)
    return future.result()


def _forget() -> None:
    global _workers
    _workers = None


_lock = Lock()
_workers: Workers | None = None
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def ahead(tasks: Iterable[Callable[[], Result]], threads: int) -> Iterator[Result]:
    """The results of tasks in their order, computed before they are asked for by at most `threads` workers at a time.

    Up to twice as many results wait to be taken. When the iterator ends, fails or is closed, no worker is at work.
    """
    return _Relay(tasks, threads).results()


class _Relay:
    """Each worker that ends a task hands the next one to the pool, so that no worker ever waits for the taker."""

    def __init__(self, tasks: Iterable[Callable[[], Any]], threads: int) -> None:
        self._tasks, self._threads = iter(tasks), threads
        self._waiting: deque[Future[Any]] = deque()  # begun and not yet taken, in order
        self._running = 0
        self._lock = threading.Lock()

    def results(self) -> Iterator[Any]:
        try:
            self._begin()
            while self._waiting:
                found = awaited(self._waiting[0])  # if interrupted, it still counts as waiting
                self._waiting.popleft()
                yield found
                del found
                self._begin()
        finally:
            with self._lock:
                self._tasks = iter(())
            wait(self._waiting)

    def _begin(self) -> None:
        while (begun := self._next()) is not None:
            workers().submit(self._run, *begun)

    def _next(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        """A task to begin, and where its result goes; None if enough have begun."""
        with self._lock:
            if self._running >= self._threads or len(self._waiting) >= 2 * self._threads:
                return None
            task = next(self._tasks, None)
            if task is None:
                return None
            self._running += 1
            self._waiting.append(Future())
            return task, self._waiting[-1]

    def _run(self, task: Callable[[], Any], found: Future[Any]) -> None:
        try:
            with on_this_thread:
                found.set_result(task())
        except BaseException as failure:  # the taker raises it
            found.set_exception(failure)
        with self._lock:
            self._running -= 1
        self._begin()


class _OnThisThread(threading.local):
    """`with on_this_thread:` around calls that must not share their work with others: their caller already does."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        return self._depth > 0


on_this_thread = _OnThisThread()


class Background(Generic[Result]):
    """Tasks that at most `threads` workers run while this thread makes more of them."""

    def __init__(self, threads: int) -> None:
        self._threads, self._count = threads, 0
        self._queue: deque[tuple[int, Callable[[], Result]]] = deque()
        self._found: dict[int, Result] = {}
        self._helpers: list[Future[None]] = []

    def add(self, task: Callable[[], Result]) -> None:
        self._queue.append((self._count, task))
        self._count += 1
        if sum(not h.done() for h in self._helpers) < self._threads:
            self._helpers.append(workers().submit(self._help))

    def results(self) -> list[Result]:
        """The results of all tasks, in their order; this thread helps."""
        self._help()
        for helper in self._helpers:
            awaited(helper)
        return [self._found[k] for k in range(self._count)]

    def _help(self) -> None:
        while True:
            try:
                k, task = self._queue.popleft()
            except IndexError:
                return
            self._found[k] = task()

    def __enter__(self) -> Background[Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.clear()


def on_all_processors(tasks: Iterable[Callable[[], Result]]) -> list[Result]:
    """The results of tasks, in their order. They run while later ones are being made; at the end this thread helps."""
    with Background[Result](processors() - 1) as background:
        for task in tasks:
            background.add(task)
        return background.results()
