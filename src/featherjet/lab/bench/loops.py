"""What a loop around the dynamics calls: configurations, frames and the regressor, featherjet's beside Pinocchio's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...model.model import Array
from ...robot.robot import Robot
from .checking import CheckedContender, States, check
from .contenders import BATCH, BOUND, PIN_CALL, PIN_LOOP, SINGLE
from .peers import NotAvailable, peer, to_pinocchio
from .robots import Entrant
from .run import summary
from .timing import TimingSettings, measure

Call = Callable[..., Any]
TOLERANCE = 1e-8  # of the largest entry; of small turns Pinocchio itself is off by 1e-9
WAYS = (BATCH, SINGLE, BOUND, PIN_LOOP, PIN_CALL)


@dataclass(frozen=True)
class LoopCall:
    """A call of `Robot`: the names of its inputs, the quantity to bind, and Pinocchio's function of the same inputs."""

    name: str
    label: str
    inputs: tuple[str, ...]
    quantity: str
    pinocchio: Callable[[Any, Any, Any, int], Call]  # of the module, model, data and frame
    of_frame: bool = False


def _integrate(pin: Any, model: Any, data: Any, frame: int) -> Call:
    return lambda q, v: pin.integrate(model, q, v)


def _difference(pin: Any, model: Any, data: Any, frame: int) -> Call:
    return lambda q, q1: pin.difference(model, q, q1)


def _jacobians(pin: Any, model: Any, data: Any, frame: int) -> Call:
    return lambda q, v: pin.dIntegrate(model, q, v)


def _placement(pin: Any, model: Any, data: Any, frame: int) -> Call:
    def call(q: Array) -> Any:
        pin.framesForwardKinematics(model, data, q)
        return data.oMf[frame].homogeneous

    return call


def _jacobian(pin: Any, model: Any, data: Any, frame: int) -> Call:
    return lambda q: pin.computeFrameJacobian(model, data, q, frame)


def _regressor(pin: Any, model: Any, data: Any, frame: int) -> Call:
    return lambda q, v, a: pin.computeJointTorqueRegressor(model, data, q, v, a)


CALLS = (
    LoopCall("integrate", "integrate", ("q", "v"), "integrate", _integrate),
    LoopCall("difference", "difference", ("q", "q1"), "difference", _difference),
    LoopCall("integrate_jacobians", "its Jacobians", ("q", "v"), "integrate_jacobians", _jacobians),
    LoopCall("frame_placement", "placement", ("q",), "frame_placement", _placement, True),
    LoopCall("frame_jacobian", "frame Jacobian", ("q",), "jacobian", _jacobian, True),
    LoopCall("torque_regressor", "regressor", ("q", "v", "a"), "torque_regressor", _regressor),
)


def race(
    entrant: Entrant, settings: TimingSettings, tick: Callable[[], object] = lambda: None, seed: int = 0
) -> dict[str, Any]:
    """Times of one robot: {"title", ..., "frame", "quantities": {call: {"ways": {name: ...}}}}."""
    robot = Robot(entrant.robot.model, backend="compiled", threads=1)
    states = States.random(robot, entrant.batch, seed)
    given = {"q": states.q, "v": states.v, "a": states.a, "q1": np.roll(states.q, 1, axis=0)}
    frame = outermost(robot)
    report = {}
    for call in CALLS:
        contenders = ours(robot, call, [given[name] for name in call.inputs], frame)
        missing = {}
        try:
            contenders += theirs(robot, call, [given[name] for name in call.inputs], frame)
        except NotAvailable as reason:
            missing = dict.fromkeys((PIN_LOOP, PIN_CALL), str(reason))
        errors = check(contenders, states)
        times, quiet = measure(contenders, settings, tick)
        ways = summary(times, errors)
        if PIN_CALL in times:  # of one state, beside Pinocchio's own call
            for way in (SINGLE, BOUND):
                ways[way]["ratio"] = summary({PIN_LOOP: times[PIN_CALL], way: times[way]}, {})[way]["ratio"]
        report[call.name] = {"quiet": quiet, "ways": ways, "missing": missing}
    return {"title": entrant.title, "frame": frame, "batch": entrant.batch, "quantities": report}


def outermost(robot: Robot) -> str:
    """The last frame on the body with the longest path to the root."""
    tree = robot.evaluator.tree
    return max(reversed(robot.model.frames), key=lambda f: len(tree.path(f.joint))).name


def ours(robot: Robot, call: LoopCall, inputs: Sequence[Array], frame: str) -> list[CheckedContender]:
    compute: Call = getattr(robot, call.name)
    if call.of_frame:
        compute = partial(compute, frame=frame)
    first = [x[0].copy() for x in inputs]
    results = packed(compute(*inputs))
    out = results[0] if len(results) == 1 else results
    step = robot.bind(call.quantity, frame=frame if call.of_frame else None)
    pairs = [(getattr(step, name), x) for name, x in zip(step.inputs, first, strict=True)]
    last: list[Any] = [None]

    def batch(_: int) -> None:
        compute(*inputs, out=out)

    def single(n: int) -> None:
        for _ in range(n):
            last[0] = compute(*first)

    def bound(n: int) -> None:
        for _ in range(n):
            for buffer, x in pairs:
                buffer[:] = x
            step()

    def results_now() -> tuple[Array, ...]:
        return tuple(getattr(step, k) for k in step.results)

    return [
        CheckedContender(BATCH, batch, len(inputs[0]), whole=True, results=lambda: compared(call, results)),
        CheckedContender(SINGLE, single, 1 << 20, results=lambda: compared(call, one(packed(last[0])))),
        CheckedContender(BOUND, bound, 1 << 20, results=lambda: compared(call, one(results_now()))),
    ]


def theirs(robot: Robot, call: LoopCall, inputs: Sequence[Array], frame: str) -> list[CheckedContender]:
    pin = peer("pinocchio")
    model = to_pinocchio(robot.model)
    compute = call.pinocchio(pin, model, model.createData(), model.getFrameId(frame))
    rows = list(zip(*inputs, strict=True))
    stored = tuple(np.full((len(rows), *np.shape(x)), np.nan) for x in packed(compute(*rows[0])))
    first, last = [x[0].copy() for x in inputs], [None]

    def loop(count: int) -> None:
        store = stored[0]
        for k in range(count):
            store[k] = compute(*rows[k])

    def loop_of_two(count: int) -> None:
        store, other = stored
        for k in range(count):
            store[k], other[k] = compute(*rows[k])

    def single(count: int) -> None:
        for _ in range(count):
            last[0] = compute(*first)

    run, n = loop if len(stored) == 1 else loop_of_two, len(rows)
    return [
        CheckedContender(PIN_LOOP, run, n, results=lambda: compared(call, stored), tolerance=TOLERANCE),
        CheckedContender(
            PIN_CALL, single, 1 << 20, results=lambda: compared(call, one(packed(last[0]))), tolerance=TOLERANCE
        ),
    ]


def packed(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def one(results: Sequence[Array]) -> tuple[Array, ...]:
    """Results of one state as those of a batch."""
    return tuple(np.asarray(x)[None] for x in results)


def compared(call: LoopCall, results: tuple[Array, ...]) -> tuple[Array, ...]:
    """What must be equal: a quaternion and its opposite are the same configuration."""
    return tuple(map(np.abs, results)) if call.name == "integrate" else results
