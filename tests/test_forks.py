"""A process may fork while other threads compile or allocate: the child computes, and never waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding.ffi
import numpy as np
import pytest

import featherjet as fj
from featherjet.forks import Lock, unforked
from featherjet.jit import library as libraries
from featherjet.jit.memory import POOL
from helpers import random_state

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
MODEL = fj.models.chain(3)
PATIENCE = 120  # seconds after which a child that waits for ever is ended


def in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` is true in a forked child."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def held(hold: Callable[[threading.Event], object]) -> Callable[[], None]:
    """Run `hold` on a thread until the function returned is called; `hold` waits for the event it is given."""
    free = threading.Event()
    thread = threading.Thread(target=hold, args=(free,), daemon=True)
    thread.start()

    def end() -> None:
        free.set()
        thread.join()

    return end


def test_a_lock_is_free_in_a_child():
    for reentrant in (False, True):
        lock, taken = Lock(reentrant), threading.Event()

        def hold(free: threading.Event, lock: Lock = lock, taken: threading.Event = taken) -> None:
            with lock:
                taken.set()
                free.wait()

        end = held(hold)
        taken.wait()
        assert not lock.acquire(blocking=False)
        assert in_child(lambda lock=lock: lock.acquire(blocking=False))
        assert not lock.acquire(blocking=False), "the parent's lock is untouched"
        end()
        assert lock.acquire(blocking=False)


def test_forking_while_another_thread_compiles(tmp_path, monkeypatch):
    """The other thread is inside `compiled`, and so inside the locks of the library and of Kernel.batch."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(libraries, "_loaded", {})
    s = random_state(fj.Robot(MODEL, backend="numpy"), 5)
    expected = fj.Robot(MODEL, backend="numpy").inverse_dynamics(s.q, s.v, s.a)
    robot, inside = fj.Robot(MODEL, backend="compiled"), threading.Event()
    compiled, main = libraries.compiled, os.getpid()

    def slow(*args):
        if os.getpid() == main:
            inside.set()
            free.wait()
        return compiled(*args)

    free = threading.Event()
    monkeypatch.setattr(libraries, "compiled", slow)
    thread = threading.Thread(target=robot.inverse_dynamics, args=(s.q, s.v, s.a))
    thread.start()
    inside.wait()
    right = in_child(lambda: bool(np.allclose(robot.inverse_dynamics(s.q, s.v, s.a), expected, rtol=1e-9)))
    free.set()
    thread.join()
    assert right


def test_forking_while_another_thread_is_in_llvm(tmp_path, monkeypatch):
    """The fork waits until LLVM's call returns: in the child, LLVM's memory is whole and nobody holds its lock."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    monkeypatch.setattr(libraries, "_loaded", {})
    q = np.array([0.1, 0.2, 0.3])
    expected = fj.Robot(MODEL, backend="numpy").mass_matrix(q)
    fj.Robot(MODEL, backend="compiled")
    taken = threading.Event()

    def hold(free: threading.Event) -> None:
        with llvmlite.binding.ffi.lib._lock:
            taken.set()
            time.sleep(0.2)

    end = held(hold)
    taken.wait()
    right = in_child(lambda: bool(np.allclose(fj.Robot(MODEL, backend="compiled").mass_matrix(q), expected, rtol=1e-9)))
    end()
    assert right


IMPORTING = """
import os, signal, sys, threading
import numpy as np
import featherjet as fj

importing, free = threading.Event(), threading.Event()
name = {name!r}
assert name not in sys.modules

class Slow:
    \"\"\"A module that takes until the fork to be found.\"\"\"

    def find_spec(self, wanted, path=None, target=None):
        if wanted == name:
            importing.set()
            free.wait()
        return None

sys.meta_path.insert(0, Slow())
os.register_at_fork(before=free.set)  # runs before the hooks of featherjet, which were registered earlier

def compute():
    robot, q = fj.Robot(fj.models.chain(3), backend="compiled", unroll=True), np.array([0.1, 0.2, 0.3])
    return robot.mass_matrix(q)

thread = threading.Thread(target=compute)
thread.start()
importing.wait()
child = os.fork()
if child == 0:
    signal.alarm({patience})
    expected = fj.Robot(fj.models.chain(3), backend="numpy").mass_matrix(np.array([0.1, 0.2, 0.3]))
    os._exit(0 if np.allclose(compute(), expected, rtol=1e-9) else 1)
status = os.waitpid(child, 0)[1]
thread.join()
sys.exit(bool(status) or "numpy.ma" in sys.modules)  # NumPy would import it within a function, and we cannot wait
"""


@pytest.mark.parametrize("name", ["featherjet.treejit.compiler", "featherjet.jit.emit.straight"])
def test_forking_while_another_thread_imports(name, tmp_path):
    """The fork waits for imports within functions: in the child, their locks would stay locked for ever."""
    program = IMPORTING.format(name=name, patience=PATIENCE)
    path = os.pathsep.join([str(Path(fj.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "FEATHERJET_CACHE_DIR": str(tmp_path / "code"), "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=environment, check=False)
    assert run.returncode == 0


def test_a_fork_waits_for_unforked_work():
    """LLVM compiles without its lock, so only this keeps its memory whole in the child."""
    begun, free, seen = threading.Event(), threading.Event(), []

    def work() -> None:
        with unforked:
            begun.set()
            free.wait()
            seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    threading.Timer(0.2, free.set).start()
    assert in_child(lambda: seen == ["done"])
    thread.join()


def test_forking_while_another_thread_takes_memory():
    taken = threading.Event()

    def hold(free: threading.Event) -> None:
        with POOL._lock:
            taken.set()
            free.wait()

    end = held(hold)
    taken.wait()
    assert in_child(lambda: POOL.empty((1 << 15, 1), np.dtype(float)).shape == (1 << 15, 1))
    end()


INTERRUPTED = """
import os, signal, sys, threading, time
from featherjet.forks import unforked

def busy():
    with unforked:
        begun.set()
        time.sleep(1.5)

def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

begun = threading.Event()
threading.Thread(target=busy).start()
begun.wait()
threading.Thread(target=interrupt).start()
start, child = time.monotonic(), None
try:
    child = os.fork()  # waits for `busy`
    if child == 0:
        with unforked:
            os._exit(7 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 8)
    time.sleep(0.5)
    print("swallowed")
except KeyboardInterrupt:
    print("interrupted after", round(time.monotonic() - start, 1) >= 1.0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
with unforked:
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_an_interrupt_while_a_fork_waits_comes_after_it():
    """Python swallows what a hook of a fork raises; the child is whole, and the parent is interrupted."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INTERRUPTED], capture_output=True, text=True, timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert found.stdout.split("\n")[:3] == ["interrupted after True", "7", "True"], found.stdout + found.stderr
    assert "Traceback" not in found.stderr
