"""Write the tables of docs/install.md: what each extra brings, and how large it is, beside Pinocchio and MuJoCo.

    python tools/sizes.py

Sizes are those of the files that pip installed in this environment, compiled Python files left out; the wheel is built
for the purpose. Packages that this environment lacks are named in the table, and not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import tomllib  # Python 3.11
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "install.md"
EXTRAS = {
    "plots": "pictures and charts (`plot`, `featherjet plot`, `demo`)",
    "motion": "`fj.transition`: minimum-torque motion",
    "viewer": "robots and motions in the browser (`featherjet view`)",
    "video": "motions as MP4",
    "ipopt": "IPOPT as a solver of transitions",
    "mujoco": "MJCF files, and MuJoCo to compare with",
    "robots": 'well-known robots by name (`fj.load("talos")`)',
    "descriptions": "more robots by name, fetched over the network",
    "dask": "lazy arrays, clusters",
    "jax": "`fj.jax`",
    "casadi": "`fj.casadi`",
    "torch": "`fj.torch`",
}
PEERS = {"featherjet": "featherjet", "pin": "Pinocchio", "mujoco": "MuJoCo", "casadi": "CasADi"}
MARKS = ("<!-- extras -->", "<!-- peers -->")


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """What a package needs here, with some of its extras."""
    if name == "featherjet":
        yield from own(extras)
        return
    found = installed(name)
    for line in (found.requires or []) if found else []:
        r = Requirement(line)
        if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in (extras or {""})):
            yield r


def own(extras: frozenset[str]) -> Iterator[Requirement]:
    """What featherjet needs, from its project file: an editable install may be older."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (
        [line for e in extras for line in project["optional-dependencies"][e]] if extras else project["dependencies"]
    )
    for line in lines:
        r = Requirement(line)
        yield from own(frozenset(r.extras)) if r.name == "featherjet" else [r]


def closure(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """A package and everything it needs."""
    found: set[str] = set()
    wanted = [(canonicalize_name(name), extras)]
    seen = set()
    while wanted:
        package, chosen = wanted.pop()
        if (package, chosen) in seen:
            continue
        seen.add((package, chosen))
        found.add(package)
        for given in (frozenset(), chosen) if chosen else (frozenset(),):
            wanted += [(canonicalize_name(r.name), frozenset(r.extras)) for r in requirements(package, given)]
    return found


def size(package: str) -> float:
    """The files of an installed package [MB]."""
    found = installed(package)
    paths = [f for f in (found.files or []) if f.suffix != ".pyc"] if found else []
    return sum(p.stat().st_size for f in paths if (p := Path(str(f.locate()))).is_file()) / 1e6


def source_size() -> float:
    """The package itself [MB], which an editable install does not list."""
    return sum(p.stat().st_size for p in (ROOT / "src").rglob("*") if p.is_file() and p.suffix != ".pyc") / 1e6


def total(packages: set[str]) -> float:
    return sum(source_size() if p == "featherjet" else size(p) for p in packages)


def wheel_size() -> float:
    """The wheel [MB]."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(command, check=True)
        return sum(p.stat().st_size for p in Path(folder).glob("*.whl")) / 1e6


def extras_table() -> str:
    base = closure("featherjet")
    rows = ["| extra | for | brings | adds |", "|---|---|---|---:|"]
    for extra, purpose in EXTRAS.items():
        direct = [r.name for r in own(frozenset({extra}))]
        more = closure("featherjet", frozenset({extra})) - base
        missing = [p for p in more if installed(p) is None]
        known = "not measured" if {canonicalize_name(d) for d in direct} & set(missing) else f"{total(more):,.0f} MB"
        rows.append(f"| `{extra}` | {purpose} | {', '.join(direct)} | {known} |")
    return "\n".join(rows)


def peers_table() -> str:
    rows = ["| | version | packages | installed size |", "|---|---|---:|---:|"]
    for package, name in PEERS.items():
        found = installed(package)
        if found is None:
            continue
        packages = closure(package)
        title = f"{name} (its wheel: {wheel_size():.2f} MB)" if package == "featherjet" else name
        rows.append(f"| {title} | {found.version} | {len(packages)} | {total(packages):,.0f} MB |")
    numpy = total(closure("numpy"))
    return "\n".join([*rows, f"| NumPy, in each of them | {distribution('numpy').version} | 1 | {numpy:,.0f} MB |"])


def written(text: str) -> str:
    """The page with its tables replaced."""
    for mark, table in zip(MARKS, (extras_table(), peers_table()), strict=True):
        before, _, after = text.partition(mark)
        rest = after.lstrip("\n").partition("\n\n")[2]
        text = f"{before}{mark}\n\n{table}\n\n{rest}"
    return text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
