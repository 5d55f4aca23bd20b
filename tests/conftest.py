"""What all tests share: hypothesis draws the same examples on every run, so that failures repeat.

Tests run on the plain reference unless they ask for compiled code: the oracles judge the reference on thousands of
models, and test_compiled.py holds compiled code to the reference.
"""

from __future__ import annotations

import os

os.environ["FEATHERJET_BACKEND"] = "numpy"
os.environ.pop("COLUMNS", None)  # tables have the width of a pipe, not of whoever runs the tests

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "featherjet",
    deadline=None,
    derandomize=True,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("featherjet")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210101)
