"""Every way to compute a quantity for a batch of states: featherjet's, its peers', and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...evaluate.evaluator import processors
from ...model.model import Array
from ...robot.robot import Robot
from ..internals import lanes
from .checking import (
    APPROXIMATE,
    EXACT,
    LONG,
    LONG_EXACT,
    MAGNIFIED,
    ROUNDED,
    ROUNDED_INVERSE,
    CheckedContender,
    States,
    difference,
)
from .peer_contenders import mujoco_loop, pinocchio_call, pinocchio_loop, single_results
from .peers import NotAvailable
from .quantities import BenchmarkedQuantity

BATCH, CACHED, FLOATS, LARGE, THREADS, SINGLE, FLOAT_STATE, BOUND, REFERENCE = (
    "featherjet, batch, one thread",
    "featherjet, batch in the cache",
    "featherjet, batch, one thread, float32",
    "featherjet, large batch, one thread",
    "featherjet, large batch, all threads",
    "featherjet, one state",
    "featherjet, one state, float32",
    "featherjet, one state, bound",
    "featherjet, numpy reference",
)
PIN_LOOP, PIN_CALL = "Pinocchio, loop over batch", "Pinocchio, one state"
MUJOCO, DIFFERENCES = "MuJoCo", "central differences, compiled"

STEP = 1e-6  # of finite differences
MANY, LARGEST = 64, 1 << 27  # batches in a large one, which takes long beside the waking of a thread; its bytes
CACHE = 1 << 19  # bytes that fit the second-level cache, with what a kernel needs for itself
REFERENCE_ENTRIES = 20_000  # entries of each result in one call of the NumPy reference
DIFFERENCE_SAMPLES = 8192  # evaluations in one call of the finite differences

Maker = Callable[[str, Robot, BenchmarkedQuantity, States], CheckedContender]


def make_contenders(
    robot: Robot, quantity: BenchmarkedQuantity, states: States
) -> tuple[list[CheckedContender], dict[str, str]]:
    """All contenders, featherjet's first, and for each one that is missing the reason."""
    found, missing = [], {}
    for name, make in MAKERS.items():
        if name == DIFFERENCES and quantity.derivative_of is None:
            continue
        try:
            contender = make(name, robot, quantity, states)
        except NotAvailable as reason:
            missing[name] = str(reason)
            continue
        if quantity.divides_by_mass and robot.nv > LONG:
            contender.tolerance = max(contender.tolerance, LONG_EXACT)
        found.append(contender)
    return found, missing


def all_threads() -> int:
    """The number of threads that `THREADS` uses; refuses a machine on which they are one."""
    if processors() == 1:
        raise NotAvailable("this machine has only one core")
    return processors()


# featherjet


def batch(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    call = getattr(Robot(robot.model, backend="compiled", threads=1), quantity.name)
    inputs = states.inputs(quantity)
    results = states.results(quantity, owned=name == BATCH)
    if name == FLOATS:
        inputs, results = (tuple(x.astype(np.float32) for x in arrays) for arrays in (inputs, results))
    out = results[0] if len(results) == 1 else results

    def run(_: int) -> None:
        call(*inputs, out=out)

    return CheckedContender(
        name, run, len(states.q), whole=True, results=lambda: results,
        tolerance=rounded(call, quantity, states.inputs(quantity)) if name == FLOATS else EXACT,
    )  # fmt: skip


def large(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """The batch many times over, on one thread or (THREADS) on all."""
    threads = all_threads() if name == THREADS else 1
    call = getattr(Robot(robot.model, backend="compiled", threads=threads), quantity.name)
    size = len(states.q)
    one = sum(x.nbytes for x in states.results(quantity))
    many = states.repeated(max(1, min(MANY, LARGEST // one)))
    inputs, results = many.inputs(quantity), many.results(quantity)
    out = results[0] if len(results) == 1 else results

    def run(_: int) -> None:
        call(*inputs, out=out)

    return CheckedContender(
        name, run, len(many.q), whole=True, pinned=threads == 1, results=lambda: tuple(x[:size] for x in results)
    )


def cached(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """As many states as fit the cache, so that nothing waits for memory: what remains is computing, and the call."""
    call = getattr(Robot(robot.model, backend="compiled", threads=1), quantity.name)
    inputs, results = states.inputs(quantity), states.results(quantity)
    size = min(len(states.q), CACHE // sum(x[0].nbytes for x in (*inputs, *results)) // lanes() * lanes())
    if not size:
        raise NotAvailable(f"{lanes()} states do not fit the cache")
    inputs, results = (tuple(x[:size] for x in arrays) for arrays in (inputs, results))
    out = results[0] if len(results) == 1 else results

    def run(_: int) -> None:
        call(*inputs, out=out)

    return CheckedContender(name, run, size, whole=True, results=lambda: results)


def rounded(call: Callable[..., Any], quantity: BenchmarkedQuantity, inputs: Sequence[Array]) -> float:
    """What single precision may differ by at these states.

    Terms that cancel, and M^-1, magnify rounding, by how much depends on the robot and the state. Double precision
    tells: it computes with rounded inputs.
    """
    least = ROUNDED_INVERSE if quantity.divides_by_mass else ROUNDED
    given = [np.atleast_2d(x) for x in inputs]
    near, exact = (call(*x) for x in ([x.astype(np.float32).astype(float) for x in given], given))
    pairs = zip(near, exact, strict=True) if isinstance(exact, tuple) else [(near, exact)]
    return max(least, MAGNIFIED * max(difference(x, y) for x, y in pairs))


def single(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    call = getattr(Robot(robot.model, backend="compiled", threads=1), quantity.name)
    q, v, third = states.first_inputs(quantity)
    if name == FLOAT_STATE:
        q, v, third = (x.astype(np.float32) for x in (q, v, third))
    last: list[Any] = [None]

    def run(n: int) -> None:
        result = None
        for _ in range(n):
            result = call(q, v, third)
        last[0] = result

    tolerance = rounded(call, quantity, states.first_inputs(quantity)) if name == FLOAT_STATE else EXACT
    return CheckedContender(name, run, 1 << 20, results=lambda: single_results(last[0]), tolerance=tolerance)


def bound(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    step = Robot(robot.model, backend="compiled", threads=1).bind(quantity.name)
    q, v, third = states.first_inputs(quantity)
    q_in, v_in, third_in = (getattr(step, name) for name in step.inputs)

    def run(n: int) -> None:
        for _ in range(n):
            q_in[:] = q
            v_in[:] = v
            third_in[:] = third
            step()

    def results() -> tuple[Array, ...]:
        return single_results(tuple(getattr(step, name) for name in step.results))

    return CheckedContender(name, run, 1 << 20, results=results)


def reference(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    call = getattr(Robot(robot.model, backend="numpy"), quantity.name)
    inputs = states.inputs(quantity)
    size = max(1, min(len(states.q), REFERENCE_ENTRIES // robot.nv**quantity.entries_per_dof))
    last: list[Any] = [None]

    def run(n: int) -> None:
        last[0] = call(*(x[:n] for x in inputs))

    def results() -> tuple[Array, ...]:
        return last[0] if isinstance(last[0], tuple) else (last[0],)

    return CheckedContender(name, run, size, whole=True, results=results)


def differences(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """By q and v with central differences, all directions in one batch; by a or tau with the kernel for M or M^-1."""
    assert quantity.derivative_of is not None
    assert quantity.by_third is not None
    compiled, n = Robot(robot.model, backend="compiled", threads=1), robot.nv
    value, matrix = getattr(compiled, quantity.derivative_of), getattr(compiled, quantity.by_third)
    q, v, third = states.inputs(quantity)
    size = max(1, min(len(q), DIFFERENCE_SAMPLES // (4 * n)))
    steps = STEP * np.concatenate([np.eye(n), -np.eye(n)])
    by_q, by_v, by_third = results = states.results(quantity, size=size)

    def slope(y: Array) -> Array:
        return ((y[:, :n] - y[:, n:]) / (2 * STEP)).swapaxes(1, 2)

    def run(count: int) -> None:
        q_, v_, third_ = q[:count, None], v[:count, None], third[:count, None]
        by_q[:count] = slope(value(compiled.integrate(q_, steps), v_, third_))
        by_v[:count] = slope(value(q_, v_ + steps, third_))
        matrix(q[:count], out=by_third[:count])

    return CheckedContender(name, run, size, whole=True, results=lambda: results, tolerance=APPROXIMATE)


MAKERS: dict[str, Maker] = {
    BATCH: batch,
    CACHED: cached,
    FLOATS: batch,
    LARGE: large,
    THREADS: large,
    SINGLE: single,
    FLOAT_STATE: single,
    BOUND: bound,
    REFERENCE: reference,
    PIN_LOOP: pinocchio_loop,
    PIN_CALL: pinocchio_call,
    MUJOCO: mujoco_loop,
    DIFFERENCES: differences,
}
WAYS = tuple(MAKERS)
