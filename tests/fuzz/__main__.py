"""`make fuzz`: mutants of every target until the time is over; what fails is kept in the corpus.

python -m fuzz [MINUTES] [TARGET...]            with atheris installed, half of the time by coverage
python -m fuzz --mutants COUNT [TARGET...]      as many mutants of each target, however long it takes
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz.mutants import mutant
from fuzz.targets import TARGETS, attempt

CORPUS = Path(__file__).parent / "corpus"
TURN = 200  # mutants of one target before the next
TELL = 10_000  # mutants of each target between two lines that say so


def keep(name: str, data: bytes) -> Path:
    path = CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def by_coverage(name: str, seconds: int) -> int:
    """One target by atheris, in a process of its own; returns its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fuzz.coverage", name, str(seconds)]
        return subprocess.call(command, env={**os.environ, "TMPDIR": folder})


def by_mutants(names: list[str], seconds: float = math.inf, count: float = math.inf) -> int:
    """All targets in turns, for a time or until each has had `count`; returns how many kinds of failure there were."""
    rng, end = np.random.default_rng(), time.monotonic() + seconds
    seeds = {name: TARGETS[name].seeds() for name in names}
    tried: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    failures: dict[tuple[str, str], Path] = {}
    while time.monotonic() < end and min(tried[name] for name in names) < count:
        for name in names:
            for _ in range(TURN):
                data = mutant(rng, seeds[name], TARGETS[name].form)
                tried[name] += 1
                try:
                    accepted[name] += attempt(name, data)
                except Exception as error:
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    kind = name, f"{type(error).__name__} at {last.filename}:{last.lineno}: {str(error)[:100]!r}"
                    if kind not in failures:
                        failures[kind] = keep(name, data)
                        print(name, kind[1], failures[kind], flush=True)
        if tried[names[0]] % TELL == 0:
            print(f"{tried[names[0]]} mutants of each", flush=True)
    for name in names:
        print(f"{name}: {tried[name]} mutants, {accepted[name]} of them valid")
    print(f"{len(failures)} kinds of failure; {time.process_time():.0f} s of a processor")
    return len(failures)


def main() -> int:
    if sys.argv[1:2] == ["--mutants"]:
        return 1 if by_mutants(sys.argv[3:] or list(TARGETS), count=int(sys.argv[2])) else 0
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    names = sys.argv[2:] or list(TARGETS)
    if importlib.util.find_spec("atheris") is None:
        return 1 if by_mutants(names, 60 * minutes) else 0
    share = max(1, int(30 * minutes / len(names)))
    codes = [by_coverage(name, share) for name in names]
    return 1 if by_mutants(names, 30 * minutes) or any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
