"""The graph of scalar operations: a closed set, simplified as it is made, defined by its interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featherjet.jit.graph import OPERATIONS, Expr, Graph, Op


@pytest.fixture
def g() -> Graph:
    return Graph()


@pytest.fixture
def x(g: Graph) -> Expr:
    return g.load("x")


@pytest.fixture
def y(g: Graph) -> Expr:
    return g.load("y")


def same(a: Expr, b: Expr) -> bool:
    return a.graph is b.graph and a.index == b.index


# Made once


def test_the_set_of_operations_is_closed(x, y):
    made = [x + y, x - y, x * y, x / y, -x, *x.sincos(), x.sqrt(), x + 2, x.where_less(x, y, x, 2.0)]
    assert {e.op.name for e in made} == set(OPERATIONS) - {"const", "load"}
    assert {op.name for op in x.graph.ops} == set(OPERATIONS)
    x.graph.verify()


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: -x,
        lambda x, y: x.sincos()[0],
        lambda x, y: x.sincos()[1],
        lambda x, y: x.sqrt(),
        lambda x, y: x.where_less(x, y, y, 1.0),
        lambda x, y: x * 2.5,
        lambda x, y: (x + y) * (x + y),
    ],
)
def test_equal_operations_are_one_node(x, y, make):
    first = make(x, y)
    size = len(x.graph.ops)
    assert same(make(x, y), first)
    assert len(x.graph.ops) == size


def test_sums_and_products_do_not_know_their_order(x, y):
    assert same(x + y, y + x)
    assert same(x * y, y * x)
    assert not same(x - y, y - x)
    assert not same(x / y, y / x)


def test_a_common_subexpression_is_computed_once(x, y):
    value = (x + y) * (x + y) + (y + x).sqrt()
    assert x.graph.count([value.index]) == {"load": 2, "add": 2, "mul": 1, "sqrt": 1}


def test_zeros_of_both_signs_are_two_constants(g):
    assert not same(g.const(0.0), g.const(-0.0))
    assert math.copysign(1, g.const(-0.0).value) == -1


# Folded


def test_constants_fold(g):
    two, three = g.const(2), g.const(3)
    for e, value in [
        (two + three, 5),
        (two - three, -1),
        (two * three, 6),
        (two / three, 2 / 3),
        (-two, -2),
        (two.sqrt(), math.sqrt(2)),
        (two.where_less(two, three, 5.0, 7.0), 5),
        (two.where_less(two, two, 5.0, 7.0), 7),
        (two.sincos()[0], math.sin(2)),
        (two.sincos()[1], math.cos(2)),
        (1 + two, 3),
        (1 - two, -1),
        (3 * two, 6),
        (3 / two, 1.5),
    ]:
        assert e.op.name == "const"
        assert e.value == value


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, np.float64(0), np.int64(0)])
def test_zero(x, zero):
    for kept in (x + zero, zero + x, x - zero):
        assert same(kept, x)
    assert same(zero - x, -x)
    for gone in (x * zero, zero * x, zero / x, x - x):
        assert gone.value == 0
        assert math.copysign(1, gone.value) == 1


@pytest.mark.parametrize("one", [1, 1.0, np.float64(1)])
def test_one(x, one):
    for kept in (x * one, one * x, x / one):
        assert same(kept, x)
    for turned in (x * -one, -one * x):
        assert same(turned, -x)
    assert (one / x).op == Op("div", (x.graph.const(1).index, x.index))


def test_signs_move_outward_and_cancel(x, y):
    minus = -x
    assert same(-minus, x)
    assert same(x + -y, x - y)
    assert same(-x + y, y - x)
    assert same(x - -y, x + y)
    assert same(-x - y, -(x + y))
    assert same(-x * y, -(x * y))
    assert same(-x * -y, x * y)
    assert same(-x / y, -(x / y))


def test_division_by_zero_is_left_to_the_machine(x):
    assert (x / 0).op.name == "div"
    assert (x.graph.const(1) / 0).op.name == "div"


# Dead code


def test_only_what_the_roots_need_is_reachable(x, y):
    live = (x + y) * x
    dead = (x - y).sqrt()
    order = x.graph.reachable([live.index])
    assert order == sorted(order)
    assert dead.index not in order
    assert set(order) == {x.index, y.index, (x + y).index, live.index}
    assert x.graph.reachable([]) == []
    # an operation that is not reached is not computed either
    assert x.graph.interpret([live.index], {"x": 2.0, "y": -5.0}) == [-6.0]


def test_a_deep_graph_needs_no_recursion(x, y):
    value = x
    for _ in range(20_000):
        value = value * y + x
    assert len(x.graph.reachable([value.index])) == 40_002
    assert x.graph.interpret([value.index], {"x": 1.0, "y": 0.0}) == [1.0]


# Verified

MALFORMED = {
    "unknown operation 'pow'": Op("pow", (0, 1)),
    "add takes 2 operands, has 1": Op("add", (0,)),
    "neg takes 1 operands, has 2": Op("neg", (0, 1)),
    "const takes 0 operands, has 1": Op("const", (0,), (1.0, 1.0)),
    "mul uses an operand that does not come before it": Op("mul", (0, 2)),
    "sub uses an operand that does not come before it": Op("sub", (0, 7)),
    "add uses an operand that does not come before it": Op("add", (-1, 0)),
    "load must carry data": Op("load"),
    "const must carry data": Op("const"),
    "add must not carry data": Op("add", (0, 1), "extra"),
    "an operation occurs twice": Op("load", data="x"),
}


@pytest.mark.parametrize("message", MALFORMED)
def test_verify_refuses(g, x, y, message):
    g.verify()
    g.ops.append(MALFORMED[message])
    with pytest.raises(ValueError, match=message):
        g.verify()


# Interpreted and printed

BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}
names = st.sampled_from("xyz")
numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.25, 1e-3])
trees = st.recursive(
    names | numbers,
    lambda t: st.tuples(st.sampled_from([*BINARY]), t, t) | st.tuples(st.sampled_from(["neg", "sin", "cos"]), t),
    max_leaves=25,
)


def evaluate(tree, leaf, trig):
    """A tree of operations on whatever `leaf` makes of names and numbers; None where a divisor is (nearly) zero."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    args = [evaluate(t, leaf, trig) for t in tree[1:]]
    if tree[0] == "neg":
        return -args[0]
    return BINARY[tree[0]](*args) if tree[0] in BINARY else trig(tree[0], args[0])


def magnitude(tree, values) -> float:
    """A bound on the numbers met on the way, to which rounding is relative."""
    if not isinstance(tree, tuple):
        return abs(values.get(tree, tree))
    sizes = [magnitude(t, values) for t in tree[1:]]
    if tree[0] in ("sin", "cos"):
        return 1 + sizes[0]
    if tree[0] == "div":
        divisor = abs(evaluate(tree[2], lambda x: values.get(x, x), plain_trig))
        return sizes[0] / divisor * (1 + sizes[1] / divisor)
    return {"neg": max, "add": sum, "sub": sum, "mul": math.prod}[tree[0]](sizes)


def plain_trig(name, x):
    return math.sin(x) if name == "sin" else math.cos(x)


@given(tree=trees, values=st.fixed_dictionaries({k: st.floats(0.1, 3.0) for k in "xyz"}))
def test_the_graph_means_what_python_computes(tree, values):
    g = Graph()

    def leaf(t):
        return g.load(t) if isinstance(t, str) else g.const(t)

    try:
        expected = evaluate(tree, lambda x: values.get(x, x), plain_trig)
        size = magnitude(tree, values)
    except ZeroDivisionError:
        return
    if not math.isfinite(expected) or size > 1e9:
        return
    traced = evaluate(tree, leaf, lambda name, x: x.sincos()[name == "cos"])
    g.verify()
    (value,) = g.interpret([traced.index], values)
    assert value == pytest.approx(expected, rel=0, abs=1e-13 * size + 1e-15)
    batch = {k: np.full(3, x) for k, x in values.items()}
    (values3,) = g.interpret([traced.index], batch)
    np.testing.assert_allclose(np.broadcast_to(values3, 3), value, rtol=1e-14, atol=1e-14 * size)


def test_interpret_fetches_by_mapping_or_function(x, y):
    value = (x / y).sqrt()
    assert x.graph.interpret([value.index, x.index], {"x": 8.0, "y": 2.0}) == [2.0, 8.0]
    assert x.graph.interpret([value.index], lambda name: {"x": 8.0, "y": 2.0}[name]) == [2.0]
    with pytest.raises(KeyError):
        x.graph.interpret([value.index], {"x": 8.0})


def test_text_is_one_operation_a_line(x, y):
    value = (x + 2.5) * -y
    assert value.graph.text() == "\n".join(
        [
            "%0 = load x",
            "%1 = load y",
            "%2 = const 2.5",
            "%3 = add %0 %2",
            "%4 = neg %1",
            "%5 = mul %1 %3",
            "%6 = neg %5",
        ]
    )
    assert x.graph.text([(x + 2.5).index]) == "%0 = load x\n%2 = const 2.5\n%3 = add %0 %2"
    assert repr(value) == "<%6 neg %5>"
