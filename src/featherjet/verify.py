"""Independent derivatives of your robot's quantities: by complex step and by central differences, on q's manifold.

Complex step evaluates a quantity at integrate(q, i h e_k) and takes the imaginary part. It is exact to rounding, since
all of featherjet's algorithms are analytic and it subtracts nothing. Both work for any quantity without options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import arrays
from .algorithms.quantities import FEXT, QUANTITIES, Input, Q, Quantity
from .errors import InputError, UnknownName
from .model.model import Array
from .robot import Robot

STEP = 1e-30

# The derivatives that `check` verifies, by name: (quantity, input to differentiate by)
CHECKED: dict[str, tuple[Quantity, str]] = {
    result.name: (record.base, by)
    for record in (QUANTITIES["inverse_dynamics_derivatives"], QUANTITIES["forward_dynamics_derivatives"])
    if record.base is not None
    for result, by in zip(record.results, record.by, strict=True)
}
# Second derivatives that `check` verifies: (Hessian, result of the gradient to differentiate, by, transposed)
SECOND: dict[str, tuple[Quantity, int, str, bool]] = {
    f"{y}_{result.name}": (record, k, by, turned)
    for y, of in (("tau", "inverse_dynamics"), ("a", "forward_dynamics"))
    for record in (QUANTITIES[f"{of}_hessian"],)
    for result, (k, by, turned) in zip(
        record.results, ((0, "q", False), (1, "q", True), (1, "v", False), (2, "q", True)), strict=True
    )
}


def complex_step(robot: Robot, quantity: str, by: str, **inputs: object) -> Array:
    """The derivative of a quantity by one of its inputs, (..., *shape of the quantity, n), by complex step.

    >>> complex_step(robot, "inverse_dynamics", "q", q=q, v=v, a=a)      # (..., nv, nv): dtau_dq

    A derivative by q has nv columns, in the tangent space of q. If a quantity has several results, such as
    inverse_dynamics_derivatives, this differentiates the first.
    """
    return complex_steps(robot, quantity, by, **inputs)[0]


def complex_steps(robot: Robot, quantity: str, by: str, **inputs: object) -> list[Array]:
    """The same for each result of the quantity."""
    given, record = _checked(robot, quantity, by, inputs), QUANTITIES[quantity]
    moved = _moved(robot, record.input(by), given[by], 1j * STEP)
    results = robot.evaluator.reference(quantity, given | {by: moved})[: len(record.results)]
    return [np.moveaxis(np.imag(r) / STEP, 0, -1) for r in results]


def central_difference(robot: Robot, quantity: str, by: str, *, step: float = 1e-6, **inputs: object) -> Array:
    """The same by central differences: less accurate, but without complex numbers."""
    _check_step(step)
    given = _checked(robot, quantity, by, inputs)
    moved = [given | {by: _moved(robot, QUANTITIES[quantity].input(by), given[by], h)} for h in (step, -step)]
    ends = [robot.evaluator.reference(quantity, inputs)[0] for inputs in moved]
    return np.moveaxis((ends[0] - ends[1]) / (2 * step), 0, -1)


def differentiate(robot: Robot, f: Callable[[Array], Array], q: object, *, step: float = 1e-6) -> Array:
    """Central differences (..., nv), on the manifold, of your own function of q, (..., nq) -> (...)."""
    _check_step(step)
    at = robot.evaluator.checked_q("q", q)
    ends = [np.asarray(f(_moved(robot, Q, at, h))) for h in (step, -step)]
    return np.moveaxis((ends[0] - ends[1]) / (2 * step), 0, -1)


class Finding(NamedTuple):
    """The worst error of one derivative, relative to its largest entry in the same sample."""

    quantity: str
    error: float
    sample: int


def check(
    robot: Robot, *, samples: int = 4, seed: int = 0, fext: bool = True, forward: bool = True, order: int = 1
) -> list[Finding]:
    """Compare all derivatives of a robot's dynamics with complex step, at random states.

    order=2 also compares Hessians, contracted with random vectors, with complex step of gradients. forward=False
    leaves forward dynamics out; with it, a singular mass matrix raises SingularMassMatrix.
    """
    if not isinstance(robot, Robot):
        raise InputError(f"check: expected a robot first, such as fj.load(...), got {type(robot).__name__}")
    if samples < 1:
        raise InputError(f"samples: expected at least one, got {samples!r}")
    if order not in (1, 2):
        raise InputError(f"order: expected 1 or 2, got {order!r}")
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, samples)
    v, a = rng.normal(size=(2, samples, robot.nv))
    state: dict[str, Any] = {"q": q, "v": v}
    if fext:
        state["fext"] = rng.normal(size=(samples, robot.njoints, 6))
    tau = robot.inverse_dynamics(a=a, **state)
    given, values = {**state, "a": a, "tau": tau}, {"inverse_dynamics": tau, "forward_dynamics": a}
    got = robot.inverse_dynamics_derivatives(a=a, **state)._asdict()
    if forward:
        got |= robot.forward_dynamics_derivatives(tau=tau, **state)._asdict()
    found = []
    for name, x in got.items():
        base, by = CHECKED[name]
        inputs = {i.name: given[i.name] for i in (*base.inputs, *base.optional) if i.name in given}
        found.append(_finding(name, x, complex_step(robot, base.name, by, **inputs), values[base.name]))
    return found + (_second_order(robot, given, rng, forward) if order == 2 else [])


def _second_order(robot: Robot, given: Mapping[str, Any], rng: np.random.Generator, forward: bool) -> list[Finding]:
    """The errors of Hessians contracted with random vectors."""
    w = rng.normal(size=given["v"].shape)
    found = []
    for of in ("inverse_dynamics", "forward_dynamics")[: 2 if forward else 1]:
        record = QUANTITIES[f"{of}_hessian"]
        known = {**given, "w": w}
        inputs = {i.name: known[i.name] for i in (*record.inputs, *record.optional) if i.name in known}
        got = robot.evaluator.run(record.name, [inputs[i.name] for i in record.inputs], inputs.get(FEXT.name))
        gradient = robot.vjp(of, *(inputs[i.name] for i in record.inputs), fext=inputs.get(FEXT.name))
        names = [name for name, row in SECOND.items() if row[0] is record]
        steps = {by: complex_steps(robot, f"{of}_force_vjp", by, **inputs) for by in ("q", "v")}
        for name, x in zip(names, got, strict=True):
            _, k, by, turned = SECOND[name]
            true = steps[by][k].swapaxes(-1, -2) if turned else steps[by][k]
            found.append(_finding(name, x, true, gradient[k]))
    return found


def _finding(name: str, got: Array, true: Array, value: Array) -> Finding:
    """The error of a derivative. One that (nearly) vanishes is measured against the value, the only scale there."""
    scale = np.maximum(np.abs(true).max((1, 2)), 1e-3 * np.abs(value).max(1))
    error = np.abs(got - true).max((1, 2)) / np.maximum(scale, np.finfo(float).tiny)
    worst = int(np.argmax(error))
    return Finding(name, float(error[worst]), worst)


def _check_step(step: float) -> None:
    if not isinstance(step, (int, float)) or not 0 < step < 1:
        raise InputError(f"step: expected a number between 0 and 1, got {step!r}")


def _checked(robot: Robot, name: str, by: str, inputs: Mapping[str, object]) -> dict[str, Array]:
    known = [x.name for x in QUANTITIES.values() if not x.options]
    if name not in known:
        raise UnknownName("quantity", name, known)
    record, evaluator = QUANTITIES[name], robot.evaluator
    evaluator.refuse_massless(record)
    needed = [i.name for i in record.inputs]
    given = {name: x for name, x in inputs.items() if x is not None}
    if by == FEXT.name:
        raise InputError("by: cannot differentiate by fext; use q, v, a or tau")
    if by not in needed:
        raise UnknownName(f"input of {name} to differentiate by", by, needed)
    if {*given} - {FEXT.name} != {*needed} or (FEXT.name in given and not record.forces):
        takes = f"{', '.join(needed)}{' and fext' if record.forces else ''}"
        raise InputError(f"{name} takes {takes}; got {', '.join(given)}")
    out = evaluator.inputs.all(record, [given[k] for k in needed], given.get(FEXT.name))
    if record.margins:
        evaluator.refuse_singular(name, out)
    batch = arrays.common_batch({k: (x, len(record.input(k).axes)) for k, x in out.items()})
    return out | {by: np.broadcast_to(out[by], (*batch, out[by].shape[-1]))}


def _moved(robot: Robot, given: Input, x: Array, h: complex) -> Array:
    """x moved by h along each direction, those of the tangent space for configurations, (directions, ..., n)."""
    n = robot.nv if given.axes == ("q",) else x.shape[-1]
    directions = h * np.eye(n).reshape(n, *(1 for _ in x.shape[:-1]), n)
    if given.axes != ("q",):
        return x + directions
    return robot.evaluator.moved(x, directions)
