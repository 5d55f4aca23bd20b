"""First uses are measured in processes of their own."""

from __future__ import annotations

import pytest

from featherjet.errors import InputError
from featherjet.lab.bench.first_use import LIMIT, LIMITS, first_uses


def test_one_quantity_of_one_robot():
    (found,) = first_uses([("arm", "fixed")], ["gravity"])
    assert (found.robot, found.quantity, found.limit) == ("arm", "gravity", LIMIT)
    assert all(0 < t.cpu and 0 < t.wall and 0 < t.importing for t in found[2:])
    assert LIMITS["inverse_dynamics"] < LIMIT


def test_a_robot_that_cannot_be_loaded():
    with pytest.raises(InputError, match=r"gravity of no\.urdf cannot be measured: .*no\.urdf"):
        list(first_uses([("no.urdf", "fixed")], ["gravity"]))
