"""What the README says of other libraries, as far as their packages can tell; and its badges and sizes."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

from helpers import ROOT, rows

TABLE = {cells[0]: cells[1:] for cells in rows("README.md", "| featherjet 0.1")}
HEAD = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| | featherjet"))
COLUMNS = [cell.strip() for cell in HEAD.strip("|").split("|")][1:]


def said(row: str, of: str) -> str:
    return TABLE[row][next(k for k, name in enumerate(COLUMNS) if name.startswith(of))]


@pytest.mark.parametrize("package, name", [("pin", "Pinocchio"), ("mujoco", "MuJoCo"), ("casadi", "CasADi")])
def test_versions_are_those_that_were_compared(package, name):
    pytest.importorskip({"pin": "pinocchio"}.get(package, package))
    column = next(c for c in COLUMNS if c.startswith(name))
    assert re.search(rf"{name} {re.escape('.'.join(version(package).split('.')[:2]))}\b", column)


def test_pinocchio():
    pin = pytest.importorskip("pinocchio")
    assert said("first derivatives", "Pinocchio") == "analytical"
    assert hasattr(pin, "computeRNEADerivatives")
    assert hasattr(pin, "computeABADerivatives")
    assert said("second derivatives", "Pinocchio") == "of inverse dynamics, in C++"
    assert not [name for name in dir(pin) if "econdOrder" in name]
    assert all(hasattr(pin, name.strip("`")) for name in said("many states in one call", "Pinocchio").split(", "))
    assert hasattr(pin, "computeConstraintDynamicsDerivatives")
    model = pin.buildSampleModelManipulator()
    assert pin.neutral(model).dtype == float


def test_mujoco():
    mujoco = pytest.importorskip("mujoco")
    assert said("first derivatives", "MuJoCo").startswith("finite differences")
    of_dynamics = [name for name in dir(mujoco) if name.startswith("mjd_") and "uat" not in name]
    assert of_dynamics
    assert all(name.endswith("FD") for name in of_dynamics)
    assert (Path(mujoco.__file__).parent / "rollout.py").exists()


def test_drake():
    plant = pytest.importorskip("pydrake.multibody.plant", reason="pydrake is not installed")
    scalars = {kind.__name__ for (kind,) in plant.MultibodyPlant_.param_list}
    assert scalars == {"float", "AutoDiffXd", "Expression"}
    assert said("single precision", "Drake") == "no"


def test_casadi():
    casadi = pytest.importorskip("casadi")
    assert hasattr(casadi.Function, "map")
    assert said("code for C programs", "CasADi") == "C"
    assert said("single precision", "CasADi") == "in generated C"
    x = casadi.SX.sym("x")
    code = casadi.CodeGenerator("f", {"casadi_real": "float"})
    code.add(casadi.Function("f", [x], [casadi.sin(x)]))
    assert "#define casadi_real float" in code.dump()
    assert hasattr(casadi, "CodeGenerator")


def test_the_sizes_of_the_readme_are_those_of_the_page():
    sizes = {cells[0].split(" (")[0]: cells[3] for cells in rows("docs/install.md", "| version")}
    for name in ("featherjet", "Pinocchio", "MuJoCo", "CasADi"):
        assert said("installed, with all it needs", name) == sizes[name], "copy it from docs/install.md"


def test_badges_say_what_is_so():
    tool = runpy.run_path(str(ROOT / "tools/badges.py"))
    for name, value in tool["facts"]().items():
        assert value
        assert (tool["FOLDER"] / f"{name}.svg").read_text() == tool["badge"](name, value), "run: python tools/badges.py"


def test_the_citation_has_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"version: {version('featherjet')}\n" in text
    assert version("featherjet") in (ROOT / "docs/cite.md").read_text()
