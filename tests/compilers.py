"""Compilers and emulators that the tests of exports run, where they are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def needed(program: str) -> str:
    """The path of a program; the test is skipped where it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}")
    return found


def zig() -> list[str]:
    """The compilers and linkers of the package ziglang."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the package ziglang")
    return [sys.executable, "-m", "ziglang"]


def run(*command: str | Path, **environment: str) -> str:
    """What a program prints; its failure is the test's."""
    found = subprocess.run(
        [str(x) for x in command], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert found.returncode == 0, f"{command[0]} ended with {found.returncode}: {found.stdout}{found.stderr}"
    return found.stdout


def built(compiler: list[str], folder: Path, name: str, *options: str) -> Path:
    """The example of an export as a program."""
    program = folder / "example"
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    run(*compiler, *strict, folder / f"{name}_example.c", folder / f"{name}.o", "-o", program, *options)
    return program
