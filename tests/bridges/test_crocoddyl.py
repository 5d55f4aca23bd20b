"""Problems in Crocoddyl: its solvers find featherjet's motions, and its numerical derivatives agree.

pip's Crocoddyl needs an older Pinocchio than the other tests, so a Python with it runs crocoddyl_program.py: that of
the environment variable FEATHERJET_CROCODDYL, or this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import featherjet as fj

PROGRAM = Path(__file__).with_name("crocoddyl_program.py")
SOURCE = str(Path(fj.__file__).parent.parent)
SAME = 1e-10  # of motions after the same iterations, relative: rounding, as often as there are iterations
NUMERICAL = 1e-6  # of Crocoddyl's forward differences


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    python = os.environ.get("FEATHERJET_CROCODDYL") or (sys.executable if find_spec("crocoddyl") else None)
    if python is None:
        pytest.skip("needs a Python with featherjet[crocoddyl]: set FEATHERJET_CROCODDYL to it")
    done = subprocess.run(
        [python, str(PROGRAM)], env={**os.environ, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("problem", ["reach", "step"])
def test_crocoddyls_fddp_takes_our_steps_to_our_motion(found: dict[str, Any], problem: str) -> None:
    got = found[problem]
    assert got["converged"] == [True, True]
    assert got["iterations"][0] == got["iterations"][1] > 5
    assert abs(got["cost"]) < SAME
    assert max(got["xs"], got["us"]) < SAME


def test_crocoddyls_box_solver_keeps_the_limits(found: dict[str, Any]) -> None:
    """Its steps are not ours; both stop when they expect to gain less than 1e-9."""
    got = found["boxed"]
    assert got["converged"] == [True, True]
    assert abs(got["cost"]) < 1e-9
    assert got["largest u"] == 8.0 < found["reach"]["largest u"]


@pytest.mark.parametrize("problem", ["reach", "step"])
def test_derivatives_are_crocoddyls_numerical_ones(found: dict[str, Any], problem: str) -> None:
    got = found[f"numerical {problem}"]
    assert set(got) == {"Fx", "Fu", "Lx", "Lu"}
    assert max(got.values()) < NUMERICAL


def test_constraints_are_those_of_the_action_models(found: dict[str, Any]) -> None:
    """Each knot has its own; equalities first, then inequalities, at the end too."""
    assert found["bounds"] == [[2, 0, True, True]] * 5 + [[0, 7, True, True]] * 5
    got = found["numerical limited"]
    assert set(got) == {"Fx", "Fu", "Lx", "Lu", "Hx", "Hu", "Gx"}  # limits of velocities know no controls
    assert max(got.values()) < NUMERICAL


def test_crocoddyls_solver_for_equalities_keeps_them(found: dict[str, Any]) -> None:
    """Both stop when they expect to gain less than 1e-12; FDDP, which looks at no constraints, breaks these."""
    got = found["intro"]
    assert got["converged"] == [True, True]
    assert abs(got["cost"]) < 1e-9
    assert got["us"] < 1e-5
    assert got["violations"][0] < 1e-8 < 0.1 < got["violations"][1]


def test_an_answer_belongs_to_its_question(found: dict[str, Any]) -> None:
    assert set(found["out of order"]) == {"nothing", "x", "u"}
    assert max(found["out of order"].values()) < 1e-14


def test_an_iteration_differentiates_the_whole_horizon_once(found: dict[str, Any]) -> None:
    iterations, times = found["whole horizons"]
    assert 5 < times <= iterations + 1


def test_states_are_those_of_crocoddyls_multibody(found: dict[str, Any]) -> None:
    assert len(found["manifold"]) == 10
    assert max(found["manifold"].values()) < 1e-13


def test_controls_hold_still_steps_may_diverge_and_mistakes_are_told(found: dict[str, Any]) -> None:
    assert found["held"] < 1e-14
    assert found["diverging"]
    wanted = ("expected a featherjet.control Problem", "a batch")
    assert len(found["refused"]) == len(wanted)
    assert all(text in said for text, said in zip(wanted, found["refused"], strict=True))


ABSENT = 'sys.modules["crocoddyl"] = None'
CRASHING = """
import importlib.metadata
known, has = importlib.metadata.version, {"libcrocoddyl": "3.2.1", "libpinocchio": "4.1.0"}
importlib.metadata.version = lambda name: has.get(name) or known(name)
"""


@pytest.mark.parametrize("before, says", [(ABSENT, "needs Crocoddyl"), (CRASHING, "4.1.0 crashes Crocoddyl 3.2.1")])
def test_crocoddyl_is_imported_when_it_is_used_and_missed_by_name(before: str, says: str) -> None:
    program = f"""
import sys, featherjet as fj
assert "crocoddyl" not in sys.modules
{before}
try:
    fj.crocoddyl
except fj.errors.MissingExtra as error:
    assert "featherjet[crocoddyl]" in str(error) and {says!r} in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)
