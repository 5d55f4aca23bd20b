"""Searches over small matrices wake no threads of NumPy's and SciPy's BLAS, which would spin beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.blas import one_blas_thread, sum_of_squares

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # that limit threads before anything runs
OTHER = "openblas" not in str(np.show_config(mode="dicts")).lower()
needs_openblas = pytest.mark.skipif(OTHER, reason="this NumPy has another BLAS")
needs_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux shows what threads do")

TRANSITION = """
    import time
    import numpy as np
    import featherjet as fj

    arm = fj.Robot(fj.models.arm(), backend="compiled")
    rest = np.zeros(7)
    ends = [(np.array([s * 0.8, 1.2, 0, -1.2, 0, 0.7, 0]), rest) for s in (-1, 1)]
    over = fj.Target("tool", time=0.75, position=(0.62, 0.0, 0.85))
    def search(**more):
        limits = ("position", "velocity", "effort")
        return fj.transition(arm, *ends, 1.5, targets=[over], limits=limits, **more).report
    search(max_iterations=1)  # compiles
"""
TIMED = """
    begun = time.process_time()
    assert search().success
    print(time.process_time() - begun)
"""
LIBRARIES = """
    import os
    import numpy, scipy.linalg

    threads = [t for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]  # of BLAS: nobody else has any yet
"""
WATCHED = """
    def look():  # whether threads sleep, and how often the system let them run
        read = [open(f"/proc/self/task/{t}/{x}").read().split() for x in ("stat", "schedstat") for t in threads]
        return {x[2] for x in read[: len(threads)]} == {"S"}, [x[2] for x in read[len(threads) :]]

    def asleep():
        while not (now := look())[0]:
            time.sleep(0.05)
        return now

    def wakes(name, work):
        before = asleep()
        work()
        print(name, before != asleep())

    A = np.ones((400, 400))
    wakes("product", lambda: A @ A)
    wakes("slsqp", search)
    wakes("trust-constr", lambda: search(solver="trust-constr", max_iterations=20))
    wakes("lbfgs", lambda: fj.transition(arm, *ends, 1.5))
    many = np.zeros((3000, 7))
    wakes("simulate", lambda: arm.simulate(many, many, dt=1e-2, duration=3e-2))
    phase = fj.control.Phase(10, 0.02, [fj.control.Cost(fj.control.Control(), 1e-2)])
    end = fj.control.Cost(fj.control.State(), 1.0)
    chain = fj.Robot(fj.models.chain(90), backend="compiled")
    for robot in arm, chain:
        x0 = np.concatenate([robot.random_configuration(0), np.zeros(robot.nv)])
        problem = fj.control.Problem(robot, x0, [phase], [end])
        wakes(f"control {robot.nv}", lambda: problem.guess(x0) if robot is chain else fj.control.solve(problem))
    wakes("verify", lambda: fj.verify.check(arm))
"""


def run(program: str, **variables: str) -> list[str]:
    environment = {k: x for k, x in os.environ.items() if k not in VARIABLES}
    environment |= {"PYTHONPATH": str(Path(fj.__file__).parents[1]), **variables}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@needs_linux
@needs_openblas
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one processor, BLAS has one thread")
def test_no_thread_of_blas_wakes() -> None:
    product, *ours = run(LIBRARIES + TRANSITION + WATCHED)
    assert product == "product True", "the threads that are watched are those of BLAS"
    assert len(ours) == 7
    assert all(line.endswith("False") for line in ours), ours


def test_a_search_takes_the_processor_time_of_one_thread() -> None:
    """With BLAS's threads awake it takes 20 to 40 times as much on two processors, and more on more."""
    (alone,) = run(TRANSITION + TIMED, OPENBLAS_NUM_THREADS="1")
    (as_users_do,) = run(TRANSITION + TIMED)
    assert float(as_users_do) < 5 * float(alone) + 0.5


@needs_openblas
def test_threads_are_given_back() -> None:
    with one_blas_thread:
        libraries = one_blas_thread.libraries
    assert libraries, "NumPy's own"

    def counts() -> list[int]:
        return [library.threads() for library in libraries]

    before = counts()
    for library in libraries:
        library.use(2)
    entered, leave = threading.Event(), threading.Event()

    @one_blas_thread
    def hold() -> None:
        entered.set()
        leave.wait()

    @one_blas_thread
    def fail() -> None:
        with one_blas_thread:
            assert set(counts()) == {1}
            other.start()
            entered.wait()
        raise ZeroDivisionError

    other = threading.Thread(target=hold)
    try:
        with pytest.raises(ZeroDivisionError):
            fail()
        assert set(counts()) == {1}, "the other thread is still inside"
        leave.set()
        other.join()
        assert set(counts()) == {2}
    finally:
        for library, count in zip(libraries, before, strict=True):
            library.use(count)


@pytest.mark.parametrize("count", [0, 1, 8191, 8192, 30_000])
def test_sums_of_squares(count: int) -> None:
    x = np.random.default_rng(count).normal(size=(2, count))
    for y in (x[0], x, x[:, ::2], x.T):
        assert np.isclose(sum_of_squares(y), (y**2).sum(), rtol=1e-13, atol=0)
    x[..., :1] = np.inf
    assert np.isinf(sum_of_squares(x)) or not count
