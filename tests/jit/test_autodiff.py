"""Automatic differentiation of expressions, against complex step through the interpreter; and tapes."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featherjet.jit.autodiff import PARTIALS, Tape, jacobian
from featherjet.jit.graph import OPERATIONS, Expr, Graph

MODES = ("forward", "reverse")
STEP = 1e-30


# Expressions

MADE = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sin": lambda a: a.sincos()[0],
    "cos": lambda a: a.sincos()[1],
    "sqrt": Expr.sqrt,
    "where_less": lambda a, b, x, y: a.where_less(a, b, x, y),
}


def value(y: Expr, at: Mapping[Any, complex]) -> complex:
    return complex(y.graph.interpret([y.index], at)[0])


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Expr], list[Expr], dict[str, float], list[float]]:
    """Inputs, outputs, a point, and how large the terms of any derivative get on the way to each output.

    Operations take any earlier ones, so that subexpressions are shared; outputs may be inputs or constants. Where an
    operation would be ill-conditioned at the point, a harmless one takes its place.
    """
    graph = Graph()
    point = {name: draw(st.integers(-20, 20)) / 7 for name in "wxyz"}
    made = [graph.load(name) for name in point] + [graph.const(draw(st.sampled_from([2.0, -0.5, 1.0])))]
    values = [value(y, point).real for y in made]
    sizes = [1.0] * len(made)
    for _ in range(draw(st.integers(1, 20))):
        name = draw(st.sampled_from([*MADE]))
        i, j = draw(st.integers(0, len(made) - 1)), draw(st.integers(0, len(made) - 1))
        a, b = values[i], values[j]
        if (name == "div" and abs(b) < 0.1) or (name == "sqrt" and a < 0.1) or max(abs(a), abs(b)) > 10:
            name = "sin"
        args = ([made[i], made[j]] * 2)[: OPERATIONS[name].arity]
        if abs(a - b) < 1e-9 and name == "where_less":
            name, args = "add", args[:2]  # no derivative where the choice changes
        y = MADE[name](*args)
        made.append(y)
        values.append(value(y, point).real)
        grown = {
            "add": sizes[i] + sizes[j],
            "sub": sizes[i] + sizes[j],
            "mul": abs(b) * sizes[i] + abs(a) * sizes[j],
            "div": sizes[i] / abs(b or 1) + abs(a / (b or 1) ** 2) * sizes[j],
            "where_less": sizes[i] + sizes[j],
            "sqrt": sizes[i] / 2 / abs(a or 1) ** 0.5,
        }
        sizes.append(grown.get(name, sizes[i]) + 1)
    chosen = draw(st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=6))
    return made[:4], [made[k] for k in chosen], point, [sizes[k] for k in chosen]


def complex_steps(outputs: list[Expr], point: Mapping[Any, float]) -> np.ndarray:
    """The Jacobian by the point's entries, by complex step through the interpreter."""
    graph, roots = outputs[0].graph, [y.index for y in outputs]
    columns = [graph.interpret(roots, {**point, k: complex(x, STEP)}) for k, x in point.items()]
    return np.imag(np.array(columns, complex).T) / STEP


def numbers(J: np.ndarray, point: Mapping[Any, float]) -> np.ndarray:
    values = J.flat[0].graph.interpret([e.index for e in J.flat], point)
    return np.array(values, float).reshape(J.shape)


def test_every_operation_has_its_rule():
    assert set(PARTIALS) == set(OPERATIONS)


@settings(max_examples=150)
@given(programs())
def test_expressions(program):
    inputs, outputs, point, sizes = program
    true = complex_steps(outputs, point)
    for mode in MODES:
        J = jacobian(outputs, inputs, mode)
        inputs[0].graph.verify()
        assert (np.abs(numbers(J, point) - true) <= 1e-13 * np.array(sizes)[:, None]).all(), mode


@settings(max_examples=50)
@given(programs(), st.integers(0, 1000))
def test_expressions_along_directions(program, seed):
    """Directions of numbers and of expressions."""
    inputs, outputs, point, sizes = program
    rates = np.random.default_rng(seed).integers(-2, 3, (4, 3)).astype(float)
    moves = rates.astype(object)
    moves[1, 2] = inputs[3] * inputs[0]
    rates[1, 2] = point["z"] * point["w"]
    true = complex_steps(outputs, point) @ rates
    for mode in MODES:
        J = jacobian(outputs, inputs, mode, moves)
        assert (np.abs(numbers(J, point) - true) <= 1e-12 * np.array(sizes)[:, None]).all(), mode


@pytest.fixture
def xyz() -> tuple[Expr, Expr, Expr]:
    g = Graph()
    return g.load("x"), g.load("y"), g.load("z")


@pytest.mark.parametrize("mode", MODES)
def test_inputs_and_constants_as_outputs(xyz, mode):
    x, y, z = xyz
    J = jacobian([y, x.graph.const(3.0), x, y], [x, y, z], mode)
    assert [[e.value for e in row] for row in J] == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("mode", MODES)
def test_zeros_vanish_and_linear_functions_fold(xyz, mode):
    x, y, z = xyz
    size = len(x.graph.ops)
    J = jacobian([2 * x - y, -(x + 3)], [x, y, z], mode)
    assert [[e.value for e in row] for row in J] == [[2, -1, 0], [-1, 0, 0]]
    assert {op.name for op in x.graph.ops[size:]} <= {"const", "mul", "sub", "neg", "add"}


@pytest.mark.parametrize("mode", MODES)
def test_inputs_may_be_expressions_and_are_independent(xyz, mode):
    x, y, z = xyz
    u = x * y
    J = jacobian([u * z + x], [u, x], mode)
    assert J[0, 0].index == z.index
    assert J[0, 1].value == 1  # u does not move with x


@pytest.mark.parametrize("mode", [*MODES, "auto"])
def test_nothing_by_nothing(xyz, mode):
    assert jacobian([], list(xyz), mode).shape == (0, 3)
    assert jacobian(list(xyz), [], mode).shape == (3, 0)


def test_derivatives_share_what_they_have_in_common(xyz):
    """The gradient of a product of many factors takes as many operations, not their square."""
    g = Graph()
    xs = [g.load(k) for k in range(50)]
    product = xs[0]
    for x in xs[1:]:
        product = product * x
    J = jacobian([product], xs, "reverse")
    assert g.count([e.index for e in J.flat])["mul"] <= 3 * 50
    true = [np.prod(np.delete(np.arange(1, 51) / 20, k)) for k in range(50)]
    np.testing.assert_allclose(numbers(J, {k: (k + 1) / 20 for k in range(50)})[0], true, rtol=1e-13)


def test_auto_takes_what_is_shorter():
    def length(outputs, inputs, mode):
        g = Graph()
        xs = [g.load(k) for k in range(inputs)]
        mixed = [xs[k] * xs[(k + 1) % inputs] * xs[(k + 2) % inputs] for k in range(inputs)]
        total = sum(mixed[1:], mixed[0])
        ys = [(total * (k + 2)).sincos()[0] * total for k in range(outputs)]
        J = jacobian(ys, xs, mode)
        return sum(g.count([e.index for e in J.flat]).values())

    for size, best in (((1, 12), "reverse"), ((12, 2), "forward")):
        lengths = {mode: length(*size, mode) for mode in MODES}
        assert min(lengths, key=lengths.__getitem__) == best
        assert length(*size, "auto") == lengths[best]


def test_jacobian_refuses(xyz):
    x, y, _ = xyz
    with pytest.raises(ValueError, match="unknown mode 'sideways'"):
        jacobian([x], [y], "sideways")
    with pytest.raises(ValueError, match="given twice"):
        jacobian([x], [y, y])
    with pytest.raises(ValueError, match="different graphs"):
        jacobian([x], [Graph().load("x")])


# Tapes


@given(programs())
def test_a_tape_plays_what_the_interpreter_defines(program):
    _, outputs, point, _ = program
    graph, roots = outputs[0].graph, [y.index for y in outputs]
    tape = Tape(outputs)
    assert tape.play(point) == graph.interpret(roots, point)
    batch = {k: np.array([x, x + 1j * STEP]) for k, x in point.items()}
    for got, expected in zip(tape.play(batch), graph.interpret(roots, batch), strict=True):
        np.testing.assert_array_equal(got, expected)
    other = Graph()
    again = [other.lift(y) for y in tape.play({k: other.load(k) for k in point})]
    expected = graph.interpret(roots, point)
    np.testing.assert_allclose(other.interpret([y.index for y in again], point), expected, rtol=1e-14, atol=1e-14)


def test_a_tape_keeps_values_only_while_they_are_needed(xyz):
    x, y, _ = xyz
    chain = x
    for _ in range(1000):
        chain = (chain * y).sincos()[0]
    tape = Tape([chain])
    assert len(tape.steps) == 2000
    assert tape.size <= 4


def test_a_tape_divides_by_zero_as_machines_do(xyz):
    tape = Tape([xyz[0].graph.const(1.0) / 0, xyz[0] / 0])
    assert tape.play({"x": np.float64(-1.0)}) == [np.inf, -np.inf]
