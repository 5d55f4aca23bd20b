"""Worker threads: they start early, and where none can start the caller computes alone."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading

import numpy as np
import pytest

import featherjet as fj
from featherjet.interpreter import UnsupportedPython, refuse_free_threading
from featherjet.jit import workers
from featherjet.jit.workers import ahead, on_all_processors

MODEL = fj.models.chain(2)
Q = np.linspace(-1, 1, 40_000).reshape(-1, 2)


def limited(monkeypatch, most: int) -> list[int]:
    """Let so many threads start from now on, in a process that has no workers yet; returns what has started."""
    real, started = threading.Thread.start, [0]

    def start(thread):
        if started[0] >= most:
            raise RuntimeError("can't start new thread")
        started[0] += 1
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(workers, "_workers", None)
    return started


@pytest.mark.parametrize("most", [0, 1, 3])
def test_with_few_threads_or_none_everything_is_computed(monkeypatch, most, tmp_path):
    expected = fj.Robot(MODEL, backend="numpy").inverse_dynamics(Q, Q, Q)
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path))  # so that code is compiled
    limited(monkeypatch, most)
    robot = fj.Robot(fj.models.chain(2), backend="compiled", threads=4)
    np.testing.assert_allclose(robot.inverse_dynamics(Q, Q, Q), expected, rtol=1e-12, atol=1e-12)
    assert list(ahead([lambda k=k: k for k in range(300)], 4)) == list(range(300))
    assert on_all_processors(lambda k=k: k for k in range(100)) == list(range(100))
    with pytest.raises(ZeroDivisionError):
        list(ahead([lambda: 1, lambda: 1 // 0], 2))
    assert workers.workers().submit(divmod, 7, 2).result() == (3, 1)


def test_all_threads_start_at_once(monkeypatch):
    started = limited(monkeypatch, 1000)
    workers.workers()
    first = started[0]
    assert first == min(workers.MOST, workers.processors() + workers.BESIDES)
    for _ in range(100):
        workers.workers().submit(threading.Event().wait, 0.001)
    assert started[0] == first


ALONE = """
import resource
import numpy as np
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
import threading
try:
    threading.Thread(target=int).start()
    print("threads start")
except RuntimeError:
    pass
import featherjet as fj
q = np.linspace(-1, 1, 40_000).reshape(-1, 2)
robot = fj.Robot(fj.models.chain(2), threads=4)
print(abs(robot.inverse_dynamics(q, q, q)).sum())
"""


def test_where_no_thread_may_start_at_all(tmp_path):
    """A limit of processes, as of `ulimit -u`."""
    if not hasattr(_thread, "start_new_thread") or sys.platform != "linux":
        pytest.skip("limits of processes are Linux'")
    setpriv = ["setpriv", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--reuid=54321"]
    environment = {"PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1", "FEATHERJET_CACHE_DIR": ""}
    command = [*setpriv, sys.executable, "-c", ALONE]
    try:
        found = subprocess.run(command, capture_output=True, text=True, env=environment)
    except FileNotFoundError:
        pytest.skip("no setpriv here")
    if "setpriv" in found.stderr or "threads start" in found.stdout:
        pytest.skip("only root may become somebody else")
    assert found.returncode == 0, found.stderr
    expected = np.abs(fj.Robot(MODEL, backend="numpy").inverse_dynamics(Q, Q, Q)).sum()
    assert abs(float(found.stdout) - expected) < 1e-9 * expected


@pytest.mark.parametrize(
    "version, flags",
    [("3.13.1 experimental free-threading build (main)", "t"), ("3.14.0 free-threading build", ""), ("3.14.0", "td")],
)
def test_free_threaded_python_is_refused_by_name(version, flags):
    with pytest.raises(UnsupportedPython, match=rf"free-threaded Python \({version[:4]}t\).*use python{version[:4]}"):
        refuse_free_threading(version, flags)
    refuse_free_threading("3.14.0 (main)", "d")
    refuse_free_threading("3.13.0", "")
