"""Machine code writes its results and nothing beside them: every buffer lies between canaries.

Code of loops is that of the robots which other files compile; code of one robot alone is that of robots of two joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import featherjet as fj
from backends import CALLS, ROLLED, SECOND, SUMMED, both, branching, pair_of
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.algorithms.record import FEXT
from featherjet.jit import kernel as jit
from featherjet.jit.flags import Flag
from featherjet.jit.kernel import Kernel

CANARY = 64  # numbers before and behind each buffer
SONG = -7.25e17
BATCHES = ((), (1,), (3,), (9,))
INNER = [x.name for x in QUANTITIES.values() if x.rolled and x.name not in (*CALLS, *SUMMED, *SECOND)]


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


def given(robot: fj.Robot, kernel: Kernel, batch: tuple[int, ...]) -> list[np.ndarray]:
    """An input of every shape the code takes: configurations, a frame on the first body, else any numbers."""
    rng = np.random.default_rng(sum(batch))
    found = []
    for name, shape in kernel.inputs.items():
        x = rng.normal(size=(*batch, *shape))
        if name in ("q", "q0", "q1"):
            x = robot.random_configuration(rng, batch)
        elif name == "frame":
            x = np.broadcast_to([0.0, *np.eye(3).ravel(), 0.1, 0.2, 0.3], x.shape)
        found.append(x)
    return found


def guard(robot: fj.Robot, kernel: Kernel, batch: tuple[int, ...], dtype: type = np.float64) -> None:
    inputs, memories = [], []
    for x in given(robot, kernel, batch):
        inner, memory = guarded(x.shape, dtype)
        inner[...] = x
        inputs.append(inner)
        memories.append((memory, memory.copy()))
    outs, around = zip(*(guarded((*batch, *shape), dtype) for shape in kernel.shapes), strict=True)
    _, flags = kernel(inputs, outs, 1)
    assert not flags & ~Flag.SMALL_MARGIN, kernel.name
    assert all(np.isfinite(o).all() for o in outs), f"{kernel.name}: everything is written"
    assert all(map(untouched, around)), f"{kernel.name}: written beside results"
    assert all(np.array_equal(memory, before) for memory, before in memories), f"{kernel.name}: inputs are only read"


def kernel_of(robot: fj.Robot, name: str, fext: bool, **options) -> Kernel:
    record = QUANTITIES[name]
    names = [*(i.name for i in record.inputs), *([FEXT.name] if fext and record.forces else [])]
    found = robot.evaluator.kernel(record, names, options)
    assert found is not None, name
    return found


LOOPS = {
    "calls": (lambda: pair_of("every kind", False), CALLS),
    "sums": (lambda: both(fj.models.random_tree(8, seed=6), shared=False, fext=False), SUMMED),
    "second order": (lambda: both(branching(7), shared=False), SECOND),
    "inner": (lambda: both(fj.models.chain(5), shared=False, fext=False), INNER),
}


@pytest.mark.parametrize("which", LOOPS)
def test_loops_write_nothing_beside_results(which):
    make, names = LOOPS[which]
    pair = make()
    for name in names:
        if QUANTITIES[name].rolled:
            kernel = kernel_of(pair.compiled, name, pair.fext, **dict.fromkeys(QUANTITIES[name].options, "local"))
            assert not kernel.separate_single, "not a loop"
            for batch in BATCHES:
                guard(pair.compiled, kernel, batch)


@pytest.mark.parametrize("robot, unroll, names", [("quadruped", False, ROLLED), ("arm", True, CALLS)])
def test_single_precision_writes_nothing_beside_results(robot, unroll, names):
    pair = pair_of(robot, unroll)
    for name in names:
        for size in (1, 7, 9, 19, 67):  # a rest of samples beside vectors of 4, 8 and 16
            guard(pair.compiled, kernel_of(pair.compiled, name, pair.fext), (size,), np.float32)


@cache
def own(free: bool) -> fj.Robot:
    """A robot with code of its own: two joints that turn, or a free base and a second root."""
    return both(branching(2) if free else fj.models.chain(2), unroll=True).compiled


@pytest.mark.parametrize("names", [list(QUANTITIES)[k::6] for k in range(6)])
def test_code_of_one_robot_writes_nothing_beside_results(names: Sequence[str]):
    for name in names:
        robot = own(QUANTITIES[name].of_space)
        held = fj.Contacts(robot, [fj.PointContact(robot.joint_names[-1])], damping=0.1)
        known = {"contacts": held.core, "viewpoint": "local"}
        kernel = kernel_of(robot, name, False, **{k: x for k, x in known.items() if k in QUANTITIES[name].options})
        for batch in BATCHES:
            guard(robot, kernel, batch)


@pytest.mark.parametrize("batch", BATCHES)
def test_a_canary_can_die(batch):
    """Code that writes three numbers where there is room for two."""
    kernel = jit.compile(lambda x: [2 * x], {"x": (3,)}, "a canary can die", outputs=[(2,)])
    with pytest.raises(AssertionError, match="beside"):
        guard(own(False), kernel, batch)
