"""Say whether this environment has the oldest version of every package that pyproject.toml allows.

    python tools/oldest.py

A bound that nobody installs is a promise that nobody keeps: exits with an error where a newer version is installed than
the bound says, because another package needs it, or because the bound is no release.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from packaging.version import Version


def main() -> None:
    wanted = [Requirement(line) for line in requires("featherjet") or []]
    extras = {"", "test", *(extra for r in wanted if r.name == "featherjet" for extra in r.extras)}
    newer = []
    for r in wanted:
        if r.name == "featherjet" or (r.marker and not any(r.marker.evaluate({"extra": x}) for x in extras)):
            continue
        bound = next((Version(s.version) for s in r.specifier if s.operator == ">="), None)
        try:
            here = Version(version(r.name))
        except PackageNotFoundError:
            sys.exit(f"{r.name} is not installed: pip install -e '.[test]'")
        print(f"{r.name} {here}")
        if bound is not None and here.release[: len(bound.release)] != bound.release and here > bound:
            newer.append(f"{r.name}: pyproject.toml allows {bound}, installed is {here}")
    if newer:
        sys.exit("\n".join(newer))


if __name__ == "__main__":
    main()
