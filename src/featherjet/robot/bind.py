"""Binds a quantity of a robot, with its contacts, frame, forces and method, to fixed buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.quantities import FRAME, QUANTITIES, SETTINGS, Quantity
from ..arrays import Out
from ..contact import Contacts
from ..contact import dynamics as contact
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.bound import Bound
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName


class Chosen(NamedTuple):
    """A quantity with what it takes besides arrays.

    options: of `Evaluator.run`. fixed: inputs that do not change, by name. run(quantity, given, fext, out) computes.
    """

    record: Quantity
    options: dict[str, Any]
    fixed: dict[str, np.ndarray]
    run: Callable[..., tuple[np.ndarray, ...]]


def chosen(
    verb: str,
    evaluator: Evaluator,
    quantity: str,
    contacts: Contacts | None,
    frame: FrameName | None,
    viewpoint: str,
    method: str,
) -> Chosen:
    """A quantity by name; raises if something it takes is missing, or something is given that it does not take."""
    if not isinstance(quantity, str) or quantity not in QUANTITIES:
        raise UnknownName(f"quantity to {verb}", quantity, QUANTITIES)
    record = QUANTITIES[quantity]
    for article, what, needed, given in (
        ("", "contacts", "contacts" in record.options, contacts is not None),
        ("a ", "frame", FRAME in record.inputs, frame is not None),
    ):
        if needed != given:
            raise InputError(f"{verb}: {quantity} {f'needs {article}{what}' if needed else f'takes no {what}'}")
    if method != "auto" and not record.methods:
        raise InputError(f"{verb}: {quantity} has no methods to choose from")
    options: dict[str, Any] = {"method": method} if method != "auto" else {}
    if "viewpoint" in record.options:
        options["viewpoint"] = frames.checked_viewpoint(viewpoint)
    fixed = {} if frame is None else {FRAME.name: frames.numbers(evaluator, frame)[0]}
    run = partial(_run, evaluator, dict(options))
    if contacts is not None:
        held, settings = contact.options_of(evaluator, contacts)
        options |= held
        fixed |= {} if settings is None else {SETTINGS.name: settings}
        run = partial(_run_held, evaluator, contacts)
    return Chosen(record, options, fixed, run)


def bind(
    evaluator: Evaluator,
    quantity: str,
    fext: bool,
    contacts: Contacts | None,
    frame: FrameName | None,
    viewpoint: str,
    method: str,
) -> Bound:
    """See `Robot.bind`."""
    _, options, fixed, run = chosen("bind", evaluator, quantity, contacts, frame, viewpoint, method)
    again = bind, (evaluator, quantity, fext, contacts, frame, viewpoint, method)
    return Bound(evaluator, quantity, fext, options, fixed, run, again)


def _run(
    evaluator: Evaluator, options: dict[str, Any], quantity: str, given: tuple, fext: Any, out: Out
) -> tuple[np.ndarray, ...]:
    return evaluator.run(quantity, given, fext, out, **options)


def _run_held(
    evaluator: Evaluator, contacts: Contacts, quantity: str, given: tuple, fext: Any, out: Out
) -> tuple[np.ndarray, ...]:
    return contact.run(evaluator, quantity, given, contacts, fext, out)
