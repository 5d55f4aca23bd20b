"""The method `fdsva` takes DMM or AZA by the robot's size: as pinned, as measured on this host, or by default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.cli import main
from featherjet.errors import InputError
from featherjet.evaluate import crossover
from featherjet.jit import cache

N = 5
MODEL = fj.models.chain(N)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache, and nothing pinned."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.delenv(crossover.VARIABLE, raising=False)
    return tmp_path / "code"


def taken(backend: str = "numpy") -> str:
    """The method whose results `fdsva` has, bit by bit."""
    robot = fj.Robot(MODEL, backend=backend)
    q, v, tau = np.random.default_rng(0).normal(size=(3, N))
    names = ("fdsva", "fdsva-dmm", "fdsva-aza")
    found, *known = (robot.forward_dynamics_derivatives(q, v, tau, method=m).da_dq for m in names)
    (name,) = (m for m, x in zip(names[1:], known, strict=True) if np.array_equal(found, x))
    return name


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_the_default_is_a_constant(backend):
    assert crossover.aza_from(backend) == crossover.DEFAULTS[backend] > N
    assert taken(backend) == "fdsva-dmm"


@pytest.mark.parametrize(("backend", "other"), [("numpy", "compiled"), ("compiled", "numpy")])
def test_what_was_measured_is_remembered_for_its_backend(backend, other, capsys):
    crossover.remember({backend: N})
    assert taken(backend) == "fdsva-aza"
    assert crossover.aza_from(other) == crossover.DEFAULTS[other]
    crossover.remember({other: 77})
    assert crossover.measured() == {backend: N, other: 77}
    assert main(["cache", "info"]) == 0
    assert f"AZA from {N} dofs on ({backend})" in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_pinned_crossover_outranks_all(backend, monkeypatch):
    crossover.remember({backend: 1})
    monkeypatch.setenv(crossover.VARIABLE, str(N + 1))
    assert taken(backend) == "fdsva-dmm"
    monkeypatch.setenv(crossover.VARIABLE, str(N))
    assert taken(backend) == "fdsva-aza"


@pytest.mark.parametrize("given", ["few", "-3", "2.5", "1" * 30])
def test_a_pin_that_is_no_number_is_refused(given, monkeypatch):
    monkeypatch.setenv(crossover.VARIABLE, given)
    with pytest.raises(InputError, match="FEATHERJET_AZA_FROM: expected a whole number of degrees of freedom"):
        taken()


def test_a_file_that_was_tampered_with_does_not_count(folder):
    crossover.remember({"numpy": N})
    (path,) = cache.files()
    path.write_bytes(path.read_bytes().replace(b"5", b"4"))
    crossover._kept.cache_clear()
    assert crossover.measured() == {}


def test_another_host_measures_for_itself(monkeypatch):
    crossover.remember({"numpy": N})
    monkeypatch.setattr("platform.node", lambda: "another")
    assert crossover.aza_from("numpy") == crossover.DEFAULTS["numpy"]
