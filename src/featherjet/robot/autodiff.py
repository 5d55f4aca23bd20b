"""`autodiff`: the derivative of anything a robot computes, by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algorithms.quantities import FEXT, FRAME, QUANTITIES
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.differentiation import differentiated
from ..evaluate.frames import FrameName, Viewpoint
from ..jit.autodiff import MODES
from .robot import Robot


def autodiff(
    robot: Robot,
    quantity: str,
    *,
    by: str = "q",
    mode: str = "auto",
    frame: FrameName | None = None,
    viewpoint: Viewpoint = "local",
) -> Callable[..., Any]:
    """The derivative (..., *shape, nv) of anything a robot computes, as a function of the same inputs.

    `fj.autodiff(robot, "kinetic_energy", by="v")(q, v)`. A derivative by q has columns in its tangent space; one by
    fext has two axes (njoints, 6). A quantity with several results has several derivatives. `frame` and `viewpoint` are
    for quantities of a frame. mode: "forward", "reverse", or "auto", whichever takes fewer operations.
    """
    evaluator = robot.evaluator
    if evaluator.coordinates is not None:
        raise InputError(
            f"autodiff is not available in the convention {robot.convention!r}; use robot.with_convention('pinocchio')"
        )
    evaluator.refuse_laws("autodiff")
    known = {k: x for k, x in QUANTITIES.items() if set(x.options) <= {"viewpoint"}}
    if not isinstance(quantity, str) or quantity not in known:
        raise UnknownName("quantity", quantity, known)
    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    record = known[quantity]
    evaluator.refuse_massless(record)
    needed = [i.name for i in record.inputs if i is not FRAME]
    inputs = [*needed, *(i.name for i in record.optional)]
    if by not in inputs:
        raise UnknownName(f"input of {quantity}", by, inputs)
    if (FRAME in record.inputs) != (frame is not None):
        raise InputError(f"{quantity} {'needs a frame' if frame is None else 'takes no frame'}")
    place = [] if frame is None else [frames.numbers(evaluator, frame)[0]]
    options = {"viewpoint": frames.checked_viewpoint(viewpoint)} if record.options else {}
    key = quantity, by, mode
    derived = evaluator.derived.setdefault(key, differentiated(robot.model, record, by, mode))

    def derivative(*given: Any, **named: Any) -> Any:
        values = {k: x for k, x in (dict(zip(inputs, given, strict=False)) | named).items() if x is not None}
        if len(given) > len(inputs) or not {*needed, by} <= {*values} <= {*inputs}:
            raise InputError(f"derivative of {quantity} by {by}: takes {', '.join(inputs)}; got {', '.join(values)}")
        results = evaluator.run(derived, [*(values[k] for k in needed), *place], values.get(FEXT.name), **options)
        if by == FEXT.name:
            results = tuple(r.reshape(*r.shape[:-1], robot.njoints, 6) for r in results)
        return results[0] if len(results) == 1 else results

    return derivative
