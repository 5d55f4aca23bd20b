"""First uses are measured in processes of their own."""

from __future__ import annotations

import pytest

from featherjet.cli import first_use as command
from featherjet.cli import main
from featherjet.errors import InputError
from featherjet.lab.bench import first_use
from featherjet.lab.bench.first_use import LIMIT, LIMITS, first_uses, sweep, without_contacts


def test_one_quantity_of_one_robot():
    (found,) = first_uses([("arm", "fixed")], ["gravity"])
    assert (found.robot, found.quantity, found.limit) == ("arm", "gravity", LIMIT)
    assert all(0 < t.cpu and 0 < t.wall and 0 < t.importing for t in found[2:])
    assert LIMITS["inverse_dynamics"] < LIMIT


def test_a_robot_that_cannot_be_loaded():
    with pytest.raises(InputError, match=r"gravity of no\.urdf cannot be measured: .*no\.urdf"):
        list(first_uses([("no.urdf", "fixed")], ["gravity"]))


def test_a_sweep_measures_every_quantity_in_one_process():
    names = ["jacobian", "interpolate", "inverse_dynamics_force_jvp"]
    found = sweep("arm", "fixed", names, size=2)
    assert list(found) == names
    assert all(0 < t.cpu and t.compiled for t in found.values())
    assert set(names) < set(without_contacts())


def test_robots_that_cannot_be_measured_are_left_out(monkeypatch, capsys):
    monkeypatch.setattr(command, "known_robots", lambda: {"no.urdf": "", "arm": ""})
    monkeypatch.setattr(first_use, "DYNAMICS", ("gravity",))
    assert main(["bench", "--first-use", "--all"]) == 0
    shown = capsys.readouterr()
    assert "gravity of no.urdf cannot be measured" in shown.err.replace("\n", " ")
    assert "arm" in shown.out
    assert "of 1 first calls" in shown.out
