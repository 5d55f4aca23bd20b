"""Walks over contacts on plain numbers, their definition, against dense matrices and against compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.contacts.contact_scan import ContactScan
from featherjet.algorithms.quantities import QUANTITIES, Quantity
from featherjet.algorithms.record import FEXT
from featherjet.evaluate.reference import leading, trailing
from featherjet.treejit.held import ContactCompiler, ContactProgram
from held_contacts import TREE, draw
from helpers import agree

TOLERANCE = 1e-9  # conditions of M and G
SAMPLES = 5
PLAIN = fj.Robot(TREE, backend="numpy")
RECORDS = [x for x in QUANTITIES.values() if x.held is not None]


def drawn(record: Quantity, contacts: fj.Contacts, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Inputs of a quantity for some samples."""
    sizes = {"q": PLAIN.nq, "v": PLAIN.nv, "rows": contacts.rows, "joints": PLAIN.njoints}
    names = [i.name for i in (*record.inputs, *((FEXT,) if record.forces else ()))]
    found = {}
    for name in names:
        axes = FEXT.axes if name == "fext" else record.input(name).axes
        found[name] = rng.normal(size=(SAMPLES, *(sizes.get(str(a), a) for a in axes)))
    return found | {"q": PLAIN.random_configuration(rng, size=SAMPLES)}


def walked(algorithm: Callable[..., Any], contacts: fj.Contacts, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of an algorithm on a ContactScan."""
    scan = ContactScan(PLAIN.evaluator.tree, contacts.core, (SAMPLES,))
    inputs = {name: trailing(x, x.ndim - 1, (SAMPLES,)) for name, x in given.items()}
    results = algorithm(scan, **inputs)
    return [leading(x, 1) for x in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("record", [x for x in RECORDS if x.base is None], ids=lambda x: x.name)
def test_walks_compute_what_matrices_do(record: Quantity, closed: bool) -> None:
    rng = np.random.default_rng(4)
    assert record.held is not None
    for _ in range(2):
        contacts = draw(PLAIN, rng, closed)
        given = drawn(record, contacts, rng)
        fext = {"fext": given["fext"]} if "fext" in given else {}
        inputs = {name: x for name, x in given.items() if name != "fext"}
        expected = PLAIN.evaluator(record.name, *inputs.values(), **fext, contacts=contacts.core)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = walked(record.held, contacts, given)
        for result, x, y in zip(record.results, found, expected, strict=False):
            agree(x, y, TOLERANCE, f"{result.name} with {contacts.held}", 1e-3)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("name", ["constrained_dynamics_derivatives", "impulse_dynamics_derivatives"])
def test_slopes_are_those_of_code(name: str, closed: bool) -> None:
    """The stage of derivatives that contacts add: forces on bodies, the entries of rows, and the factor of G."""
    rng, compiled = np.random.default_rng(5), fj.Robot(TREE, backend="compiled").evaluator
    record, contacts = QUANTITIES[name], draw(PLAIN, rng, closed)
    assert record.held is not None
    given = drawn(record, contacts, rng)
    compiler = ContactCompiler(
        compiled.tree, compiled.compiler.tables, lambda _: None, compiled.compiler.target, contacts.core  # type: ignore[arg-type,return-value]
    )  # fmt: skip
    inputs = {i: FEXT.axes if i == "fext" else record.input(i).axes for i in given}
    results = {"on bodies": ("joints", 6), "entries": ("entries", 24 if closed else 12), "factor": ("factor",)}
    kernel = compiler.rolled(ContactProgram(name, record.held, inputs, results, True))
    expected, _ = kernel(list(given.values()), None, 1)
    found = walked(record.held, contacts, given)
    n = contacts.rows
    lower = np.concatenate([np.tril(np.ones((n, n), bool)).ravel(), np.ones(n, bool)])
    for x, y, part in zip(found, expected, (..., ..., (slice(None), lower)), strict=False):
        agree(x[part], y[part], TOLERANCE, f"{contacts.held}", 1e-3)
