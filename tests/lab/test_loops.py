"""Algorithms as loops: sets of partials, columns, products and rows give what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.derivatives import methods
from featherjet.algorithms.dynamics import aba, crba, torques
from featherjet.errors import InputError
from featherjet.lab.loops.kernel import LoopedAlgorithm, LoopedKernel
from featherjet.lab.reproduce import algorithms
from featherjet.model.tree import Tree
from helpers import agree, every_kind, random_state

TREES = {
    "chain": lambda: fj.models.auto_tree(9, skew=0.3),
    "tree": lambda: fj.models.auto_tree(13, branching=2, skew=0.3),
    "bush": lambda: fj.models.auto_tree(30, branching=5, skew=0.3),
    "one joint": lambda: fj.models.chain(1),
}
LANES = [("chain", 1), ("tree", 1), ("bush", 1), ("one joint", 1), ("chain", 2), ("chain", 4), ("chain", 8)]


def screws() -> fj.Model:
    """A tree of helical joints about tilted axes: they turn and slide."""
    b = fj.ModelBuilder("screws")
    parents = [None, 0, 1, 1, 0, 4, 5]
    rng = np.random.default_rng(2)
    for i, parent in enumerate(parents):
        X = np.eye(4)
        X[:3, 3] = rng.normal(size=3)
        above = None if parent is None else f"j{parent}"
        b.add_joint(f"j{i}", "helical", above, X, axis=rng.normal(size=3), pitch=0.1 + 0.1 * i)
        b.add_body(f"j{i}", 1.0 + i, rng.normal(size=3), np.diag([1.0, 1.1, 1.2]), name=f"b{i}")
    return b.build()


def loops(algorithm: algorithms.Algorithm, model: fj.Model, given: dict, lanes: int = 1) -> tuple[np.ndarray, ...]:
    assert algorithm.looped
    kernel = LoopedKernel(algorithm.looped, algorithm.inputs, Tree(model), lanes, algorithms.MATRICES)
    return kernel([given[name] for name in algorithm.inputs])


@pytest.mark.parametrize(("tree", "lanes"), LANES)
@pytest.mark.parametrize("method", algorithms.LOOPED_INVERSE)
def test_derivatives_of_inverse_dynamics(method, tree, lanes):
    robot = fj.Robot(TREES[tree](), backend="numpy")
    s = random_state(robot)
    found = loops(algorithms.inverse(method, 3), robot.model, {"q": s.q, "v": s.v, "a": s.a}, lanes)
    for x, y in zip(found, robot.inverse_dynamics_derivatives(s.q, s.v, s.a), strict=True):
        agree(x, y, 1e-13, floor=1e-6)  # a lone hinge has dtau_dv = 0


@pytest.mark.parametrize(("tree", "lanes"), LANES)
@pytest.mark.parametrize("method", [*algorithms.LOOPED_FORWARD, *algorithms.WHOLE])
def test_derivatives_of_forward_dynamics(method, tree, lanes):
    robot = fj.Robot(TREES[tree](), backend="numpy")
    s = random_state(robot)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    found = loops(algorithms.forward(method), robot.model, {"q": s.q, "v": s.v, "tau": tau}, lanes)
    for x, y in zip(found, robot.forward_dynamics_derivatives(s.q, s.v, tau), strict=True):
        agree(x, y, 1e-10, floor=1e-6)


@pytest.mark.parametrize("method", algorithms.LOOPED_INVERSE)
def test_joints_that_turn_and_slide(method):
    robot = fj.Robot(screws(), backend="numpy")
    s = random_state(robot)
    found = loops(algorithms.inverse(method, 3), robot.model, {"q": s.q, "v": s.v, "a": s.a})
    for x, y in zip(found, robot.inverse_dynamics_derivatives(s.q, s.v, s.a), strict=True):
        agree(x, y, 1e-12)


@pytest.mark.parametrize(("tree", "lanes"), LANES)
@pytest.mark.parametrize("algorithm", algorithms.PRODUCTS, ids=lambda x: x.name)
def test_products_with_the_inverse(algorithm, tree, lanes):
    """Minus signs reach the results, and M^-1 is symmetric."""
    robot = fj.Robot(TREES[tree](), backend="numpy")
    n = robot.nv
    q = robot.random_configuration(0, 2)
    by = np.random.default_rng(0).normal(size=(2, 2, n, n))
    given = {"q": q, "by_q": by[0].reshape(2, -1), "by_v": by[1].reshape(2, -1)}
    *minus, inverse = loops(algorithm, robot.model, given, lanes)
    M = robot.mass_matrix(q)
    for x, b in zip(minus, by, strict=True):
        agree(-x, np.linalg.solve(M, b), 1e-10)
    agree(inverse, np.linalg.inv(M), 1e-10)


@pytest.mark.parametrize(("n", "lanes"), [(1, 1), (3, 1), (4, 4), (7, 4), (12, 4), (13, 4), (29, 8), (70, 4)])
def test_columns_beyond_a_chunk_and_products_of_any_size(n, lanes):
    """Chunks of columns, panels and blocks end anywhere."""
    model = fj.models.auto_tree(n, skew=0.3, taper=0.97)
    q = fj.Robot(model, backend="numpy").random_configuration(0, 1)
    B = np.random.default_rng(0).normal(size=(1, n, n))

    def all_three(scan, q, by):
        joints, matrix = aba.factors(scan, q), scan.matrix(by)
        inverse = torques.by_rows(scan, joints)
        return aba.solve(scan, joints, matrix), scan.negative(scan.product(matrix, matrix)), inverse

    solved, product, inverse = LoopedKernel(all_three, ("q", "B"), Tree(model), lanes, ("B",))([q, B])
    agree(product, -B @ B, 1e-13)
    M = fj.Robot(model, backend="numpy").mass_matrix(q)
    agree(solved, np.linalg.solve(M, B), 1e-9)
    agree(inverse, np.linalg.inv(M), 1e-9)


def test_other_joints_and_lanes_on_trees_are_refused():
    mass = algorithms.MASS.function
    with pytest.raises(InputError, match="one-dof joints"):
        LoopedKernel(mass, ("q",), Tree(every_kind(1).model))
    with pytest.raises(InputError, match="chains alone"):
        LoopedKernel(mass, ("q",), Tree(TREES["tree"]()), 4)


def traced(function, inputs) -> LoopedAlgorithm:
    return LoopedAlgorithm(function, inputs, (), "revolute", (0.0, 0.0, -9.81), 1)


def test_only_what_a_result_needs_is_stored():
    """The mass matrix has no use for velocities, nor one derivative for the other."""
    function = methods.find(methods.ID, "chain-rule").function
    both, one = (
        traced(lambda scan, *x, n=n: tuple(function(scan, *x))[:n], ("q", "v", "a")).memory.lengths for n in (2, 1)
    )
    assert (one["set2"], both["set2"]) == (12, 24)  # motions, by q or by both
    assert not any(name.startswith("row") for name in both)  # no pairs of dofs: nobody reads the mass matrix
    mass = traced(lambda scan, q, v: (crba.mass_matrix(scan, q),), ("q", "v")).memory
    assert not any(k.startswith("set") for k in mass.lengths)


def test_columns_in_ground_coordinates_are_not_copied_from_joint_to_joint():
    """Pinocchio's algorithm keeps one column for each dof; the chain rule has another one in each body's frame."""

    def arrays(method: str) -> set[str]:
        function = methods.find(methods.ID, method).function
        found = traced(lambda scan, *x: tuple(function(scan, *x))[:2], ("q", "v", "a")).memory.lengths
        return {name.rstrip("0123456789") for name in found if name.startswith(("set", "dofs"))}

    assert arrays("pinocchio") == {"dofs"}
    assert arrays("chain-rule") == {"set"}
