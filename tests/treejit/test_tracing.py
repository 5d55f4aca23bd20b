"""What surprises when an algorithm is traced instead of run, pinned."""

from __future__ import annotations

import cmath
import math
import operator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.dynamics import rnea
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit.graph import Expr, Graph
from featherjet.math.scalars import sincos
from featherjet.math.spatial import Force, Motion
from featherjet.math.vec3 import Mat3, Vec3
from featherjet.model.joints import KINDS
from featherjet.model.tree import Tree
from featherjet.treejit import pytree
from featherjet.treejit.program import Key, Pairs, Program, Torques, Variant, Walk
from featherjet.treejit.rolled import RolledScan, trace_rolled
from featherjet.treejit.tables import variants


@pytest.fixture
def x() -> Expr:
    return Graph().load("x")


def same(a: Expr, b: Expr) -> bool:
    return a.graph is b.graph and a.index == b.index


# An expression has no value

VALUES = {
    "branch": lambda x: 1 if x else 2,
    "bool": bool,
    "not": lambda x: not x,
    "and": lambda x: x and 1,
    "less": lambda x: x < 1,
    "at most": lambda x: x <= x,
    "greater": lambda x: x > 0.5,
    "at least": lambda x: x >= 0,
    "equal": lambda x: x == 1.0,
    "equal to itself": lambda x: x == x,
    "not equal": lambda x: x != 0,
    "number on the left of a comparison": lambda x: 0.0 < x,
    "NumPy scalar on the left of a comparison": lambda x: np.float64(0) < x,
    "chained": lambda x: 0 < x < 1,
    "max": lambda x: max(x, 0.0),
    "sorted": lambda x: sorted([x, x]),
    "in a list": lambda x: 1.0 in [x],
    "abs": abs,
    "float": float,
    "int": int,
    "complex": complex,
    "range": range,
    "index": lambda x: [1, 2][x],
    "hash": hash,
    "in a set": lambda x: {x},
    "math.sin": math.sin,
    "cmath.sin": cmath.sin,
    "format": lambda x: f"{x:.3f}",
    "round": round,
    "power": lambda x: x**2,
    "floor division": lambda x: x // 2,
    "modulo": lambda x: x % 2,
    "float array": lambda x: np.array([x], float),
    "into a float array": lambda x: np.zeros(2).__setitem__(0, x),
    "np.sin": np.sin,
    "np.add": lambda x: np.add(x, 1.0),
}


@pytest.mark.parametrize("use", VALUES)
def test_asking_for_its_value_is_refused(x, use):
    before = len(x.graph.ops)
    with pytest.raises(TypeError):
        VALUES[use](x)
    assert len(x.graph.ops) == before


def test_the_refusal_says_why(x):
    with pytest.raises(TypeError, match="no value while it is traced: algorithms must not branch"):
        bool(x)


def test_a_constant_has_no_truth_either(x):
    """Else a branch would be taken for one robot and compiled for all."""
    with pytest.raises(TypeError):
        bool(x.graph.const(1.0))
    assert x.graph.const(1.0).value == 1.0
    assert x.value is None


# Who is lifted

SCALARS = [2, 2.0, np.float64(2), np.float32(2), np.int64(2), np.int8(2), np.uint16(2), np.longdouble(2)]


@pytest.mark.parametrize("two", SCALARS, ids=lambda s: type(s).__name__)
def test_numbers_on_either_side(x, two):
    constant = x.graph.const(2.0)
    for mixed, plain in [
        (x + two, x + constant),
        (two + x, constant + x),
        (x - two, x - constant),
        (two - x, constant - x),
        (x * two, x * constant),
        (two * x, constant * x),
        (x / two, x / constant),
        (two / x, constant / x),
    ]:
        assert isinstance(mixed, Expr)
        assert same(mixed, plain)


@pytest.mark.parametrize(
    "other",
    [1j, np.complex128(1), True, np.True_, None, "2", [2.0], np.array([True]), np.array([1j])],
    ids=lambda s: type(s).__name__ + str(getattr(s, "shape", "")),
)
def test_what_is_no_real_scalar_is_refused(x, other):
    for use in (lambda: x + other, lambda: other + x, lambda: x * other, lambda: other * x, lambda: x / other):
        with pytest.raises(TypeError):
            use()
    with pytest.raises(TypeError, match="cannot trace a"):
        x.graph.lift(other)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (), (0,)])
def test_arrays_go_entry_by_entry(x, shape):
    """As with floats: an expression and an array of numbers, or of expressions, give an array of expressions."""
    y = x.graph.load("y")
    numbers = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    scalars = np.empty(shape, object)
    for k in range(scalars.size):
        scalars.flat[k] = y if k % 2 else 2.0
    for use in (operator.add, operator.sub, operator.mul, operator.truediv):
        for array in (numbers, numbers.astype(int), scalars):
            before, after = (np.asarray(r, object) for r in (use(x, array), use(array, x)))
            assert before.shape == after.shape == shape
            for e, left, right in zip(array.flat, before.flat, after.flat, strict=True):
                assert same(left, use(x, e))
                assert same(right, use(e, x))


def test_an_expression_of_another_graph_is_refused(x):
    foreign = Graph().load("x")
    for use in (lambda: x + foreign, lambda: foreign * x, lambda: x - foreign, lambda: x / foreign):
        with pytest.raises(ValueError, match="another graph"):
            use()
    with pytest.raises(ValueError, match="another graph"):
        x.graph.lift(foreign)


def test_sine_and_cosine_go_through_math(x):
    s, c = sincos(x)
    assert (s.op.name, c.op.name) == ("sin", "cos")
    assert s.op.args == c.op.args == (x.index,)


# Spatial quantities of expressions


def test_a_vector_takes_its_turn(x):
    """Expr * Vec3 is not an Expr's business: it must hand over, as floats do."""
    one = Vec3(1.0, 0.0, x)
    scaled = x * one
    assert isinstance(scaled, Vec3)
    assert same(scaled.x, x)
    assert scaled.y.value == 0
    assert same(scaled.z, x * x)
    for scaled in (np.float64(2) * one, 2 * one, 2.0 * one):
        assert isinstance(scaled, Vec3)
        assert same(scaled.z, x * 2)
    with pytest.raises(TypeError):
        one * x  # scalars stand on the left


def test_spatial_vectors_take_their_turn(x):
    motion = Motion(Vec3(x, 0.0, 0.0), Vec3(0.0, 1.0, 0.0))
    assert isinstance(x * motion, Motion)
    assert isinstance(np.float64(2) * motion, Motion)
    force = Force(Vec3(x, 0.0, 0.0), Vec3(0.0, x, 0.0))
    assert same(motion.dot(force), x * x + x)


def test_known_zeros_vanish_inside_spatial_algebra(x):
    turned = Mat3.identity() @ Vec3(x, 0.0, 0.0)
    assert same(turned.x, x)
    assert turned.y.value == 0.0


# Taking values apart


@dataclass
class Pair:
    a: object
    b: object


def test_leaves_and_their_paths():
    value = Pair((1.0, None), [Pair(2.0, 3.0), Pair(4.0, 5.0)])
    assert pytree.leaves(value) == [
        (("a", "0"), 1.0),
        (("b", 0, "a"), 2.0),
        (("b", 0, "b"), 3.0),
        (("b", 1, "a"), 4.0),
        (("b", 1, "b"), 5.0),
    ]
    doubled = pytree.mapped(value, lambda path, x: 2 * x)
    assert doubled == Pair((2.0, None), [Pair(4.0, 6.0), Pair(8.0, 10.0)])


def test_a_tuple_is_a_shape_and_a_list_is_one_entry_a_dof():
    assert pytree.split(("S", "1", "x")) == (("S", "1", "x"), None)
    assert pytree.split(("S", 1, "x")) == (("S", "x"), 1)
    with pytest.raises(TypeError, match="a list within a list"):
        pytree.split((0, "a", 1))


def test_a_list_within_a_list_is_refused_when_traced():
    scan = RolledScan([Variant("revolute", True, 1, 1)])
    with pytest.raises(TypeError, match="a list within a list"):
        scan.each(lambda node, q: [[q[0]]], scan.coordinates("q"))


# Whole algorithms


@cache
def trace(name: str, variants: tuple[Variant, ...], fext: bool) -> Program:
    record = QUANTITIES[name]
    return trace_rolled(record, variants, fext, dict.fromkeys(record.options, "local"))


def kinds_of(model: fj.Model) -> tuple[Variant, ...]:
    return variants(Tree(model))


SETS = {
    "chain": kinds_of(fj.models.chain(3)),
    "humanoid": kinds_of(fj.models.humanoid()),
    "every kind": tuple(sorted(Variant(k.name, r, k.nq, k.nv) for k in KINDS.values() for r in (False, True))),
    "one free body": (Variant("free", True, 7, 6),),
}
ROLLED = {name: kernel for name, kernel in QUANTITIES.items() if kernel.rolled}
TRACES = [(name, fext) for name, k in ROLLED.items() for fext in ((False, True) if k.forces else (False,))]


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("name, fext", TRACES)
def test_every_trace_is_well_formed(name, fext, which):
    program = trace(name, SETS[which], fext)
    program.graph.verify()
    record = QUANTITIES[name]
    assert list(program.inputs) == [*(i.name for i in record.inputs), *(["fext"] if fext else [])]
    assert len(program.outputs) == len(record.results)
    assert (program.watched is not None) == bool(record.margins)
    made = stored(program)
    assert program.wanted() <= made, "somebody loads what nobody stores"


def stored(program: Program) -> set[Key | None]:
    walks = [loop for loop in program.loops if isinstance(loop, Walk)]
    return {s.ref.key for loop in walks for stores in loop.stores.values() for s in stores}


def shape(program: Program) -> list[str]:
    return [loop.direction if isinstance(loop, Walk) else type(loop).__name__ for loop in program.loops]


LOOPS = {
    "inverse_dynamics": ["outward", "inward"],
    "bias": ["outward", "inward"],
    "gravity": ["outward", "inward"],
    "mass_matrix": ["outward", "inward", "Pairs"],
    "coriolis_matrix": ["outward", "inward", "Pairs"],
    "inverse_dynamics_derivatives": ["outward", "inward", "Pairs"],
    "inverse_mass_matrix": ["outward", "inward", "outward", "Torques"],
    "forward_dynamics": ["outward", "inward", "inward", "outward"],  # forces are reduced with the pivots known
    "forward_dynamics_derivatives": ["outward", "inward", "outward", "inward", "Torques"],
}


@pytest.mark.parametrize("name", LOOPS)
def test_walks_of_one_direction_fuse(name):
    """As many loops as the algorithm has passes, on whatever robot, however many steps each pass has."""
    for which in SETS.values():
        loops = shape(trace(name, which, False))
        assert loops == LOOPS[name]


def test_inward_from_a_seed_of_its_own_loop_begins_another():
    scan = RolledScan(SETS["chain"])
    first = scan.inward(lambda node, acc: (acc, acc), scan.each(lambda node, q: q[0], scan.coordinates("q")))
    assert shape(scan.program) == ["outward", "inward"]
    scan.inward(lambda node, acc: (acc, acc), scan.each(lambda node, x: x, first))
    assert shape(scan.program) == ["outward", "inward", "inward"]


@pytest.mark.parametrize("name", LOOPS)
def test_only_wanted_numbers_are_stored(name):
    program = trace(name, SETS["every kind"], False)
    wanted, offered = program.wanted(), stored(program)
    assert wanted < offered, f"{len(wanted)} of {len(offered)}"


def test_what_nobody_reads_is_not_wanted():
    scan = RolledScan(SETS["chain"])
    q = scan.coordinates("q")
    scan.outward(lambda node, parent, q: Pair(q[0], 2.0 * q[0]), q)
    assert scan.program.wanted() == set()
    total = scan.outward(lambda node, parent, q: q[0] if parent is None else parent + q[0], q)
    scan.inward(lambda node, acc, t: (acc, [acc * t]), scan.constant(1.0), total)
    assert scan.program.wanted() == set(), "no output yet, so nothing is needed"


def test_mass_matrix_keeps_thirteen_numbers_a_dof():
    """S, t1 = IC S and the armature: the pair pass reads nothing else."""
    assert len(trace("mass_matrix", SETS["chain"], False).column_keys()) == 6 + 6 + 1


def test_derivatives_keep_what_the_paper_says():
    """S, Psidd, Sd + Psid, t1, t2, t3 whole, the angular halves of Psid and t4, and the armature."""
    kept = trace("inverse_dynamics_derivatives", SETS["chain"], False).column_keys()
    assert len(kept) == 6 * 6 + 2 * 3 + 1
    assert not [k for k in kept if k.path[:2] == ("Psid", "lin")]


def stores_of(program: Program, path: tuple) -> dict[Variant, list[Expr]]:
    found: dict[Variant, list[Expr]] = {}
    for loop in program.loops:
        if isinstance(loop, Walk):
            for v, stores in loop.stores.items():
                hits = [s.value for s in stores if s.ref.key and s.ref.key.path[: len(path)] == path]
                found.setdefault(v, []).extend(hits)
    return found


def test_roots_are_at_rest():
    """A root's parent does not move, so its Psid is known to be zero; another joint's is not."""
    program = trace("inverse_dynamics_derivatives", SETS["humanoid"], False)
    for v, values in stores_of(program, ("Psid",)).items():
        assert len(values) == 6 * v.nv
        assert all(x.value == 0 for x in values) == v.is_root
    for v, values in stores_of(program, ("X",)).items():
        assert all(x.value is not None for x in values) == v.is_root  # computed in the root's own frame


def test_a_robot_of_roots_alone_has_no_psid_at_all():
    kept = trace("inverse_dynamics_derivatives", SETS["one free body"], False).column_keys()
    assert not [k for k in kept if k.path[0] == "Psid"]
    assert [k for k in kept if k.path[0] == "t3"]


def test_no_rates_fold():
    """Gravity is inverse dynamics at rest: all that velocities bring is gone from its graph."""
    size = {
        name: sum(
            trace(name, SETS["chain"], False)
            .graph.count(s.value.index for loop in trace(name, SETS["chain"], False).loops for s in loop.stores[v])
            .get("mul", 0)
            for v in SETS["chain"]
        )
        for name in ("gravity", "bias", "inverse_dynamics")
    }
    assert size["gravity"] < size["bias"] < size["inverse_dynamics"]


def test_variants_share_one_graph():
    """The same table entry of two variants is one load."""
    scan = RolledScan(SETS["chain"])
    rnea.inverse_dynamics(scan, "q", "v", "a")
    loads = [op.data for op in scan.graph.ops if op.name == "load"]
    assert len(loads) == len(set(loads))


def test_gravity_and_armature_are_read_when_it_runs():
    """They are no constants of the code: one compilation serves all robots."""
    program = trace("inverse_dynamics", SETS["chain"], False)
    spaces = {op.data.space for op in program.graph.ops if op.name == "load"}
    assert {"param", "dofs", "table", "q", "v", "a"} <= spaces
    numbers = {op.data[0] for op in program.graph.ops if op.name == "const"}
    assert numbers <= {0.0, 1.0, -1.0, 2.0, -2.0, 0.5}


def test_a_trace_does_not_depend_on_the_robots_size():
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        small, large = (trace(name, kinds_of(fj.models.chain(n)), False) for n in (2, 50))
        assert small.graph.text() == large.graph.text()


def test_matrices_know_their_loops():
    pairs = [x for x in trace("inverse_dynamics_derivatives", SETS["chain"], False).loops if isinstance(x, Pairs)]
    assert [p.matrices for p in pairs] == [[0, 1, 2]]
    responses = [x for x in trace("forward_dynamics_derivatives", SETS["chain"], False).loops if isinstance(x, Torques)]
    assert [r.matrices for r in responses] == [[0, 1, 2]]
    (r,) = responses
    assert set(r.above) == set(r.up) == set(SETS["chain"])
    assert set(r.out) == {v for v in SETS["chain"] if not v.is_root}, "a root is on the way of every torque"
