"""The worker threads of this process: one pool for everything, however many threads are asked for."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..forks import Lock

MOST = 64  # threads; they start when there is work for them

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


def _forget() -> None:
    global _pool
    _pool = None


_lock = Lock()
_pool: ThreadPoolExecutor | None = None
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def on_all_processors(tasks: Iterable[Callable[[], Result]]) -> list[Result]:
    """The results of tasks, in their order. They run while later ones are being made; at the end this thread helps."""
    waiting: deque[tuple[int, Callable[[], Result]]] = deque()
    found: dict[int, Result] = {}

    def help() -> None:
        while True:
            try:
                k, task = waiting.popleft()
            except IndexError:
                return
            found[k] = task()

    helpers: list[Future[None]] = []
    try:
        for number, task in enumerate(tasks):
            waiting.append((number, task))
            if sum(not h.done() for h in helpers) < processors() - 1:
                helpers.append(workers().submit(help))
        help()
        for helper in helpers:
            helper.result()
    finally:
        waiting.clear()
    return [found[k] for k in range(len(found))]
