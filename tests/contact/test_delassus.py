"""The Delassus matrix and the inertia at contacts: against dense matrices, and against impulses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import ContactWarning, SingularContacts
from helpers import agree
from urdf_helpers import coupled_urdf

HELD = {
    "quadruped": [fj.PointContact("LF_foot"), fj.SurfaceContact("RH_foot", axes="local")],
    "humanoid": [fj.SurfaceContact("left_hand", other="right_hand", axes="local"), fj.PointContact("left_foot")],
}


def dense(robot: fj.Robot, q: np.ndarray, contacts: fj.Contacts) -> np.ndarray:
    J = robot.contact_jacobian(q, contacts)
    return J @ np.linalg.solve(robot.mass_matrix(q), np.swapaxes(J, -1, -2))


@pytest.mark.parametrize("backend", ["compiled", "numpy"])
@pytest.mark.parametrize("name", HELD)
def test_delassus_is_that_of_dense_matrices(name: str, backend: str) -> None:
    """In batches, of one state, into arrays; damping has no part in it."""
    robot = fj.load(name, backend=backend)
    contacts = fj.Contacts(robot, HELD[name], damping=0.1)
    q = robot.random_configuration(2, size=(3, 5))
    expected = dense(robot, q, contacts)
    agree(robot.delassus(q, contacts), expected, 1e-12)
    agree(robot.delassus(q[1, 2], contacts), expected[1, 2], 1e-12)
    out = np.empty((3, 5, 2 * contacts.rows, contacts.rows))[..., ::2, :]
    assert robot.delassus(q, contacts, out=out) is out
    agree(out, expected, 1e-12)
    agree(robot.contact_inertia(q, contacts, out=out) @ expected, np.broadcast_to(np.eye(9), expected.shape), 1e-10)


@pytest.mark.parametrize("backend", ["compiled", "numpy"])
def test_delassus_with_mimicking_joints(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "coupled.urdf"
    path.write_text(coupled_urdf())
    robot = fj.load(path, backend=backend, mimic=True)
    contacts = fj.Contacts(robot, [fj.PointContact(robot.frame_names[-1])])
    q = robot.random_configuration(0)
    agree(robot.delassus(q, contacts), dense(robot, q, contacts), 1e-12)


def test_inertia_is_what_an_impulse_meets() -> None:
    """An inelastic impact stops the contacts: impulses = -inertia J v."""
    robot = fj.load("quadruped")
    contacts = fj.Contacts(robot, HELD["quadruped"])
    q, v = robot.random_configuration(0), np.arange(18.0)
    J = robot.contact_jacobian(q, contacts)
    agree(robot.impulse_dynamics(q, v, contacts).impulses, -robot.contact_inertia(q, contacts) @ J @ v, 1e-10)


def test_redundant_contacts_have_no_inertia() -> None:
    robot = fj.load("arm")
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    q = np.stack([robot.random_configuration(0), robot.neutral()])
    with pytest.warns(ContactWarning, match=r"sample \(1,\).*nor are inertias"):
        found = robot.contact_inertia(q, contacts)
    agree(found[0], np.linalg.inv(dense(robot, q[0], contacts)), 1e-10)
    assert np.isnan(found[1]).all()
    with pytest.raises(SingularContacts):
        robot.contact_inertia(q[1], contacts)
