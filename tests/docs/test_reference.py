"""The API reference is complete: every public name has its entry, and the entry says what a user must know.

tests/test_docs.py runs the examples.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys

import numpy as np
import pytest

import featherjet as fj
from featherjet import errors
from featherjet.bridges.wrapped import WrappedRobot
from helpers import ROOT

sys.path.insert(0, str(ROOT / "tools/docs"))
import reference
import static

PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
TEXT = "\n".join(page.read_text() for page in PAGES)
NAMES = reference.ENTRY.findall(TEXT)
PUBLIC = reference.public()


def test_every_public_name_has_one_entry_and_no_other_name_has():
    assert sorted(NAMES) == sorted(PUBLIC), "add it to docs/reference, with an example"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_follows_and_uses_the_name(name):
    after = TEXT[TEXT.index(f"::: {name}\n") + len(name) + 5 :]
    example = re.match(r"\s*```python\n(.*?)```", after, re.S)
    assert example, f"{name}: no example"
    dunder = {"InverseDynamicsDerivatives": "dtau_dq", "ForwardDynamicsDerivatives": "da_dq", "Transition": "motion"}
    uses = {"Model": "pendulum", "Trajectory": "motion", **dunder}.get(name, name.split(".")[-1])
    assert uses in example[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_is_one_sentence_that_ends(name):
    first = reference.summary(name).split("\n\n")[0]
    assert first, f"{name}: no docstring"
    assert re.search(r"[.:`]$", first), first


@pytest.mark.parametrize("name", [n for n in NAMES if reference.parameters(n)])
def test_every_argument_is_explained(name):
    missing = [p.name for p in reference.parameters(name) if reference.key_of(name, p.name) is None]
    assert not missing, f"{name}: explain {', '.join(missing)} in docs/reference/arguments.md"


def test_every_explained_argument_exists():
    used = {reference.key_of(name, p.name) for name in NAMES for p in reference.parameters(name)}
    assert not set(reference.arguments()) - used


def test_arguments_that_hold_numbers_have_units():
    for key, row in reference.arguments().items():
        assert row.meaning, key
        assert bool(row.unit) or not row.shape or "as the" in row.shape, f"{key}: no unit"


@pytest.mark.parametrize("name", [n for n in NAMES if not inspect.isclass(PUBLIC[n])])
def test_what_is_returned_is_said(name):
    thing = PUBLIC[name].fget if isinstance(PUBLIC[name], property) else PUBLIC[name]
    assert inspect.signature(thing).return_annotation is not inspect.Signature.empty
    assert reference.returned(name) or inspect.signature(thing).return_annotation == "None"


def test_errors_that_are_promised_exist():
    for row in reference.arguments().values():
        for error in filter(None, row.raises.split(", ")):
            assert issubclass(getattr(errors, error.strip("`")), fj.FeatherjetError)


@pytest.mark.parametrize("page", ["jax", "torch"])
def test_every_quantity_of_a_framework_is_shown(page):
    shown = set(re.findall(r"\br\.(\w+)", (ROOT / f"docs/reference/{page}.md").read_text()))
    inside = {"function", "call"}
    assert {name for name in vars(WrappedRobot) if not name.startswith("_")} - inside <= shown


@pytest.mark.parametrize("module", reference.FRAMEWORKS)
def test_what_is_read_from_source_is_what_python_has(module):
    found = pytest.importorskip(module) and importlib.import_module(f"featherjet.{module}")
    assert set(static.exported(module)) == set(found.__all__)
    for name, thing in static.exported(module).items():
        real = getattr(found, name)
        assert inspect.getdoc(thing) == inspect.getdoc(real)
        read, known = (inspect.signature(x).parameters.values() for x in (thing, real))
        assert list(map(str, read)) == list(map(str, known))


STATES = ("q", "v", "a", "tau", "w", "q0", "q1", "dq", "dv", "da", "dtau")


@pytest.mark.parametrize(
    "name", [n for n in NAMES if reference.record(n) and "contacts" not in reference.record(n).options]
)
def test_a_wrong_state_raises_what_is_promised(name):
    """Each array in turn with a wrong shape, and not finite."""
    robot = fj.load("arm")
    given = {
        p.name: np.zeros(7) if p.name in STATES else 0.5 if p.name == "t" else "tool"
        for p in reference.parameters(name)
        if p.default is p.empty
    }
    call = getattr(robot, name.split(".")[1])
    call(**given)
    for wrong in set(given) & set(STATES):
        for x in (np.zeros(6), np.full(7, np.nan)):
            with pytest.raises(errors.InputError, match=rf"\b{wrong}\b"):
                call(**{**given, wrong: x})


@pytest.mark.parametrize("name", [n for n in NAMES if "SingularMassMatrix" in reference.raised(n)])
def test_a_singular_mass_matrix_raises_what_is_promised(name):
    b = fj.ModelBuilder("massless")
    b.add_joint("spin", "revolute")
    b.add_joint("turn", "revolute", "spin")
    b.add_body("spin", 1.0, (0.1, 0, 0), np.eye(3))
    robot = fj.Robot(b.build())
    given = [np.zeros(2) for p in reference.parameters(name) if p.default is p.empty and p.name != "contacts"]
    extra = (
        [fj.Contacts(robot, [fj.PointContact("turn")])]
        if "contacts" in inspect.signature(PUBLIC[name]).parameters
        else []
    )
    with pytest.raises(errors.SingularMassMatrix):
        getattr(robot, name.split(".")[1])(*given, *extra)


REFUSED = {
    "Robot.lock": ("positions", lambda arm: arm.lock({"x": [0.0]})),
    "Robot.joint": ("name", lambda arm: arm.joint("x")),
    "Robot.with_placements": ("placements", lambda arm: arm.with_placements({"joint1": [1.0]})),
    "Robot.with_inertial_parameters": ("parameters", lambda arm: arm.with_inertial_parameters([1.0])),
    "Robot.with_convention": ("convention", lambda arm: arm.with_convention("x")),
    "Robot.random_configuration": ("rng", lambda arm: arm.random_configuration("x")),
    "Robot.bind": ("quantity", lambda arm: arm.bind("x")),
    "Robot.export": ("dtype", lambda arm: arm.export("bias", out="nowhere", dtype="x")),
    "Robot.simulate": ("method", lambda arm: arm.simulate(np.zeros(7), np.zeros(7), method="x")),
    "Robot": ("threads", lambda arm: fj.Robot(arm.model, threads=-1)),
    "Contacts": ("held", lambda arm: fj.Contacts(arm, [])),
    "PointContact": ("axes", lambda arm: fj.Contacts(arm, [fj.PointContact("tool", axes="x")])),
    "Ground": ("feet", lambda arm: fj.Ground(arm, ["x"])),
    "Servo": ("kp", lambda arm: fj.Servo(arm, kp=-1.0, target=np.zeros(7))),
    "ModelBuilder.add_joint": ("kind", lambda arm: fj.ModelBuilder("b").add_joint("a", "x")),
    "models.chain": ("n", lambda arm: fj.models.chain(0)),
    "verify.check": ("order", lambda arm: fj.verify.check(arm, order=3)),
    "autodiff": ("by", lambda arm: fj.autodiff(arm, "bias", by="x")),
    "geometry.rotations.elementary_rotation": ("axis", lambda arm: fj.geometry.rotations.elementary_rotation("w", 1.0)),
    "geometry.rotations.matrix_rate": (
        "frame",
        lambda arm: fj.geometry.rotations.matrix_rate(np.eye(3), [0, 0, 0], "X"),
    ),
    "geometry.se3.exp": ("xi", lambda arm: fj.geometry.se3.exp([1.0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_choice_raises_what_is_promised(name):
    argument, call = REFUSED[name]
    promised = reference.arguments()[reference.key_of(name, argument)].raises
    with pytest.raises(fj.FeatherjetError) as raised:
        call(fj.load("arm"))
    assert f"`{type(raised.value).__name__}`" in promised.split(", ")
