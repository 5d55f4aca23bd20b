"""Equations of the proofs, from plain text to LaTeX."""

# ruff: noqa: RUF001
from __future__ import annotations

import html
import re
import string
import sys
import unicodedata

import pytest

from helpers import ROOT

pytest.importorskip("latex2mathml", reason="the site needs the extra docs")
sys.path.insert(0, str(ROOT / "tools/docs"))
import displays
from latex2mathml.converter import convert


@pytest.mark.parametrize(
    "plain, latex",
    [
        ("S_iᵀ g", r"S_{i}^{\top} g"),
        ("Psidd_j = a × S_j", r"\ddot{\Psi}_{j} = a \times S_{j}"),
        ("fC_J x̄* S_j", r"\mathit{fC}_{J} \bar{\times}^* S_{j}"),
        ("28.5 N²", "28.5 N^{2}"),
        ("w̄′_c", r"\bar{w}_{c}^{\prime}"),
        ("∂²s/∂v_i", r"\partial^{2} s / \partial v_{i}"),
        ("if joint(i) is a strict ancestor of J", r"\text{ if joint } ( i ) \text{ is a strict ancestor of } J"),
        ("w_λ·dλ", r"w_{\lambda} \cdot d \lambda"),
        ("L_i·t3", r"L_{i} \cdot t_{3}"),
    ],
)
def test_formulas(plain, latex):
    assert displays.formula(plain) == latex


@pytest.mark.parametrize(
    "plain, shown",
    [
        ("forces −w_k on 2B_k, J_kᵀ", "forces −w<sub>k</sub> on 2B<sub>k</sub>, J<sub>k</sub>ᵀ"),
        ("V_p(I) and fC_J", "V<sub>p(I)</sub> and fC<sub>J</sub>"),
        ("`by_q` of talos_full, q_starts, by_v", "`by_q` of talos_full, q_starts, by_v"),
        ("O(n^3), J_i^T", "O(n³), J<sub>i</sub>ᵀ"),
        ("`x_i^2` x_i^2", "`x_i^2` x<sub>i</sub>²"),
    ],
)
def test_letters_within_sentences(plain, shown):
    assert displays.inline(plain, ascii_signs=True) == shown


def test_columns_and_numbers():
    assert displays.equation("a = b      c = d       (2a)") == r"a = b \quad c = d \qquad (2a)"


@pytest.mark.parametrize("page", displays.PAGES)
def test_every_display_of_a_page_is_typeset_whole(page):
    """All letters of a line are in what the browser gets, in order."""
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / page).read_text(), flags=re.M | re.S)
    lines = [line.strip() for m in displays.DISPLAY.finditer(text) for line in m[0].splitlines() if line.strip()]
    assert lines
    for line in lines:
        shown = html.unescape(re.sub("<[^>]+>", "", convert(displays.equation(displays.signed(line)))))
        changed = "JOPST"  # Psid, Sd, Jd, Omega and ^T become other signs
        kept = [c for c in unicodedata.normalize("NFD", line) if c in string.ascii_uppercase and c not in changed]
        assert [c for c in shown if c in kept] == kept, line
