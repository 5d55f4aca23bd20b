"""The worker threads of this process: one pool for everything, however many threads are asked for."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

from ..forks import Lock

MOST = 64  # threads; they start when there is work for them
LOOK = 0.05  # seconds between two looks for signals while waiting

Result = TypeVar("Result")


def processors() -> int:
    """The number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers() -> ThreadPoolExecutor:
    """The pool; a forked process makes its own."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(MOST, thread_name_prefix="featherjet")
        return _pool


def awaited(future: Future[Result]) -> Result:
    """The result of a future, for a thread that Ctrl-C must reach.

    A signal that comes just before a thread falls asleep does not wake it, so this one wakes up to look.
    """
    while not future.done():
        wait([future], LOOK)
    return future.result()


def _forget() -> None:
    global _pool
    _pool = None


_lock = Lock()
_pool: ThreadPoolExecutor | None = None
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
        with self._lock:
            while self._running < self._threads and len(self._waiting) < 2 * self._threads:
                task = next(self._tasks, None)
                if task is None:
                    return
                self._running += 1
                self._waiting.append(workers().submit(self._run, task))

    def _run(self, task: Callable[[], Any]) -> Any:
        try:
            with on_this_thread:
                return task()
        finally:
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
