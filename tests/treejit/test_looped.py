"""Algorithms as loops: sets of partials, columns and products give what the reference gives, on every kind of joint."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.derivatives import methods
from featherjet.algorithms.dynamics import aba, crba, torques
from featherjet.model.tree import Tree
from featherjet.treejit.looped.kernel import LoopedKernel
from featherjet.treejit.looped.program import Pairs, SetWalk
from featherjet.treejit.looped.tracing import trace_looped
from featherjet.treejit.tables import variants
from helpers import agree, every_kind, random_state

ROBOTS = {
    "tree": lambda: fj.Robot(fj.models.auto_tree(13, branching=2, skew=0.3)),
    "every kind": lambda: every_kind(2),
    "some kinds": lambda: every_kind(2, n=5),
    "one joint": lambda: fj.Robot(fj.models.chain(1)),
    "panels": lambda: fj.Robot(fj.models.auto_tree(35, branching=2, skew=0.3)),
}
METHODS = ("idsva", "chain-rule", "pinocchio", "idsva-body", "balafoutis-patel")


def derivatives(method: str, quantity: str = methods.ID):
    function = methods.find(quantity, method).function
    return (
        (lambda scan, *x: tuple(function(scan, *x)))
        if quantity == methods.ID
        else lambda scan, *x: tuple(function(scan, *x)[0])
    )


@pytest.mark.parametrize("robot", ["tree", "every kind"])
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_inverse_dynamics(method, robot):
    robot = ROBOTS[robot]()
    s = random_state(robot)
    found = LoopedKernel(derivatives(method), ("q", "v", "a"), Tree(robot.model))([s.q, s.v, s.a])
    for x, y in zip(found, robot.inverse_dynamics_derivatives(s.q, s.v, s.a), strict=True):
        agree(x, y, 1e-13)


@pytest.mark.parametrize(
    ("method", "robot", "lanes"),
    [("direct", "tree", 1), ("direct", "some kinds", 4), ("abacr", "tree", 1), ("abacr", "some kinds", 1)],
)
def test_derivatives_of_forward_dynamics(method, robot, lanes):
    """ABACR carries partials by all dofs of the tree, also by those beside a joint."""
    robot = ROBOTS[robot]()
    s = random_state(robot)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    kernel = LoopedKernel(derivatives(method, methods.FD), ("q", "v", "tau"), Tree(robot.model), lanes)
    for x, y in zip(kernel([s.q, s.v, tau]), robot.forward_dynamics_derivatives(s.q, s.v, tau), strict=True):
        agree(x, y, 1e-11)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("robot", ["tree", "some kinds", "one joint", "panels"])
def test_solutions_with_sparse_factors(robot, lanes):
    """M^-1 and M^-1 B by L^T D L along the tree; panels of columns overlap, and small matrices have small ones."""
    robot = ROBOTS[robot]()
    n = robot.nv
    q = robot.random_configuration(0, 2)
    B = np.random.default_rng(0).normal(size=(2, n, n))

    def both(scan, q, by):
        factor = scan.factor(crba.mass_matrix(scan, q))
        return scan.negative(scan.solve(factor, scan.matrix(by))), scan.solve(factor)

    minus, inverse = LoopedKernel(both, ("q", "B"), Tree(robot.model), lanes)([q, B.reshape(2, -1)])
    M = robot.mass_matrix(q)
    agree(-minus, np.linalg.solve(M, B), 1e-11)
    agree(inverse, np.linalg.inv(M), 1e-11)


@pytest.mark.parametrize(("robot", "lanes"), [("tree", 1), ("some kinds", 4)])
def test_columns_and_products(robot, lanes):
    """M^-1 B by a product, and column by column through the tree; minus signs reach the results."""
    robot = ROBOTS[robot]()
    n = robot.nv
    q = robot.random_configuration(0, 2)
    B = np.random.default_rng(0).normal(size=(2, n, n))

    def both(scan, q, by):
        joints, matrix = aba.factors(scan, q), scan.matrix(by)
        return scan.negative(aba.solve(scan, joints, matrix)), scan.product(torques.by_rows(scan, joints), matrix)

    minus, plus = LoopedKernel(both, ("q", "B"), Tree(robot.model), lanes)([q, B.reshape(2, -1)])
    expected = np.linalg.solve(robot.mass_matrix(q), B)
    agree(-minus, expected, 1e-11)
    agree(plus, expected, 1e-11)


@pytest.mark.parametrize(("n", "lanes"), [(1, 1), (3, 1), (4, 4), (7, 4), (12, 4), (13, 4), (29, 4)])
def test_products_of_any_size(n, lanes):
    """Blocks overlap where a matrix is not a multiple of them, and small matrices have small blocks."""
    A, B = np.random.default_rng(n).normal(size=(2, 1, n, n))
    kernel = LoopedKernel(
        lambda scan, a, b: (scan.negative(scan.product(scan.matrix(a), scan.matrix(b))),),
        ("a", "b"),
        Tree(fj.models.chain(n)),
        lanes,
    )
    agree(kernel([A.reshape(1, -1), B.reshape(1, -1)])[0], -A @ B, 1e-14)


def test_only_what_is_asked_for_is_computed():
    tree = Tree(fj.models.chain(3))
    function = methods.find(methods.ID, "chain-rule").function
    program = trace_looped(lambda scan, *x: tuple(function(scan, *x))[:2], ("q", "v", "a"), variants(tree))
    assert not any(isinstance(loop, Pairs) for loop in program.loops)  # the mass matrix
    assert sum(isinstance(loop, SetWalk) for loop in program.loops) == 2


def test_columns_in_ground_coordinates_are_not_copied_from_joint_to_joint():
    """Pinocchio's algorithm keeps one column for each dof; the chain rule has another one in each body's frame."""
    tree = Tree(fj.models.chain(3))

    def carried(method: str) -> set[bool]:
        by_q_and_v = derivatives(method)
        code = LoopedKernel(lambda *x: by_q_and_v(*x)[:2], ("q", "v", "a"), tree).code
        return {array.shared for array in code.w.arrays}

    assert carried("pinocchio") == {True}
    assert carried("chain-rule") == {False}
