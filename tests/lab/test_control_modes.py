"""The parts of bench --control beside whole solves."""

from __future__ import annotations

from typing import Any

import pytest

from featherjet.cli.control import show_modes
from featherjet.lab.bench import control_modes
from featherjet.lab.bench.timing import Spread, TimingSettings


def test_exact_hessians_take_fewer_iterations() -> None:
    found = control_modes.hessians(TimingSettings(rounds=1))
    plain, exact = found.iterations
    assert exact < 0.5 * plain


@pytest.mark.parametrize("ratio, rate", [(0.3, 200.0), (0.7, 50.0)])
def test_the_table_has_all_of_them(
    ratio: float, rate: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = control_modes.Many(256, 0.01 * ratio, 0.01, Spread(ratio, ratio, ratio))
    steps = control_modes.StepTimes(50, 60, 1 / rate, 1.5 / rate, 2 / rate)
    spread = Spread(0.1, 0.1, 0.1)
    both = control_modes.Hessians((131, 38), (spread, Spread(0.03, 0.03, 0.03)))
    monkeypatch.setattr(control_modes, "many", lambda settings: batch)
    monkeypatch.setattr(control_modes, "receding", lambda: steps)
    monkeypatch.setattr(control_modes, "hessians", lambda settings: both)
    report: dict[str, Any] = {}
    show_modes(TimingSettings(rounds=1), report)
    text = capsys.readouterr().out
    for word in (f"{ratio:.2f}", f"{rate:.0f} Hz", "131 -> 38", "3.33"):
        assert word in text
    assert set(report["modes"]) == {"batch", "mpc", "hessians"}
