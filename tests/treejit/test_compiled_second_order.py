"""Products and Hessians: compiled code against the reference, shared by robots or made for one.

The robots have few kinds of joints, but several roots, branches, and joints of many dofs in the middle.
"""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from backends import SECOND, Pair, both, branches, branching, compare, kernel_of, results
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit.engine import target
from helpers import agree, random_state

HESSIANS = [name for name in SECOND if QUANTITIES[name].matrices]


@pytest.fixture(scope="module", params=[False, True], ids=["rolled", "unrolled"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return both(branching(7), request.param, shared=False, fext=not request.param)


@pytest.mark.parametrize("size", [0, 1, target().lanes + 1])
def test_every_kernel_and_batch_size(pair, size):
    compare(pair, random_state(pair.reference, size, seed=size), SECOND)


def test_one_state_at_a_time(pair):
    compare(pair, random_state(pair.reference, 3, seed=3), SECOND, each=True)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 17])
def test_numbers_of_dofs_around_the_number_of_lanes(n):
    """Blocks of matrices that are transposed, and what remains beside them."""
    pair = both(fj.models.tree(n, seed=n), shared=False, fext=False)
    for size in (1, target().lanes + 1):
        compare(pair, random_state(pair.reference, size, seed=n), HESSIANS)


def test_narrower_targets(narrower):
    pair = both(fj.models.tree(9, seed=1), shared=False, fext=False)
    compare(pair, random_state(pair.reference, target().lanes + 1, seed=1), SECOND)


@pytest.mark.parametrize("name", HESSIANS)
def test_structural_zeros_and_any_strides(pair, name):
    s, fext = random_state(pair.reference, 3), pair.fext
    given = [s.q, s.v, s.a, s.v, *([s.fext] if fext else [])]
    found = results(pair.compiled, name, *given)
    path, kin = branches(pair.reference)
    pattern = kin if QUANTITIES[name].margins else path
    for x in found:
        assert not x[:, ~pattern].any()
        assert x[:, pattern].any()
    turned = tuple(np.full(x.shape, np.nan).swapaxes(1, 2) for x in found)
    for x, y in zip(results(pair.compiled, name, *given, out=turned), found, strict=True):
        assert not x.flags["C_CONTIGUOUS"]
        np.testing.assert_array_equal(x, y)
    single = results(pair.compiled, name, *(x.astype(np.float32) for x in given))
    for x, y in zip(single, found, strict=True):
        assert x.dtype == np.float32
        agree(x, y, 1e-3)


def test_what_is_asked_for_is_compiled(pair, request):
    unroll = "unrolled" in request.node.callspec.id
    for name in SECOND:
        assert kernel_of(pair.compiled, name).separate_single == unroll
