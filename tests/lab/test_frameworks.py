"""`bench --frameworks`: duels are judged by their bars, and what is missing is said."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from featherjet.cli import main
from featherjet.lab.bench import frameworks
from featherjet.lab.bench.checking import Disagreement
from featherjet.lab.bench.frameworks import Absent, Duel, DuelResult, outcomes
from featherjet.lab.bench.peers import NotAvailable
from featherjet.lab.bench.timing import QUICK


def work(n: int) -> Any:
    return lambda: sum(range(n))


def missing() -> Duel:
    raise NotAvailable("not installed")


@pytest.fixture
def duels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One framework with some duels, and one that is not there. The bars leave room for a factor of five."""
    module = SimpleNamespace(
        DUELS=[
            ("faster", lambda: Duel("faster", work(1000), work(100_000), 20.0, "slow", faster=True)),
            ("cheaper", lambda: Duel("cheaper", work(1000), work(100_000), 0.001, "slow")),
            ("steps", lambda: Duel("steps", work(100_000), None, 1e9, "", each=100)),
            ("absent", missing),
        ]
    )

    def find(name: str, package: str) -> Any:
        if name == ".known":
            return module
        raise ImportError("no such framework")

    monkeypatch.setattr(frameworks, "MODULES", {"known": "known", "unknown": "unknown"})
    monkeypatch.setattr(frameworks, "import_module", find)


@pytest.mark.usefixtures("duels")
def test_outcomes() -> None:
    faster, cheaper, steps, absent, unknown = outcomes(QUICK)
    assert isinstance(faster, DuelResult)
    assert isinstance(cheaper, DuelResult)
    assert isinstance(steps, DuelResult)
    assert faster.other is not None
    assert faster.reached
    assert faster.ratio == pytest.approx(faster.other.median / faster.ours.median)
    assert not cheaper.reached
    assert cheaper.ratio < 0.2
    assert steps.other is None
    assert steps.ratio == pytest.approx(1e6 * steps.ours.median)
    assert absent == Absent("known", "absent", "not installed")
    assert unknown == Absent("unknown", "all", "no such framework")


def test_what_differs_is_not_timed() -> None:
    duel = Duel("both", work(1), work(1), 1.0, "other", difference=lambda: 1e-3)
    with pytest.raises(Disagreement, match=r"both: results differ by 0\.001"):
        frameworks.fought("known", duel, QUICK)


@pytest.mark.usefixtures("duels")
def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--frameworks", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for text in ("faster", ">= 20x", "missing: not installed", "no such framework"):
        assert text in shown
    assert len(json.loads((tmp_path / "frameworks.json").read_text())["duels"]) == 5
