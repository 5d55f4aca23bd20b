"""Compiled code against the plain reference: every kernel, every joint kind, made for all robots or for one."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from backends import (
    CALLS,
    IDS,
    PAIRS,
    ROLLED,
    Pair,
    both,
    branches,
    compare,
    kernel_of,
    largest,
    pair_of,
    results,
    zeros_where_they_belong,
)
from featherjet.jit.engine import target
from featherjet.model.joints import KINDS
from helpers import models, random_state

SIZES = (0, 1, 2, 3, 5, 8, 9, 17, 64)


@pytest.fixture(params=PAIRS, ids=IDS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return pair_of(*request.param)


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def unroll(request: pytest.FixtureRequest) -> bool:
    return request.param


# Every kernel on every robot


@pytest.mark.parametrize("size", SIZES)
def test_every_kernel_and_batch_size(pair, size):
    compare(pair, random_state(pair.reference, size, seed=size))


def test_every_kernel_one_state_at_a_time(pair):
    """Code of its own if it is unrolled; from the second state on by the direct call."""
    compare(pair, random_state(pair.reference, 4, seed=3), each=True)
    ready = pair.compiled.evaluator.ready
    assert all(map(ready.kernel_of, CALLS if not pair.fext else ["mass_matrix", "bias", "kinetic_energy"]))


NARROW = (  # a walk, vectors and numbers for each joint, pairs, responses: each kind of code once
    "inverse_dynamics", "forward_kinematics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
)  # fmt: skip


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_kernels_for_narrower_targets(narrower, unroll):
    """Whole groups of lanes, a rest, and single states: samples in lanes, and columns in lanes."""
    pair = pair_of("quadruped", unroll)
    compare(pair, random_state(pair.reference, 11, seed=1), NARROW)
    compare(pair, random_state(pair.reference, 2, seed=2), NARROW[:2], each=True)


def test_every_kind_of_joint_for_narrower_targets(narrower):
    """What kinds of joints differ in knows no lanes: one walk and one piece of straight-line code suffice."""
    model = fj.models.random_tree(8, seed=6)
    for unroll, name in ((False, "inverse_dynamics"), (True, "mass_matrix")):
        pair = both(model, unroll, shared=False)
        compare(pair, random_state(pair.reference, 11, seed=1), (name,))


def test_numbers_of_dofs_around_the_lanes_of_narrower_targets(narrower):
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    for n in (2, 3, 4, 5, 8, 9, 17):
        pair = both(fj.models.tree(n, seed=n), shared=False, fext=False)
        for size in (1, target().lanes + 1):
            compare(pair, random_state(pair.reference, size, seed=n), names)


def test_numbers_of_entries_around_the_lanes_of_narrower_targets(narrower):
    for n in (1, 3, 4, 5):
        pair = both(fj.models.tree(n, seed=n), unroll=True)
        for size in (1, target().lanes + 1):
            compare(pair, random_state(pair.reference, size, seed=n), ("mass_matrix",))


def test_what_is_asked_for_is_compiled(pair, request):
    unroll = "unrolled" in request.node.callspec.id
    kernel = kernel_of(pair.compiled, "inverse_dynamics_derivatives", pair.fext)
    assert kernel.separate_single == unroll
    assert (kernel.single is kernel.batch) == (not unroll)


@pytest.mark.parametrize("frame", ["local", "world", "world_aligned"])
def test_frame_jacobians(pair, frame):
    s = random_state(pair.reference, 5)
    name = pair.reference.joint_names[-1]
    for q, v in ((s.q, s.v), (s.q[0], s.v[0]), (s.q[1], s.v[1])):
        J, expected = (r.frame_jacobian(q, name, viewpoint=frame) for r in pair[:2])
        np.testing.assert_allclose(J, expected, rtol=0, atol=1e-14 * np.abs(expected).max())
        twist, expected = (r.frame_velocity(q, v, name, viewpoint=frame) for r in pair[:2])
        np.testing.assert_allclose(twist, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 33])
def test_numbers_of_dofs_around_the_number_of_lanes(n):
    """Groups of columns that are full, nearly full, or have one column."""
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics", "mass_matrix")
    pair = both(fj.models.tree(n, seed=n), shared=False, fext=False)
    for size in (1, target().lanes, target().lanes + 1):
        compare(pair, random_state(pair.reference, size, seed=n), names)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
def test_numbers_of_entries_around_the_number_of_lanes(n):
    """Results of n and n^2 entries, which leave an unrolled kernel transposed, in groups of lanes and a rest."""
    pair = both(fj.models.tree(n, seed=n), unroll=True)
    for size in (1, target().lanes, target().lanes + 1):
        compare(pair, random_state(pair.reference, size, seed=n), ("gravity", "mass_matrix"))


def test_a_deep_chain():
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics")
    pair = both(fj.models.chain(100), shared=False, fext=False)
    compare(pair, random_state(pair.reference, 3, seed=1), names)


def alone(kind: str, armature: float = 0.0) -> fj.Model:
    """Nothing but a root: no body has a parent."""
    b = fj.ModelBuilder(kind)
    b.add_joint("only", kind, axis=(1, 2, 3), pitch=0.2 if kind == "helical" else 0.0, armature=armature)
    b.add_body("only", 2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
    return b.build()


@pytest.mark.parametrize("kind", KINDS)
def test_one_joint_alone(kind, unroll):
    pair = both(alone(kind, 0.1), unroll)
    s = random_state(pair.reference, 5)
    compare(pair, s, ("inverse_dynamics_derivatives",) if unroll else ROLLED)


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
    pair = both(b.build())
    s = random_state(pair.reference, 9)
    compare(pair, s, ROLLED)
    zeros_where_they_belong(pair.compiled, s)


@settings(max_examples=30)
@given(model=models(), size=st.sampled_from([1, 3, 8, 11]), seed=st.integers(0, 99))
def test_trees_of_all_kinds(model, size, seed):
    """By the code of all variants; test_unrolled.py interprets what would be unrolled."""
    pair = both(model)
    compare(pair, random_state(pair.reference, size, seed), ROLLED)


# Structural zeros


def test_structural_zeros_are_exact(pair):
    path, _ = branches(pair.reference)
    assert path.all() == (pair.reference.name == "arm")
    zeros_where_they_belong(pair.compiled, random_state(pair.reference, 9, 5), pair.fext)


def test_trees_that_have_nothing_to_do_with_each_other(unroll):
    _, kin = branches(pair_of("every kind", unroll).reference)
    assert not kin.all()


def test_matrices_are_symmetric_as_they_should_be(pair):
    s = random_state(pair.reference, 5)
    M = pair.compiled.mass_matrix(s.q)
    np.testing.assert_allclose(M, M.swapaxes(-1, -2), rtol=0, atol=1e-14 * np.abs(M).max())
    (_, _, by_a) = results(
        pair.compiled, "inverse_dynamics_derivatives", s.q, s.v, s.a, *([s.fext] if pair.fext else [])
    )
    np.testing.assert_allclose(by_a, M, rtol=0, atol=1e-14 * np.abs(M).max())


# Accuracy


@pytest.mark.parametrize("name, unroll", [("panda", False), ("arm", True), ("talos_full", False), ("chain100", False)])
@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long double is double here")
def test_within_5e_14_of_extended_precision(name, unroll):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "chain100":
            model = fj.models.chain(100)
        else:
            model = fj.load(name, "free" if name == "talos_full" else "fixed").model
    compiled, reference, fext = pair_of("arm", True) if unroll else both(model)
    s = random_state(reference, 9, seed=4)
    inputs = {"q": s.q, "v": s.v, "a": s.a} | ({"fext": s.fext} if fext else {})
    wide = {k: x.astype(np.longdouble) for k, x in inputs.items()}
    for joint, iq in zip(model.joints, model.q_starts, strict=True):
        if joint.kind.name == "free":  # the compiled code scales quaternions to one as well
            quaternion = wide["q"][:, iq + 3 : iq + 7]
            quaternion /= np.sqrt((quaternion**2).sum(-1, keepdims=True))
    exact = reference.evaluator.reference("inverse_dynamics_derivatives", wide)
    assert exact[0].dtype == np.longdouble
    batch = compiled.inverse_dynamics_derivatives(*inputs.values())
    one = compiled.inverse_dynamics_derivatives(*(x[0] for x in inputs.values()))
    for got, first, x in zip(batch, one, exact, strict=True):
        assert (largest(got - x) / largest(x)).max() < 5e-14
        assert np.abs(first - x[0]).max() / np.abs(x[0]).max() < 5e-14


@pytest.mark.parametrize("turn", [1e3, 1e6, 1e9, 1e15])
def test_large_angles(unroll, turn):
    pair = pair_of("arm", unroll)
    s = random_state(pair.reference, 9)
    compare(pair, s._replace(q=s.q * turn), ("inverse_dynamics_derivatives",))
