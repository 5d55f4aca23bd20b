"""tools/files.py finds what no file of the repository may have."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAULTS = runpy.run_path(str(ROOT / "tools/files.py"))["faults"]
OURS, THEIRS = "<" * 7, ">" * 7


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.md", f"{OURS} HEAD\nour line\n", ":1: mark of a merge"),
        ("a.py", f"x = 1\n{'=' * 7}\n", ":2: mark of a merge"),
        ("a.txt", f"their line\n{THEIRS} branch\n", ":2: mark of a merge"),
        ("a.md", "one\ntwo \n", ":2: blanks at the end of the line"),
        ("Makefile", "all:\t\n", ":1: blanks at the end of the line"),
        ("a.md", "no end", ":1: expected one line end at the end of the file"),
        ("a.md", "empty line\n\n", ":2: expected one line end at the end of the file"),
        ("a.yml", "a: [1\n", "expected ',' or ']'"),
        ("a.toml", "a = [\n", ".toml: "),
    ],
)
def test_a_fault_is_found(tmp_path: Path, name: str, text: str, fault: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    (found,) = FAULTS(path)
    assert found.startswith(str(path))
    assert fault in found


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("title.md", b"Title\n=====\n\ntext\n"),
        ("empty.py", b""),
        ("good.yml", b"a: 1\n---\nb: 2\n"),
        ("good.toml", b"a = 1\n"),
        ("binary", b"\0 \n\n"),
        ("latin", b"\xe9 \n\n"),
    ],
)
def test_files_in_order_are_left_alone(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert not list(FAULTS(tmp_path / name))
