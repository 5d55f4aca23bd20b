"""The site builds without a network and without a warning, and every link in it leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from helpers import ROOT, rows

pytest.importorskip("mkdocs", reason="the site needs the extra docs")
pytest.importorskip("material", reason="the site needs the extra docs")
OFFLINE = """
import socket
def refuse(*args, **named):
    raise OSError("the site must build without a network")
socket.socket.connect = refuse
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, by a Python that cannot reach the network."""
    out, guard = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("guard")
    (guard / "sitecustomize.py").write_text(OFFLINE)
    path = os.pathsep.join(filter(None, [str(guard), str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"}, text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def pages(site: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in site.rglob("*.html")}


def test_every_link_leads_somewhere(site):
    found = pages(site)
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in found.items()}
    for page, text in found.items():
        if page.name == "404.html":
            continue
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"(https?|data|mailto|javascript):", link):
                continue
            place, anchor = urldefrag(unquote(link))
            target = (page.parent / place).resolve() if place else page
            assert target.exists(), f"{page.relative_to(site)}: {link}"
            if anchor and target in anchors and not anchor.startswith("__"):
                assert anchor in anchors[target], f"{page.relative_to(site)}: {link}"


def test_pages_load_nothing_from_elsewhere(site):
    for page, text in pages(site).items():
        loaded = re.findall(r'<(?:script|img|link)\b[^>]*?(?:src|href)="(https?://[^"]+)"', text)
        assert not loaded, f"{page.name}: {loaded}"


def test_equations_are_typeset(site):
    text = (site / "guides/manifolds.html").read_text()
    assert "<math" in text
    for page, text in pages(site).items():
        assert "arithmatex" not in text, page.name


def test_the_reference_is_written_out(site):
    text = (site / "reference/dynamics.html").read_text()
    assert 'id="Robot.inverse_dynamics"' in text
    assert "external force, then moment" in text
    assert ":::" not in text


def test_every_example_has_a_page_and_a_picture(site):
    gallery = (site / "examples.html").read_text()
    for script in ROOT.glob("examples/*.py"):
        assert f"examples/{script.stem}.html" in gallery
        assert (ROOT / "docs/figures/examples" / f"{script.stem.split('_', 1)[1]}.png").exists(), script.stem


def test_the_table_of_extras_is_complete():
    text = (ROOT / "pyproject.toml").read_text()
    section = text[text.index("[project.optional-dependencies]") :].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", section, re.M)) - {"test", "docs", "release"}
    assert {cells[0].strip("`") for cells in rows("docs/install.md", "extra")} == extras, "run: python tools/sizes.py"
