"""Loops over triples of dofs: the tensors of inverse dynamics against the reference and contracted Hessians."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from backends import Pair, both, branches, branching, kernel_of
from featherjet.jit.engine import target
from helpers import agree, random_state

NAME = "inverse_dynamics_second_derivatives"


@pytest.fixture(scope="module")
def pair() -> Pair:
    """Free joints, one of them in the middle, branches, and two roots."""
    return both(branching(7), shared=False)


def tensors(robot: fj.Robot, s, forces: bool = True, **more):
    return robot.inverse_dynamics_second_derivatives(s.q, s.v, s.a, s.fext if forces else None, **more)


@pytest.mark.parametrize("size", [0, 1, target().lanes + 1])
def test_batches(pair, size):
    s = random_state(pair.reference, size, seed=size)
    for x, y in zip(tensors(pair.compiled, s), tensors(pair.reference, s), strict=True):
        agree(x, y, 1e-13)


def test_loops_are_what_is_compiled(pair):
    assert not kernel_of(pair.compiled, NAME, fext=True).separate_single


def test_every_kind_of_joint():
    pair = both(fj.models.random_tree(8, seed=6), fext=True)
    s = random_state(pair.reference, 3)
    for x, y in zip(tensors(pair.compiled, s), tensors(pair.reference, s), strict=True):
        agree(x, y, 1e-13)


def test_structural_zeros(pair):
    """Three dofs have an entry only if they are on a common path; zeros of a buffer that was not zero are written."""
    s = random_state(pair.reference, 3)
    path, _ = branches(pair.reference)
    together = path[:, :, None] & path[:, None, :] & path[None]
    out = tuple(np.full((3, *together.shape), np.nan) for _ in range(4))
    for x in tensors(pair.compiled, s, out=out):
        assert not x[:, ~together].any()
        assert np.isfinite(x).all()


def test_any_strides_and_single_precision(pair):
    s = random_state(pair.reference, 3)
    want = tensors(pair.compiled, s)
    turned = tuple(np.full(x.shape, np.nan).transpose(0, 3, 2, 1) for x in want)
    apart = tuple(np.full((3, 2 * x.shape[1], *x.shape[2:]), np.nan)[:, ::2] for x in want)  # slabs far apart
    for out in (turned, apart):
        for x, y in zip(tensors(pair.compiled, s, out=out), want, strict=True):
            np.testing.assert_array_equal(x, y)
    single = s._replace(**{k: x.astype(np.float32) for k, x in s._asdict().items()})
    for x, y in zip(tensors(pair.compiled, single), want, strict=True):
        assert x.dtype == np.float32
        agree(x, y, 1e-3)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 17])
def test_numbers_of_dofs_around_the_number_of_lanes(n):
    pair = both(fj.models.tree(n, seed=n), shared=False, fext=False)
    s = random_state(pair.reference, 2, seed=n)
    for x, y in zip(tensors(pair.compiled, s, False), tensors(pair.reference, s, False), strict=True):
        agree(x, y, 1e-13)


def test_narrower_targets(narrower):
    pair = both(fj.models.tree(9, seed=1), shared=False, fext=False)
    s = random_state(pair.reference, 2, seed=1)
    for x, y in zip(tensors(pair.compiled, s, False), tensors(pair.reference, s, False), strict=True):
        agree(x, y, 1e-13)


def test_results_that_are_written_past_the_caches():
    """Results of several megabytes, at every place in a cache line, with nothing written beside them."""
    robot = both(fj.models.tree(17, seed=3), shared=False, fext=False).compiled
    s = random_state(robot, 80)
    eye = np.eye(robot.nv)
    want = robot.inverse_dynamics_hessian(s.q[:, None], s.v[:, None], s.a[:, None], eye)
    for shift in (0, 1, 5):
        memory = np.full((4, want[0].size + 16), 7.0)
        out = tuple(x[shift : shift + want[0].size].reshape(want[0].shape) for x in memory)
        assert out[0].nbytes > 1 << 21
        for x, y in zip(tensors(robot, s, False, out=out), want, strict=True):
            agree(x, y, 1e-13)
        beside = [memory[:, :shift], memory[:, shift + want[0].size :]]
        assert all(np.all(x == 7.0) for x in beside)
