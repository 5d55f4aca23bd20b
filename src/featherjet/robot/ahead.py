"""Compiles quantities of a robot before they are needed: `Robot.compile` and `featherjet compile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..algorithms.quantities import FEXT, QUANTITIES, SETTINGS
from ..contact import Contacts
from ..contact import dynamics as contact
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator


def defaults(contacts: bool = False) -> list[str]:
    """The quantities to compile if none are named: all without options and, given contacts, those of contacts."""
    return [k for k, x in QUANTITIES.items() if not x.options or (contacts and "contacts" in x.options)]


def tasks(
    evaluator: Evaluator, quantities: Sequence[str], fext: bool, contacts: Contacts | None, viewpoint: str
) -> list[tuple[str, Callable[[], None]]]:
    """(quantity, what compiles its code for one state and for batches) for each quantity."""
    found = []
    for name in quantities or defaults(contacts is not None):
        if name not in QUANTITIES:
            raise UnknownName("quantity to compile", name, QUANTITIES)
        record = evaluator.kernels.computing(QUANTITIES[name])
        if fext and not record.forces and quantities:
            raise InputError(f"fext: {name} takes no external forces")
        options: dict[str, Any] = {}
        names = [i.name for i in record.inputs] + ([FEXT.name] if fext and record.forces else [])
        if "viewpoint" in record.options:
            options["viewpoint"] = frames.checked_viewpoint(viewpoint)
        if "contacts" in record.options:
            if contacts is None:
                raise InputError(f"compile: {name} needs contacts")
            held, settings = contact.options_of(evaluator, contacts)
            options |= held
            names += [] if settings is None else [SETTINGS.name]
        found.append((name, partial(evaluator.prepare, record, names, options)))
    return found
