"""Impacts with friction: closed forms of a point mass, the contact laws, and energy."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.contact import impacts
from featherjet.errors import ContactWarning, InputError, SingularContacts
from featherjet.model.builder import ModelBuilder
from gauss_seidel import residual, solve
from helpers import agree

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")


def point_mass() -> fj.Robot:
    builder = ModelBuilder("point")
    builder.add_joint("move", "translation")
    builder.add_body("move", mass=2.0)
    builder.add_frame("tip", "move")
    return fj.Robot(builder.build())


def quadruped() -> tuple[fj.Robot, fj.Contacts, np.ndarray, np.ndarray]:
    robot = fj.load("quadruped")
    q = robot.random_configuration(0, size=12)
    v = np.random.default_rng(1).normal(size=(12, robot.nv))
    return robot, fj.Contacts(robot, [fj.PointContact(f) for f in FEET]), q, v


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("mu", [0.0, 0.2, 2.0])
def test_a_point_mass(mu: float, e: float) -> None:
    """It slides on if mu (1 + e) times its normal speed cannot stop it; on any ground."""
    robot = point_mass()
    contacts = fj.Contacts(robot, [fj.PointContact("tip")])
    up, along = np.array([0.6, 0.0, 0.8]), np.array([0.8, 0.0, -0.6])
    before = 3.0 * along - 2.0 * up
    after, impulse = robot.impulse_dynamics(np.zeros(3), before, contacts, e, friction=mu, normal=5.0 * up)
    expected = max(3.0 - mu * (1 + e) * 2.0, 0.0) * along + e * 2.0 * up
    agree(after, expected, 1e-14, floor=1.0)
    agree(impulse, 2.0 * (expected - before), 1e-14, floor=1.0)
    away = robot.impulse_dynamics(np.zeros(3), -before, contacts, e, friction=mu, normal=up)
    agree(away.v, -before, 0.0)


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.5])
def test_the_laws_hold_at_all_feet(mu: float) -> None:
    robot, contacts, q, v = quadruped()
    after, P = robot.impulse_dynamics(q, v, contacts, friction=mu)
    J, G = robot.contact_jacobian(q, contacts), robot.delassus(q, contacts)
    feet = P.reshape(12, 4, 3)
    assert (feet[..., 2] > 0).any()
    assert (feet[..., 2] == 0).any()
    if mu == 0.0:
        assert not feet[..., :2].any()
    for k in range(12):
        assert residual(G[k], J[k] @ v[k], np.full(4, mu), P[k]) <= 1e-11 * np.abs(P[k]).max()
        agree(robot.mass_matrix(q[k]) @ (after[k] - v[k]), J[k].T @ P[k], 1e-11)
        alone = robot.impulse_dynamics(q[k], v[k], contacts, friction=np.full(4, mu))
        agree(alone.impulses, P[k], 1e-10)


@pytest.mark.parametrize("mu", [0.0, 0.8])
def test_bounces_create_no_energy(mu: float) -> None:
    """Without friction an elastic impact keeps it; pressed feet bounce with the percussions of compression, doubled."""
    robot, contacts, q, v = quadruped()
    out = np.empty((12, robot.nv)), np.empty((12, 12))
    after = robot.impulse_dynamics(q, v, contacts, 1.0, friction=mu, out=out).v
    assert after is out[0]
    change = robot.kinetic_energy(q, after) - robot.kinetic_energy(q, v)
    assert (change <= 1e-12).all()
    if mu == 0.0:
        agree(change, np.zeros(12), 1e-12, floor=1.0)
    soft = robot.impulse_dynamics(q, v, contacts, friction=mu).impulses
    agree(out[1][:, 2::3], 2 * soft[:, 2::3], 1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.8])
def test_code_and_sweeps_agree(mu: float) -> None:
    """On feet, of which each has its own leg; on slopes, and with restitution."""
    slow, contacts, q, v = quadruped()
    fast = fj.Robot(slow.model, backend="compiled")
    normal = np.random.default_rng(2).normal(size=(4, 3)) * 0.2 + np.array([0, 0, 1.0])
    for e in (0.0, 0.5):
        expected = slow.impulse_dynamics(q, v, contacts, e, friction=mu, normal=normal)
        found = fast.impulse_dynamics(q, v, contacts, e, friction=mu, normal=normal)
        agree(found.v, expected.v, 1e-9)
        agree(found.impulses, expected.impulses, 1e-9)
    one = fast.impulse_dynamics(q[3], v[3], contacts, friction=mu, normal=normal)
    agree(one.impulses, slow.impulse_dynamics(q[3], v[3], contacts, friction=mu, normal=normal).impulses, 1e-9)
    wide = fast.impulse_dynamics(q[:2, None], v[:3], contacts, friction=mu)
    assert wide.impulses.shape == (2, 3, 12)
    agree(wide.v[1, 2], fast.impulse_dynamics(q[1], v[2], contacts, friction=mu).v, 1e-10)
    assert fast.impulse_dynamics(q[:0], v[:0], contacts, friction=mu).v.shape == (0, fast.nv)


def test_corners_of_feet_obey_the_laws() -> None:
    """Points that share a body are redundant, and several impulses may obey the laws: code finds one of them."""
    robot = fj.load("humanoid", backend="compiled")
    held = [
        fj.PointContact(f"{side}_foot", offset=(x, y, 0.0))
        for side in ("left", "right")
        for x in (-0.1, 0.1)
        for y in (-0.05, 0.05)
    ]
    contacts, mu = fj.Contacts(robot, held), np.full(8, 0.3)
    q = robot.random_configuration(0, size=20)
    v = np.random.default_rng(1).normal(size=(20, robot.nv))
    after, P = robot.impulse_dynamics(q, v, contacts, friction=mu)
    J, G = robot.contact_jacobian(q, contacts), robot.delassus(q, contacts)
    for k in range(20):
        assert residual(G[k], J[k] @ v[k], mu, P[k]) <= 1e-9 * np.abs(P[k]).max()
        agree(robot.mass_matrix(q[k]) @ (after[k] - v[k]), J[k].T @ P[k], 1e-9)
    own = solve(G[0], J[0] @ v[0], mu)
    assert impacts.residuals(G[:1], (J[0] @ v[0])[None], mu, own.P[None])[0] == pytest.approx(own.residual, rel=1e-6)


@pytest.mark.parametrize("convention", ["kindr", "drake"])
def test_impacts_in_other_conventions(convention: str) -> None:
    robot, contacts, q, v = quadruped()
    own = robot.with_convention(convention)
    there = fj.convert(robot, own, q, v)
    found = own.impulse_dynamics(there.q, there.v, contacts, 0.3, friction=0.5)
    expected = robot.impulse_dynamics(q, v, contacts, 0.3, friction=0.5)
    agree(fj.convert(own, robot, there.q, found.v).v, expected.v, 1e-12)
    agree(found.impulses, expected.impulses, 1e-12)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_samples_without_solution_are_nan(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no percussions are found, which some are made to be here, the result says so."""
    robot, contacts, q, v = quadruped()
    robot = fj.Robot(robot.model, backend=backend)
    expected = robot.impulse_dynamics(q, v, contacts, 0.5, friction=1.5)
    bad = np.arange(12) % 3 == 0
    one = robot.delassus(q, contacts)[bad][:, 0, 0]
    monkeypatch.setattr(impacts, "residuals", lambda G, b, mu, P: 1.0 * np.isclose(G[:, 0, :1], one).any(-1))
    with pytest.warns(ContactWarning, match="obey the laws of friction at sample"):
        found = robot.impulse_dynamics(q, v, contacts, 0.5, friction=1.5)
    assert np.isnan(found.v[bad]).all()
    assert np.isnan(found.impulses[bad]).all()
    agree(found.v[~bad], expected.v[~bad], 1e-10)
    with pytest.raises(SingularContacts, match="reduce it"):
        robot.impulse_dynamics(q[bad], v[bad], contacts, 0.5, friction=1.5)


def test_feet_that_stick_and_press_are_held() -> None:
    robot, contacts, q, _ = quadruped()
    q, v = robot.neutral(), np.zeros(robot.nv)
    v[2] = -1.0  # straight down
    held = robot.impulse_dynamics(q, v, contacts)
    found = robot.impulse_dynamics(q, v, contacts, friction=50.0)
    assert (held.impulses[2::3] > 0).all()
    agree(found.v, held.v, 1e-9, floor=1.0)


@pytest.mark.parametrize(
    ("held", "settings", "message"),
    [
        (fj.SurfaceContact("tip"), {"friction": 0.5}, "PointContact with the world"),
        (fj.PointContact("tip", axes="local"), {"friction": 0.5}, "world axes"),
        (fj.PointContact("tip"), {"friction": -0.5}, "friction: expected a number >= 0"),
        (fj.PointContact("tip"), {"friction": [0.5, 0.5]}, "or 1 of them"),
        (fj.PointContact("tip"), {"friction": 0.5, "normal": (0, 0, 0)}, "must not be zero"),
        (fj.PointContact("tip"), {"friction": 0.5, "normal": np.ones((2, 3))}, "for 1 contacts"),
        (fj.PointContact("tip"), {"normal": (0, 0, 1)}, "give friction"),
        (fj.PointContact("tip"), {"friction": 0.5, "restitution": 1.5}, "restitution"),
    ],
)
def test_bad_impacts(held: fj.PointContact | fj.SurfaceContact, settings: dict, message: str) -> None:
    robot = point_mass()
    with pytest.raises(InputError, match=message):
        robot.impulse_dynamics(np.zeros(3), np.ones(3), fj.Contacts(robot, [held]), **settings)
