"""Shared libraries with CasADi's C interface, for casadi.external, CasADi's generated code, and acados."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from .. import arrays
from ..atomic import atomic_write, named_in_errors, write_text
from ..contact import Contacts
from ..errors import FeatherjetError, InputError
from ..evaluate.entries import SparseTrace
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..export import targets
from ..export.functions import Choices, Exporter, identifier
from ..export.package import refuse_bad_folder
from ..jit.notices import announced
from ..jit.number import DOUBLE
from ..settings import setting
from .functions import checked, sparse_function
from .glue import GlueStep, glue
from .recipes import Knots, Recipe

SUFFIX = ".dll" if os.name == "nt" else ".so"
COMPILERS = ("cc", "gcc", "clang")


class CompilerFailed(FeatherjetError, RuntimeError):
    """A C compiler could not make a library; the message has what it said."""


def library(
    robot: HasEvaluator,
    quantity: str,
    *,
    out: str | PathLike[str],
    horizon: int = 1,
    fext: bool = False,
    frame: FrameName | None = None,
    viewpoint: Viewpoint = "local",
    contacts: Contacts | None = None,
    name: str | None = None,
    compiler: str | Sequence[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """The same function as a shared library in the folder `out`: `casadi.external(name, str(path))` loads it.

    Beside the library lie NAME.o and NAME_casadi.c, which make it: link them into your own program, with CasADi's
    generated code or with acados. It has NAME, jac_NAME, adj1_NAME and jac_adj1_NAME, needs neither Python nor
    featherjet, and is for this machine. compiler: a command; by default $CC, cc, gcc, clang, or `zig cc` of the package
    ziglang, the first there is. name: by default the quantity's. Files that exist stay unless `overwrite`.
    """
    command = command_of(compiler)
    name = identifier(name or quantity, "name")
    traced, states = sparse_function(robot, quantity, Choices(fext, frame, viewpoint, contacts)), checked(horizon)
    functions = {name: traced}
    return write_library(
        traced.evaluator, functions, arrays.path_of(out), name, f"{name}{SUFFIX}", command, overwrite, states
    )


def write_library(
    evaluator: Evaluator,
    functions: Mapping[str, SparseTrace],
    folder: Path,
    name: str,
    file: str,
    compiler: Sequence[str],
    overwrite: bool = False,
    states: int = 1,
    second: bool = True,
) -> Path:
    """A library `file` of traced functions by name, their Jacobians, and if `second` their adjoints and Hessians."""
    code, source, target = folder / f"{name}.o", folder / f"{name}_casadi.c", folder / file
    refuse_bad_folder(folder, (code, source, target), overwrite)
    exporter = Exporter(evaluator, targets.find(targets.NATIVE), DOUBLE, name, (states > 1,))
    recipes: dict[str, Recipe] = {}
    with announced(f"compiling {name} and its derivatives", "for CasADi"):
        for key, traced in functions.items():
            makes = Knots(traced, states)
            recipes |= {key: makes.value(), f"jac_{key}": makes.jacobian()}
            if second:
                recipes |= {f"adj1_{key}": makes.adjoint(), f"jac_adj1_{key}": makes.hessian()}
        parts = [(key, recipe, steps_of(exporter, key, recipe, states)) for key, recipe in recipes.items()]
        text, content = glue(name, parts, states), exporter.builder.build()
    with named_in_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(code, overwrite) as written:
        written.write(content)
    write_text(source, text, overwrite)
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / target.name
        linked(compiler, [source, code], made)
        with atomic_write(target, overwrite) as written:
            written.write(made.read_bytes())
    return target


def steps_of(exporter: Exporter, name: str, recipe: Recipe, states: int) -> list[GlueStep]:
    """Add the code of a function to the object."""
    found = []
    for k, step in enumerate(recipe.steps):
        if not step.gives:
            continue
        kernel = step.code.kernel(exporter.target)
        symbol = f"{name}_code{k}"
        needs = exporter.add(symbol, kernel)[states > 1]
        sides = ((step.takes, kernel.inputs.values()), (step.gives, kernel.shapes))
        takes, gives = ([(at, n * states) for at, (n,) in zip(*side, strict=True)] for side in sides)
        found.append(GlueStep(symbol + "_batch" * (states > 1), needs, takes, gives))
    return found


def command_of(compiler: str | Sequence[str] | None) -> list[str]:
    return [compiler] if isinstance(compiler, str) else list(compiler or found_compiler())


def found_compiler() -> list[str]:
    """The first C compiler there is."""
    if chosen := setting("CC"):
        return chosen.split()
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise InputError(
        "casadi.library needs a C compiler: install gcc or clang, or `pip install ziglang`; casadi.function needs none"
    )


def linked(command: Sequence[str], sources: Sequence[Path], target: Path) -> None:
    """Run a compiler."""
    # programs that are linked to a library loaded before find it by its soname, wherever it lies
    named = [f"-Wl,-soname,{target.name}"] if sys.platform.startswith("linux") else []
    given = [*command, "-O2", "-fPIC", "-shared", *named]
    given += [*map(os.path.abspath, sources), "-o", os.path.abspath(target)]  # which never look like an option
    try:
        done = subprocess.run(given, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"compiler {command[0]!r}: cannot be run ({error.strerror or error})") from error
    if done.returncode:
        raise CompilerFailed(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")
