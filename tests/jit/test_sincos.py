"""Sine and cosine of compiled code, against mpmath: every finite argument, every lane."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import llvmlite.ir as ir
import mpmath
import numpy as np
import pytest

from featherjet.jit.emit.sincos import APPROXIMATIONS, sincos_function
from featherjet.jit.engine import Library, target
from featherjet.jit.number import DOUBLE, SINGLE, Number
from featherjet.jit.objects import compiled, sources

ULPS = 1.5
REACH = APPROXIMATIONS[DOUBLE].reach
# Within REACH, the doubles nearest to multiples of pi/2, for their size: found by trying all multiples.
NEAREST = [45.553093477052, 413441.44719405076, 229174.47169039503, 458348.94338079006, 772701.4166879652]
# The doubles that come nearest of all, and some arguments known to break reductions.
HARDEST = [
    6411027962775774 / 2**48,
    1.608131986642832e16,
    2.0**1000,
    1.7976931348623157e308,
    1e22,
    2.0**120,
]

Sincos = Callable[[Sequence[float]], tuple[np.ndarray, np.ndarray]]


def build(lanes: int, kind: Number = DOUBLE) -> Sincos:
    """A loop over whole vectors around the function under test, called through ctypes."""
    module = ir.Module("sincos")
    pointer, integer, vector = ir.PointerType(), ir.IntType(64), kind.vector(lanes)
    f = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * 3 + [integer]), "run")
    b = ir.IRBuilder(f.append_basic_block("entry"))
    head, end, before = f.append_basic_block("head"), f.append_basic_block("end"), b.block
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(integer)
    x, s, c = (b.gep(p, [i], source_etype=kind.type) for p in f.args[:3])
    b.call(sincos_function(module, lanes, kind), [b.load(x, typ=vector, align=kind.bytes), s, c])
    following = b.add(i, integer(lanes))
    i.add_incoming(integer(0), before)
    i.add_incoming(following, head)
    b.cbranch(b.icmp_signed("<", following, f.args[3]), head, end)
    b.position_at_end(end)
    b.ret_void()
    library = Library(compiled(target(), sources(module)), target())
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(library.address("run"))

    def call(arguments: Sequence[float], keep=library) -> tuple[np.ndarray, np.ndarray]:
        x = np.array(arguments, kind.dtype)
        x = np.pad(x, (0, -len(x) % lanes), mode="edge")
        s, c = np.full((2, len(x)), np.nan, kind.dtype)
        run(x.ctypes.data, s.ctypes.data, c.ctypes.data, len(x))
        return s[: len(arguments)], c[: len(arguments)]

    return call


@pytest.fixture(scope="module", params=[1, 2, None], ids=["one lane", "two lanes", "all lanes"])
def sincos(request) -> Sincos:
    return build(request.param or target().lanes)


def test_narrower_targets(narrower, rng):
    """The same accuracy without fused products."""
    for lanes in {1, target().lanes}:
        code = build(lanes)
        check(code, rng.uniform(-math.pi, math.pi, 300))
        check(code, rng.uniform(-REACH, REACH, 300))
        check(code, [x for n in range(-9, 10) for x in around(n * math.pi / 4, 1)])
        check(code, NEAREST + HARDEST)


def ulps(value: float, exact: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(value) - exact) / math.ulp(float(exact)))


def check(sincos: Sincos, arguments: Sequence[float]) -> float:
    """The worst error in units of the last place; fails above ULPS."""
    worst = (0.0, 0.0)
    with mpmath.workprec(1300):  # 1024 bits of exponent, 53 of mantissa, and the cancellation
        for x, s, c in zip(arguments, *sincos(arguments), strict=True):
            exact = mpmath.mpf(float(x))
            worst = max(worst, (ulps(s, mpmath.sin(exact)), x), (ulps(c, mpmath.cos(exact)), x))
    assert worst[0] < ULPS, f"{worst[0]:.3f} ulp at {worst[1]!r}"
    return worst[0]


def around(x: float, count: int = 3) -> list[float]:
    """x and its neighbours among the doubles."""
    below, above = [x], [x]
    for _ in range(count):
        below.append(math.nextafter(below[-1], -math.inf))
        above.append(math.nextafter(above[-1], math.inf))
    return below + above[1:]


def test_angles_of_joints(sincos, rng):
    check(sincos, rng.uniform(-math.pi, math.pi, 1500))


def test_all_that_the_fast_way_takes(sincos, rng):
    check(sincos, rng.uniform(-REACH, REACH, 1500))


@pytest.mark.parametrize("low, high", [(-300, -10), (-10, 0), (0, 6), (6, 30), (30, 300)])
def test_many_magnitudes(sincos, rng, low, high):
    check(sincos, rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(low, high, 300))


def test_near_multiples_of_a_right_angle(sincos, rng):
    multiples = [*range(-9, 10), *rng.integers(1, 2**19, 150).tolist()]
    check(sincos, [x for n in multiples for x in around(n * math.pi / 2, 1)])


def test_near_odd_multiples_of_half_a_right_angle(sincos, rng):
    """Where the reduction changes its mind."""
    multiples = [*range(-9, 10, 2), *(2 * rng.integers(1, 2**18, 100) + 1).tolist()]
    check(sincos, [x for n in multiples for x in around(n * math.pi / 4, 1)])


@pytest.mark.parametrize("x", NEAREST + HARDEST)
def test_the_hardest_arguments(sincos, x):
    check(sincos, [*around(x, 1), *around(-x, 1)] if x < 1e308 else [x, -x])


def test_the_very_hardest_argument_is_left_to_libm(sincos):
    """Of all doubles this one comes nearest, for its size, to a multiple of pi/2; some libms are a few ulp off."""
    x = 6381956970095103 * 2.0**797
    s, c = sincos([x])
    assert (s[0], c[0]) == (math.sin(x), math.cos(x))


def test_where_the_fast_way_ends(sincos):
    check(sincos, [*around(REACH, 8), *around(-REACH, 8), 2.0**19 * math.pi / 2, 2.0**20, 2.0**31, 2.0**63])


def test_the_smallest_numbers(sincos):
    tiny = [5e-324, 1e-320, 2.2250738585072014e-308, 1e-300, 1e-160, 1e-154, 1e-20, 2.0**-27, 2.0**-26]
    s, c = sincos(tiny)
    check(sincos, [*tiny, *(-x for x in tiny)])
    assert s[:7].tolist() == tiny[:7]
    assert (c[:7] == 1).all()


def test_zeros(sincos):
    for zero in (0.0, -0.0):
        s, c = sincos([zero])
        assert s[0] == 0
        assert c[0] == 1


def test_infinity_and_nan_give_nan(sincos):
    for bad in (math.inf, -math.inf, math.nan):
        s, c = sincos([bad])
        assert math.isnan(s[0])
        assert math.isnan(c[0])


@pytest.mark.parametrize("odd", [math.inf, math.nan, 1e300, -REACH * 1.5])
def test_lanes_do_not_disturb_each_other(odd):
    """One lane that needs the slow way takes its neighbours along; they stay right, whichever lane it is."""
    lanes = target().lanes
    wide = build(lanes)
    for lane in range(lanes):
        x = np.linspace(-3, 3, lanes)
        x[lane] = odd
        s, c = wide(x)
        others = np.arange(lanes) != lane
        np.testing.assert_allclose(s[others], np.sin(x[others]), rtol=5e-16)
        np.testing.assert_allclose(c[others], np.cos(x[others]), rtol=5e-16)
        assert math.isnan(s[lane]) == (not math.isfinite(odd))


def test_odd_and_even_to_the_last_bit(sincos, rng):
    x = rng.uniform(-REACH, REACH, 400)
    s, c = sincos(x)
    minus_s, minus_c = sincos(-x)
    np.testing.assert_array_equal(minus_s, -s)
    np.testing.assert_array_equal(minus_c, c)


# Single precision: few enough numbers to try a good part of them, against double precision


@pytest.fixture(scope="module", params=[1, None], ids=["one lane", "all lanes"])
def sincos32(request) -> Sincos:
    return build(request.param or target().fitting(SINGLE), SINGLE)


def check32(sincos32: Sincos, x: np.ndarray) -> None:
    """Errors in units of the last place of the result; double precision has 29 bits more."""
    x = x.astype(np.float32)
    for found, exact in zip(sincos32(x), (np.sin(x.astype(float)), np.cos(x.astype(float))), strict=True):
        error = np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))
        assert error.max() < 1.0, f"{error.max():.3f} ulp at {float(x[error.argmax()])!r}"


def test_angles_of_joints_in_single_precision(sincos32, rng):
    check32(sincos32, np.linspace(-math.pi, math.pi, 1_000_001))
    check32(sincos32, rng.uniform(-100, 100, 1_000_000))


def test_all_single_precision_that_the_fast_way_takes(sincos32, rng):
    reach = APPROXIMATIONS[SINGLE].reach
    check32(sincos32, rng.uniform(-reach, reach, 1_000_000))
    edge = np.nextafter(np.float32(reach), np.float32([0, 1e9]), dtype=np.float32)
    check32(sincos32, np.array([*edge, *-edge, reach]))


def test_single_precision_near_multiples_of_half_a_right_angle(sincos32):
    x = (np.arange(-16384, 16385) * (math.pi / 4)).astype(np.float32)
    up, down = (np.nextafter(x, np.float32(to)) for to in (np.inf, -np.inf))
    check32(sincos32, np.concatenate([x, up, down]))


def test_single_precision_of_every_magnitude(sincos32, rng):
    check32(sincos32, 10.0 ** rng.uniform(-37, 38, 20_000))
    s, c = sincos32(np.float32([0.0, -0.0, 1e-40, np.inf, -np.inf, np.nan]))
    assert s[:3].tolist() == [0, 0, float(np.float32(1e-40))]
    assert c[:3].tolist() == [1, 1, 1]
    assert np.isnan(s[3:]).all()
    assert np.isnan(c[3:]).all()


def test_single_precision_for_narrower_targets(narrower, rng):
    for lanes in {1, target().fitting(SINGLE)}:
        code = build(lanes, SINGLE)
        check32(code, rng.uniform(-12000, 12000, 100_000))
        check32(code, (np.arange(-16384, 16385) * (math.pi / 4)))
