"""The direct call: one state in plain arrays, straight from their headers; anything else goes the general way.

What is handed over in odd ways runs in a process of its own: code that misread a header would end it.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherjet as fj
import featherjet.jit.kernel
from backends import CALLS, IDS, PAIRS, Pair, arguments, kernel_of, pair_of, results
from featherjet.errors import InputError
from featherjet.jit.emit.direct_call import DECLINED, direct_call_block, headers_are_known
from featherjet.jit.number import DOUBLE, SINGLE
from helpers import random_state

DIRECT = ("gravity", "bias", "inverse_mass_matrix", "kinetic_energy")


@pytest.fixture(params=PAIRS, ids=IDS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return pair_of(*request.param)


def states(name: str, robot: fj.Robot, size: int = 3) -> list[list[np.ndarray]]:
    args = arguments(name, random_state(robot, size))
    return [[x[k] for x in args] for k in range(size)]


def test_this_machine_is_one_where_it_works():
    assert headers_are_known()


@pytest.mark.parametrize("name", DIRECT)
def test_the_same_bits_as_the_general_way(pair, name):
    robot = pair.compiled
    for args in states(name, robot):
        expected, flags = kernel_of(robot, name)(args, None, 1)
        found = results(robot, name, *args)
        again = results(robot, name, *args)  # direct by now, if it was not before
        assert flags == 0
        for x, y, z in zip(found, again, expected, strict=True):
            np.testing.assert_array_equal(x, np.reshape(z, x.shape))
            np.testing.assert_array_equal(x, y)
            assert x is not y, "results are new arrays every time"


def test_it_is_taken_from_the_second_call_on(monkeypatch):
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)
    q = np.linspace(-1, 1, 7)
    general = []
    kernel = featherjet.jit.kernel.Kernel
    call = kernel.__call__
    monkeypatch.setattr(kernel, "__call__", lambda self, *a: general.append(self.name) or call(self, *a))
    first, second, third = (robot.gravity(q) for _ in range(3))
    assert general == ["gravity"]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    out = np.zeros(7)
    assert robot.gravity(q, out=out) is out
    np.testing.assert_array_equal(out, first)
    assert general == ["gravity"]
    wide = np.zeros(14)
    robot.gravity(q[None])
    robot.gravity(q.tolist())
    robot.gravity(q, out=wide[::2])
    np.testing.assert_array_equal(wide[::2], first)
    assert general == ["gravity"] * 4, "batches, lists and arrays with gaps go the general way"
    read_only = np.zeros(7)
    read_only.flags.writeable = False
    for bad in (np.zeros(6), np.zeros((1, 7)), [0.0] * 7, (), (out, out), read_only):
        with pytest.raises((InputError, ValueError)):
            robot.gravity(q, out=bad)


def test_results_may_be_what_an_earlier_call_returned(monkeypatch):
    """Several results come with names: given back as `out`, they are as fast as a plain tuple."""
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)
    for size in ((), (3,)):
        q, v, a = np.random.default_rng(0).normal(size=(3, *size, 7))
        expected = robot.inverse_dynamics_derivatives(q, v, a)
        out = type(expected)(*(np.full_like(x, np.nan) for x in expected))
        robot.inverse_dynamics_derivatives(q, v, a, out=out)
        for x in out:
            x[:] = np.nan
        with monkeypatch.context() as patch:
            patch.setattr(featherjet.jit.kernel.Kernel, "__call__", lambda *a: pytest.fail("the general way"))
            found = robot.inverse_dynamics_derivatives(q, v, a, out=out)
        for x, y, z in zip(found, out, expected, strict=True):
            assert x is y
            np.testing.assert_array_equal(y, z)


def test_inputs_are_neither_written_nor_kept(pair):
    robot = pair.compiled
    for name in DIRECT:
        for args in states(name, robot):
            results(robot, name, *args)
            before, counts = [x.copy() for x in args], [sys.getrefcount(x) for x in args]
            for _ in range(50):
                found = results(robot, name, *args)
            assert [sys.getrefcount(x) for x in args] == counts
            assert {sys.getrefcount(found[k]) for k in range(len(found))} == {2}, "ours, and the argument's"
            for x, y in zip(args, before, strict=True):
                np.testing.assert_array_equal(x, y)


def test_nothing_is_left_behind(pair):
    """A thousand good, bad and odd calls do not make a thousand objects."""
    robot = pair.compiled
    q = robot.random_configuration(0)
    robot.gravity(q)
    bad = q.copy()
    bad[0] = np.nan

    def calls() -> None:
        for _ in range(200):
            robot.gravity(q)
            robot.gravity(q.tolist())
            with pytest.raises(fj.errors.InputError):
                robot.gravity(bad)

    calls()
    gc.collect()
    before = len(gc.get_objects())
    calls()
    gc.collect()
    assert len(gc.get_objects()) - before < 100


# Handed over in odd ways


class Sub(np.ndarray):
    """An array that is not quite one."""


def metadata(x: np.ndarray) -> np.ndarray:
    return x.view(np.dtype(np.float64, metadata={"unit": "rad"}))


ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda x: x,
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x),
    "list of arrays of no axes": lambda x: [np.array(y) for y in x],
    "float32": lambda x: x.astype(np.float32).astype(float),
    "float16": lambda x: np.round(x).astype(np.float16),
    "integers": lambda x: np.round(x).astype(int),
    "bytes": lambda x: np.round(x).astype(np.int8),
    "unsigned": lambda x: np.abs(np.round(x)).astype(np.uint64),
    "long double": lambda x: x.astype(np.longdouble),
    "complex": lambda x: x.astype(complex),
    "booleans": lambda x: np.ones(x.shape, bool),
    "objects": lambda x: x.astype(object),
    "strings": lambda x: x.astype(str),
    "times": lambda x: x.astype("m8[s]"),
    "record": lambda x: x.view([("x", float)]),
    "record of two": lambda x: np.zeros(x.shape, [("a", np.float32), ("b", np.float32)]),
    "integers of the same bits": lambda x: x.view(np.int64),
    "strided": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "column": lambda x: np.asfortranarray(np.stack([x, x]))[0],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": lambda x: np.frombuffer(x.tobytes()),
    "other byte order": lambda x: x.astype(">f8"),
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), np.float64, offset=1),
    "with metadata": metadata,
    "subclass": lambda x: x.view(Sub),
    "matrix": np.asmatrix,
    "masked": np.ma.masked_array,
    "masked entry": lambda x: np.ma.masked_array(x, np.arange(len(x)) == 0),
    "record array": lambda x: x.view(np.recarray),
    "batch of one": lambda x: x[None],
    "column vector": lambda x: x[:, None],
    "deep": lambda x: x.reshape((1,) * 31 + x.shape),
    "no axes": lambda x: np.array(1.0),
    "empty": lambda x: np.zeros(0),
    "empty batch": lambda x: np.zeros((0, len(x))),
    "too short": lambda x: x[:-1].copy(),
    "too long": lambda x: np.append(x, 0.0),
    "much too long": lambda x: np.zeros(10**6),
    "nan": lambda x: np.where(np.arange(len(x)) == len(x) - 1, np.nan, x),
    "inf": lambda x: np.where(np.arange(len(x)) == 0, np.inf, x),
    "huge": lambda x: np.full(x.shape, 1e300),
    "zero": lambda x: np.zeros(x.shape),
    "twice": lambda x: 2 * x,
    "none": lambda x: None,
    "number": lambda x: 1.5,
    "zero number": lambda x: 0,
    "huge number": lambda x: 10**400,
    "NumPy number": lambda x: np.float64(1.5),
    "text": lambda x: "q",
    "empty text": lambda x: "",
    "bytes object": lambda x: x.tobytes(),
    "memory": lambda x: memoryview(x),
    "dict": lambda x: {0: 1.0},
    "set": lambda x: {1.0},
    "generator": lambda x: (y for y in x),
    "class": lambda x: np.ndarray,
    "dtype": lambda x: np.dtype(float),
    "function": lambda x: np.zeros,
    "object": lambda x: object(),
}


def outcome(call: Callable[[], Any]) -> tuple:
    """The numbers, or what was raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call()
    except Exception as error:
        return type(error).__name__, str(error)
    return tuple(np.array(x) for x in (found if isinstance(found, tuple) else (found,)))


def outcomes(robot: fj.Robot) -> dict[tuple, tuple]:
    """Each input of each quantity handed over in each way, once direct calls are in place."""
    found = {}
    for name in (*DIRECT, "forward_dynamics_derivatives") if robot.name == "arm" else DIRECT:
        args = states(name, robot)[0]
        for _ in range(3):
            results(robot, name, *args)
        for k in range(len(args)):
            for way, make in ODD.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    odd = [make(x.copy()) if j == k else x for j, x in enumerate(args)]
                found[name, k, way] = outcome(lambda name=name, odd=odd: getattr(robot, name)(*odd))
                results(robot, name, *args)  # and nothing lingers
    return found


def in_a_process(code: str) -> bytes:
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, [here, here.parent, Path(fj.__file__).parents[1]]))
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=900, env={**os.environ, "PYTHONPATH": path}
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    return run.stdout


@pytest.mark.parametrize("name, unroll", [PAIRS[0], PAIRS[3]], ids=[IDS[0], IDS[3]])
def test_odd_arguments_get_what_the_reference_gives(name, unroll):
    """The same numbers, or the same error with the same message."""
    code = f"""
import pickle, sys
from backends import pair_of
from test_direct_call import outcomes
sys.stdout.buffer.write(pickle.dumps(outcomes(pair_of({name!r}, {unroll}).compiled)))
"""
    found = pickle.loads(in_a_process(code))
    expected = outcomes(pair_of(name, unroll).reference)
    assert found.keys() == expected.keys()
    wrong = []
    for key, want in expected.items():
        got = found[key]
        if key[-1] == "huge":
            continue  # whether a sum of infinities is one depends on its order
        raised = isinstance(want[0], str)
        if raised or isinstance(got[0], str):
            if got != want:
                wrong.append((key, got, want))
            continue
        for x, y in zip(got, want, strict=True):
            close = x.shape == y.shape and np.allclose(
                x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=0), equal_nan=True
            )
            if not close:
                wrong.append((key, got, want))
    assert not wrong, wrong[:3]
    assert sum(isinstance(want[0], str) for want in expected.values()) > len(expected) / 4


def test_a_function_keeps_what_it_is_made_of():
    """Even where all else is gone, and its memory is used by others."""
    code = """
import gc
import numpy as np
import featherjet as fj
from backends import kernel_of
from featherjet.jit.emit.direct_call import _Definition
robot = fj.Robot(fj.models.chain(5), backend="compiled")
plain = kernel_of(robot, "mass_matrix").single.direct
q, M = np.zeros(5), np.zeros((5, 5))
expected = robot.mass_matrix(q)
direct = robot.evaluator.ready.kernel_of("mass_matrix").direct
del robot
gc.collect()
others = [_Definition() for _ in range(1000)]
assert plain(q, M) == 0
assert (M == expected).all()
assert (direct(q)[0] == expected).all()
"""
    in_a_process(code)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_the_machine_code_itself_declines_whatever_is_odd(unroll):
    """Called directly, with any number of any objects in place of inputs and results."""
    code = f"""
import numpy as np
from backends import kernel_of, pair_of
from featherjet.jit.emit.direct_call import DECLINED
from test_direct_call import ODD
robot = pair_of("arm", {unroll}).compiled
plain = kernel_of(robot, "mass_matrix").single.direct
q, M = np.linspace(-1, 1, 7), np.empty((7, 7))
assert plain(q, M) == 0
kept = M.copy()
np.testing.assert_allclose(M, robot.mass_matrix(q))
fine = {{"as it is", "float32", "read-only", "nan", "inf", "huge", "zero", "twice"}}
for way, make in ODD.items():
    flags = plain(make(q.copy()), np.empty((7, 7)))
    assert (flags != DECLINED) == (way in fine), way
    if way not in ("as it is", "huge", "zero", "twice"):
        assert plain(q, make(q.copy())) == DECLINED, way
for out in (np.empty((7, 8))[:, :7], np.empty((7, 7)).T.copy().T, np.empty((6, 7)), np.empty((7, 6)), np.empty(49),
            np.empty((1, 7, 7)), np.empty((7, 7), np.float32), np.empty((7, 7), ">f8"), np.empty((7, 7), complex),
            np.matrix(np.empty((7, 7)))):
    assert plain(q, out) == DECLINED, out
M.flags.writeable = False
assert plain(q, M) == DECLINED
assert (M == kept).all()
for count in (0, 1, 3, 4, 100):
    assert plain(*[q] * count) == DECLINED
assert plain(np.full(7, np.nan), np.empty((7, 7))) == 1
for keyword in ("q", "out"):
    try:
        plain(q, **{{keyword: M}})
    except TypeError:
        pass
    else:
        raise AssertionError("keywords are refused")
print("whole")
"""
    assert in_a_process(code).strip() == b"whole"


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_a_quaternion_that_is_none_is_reported(unroll):
    robot = pair_of("quadruped", unroll).compiled
    q, v = robot.neutral(), np.zeros(robot.nv)
    kernel = kernel_of(robot, "bias")
    out = np.empty(robot.nv)
    robot.bias(q, v)
    for scale, flags in ((1.0, 0), (1 + 5e-7, 0), (1.1, 2), (0.0, 2)):
        x = q.copy()
        x[3:7] *= scale
        assert kernel.single.direct(x, v, out) == flags
        if flags:
            with pytest.raises(fj.errors.InputError, match="quaternion"):
                robot.bias(x, v)
        else:
            np.testing.assert_allclose(robot.bias(x, v), robot.bias(q, v), atol=1e-12)


# Where it is not to be had


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_where_headers_are_not_known_everything_goes_the_general_way(monkeypatch, unroll):
    known = pair_of("arm", unroll).compiled
    cases = [(name, args) for name in DIRECT for args in states(name, known)]
    expected = [results(known, name, *args) for name, args in cases]
    q = np.linspace(-1, 1, 7)
    gravity = known.gravity(q)
    monkeypatch.setattr(featherjet.jit.kernel, "headers_are_known", lambda: False)
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=unroll)
    for (name, args), want in zip(cases, expected, strict=True):
        for x, y in zip(results(robot, name, *args), want, strict=True):
            np.testing.assert_array_equal(x, y)
    step = robot.bind("gravity")
    step.q = q
    step()
    np.testing.assert_array_equal(step.g, gravity)
    step.q[2] = np.nan
    with pytest.raises(fj.errors.InputError, match=r"q\[2\] is nan"):
        step()


def test_codes_for_other_objects_are_not_mistaken_for_this_processs():
    """The block holds the addresses of NumPy's own types, which are those of this process."""
    for kind in (DOUBLE, SINGLE):
        block = direct_call_block(kind, 1, 2, [(7,)], [(7, 7)], batched=False, apart=True)
        assert block[:4].tolist() == [id(np.ndarray), id(np.dtype(kind.dtype)), 1, 2]


def test_a_robot_may_go_while_its_results_stay():
    robot = fj.Robot(fj.models.arm(), backend="compiled", unroll=True)
    q = np.linspace(-1, 1, 7)
    kept = [robot.gravity(q) for _ in range(3)]
    expected = kept[0].copy()
    step = robot.bind("gravity")
    del robot
    gc.collect()
    step.q = q
    step()
    np.testing.assert_array_equal(step.g, expected)
    for x in kept:
        np.testing.assert_array_equal(x, expected)


def test_every_quantity_has_it(pair):
    robot = pair.compiled
    for name in CALLS:
        if not pair.fext or name in DIRECT:
            args = states(name, robot, 1)[0]
            results(robot, name, *args)
            direct = robot.evaluator.ready.kernel_of(name).direct
            assert direct(*args) is not None
            assert direct(*(x[None, None] for x in args)) is None
    assert DECLINED < 0, "a flag, so that whoever asks whether something is wrong looks closer"


# Short batches


def batch_of(name: str, robot: fj.Robot, size: int) -> list[np.ndarray]:
    return [np.ascontiguousarray(x) for x in arguments(name, random_state(robot, size))]


@pytest.mark.parametrize("size", [1, 7, 16])
@pytest.mark.parametrize("name", DIRECT)
def test_a_short_batch_has_the_same_bits_as_the_general_way(pair, name, size):
    robot = pair.compiled
    args, kernel = batch_of(name, robot, size), kernel_of(pair.compiled, name)
    expected, flags = kernel(args, None, 1)
    assert flags == 0
    found = kernel.direct(*args)
    assert found is not None, "it is direct"
    outs = tuple(np.full_like(x, np.nan) for x in expected)
    into = kernel.direct(*args, out=outs)
    assert into is not None
    results(robot, name, *args)
    again = results(robot, name, *args)  # direct by now
    for x, y, z, w in zip(found, outs, again, expected, strict=True):
        np.testing.assert_array_equal(x, w)
        np.testing.assert_array_equal(y, w)
        np.testing.assert_array_equal(z, w)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_short_batch_declines_what_it_cannot_read(kind):
    robot = pair_of(*PAIRS[0]).compiled
    q, v, a = (x.astype(kind) for x in arguments("inverse_dynamics", random_state(robot, 6)))
    kernel = kernel_of(fj.Robot(robot.model, backend="compiled", unroll=PAIRS[0][1]), "inverse_dynamics")
    ((tau,), _) = kernel([q, v, a], None, 1)
    run = kernel.direct
    np.testing.assert_array_equal(run(q, v, a)[0], tau)
    assert tau.dtype == kind
    np.testing.assert_array_equal(run(q, v[1], a)[0], run(q, np.repeat(v[1:2], 6, 0), a)[0], "a shared input")
    wide = np.zeros((12, robot.nv), kind)
    other = np.float64 if kind is np.float32 else np.float32
    declined: dict[str, tuple[Any, ...]] = {
        "one state": (q[0], v[0], a[0]),
        "another axis": (q[None], v[None], a[None]),
        "a shared first input": (q[0], v, a),
        "fewer samples": (q, v, a[:5]),
        "more samples": (q[:5], v, a),
        "no samples": (q[:0], v[:0], a[:0]),
        "gaps": (q, wide[::2], a),
        "another precision": (q, v.astype(other), a),
        "another length": (q, v, np.zeros((6, robot.nv + 1), kind)),
        "a list": (q.tolist(), v, a),
        "a long batch": tuple(np.repeat(x, 100_000, 0) for x in (q, v, a)),
    }
    for what, given in declined.items():
        assert run(*given) is None, what
    assert run(q, v, a, out=a) is None, "results over inputs"
    np.testing.assert_array_equal(run(q, v, a)[0], tau, "and leaves inputs alone")
    assert run(q, v, a, out=np.zeros((5, robot.nv), kind)) is None, "a result that is too short"


def test_calls_with_short_batches_behave_as_before_once_they_are_direct():
    robot = pair_of(*PAIRS[0]).compiled
    q, v, a = arguments("inverse_dynamics", random_state(robot, 6))
    tau = robot.inverse_dynamics(q, v, a)
    one = robot.inverse_dynamics(q[0], v[0], a[0])
    np.testing.assert_array_equal(robot.inverse_dynamics(q, v, a), tau)
    np.testing.assert_allclose(one, tau[0], rtol=0, atol=1e-12 * np.abs(tau).max())
    shared = robot.inverse_dynamics(q, v, a[0])
    np.testing.assert_array_equal(shared, robot.inverse_dynamics(q, v, np.repeat(a[:1], 6, 0)))
    assert robot.inverse_dynamics(q[:0], v[:0], a[:0]).shape == (0, robot.nv)
    over = a.copy()
    assert robot.inverse_dynamics(q, v, over, out=over) is over
    np.testing.assert_array_equal(over, tau)
    bad = v.copy()
    bad[3, 0] = np.nan
    with pytest.raises(InputError, match=r"v.*not finite|NaN|nan"):
        robot.inverse_dynamics(q, bad, a)
    with pytest.raises(InputError, match="a"):
        robot.inverse_dynamics(q, v, a[:, 1:])
    with pytest.raises(InputError, match="out"):
        robot.inverse_dynamics(q, v, a, out=np.zeros((5, robot.nv)))
