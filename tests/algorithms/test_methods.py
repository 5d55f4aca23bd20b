"""Every derivative method side by side: on random trees and known robots, against IDSVA, the direct way and each other.

IDSVA and the direct way are themselves held to complex step and to Pinocchio in test_dynamics.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.derivatives import direct, fdsva, idsva, methods, numeric
from featherjet.algorithms.derivatives.methods import FD, ID, INVERSE, TORQUES, Method
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.algorithms.scan import Scan
from featherjet.errors import InputError, SingularMassMatrix, UnknownName
from featherjet.jit.chain import Chain
from featherjet.jit.graph import Graph
from helpers import MULTI_DOF, State, agree, each_agrees, every_kind, models, random_state, with_state

EXACT = 1e-11
NOISE = 1e-2  # entries this small beside M (or its inverse) may be rounding errors of a zero
DIFFERENCES = {"finite-difference": (1e-7, numeric.central), "finite-difference-forward": (1e-4, numeric.one_sided)}
ROBOTS = [("panda", "fixed"), ("ur3", "planar"), ("hyq", "free"), ("talos", "free")]

drawn = with_state(models(most=7), 2)
quickly = settings(max_examples=8)
pytestmark = pytest.mark.filterwarnings(
    "ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning"
)


def names(quantity: str, **wanted: bool) -> list[str]:
    """The exact methods of a quantity with these properties; test_autodiff.py has those that trace first."""
    found = [m for m in fj.methods(quantity) if all(getattr(m, k) == x for k, x in wanted.items())]
    return [m.name for m in found if m.name not in DIFFERENCES and not m.name.startswith("autodiff")]


def compare_inverse(robot: fj.Robot, s: State, method: str, tolerance: float = EXACT, fext: bool = True) -> None:
    state = s if fext else s[:3]
    expected = robot.inverse_dynamics_derivatives(*state)
    got = robot.inverse_dynamics_derivatives(*state, method=method)
    floor = NOISE * np.abs(expected.dtau_da).max((-2, -1))
    for name, x, y in zip(expected._fields, got, expected, strict=True):
        each_agrees(x, y, tolerance, f"{method}: {name}", floor)


def compare_forward(robot: fj.Robot, s: State, method: str, tolerance: float = EXACT, fext: bool = True) -> None:
    f = s.fext if fext else None
    tau = robot.inverse_dynamics(s.q, s.v, s.a, f)
    expected = robot.forward_dynamics_derivatives(s.q, s.v, tau, f)
    got = robot.forward_dynamics_derivatives(s.q, s.v, tau, f, method=method)
    floor = NOISE * np.abs(expected.da_dtau).max((-2, -1))
    for name, x, y in zip(expected._fields, got, expected, strict=True):
        each_agrees(x, y, tolerance, f"{method}: {name}", floor)


# Every method gives the same


@pytest.mark.parametrize("method", names(ID))
@quickly
@given(drawn)
def test_inverse_dynamics_derivatives(method: str, case: tuple[fj.Robot, State]) -> None:
    compare_inverse(*case, method)


@pytest.mark.parametrize("method", names(FD))
@quickly
@given(drawn)
def test_forward_dynamics_derivatives(method: str, case: tuple[fj.Robot, State]) -> None:
    compare_forward(*case, method)


@pytest.mark.parametrize("method", names(INVERSE))
@quickly
@given(drawn)
def test_inverse_mass_matrix(method: str, case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    Minv = robot.inverse_mass_matrix(s.q, method=method)
    each_agrees(Minv, np.linalg.inv(robot.mass_matrix(s.q)), EXACT, method)


@pytest.mark.parametrize("method", names(ID))
@settings(max_examples=8)
@given(with_state(models(kinds=MULTI_DOF, most=3), 2))
def test_trees_of_multi_dof_joints_only(method: str, case: tuple[fj.Robot, State]) -> None:
    """Where Sd and Psid differ, and coordinates of one joint do not commute."""
    compare_inverse(*case, method)


@pytest.mark.parametrize("name, root", ROBOTS)
def test_known_robots(name: str, root: Any) -> None:
    robot = fj.load(name, root=root, backend="numpy")
    s = random_state(robot, 1)
    for method in names(ID):
        compare_inverse(robot, s, method)
    for method in names(FD):
        compare_forward(robot, s, method)


@pytest.mark.parametrize("quantity, compare", [(ID, compare_inverse), (FD, compare_forward)])
def test_without_external_forces_and_for_one_state(quantity: str, compare: Callable) -> None:
    robot = every_kind(2, 8)
    s = random_state(robot, 2)
    for method in names(quantity):
        compare(robot, s, method, fext=False)
        one = getattr(robot, quantity)(s.q[0], s.v[0], s.a[0], s.fext[0], method=method)
        both = getattr(robot, quantity)(*s, method=method)
        for x, y in zip(one, both, strict=True):
            assert x.shape == (robot.nv, robot.nv)
            np.testing.assert_allclose(x, y[0], rtol=1e-9, atol=1e-11 * np.abs(y[0]).max())


def test_large_batches_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from featherjet.evaluate import reference as module

    monkeypatch.setattr(module, "CHUNK", 40)
    robot = every_kind(1, 6)
    compare_inverse(robot, random_state(robot, 7), "chain-rule")


# Differences


@pytest.mark.parametrize("method", DIFFERENCES)
@quickly
@given(drawn)
def test_differences_have_the_digits_they_promise(method: str, case: tuple[fj.Robot, State]) -> None:
    compare_inverse(*case, method, DIFFERENCES[method][0])
    compare_forward(*case, method, 100 * DIFFERENCES[method][0])


@pytest.mark.parametrize("rule, order", [(numeric.one_sided, 1), (numeric.central, 2)])
@pytest.mark.parametrize("quantity", [ID, FD])
def test_differences_converge_as_they_should(quantity: str, rule: Callable, order: int) -> None:
    """Ten times the step, ten to the order times the error, as long as truncation is larger than rounding."""
    robot = every_kind(3, 8)
    s = random_state(robot, 1)
    scan = Scan(robot.evaluator.tree, (1,))
    state = (s.q.T, s.v.T, s.a.T)
    if quantity == ID:
        true: Any = idsva.inverse_dynamics_derivatives(scan, *state)
        found = [numeric.inverse(rule(h))(scan, *state) for h in (1e-2, 1e-3)]
    else:
        true = direct.forward_dynamics_derivatives(scan, *state)[0]
        found = [numeric.forward(rule(h))(scan, *state)[0] for h in (1e-2, 1e-3)]
    for name, exact, coarse, fine in zip(true._fields[:1], true, *found, strict=False):
        ratio = np.abs(coarse - exact).max() / np.abs(fine - exact).max()
        assert ratio == pytest.approx(10**order, rel=0.1), name


def test_differences_of_nothing_but_rounding() -> None:
    """Torques are linear in a, and differences of a linear function have no truncation error at all."""
    robot = every_kind(3, 8)
    s = random_state(robot, 1)
    scan = Scan(robot.evaluator.tree, (1,))
    M = robot.mass_matrix(s.q)[0]
    by_a = numeric.inverse(numeric.central(0.5))(scan, s.q.T, s.v.T, s.a.T).dtau_da[..., 0]
    np.testing.assert_allclose(by_a, M, rtol=0, atol=1e-12 * np.abs(M).max())


# Methods that could be one another in disguise


@pytest.mark.parametrize("quantity", [ID, FD])
def test_methods_do_different_work(quantity: str) -> None:
    """The same numbers by different operations; on chains they rank as the papers say."""
    tree = fj.Robot(fj.models.chain(12), backend="numpy").evaluator.tree
    work = {
        m.name: operations(m, tree)
        for m in fj.methods(quantity)
        if m.name in names(quantity, traced=True) and m.name != "auto"
    }
    if quantity == FD:
        assert work.pop("fdsva") == work["fdsva-dmm"]  # for few joints
    assert len(set(work.values())) == len(work), work
    if quantity == ID:
        assert work["idsva"] < work["pinocchio"] < work["idsva-body"] < work["chain-rule"] < work["lagrangian"], work
        assert work["idsva"] < work["balafoutis-patel"] < work["lagrangian"], work
    else:
        assert work["direct"] < work["fdsva-aza"], work
        assert work["fdsva-dmm"] < work["pinocchio"] < work["fdcr"] < work["abacr"], work


@pytest.mark.parametrize("name, growth", [("idsva", 2), ("chain-rule", 2), ("balafoutis-patel", 2), ("lagrangian", 3)])
def test_work_grows_as_the_table_says(name: str, growth: int) -> None:
    """Third differences of operations on chains vanish for O(n^2), and are positive for O(n^3)."""
    trees = [fj.Robot(fj.models.chain(n), backend="numpy").evaluator.tree for n in range(4, 9)]
    work = [operations(methods.find(ID, name), tree) for tree in trees]
    third = np.diff(work, 3)
    assert np.all(third == 0) if growth == 2 else np.all(third > 0), work


def on_expressions(method: Method, tree: Any, fext: bool = False) -> tuple[Graph, list[Any], Any]:
    """A method run on a graph's scalars: the graph, the nodes of its results, and their shapes."""
    graph = Graph()
    third = "a" if method.quantity == ID else "tau"
    given: list[Any] = []
    for name in ("q",) if method.quantity == INVERSE else ("q", "v", third):
        n = tree.nq if name == "q" else tree.nv
        given.append(np.array([graph.load((name, k)) for k in range(n)], object))
    if fext:
        given.append([tuple(graph.load(("fext", 6 * i + k)) for k in range(6)) for i in range(len(tree.nodes))])
    results = method.function(Scan(tree, (), object), *given)
    matrices = results if method.quantity == ID else results[0] if method.quantity == FD else [results[0]]
    return graph, [graph.lift(x).index for M in matrices for x in np.asarray(M, object).flat], matrices


def operations(method: Method, tree: Any) -> int:
    graph, roots, _ = on_expressions(method, tree)
    return sum(graph.count(roots).values())


TRACED = [(quantity, name) for quantity in (ID, FD, INVERSE) for name in names(quantity, traced=True)]


@pytest.mark.parametrize("quantity, name", TRACED)
def test_methods_run_on_expressions(quantity: str, name: str) -> None:
    """What a compiler will do: trace with scalars that have no values; the interpreter gives the same numbers."""
    robot = fj.Robot(fj.models.random_tree(4, seed=9), backend="numpy")
    s = random_state(robot, 1)
    graph, roots, matrices = on_expressions(methods.find(quantity, name), robot.evaluator.tree, quantity != INVERSE)
    values = {"q": s.q[0], "v": s.v[0], "a": s.a[0], "tau": s.a[0], "fext": s.fext[0].ravel()}
    got = np.array(graph.interpret(roots, lambda at: values[at[0]][at[1]])).reshape(len(matrices), robot.nv, robot.nv)
    inputs = (s.q[0],) if quantity == INVERSE else tuple(x[0] for x in s)
    expected = np.reshape(getattr(robot, quantity)(*inputs, method=name), got.shape)
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * np.abs(y).max())


# The table and the border


def test_the_table_reads_as_one() -> None:
    everything = fj.methods()
    text = repr(everything)
    for m in everything:
        assert f"  {m.name} " in text
        assert m.paper in text
        assert m.effort.startswith("O(")
        for key in re.findall(r"\[[A-Z]+[0-9]*\]", m.paper):
            assert f"{key} " in methods.KEYS
    assert {m.quantity for m in everything} == {TORQUES, ID, FD, INVERSE, methods.ID_HESSIAN, methods.FD_HESSIAN}
    assert len(fj.methods(INVERSE)) == 4
    assert {m.name for m in fj.methods(FD)} >= {"auto", "direct", "fdsva-ltl", "abacr", "fdcr"}
    with pytest.raises(UnknownName, match=r"mass_matrix.*did you mean: inverse_mass_matrix"):
        fj.methods("mass_matrix")


@pytest.mark.parametrize("unroll", [None, False, True])
@pytest.mark.parametrize("name", ["arm", "chain100", "panda"])
def test_a_robot_says_what_it_takes(name: str, unroll: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEATHERJET_UNROLL", raising=False)
    model = fj.models.chain(100) if name == "chain100" else fj.load(name, mimic=name == "panda").model
    robot = fj.Robot(model, backend="compiled", unroll=unroll)
    table = fj.methods(robot)
    assert [row.quantity for row in table] == list(QUANTITIES)
    for row in table:
        assert row.quantity in repr(table)
        record = QUANTITIES[row.quantity]
        if record.options or row.code == "NumPy" or robot.evaluator.kernels.computing(record) is not record:
            continue
        kernel = robot.evaluator.kernel(record, [i.name for i in record.inputs])
        assert kernel is not None
        chains = row.code.startswith("chain") or "mimicking" in row.code
        assert isinstance(kernel, Chain) == chains, row
        if not chains:
            assert kernel.separate_single == row.code.startswith("unrolled"), row


def test_what_a_robot_takes_follows_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEATHERJET_UNROLL", raising=False)
    small, large = (fj.methods(fj.Robot(m, backend="compiled")) for m in (fj.models.arm(), fj.models.chain(100)))
    rows = {name: [{r.quantity: r for r in table}[name] for table in (small, large)] for name in (FD, ID, TORQUES)}
    assert [r.algorithm for r in rows[FD]] == ["fdsva-factor", "direct"]
    assert [r.algorithm for r in rows[ID]] == ["idsva or idsva-body", "idsva"]
    assert [r.algorithm for r in rows[TORQUES]] == ["balafoutis-patel"] * 2
    assert [r.code for r in rows[FD]] == ["unrolled for this robot", "loops shared"]
    assert "at most 32000" in rows[FD][0].why
    assert "more than 32000" in rows[FD][1].why
    (torques,) = [r for r in fj.methods(fj.Robot(fj.models.arm(), backend="numpy")) if r.quantity == TORQUES]
    assert torques[1:] == ("newton-euler", "NumPy", "backend='numpy'")


def test_a_robot_says_what_is_too_long_to_compile() -> None:
    robot = fj.Robot(fj.models.arm(), backend="compiled")
    record = QUANTITIES["projected_newton_euler"]
    robot.evaluator.kernels.give_up(record, ["q", "v"], {})
    (row,) = [r for r in fj.methods(robot) if r.quantity == record.name]
    assert row[2:] == ("NumPy", "more than 100000 operations")
    with pytest.raises(fj.errors.InputError, match="expected the name of a quantity, or a robot, got int"):
        fj.methods(3)  # type: ignore[arg-type]


def test_a_later_layer_can_bring_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.TABLES[ID], "mine", None)  # and is taken out again
    methods.register(Method("mine", ID, "none", "O(1)", "none", idsva.inverse_dynamics_derivatives))
    robot = every_kind(1, 5)
    s = random_state(robot)
    for x, y in zip(
        robot.inverse_dynamics_derivatives(*s, method="mine"), robot.inverse_dynamics_derivatives(*s), strict=True
    ):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_unknown_methods_name_the_choices(backend: str) -> None:
    robot = fj.Robot(fj.models.chain(3), backend=backend)
    q, v = robot.neutral(), np.zeros(3)
    with pytest.raises(UnknownName, match="did you mean: idsva") as caught:
        robot.inverse_dynamics_derivatives(q, v, v, method="idsv")
    assert caught.value.choices == tuple(m.name for m in fj.methods(ID))
    with pytest.raises(UnknownName, match="method of forward_dynamics_derivatives 'ABACR'; did you mean: abacr"):
        robot.forward_dynamics_derivatives(q, v, v, method="ABACR")
    with pytest.raises(UnknownName, match="choose from: auto, direct, ltl, dense"):
        robot.inverse_mass_matrix(q, method="cholesky!")
    for bad in (None, 3, ["idsva"]):
        with pytest.raises(UnknownName):
            robot.inverse_dynamics_derivatives(q, v, v, method=bad)  # type: ignore[arg-type]


def coupled_robot() -> fj.Robot:
    return fj.load("panda", mimic=True, backend="numpy")


@pytest.mark.parametrize("method", names(FD, mimic=False))
def test_articulated_bodies_cannot_mimic(method: str) -> None:
    robot = coupled_robot()
    s = random_state(robot)
    with pytest.raises(InputError, match=f"method '{method}' of .* cannot treat mimicking joints.*fdsva-ltl"):
        robot.forward_dynamics_derivatives(*s, method=method)
    with pytest.raises(InputError, match="Take one of auto, ltl, dense"):
        robot.inverse_mass_matrix(s.q, method="direct")


def test_the_others_can() -> None:
    robot = coupled_robot()
    s = random_state(robot)
    for method in names(ID):
        compare_inverse(robot, s, method)
    for method in names(FD, mimic=True):
        compare_forward(robot, s, method)
    for method in names(INVERSE, mimic=True):
        each_agrees(robot.inverse_mass_matrix(s.q, method=method), np.linalg.inv(robot.mass_matrix(s.q)), 1e-9)


@pytest.mark.parametrize("method", [m.name for m in fj.methods(FD)])
def test_singular_mass_matrices_are_refused(method: str) -> None:
    b = fj.ModelBuilder("ghost")
    b.add_joint("arm", "revolute")
    b.add_body("arm", 1.0, (0.1, 0.0, 0.0), 0.1 * np.eye(3))
    b.add_joint("ghost", "revolute", "arm")
    robot = fj.Robot(b.build(), backend="numpy")
    zero = np.zeros(2)
    with pytest.raises(SingularMassMatrix, match="'ghost'"):
        robot.forward_dynamics_derivatives(zero, zero, zero, method=method)


def test_the_default_is_what_it_was() -> None:
    """No method given: IDSVA; DMM or AZA by size on NumPy; kernels where compiled."""
    small, large = every_kind(3, 8), fj.Robot(fj.models.chain(fdsva.AZA_FROM), backend="numpy")
    for robot, method in ((small, "fdsva-dmm"), (large, "fdsva-aza")):
        s = random_state(robot, 1)
        for x, y in zip(
            robot.forward_dynamics_derivatives(*s), robot.forward_dynamics_derivatives(*s, method=method), strict=True
        ):
            np.testing.assert_array_equal(x, y)
    compiled, shared = (fj.Robot(fj.models.chain(3), backend="compiled", unroll=x) for x in (True, False))
    s = random_state(compiled, 2)
    for robot, quantity, name in ((compiled, FD, "fdsva-factor"), (shared, FD, "direct"), (shared, ID, "idsva")):
        call = getattr(robot, quantity)
        for x, y in zip(call(*s), call(*s, method=name), strict=True):
            np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(compiled.inverse_mass_matrix(s.q), compiled.inverse_mass_matrix(s.q, method="direct"))
    for x, y in zip(
        compiled.forward_dynamics_derivatives(*s, method="abacr"),
        compiled.forward_dynamics_derivatives(*s),
        strict=True,
    ):
        each_agrees(x, y, EXACT)


def test_a_named_method_is_the_one_that_runs() -> None:
    """Also on a small robot, whose default is another: rounding tells the two apart."""
    robot = fj.Robot(fj.models.chain(5), backend="compiled", unroll=True)
    s = random_state(robot, 2)
    default, direct, small = (
        robot.forward_dynamics_derivatives(*s, method=m) for m in ("auto", "direct", "fdsva-factor")
    )
    np.testing.assert_array_equal(default.da_dq, small.da_dq)
    assert np.any(default.da_dq != direct.da_dq)


def test_results_go_into_out() -> None:
    robot = every_kind(2, 5)
    s = random_state(robot, 2)
    out = tuple(np.full((2, robot.nv, robot.nv), np.nan) for _ in range(3))
    got = robot.inverse_dynamics_derivatives(*s, method="chain-rule", out=out)
    assert all(x is y for x, y in zip(got, out, strict=True))
    assert np.isfinite(out).all()


# Torques


@pytest.mark.parametrize("forces", [False, True], ids=["", "fext"])
def test_torques_by_tensors(forces: bool) -> None:
    """Balafoutis and Patel's recursion on every joint kind, far from the origin too."""
    robot = every_kind(3, 14)
    s = random_state(robot)
    fext = np.random.default_rng(3).normal(size=(robot.njoints, 6)) if forces else None
    expected = robot.inverse_dynamics(s.q, s.v, s.a, fext)
    agree(robot.inverse_dynamics(s.q, s.v, s.a, fext, method="balafoutis-patel"), expected, 1e-13)
    assert np.array_equal(robot.inverse_dynamics(s.q, s.v, s.a, fext, method="newton-euler"), expected)
    with pytest.raises(UnknownName, match="method of inverse_dynamics"):
        robot.inverse_dynamics(s.q, s.v, s.a, method="balafoutis")
