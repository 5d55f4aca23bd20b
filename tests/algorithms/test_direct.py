"""docs/direct.md, equation by equation as it stands there, on plain 6x6 matrices, against complex step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.derivatives import numeric
from featherjet.algorithms.dynamics import aba
from featherjet.algorithms.scan import Scan
from helpers import State, agree, models, with_state
from pages import Page

pytestmark = pytest.mark.filterwarnings(
    "ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning"
)


@settings(max_examples=15)
@given(with_state(models(most=6), 1))
def test_the_rows(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    tree = robot.evaluator.tree
    q, v, tau = s.q[0], s.v[0], s.a[0]
    scan = Scan(tree)
    page = Page(tree, q, v, np.asarray(aba.forward_dynamics(scan, q, v, tau).a, float))
    truth, _ = numeric.forward(numeric.complex_step)(scan, q, v, tau)
    rows = [page.row(k) for k in range(page.n)]
    for m, (name, true) in enumerate(zip(truth._fields, truth, strict=True)):
        agree(np.stack([row[m] for row in rows]), true, 1e-10, name, 1e-2 * np.abs(truth.da_dtau).max())


@settings(max_examples=15)
@given(with_state(models(most=6), 1))
def test_the_theorem(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    tree = robot.evaluator.tree
    q, v, tau = s.q[0], s.v[0], s.a[0]
    scan = Scan(tree)
    page = Page(tree, q, v, np.asarray(aba.forward_dynamics(scan, q, v, tau).a, float))
    truth, _ = numeric.forward(numeric.complex_step)(scan, q, v, tau)
    for name, column, true in zip(truth._fields, (page.by_q, page.by_v, page.by_tau), truth, strict=True):
        found = np.stack([column(j) for j in range(page.n)], 1)
        agree(found, true, 1e-10, name, 1e-2 * np.abs(truth.da_dtau).max())


@settings(max_examples=15)
@given(with_state(models(most=6), 1))
def test_the_right_half_of_the_coriolis_matrices_is_zero(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    page = Page(robot.evaluator.tree, s.q[0], s.v[0], s.a[0])
    for B in (*page.B2, *page.PA):
        assert np.abs(B[:, 3:]).max() <= 1e-12 * max(np.abs(B).max(), np.abs(page.I).max())
