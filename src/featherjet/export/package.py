"""A folder for C and C++ projects: the object, its headers, an example with its numbers, and a CMake file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..algorithms.quantities import QUANTITIES
from ..atomic import atomic_write, named_in_errors, refuse_bad_target
from ..errors import InputError, UnknownName
from ..evaluate.evaluator import Evaluator
from ..jit.notices import announced
from ..jit.number import DOUBLE, SINGLE
from . import targets
from .cmake import cmake
from .cplusplus import cplusplus
from .example import example
from .functions import Choices, Exporter, Package, identifier
from .header import header

KINDS = {"float64": DOUBLE, "float32": SINGLE}


def refuse_bad_folder(folder: Path, files: Sequence[Path], overwrite: bool) -> None:
    """Raise an InputError if these files could not be written into a folder, which need not exist yet."""
    if folder.is_dir():
        for path in files:
            refuse_bad_target(path, overwrite)
    elif folder.exists():
        raise InputError(f"{folder}: is not a folder; name one to write to")


def export(
    evaluator: Evaluator,
    quantities: Sequence[str],
    folder: Path,
    *,
    target: str,
    dtype: str,
    name: str | None,
    batch: bool,
    overwrite: bool,
    choices: Choices,
) -> list[Path]:
    """Write the folder; returns its files. See `Robot.export`."""
    for quantity in quantities:
        if quantity not in QUANTITIES:
            raise UnknownName("quantity to export", quantity, QUANTITIES)
    if not quantities:
        raise InputError("export: name at least one quantity, such as 'inverse_dynamics'")
    if dtype not in KINDS:
        raise UnknownName("dtype", dtype, KINDS)
    prefix = identifier(name or evaluator.model.name, "name")
    endings = (".o", ".h", ".hpp", "_example.c")
    paths = [folder / f"{prefix}{end}" for end in endings] + [folder / "CMakeLists.txt"]
    refuse_bad_folder(folder, paths, overwrite)
    exporter = Exporter(evaluator, targets.find(target), KINDS[dtype], prefix, (False, True) if batch else (False,))
    with announced(f"compiling {', '.join(quantities)} for {evaluator.model.name}", f"target {target}"):
        functions = [exporter.function(quantity, choices) for quantity in dict.fromkeys(quantities)]
        code = exporter.builder.build()
    package = Package(prefix, evaluator.model, exporter.target, exporter.kind, functions)
    texts = (header(package), cplusplus(package), example(package, evaluator), cmake(package))
    with named_in_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, (code, *(text.encode() for text in texts)), strict=True):
        with atomic_write(path, overwrite) as file:
            file.write(content)
    return paths
