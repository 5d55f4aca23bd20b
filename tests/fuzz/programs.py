"""Random programs for the compiler, half of them straight lines, half with loops, until the time is over.

python -m fuzz.programs [MINUTES]               prints what fails; exit code 1 if anything does
python -m fuzz.programs --count COUNT [SEED]    as many of each kind, however long it takes
"""

from __future__ import annotations

import os
import sys
import time

os.environ["FEATHERJET_CACHE_DIR"] = ""  # programs of which each is compiled once

import numpy as np

from fuzz import graphs, loops

TURN = 50  # programs of one kind before the next
MOST = 10  # failures that are printed


def fuzzed(rng: np.random.Generator, seconds: float, count: float) -> int:
    """How many programs failed, of as many as the time or the count allows."""
    end, tried, shares, failures = time.monotonic() + seconds, 0, 0.0, 0
    while time.monotonic() < end and tried < count:
        for _ in range(int(min(TURN, count))):
            said, share = graphs.attempt(rng)
            shares += share
            for found in filter(None, (said, loops.attempt(rng))):
                failures += 1
                if failures <= MOST:
                    print(found, flush=True)
            tried += 1
    print(
        f"{tried} graphs and {tried} programs with loops, {failures} failed; {shares / tried:.0%} of the graphs' "
        f"results were compared; {time.process_time():.0f} s of a processor"
    )
    return failures


def main() -> int:
    if sys.argv[1:2] == ["--count"]:
        seed = int(sys.argv[3]) if len(sys.argv) > 3 else None
        return 1 if fuzzed(np.random.default_rng(seed), np.inf, int(sys.argv[2])) else 0
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    return 1 if fuzzed(np.random.default_rng(), 60 * minutes, np.inf) else 0


if __name__ == "__main__":
    sys.exit(main())
