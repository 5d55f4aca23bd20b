"""Compiled code and the arrays it is handed: shapes of batches, layouts, out=."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import featherjet as fj
from backends import CALLS, Pair, arguments, pair_of, results
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError
from helpers import random_state

TAKES_OUT = [name for name in CALLS if "out" in getattr(fj.Robot, name).__annotations__]


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def every(request: pytest.FixtureRequest) -> Pair:
    return pair_of("every kind", request.param)


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def arm(request: pytest.FixtureRequest) -> Pair:
    return pair_of("arm", request.param)


def test_out_is_taken_by_all_that_should():
    assert {*CALLS} == {*TAKES_OUT}
    for name in QUANTITIES:
        call = getattr(fj.Robot, name, None)
        assert call is None or "out" in call.__annotations__, name


# Shapes of batches


@pytest.mark.parametrize("name", CALLS)
def test_batches_of_any_shape(every, name):
    robot = every.compiled
    s = random_state(robot, 6)
    args = arguments(name, s, True)
    flat = results(robot, name, *args)
    for batch in [(2, 3), (3, 1, 2), (6, 1), (1, 6)]:
        shaped = results(robot, name, *(x.reshape(*batch, *x.shape[1:]) for x in args))
        for x, y in zip(shaped, flat, strict=True):
            assert x.shape == (*batch, *y.shape[1:])
            np.testing.assert_array_equal(x.reshape(y.shape), y)
    for x, y in zip(results(robot, name, *(x[4] for x in args)), flat, strict=True):
        assert x.shape == y.shape[1:]
        np.testing.assert_allclose(x, y[4], rtol=1e-13, atol=1e-13 * np.abs(y[4]).max())


@pytest.mark.parametrize("single", range(4))
def test_one_input_against_many(every, single):
    """Any input may be the same for all samples."""
    robot = every.compiled
    s = random_state(robot, 11)
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        args = arguments(name, s, True)
        args[single] = args[single][3]
        repeated = [np.repeat(x[None], 11, 0) if k == single else x for k, x in enumerate(args)]
        for x, y in zip(results(robot, name, *args), results(robot, name, *repeated), strict=True):
            np.testing.assert_array_equal(x, y)


def test_batches_broadcast_in_all_directions(every):
    robot = every.compiled
    s = random_state(robot, 12)
    q, v, a = s.q[:3].reshape(3, 1, -1), s.v[:4], s.a.reshape(3, 4, -1)
    tau = robot.inverse_dynamics(q, v, a, s.fext[:3, None])
    assert tau.shape == (3, 4, robot.nv)
    one = robot.inverse_dynamics(q[2, 0], v[1], a[2, 1], s.fext[2])
    np.testing.assert_allclose(tau[2, 1], one, rtol=1e-13, atol=1e-13 * np.abs(one).max())


@pytest.mark.parametrize("batch", [(0,), (0, 4), (3, 0)])
@pytest.mark.parametrize("name", CALLS)
def test_empty_batches(arm, name, batch):
    s = random_state(arm.reference, 1)
    args = [np.zeros((*batch, *x.shape[1:])) for x in arguments(name, s)]
    got, expected = (results(r, name, *args) for r in arm[:2])
    assert [x.shape for x in got] == [x.shape for x in expected]


def test_energies_of_one_state_are_arrays_of_no_axes_every_time(arm):
    """The first call, which compiles, and later ones give the same type as the reference."""
    robot = fj.Robot(arm.compiled.model, backend="compiled", unroll=arm.compiled.unroll)
    s = random_state(robot, 1)
    for name in ("kinetic_energy", "potential_energy"):
        args = [x[0] for x in arguments(name, s)]
        found = [getattr(robot, name)(*args) for _ in range(3)]
        expected = getattr(arm.reference, name)(*args)
        assert {(type(x), x.shape) for x in found} == {(type(expected), ())}


# Layouts of arrays

LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every second column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "backwards along rows": lambda x: x[..., ::-1].copy()[..., ::-1],
    "Fortran": np.asfortranarray,
    "in the middle of something": lambda x: np.pad(x, [(1, 2)] * x.ndim, constant_values=np.nan)[
        (slice(1, -2),) * x.ndim
    ],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), np.float64, offset=1).reshape(x.shape),
    "big-endian": lambda x: x.astype(">f8"),
    "long double": lambda x: x.astype(np.longdouble),
    "lists": lambda x: x.tolist(),
    "subclass": lambda x: x.view(np.matrix) if x.ndim == 2 else x,
}


@pytest.mark.parametrize("one", [False, True], ids=["batch", "one state"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_of_any_layout(every, layout, one):
    """Plain arrays of any layout give the same bits; others are converted first."""
    robot = every.compiled
    s = random_state(robot, 9)
    converted = layout in ("big-endian", "long double", "lists", "subclass")
    for name in ("inverse_dynamics", "inverse_dynamics_derivatives", "forward_kinematics", "forward_dynamics"):
        if converted and name == "forward_dynamics":
            continue  # quaternions are normalised twice, and M^-1 magnifies the last bit
        args = [x[0] if one else x for x in arguments(name, s, True)]
        before = [x.copy() for x in args]
        if one and layout == "subclass":
            continue  # a matrix is no vector
        handed = [LAYOUTS[layout](x) for x in args]
        for x, y in zip(results(robot, name, *handed), results(robot, name, *args), strict=True):
            assert type(x) is np.ndarray
            np.testing.assert_allclose(x, y, rtol=0, atol=converted * 1e-14 * np.abs(y).max())
        for x, y in zip(args, before, strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_unpickled_array_is_as_good_as_any(arm):
    s = random_state(arm.compiled, 64)
    again = pickle.loads(pickle.dumps(s))
    for k in (slice(None), 5):
        expected = arm.compiled.forward_dynamics(s.q[k], s.v[k], s.a[k])
        np.testing.assert_array_equal(arm.compiled.forward_dynamics(again.q[k], again.v[k], again.a[k]), expected)


def test_numbers_of_other_types(arm):
    compiled, reference, _ = arm
    whole = np.arange(21).reshape(3, 7)
    for x in (whole, whole.astype(np.int8), whole.astype(np.uint16), whole.astype(np.float16), whole.tolist()):
        tau = compiled.inverse_dynamics(x, x, x)
        assert tau.dtype == np.float64
        expected = reference.inverse_dynamics(whole, whole, whole)
        np.testing.assert_allclose(tau, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


# out=


def guarded(shape: tuple[int, ...], layout: str) -> tuple[np.ndarray, np.ndarray]:
    """An array of a layout within a larger one, and the larger one."""
    sentinel = -1234.5
    if layout == "C":
        whole = np.full(int(np.prod(shape)) + 33, sentinel)
        return whole[17:-16].reshape(shape), whole
    if layout == "Fortran":
        whole = np.full(int(np.prod(shape)) + 33, sentinel)
        return whole[17:-16].reshape(shape, order="F"), whole
    if layout == "transposed":
        whole = np.full((*shape[:-2], shape[-1] + 2, shape[-2] + 2), sentinel)
        return np.swapaxes(whole[..., 1:-1, 1:-1], -1, -2), whole
    if layout == "window":
        whole = np.full([n + 3 for n in shape], sentinel)
        return whole[tuple(slice(1, -2) for _ in shape)], whole
    whole = np.full([2 * n + 2 for n in shape], sentinel)
    steps = {"strided": slice(1, -1, 2), "backwards": slice(-2, 0, -2)}
    return whole[(steps[layout],) * len(shape)], whole


@pytest.mark.parametrize("layout", ["C", "Fortran", "transposed", "window", "strided", "backwards"])
@pytest.mark.parametrize("name", TAKES_OUT)
def test_out_of_any_layout(every, name, layout):
    """The results land in the given arrays, nothing else is touched, and the very arrays come back."""
    robot = every.compiled
    for size in (None, 1, 9):
        args = arguments(name, random_state(robot, size or 1), True)
        args = args if size else [x[0] for x in args]
        expected = results(robot, name, *args)
        if (expected[0].ndim == 1 and layout == "transposed") or (expected[0].ndim == 0 and layout != "C"):
            continue
        pairs = [guarded(x.shape, layout) for x in expected]
        outs = tuple(view for view, _ in pairs)
        got = results(robot, name, *args, out=outs if len(outs) > 1 else outs[0])
        for x, y, (view, whole) in zip(got, expected, pairs, strict=True):
            assert x is view
            np.testing.assert_array_equal(view, y)
            assert (whole == -1234.5).sum() == whole.size - view.size, "wrote beside the array"


def test_outs_of_different_layouts(every):
    robot = every.compiled
    args = arguments("inverse_dynamics_derivatives", random_state(robot, 9), True)
    expected = robot.inverse_dynamics_derivatives(*args)
    outs = tuple(guarded(x.shape, layout)[0] for x, layout in zip(expected, ["C", "backwards", "Fortran"], strict=True))
    for x, y in zip(robot.inverse_dynamics_derivatives(*args, out=outs), expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shift", range(8))
def test_results_wherever_they_begin(arm, shift):
    """49 numbers a matrix never fit cache lines."""
    robot, n = arm.compiled, 209
    s = random_state(robot, 100)
    args = [np.resize(x, (n, 7)) for x in (s.q, s.v, s.a)]
    expected = robot.inverse_dynamics_derivatives(s.q, s.v, s.a)
    whole = np.full((3, n * 49 + 16), -1234.5)
    outs = tuple(x[shift : shift + n * 49].reshape(n, 7, 7) for x in whole)
    robot.inverse_dynamics_derivatives(*args, out=outs)
    for x, y in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(x, np.resize(y, x.shape))
    assert (whole == -1234.5).sum() == 3 * 16


@pytest.mark.parametrize("name", ["mass_matrix", "forward_dynamics_derivatives", "inverse_dynamics"])
def test_results_of_other_shapes(arm, name):
    """One matrix, three of another algorithm, and vectors; in C order, and as columns of something wider."""
    robot, n = arm.compiled, 137
    few = arguments(name, random_state(robot, 64))
    many = [np.resize(x, (n, 7)) for x in few]
    expected = results(robot, name, *few)
    for x, y in zip(results(robot, name, *many), expected, strict=True):
        np.testing.assert_array_equal(x, np.resize(y, x.shape))
    wider = [np.full((n, *y.shape[1:-1], y.shape[-1] + 1), -1234.5) for y in expected]
    outs = tuple(x[..., :-1] for x in wider)
    results(robot, name, *many, out=outs if len(outs) > 1 else outs[0])
    for x, y, whole in zip(outs, expected, wider, strict=True):
        np.testing.assert_array_equal(x, np.resize(y, x.shape))
        assert (whole[..., -1] == -1234.5).all()


def test_out_in_single_precision(arm):
    robot = arm.compiled
    s = random_state(robot, 5)
    out = np.zeros((5, 7), np.float32)
    assert robot.inverse_dynamics(s.q, s.v, s.a, out=out) is out
    np.testing.assert_allclose(out, robot.inverse_dynamics(s.q, s.v, s.a), rtol=1e-6)


@pytest.mark.parametrize("where", ["same", "backwards", "shifted", "of one sample"])
@pytest.mark.parametrize("threads", [1, 2])
def test_out_may_overlap_inputs(arm, where, threads):
    """As with any NumPy function: the result is as if inputs had been copied first."""
    robot = fj.Robot(arm.compiled.model, backend="compiled", threads=threads, unroll=arm.compiled.unroll)
    s = random_state(robot, 4096)
    memory = np.zeros((4097, 7))
    memory[:4096] = s.a
    a, out = {
        "same": (memory[:4096], memory[:4096]),
        "backwards": (memory[:4096], memory[:4096][::-1]),
        "shifted": (memory[:4096], memory[1:]),
        "of one sample": (memory[4000], memory[:4096]),
    }[where]
    expected = robot.inverse_dynamics(s.q, s.v, a.copy())
    np.testing.assert_array_equal(robot.inverse_dynamics(s.q, s.v, a, out=out), expected)


def test_out_of_one_state_may_be_an_input(arm):
    robot = arm.compiled
    s = random_state(robot, 1)
    expected = robot.inverse_dynamics(s.q[0], s.v[0], s.a[0])
    for k in range(3):
        args = [x[0].copy() for x in (s.q, s.v, s.a)]
        np.testing.assert_array_equal(robot.inverse_dynamics(*args, out=args[k]), expected)


BAD_OUT = {
    "too few columns": lambda x: np.zeros(x.shape)[..., :-1],
    "too few samples": lambda x: np.zeros(x.shape)[:-1],
    "more samples": lambda x: np.zeros((len(x) + 1, *x.shape[1:])),
    "an axis more": lambda x: np.zeros((2, *x.shape)),
    "an axis less": lambda x: np.zeros(x.shape[1:]),
    "no array": lambda x: x.tolist(),
    "empty tuple": lambda x: (),
    "two arrays": lambda x: (np.zeros(x.shape), np.zeros(x.shape)),
}


@pytest.mark.parametrize("size", [None, 5, 300])
@pytest.mark.parametrize("bad", BAD_OUT)
@pytest.mark.parametrize("name", ["inverse_dynamics", "inverse_dynamics_derivatives"])
def test_bad_out_is_refused(arm, name, bad, size):
    for robot in (
        arm.reference,
        fj.Robot(arm.compiled.model, backend="compiled", threads=2, unroll=arm.compiled.unroll),
    ):
        args = arguments(name, random_state(robot, size or 1))
        args = args if size else [x[0] for x in args]
        with pytest.raises(InputError, match="out"):
            results(robot, name, *args, out=BAD_OUT[bad](results(robot, name, *args)[0]))


def test_out_that_cannot_hold_the_result_is_refused(arm):
    for robot in arm[:2]:
        s = random_state(robot, 5)
        for k, shape in ((slice(None), (5, 7)), (0, (7,))):
            args = s.q[k], s.v[k], s.a[k]
            with pytest.raises(InputError, match="out: expected arrays of float64 or float32, got int64"):
                robot.inverse_dynamics(*args, out=np.zeros(shape, int))
            locked = np.zeros(shape)
            locked.flags.writeable = False
            with pytest.raises(ValueError, match="read-only"):
                robot.inverse_dynamics(*args, out=locked)
            assert not locked.any()
