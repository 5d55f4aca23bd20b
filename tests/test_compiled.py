"""Compiled code against the plain reference: every kernel, every joint kind, every way to hand over arrays.

Robots that are met once share the code of all joint variants (`one_code_for_all`): one compilation serves every robot.
"""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
import featherjet.compiled
import featherjet.compiler.tables
from featherjet import quantities
from featherjet.compiler.engine import host_lanes
from featherjet.compiler.kernels import KERNELS
from featherjet.compiler.program import Variant
from featherjet.errors import InputError, SingularMassMatrix
from featherjet.model.joints import KINDS
from featherjet.robot import INPUTS
from helpers import State, models, random_state

TOLERANCE = 1e-13
EVERY_VARIANT = tuple(sorted(Variant(k.name, r, k.nq, k.nv) for k in KINDS.values() for r in (False, True)))
CALLS = [name for name in KERNELS if hasattr(fj.Robot, name)]
SIZES = (0, 1, 2, 3, 5, 8, 9, 17, 64)
SINGULAR = [name for name in CALLS if KERNELS[name].margins]
TAKES_OUT = [name for name in CALLS if name != "forward_kinematics"]
MATRICES = [name for name in CALLS if KERNELS[name].outputs[0] == ("v", "v")]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory) -> Iterator[Path]:
    """The user's cache is left alone; workers of one session share theirs."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "code"
    with pytest.MonkeyPatch.context() as m:
        m.setenv("FEATHERJET_CACHE_DIR", str(folder))
        yield folder


@contextmanager
def one_code_for_all() -> Iterator[None]:
    """Inside, every robot gets the code for all joint variants, whichever it has."""
    with pytest.MonkeyPatch.context() as m:
        for module in (featherjet.compiled, featherjet.compiler.tables):
            m.setattr(module, "variants", lambda tree: EVERY_VARIANT)
        yield


def both(model: fj.Model) -> tuple[fj.Robot, fj.Robot]:
    return fj.Robot(model, "compiled", threads=1), fj.Robot(model, "numpy")


@pytest.fixture(scope="module")
def humanoid() -> tuple[fj.Robot, fj.Robot]:
    return both(fj.models.humanoid())


@pytest.fixture(scope="module")
def chain() -> tuple[fj.Robot, fj.Robot]:
    return both(fj.models.chain(7))


@pytest.fixture
def every() -> Iterator[tuple[fj.Robot, fj.Robot]]:
    """A tree of every kind of joint, with several roots."""
    with one_code_for_all():
        yield both(fj.models.random_tree(12, seed=9))


# How it is compared


def arguments(name: str, s: State, fext: bool = False) -> list[np.ndarray]:
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a}
    return [*(given[x] for x in INPUTS[name]), *([s.fext] if fext and KERNELS[name].forces else [])]


def results(robot: fj.Robot, name: str, *args: np.ndarray, **more) -> tuple[np.ndarray, ...]:
    found = getattr(robot, name)(*args, **more)
    return tuple(found) if isinstance(found, tuple) else (found,)


def largest(x: np.ndarray) -> np.ndarray:
    """The largest entry of each sample."""
    return np.abs(x).max(axis=tuple(range(1, x.ndim)), initial=0.0)


def scales(reference: fj.Robot, s: State) -> dict[str, list[np.ndarray]]:
    """What each result is made of, for each sample: rounding is relative to this, also where terms cancel.

    M^-1 alone is, in either backend, as good as M is conditioned.
    """
    M, Minv, b = reference.mass_matrix(s.q), reference.inverse_mass_matrix(s.q), reference.bias(s.q, s.v)
    d = reference.inverse_dynamics_derivatives(s.q, s.v, s.a, s.fext)
    a = reference.forward_dynamics(s.q, s.v, s.a, s.fext)
    M, Minv, b = largest(M), largest(Minv), largest(b) + largest(M) * largest(s.v) ** 2
    tau = b + M * largest(s.a) + largest(reference.inverse_dynamics(s.q, s.v, s.a, s.fext))
    by_q, by_v = largest(d.dtau_dq) + tau, largest(d.dtau_dv) + M * largest(s.v)
    inverse = Minv * (1 + M * Minv / 10)
    return {
        "inverse_dynamics": [tau],
        "bias": [b],
        "gravity": [largest(reference.gravity(s.q))],
        "mass_matrix": [M],
        "coriolis_matrix": [by_v],
        "inverse_mass_matrix": [inverse],
        "forward_kinematics": [largest(reference.forward_kinematics(s.q))],
        "forward_dynamics": [Minv * tau],
        "inverse_dynamics_derivatives": [by_q, by_v, M],
        "forward_dynamics_derivatives": [Minv * (by_q + M * largest(a)), Minv * by_v, inverse],
    }


def compare(pair: tuple[fj.Robot, fj.Robot], s: State, fext: bool = False, names=CALLS) -> float:
    """All kernels on both backends; returns the worst error."""
    compiled, reference = pair
    size, worst = scales(reference, s), 0.0
    for name in names:
        args = arguments(name, s, fext)
        got, expected = results(compiled, name, *args), results(reference, name, *args)
        for k, (x, y) in enumerate(zip(got, expected, strict=True)):
            assert x.shape == y.shape
            assert x.dtype == np.float64
            assert np.isfinite(x).all(), f"{name} {k}: not finite"
            off = largest(x - y)
            if not off.size:
                continue
            error = float(np.max(np.divide(off, size[name][k], where=off > 0, out=np.zeros_like(off))))
            assert error <= TOLERANCE, f"{name} {k}: off by {error:.2e}"
            worst = max(worst, error)
    return worst


# Every kernel on every robot


@pytest.mark.parametrize("size", SIZES)
def test_every_kernel_and_batch_size_on_a_humanoid(humanoid, size):
    compare(humanoid, random_state(humanoid[1], size, seed=size))


@pytest.mark.parametrize("size", SIZES)
def test_every_kernel_and_batch_size_on_every_kind_of_joint(every, size):
    compare(every, random_state(every[1], size, seed=size), fext=True)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 33])
def test_numbers_of_dofs_around_the_number_of_lanes(n):
    """Groups of columns that are full, nearly full, or have one column."""
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics", "mass_matrix")
    pair = both(fj.models.tree(n, seed=n))
    for size in (1, host_lanes(), host_lanes() + 1):
        compare(pair, random_state(pair[1], size, seed=n), names=names)


@pytest.mark.parametrize("n, size", [(100, 3), (100, 20), (300, 2)])
def test_deep_chains(n, size):
    """A few samples, and as many as make results go past the caches."""
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics")
    compare(both(fj.models.chain(n)), random_state(fj.Robot(fj.models.chain(n)), size, seed=1), names=names)


@pytest.mark.parametrize("kind", KINDS)
def test_one_joint_alone(kind):
    """Nothing but a root: no body has a parent."""
    b = fj.ModelBuilder(kind)
    b.add_joint("only", kind, axis=(1, 2, 3), pitch=0.2 if kind == "helical" else 0.0, armature=0.1)
    b.add_body("only", 2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
    with one_code_for_all():
        pair = both(b.build())
        for size in (1, 5):
            compare(pair, random_state(pair[1], size), fext=True)


@pytest.mark.parametrize("kind", ["revolute", "free"])
def test_code_for_a_single_variant(kind):
    """A pendulum and a free body, compiled for what they are."""
    b = fj.ModelBuilder(kind)
    b.add_joint("only", kind, axis=(1, 2, 3))
    b.add_body("only", 2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
    pair = both(b.build())
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    for size in (1, 9):
        compare(pair, random_state(pair[1], size), names=names)


def test_many_roots():
    """Twenty little trees: most pairs of dofs have nothing to do with each other."""
    b = fj.ModelBuilder("roots")
    body = 1.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.2])
    for i, kind in zip(range(20), itertools.cycle(["revolute", "spherical", "prismatic"])):
        b.add_joint(f"a{i}", kind, axis=(1, 0, 0))
        b.add_body(f"a{i}", *body)
        if i % 3:
            b.add_joint(f"b{i}", "revolute", f"a{i}", axis=(0, 1, 0))
            b.add_body(f"b{i}", *body)
    with one_code_for_all():
        pair = both(b.build())
        compare(pair, random_state(pair[1], 9), fext=True)
        zeros_where_they_belong(pair[0])


@settings(max_examples=40)
@given(model=models(), size=st.sampled_from([1, 3, 8, 11]), seed=st.integers(0, 99))
def test_trees_of_all_kinds(model, size, seed):
    with one_code_for_all():
        pair = both(model)
        compare(pair, random_state(pair[1], size, seed), fext=True)


# Structural zeros


def branches(robot: fj.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Which dofs lie on a common path to a root, and which belong to one tree: (nv, nv) each."""
    joints = robot.model.joints
    above = np.eye(len(joints), dtype=bool)
    for i, joint in enumerate(joints):
        if joint.parent >= 0:
            above[i] |= above[joint.parent]
    kin = (above.astype(int) @ above.T) > 0
    of = np.repeat(np.arange(len(joints)), [j.nv for j in joints])
    return (above | above.T)[np.ix_(of, of)], kin[np.ix_(of, of)]


def zeros_where_they_belong(robot: fj.Robot, size: int = 9) -> None:
    path, kin = branches(robot)
    s = random_state(robot, size, 5)
    for name in MATRICES:
        pattern = kin if KERNELS[name].margins else path
        fext = KERNELS[name].forces
        for x in results(robot, name, *arguments(name, s, fext)):
            assert not x[:, ~pattern].any(), f"{name}: a zero of the tree is not exactly zero"
            assert x[:, pattern].any()


def test_structural_zeros_are_exact(every, humanoid):
    path, kin = branches(every[0])
    assert not path.all()
    assert not kin.all()
    zeros_where_they_belong(every[0])
    path, _ = branches(humanoid[0])
    s = random_state(humanoid[0], 9)
    for name in ("mass_matrix", "coriolis_matrix", "inverse_dynamics_derivatives"):
        for x in results(humanoid[0], name, *arguments(name, s)):
            assert not x[:, ~path].any()


def test_matrices_are_symmetric_as_they_should_be(every):
    s = random_state(every[0], 5)
    M = every[0].mass_matrix(s.q)
    np.testing.assert_allclose(M, M.swapaxes(-1, -2), rtol=0, atol=1e-14 * np.abs(M).max())
    d = every[0].inverse_dynamics_derivatives(s.q, s.v, s.a, s.fext)
    np.testing.assert_allclose(d.dtau_da, M, rtol=0, atol=1e-14 * np.abs(M).max())


# Accuracy


@pytest.mark.parametrize("name", ["panda", "talos_full", "chain100"])
@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long double is double here")
def test_within_5e_14_of_extended_precision(name):
    with warnings.catch_warnings(), one_code_for_all():
        warnings.simplefilter("ignore")
        if name == "chain100":
            model = fj.models.chain(100)
        else:
            model = fj.load(name, "free" if name == "talos_full" else "fixed").model
        compiled, reference = both(model)
        s = random_state(reference, 9, seed=4)
        inputs = {"q": s.q, "v": s.v, "a": s.a, "fext": s.fext}
        wide = {k: x.astype(np.longdouble) for k, x in inputs.items()}
        for joint, iq in zip(model.joints, model.q_starts, strict=True):
            if joint.kind.name == "free":  # the compiled code scales quaternions to one as well
                quaternion = wide["q"][:, iq + 3 : iq + 7]
                quaternion /= np.sqrt((quaternion**2).sum(-1, keepdims=True))
        exact = reference._reference.run("inverse_dynamics_derivatives", wide)
        assert exact[0].dtype == np.longdouble
        for got, x in zip(compiled.inverse_dynamics_derivatives(*inputs.values()), exact, strict=True):
            assert (largest(got - x) / largest(x)).max() < 5e-14


@pytest.mark.parametrize("turn", [1e3, 1e6, 1e9, 1e15])
def test_large_angles(chain, turn):
    s = random_state(chain[1], 9)
    s = s._replace(q=s.q * turn)
    compare(chain, s, names=("inverse_dynamics_derivatives",))


# Shapes of batches


@pytest.mark.parametrize("name", CALLS)
def test_batches_of_any_shape(every, name):
    robot = every[0]
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
    robot = every[0]
    s = random_state(robot, 11)
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        args = arguments(name, s, True)
        args[single] = args[single][3]
        repeated = [np.repeat(x[None], 11, 0) if k == single else x for k, x in enumerate(args)]
        for x, y in zip(results(robot, name, *args), results(robot, name, *repeated), strict=True):
            np.testing.assert_array_equal(x, y)


def test_batches_broadcast_in_all_directions(every):
    robot = every[0]
    s = random_state(robot, 12)
    q, v, a = s.q[:3].reshape(3, 1, -1), s.v[:4], s.a.reshape(3, 4, -1)
    tau = robot.inverse_dynamics(q, v, a, s.fext[:3, None])
    assert tau.shape == (3, 4, robot.nv)
    one = robot.inverse_dynamics(q[2, 0], v[1], a[2, 1], s.fext[2])
    np.testing.assert_allclose(tau[2, 1], one, rtol=1e-13, atol=1e-13 * np.abs(one).max())


@pytest.mark.parametrize("batch", [(0,), (0, 4), (3, 0)])
@pytest.mark.parametrize("name", CALLS)
def test_empty_batches(chain, name, batch):
    s = random_state(chain[0], 1)
    args = [np.zeros((*batch, *x.shape[1:])) for x in arguments(name, s)]
    got, expected = (results(r, name, *args) for r in chain)
    assert [x.shape for x in got] == [x.shape for x in expected]


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_of_any_layout(every, layout):
    """Plain arrays of any layout give the same bits; others are converted first."""
    robot = every[0]
    s = random_state(robot, 9)
    converted = layout in ("big-endian", "long double", "lists", "subclass")
    for name in ("inverse_dynamics", "inverse_dynamics_derivatives", "forward_kinematics", "forward_dynamics"):
        if converted and name == "forward_dynamics":
            continue  # quaternions are normalised twice, and M^-1 magnifies the last bit
        args = arguments(name, s, True)
        before = [x.copy() for x in args]
        handed = [LAYOUTS[layout](x) for x in args]
        for x, y in zip(results(robot, name, *handed), results(robot, name, *args), strict=True):
            assert type(x) is np.ndarray
            np.testing.assert_allclose(x, y, rtol=0, atol=converted * 1e-14 * np.abs(y).max())
        for x, y in zip(args, before, strict=True):
            np.testing.assert_array_equal(x, y)


def test_an_unpickled_array_is_as_good_as_any(humanoid):
    s = random_state(humanoid[0], 64)
    again = pickle.loads(pickle.dumps(s))
    expected = humanoid[0].forward_dynamics(s.q, s.v, s.a)
    np.testing.assert_array_equal(humanoid[0].forward_dynamics(again.q, again.v, again.a), expected)


def test_numbers_of_other_types(chain):
    compiled, reference = chain
    whole = np.arange(21).reshape(3, 7)
    for x in (whole, whole.astype(np.int8), whole.astype(np.uint16), whole.astype(np.float32), whole.tolist()):
        tau = compiled.inverse_dynamics(x, x, x)
        assert tau.dtype == np.float64
        expected = reference.inverse_dynamics(whole, whole, whole)
        np.testing.assert_allclose(tau, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())
    s = random_state(reference, 3)
    single = [x.astype(np.float32) for x in (s.q, s.v, s.a)]
    np.testing.assert_array_equal(
        compiled.inverse_dynamics(*single), compiled.inverse_dynamics(*(x.astype(float) for x in single))
    )


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
    robot = every[0]
    for size in (1, 9):
        args = arguments(name, random_state(robot, size), True)
        expected = results(robot, name, *args)
        pairs = [guarded(x.shape, layout) for x in expected]
        outs = tuple(view for view, _ in pairs)
        got = results(robot, name, *args, out=outs if len(outs) > 1 else outs[0])
        for x, y, (view, whole) in zip(got, expected, pairs, strict=True):
            assert x is view
            np.testing.assert_array_equal(view, y)
            assert (whole == -1234.5).sum() == whole.size - view.size, "wrote beside the array"


def test_outs_of_different_layouts(every):
    robot = every[0]
    args = arguments("inverse_dynamics_derivatives", random_state(robot, 9), True)
    expected = robot.inverse_dynamics_derivatives(*args)
    outs = tuple(guarded(x.shape, layout)[0] for x, layout in zip(expected, ["C", "backwards", "Fortran"], strict=True))
    for x, y in zip(robot.inverse_dynamics_derivatives(*args, out=outs), expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shift", range(8))
def test_large_results_wherever_they_begin(chain, shift):
    """Beyond some megabytes results go past the caches, in whole lines; 49 numbers a matrix never fit lines."""
    robot = chain[0]
    s = random_state(robot, 4000)
    expected = robot.inverse_dynamics_derivatives(s.q[:1000], s.v[:1000], s.a[:1000])
    whole = np.full((3, 4000 * 49 + 16), -1234.5)
    outs = tuple(x[shift : shift + 4000 * 49].reshape(4000, 7, 7) for x in whole)
    robot.inverse_dynamics_derivatives(s.q, s.v, s.a, out=outs)
    for x, y in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(x[:1000], y)
    assert (whole == -1234.5).sum() == 3 * 16


def test_out_in_single_precision(chain):
    robot = chain[0]
    s = random_state(robot, 5)
    out = np.zeros((5, 7), np.float32)
    assert robot.inverse_dynamics(s.q, s.v, s.a, out=out) is out
    np.testing.assert_allclose(out, robot.inverse_dynamics(s.q, s.v, s.a), rtol=1e-6)


@pytest.mark.parametrize("where", ["same", "backwards", "shifted", "of one sample"])
@pytest.mark.parametrize("threads", [1, 2])
def test_out_may_overlap_inputs(chain, where, threads):
    """As with any NumPy function: the result is as if inputs had been copied first."""
    robot = fj.Robot(chain[0].model, "compiled", threads=threads)
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


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.parametrize("bad", BAD_OUT)
@pytest.mark.parametrize("name", ["inverse_dynamics", "inverse_dynamics_derivatives"])
def test_bad_out_is_refused(chain, name, bad, size):
    for robot in (chain[1], fj.Robot(chain[0].model, "compiled", threads=2)):
        args = arguments(name, random_state(robot, size))
        with pytest.raises(InputError, match="out"):
            results(robot, name, *args, out=BAD_OUT[bad](results(robot, name, *args)[0]))


def test_out_that_cannot_hold_the_result_is_refused(chain):
    for robot in chain:
        s = random_state(robot, 5)
        with pytest.raises(TypeError):
            robot.inverse_dynamics(s.q, s.v, s.a, out=np.zeros((5, 7), int))
        locked = np.zeros((5, 7))
        locked.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            robot.inverse_dynamics(s.q, s.v, s.a, out=locked)


# Bad input


def spoiled(x: np.ndarray, at: tuple[int, ...], value: float) -> np.ndarray:
    x = x.copy()
    x[at] = value
    return x


BAD = {
    "nan": lambda x: spoiled(x, (7, *(2,) * (x.ndim - 1)), np.nan),
    "inf": lambda x: spoiled(x, (0, *(0,) * (x.ndim - 1)), np.inf),
    "-inf": lambda x: spoiled(x, (-1,) * x.ndim, -np.inf),
    "too short": lambda x: x[..., :-1],
    "too long": lambda x: np.concatenate([x, x[..., :1]], -1),
    "a number": lambda x: 1.0,
    "complex": lambda x: x.astype(complex),
    "bool": lambda x: np.ones(x.shape, bool),
    "object": lambda x: x.astype(object),
    "ragged": lambda x: [[1.0, 2.0], [3.0]],
    "text": lambda x: "abc",
    "none": lambda x: None,
    "other batch": lambda x: x[:4],
}
INPUT_OF = [
    (name, k)
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    for k in range(4)
] + [("mass_matrix", 0), ("gravity", 0), ("coriolis_matrix", 1)]


MISTAKES = [
    (name, which, bad)
    for name, which in INPUT_OF
    for bad in BAD
    if not (bad == "other batch" and len(INPUTS[name]) == 1)  # one input has no other to disagree with
    and not (bad == "none" and which == 3)  # no external forces are no mistake
]


@pytest.mark.parametrize("name, which, bad", MISTAKES)
def test_bad_input_gets_the_error_of_the_reference(every, name, which, bad):
    args = arguments(name, random_state(every[0], 9), True)
    args[which] = BAD[bad](args[which])
    said = []
    for robot in every:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InputError) as error:
                results(robot, name, *args)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("lane", range(0, 19, 3))
def test_the_offending_entry_is_named(chain, lane):
    s = random_state(chain[0], 19)
    with pytest.raises(InputError, match=rf"v\[{lane}, 4\] is nan"):
        chain[0].forward_dynamics(s.q, spoiled(s.v, (lane, 4), np.nan), s.a)
    with pytest.raises(InputError, match=rf"tau\[{lane}, 0\] is inf"):
        chain[0].forward_dynamics(s.q, s.v, spoiled(s.a, (lane, 0), np.inf))
    chain[0].forward_dynamics(s.q, s.v, s.a)  # and nothing lingers


@pytest.mark.parametrize("lane", range(0, 19, 3))
def test_a_quaternion_that_is_none_is_named(humanoid, lane):
    s = random_state(humanoid[0], 19)
    q = s.q.copy()
    q[lane, 3:7] *= 1.01
    for robot in humanoid:
        with pytest.raises(InputError, match=rf"entries 3 to 6, has norm 1.01 at sample \({lane},\)"):
            robot.gravity(q)
    q[lane, 3:7] = 0
    with pytest.raises(InputError, match="has norm 0"):
        humanoid[0].gravity(q)


@pytest.mark.parametrize("off", [1 + 9e-7, 1 - 9e-7, 1 + 1.001e-6, 1 - 1.001e-6, 1 + 0.999e-6, 1 - 0.999e-6])
def test_both_backends_draw_the_line_at_the_same_norm(humanoid, off):
    q = humanoid[0].neutral()
    q[6] = off
    found = []
    for robot in humanoid:
        try:
            found.append(robot.gravity(q))
        except InputError:
            found.append(None)
    assert (found[0] is None) == (found[1] is None) == (abs(off - 1) > 1e-6)
    if found[1] is not None:
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-13 * np.abs(found[1]).max())


def test_slightly_wrong_quaternions_are_scaled_and_inputs_left_alone(humanoid):
    s = random_state(humanoid[0], 9)
    q = s.q.copy()
    q[:, 3:7] *= 1 + 5e-7
    before = q.copy()
    compare(humanoid, s._replace(q=q), names=["mass_matrix", "inverse_dynamics_derivatives"])
    np.testing.assert_array_equal(q, before)
    tau = humanoid[0].inverse_dynamics(q, s.v, s.a)
    expected = humanoid[0].inverse_dynamics(s.q, s.v, s.a)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


# Singular mass matrices


def arm_with(mass: float, armature: float = 0.0) -> fj.Model:
    """A real link, and beyond it a joint that carries nothing but `mass`."""
    b = fj.ModelBuilder("leaf")
    b.add_joint("shoulder", "revolute", axis=(0, 0, 1))
    b.add_body("shoulder", 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.3]))
    b.add_joint("wrist", "revolute", "shoulder", axis=(0, 1, 0), armature=armature)
    if mass:
        b.add_body("wrist", mass, (0.1, 0.0, 0.0), np.zeros((3, 3)))
    return b.build()


@pytest.mark.parametrize("size", [1, 3, 9])
@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_mass_matrix_is_refused(name, size):
    with one_code_for_all(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        said = []
        for robot in both(arm_with(0.0)):
            with pytest.raises(SingularMassMatrix, match="'wrist' can move without moving any inertia") as error:
                results(robot, name, *arguments(name, random_state(robot, size), True))
            said.append(str(error.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("name", SINGULAR)
def test_errors_stay_what_they_are_when_numpy_is_told_to_raise(name):
    with one_code_for_all(), np.errstate(all="raise"):
        robot = fj.Robot(arm_with(0.0), "compiled")
        with pytest.raises(SingularMassMatrix):
            results(robot, name, *arguments(name, random_state(robot, 3), True))


@pytest.mark.parametrize(
    "model", [arm_with(1e-9), arm_with(1e-6), arm_with(0.0, 1e-9)], ids=["1e-9", "1e-6", "armature"]
)
def test_nearly_singular_is_fine(model):
    with one_code_for_all():
        pair = both(model)
        compare(pair, random_state(pair[1], 9), fext=True, names=SINGULAR)


def test_singular_at_one_configuration_only():
    """The joint's axis goes through the mass only when the slider is at zero."""
    b = fj.ModelBuilder("pin")
    b.add_joint("turn", "revolute", axis=(0, 0, 1))
    b.add_joint("slide", "prismatic", "turn", axis=(1, 0, 0))
    b.add_body("slide", 1.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))
    q = np.array([[0.3, 0.5], [0.2, 1e-3], [1.0, 0.0], [0.1, 2.0]])
    with one_code_for_all():
        for robot in both(b.build()):
            with pytest.raises(SingularMassMatrix, match=r"at sample \(2,\): joint 'turn'"):
                robot.inverse_mass_matrix(q)
            fine = robot.inverse_mass_matrix(q[[0, 1, 3]])
            np.testing.assert_allclose(fine[:, 0, 0], q[[0, 1, 3], 1] ** -2.0, rtol=1e-9)


def test_singular_far_from_the_neutral_configuration():
    """Two joints on one axis, and a slider far out: rounding errors of a large inertia look like a small one."""
    with one_code_for_all():
        for seed in range(20):
            rng = np.random.default_rng(seed)
            axis, other = rng.normal(size=(2, 3))
            b = fj.ModelBuilder("twice")
            b.add_joint("first", "revolute", axis=axis)
            b.add_joint("second", "revolute", "first", axis=axis)
            b.add_joint("slide", "prismatic", "second", axis=np.cross(axis, other))
            b.add_body("slide", 1.0, np.zeros(3), 1e-4 * np.eye(3))
            q = np.concatenate([rng.normal(size=(9, 2)), np.full((9, 1), 30.0)], -1)
            for robot in both(b.build())[::-1]:
                with pytest.raises(SingularMassMatrix):
                    robot.inverse_mass_matrix(q[:1])


# Threads and processes


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics"])
@pytest.mark.parametrize("size", [129, 1000])
def test_results_do_not_depend_on_threads(humanoid, name, size):
    args = arguments(name, random_state(humanoid[0], size))
    found = []
    for threads in (1, 2, 3):
        robot = fj.Robot(humanoid[0].model, "compiled", threads=threads)
        found.append(results(robot, name, *args))
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


def test_threads_name_the_offending_sample(humanoid):
    s = random_state(humanoid[0], 1000)
    robot = fj.Robot(humanoid[0].model, "compiled", threads=3)
    with pytest.raises(InputError, match=r"v\[901, 5\] is nan"):
        robot.inverse_dynamics_derivatives(s.q, spoiled(s.v, (901, 5), np.nan), s.a)
    robot.inverse_dynamics_derivatives(s.q, s.v, s.a)


def in_threads(*works, rounds: int) -> None:
    """Run functions at the same time, many times each; the first failure is raised here."""
    failures: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def go(work) -> None:
        try:
            ready.wait()
            for _ in range(rounds):
                if failures:
                    return
                work()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=go, args=(work,)) for work in works]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]


def test_each_thread_gets_its_own_error_or_its_own_result(humanoid):
    robot = fj.Robot(humanoid[0].model, "compiled", threads=2)
    s = random_state(robot, 256)
    small = random_state(robot, 3, seed=1)
    expected, expected3 = robot.bias(s.q, s.v), robot.forward_dynamics(small.q, small.v, small.a)
    unit = s.q.copy()
    unit[100, 3:7] *= 2

    def good() -> None:
        np.testing.assert_array_equal(robot.bias(s.q, s.v), expected)

    def few() -> None:
        np.testing.assert_array_equal(robot.forward_dynamics(small.q, small.v, small.a), expected3)

    def infinite() -> None:
        with pytest.raises(InputError, match=r"v\[7, 2\] is nan"):
            robot.bias(s.q, spoiled(s.v, (7, 2), np.nan))

    def long() -> None:
        with pytest.raises(InputError, match=r"norm 2 at sample \(100,\)"):
            robot.bias(unit, s.v)

    in_threads(good, few, infinite, long, rounds=100)


def test_robots_of_different_thread_counts_at_once(humanoid):
    s = random_state(humanoid[0], 256)
    expected = humanoid[0].inverse_dynamics_derivatives(s.q, s.v, s.a)

    def work(threads: int):
        robot = fj.Robot(humanoid[0].model, "compiled", threads=threads)

        def go() -> None:
            for x, y in zip(robot.inverse_dynamics_derivatives(s.q, s.v, s.a), expected, strict=True):
                np.testing.assert_array_equal(x, y)

        return go

    in_threads(work(2), work(3), work(2), work(4), rounds=60)


def test_first_calls_at_once():
    """Threads that compile, or load, the same kernel of one robot at the same time."""
    with one_code_for_all():
        robot, reference = both(fj.models.chain(5))
        s = random_state(robot, 3)
        expected = reference.mass_matrix(s.q)

        def work() -> None:
            np.testing.assert_allclose(robot.mass_matrix(s.q), expected, atol=1e-13 * np.abs(expected).max())

        in_threads(work, work, work, work, rounds=3)


@pytest.mark.parametrize("again", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy])
def test_robots_are_copied(humanoid, again):
    s = random_state(humanoid[0], 5)
    expected = humanoid[0].forward_dynamics(s.q, s.v, s.a)
    other = again(humanoid[0])
    assert other.backend == "compiled"
    assert other.threads == 1
    np.testing.assert_array_equal(other.forward_dynamics(s.q, s.v, s.a), expected)


def in_another_process(robot: fj.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return robot.bias(q, v)


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_robots_cross_process_pools(humanoid, how):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {how} here")
    robot = fj.Robot(humanoid[0].model, "compiled", threads=2)
    s = random_state(robot, 2000)
    robot.inverse_dynamics_derivatives(s.q, s.v, s.a)  # on threads, which a fork leaves behind
    expected = robot.bias(s.q, s.v)
    with multiprocessing.get_context(how).Pool(2) as pool:
        jobs = [pool.apply_async(in_another_process, (robot, s.q, s.v)) for _ in range(3)]
        for job in jobs:
            np.testing.assert_allclose(job.get(timeout=60), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    np.testing.assert_array_equal(robot.bias(s.q, s.v), expected)


def test_memory_is_neither_left_nor_read_unwritten():
    """With a malloc of our own: NaN everywhere to begin with, and forbidden pages before and behind."""
    if not sys.platform.startswith("linux"):
        pytest.skip("pages are forbidden by Linux's mprotect")
    program = """
        import ctypes
        import llvmlite.binding as llvm
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        PAGE, live, count = 4096, {}, 0

        def guarded(size):
            global count
            pages = -(-size // PAGE)
            base = libc.mmap(None, (pages + 2) * PAGE, 3, 0x22, -1, 0)
            libc.mprotect(base, PAGE, 0)
            libc.mprotect(base + (pages + 1) * PAGE, PAGE, 0)
            ctypes.memset(base + PAGE, 0xFF, pages * PAGE)
            at = (base + (pages + 1) * PAGE - size) & ~15
            live[at] = base, (pages + 2) * PAGE
            count += 1
            return at

        def release(at):
            libc.munmap(*live.pop(at))

        allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(guarded)
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)
        llvm.add_symbol("malloc", ctypes.cast(allocate, ctypes.c_void_p).value)
        llvm.add_symbol("free", ctypes.cast(free, ctypes.c_void_p).value)

        import featherjet as fj
        import test_compiled as t
        with t.one_code_for_all():
            for n, seed in ((1, 0), (2, 1), (3, 2), (7, 4), (12, 3), (20, 5)):
                pair = t.both(fj.models.random_tree(n, seed=seed))
                for size in (1, 5, 9):
                    t.compare(pair, t.random_state(pair[1], size), fext=True)
                t.zeros_where_they_belong(pair[0]) if n == 12 else None
        assert count > 100 and not live
        print("whole")
    """
    here = str(Path(__file__).parent)
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=here,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout == "whole\n"


def test_the_lists_of_quantities_agree():
    """The user layer knows what is compiled without loading the compiler."""
    assert set(quantities.COMPILED) == set(KERNELS)
    assert all(quantities.INPUTS[name] == kernel.inputs for name, kernel in KERNELS.items())
