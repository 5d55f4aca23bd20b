"""Machine code writes its results and nothing beside them: every buffer lies between canaries."""

from __future__ import annotations

import numpy as np
import pytest

from backends import ROLLED, arguments, kernel_of, pair_of
from featherjet.jit.flags import Flag
from helpers import random_state

CANARY = 64  # numbers before and behind each buffer
SONG = -7.25e17


def guarded(shape: tuple[int, ...], dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """An array of NaN, and the memory around it, which holds canaries."""
    size = int(np.prod(shape))
    memory = np.full(size + 2 * CANARY, SONG, dtype)
    inner = memory[CANARY : CANARY + size].reshape(shape)
    inner[...] = np.nan
    return inner, memory


def untouched(memory: np.ndarray) -> bool:
    bird = memory.dtype.type(SONG)
    return bool((memory[:CANARY] == bird).all() and (memory[-CANARY:] == bird).all())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 2, 7, 9, 64, 67])
def test_nothing_is_written_beside_results(size, dtype):
    pair = pair_of("every kind", False)
    s = random_state(pair.reference, size)
    for name in [x for x in ROLLED if x in ("inverse_dynamics", "mass_matrix", "forward_dynamics_derivatives")]:
        kernel = kernel_of(pair.compiled, name)
        inputs = []
        memories = []
        for x in arguments(name, s):
            inner, memory = guarded(x.shape, dtype)
            inner[...] = x
            inputs.append(inner)
            memories.append((memory, memory.copy()))
        outs, around = zip(*(guarded((size, *shape), dtype) for shape in kernel.shapes), strict=True)
        _, flags = kernel(inputs, outs, 1)
        assert not flags & ~Flag.SMALL_MARGIN
        assert all(np.isfinite(o).all() for o in outs), "everything is written"
        assert all(map(untouched, around)), name
        assert all(np.array_equal(memory, before) for memory, before in memories), "inputs are only read"


def test_a_canary_can_die():
    inner, memory = guarded((3, 4), np.float64)
    assert untouched(memory)
    memory[CANARY + inner.size] = 0.0
    assert not untouched(memory)
