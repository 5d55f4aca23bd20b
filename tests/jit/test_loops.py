"""The loop language: every statement on arrays, as a program, and as machine code, agrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from featherjet.jit import engine
from featherjet.jit.flags import Flag
from featherjet.jit.graph import Graph, Op
from featherjet.jit.loops.emit import trace
from featherjet.jit.loops.index import least
from featherjet.jit.loops.interpret import interpret
from featherjet.jit.loops.kernel import LoopKernel, key_of
from featherjet.jit.loops.program import LaneRole, Let
from featherjet.jit.loops.replay import evaluated
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.jit.loops.text import text
from featherjet.jit.loops.trace import Tracer
from featherjet.jit.loops.verify import MalformedLoops, verify
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.math.scalars import sincos, sqrt, where_less
from featherjet.math.vec3 import Vec3

N, M = 5, 7
Axes = dict[str, tuple[Any, ...]]


def counted(t, A, x, out, n, m):
    """Loops: upwards from a start, by steps, downwards, within each other; stores that later loads see."""
    for i in t.loop(n):
        out[i] = x[i]
    for i in t.loop(n, start=1):
        out[i] = out[i] + out[i - 1]
    for i in t.loop(n, step=2):
        out[i] = 2.0 * out[i]
    for i in t.loop(n, start=1, step=2, down=True):
        out[i - 1] = out[i - 1] - 0.5 * out[i]
    for i in t.loop(n, down=True):
        for j in t.loop(i + 1):
            out[i] = out[i] + A[i, j] * out[j]


def columned(t, A, x, out, n, m):
    """Columns, with a number of the row, a variable of columns, and parts of arrays."""
    for i in t.loop(n):
        for c in t.columns(m):
            v = t.cell(x[i])
            v[0] = v[0] * A[i, c]
            out[i, c] = v[0] + where_less(A[i, c], 0.0, 1.0, A[0, c])
    rest = out.beyond(1, 2)
    row = A[n - 1]
    for c in t.columns(m - 2):
        rest[0, c] = row.row[0, c] / 3.0


def settled(t, x, out):
    """Newton's method for roots, until every lane is there; and the first of its steps."""
    change = t.cell(0.0)
    out[0] = x[0]
    for _ in t.until(lambda: (1e-12 + 0.0 * change[0], change[0]), 60):
        y = 0.5 * (out[0] + x[0] / out[0])
        apart = y - out[0]
        change[0] = where_less(apart, 0.0, -1.0 * apart, apart)
        out[0] = y
    for k in t.until(lambda: (0.0 * x[0], 1.0 + x[0]), 1):
        out[1] = x[0] + out[k]


def branched(t, x, out, kind):
    """Cases of an integer, and blocks that run if a comparison holds: of integers, of numbers in any lane."""
    for i in t.loop(4):
        for k in t.cases(kind[i], 3):
            if k == 0:
                out[i] = x[i]
            elif k == 1:
                out[i] = sqrt(x[i] * x[i])
            else:
                sine, cosine = sincos(x[i])
                out[i] = sine + 2.0 * cosine
        for _ in t.when(i, 2):
            out[i] = out[i] + 10.0
        for _ in t.when(3.0, out[i]):
            out[i] = where_less(3.0, out[i], out[i] - 1.0, out[i])


def called(t, A, x, out, n, m):
    """A function for two arrays, one of them a part of the other's; integers and constants handed over."""
    for i in t.loop(n):
        for j in t.loop(m):
            out[i, j] = 0.0
        t.call(scaled, A[i], out[i], x, i, 2.0, m)
        t.call(scaled, A[n - 1 - i], out[i], x, i, 2.0, m)


def scaled(t, row, out, x, i, factor, m):
    for j in t.loop(m):
        out[j] = out[j] + factor * row[j] * x[i]


def vectors(t, x, out):
    """Helpers of the house on what the language loads."""
    v = Vec3(x[0], x[1], x[2])
    w = v.cross(Vec3(x[2], 1.0, x[0]))
    for k, y in enumerate((w.x, w.y, w.z)):
        out[k] = y


def turned(t, A, x, out, n, m):
    """A matrix and a part of it transposed, what is beside that part untouched."""
    for i in t.loop(m):
        for c in t.columns(n):
            out[i, c] = 1.0
    t.transpose(out.beyond(2, 1), A.beyond(1, 2), (m - 2, n - 1))


def viewed(t, x, out):
    """A vector as a matrix, without the rest of the last row; variables that a loop changes; a loop over nothing."""
    X, sums = x.matrix(2), t.cells(2)
    for i in t.loop(3):
        for k in range(2):
            sums[k] = sums[k] + (1.0 + k) * X[i, k]
    for i in t.loop(0):
        out[i] = x[100]
    for k in range(2):
        out[k] = sums[k] * x.matrix(3).T[1][k]
    y = out.matrix(1).beyond(2, 0)
    y[0, 0] = x.beyond(1).matrix(3)[1, 0]


SQUARE: tuple[Axes, Axes] = ({"A": ("n", "m"), "x": ("n",)}, {"out": ("n", "m")})
CASES: dict[str, tuple[Callable[..., None], Axes, Axes]] = {
    "counted": (counted, {"A": ("n", "m"), "x": ("n",)}, {"out": ("n",)}),
    "columned": (columned, *SQUARE),
    "called": (called, *SQUARE),
    "turned": (turned, SQUARE[0], {"out": ("m", "n")}),
    "settled": (settled, {"x": (1,)}, {"out": (2,)}),
    "branched": (branched, {"x": (4,)}, {"out": (4,)}),
    "vectors": (vectors, {"x": (3,)}, {"out": (3,)}),
    "viewed": (viewed, {"x": (7,)}, {"out": (3,)}),
}
SAMPLES = 11


def arguments(inputs: Axes, results: Axes) -> tuple[list[np.ndarray], list[tuple[int, ...]]]:
    rng, length = np.random.default_rng(3), {"n": N, "m": M}
    shapes = [tuple(length.get(a, a) for a in axes) for axes in (*inputs.values(), *results.values())]
    given = [rng.uniform(0.5, 2.0, (SAMPLES, *shape)) for shape in shapes[: len(inputs)]]
    return given, shapes[len(inputs) :]


def spec_of(name: str, fill: Fill = Fill.SAMPLES) -> LoopSpec:
    function, inputs, results = CASES[name]
    sizes = ("n", "m") if "n" in str(inputs) else ()
    tables = ("kind",) if name == "branched" else ()
    return LoopSpec(name, function, inputs, results, fill, sizes=sizes, tables=tables)


KINDS = {"kind": np.array([2, 0, 1, 2])}
LENGTHS = {"n": N, "m": M}


def by_definition(name: str) -> list[np.ndarray]:
    """What the function does with arrays of all samples."""
    spec = spec_of(name)
    given, shapes = arguments(spec.inputs, spec.results)  # type: ignore[arg-type]
    out = [np.zeros((*shape, SAMPLES)) for shape in shapes]
    arrays = [LoopArray(np.moveaxis(x, 0, -1), x.ndim - 1) for x in given]
    results = [LoopArray(x, x.ndim - 1) for x in out]
    tables = {"kind": LoopArray(KINDS["kind"])} if spec.tables else {}
    spec.function(ArrayLoops((SAMPLES,)), *arrays, *results, *(LENGTHS[k] for k in spec.sizes), **tables)
    return [np.moveaxis(x, -1, 0) for x in out]


@pytest.mark.parametrize("name", CASES)
def test_a_program_means_what_its_function_does(name: str) -> None:
    spec = spec_of(name)
    given, shapes = arguments(spec.inputs, spec.results)  # type: ignore[arg-type]
    flat = [np.moveaxis(x, 0, -1).reshape(-1, SAMPLES).copy() for x in given]
    out = [np.zeros((int(np.prod(shape)), SAMPLES)) for shape in shapes]
    interpret(trace(spec), [*flat, *out], found=LENGTHS | KINDS)
    for x, y in zip(out, by_definition(name), strict=True):
        np.testing.assert_array_equal(x.T.reshape(y.shape), y)


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fill", Fill)
@pytest.mark.parametrize("name", CASES)
def test_machine_code_does_what_the_function_does(
    name: str, fill: Fill, dtype: Any, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all lanes and both precisions; the samples are no multiple of any lanes, and their arrays any part of one."""
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    spec = spec_of(name, fill)
    kernel = LoopKernel(spec, LENGTHS, KINDS)
    given, _ = arguments(spec.inputs, spec.results)  # type: ignore[arg-type]
    given = [x.astype(dtype) for x in given]
    found, flags = kernel(given, None, 1)
    assert flags == 0
    tolerance = 2e-5 if dtype is np.float32 else 1e-13
    for x, y in zip(found, by_definition(name), strict=True):
        scale = np.abs(y).max()
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale)


def multiplied(t: Any, A: Any, B: Any, C: Any, D: Any, n: Any, m: Any, plus: bool, upper: bool, apart: bool) -> None:
    """D = C +- A^T B (m, m), in place or not, the lower triangle of an upper one cleared; then a product of parts."""
    for i in t.loop(m):
        for c in t.columns(m):
            D[i, c] = C[i, c]
    t.product(D, A, B, (m, m, n), start=C if apart else D, plus=plus, upper=upper)
    if upper:
        for i in t.loop(m):
            for j in t.loop(i):
                D[i, j] = 0.0


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("fill", Fill)
@pytest.mark.parametrize("known", [False, True], ids=["any size", "known size"])
@pytest.mark.parametrize("plus, upper, apart", [(True, False, True), (False, False, False), (True, True, False)])
@pytest.mark.parametrize("n, m", [(1, 1), (3, 5), (6, 23)])
def test_products(
    n: int, m: int, plus: bool, upper: bool, apart: bool, known: bool, fill: Fill, cpu: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if upper and not known and fill is Fill.COLUMNS:
        upper = False  # the schedule for any size computes all entries
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    names = {"n": n, "m": m} if known else {"n": "n", "m": "m"}
    inputs = {"A": (names["n"], names["m"]), "B": (names["n"], names["m"]), "C": (names["m"], names["m"])}
    how = (("plus", plus), ("upper", upper), ("apart", apart), *((("n", n), ("m", m)) if known else ()))
    spec = LoopSpec(
        "product", multiplied, inputs, {"D": inputs["C"]}, fill, sizes=() if known else ("n", "m"), constants=how
    )
    rng = np.random.default_rng(5)
    A, B, C = rng.normal(size=(9, n, m)), rng.normal(size=(9, n, m)), rng.normal(size=(9, m, m))
    kernel = LoopKernel(spec, {"n": n, "m": m})
    ((found,), _) = kernel([A, B, C], None, 1)
    true = C + (1 if plus else -1) * A.transpose(0, 2, 1) @ B
    true = np.triu(true) if upper else true
    scale = max(1.0, np.abs(true).max())
    np.testing.assert_allclose(found, true, rtol=0, atol=1e-13 * scale)
    ((single,), _) = kernel([x.astype(np.float32) for x in (A, B, C)], None, 1)
    np.testing.assert_allclose(single, true, rtol=0, atol=5e-6 * scale)
    defined = np.zeros((m, m))
    multiplied(ArrayLoops(), *map(LoopArray, (A[4], B[4], C[4], defined)), n, m, plus, upper, apart)
    np.testing.assert_allclose(found[4], defined, rtol=0, atol=1e-13 * max(1.0, np.abs(true).max()))


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("fill", Fill)
@pytest.mark.parametrize("n, m", [(1, 1), (4, 9), (19, 8), (17, 35)])
def test_transposes(n: int, m: int, fill: Fill, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    spec = LoopSpec("transposed", transposed, {"A": ("n", "m")}, {"C": ("m", "n")}, fill, sizes=("n", "m"))
    A = np.random.default_rng(5).normal(size=(9, n, m))
    ((found,), _) = LoopKernel(spec, {"n": n, "m": m})([A], None, 1)
    np.testing.assert_array_equal(found, A.transpose(0, 2, 1))


def transposed(t: Any, A: Any, C: Any, n: Any, m: Any) -> None:
    t.transpose(C, A, (m, n))


def test_functions_of_one_name_may_be_called() -> None:
    """Two functions that are both named `add`."""

    def caller(t: Any, x: Any, y: Any, n: Any) -> None:
        def added(size: float) -> Callable[..., None]:
            def add(t: Any, x: Any, y: Any, n: Any) -> None:
                for i in t.loop(n):
                    y[i] = x[i] + size

            return add

        t.call(added(1.0), x, y, n)
        t.call(added(2.0), x, y, n)

    spec = LoopSpec("twice", caller, {"x": ("n",)}, {"y": ("n",)}, Fill.SAMPLES, sizes=("n",))
    ((found,), _) = LoopKernel(spec, {"n": 3})([np.ones((2, 3))], None, 1)
    np.testing.assert_array_equal(found, 3.0)


def test_columns_may_lie_anywhere() -> None:
    """Rows that are apart, columns in reverse, and results that go into a part of an array."""
    spec = spec_of("columned", Fill.COLUMNS)
    kernel = LoopKernel(spec, LENGTHS)
    (A, x), _ = arguments(spec.inputs, spec.results)  # type: ignore[arg-type]
    ((true,), _) = kernel([A, x], None, 1)
    wide = np.zeros((SAMPLES, N, 2 * M))
    kernel([A, x], (wide[..., :M],), 1)
    np.testing.assert_array_equal(wide[..., :M], true)
    assert not wide[..., M:].any()
    backwards = np.zeros((SAMPLES, N, M))
    kernel([A[..., ::-1][..., ::-1], x], (backwards[..., ::-1],), 1)
    np.testing.assert_array_equal(backwards[..., ::-1], true)


@pytest.mark.parametrize("fill", Fill)
def test_a_watched_number_is_flagged(fill: Fill) -> None:
    def watched(t: Any, x: Any, out: Any) -> None:
        out[0] = x[0] - 1.0
        t.watch(out[0])

    kernel = LoopKernel(LoopSpec("watched", watched, {"x": (1,)}, {"out": (1,)}, fill))
    x = np.full((SAMPLES, 1), 1.5)
    assert kernel([x], None, 1)[1] == 0
    x[7] = 1.0
    assert kernel([x], None, 1)[1] == Flag.SMALL_MARGIN
    t = ArrayLoops((SAMPLES,))
    watched(t, LoopArray(x.T, 1), LoopArray(np.zeros((1, SAMPLES)), 1))
    assert t.flagged


def test_complex_steps_pass_through() -> None:
    """The definition on complex numbers has the derivative of the machine code's differences."""
    spec = spec_of("settled")
    x = np.array([[1.3 + 1e-200j]])
    out = np.zeros((2, 1), complex)
    settled(ArrayLoops((1,), dtype=complex), LoopArray(x, 1), LoopArray(out, 1))
    kernel = LoopKernel(spec)
    ((found,), _) = kernel([np.array([[1.3 + 1e-5], [1.3 - 1e-5]])], None, 1)
    more, less = found
    assert out[0, 0].imag / 1e-200 == pytest.approx((more[0] - less[0]) / 2e-5, rel=1e-8)


def test_loads_are_not_shared_across_stores() -> None:
    def swap(t: Any, out: Any) -> None:
        first = out[0]
        out[0] = out[1]
        out[1] = first
        out[2] = out[0]

    values = np.array([[1.0], [2.0], [0.0]])
    t = Tracer("swap", True)
    swap(t, t.argument("out", [1]))
    interpret(t.finished(), [values])
    assert values[:, 0].tolist() == [2.0, 1.0, 2.0]
    values = np.array([[1.0], [2.0], [0.0]])
    swap(ArrayLoops((1,)), LoopArray(values, 1))
    assert values[:, 0].tolist() == [2.0, 1.0, 2.0]


def test_recorded_expressions_mean_the_same_in_a_program() -> None:
    """Sums as chains of products: subtracted, negated, of values that others use, too."""
    recorded = Graph()
    a, b, c = (recorded.load(k) for k in range(3))
    shared = a * b + c
    of = [shared, a - b * c - a * c, -(a * b) - c, (shared - a * a) / c, sqrt(a + b * b), a]
    given = np.random.default_rng(8).uniform(0.5, 2.0, (3, SAMPLES))
    true = recorded.interpret([x.index for x in of], lambda k: given[k])
    values = evaluated(ArrayLoops((SAMPLES,)), of, lambda k: given[k])
    np.testing.assert_allclose(values, true, rtol=1e-14)
    t, out = Tracer("recorded", True), np.zeros((len(of), SAMPLES))
    x, y = t.argument("x", [1], fixed=True), t.argument("out", [1])
    for k, z in enumerate(evaluated(t, of, lambda k: x[k])):
        y[k] = z
    interpret(t.finished(), [given, out])
    np.testing.assert_array_equal(out, np.array(values))


def test_what_is_wrong_is_said() -> None:
    t = Tracer("leak", True)
    x, out = t.argument("x", [1], fixed=True), t.argument("out", [1])
    for i in t.loop(3):
        y = x[i] * 2.0
    out[0] = y + 1.0
    with pytest.raises(MalformedLoops, match="not known here; a number that a loop computes reaches"):
        verify(t.finished())
    with pytest.raises(ValueError, match="x is only read"):
        x[0] = 1.0
    with pytest.raises(IndexError, match="2 indices for 1 axes"):
        x[0, 1]
    with pytest.raises(TypeError, match=r"use t\.when or t\.cases"):
        bool(i < 2)
    with pytest.raises(TypeError, match=r"loop over it with t\.loop"):
        range(i)
    with pytest.raises(TypeError, match="hand a number over in a cell"):
        t.call(scaled, y)
    with pytest.raises(ValueError, match="two arguments are parts of one array"):
        t.call(scaled, out, out)


def test_a_loop_that_is_left_is_a_mistake() -> None:
    t = Tracer("left", True)
    loops = t.loop(3)
    next(loops)
    with pytest.raises(ValueError, match="left by break or return"):
        t.finished()


def test_programs_are_verified() -> None:
    program = trace(spec_of("counted"))
    verify(program)
    program.body.statements[0].body.statements = [
        s for s in program.body.statements[0].body.statements if not isinstance(s, Let)
    ]
    with pytest.raises(MalformedLoops):
        verify(program)
    program = trace(spec_of("counted"))
    program.graph.ops[-1] = Op("unknown")
    with pytest.raises(ValueError, match="unknown"):
        verify(program)


def test_programs_as_text() -> None:
    shown = text(trace(spec_of("branched")))
    assert "case kind[i0]:" in shown or "case table" in shown
    assert "when i0 < 2:" in shown
    assert "when 3.0 < %" in shown
    assert "(%" not in text(trace(spec_of("counted"))).splitlines()[0]
    assert text(trace(spec_of("called"))).count("scaled(") == 3  # one function, called twice


def test_indices_fold() -> None:
    t = Tracer("indices", True)
    n = t.integer()
    assert str(0 + n * 1 + 2 + 3) == "(i0 + 5)"
    assert (n * 0).value == 0
    assert least(3, 2).value == 2
    assert [str(x) for x in (n - 1, n // 2, n % 3, 1 - n)] == ["(i0 - 1)", "(i0 // 2)", "(i0 % 3)", "(1 - i0)"]


def test_a_function_from_elsewhere_is_known_by_its_trace() -> None:
    """Two functions of one name have two keys; those of the package are known by their names."""

    def first(t: Any, x: Any, out: Any) -> None:
        out[0] = x[0] + 1.0

    def second(t: Any, x: Any, out: Any) -> None:
        out[0] = x[0] + 2.0

    second.__qualname__ = first.__qualname__
    keys = {str(key_of(LoopSpec("f", f, {"x": (1,)}, {"out": (1,)}, Fill.SAMPLES))) for f in (first, second)}
    assert len(keys) == 2


def test_roles_of_arrays() -> None:
    """A number of a table is the same in all lanes."""
    t = Tracer("roles", True)
    table, x, out = t.table("gains", [1], LaneRole.NUMBERS), t.argument("x", [1]), t.argument("out", [1])
    out[0] = table[1] * x[0]
    values = np.zeros((1, 3))
    interpret(t.finished(), [np.array([[1.0, 2.0, 3.0]]), values], found={"gains": np.array([5.0, 7.0])})
    np.testing.assert_array_equal(values[0], [7.0, 14.0, 21.0])
