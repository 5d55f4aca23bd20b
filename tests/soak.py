"""`make soak`: processes that compute on threads, fork, are killed, lose their cache and run out of memory.

python -m soak [MINUTES]. Every worker compares its results with the NumPy reference, computed once, and its memory at
the end with that after its first round. Exit code 0: everything agreed, nobody crashed, memory did not grow.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

import featherjet as fj
from featherjet.jit.memory import POOL
from helpers import random_state

GROWTH_MB = 64  # more than that, from the second round on, is a leak
WORKERS = 2
MODELS = {"arm": fj.models.arm, "quadruped": fj.models.quadruped, "chain": lambda: fj.models.chain(12)}
QUANTITIES = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_dynamics_derivatives")


def rss() -> float:
    """The memory of this process [MB], once what it keeps for reuse is given back."""
    POOL.clear()
    gc.collect()
    if hasattr(C := ctypes.CDLL(None), "malloc_trim"):
        C.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def results(robot: fj.Robot, name: str, s) -> list[np.ndarray]:
    inputs = (s.q,) if name == "mass_matrix" else (s.q, s.v, s.a)
    found = getattr(robot, name)(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def agree(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * (1 + np.abs(y).max()))


def in_child(work) -> None:
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(300)
            work()
            os._exit(0)
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if status:
        raise SystemExit(f"a forked child failed: {status}")


def out_of_memory(robot: fj.Robot, s, expected) -> None:
    """In a child whose memory is limited for a while: MemoryError and no crash; then it computes as before."""
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (virtual + (64 << 20), limits[1]))
    held = []
    try:
        while True:
            held.append(results(robot, "inverse_dynamics_derivatives", s))
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    for found in [*held, results(robot, "inverse_dynamics_derivatives", s)]:
        agree(found, expected)


class Worker:
    """Rounds of everything, until the time is over."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        references = {name: fj.Robot(make(), backend="numpy") for name, make in MODELS.items()}
        self.states = {name: random_state(robot, 3000) for name, robot in references.items()}
        self.expected = {(n, x): results(r, x, self.states[n]) for n, r in references.items() for x in QUANTITIES}
        self.robots: dict[str, fj.Robot] = {}
        self.failures: list[BaseException] = []

    def compute(self, cases: list[tuple[str, str]]) -> None:
        try:
            for name, x in cases:
                agree(results(self.robots[name], x, self.states[name]), self.expected[name, x])
        except BaseException as error:
            self.failures.append(error)

    def one_of(self, name: str) -> None:
        agree(results(self.robots[name], "mass_matrix", self.states[name]), self.expected[name, "mass_matrix"])

    def round(self) -> None:
        """New robots, computed with on four threads; meanwhile a fork, and perhaps a cache that disappears."""
        rng = self.rng
        self.robots = {
            name: fj.Robot(make(), backend="compiled", threads=rng.randint(1, 3)) for name, make in MODELS.items()
        }
        cases = [rng.sample(sorted(self.expected), 6) for _ in range(4)]
        threads = [threading.Thread(target=self.compute, args=(some,)) for some in cases]
        for thread in threads:
            thread.start()
        in_child(partial(self.one_of, rng.choice(list(MODELS))))
        if rng.random() < 0.3:
            shutil.rmtree(os.environ["FEATHERJET_CACHE_DIR"], ignore_errors=True)
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        if rng.random() < 0.3:
            expected = self.expected["arm", "inverse_dynamics_derivatives"]
            in_child(partial(out_of_memory, self.robots["arm"], self.states["arm"], expected))


def worker(seed: int, end: float) -> int:
    work, seen = Worker(seed), {}  # memory after so many rounds
    rounds, next = 0, 2
    while time.time() < end:
        work.round()
        rounds += 1
        if rounds == next:
            seen[rounds], next = rss(), 2 * rounds
    if not seen:
        return 0
    grown = rss() - seen[2]
    course = ", ".join(f"{mb:.0f} MB after {n}" for n, mb in seen.items())
    print(f"{rounds} rounds, {rss():.0f} MB, grown by {grown:.1f} MB ({course})", flush=True)
    return 0 if grown < GROWTH_MB else 4


def main() -> int:
    if len(sys.argv) == 3:
        return worker(int(sys.argv[1]), float(sys.argv[2]))
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    end, rng = time.time() + 60 * minutes, random.Random(7)
    folder = Path(tempfile.mkdtemp(prefix="featherjet-soak-"))
    environment = {**os.environ, "FEATHERJET_CACHE_DIR": str(folder / "code"), "OPENBLAS_NUM_THREADS": "1"}

    def start() -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "soak", str(rng.randrange(10**6)), str(end)], env=environment
        )

    steady, victim, kills, codes = [start() for _ in range(WORKERS)], start(), 0, []
    while time.time() < end:
        time.sleep(rng.uniform(1, 6))
        victim.kill()  # in the middle of whatever it does
        victim.wait()
        kills += 1
        victim = start()
        codes += [p.returncode for p in steady if p.poll() not in (None, 0)]
        if codes:
            break
    victim.kill()
    victim.wait()
    codes = [p.wait() for p in steady]
    left = [p.name for p in (folder / "code").glob(".featherjet-*")] if (folder / "code").exists() else []
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{minutes:g} minutes, {kills} killed, exit codes {codes}, {len(left)} unfinished files left to sweep")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
