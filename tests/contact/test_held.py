"""Compiled contacts, whose held frames are data: one piece of code for all contacts, against the reference."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import SingularContacts
from featherjet.jit import library
from held_contacts import TREE, draw
from helpers import agree

TOLERANCE = 1e-9  # conditions of M and G


def everything(robot: fj.Robot, contacts: fj.Contacts, q, v, tau, fext) -> dict[str, np.ndarray]:
    """All quantities with contacts, by name."""
    found = {}
    forces = np.linspace(-1, 1, contacts.rows)
    for name, results in {
        "constrained": robot.constrained_dynamics(q, v, tau, contacts, fext),
        "without fext": robot.constrained_dynamics(q, v, tau, contacts),
        "derivatives": robot.constrained_dynamics_derivatives(q, v, tau, contacts, fext),
        "impulse": robot.impulse_dynamics(q, v, contacts, 0.3),
        "impulse derivatives": robot.impulse_dynamics_derivatives(q, v, contacts, 0.3),
        "vjp": robot.vjp("constrained_dynamics", q, v, tau, v, forces, contacts=contacts, fext=fext),
        "jvp": robot.jvp("constrained_dynamics", q, v, tau, tau, tau, v, contacts=contacts, fext=fext),
        "impulse vjp": robot.vjp("impulse_dynamics", q, v, tau, forces, contacts=contacts, restitution=0.3),
        "impulse jvp": robot.jvp("impulse_dynamics", q, v, tau, tau, contacts=contacts, restitution=0.3),
        "inverse": robot.contact_inverse_dynamics(q, v, tau, contacts, forces, fext),
        "jacobian": (robot.contact_jacobian(q, contacts),),
    }.items():
        names = getattr(results, "_fields", range(len(results)))
        found |= {f"{name} {part}": x for part, x in zip(names, results, strict=True)}
    return found


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("size", [(), (3, 7)])
def test_any_contacts_of_any_tree(closed: bool, size: tuple[int, ...]) -> None:
    """Batches that fill no vector, and single states, on a tree of all joints."""
    rng = np.random.default_rng(1)
    compiled, plain = fj.Robot(TREE, backend="compiled"), fj.Robot(TREE, backend="numpy")
    for _ in range(6):
        contacts = draw(plain, rng, closed)
        q = plain.random_configuration(rng, size=size or None)
        v, tau = rng.normal(size=(2, *size, plain.nv))
        fext = rng.normal(size=(plain.njoints, 6))
        found, expected = (everything(r, contacts, q, v, tau, fext) for r in (compiled, plain))
        for name, x in expected.items():
            agree(found[name], x, TOLERANCE, f"{name} with {contacts.held}", 1e-3)


def test_other_frames_and_places_compile_nothing() -> None:
    """Which frames are held, where, how stiffly and how many: data. A robot that walks never compiles."""
    robot = fj.load("quadruped", backend="compiled")
    q, v = robot.random_configuration(0), np.ones(robot.nv)
    feet = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
    first = fj.Contacts(robot, [fj.PointContact(feet[0])])

    def run(contacts: fj.Contacts) -> None:
        robot.constrained_dynamics(q, v, v, contacts)
        robot.constrained_dynamics_derivatives(q, v, v, contacts)
        robot.impulse_dynamics(q, v, contacts, 0.1)

    run(first)
    before = set(library._loaded)
    for held in ([fj.PointContact(f) for f in feet], [fj.SurfaceContact(feet[2], at=np.eye(4), axes="local")]):
        contacts = fj.Contacts(robot, held, baumgarte=(0.0, 2.0), damping=1e-3)
        run(contacts)
    assert set(library._loaded) == before


def test_code_is_forgotten_with_its_contacts() -> None:
    robot = fj.load("arm", backend="compiled")
    q, zero = robot.random_configuration(0), np.zeros(7)
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    a = robot.constrained_dynamics(q, zero, zero, contacts).a
    again = pickle.loads(pickle.dumps(contacts))
    assert robot.evaluator.ready.contacts == 1
    assert again.names == contacts.names
    assert not again.ready
    agree(robot.constrained_dynamics(q, zero, zero, contacts).a, a, 0.0, "the second call, by a direct call")
    del contacts
    gc.collect()
    assert robot.evaluator.ready.contacts == 0


def test_singular_contacts_are_refused() -> None:
    """Also from the second call on, which takes the direct way."""
    robot = fj.load("arm", backend="compiled")
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    zero = np.zeros(robot.nv)
    for q in (robot.random_configuration(0), robot.random_configuration(1)):
        robot.constrained_dynamics(q, zero, zero, contacts)
    for q in (robot.neutral(), np.stack([robot.neutral()] * 2)):
        with pytest.raises(SingularContacts, match="no force at 'tool'"):
            robot.constrained_dynamics(q, zero + 1.0, zero, contacts)
        with pytest.raises(SingularContacts, match=r"there are no derivatives.*'tool'"):
            robot.constrained_dynamics_derivatives(q, zero, zero, contacts)


def test_batches_threads_and_results_of_any_layout() -> None:
    """Bit for bit the same on any number of threads; into arrays whose rows are not contiguous; in other precisions."""
    robot = fj.Robot(TREE, backend="compiled", threads=1)
    rng = np.random.default_rng(3)
    contacts = draw(robot, rng, closed=False)
    q = robot.random_configuration(rng, size=300)
    v, tau = rng.normal(size=(2, 300, robot.nv))
    expected = robot.constrained_dynamics_derivatives(q, v, tau, contacts)
    robot.evaluator.threads = 3
    out = tuple(np.empty((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2] for x in expected)
    robot.constrained_dynamics_derivatives(q, v, tau, contacts, out=out)
    for found, strided, x in zip(
        robot.constrained_dynamics_derivatives(q, v, tau, contacts), out, expected, strict=True
    ):
        assert np.array_equal(found, x)
        assert np.array_equal(strided, x)
    one = robot.constrained_dynamics_derivatives(q[17], v[17], tau[17], contacts)
    for x, y in zip(one, expected, strict=True):
        agree(x, y[17], 1e-11, floor=1e-3)
