"""`make quick`: what a change touches, and one test of each kind of the rest, in three minutes on two cores.

A change concerns a test file that it changes, that names a changed file, or that has the name of a changed source; it
touches those that import a changed file. Tests run in this order, until time is up:

    1. the functions of files that are concerned, on the first of their cases,
    2. one function of every other file, the first that draws no examples, on its first case: touched files first,
    3. the other functions of touched files, and the other cases of files that are concerned,
    4. the second function of every other file, the third, and so on.

`python tests/quick.py [SECONDS]` runs them in two processes, for which this module is a plugin of pytest that chooses
and orders their tests.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
SECONDS = 150.0  # from which on no test begins: those that run then have half a minute to end
PROCESSES = 2
EXAMPLES = 5  # that Hypothesis draws
# What the processes are told: when to stop, and which files are concerned and touched.
UNTIL, CONCERNED, TOUCHED = (f"FEATHERJET_QUICK_{x}" for x in ("UNTIL", "CONCERNED", "TOUCHED"))


def git(*command: str) -> list[str]:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed_files() -> list[str]:
    """The files that differ from main, committed or not."""
    try:
        (base,) = git("merge-base", "HEAD", "main")
    except subprocess.CalledProcessError:  # no branch of this name here
        base = "HEAD"
    return sorted({*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")})


def imported(text: str) -> Iterator[str]:
    """The modules that a file imports, and what it imports from them, which may be modules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (x.name for x in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{x.name}" for x in node.names)


def module_of(name: str) -> str | None:
    """The module that tests import a changed file as."""
    path = Path(name)
    for folder in ("src", "tests"):
        if path.suffix == ".py" and path.parts[0] == folder:
            return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    return None


def concerns(changed: str, test: str, text: str) -> bool:
    """Whether a change of one file concerns a test file."""
    path = Path(changed)
    if module_of(changed) is None:
        return changed in text or (path.parts[0] == "docs" and test.startswith(("tests/docs/", "tests/test_docs")))
    mirror = Path("tests", *path.relative_to("src/featherjet").parent.parts) if path.parts[0] == "src" else None
    return test == changed or (mirror is not None and test == (mirror / f"test_{path.name}").as_posix())


def chosen(files: list[Path], changes: list[str]) -> tuple[list[Path], list[Path]]:
    """The test files that changes concern, and others that they touch."""
    concerned, touched = [], []
    modules = set(filter(None, map(module_of, changes)))
    for test in files:
        name, text = test.relative_to(ROOT).as_posix(), test.read_text()
        if any(concerns(x, name, text) for x in changes):
            concerned.append(test)
        elif modules.intersection(imported(text)):
            touched.append(test)
    return concerned, touched


def main(seconds: float) -> int:
    """Run tests until the time is up; the code that the process ends with."""
    start = time.time()
    files, changes = sorted((ROOT / "tests").rglob("test_*.py")), changed_files()
    concerned, touched = chosen(files, changes)
    others = [test for test in files if test not in {*concerned, *touched}]
    print(f"{len(changes)} files changed: test files {len(concerned)} concerned, {len(touched)} touched", end=", ")
    print(f"{len(others)} others")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            UNTIL: str(start + seconds), CONCERNED: os.pathsep.join(map(str, concerned)),
            TOUCHED: os.pathsep.join(map(str, touched)), "FEATHERJET_TEST_CACHE": folder,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-p", "quick", "--continue-on-collection-errors"]
        runs, outputs = [], []
        for k in range(PROCESSES):
            part = [test for group in (concerned, touched, others) for test in group[k::PROCESSES]]
            output = tempfile.TemporaryFile("w+") if k else None  # the first one shows how it goes on
            runs.append(subprocess.Popen([*command, *part], cwd=ROOT, env=environment, stdout=output, stderr=output))
            outputs.append(output)
        codes = [run.wait() for run in runs]
        for output in filter(None, outputs):
            output.seek(0)
            print(output.read())
    print(f"{time.time() - start:.0f} s")
    return max(codes)


# The plugin


class Rank:
    """When a test runs: sorts cases by the order of this file's docstring."""

    def __init__(self, concerned: set[Path], touched: set[Path], items: list[pytest.Item]) -> None:
        self.concerned, self.touched = concerned, touched
        self._first: dict[str, pytest.Item] = {}  # the first case of each function
        functions: dict[Path, list[str]] = defaultdict(list)
        for item in items:
            if self._first.setdefault(function_of(item), item) is item:
                functions[item.path].append(function_of(item))
        self._number: dict[str, int] = {}  # of each function in its file
        for names in functions.values():
            names.sort(key=lambda name: draws(self._first[name]))
            self._number |= {name: number for number, name in enumerate(names)}

    def __call__(self, item: pytest.Item) -> int | None:
        """The rank of a test; None if it does not run at all."""
        function = function_of(item)
        first = self._first[function] is item
        if item.path in self.concerned:
            return 0 if first else 2
        if not first:
            return None
        number = self._number[function]
        return 1 if number == 0 else 2 if item.path in self.touched else 2 + number


def function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def draws(item: pytest.Item) -> bool:
    """Whether Hypothesis draws the examples of a test."""
    return hasattr(getattr(item, "function", None), "hypothesis")


def pytest_configure(config: pytest.Config) -> None:
    """Fewer examples, and failing ones are shown as they are drawn."""
    few = {"max_examples": EXAMPLES, "phases": [Phase.explicit, Phase.generate]}
    settings.register_profile("quick", settings.get_profile("featherjet"), **few)
    settings.load_profile("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rank = Rank(*({Path(x) for x in os.environ[name].split(os.pathsep)} for name in (CONCERNED, TOUCHED)), items)
    ranked = [(rank(item), item) for item in items]
    config.hook.pytest_deselected(items=[item for r, item in ranked if r is None])
    items[:] = [item for _, item in sorted(((r, item) for r, item in ranked if r is not None), key=lambda x: x[0])]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave out what would begin too late."""
    if time.time() < float(os.environ[UNTIL]):
        return None
    item.config.stash.setdefault(LATE, []).append(item.nodeid)
    return True


LATE: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(f"{len(config.stash.get(LATE, []))} tests were left out when time was up")


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
