"""What the documents say is true: their code runs, their links lead somewhere, their tables are right."""

from __future__ import annotations

import re
import runpy

import pytest

import featherjet as fj
from featherjet.cli import COMMANDS, main, parser
from featherjet.math import rotations
from featherjet.model.joints import KINDS
from helpers import ROOT, rows

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def blocks() -> list:
    """Every python block of every page; those of a page that says so are one program, its lines where the page's."""
    found = []
    for page in PAGES:
        text, name = page.read_text(), str(page.relative_to(ROOT))
        if "<!-- one program -->" in text:
            found.append(pytest.param(program(text), id=name))
            continue
        for k, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)):
            found.append(pytest.param(code, id=f"{name}-{k}"))
    return found


def program(text: str) -> str:
    """All python blocks of a page, with empty lines in place of everything else."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = line == "```python" or (inside and not fence)
    return "\n".join(lines)


def skip_without_peers(code: str) -> None:
    for peer in ("pinocchio", "mujoco", "pydrake", "jax", "torch", "dask", "casadi", "crocoddyl"):
        if re.search(rf"^\s*(?:import|from) {peer}\b", code, re.M):
            pytest.importorskip(peer)


def test_there_is_something_to_run():
    assert len(blocks()) >= 2
    assert len(EXAMPLES) >= 4


def test_examples_are_numbered_without_gaps():
    assert [int(path.stem[:2]) for path in EXAMPLES] == [*range(1, len(EXAMPLES) + 1)]


@pytest.mark.filterwarnings("error::featherjet.errors.SimulationWarning")
@pytest.mark.parametrize("code", blocks())
def test_code_in_the_pages_runs(code, monkeypatch):
    skip_without_peers(code)
    if "fj.jax" in code or "fj.torch" in code:  # which call compiled code
        monkeypatch.setenv("FEATHERJET_BACKEND", "compiled")
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})


@pytest.mark.filterwarnings("error::featherjet.errors.SimulationWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, capsys, monkeypatch):
    """On compiled code, as users run them: some optimise, and would take minutes on the reference."""
    skip_without_peers(example.read_text())
    monkeypatch.setenv("FEATHERJET_BACKEND", "compiled")
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_the_rotation_page_is_complete():
    """Every public function of the rotation library has its place on its page."""
    page = (ROOT / "docs/rotations.md").read_text()
    assert not [name for name in rotations.__all__ if name != "Frame" and not re.search(rf"`{name}[`(]", page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_exist(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    for path in re.findall(r"`((?:src|docs|tests|examples)/[^`\s]*)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_have_at_most_100_columns(page):
    """Tables, and code that cannot be broken, may be wider."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S).splitlines()
    assert not [line for line in prose if len(line) > 100 and not line.startswith(("|", "    "))]


@pytest.mark.parametrize("record", sorted(ROOT.glob("docs/decisions/0*.md")), ids=lambda path: path.stem)
def test_a_decision_record_is_short_and_in_the_index(record):
    lines = record.read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert len(lines) < 40
    assert headings == ["## Context", "## Decision", "## Consequences", "## Measurements"]
    assert f"[{record.stem[:4]}]({record.name})" in (record.parent / "README.md").read_text()


def test_the_picture_is_small():
    assert (ROOT / "docs/quadruped.png").stat().st_size < 200_000


def test_the_readme_shows_what_the_demo_prints(capsys, tmp_path):
    assert main(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    shown = re.search(r"^```text\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert shown
    for line in shown[1].splitlines():
        assert re.sub(r"\S+$", "", line) in printed, line  # all but the last column, which is rounding


def test_the_commands_of_the_readme_can_be_given():
    commands = [cells[0].strip("`").split()[1:] for cells in rows("README.md", "command")]
    assert {words[0] for words in commands} == {command.__name__.split(".")[-1] for command in COMMANDS}
    for words in commands:
        parser().parse_args(words)


def test_the_table_of_joints_is_that_of_the_code():
    table = {cells[0]: (int(cells[1]), int(cells[2])) for cells in rows("docs/conventions.md", "kind")}
    assert table == {name: (kind.nq, kind.nv) for name, kind in KINDS.items()}


@pytest.mark.parametrize(
    "table, title",
    [("methods", "inverse: `idsva`"), ("methods", "M^-1: `direct`"), ("direct", "panda, 7 dofs"),
     ("direct", "hyq, free base, 18"), ("autodiff", '`method="autodiff"`'),
     ("autodiff", '`method="autodiff-reverse"`')],
)  # fmt: skip
def test_counts_are_those_that_the_tool_prints(table, title):
    """A row of each table that is quick to count."""
    found = runpy.run_path(str(ROOT / "tools/operations.py"))["TABLES"][table]
    assert found.head in found.page.read_text()
    assert found.line(title) in found.page.read_text(), "run: python tools/operations.py"


def test_the_table_of_quantities_is_that_of_the_records():
    tool = runpy.run_path(str(ROOT / "tools/quantities.py"))
    assert tool["PAGE"].read_text().endswith(tool["table"]()), "run: python tools/quantities.py"


def test_the_changelog_knows_this_version():
    assert fj.__version__ in (ROOT / "CHANGELOG.md").read_text()
