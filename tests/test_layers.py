"""The layers of the house: each module imports only from its own layer or from those above it in the list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import featherjet

ROOT = Path(featherjet.__file__).parent
LAYERS = ("errors", "math", "model", "conventions", "algorithms", "jit", "treejit", "user")
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
HEAVY = ("matplotlib", "scipy", "mujoco", "pinocchio", "jax", "hypothesis", "pytest")


def layer(module: tuple[str, ...]) -> int:
    """The layer of a module given by its path below featherjet."""
    first = module[0] if module else ""
    return LAYERS.index(first) if first in LAYERS[:-1] else LAYERS.index("user")


def imports(path: Path) -> list[tuple[str, ...]]:
    """The featherjet modules that a file imports, by their paths below featherjet; `if TYPE_CHECKING` too."""
    package = ("featherjet", *path.parent.parts)
    found = []
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names = [(*base, alias.name) for alias in node.names]
        else:
            continue
        found += [name[1:] for name in names if name[0] == "featherjet"]
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_come_from_the_layers_above(path: Path) -> None:
    own = layer((path.parts[0].removesuffix(".py"),))
    for target in imports(path):
        assert layer(target) <= own, f"{path} ({LAYERS[own]}) imports {'.'.join(target)} ({LAYERS[layer(target)]})"


def test_the_rule_can_be_broken() -> None:
    """The parser sees relative, absolute and local imports."""
    assert layer(("math", "spatial")) < layer(("model", "tree")) < layer(("algorithms", "dynamics")) < layer(("robot",))
    assert ("model", "tree", "Node") in imports(Path("algorithms/dynamics/aba.py"))
    assert ("math", "spatial", "Motion") in imports(Path("model/joints.py"))
    assert ("errors", "UnknownName") in imports(Path("model/joints.py"))
    assert ("model", "io", "catalog", "load_model") in imports(Path("robot/loading.py"))
    assert ("math", "rotations") in imports(Path("math/se3.py"))


@pytest.mark.parametrize(
    "statement",
    [
        "import featherjet",
        "import featherjet as fj; fj.load('arm').mass_matrix([0.0] * 7); fj.verify.check(fj.load('arm'))",
    ],
    ids=["import", "use"],
)
def test_importing_featherjet_is_light(statement: str) -> None:
    code = f"{statement}; import sys; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
