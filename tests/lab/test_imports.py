"""The lab's place in the house: only the command line imports it, and few of its modules use the compiler."""

from __future__ import annotations

import ast
from pathlib import Path

import featherjet

ROOT = Path(featherjet.__file__).parent
INTERNALS = {"lab/internals.py", "lab/instructions.py"}
EXCEPTIONS = {
    ("evaluate", "evaluator", "processors"),
    ("evaluate", "frames"),
    ("evaluate", "sparse", "SparseFunction"),
    ("jit", "autodiff"),
}


def imports(path: Path) -> list[tuple[str, ...]]:
    """The names that a file imports from featherjet, by their paths below it; imports in functions too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = path.relative_to(ROOT).parent.parts
            base = package[: len(package) - node.level + 1]
            found += [(*base, *(node.module or "").split("."), alias.name) for alias in node.names]
    return [tuple(part for part in name if part) for name in found]


FILES = {path.relative_to(ROOT).as_posix(): imports(path) for path in ROOT.rglob("*.py")}
LAB = {name: found for name, found in FILES.items() if name.startswith("lab/")}


def test_only_the_command_line_imports_the_lab():
    users = {name for name, found in FILES.items() if any(x[0] == "lab" for x in found)} - set(LAB)
    assert users
    assert {name.partition("/")[0] for name in users} == {"cli"}
    assert not [name for name, found in LAB.items() if any(x[0] == "cli" for x in found)]


def test_compiler_internals_are_confined():
    def internal(found: list[tuple[str, ...]]) -> bool:
        return any(x[0] in ("jit", "treejit", "evaluate") and x not in EXCEPTIONS for x in found)

    users = {name for name, found in LAB.items() if internal(found)}
    assert {name for name in users if not name.startswith("lab/loops/")} == INTERNALS
