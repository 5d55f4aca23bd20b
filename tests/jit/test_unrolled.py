"""Code for one robot alone: how it is traced, cut into pieces, chosen, and what becomes of small expressions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from backends import CALLS, arguments, both, kernel_of, results, zeros_where_they_belong
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit import objects
from featherjet.jit import straight as unrolled
from featherjet.jit.data import Data
from featherjet.jit.emit import straight as emission
from featherjet.jit.emit.straight import emit_straight
from featherjet.jit.engine import Library, target
from featherjet.jit.flags import Flag
from featherjet.jit.graph import Expr, Graph
from featherjet.jit.gufunc import gufunc
from featherjet.jit.number import DOUBLE
from featherjet.jit.objects import compiled
from featherjet.jit.schedule import PIECE, SUMS, Schedule
from featherjet.model.tree import Tree
from featherjet.treejit.choice import SMALL
from featherjet.treejit.compiler import TreeCompiler
from helpers import models, random_state

LIGHT = (  # few enough operations to be written out for a hundred joints
    "gravity", "static_torque", "forward_kinematics", "joint_columns", "potential_energy", "center_of_mass",
    "frame_placement", "jacobian", "frame_velocity",
)  # fmt: skip
COSTED = [x.name for x in QUANTITIES.values() if x.cost is not None]
MEANING = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "mul": operator.mul, "div": operator.truediv}
MEANING["where_less"] = lambda a, b, x, y: np.where(a < b, x, y)


def traced(model: fj.Model, name: str, fext: bool = False) -> unrolled.Straight:
    record = QUANTITIES[name]
    names = [*(i.name for i in record.inputs), *(["fext"] if fext and record.forces else [])]
    return TreeCompiler(Tree(model)).traced(record, names, **dict.fromkeys(record.options, "local"))


# Schedules


def by_pieces(schedule: Schedule, roots: list[int], memory: dict) -> list:
    """What the pieces compute, one after the other; a slot knows whose value it holds."""
    ops = schedule.graph.ops
    slots: dict[int, tuple[int, object]] = {}
    results: dict[int, object] = {}
    for piece in schedule.pieces:
        here: dict[int, object] = {}

        def value(i: int, piece=piece, here=here):
            if i in here:
                return here[i]
            if ops[i].name == "const":
                return ops[i].data[0]  # type: ignore[index]
            if ops[i].name == "load":
                return memory[ops[i].data]
            owner, x = slots[piece.loads[i]]
            assert owner == i, "a slot was given away while its value was needed"
            return x

        def term(i: int, value=value):
            return value(ops[i].args[0]) * value(ops[i].args[1]) if i in schedule.inlined else value(i)

        for i in piece.ops:
            if ops[i].name in SUMS:
                (_, first), rest, flip = schedule.chain(i)
                terms = [-term(k) if minus else term(k) for minus, k in rest]
                x = functools.reduce(operator.add, terms, term(first))
                x = -x if flip else x
            else:
                x = MEANING[ops[i].name](*map(value, ops[i].args))
            here[i] = results[i] = x
            if i in piece.stores:
                assert 0 <= piece.stores[i] < schedule.slots
                slots[piece.stores[i]] = i, x
    kept = {"const": lambda i: ops[i].data[0], "load": lambda i: memory[ops[i].data]}
    return [kept[ops[r].name](r) if ops[r].name in kept else results[r] for r in roots]


def check_schedule(graph: Graph, roots: list[int], memory: dict, piece: int) -> Schedule:
    """The pieces have every operation once, and compute what the graph means."""
    schedule = Schedule(graph, roots, piece)
    made = [i for p in schedule.pieces for i in p.ops]
    assert len(made) == len(set(made))
    needed = {i for i in graph.reachable(roots) if graph.ops[i].name not in ("const", "load")}
    assert set(made) | schedule.inlined == needed
    assert not set(made) & schedule.inlined
    assert not schedule.inlined & set(roots)
    with np.errstate(all="ignore"):
        expected = graph.interpret(roots, memory)
        found = by_pieces(schedule, roots, memory)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1.0, float(np.max(np.abs(y)))))
    return schedule


def numbers_for(straight: unrolled.Straight, model: fj.Model) -> dict:
    s = random_state(fj.Robot(model, backend="numpy"), 1, seed=3)
    rng = np.random.default_rng(3)
    known = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a, "fext": s.fext}
    given = {name: known.get(name, rng.normal(size=shape)) for name, shape in straight.inputs.items()}
    return {(name, k): x for name in straight.inputs for k, x in enumerate(given[name].ravel())}


@pytest.mark.parametrize("name", COSTED)
def test_pieces_compute_what_the_algorithm_means(name):
    """For every kernel of a tree of all kinds; pieces of one operation use slots most."""
    model = fj.models.random_tree(8, seed=6)
    straight = traced(model, name, True)
    for piece in (1, 40, PIECE):
        check_schedule(straight.graph, straight.roots, numbers_for(straight, model), piece)


@settings(max_examples=25)
@given(model=models(most=6), name=st.sampled_from(CALLS), piece=st.sampled_from([1, 2, 17, PIECE]))
def test_unrolled_traces_of_all_kinds_mean_what_the_reference_computes(model, name, piece):
    """Interpreted, as compiling takes long: the trace, its pieces, and the reference give the same numbers."""
    straight = traced(model, name, True)
    straight.graph.verify()
    memory = numbers_for(straight, model)
    check_schedule(straight.graph, straight.roots, memory, piece)
    reference = fj.Robot(model, backend="numpy")
    s = random_state(reference, 1, seed=3)
    expected = results(reference, name, *(x[0] for x in arguments(name, s, True)))
    for (shape, entries), y in zip(straight.outputs, expected, strict=True):
        x = np.reshape(straight.graph.interpret([e.index for e in entries], memory), shape).reshape(y.shape)
        condition = 1.0
        if QUANTITIES[name].margins:
            condition = np.linalg.cond(reference.mass_matrix(s.q[0]))
        assert np.abs(x - y).max() <= 1e-13 * condition * max(1.0, np.abs(y).max())


names = st.sampled_from("xyz")
numbers = st.sampled_from([1.0, -1.0, 2.0, -0.5, 3.25])
trees = st.recursive(
    names | numbers,
    lambda t: (
        st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), t, t)
        | st.tuples(st.sampled_from(["neg", "sin", "cos", "sqrt"]), t)
        | st.tuples(st.just("where_less"), t, t, t, t)
    ),
    max_leaves=20,
)


def build(tree, loads: dict[str, Expr]) -> Expr:
    """An expression of a tree; roots and divisors are kept away from zero."""
    if not isinstance(tree, tuple):
        return loads[tree] if isinstance(tree, str) else next(iter(loads.values())).graph.const(tree)
    args = [build(t, loads) for t in tree[1:]]
    if tree[0] in ("sin", "cos"):
        return args[0].sincos()[tree[0] == "cos"]
    if tree[0] == "sqrt":
        return (args[0] * args[0] + 1.0).sqrt()
    if tree[0] == "neg":
        return -args[0]
    if tree[0] == "where_less":
        return args[0].where_less(*args)
    if tree[0] == "div":
        return args[0] / (args[1] * args[1] + 1.0)
    return {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[tree[0]](*args)


@settings(max_examples=60)
@given(forest=st.lists(trees, min_size=1, max_size=8), piece=st.sampled_from([1, 3, 300]))
def test_schedules_of_any_expressions(forest, piece):
    graph = Graph()
    loads = {name: graph.load(("q", k)) for k, name in enumerate("xyz")}
    roots = [build(tree, loads).index for tree in forest]
    values = {("q", k): np.array([0.3, -1.7]) * (k + 1) for k in range(3)}
    expected = graph.interpret(roots, values)
    if all(np.abs(x).max() < 1e6 for x in expected):
        check_schedule(graph, roots, values, piece)


def test_slots_are_used_again():
    """Of a long chain hardly anything is alive at a time."""
    graph = Graph()
    x = y = graph.load(("q", 0))
    for k in range(3000):
        y = (y * x + k).sincos()[0]
    schedule = check_schedule(graph, [y.index], {("q", 0): 0.7}, 50)
    assert len(schedule.pieces) > 50
    assert schedule.slots <= 3


def test_pieces_have_the_length_that_is_asked_for():
    straight = traced(fj.models.arm(), "inverse_dynamics_derivatives")
    schedule = Schedule(straight.graph, straight.roots)
    lengths = [sum(max(1, len(schedule.terms(i))) for i in p.ops) for p in schedule.pieces]
    assert len(lengths) > 5
    assert all(PIECE <= n < 1.5 * PIECE for n in lengths[:-1])


def test_fused_products_are_counted_once():
    graph = Graph()
    a, b, c = (graph.load(("q", k)) for k in range(3))

    def count(*roots: Expr) -> int:
        return Schedule(graph, [r.index for r in roots]).instructions

    assert count(a * b + c) == 1
    assert count(a * b - a * c) == 2
    assert count(a * b, a * b + c) == 2  # wanted for itself too
    assert count(a / b) == 1
    assert count(a) == 0


# Small expressions as machine code


def machine_code(outputs: list[list[Expr | float]], watched=()) -> list:
    """Functions of q (..., n) that give (flags, results), for one state and for batches."""
    graph = next(x for entries in outputs for x in entries if isinstance(x, Expr)).graph
    n = 1 + max((op.data[1] for op in graph.ops if op.name == "load"), default=0)
    entries = [((len(out),), [graph.lift(x) for x in out]) for out in outputs]
    straight = unrolled.Straight(graph, {"q": (n,)}, entries, list(watched))
    tables = Data(DOUBLE)
    signature = f"(),({n})->" + ",".join(f"({len(out)})" for out in outputs)
    found = []
    for lanes in (1, target().lanes):
        library = Library(compiled(target(), emit_straight(straight, lanes, target().platform, DOUBLE)), target())
        code = gufunc(library.address("entry"), tables.address, signature, "small", float, (library, tables))

        def call(q, code=code):
            flags = np.zeros(1, np.int64)
            out = code(np.int64(flags.ctypes.data), q)
            return int(flags[0]), out if isinstance(out, tuple) else (out,)

        found.append(call)
    return found


def loads(n: int) -> list[Expr]:
    graph = Graph()
    return [graph.load(("q", k)) for k in range(n)]


def test_sums_signs_constants_and_inputs_as_results(target):
    x, y, z = loads(3)
    zero, one = x.graph.const(0.0), x.graph.const(-2.5)
    first = [
        -(x * y) - z - x * z,  # every term is subtracted
        -(x + y),
        -x,
        x,  # an input as it is
        one,  # a constant
        zero,
        x * y,
        x * y + z,
        x * y + z,  # the same again
        -(x * y),
        x - (y - (z - x * (y - z))),
    ]
    second = [z, x * y, (x + y).sincos()[0], (x + y).sincos()[1], x.sincos()[1], (x * x).sqrt(), 1.0 / z]

    def expected(q):
        x, y, z = np.moveaxis(q, -1, 0)
        w = np.ones_like(x)
        a = [
            -(x * y) - z - x * z, -(x + y), -x, x, -2.5 * w, 0 * w, x * y, x * y + z, x * y + z, -(x * y),
            x - (y - (z - x * (y - z))),
        ]  # fmt: skip
        b = [z, x * y, np.sin(x + y), np.cos(x + y), np.cos(x), np.abs(x), 1 / z]
        return np.stack(a, -1), np.stack(b, -1)

    rng = np.random.default_rng(0)
    for code in machine_code([first, second]):
        for batch in [(), (1,), (3,), (4,), (9,), (2, 5)]:
            q = rng.uniform(0.5, 2.0, (*batch, 3)) * rng.choice([-1, 1], (*batch, 3))
            flags, found = code(q)
            assert flags == 0
            for a, b in zip(found, expected(q), strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)
            np.testing.assert_array_equal(found[0][..., 3], q[..., 0])
            np.testing.assert_array_equal(found[0][..., 4], -2.5)
            np.testing.assert_array_equal(found[0][..., 7], found[0][..., 8])


def test_results_of_nothing_but_constants_and_inputs():
    """Code without a single operation."""
    x, y = loads(2)
    for code in machine_code([[y, x, 3.0] + [0.0] * 20, [7.0]]):
        q = np.array([[1.0, 2.0], [-3.0, 4.0], [5.0, 6.0]])
        for part in (q, q[0]):
            flags, (a, b) = code(part)
            assert flags == 0
            np.testing.assert_array_equal(a[..., :2], part[..., ::-1])
            assert (a[..., 2] == 3).all()
            assert not a[..., 3:].any()
            assert (b == 7).all()


def test_long_sums_of_one_sign(target):
    xs = loads(40)
    minus = -xs[0] * xs[1]
    for k in range(2, 40):
        minus = minus - xs[k] * xs[k - 1] if k % 2 else minus - xs[k]
    q = np.random.default_rng(1).normal(size=(5, 40))
    expected = -q[:, 0] * q[:, 1] - sum(q[:, k] * q[:, k - 1] if k % 2 else q[:, k] for k in range(2, 40))
    for code in machine_code([[minus, -minus]]):
        _, (found,) = code(q)
        np.testing.assert_allclose(found, np.stack([expected, -expected], -1), rtol=0, atol=1e-13)


def resting() -> tuple[list[Expr], Callable]:
    """Values that are used at long intervals, and what they are: an input, a result, a value of this piece for later
    ones and one of an earlier piece; and one that is nowhere in memory."""
    x, y = loads(2)
    result, kept, early = x * y, (x + y).sincos()[0], (x - y).sincos()[1]

    def repeated(total, x, y, result, early) -> tuple:
        found = []
        for k in range(700):  # several pieces
            total = 0.5 * total * total - y * (0.001 * k)
            if k % 12 == 0:
                found.append(total * x)
            if k % 90 == 45:
                found.append(total + result * early)
        return total, found

    total, found = repeated(x - y, x, y, result, early)

    def expected(x, y) -> np.ndarray:
        total, found = repeated(x - y, x, y, x * y, np.cos(x - y))
        return np.stack([x * y, *found, np.sin(x + y) * total], -1)

    return [result, *found, kept * total], expected


def test_values_that_rest_are_what_they_were(target):
    entries, expected = resting()
    q = np.random.default_rng(3).uniform(0.1, 0.5, (9, 2))
    for code in machine_code([list(entries)]):
        _, (found,) = code(q)
        np.testing.assert_allclose(found, expected(*q.T), rtol=1e-12)


def test_values_that_rest_are_read_again():
    """Code for wide registers, of which there are more, reads less often."""
    entries, _ = resting()
    straight = unrolled.Straight(entries[0].graph, {"q": (2,)}, [((len(entries),), entries)])
    reads = {}
    for lanes in (4, 8):
        parts = [part.text for part in emit_straight(straight, lanes, target().platform, DOUBLE)]
        pieces = [f for text in parts for f in text.split("define ") if f.startswith("void @piece")]
        places = [[line.split()[-1] for line in piece.splitlines() if "getelementptr" in line] for piece in pieces]
        reads[lanes] = sum(found.count(place) - 1 for found in places for place in set(found))
    assert reads[4] > reads[8] > 0


def test_margins_that_are_constant_or_not_a_number_are_flagged(target):
    (x,) = loads(1)
    bad = {
        "zero": [x.graph.const(0.0)],
        "tiny": [x.graph.const(1e-12)],
        "negative": [x - 10.0],
        "not a number": [(x - 10.0).sqrt()],
        "the last of many": [x, x, x, x.graph.const(0.0)],
    }
    for watched in bad.values():
        for code in machine_code([[x]], watched):
            assert code(np.array([[1.0]] * 5))[0] == Flag.SMALL_MARGIN
    for code in machine_code([[x]], [x, x.graph.const(1.0)]):
        assert code(np.array([1.0]))[0] == 0
        for lane in range(9):
            q = np.ones((9, 1))
            q[lane] = 0.0
            assert code(q)[0] == Flag.SMALL_MARGIN
            q[lane] = np.nan
            assert code(q)[0] & Flag.LARGE


@settings(max_examples=5)
@given(forest=st.lists(trees, min_size=30, max_size=40))
def test_machine_code_of_any_expressions(forest):
    graph = Graph()
    named = {name: graph.load(("q", k)) for k, name in enumerate("xyz")}
    roots = [build(tree, named) for tree in forest]
    q = np.random.default_rng(2).uniform(0.1, 2.0, (11, 3))
    with np.errstate(all="ignore"):
        expected = graph.interpret([r.index for r in roots], {("q", k): q[:, k] for k in range(3)})
    expected = np.stack([np.broadcast_to(x, 11) for x in expected], -1)
    fine = np.abs(expected).max(0) < 1e6
    one, many = machine_code([list(roots)])
    found = many(q)[1][0]
    np.testing.assert_allclose(found[:, fine], expected[:, fine], rtol=1e-9, atol=1e-9)
    for k in range(11):
        np.testing.assert_allclose(one(q[k])[1][0][fine], expected[k, fine], rtol=1e-9, atol=1e-9)


# What is chosen


def test_small_robots_are_unrolled_and_large_ones_share(monkeypatch):
    monkeypatch.delenv("FEATHERJET_UNROLL")
    arm, chain = (TreeCompiler(Tree(model)) for model in (fj.models.arm(), fj.models.chain(100)))
    for name in COSTED:
        record = QUANTITIES[name]
        assert arm.chooser.choice(record).unrolls
        light = name in LIGHT
        assert chain.chooser.choice(record).unrolls == (not record.rolled or light)
    for robot, unroll in (
        (fj.Robot(fj.models.arm(), backend="compiled"), True),
        (fj.Robot(fj.models.chain(100), backend="compiled"), False),
    ):
        assert robot.unroll is None
        assert kernel_of(robot, "forward_dynamics_derivatives").separate_single == unroll
        assert kernel_of(robot, "kinetic_energy").separate_single == unroll


@pytest.mark.parametrize("setting, default", [("0", False), ("1", True), ("", None)])
def test_the_environment_sets_the_default(monkeypatch, setting, default):
    monkeypatch.setenv("FEATHERJET_UNROLL", setting)
    assert fj.Robot(fj.models.arm()).unroll is default
    for unroll in (False, True):
        assert fj.Robot(fj.models.arm(), unroll=unroll).unroll is unroll
        big = fj.Robot(fj.models.chain(100), backend="compiled", unroll=unroll)
        assert kernel_of(big, "inverse_dynamics_derivatives").separate_single == unroll
        assert kernel_of(big, "kinetic_energy").separate_single == unroll


@pytest.mark.parametrize("robot", ["panda", "humanoid", "chain7"])
@pytest.mark.parametrize("name", [name for name in COSTED if QUANTITIES[name].rolled])
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning")
def test_the_effort_is_estimated_within_a_factor_of_two(name, robot):
    model = fj.models.chain(7) if robot == "chain7" else fj.load(robot).model
    if robot == "humanoid" and name == "forward_dynamics_derivatives":
        pytest.skip("100000 operations, far from the line")
    straight = traced(model, name)
    counts = straight.graph.count(straight.roots)
    true = sum(n for op, n in counts.items() if op not in ("const", "load"))
    assert 0.5 < QUANTITIES[name].cost.of(Tree(model)) / true < 2  # type: ignore[union-attr]


def test_small_robots_take_the_algorithm_of_fewest_operations():
    """Whichever it is, what it gives is right, and zeros of the tree stay exact."""
    b = fj.ModelBuilder("two arms")
    for side in "ab":
        for k, kind in enumerate(("revolute", "prismatic")):
            b.add_joint(f"{side}{k}", kind, f"{side}{k - 1}" if k else None, axis=(1, k, 2), armature=0.01)
            b.add_body(f"{side}{k}", 1.0 + k, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.15]))
    pair = both(b.build(), unroll=True, fext=False)
    record = QUANTITIES["forward_dynamics_derivatives"]
    tree = Tree(pair.reference.model)
    assert record.cost is not None
    assert record.cost.of(tree) < SMALL
    alone = replace(record, for_small=())
    counts = [TreeCompiler(tree).traced(x, ["q", "v", "tau"]).instructions for x in (record, alone)]
    assert counts[0] <= counts[1]
    s = random_state(pair.reference, 9)
    zeros_where_they_belong(pair.compiled, s, fext=False)
    for x, y in zip(*(r.forward_dynamics_derivatives(s.q, s.v, s.a) for r in pair[:2]), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())


def test_constants_are_folded():
    """What does not depend on the state costs nothing: a slider under constant gravity."""
    b = fj.ModelBuilder("slider")
    b.add_joint("slide", "prismatic", axis=(0, 0, 1))
    b.add_body("slide", 2.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.3]))
    model = b.build()
    for name, value in (("gravity", 2 * 9.81), ("mass_matrix", 2.0), ("inverse_mass_matrix", 0.5)):
        ((_, (entry,)),) = traced(model, name).outputs
        assert math.isclose(entry.value or 0.0, value)


def test_the_rest_of_a_long_kernel_is_compiled_in_less_time(monkeypatch):
    """Its beginning gets good code, the rest code that compiles fast; the numbers are the same."""
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    monkeypatch.setattr(emission, "THOROUGH", 2000)
    levels: list[int] = []
    real = objects.object_of

    def seen(target, *parts):
        levels.extend(part.level for part in parts if not part.simplify)
        return real(target, *parts)

    monkeypatch.setattr(objects, "object_of", seen)
    pair = both(fj.models.chain(9), unroll=True, fext=False)
    s = random_state(pair.reference, 9)
    for x, y in zip(*(r.forward_dynamics_derivatives(s.q, s.v, s.a) for r in pair[:2]), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())
    assert {0, 1} == set(levels)
