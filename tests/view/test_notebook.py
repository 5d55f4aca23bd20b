"""The viewer in Jupyter: a real kernel runs a cell, and a real browser shows what the cell displays."""

from __future__ import annotations

import numpy as np
import pytest

from browser import Page, blue, come_true, in_the_middle, opened
from featherjet.view.browser import chromium

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
pytest.importorskip("viser", reason="viser is not installed: pip install 'featherjet[viewer]'")
pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium here: apt-get install chromium")

CELL = """
import featherjet as fj
robot = fj.load("humanoid", backend="numpy")
robot.view(port=18106)
"""
HEIGHT, PANEL = 600, 340  # of the cell, and the width of what is beside the picture [pixels]


def test_a_cell_shows_the_robot(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = nbclient.NotebookClient(notebook, kernel_name="python3", timeout=300)
    with client.setup_kernel():  # which serves the page for as long as it lives
        cell = client.execute_cell(notebook.cells[0], 0)
        (shown,) = [out for out in cell.outputs if out.output_type == "execute_result"]
        assert "<Viewer of humanoid: http://127.0.0.1:18106>" in shown.data["text/plain"]
        page = tmp_path / "cell.html"
        page.write_text(f"<!doctype html><body style='margin:0'>{shown.data['text/html']}")
        with opened(page.as_uri()) as browser:
            browser.wait("document.querySelector('iframe') !== null")
            come_true(lambda: limbs(browser).sum() >= 2000, "the cell does not show the robot")
            (tmp_path / "cell.png").write_bytes(browser.picture())  # for whoever wonders why a test fails
            assert in_the_middle(limbs(browser))


def limbs(page: Page) -> np.ndarray:
    """Where the robot is in the cell's picture, which ends where the panel begins."""
    found = blue(page.pixels()[:HEIGHT, : int(page.script("document.querySelector('iframe').clientWidth")) - PANEL])
    found[-90:, :90] = False  # axes
    return found
