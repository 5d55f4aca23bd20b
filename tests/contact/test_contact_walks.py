"""Walks over contacts on plain numbers, their definition, against dense matrices and against compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.contacts import feet as feet_laws
from featherjet.algorithms.contacts.contact_scan import ContactScan
from featherjet.algorithms.quantities import QUANTITIES, Quantity
from featherjet.algorithms.record import FEXT
from featherjet.evaluate.reference import leading, trailing
from featherjet.simulation.engine import Compiled
from featherjet.treejit.held import ContactCompiler, ContactProgram
from held_contacts import TREE, draw
from helpers import agree

TOLERANCE = 1e-9  # conditions of M and G
SAMPLES = 5
PLAIN = fj.Robot(TREE, backend="numpy")
TREE_OF = PLAIN.evaluator.tree
RECORDS = [x for x in QUANTITIES.values() if x.contact_walk is not None]


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
    scan = ContactScan(TREE_OF, contacts.core, (SAMPLES,))
    inputs = {name: trailing(x, x.ndim - 1, (SAMPLES,)) for name, x in given.items()}
    results = algorithm(scan, **inputs)
    return [leading(x, 1) for x in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("record", [x for x in RECORDS if x.base is None], ids=lambda x: x.name)
def test_walks_compute_what_matrices_do(record: Quantity, closed: bool) -> None:
    rng = np.random.default_rng(4)
    assert record.contact_walk is not None
    for _ in range(2):
        contacts = draw(PLAIN, rng, closed)
        given = drawn(record, contacts, rng)
        fext = {"fext": given["fext"]} if "fext" in given else {}
        inputs = {name: x for name, x in given.items() if name != "fext"}
        expected = PLAIN.evaluator(record.name, *inputs.values(), **fext, contacts=contacts.core)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = walked(record.contact_walk, contacts, given)
        for result, x, y in zip(record.results, found, expected, strict=False):
            agree(x, y, TOLERANCE, f"{result.name} with {contacts.held}", 1e-3)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("name", ["constrained_dynamics_derivatives", "impulse_dynamics_derivatives"])
def test_slopes_are_those_of_code(name: str, closed: bool) -> None:
    """The stage of derivatives that contacts add: forces on bodies, the entries of rows, and the factor of G."""
    rng, compiled = np.random.default_rng(5), fj.Robot(TREE, backend="compiled").evaluator
    record, contacts = QUANTITIES[name], draw(PLAIN, rng, closed)
    assert record.contact_walk is not None
    given = drawn(record, contacts, rng)
    compiler = ContactCompiler(
        compiled.tree, compiled.compiler.tables, lambda _: None, compiled.compiler.target, contacts.core  # type: ignore[arg-type,return-value]
    )  # fmt: skip
    inputs = {i: FEXT.axes if i == "fext" else record.input(i).axes for i in given}
    results = {"on bodies": ("joints", 6), "entries": ("entries", 24 if closed else 12), "factor": ("factor",)}
    kernel = compiler.rolled(ContactProgram(name, record.contact_walk, inputs, results, True))
    expected, _ = kernel(list(given.values()), None, 1)
    found = walked(record.contact_walk, contacts, given)
    n = contacts.rows
    lower = np.concatenate([np.tril(np.ones((n, n), bool)).ravel(), np.ones(n, bool)])
    for x, y, part in zip(found, expected, (..., ..., (slice(None), lower)), strict=False):
        agree(x[part], y[part], TOLERANCE, f"{contacts.held}", 1e-3)


@pytest.mark.parametrize("stops", [(), (6, 9, 11)])
def test_time_steps_are_those_of_code(stops: tuple[int, ...]) -> None:
    """Velocities and percussions at feet and stops; heights and centres of feet; impacts."""
    rng, robot = np.random.default_rng(6), fj.Robot(TREE, backend="compiled")
    feet = [
        fj.Foot("wrist", radius=0.1, offset=(0.3, 0.1, 0)),
        fj.Foot("shin", radius=0.2),
        fj.Foot("base", offset=(0, 0.4, 0)),
    ]
    ground = fj.Ground(robot, feet, friction=rng.uniform(0.2, 1.5, 3), terrain=fj.Plane(rng.normal(size=3)))
    kernels = Compiled(robot.evaluator, ground, stops).kernels
    q, (v, mid, tau) = robot.random_configuration(rng, size=SAMPLES), rng.normal(size=(3, SAMPLES, robot.nv))
    soft, height = 0.1 * rng.uniform(size=(SAMPLES, robot.nv)), 1e-3 * rng.normal(size=(SAMPLES, 3))
    table, start = np.tile(ground.table(robot.evaluator, q), (SAMPLES, 1, 1)), rng.uniform(size=(SAMPLES, 9))
    h = np.full((SAMPLES, 1), 1e-2)
    given = [q, v, mid, tau, soft, table, height, start, h]
    if stops:
        given += [rng.uniform(size=(SAMPLES, 3, 3)) * [1e-3, 1e-3, 5.0], 0.1 * rng.uniform(size=(SAMPLES, 3, 2))]
    calls = {
        "approach": (feet_laws.approach, [q, v, table]),
        "centres": (feet_laws.centres, [q]),
        "compression": (partial(feet_laws.collide, feet_laws.Compression), [q, v, table, 0.0 * height, start, h]),
        "restitution": (partial(feet_laws.collide, feet_laws.Restitution), [q, v, table, 0.0 * height, start, h]),
        "strike": (feet_laws.strike, given),
    }
    scan = ContactScan(TREE_OF, ground.core, (SAMPLES,), stops=stops)
    for name, (algorithm, inputs) in calls.items():
        expected, _ = getattr(kernels, name)(inputs, None, 1)
        found = algorithm(scan, *(trailing(x, x.ndim - 1, (SAMPLES,)) for x in inputs))
        for k, (x, y) in enumerate(zip(found if isinstance(found, tuple) else (found,), expected, strict=False)):
            x = leading(x, 1)
            report = name != "approach" and y.shape[-1] == 4 and y.ndim == 2
            agree(x[:, 1::2] if report else x, y[:, 1::2] if report else y, 1e-9, f"{name} {k}", 1e-2)
        if stops and name == "strike":
            assert (np.abs(expected[-1]).max((0, 2)) > 0).all()
