"""Public names of modules that may not be importable here, from their source: signatures and docstrings.

`fj.jax` needs JAX, and `fj.crocoddyl` an environment of its own; the reference documents both wherever it is built.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent.parent / "src/featherjet"
Definition = ast.FunctionDef | ast.ClassDef


def exported(module: str) -> dict[str, Any]:
    """What a package of featherjet lists in __all__, by name: functions and classes without their code."""
    found: dict[str, Any] = {}
    package = ast.parse((SOURCE / module / "__init__.py").read_text())
    for node in package.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            source = ast.parse((SOURCE / module / f"{node.module}.py").read_text())
            defined = {d.name: d for d in source.body if isinstance(d, Definition)}
            found |= {
                a.name: hollow(defined[a.name], f"{module}.{node.module}") for a in node.names if a.name in defined
            }
    return {name: found[name] for name in listed(package)}


def listed(package: ast.Module) -> list[str]:
    """The names in __all__."""
    for node in package.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError("the package has no __all__")


def hollow(definition: Definition, module: str) -> Any:
    """The function or class that a definition would make, without bases, code, and decorators but `property`."""
    program = ast.Module([stripped(definition)], [])
    names: dict[str, Any] = {"__name__": f"featherjet.{module}"}
    flags = __import__("__future__").annotations.compiler_flag  # annotations stay text
    exec(compile(ast.fix_missing_locations(program), f"<{module}>", "exec", flags), names)
    return names[definition.name]


def stripped(node: Definition) -> Definition:
    told = [s for s in node.body[:1] if ast.get_docstring(node, clean=False) is not None]
    if isinstance(node, ast.ClassDef):
        methods = [stripped(m) for m in node.body if isinstance(m, ast.FunctionDef)]
        fields = [f for f in node.body if isinstance(f, ast.AnnAssign)]
        if any(ast.unparse(d).startswith("dataclass") for d in node.decorator_list):
            methods.insert(0, initialiser(fields))
        bare = ast.parse(f"class {node.name}: pass").body[0]
        assert isinstance(bare, ast.ClassDef)
        bare.body[:0] = [*told, *methods]
        return bare
    kept = [d for d in node.decorator_list if ast.unparse(d) == "property"]
    arguments = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(arguments, ast.FunctionDef)
    arguments.args.defaults = [plain(d) for d in arguments.args.defaults]
    arguments.args.kw_defaults = [d and plain(d) for d in arguments.args.kw_defaults]
    arguments.body, arguments.decorator_list = [*told, ast.Pass()], list(kept)
    return arguments


def initialiser(fields: list[ast.AnnAssign]) -> ast.FunctionDef:
    """What a dataclass makes of its fields."""
    made = ast.parse(f"def __init__(self, {', '.join(map(ast.unparse, fields))}): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    return made


def plain(default: ast.expr) -> ast.expr:
    """A default that is a name becomes that name as text."""
    return default if isinstance(default, ast.Constant) else ast.Constant(ast.unparse(default))
