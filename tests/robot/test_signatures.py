"""Public calls are all made alike: physical inputs, `fext`, `out`, and everything else by keyword."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.evaluate.frames import Viewpoint
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "tools/docs"))
import quantity_methods
import reference

STATES = {"v", "a", "tau", "forces", "dq", "dv", "dtau", "wq", "wv", "wforces"}
OBJECTS = {"contacts", "controller", "restitution", "com", "inertia", "parent", "placement", "normal", "height"}
PROBLEMS = {"knots", "terminal", "constraints", "reference", "weight", "activation", "lower", "upper", "x0", "xs", "us"}
BY_POSITION = STATES | OBJECTS | PROBLEMS | {"fext", "out", "size", "root"}  # optional, and yet not by keyword alone
RESULTS = ("Model", "Trajectory", "Transition")  # which users get, and do not make


def signatures() -> dict[str, list[inspect.Parameter]]:
    found = {}
    for name in reference.public():
        if name not in RESULTS:
            found[name] = reference.parameters(name)
    return found


SIGNATURES = signatures()


@pytest.mark.parametrize("name", SIGNATURES)
def test_what_is_no_physical_input_is_by_keyword(name):
    positional = [p for p in SIGNATURES[name] if p.kind is p.POSITIONAL_OR_KEYWORD]
    loose = [p.name for p in positional[1:] if p.default is not p.empty and p.name not in BY_POSITION]
    assert not loose, f"{name}: {', '.join(loose)} should be by keyword alone"


@pytest.mark.parametrize("name", SIGNATURES)
def test_forces_and_out_come_last_and_in_this_order(name):
    positional = [p.name for p in SIGNATURES[name] if p.kind is p.POSITIONAL_OR_KEYWORD]
    last = [x for x in ("fext", "out") if x in positional]
    assert positional[len(positional) - len(last) :] == last


@pytest.mark.parametrize("name", SIGNATURES)
def test_frame_is_a_frame_and_viewpoint_a_viewpoint(name):
    for p in SIGNATURES[name]:
        said = str(p.annotation)
        assert ("Viewpoint" in said) == (p.name == "viewpoint"), p
        assert "FrameName" not in said or p.name == "frame", p


def test_methods_are_those_that_the_records_say():
    assert quantity_methods.PAGE.read_text() == quantity_methods.text(), "run python tools/quantity_methods.py"


def test_every_quantity_for_users_has_a_method_or_is_a_product():
    for record in QUANTITIES.values():
        known = hasattr(fj.Robot, record.called or record.name)
        assert known != (record.inside or record.product is not None), record.name


def test_out_follows_the_inputs():
    robot = fj.load("arm")
    q, out = robot.neutral(), np.empty((7, 7))
    assert robot.inverse_mass_matrix(q, out) is out
    assert robot.mass_matrix(q, out) is out
    assert np.allclose(out @ robot.inverse_mass_matrix(q), np.eye(7))
    frame = np.empty((6, 7))
    assert robot.frame_jacobian(q, "tool", frame) is frame
    tau = robot.inverse_dynamics(q, q, q, None, out[0])
    assert np.shares_memory(tau, out)


def test_a_viewpoint_by_position_is_told():
    with pytest.raises(fj.errors.InputError, match="out"):
        fj.load("arm").frame_jacobian(*(np.zeros(7), "tool", "world"))


def test_viewpoints_are_these():
    assert Viewpoint.__args__ == ("local", "world", "world_aligned")
