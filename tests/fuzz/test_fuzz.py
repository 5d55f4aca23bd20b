"""Mutants of files from outside give a domain error or a valid object, never a traceback; `make fuzz` goes on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fuzz.mutants import mutant
from fuzz.targets import TARGETS, attempt

CORPUS = Path(__file__).parent / "corpus"
MUTANTS = int(os.environ.get("FEATHERJET_MUTANTS", "400"))


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_valid(name: str) -> None:
    for seed in TARGETS[name].seeds():
        assert attempt(name, seed)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_before(path: Path) -> None:
    attempt(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_mutants(name: str) -> None:
    target, rng = TARGETS[name], np.random.default_rng(13)
    seeds, accepted = target.seeds(), 0
    for _ in range(MUTANTS):
        accepted += attempt(name, mutant(rng, seeds, target.form))
    assert accepted < MUTANTS
