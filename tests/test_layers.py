"""The layers of the house: a module imports only from its own layer or from those before it, and never in a ring.

Imports inside functions and those for type checkers alone count as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import featherjet

ROOT = Path(featherjet.__file__).parent
LAYERS = (
    "errors", "interpreter", "settings", "atomic", "forks", "blas", "arrays", "terminal", "display", "math",
    "geometry", "model", "models", "conventions", "algorithms", "jit", "treejit", "evaluate", "files", "view",
    "contact", "simulation", "export", "robot", "verify", "transitions", "control", "bridges", "jax", "torch", "casadi",
    "crocoddyl", "__init__", "lab", "cli", "__main__",
)  # fmt: skip
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
HEAVY = (
    "matplotlib", "scipy", "mujoco", "pinocchio", "jax", "torch", "dask", "casadi", "crocoddyl", "hypothesis", "pytest",
)  # fmt: skip


def name_of(path: Path) -> tuple[str, ...]:
    """A module's name below featherjet; that of a package for its __init__."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


NAMES = {name_of(path): path for path in MODULES}


def layer(module: tuple[str, ...]) -> int:
    return LAYERS.index(module[0] if module else "__init__")


@cache
def imports(path: Path) -> frozenset[tuple[str, ...]]:
    """The featherjet modules that a file imports."""
    package = ("featherjet", *path.parent.parts)
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names = [(*base, alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "featherjet":
                below = name[1:]
                found.add(below if below in NAMES else below[:-1])
    return frozenset(found)


def test_every_module_has_a_layer() -> None:
    assert {layer(name) for name in NAMES} == set(range(len(LAYERS)))


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_come_from_the_layers_before(path: Path) -> None:
    own = layer(name_of(path))
    for target in imports(path):
        if not target and path.parts[0] == "cli":
            continue  # the version
        assert layer(target) <= own, f"{path} ({LAYERS[own]}) imports {'.'.join(target)} ({LAYERS[layer(target)]})"


def test_no_modules_import_each_other_in_a_ring() -> None:
    done: set[tuple[str, ...]] = set()

    def visit(name: tuple[str, ...], way: list[tuple[str, ...]]) -> None:
        assert name not in way, " -> ".join(".".join(x) for x in [*way[way.index(name) :], name])
        if name in done:
            return
        for target in imports(NAMES[name]):
            if target != name and target in NAMES:
                visit(target, [*way, name])
        done.add(name)

    for name in NAMES:
        visit(name, [])


@pytest.mark.parametrize("path", [path for path in MODULES if path.name == "__init__.py"], ids=str)
def test_no_name_of_a_package_hides_its_module(path: Path) -> None:
    """`import featherjet.something` gives the module of that name, and nothing else."""
    package, hidden = path.parent.parts, []
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            hidden.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            hidden.append(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            own = isinstance(node, ast.ImportFrom) and node.level == 1 and not node.module
            hidden += [x.asname or x.name for x in node.names if not (own and x.asname in (None, x.name))]
    assert not {name for name in hidden if (*package, name) in NAMES}


def test_jit_knows_no_robot() -> None:
    """It stands on errors, settings, math, locks and the writing of files alone."""
    for path in MODULES:
        if path.parts[0] == "jit":
            assert {target[0] for target in imports(path)} <= {
                "errors",
                "settings",
                "atomic",
                "forks",
                "math",
                "jit",
            }, path


def test_the_rules_can_be_broken() -> None:
    """The parser sees relative, absolute and local imports."""
    assert layer(("math", "spatial")) < layer(("model", "tree")) < layer(("algorithms",)) < layer(("robot",))
    assert ("model", "tree") in imports(Path("algorithms/dynamics/aba.py"))
    assert ("math", "spatial") in imports(Path("model/joints.py"))
    assert ("errors",) in imports(Path("model/joints.py"))
    assert ("model", "io", "catalog") in imports(Path("robot/loading.py"))
    assert ("math", "rotations") in imports(Path("math/se3.py"))
    assert ("treejit", "compiler") in imports(Path("evaluate/evaluator.py"))


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
