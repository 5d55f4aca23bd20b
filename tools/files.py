"""Refuse what .pre-commit-config.yaml promises that no file has: marks of a merge, blanks at the ends of lines, a last
line without its end or empty lines after it, YAML and TOML that cannot be read. `make lint` runs this.

python tools/files.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it along

ROOT = Path(__file__).parent.parent
MARK = re.compile(r"(<{7}|>{7}|\|{7}) |={7}$")


def files() -> list[Path]:
    """The files of the checkout, also those that git has not seen yet, but not what the configuration excludes."""
    excluded = re.compile(yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["exclude"])
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for name in names if not excluded.match(name) and (path := ROOT / name).is_file()]


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a file, if it is text."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return
    if "\0" in text:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if MARK.match(line):
            yield f"{path}:{number}: mark of a merge"
        if line != line.rstrip(" \t"):
            yield f"{path}:{number}: blanks at the end of the line"
    if text and (not text.endswith("\n") or not lines[-1]):
        yield f"{path}:{len(lines)}: expected one line end at the end of the file"
    try:
        if path.suffix in (".yaml", ".yml"):
            list(yaml.safe_load_all(text))
        elif path.suffix == ".toml":
            tomllib.loads(text)
    except (yaml.YAMLError, tomllib.TOMLDecodeError) as error:
        yield f"{path}: {error}"


if __name__ == "__main__":
    if not (ROOT / ".git").exists():
        sys.exit("tools/files.py: needs a checkout of the repository")
    found = [fault for path in files() for fault in faults(path)]
    print("\n".join(found) or "All files are in order.")
    sys.exit(bool(found))
