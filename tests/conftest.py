"""What all tests share: hypothesis draws the same examples on every run, so that failures repeat.

Tests run on the plain reference unless they ask for compiled code: the oracles judge the reference on thousands of
models, and test_compiled.py holds compiled code to the reference. Code is shared by robots of the same joint kinds
unless a test asks for code of one robot alone: tests meet many robots once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

os.environ["FEATHERJET_BACKEND"] = "numpy"
os.environ["FEATHERJET_UNROLL"] = "0"
os.environ.pop("COLUMNS", None)  # tables have the width of a pipe, not of whoever runs the tests

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from featherjet.jit.engine import LEVELS, targets
from featherjet.jit.engine import target as target_now

settings.register_profile(
    "featherjet",
    deadline=None,
    derandomize=True,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("featherjet")

NARROWER = [name for name in targets() if name in LEVELS and LEVELS[name][0] < target_now().lanes]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """How `--dist loadgroup` spreads tests over workers: file by file, and files that share compiled code together.

    Workers share the code on disk, but two that need the same code at the same time would both compile it.
    """
    for item in items:
        path = item.path.relative_to(Path(__file__).parent)
        shared = path.parts[0] == "treejit" or path.stem in ("test_direct_call", "test_bound", "test_unrolled")
        group = "compiled code" if shared else "bridges" if path.parts[0] == "bridges" else path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited from nohup or a background job: tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache is left alone; all tests of a run, and all its workers, share one (or FEATHERJET_TEST_CACHE)."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "code"
    with pytest.MonkeyPatch.context() as m:
        m.setenv("FEATHERJET_CACHE_DIR", os.environ.get("FEATHERJET_TEST_CACHE") or str(folder))
        yield


@pytest.fixture(params=[target_now().name, *NARROWER])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each instruction set of this machine in turn: robots that the test makes are compiled for it."""
    monkeypatch.setenv("FEATHERJET_CPU", request.param)
    return request.param


@pytest.fixture(params=NARROWER)
def narrower(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same without the one that all other tests compile for: code with fewer lanes, or without fused products."""
    monkeypatch.setenv("FEATHERJET_CPU", request.param)
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20210101)
