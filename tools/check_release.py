"""Check the wheel and the sdist in a folder: complete, and the wheel works in a fresh environment.

    python tools/check_release.py dist AGAIN

AGAIN holds a second build of the same sources, which must have the same bytes. What an installation brings along is
written beside the wheel as a bill of materials (CycloneDX).

`python -m build` builds the wheel from the sdist, so a wheel that has every module proves that the sdist has what the
build needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SDIST = ("src", "tests", "docs", "examples", "tools")  # folders whose every file the sdist has
TOP = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "CITATION.cff",
    "SECURITY.md",
    "Makefile",
    "mkdocs.yml",
    "PKG-INFO",
)
COMPUTATION = """\
import featherjet as fj, numpy as np
robot = fj.load("arm")
q = robot.random_configuration(0)
assert np.allclose(robot.inverse_mass_matrix(q) @ robot.mass_matrix(q), np.eye(robot.nv))
print("computed with", fj.__version__, "from", fj.__file__)
"""


def main(folder: Path, again: Path) -> None:
    wheel, sdist = only(folder, "*.whl"), only(folder, "*.tar.gz")
    for x in (wheel, sdist):
        if x.read_bytes() != (again / x.name).read_bytes():
            sys.exit(f"{x.name}: a second build has other bytes")
    check_wheel(wheel)
    check_sdist(sdist)
    try_wheel(wheel, folder / f"{wheel.name.partition('-py3')[0]}.cdx.json")
    print(f"good: {wheel.name}, {sdist.name}")


def only(folder: Path, pattern: str) -> Path:
    """The single file that matches."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder}: expected one {pattern}, found {len(found)}; run `make release`")
    return found[0]


def files(folder: Path) -> set[str]:
    """All files below a folder but caches, relative to the folder's parent."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder.parent).as_posix() for path in found if path.suffix != ".pyc"}


def check_wheel(wheel: Path) -> None:
    """The wheel has exactly the package's files, and its metadata and license."""
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if name.startswith("featherjet/")}
    same(wheel, package, files(ROOT / "src" / "featherjet"))
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        sys.exit(f"{wheel.name}: LICENSE is missing")


def check_sdist(sdist: Path) -> None:
    """The sdist has every file of its folders, and the files at the top."""
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = set[str]().union(*(files(ROOT / folder) for folder in SDIST)) | set(TOP)
    same(sdist, {name for name in names if name in wanted or name.startswith(SDIST)}, wanted)


def same(archive: Path, has: set[str], wanted: set[str]) -> None:
    for problem, names in (("is missing", wanted - has), ("does not belong there", has - wanted)):
        if names:
            sys.exit(f"{archive.name}: {', '.join(sorted(names))} {problem}")


def try_wheel(wheel: Path, materials: Path) -> None:
    """Install the wheel in a fresh environment, ask for its version, compute something, and list what is installed."""
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        programs = Path(place, "Scripts" if os.name == "nt" else "bin")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment["FEATHERJET_CACHE_DIR"] = str(Path(place, "code"))
        for command in (
            [programs / "python", "-m", "pip", "install", "-q", wheel.resolve()],
            [programs / "featherjet", "--version"],
            [programs / "python", "-c", COMPUTATION],
            [programs / "python", "-m", "pip", "uninstall", "-q", "-y", "pip", "setuptools"],
            [sys.executable, "-m", "cyclonedx_py", "environment", programs / "python", "-o", materials.resolve()],
        ):
            subprocess.run([str(part) for part in command], check=True, cwd=place, env=environment)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
