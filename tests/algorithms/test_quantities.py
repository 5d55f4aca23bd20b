"""The records: what they say of inputs and results is what algorithms take and give, on every robot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import featherjet as fj
from featherjet import verify
from featherjet.algorithms.dynamics import rnea
from featherjet.algorithms.quantities import QUANTITIES, VV, Q, Quantity, Result, V, sizes
from featherjet.algorithms.scan import Scan
from helpers import agree, every_kind, frame_of, random_state

RECORDS = list(QUANTITIES.values())


def mimicking() -> fj.Robot:
    return fj.load("panda", mimic=True, backend="numpy")


class Case(NamedTuple):
    robot: fj.Robot
    options: dict
    inputs: dict[str, np.ndarray]


def case(record: Quantity, robot: fj.Robot, batch: int = 2) -> Case:
    s = random_state(robot, batch)
    contacts = fj.Contacts(robot, [fj.PointContact(robot.joint_names[-1])])
    known = {"viewpoint": "local", "contacts": contacts.core}
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a, "weights": s.a, "fext": s.fext}
    given |= {"w": s.v, "dq": s.a, "dv": s.v, "da": s.a, "dtau": s.v, "dfext": s.fext}
    given |= {"ddv": s.v, "dq0": s.v, "dq1": s.a}
    given |= {"q0": s.q, "q1": s.q[::-1], "t": np.full((batch, 1), 0.3)}
    given |= {"frame": np.stack([frame_of(robot, name)["frame"] for name in robot.frame_names[-batch:]])}
    given |= {name: np.ones((batch, 3)) for name in ("forces", "w_forces", "w_impulses")}
    given |= {"w_a": s.v, "w_v": s.v, "restitution": np.full((batch, 1), 0.5)}
    inputs = {i.name: given[i.name] for i in record.inputs} | ({"fext": s.fext} if record.forces else {})
    return Case(robot, {name: known[name] for name in record.options}, inputs)


@pytest.mark.parametrize("make", [lambda: every_kind(3, 6), mimicking], ids=["every kind", "mimic"])
@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_inputs_and_results_have_the_shapes_of_the_record(record, make):
    c = case(record, make())
    size = sizes(c.robot.evaluator.tree, c.options.get("contacts"))
    found = c.robot.evaluator.reference(record, c.inputs, **c.options)
    shapes = [x.shape for x in found]
    assert shapes[: len(record.results)] == [(2, *shape) for shape in record.result_shapes(size)]
    assert len(shapes) == len(record.results) + len(record.margins)
    given = record.input_shapes(list(c.inputs), size)
    assert {name: x.shape[1:] for name, x in c.inputs.items()} == given


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_records_agree_with_themselves(record):
    names = [r.name for r in record.results]
    assert len(set(names)) == len(names)
    assert QUANTITIES[record.name] is record
    assert record.rolled <= (record.cost is not None), "shared code is chosen by its cost"
    if record.returns is not None:
        assert list(record.packed(list(range(len(names))))._fields) == names
    if record.base is not None:
        assert len(record.results) == len(record.base.results) * len(record.by)
        for k, r in enumerate(record.results):
            assert r.axes == (*record.base.results[k // len(record.by)].axes, "v")
    for method in record.methods.values():
        assert method.quantity == record.name


def test_users_get_named_results():
    robot = every_kind(3, 6)
    for record in RECORDS:
        if record.returns and hasattr(fj.Robot, record.name) and not record.options:
            c = case(record, robot)
            found = getattr(robot, record.name)(**c.inputs)
            assert type(found).__name__ == type(record.packed(found)).__name__


# Adding a quantity is one record and one algorithm


def power(scan: Scan, q, v):
    """What gravity does to each dof, and the dyad of both: v g (nv,), v g^T (nv, nv)."""
    g = rnea.gravity(scan, q)
    return v * g, v[:, None] * g[None]


@pytest.fixture
def added(monkeypatch) -> Quantity:
    record = Quantity("power", "v g and v g^T", (Q, V), (Result("vg", ("v",)), Result("dyad", VV)), power)
    monkeypatch.setitem(QUANTITIES, "power", record)
    return record


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_an_added_quantity_is_everywhere(added, backend):
    robot = fj.Robot(fj.models.arm(), backend=backend)
    s = random_state(robot, 5)
    g = robot.gravity(s.q)
    vg, dyad = robot.evaluator("power", s.q, s.v)
    agree(vg, s.v * g, 1e-13)
    agree(dyad, s.v[..., None] * g[:, None], 1e-13)
    by_q = s.v[..., None] * robot.gravity_derivatives(s.q)
    agree(verify.complex_step(robot, "power", "q", q=s.q, v=s.v), by_q, 1e-12)
    agree(fj.autodiff(robot, "power")(s.q, s.v)[0], by_q, 1e-12)
    step = robot.bind("power")
    step.q, step.v = s.q[0], s.v[0]
    step()
    agree(step.dyad, dyad[0], 1e-13)
    with pytest.raises(fj.errors.InputError, match="expected shape"):
        robot.evaluator("power", s.q, s.v[:, :3])


def test_an_added_quantity_speaks_every_convention(added):
    """B^T along each axis over dofs: here that of a dyad, which is what it should be."""
    robot = fj.load("quadruped", backend="numpy")
    own = robot.with_convention("drake")
    s = random_state(own, 3)
    _, dyad = own.evaluator("power", s.q, s.v)
    agree(dyad, s.v[..., None] * own.gravity(s.q)[:, None], 1e-12)
