"""One target fuzzed by coverage: python -m fuzz.coverage TARGET SECONDS. Needs atheris.

What fails goes to the corpus; what merely reaches new code goes to a temporary folder.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).parent / "corpus"


def fuzz(name: str, seconds: int) -> None:
    """Fuzz a target in this process, which atheris ends."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["featherjet"]):  # what was imported before would not count
        targets: Any = importlib.import_module("fuzz.targets")
    mutants: Any = importlib.import_module("fuzz.mutants")
    target, known, new = targets.TARGETS[name], CORPUS / name, Path(tempfile.mkdtemp())
    known.mkdir(parents=True, exist_ok=True)
    seeds = target.seeds()
    for k, seed in enumerate(seeds):
        (new / f"seed{k}").write_bytes(seed)

    def attempt(data: bytes) -> None:
        targets.attempt(name, data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        """Half of the changes are those of our own mutants, which know numbers and arrays."""
        rng = np.random.default_rng(seed)
        if rng.random() < 0.5:
            try:
                return mutants.mutant(rng, [data], target.form)[:most]
            except Exception:  # it is no longer an archive of arrays
                pass
        return atheris.Mutate(data, most)

    longest = 2 * max(map(len, seeds))
    settings = [f"-max_total_time={seconds}", f"-max_len={longest}", f"-artifact_prefix={known}/", "-verbosity=0"]
    atheris.Setup(
        [sys.argv[0], *settings, "-print_final_stats=1", str(new), str(known)], attempt, custom_mutator=change
    )
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]))
