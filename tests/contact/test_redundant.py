"""Redundant contacts: accelerations by elimination, Pinocchio's proximal solver; smallest forces; singular samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

import featherjet as fj
from featherjet.algorithms.contacts import redundant
from featherjet.errors import ContactWarning, InputError, SingularContacts
from featherjet.model.builder import ModelBuilder, transform
from helpers import agree, to_pinocchio

BACKENDS = ("compiled", "numpy")
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")


def four_bar() -> fj.Model:
    """Three bars that turn about y, of one metre each; the end of the last is to be held."""
    builder = ModelBuilder("four-bar")
    parent = None
    for name in ("first", "second", "third"):
        at = None if parent is None else transform(p=(1.0, 0.0, 0.0))
        parent = builder.add_joint(name, "revolute", parent, at, axis=(0, 1, 0))
        builder.add_body(parent, mass=1.5, com=(0.5, 0.0, 0.1), inertia=np.diag([0.1, 0.2, 0.2]))
    builder.add_frame("end", parent, transform(p=(1.0, 0.0, 0.0)))
    return builder.build()


def corners(frame: str, axes: str) -> list[fj.PointContact]:
    """Four corners of a flat foot: twelve rows, of which six are independent."""
    return [fj.PointContact(frame, offset=(x, y, 0.0), axes=axes) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]


CASES: dict[str, tuple[Callable[[], fj.Model], Callable[[str], list[fj.PointContact | fj.SurfaceContact]]]] = {
    "planar four-bar": (four_bar, lambda axes: [fj.PointContact("end", axes=axes)]),
    "four flat feet": (
        lambda: fj.load("quadruped").model,
        lambda axes: [fj.SurfaceContact(f, axes=axes) for f in FEET],
    ),
    "corners of two feet": (
        lambda: fj.load("humanoid").model,
        lambda axes: [*corners("left_foot", axes), *corners("right_foot", axes)],
    ),
    "a point on a flat foot": (
        lambda: fj.load("humanoid").model,
        lambda axes: [
            fj.SurfaceContact("left_foot", axes=axes),
            fj.PointContact("right_hand", axes=axes),
            fj.PointContact("left_foot", offset=(0.1, 0.0, 0.0), axes=axes),
        ],
    ),
}


class State:
    """A case at a random configuration, with velocities that the contacts allow."""

    def __init__(self, name: str, backend: str, axes: str = "world_aligned") -> None:
        make, held = CASES[name]
        self.robot = robot = fj.Robot(make(), backend=backend)
        self.contacts = fj.Contacts(robot, held(axes))
        rng = np.random.default_rng(4)
        self.q = robot.random_configuration(rng)
        self.tau, v = 10.0 * rng.normal(size=(2, robot.nv))
        self.J = robot.contact_jacobian(self.q, self.contacts)
        self.v = self.allowed @ (self.allowed.T @ v) * 0.3
        self.given = self.q, self.v, self.tau

    @property
    def allowed(self) -> np.ndarray:
        """The motions J leaves, (nv, n), orthonormal."""
        _, s, V = np.linalg.svd(self.J)
        return V[int((s > 1e-9 * s[0]).sum()) :].T

    def moves(self, a: np.ndarray) -> np.ndarray:
        """How the contacts accelerate, in world axes: from the accelerations of their frames."""
        out = []
        for c in self.contacts.held:
            A = self.robot.frame_acceleration(self.q, self.v, a, c.frame, viewpoint="world_aligned")
            V = self.robot.frame_velocity(self.q, self.v, c.frame, viewpoint="world_aligned")
            r = self.robot.frame_placement(self.q, c.frame)[:3, :3] @ c.placement(c.offset, "offset")[:3, 3]
            turn = np.cross(A[3:], r) + np.cross(V[3:], np.cross(V[3:], r))
            out.append(A[:3] + np.cross(V[3:], V[:3]) + turn)
            if isinstance(c, fj.SurfaceContact):
                out.append(A[3:])
        return np.concatenate(out)

    def eliminated(self) -> np.ndarray:
        """Accelerations without forces: the least that hold, plus allowed ones that balance."""
        N, M = self.allowed, self.robot.mass_matrix(self.q)
        a = -np.linalg.pinv(self.J, rcond=1e-9) @ self.moves(np.zeros(self.robot.nv))
        left = self.tau - self.robot.inverse_dynamics(self.q, self.v, a)
        return a + N @ np.linalg.solve(N.T @ M @ N, N.T @ left)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_redundant_contacts_hold(name: str, backend: str) -> None:
    s = State(name, backend)
    assert np.linalg.matrix_rank(s.J, 1e-9) < len(s.J)
    a, forces = s.robot.constrained_dynamics(*s.given, s.contacts)
    assert np.abs(s.moves(a)).max() < 1e-10
    agree(a, s.eliminated(), 1e-9, floor=10.0)
    agree(s.robot.inverse_dynamics(s.q, s.v, a) - s.J.T @ forces, s.tau, 1e-11, floor=np.abs(forces).max())


def pinocchio_of(s: State) -> tuple:
    """Pinocchio's model and data, its contacts and theirs, and settings of its proximal solver."""
    model, theirs = to_pinocchio(s.robot.model), pin.StdVec_RigidConstraintModel()
    for c in s.contacts.held:
        f = s.robot.model.frame(c.frame)
        kind = pin.ContactType.CONTACT_3D if c.rows == 3 else pin.ContactType.CONTACT_6D
        at = pin.SE3(np.array(f.placement @ c.placement(c.offset, "offset")))
        theirs.append(pin.RigidConstraintModel(kind, model, f.joint + 1, at, pin.ReferenceFrame.LOCAL))
    data, datas = model.createData(), pin.StdVec_RigidConstraintData([m.createData() for m in theirs])
    pin.initConstraintDynamics(model, data, theirs, datas)
    return model, data, theirs, datas, pin.ProximalSettings(1e-12, 1e-8, 100)


@pytest.mark.parametrize("name", [n for n in CASES if n != "planar four-bar"])
def test_accelerations_are_those_of_pinocchios_proximal_solver(name: str) -> None:
    s = State(name, "compiled", "local")
    model, data, theirs, datas, settings = pinocchio_of(s)
    expected = pin.constraintDynamics(model, data, *s.given, theirs, datas, settings)
    agree(s.robot.constrained_dynamics(*s.given, s.contacts).a, expected, 1e-9, floor=10.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_impulses_of_redundant_contacts(name: str, backend: str) -> None:
    s = State(name, backend)
    v = np.random.default_rng(0).normal(size=s.robot.nv)
    after, impulses = s.robot.impulse_dynamics(s.q, v, s.contacts, 0.4)
    assert np.abs(s.J @ (after + 0.4 * v)).max() < 1e-10
    agree(s.robot.mass_matrix(s.q) @ (after - v), s.J.T @ impulses, 1e-11, floor=np.abs(impulses).max())


@pytest.mark.parametrize("backend", BACKENDS)
def test_forces_are_the_smallest_in_any_axes(backend: str) -> None:
    """In the norm of each grip's own inverse inertia. Rounding grows by 1 / rho in forces that do nothing."""
    tolerance = 1e-15 / redundant.RHO[0] * 10
    s = State("corners of two feet", backend)
    forces = s.robot.constrained_dynamics(*s.given, s.contacts).forces
    G = s.J @ np.linalg.solve(s.robot.mass_matrix(s.q), s.J.T)
    w = np.sqrt(np.repeat(np.diag(G).reshape(-1, 3).mean(-1), 3))
    smallest = np.linalg.pinv(s.J.T / w, rcond=1e-9) @ (s.J.T @ forces) / w
    agree(forces, smallest, tolerance)
    local = State("corners of two feet", backend, "local")
    turned = local.robot.constrained_dynamics(*local.given, local.contacts).forces
    R = [s.robot.frame_placement(s.q, c.frame)[:3, :3] for c in s.contacts.held]
    agree(np.concatenate([r @ f for r, f in zip(R, turned.reshape(-1, 3), strict=True)]), forces, tolerance)


def test_a_sample_does_not_see_its_neighbours() -> None:
    """Vectors of lanes hold redundant and other samples together; the arm is stretched out at the neutral one."""
    robot = fj.load("arm", backend="compiled")
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    q = robot.random_configuration(0, size=64)
    tau, rest = np.random.default_rng(0).normal(size=(2, robot.nv))
    rest *= 0.0
    alone = robot.constrained_dynamics(q, rest, tau, contacts)
    q[5] = q[40] = robot.neutral()
    among = robot.constrained_dynamics(q, rest, tau, contacts)
    other = np.delete(np.arange(64), (5, 40))
    assert all(np.array_equal(x[other], y[other]) for x, y in zip(alone, among, strict=True))
    agree(among.a[5], robot.constrained_dynamics(q[5], rest, tau, contacts).a, 1e-12)


def test_single_precision_is_computed_in_double() -> None:
    s = State("corners of two feet", "compiled")
    small = [x.astype(np.float32) for x in (s.q, 0.0 * s.v, s.tau)]
    found = s.robot.constrained_dynamics(*small, s.contacts)
    assert found.a.dtype == np.float32
    agree(found.a, s.robot.constrained_dynamics(*(x.astype(float) for x in small), s.contacts).a, 1e-6)


# Derivatives

H = 1e-5
SLOPE = 1e-6  # of central differences: accelerations are good to 1e-11, and H**2


def differences(s: State, value: Callable[..., np.ndarray], inputs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The derivatives of value(q, ...) by each input along all directions, on the last axis."""
    steps, found = H * np.eye(s.robot.nv), []
    for k, x in enumerate(inputs):
        ends = []
        for sign in (1, -1):
            moved = s.robot.integrate(x, sign * steps) if k == 0 else x + sign * steps
            ends.append(value(*inputs[:k], moved, *inputs[k + 1 :]))
        found.append(np.moveaxis(ends[0] - ends[1], 0, -1) / (2 * H))
    return found


def push(s: State, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """J^T forces."""
    return (np.swapaxes(s.robot.contact_jacobian(q, s.contacts), -1, -2) @ forces[..., None])[..., 0]


@pytest.mark.parametrize("axes", ["world_aligned", "local"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_the_values(name: str, axes: str) -> None:
    """Of accelerations, and of J^T forces, which are all that is determined of the forces."""
    s = State(name, "numpy", axes)
    d = s.robot.constrained_dynamics_derivatives(*s.given, s.contacts)
    expected = differences(s, lambda *x: s.robot.constrained_dynamics(*x, s.contacts).a, s.given)
    for by, got, true in zip("q v tau".split(), d[:3], expected, strict=True):
        agree(got, true, SLOPE, f"da_d{by}", floor=1.0)
    forces = s.robot.constrained_dynamics(*s.given, s.contacts).forces
    whole = differences(
        s, lambda q, v, tau: push(s, q, s.robot.constrained_dynamics(q, v, tau, s.contacts).forces), s.given
    )
    (turning,) = differences(s, lambda q: push(s, q, forces), (s.q,))
    for by, got, true, moved in zip("q v tau".split(), d[3:], whole, (turning, 0.0, 0.0), strict=True):
        agree(s.J.T @ got + moved, true, SLOPE, f"dforces_d{by}", floor=np.abs(forces).max())


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_impulses_are_those_of_the_values(name: str) -> None:
    s = State(name, "numpy")
    v = np.random.default_rng(0).normal(size=s.robot.nv)
    d = s.robot.impulse_dynamics_derivatives(s.q, v, s.contacts, 0.4)
    expected = differences(s, lambda q, v: s.robot.impulse_dynamics(q, v, s.contacts, 0.4)[0], (s.q, v))
    for by, got, true in zip("qv", d[:2], expected, strict=True):
        agree(got, true, SLOPE, f"by {by}", floor=1.0)


def test_changes_of_forces_are_the_smallest() -> None:
    """They have no share of forces that do nothing; rounding grows by 1 / rho there."""
    s = State("corners of two feet", "numpy")
    d = s.robot.constrained_dynamics_derivatives(*s.given, s.contacts)
    G = s.J @ np.linalg.solve(s.robot.mass_matrix(s.q), s.J.T)
    w = np.sqrt(np.repeat(np.diag(G).reshape(-1, 3).mean(-1), 3))
    smallest = np.linalg.pinv(s.J.T / w, rcond=1e-9) @ (s.J.T @ d.dforces_dtau) / w[:, None]
    agree(d.dforces_dtau, smallest, 1e-15 / redundant.RHO[0] * 10)


def test_derivatives_of_both_backends_and_products() -> None:
    s, fast = (State("planar four-bar", backend) for backend in BACKENDS[::-1])
    d = s.robot.constrained_dynamics_derivatives(*s.given, s.contacts)
    batch = [np.stack([x, x]) for x in s.given]
    for got, expected in zip(fast.robot.constrained_dynamics_derivatives(*batch, fast.contacts), d, strict=True):
        agree(got[1], expected, 1e-7, floor=1.0)
    rng = np.random.default_rng(0)
    w, forces = rng.normal(size=s.robot.nv), rng.normal(size=s.contacts.rows)
    found = fast.robot.vjp("constrained_dynamics", *s.given, w, forces, contacts=fast.contacts)
    for k, got in enumerate(found):
        agree(got, w @ d[k] + forces @ d[3 + k], 1e-7, floor=1.0)
    along = rng.normal(size=(3, s.robot.nv))
    da, dforces = fast.robot.jvp("constrained_dynamics", *s.given, *along, contacts=fast.contacts)
    agree(da, sum(D @ x for D, x in zip(d[:3], along, strict=True)), 1e-7, floor=1.0)
    agree(dforces, sum(D @ x for D, x in zip(d[3:], along, strict=True)), 1e-7, floor=1.0)


@pytest.mark.parametrize("name", ["corners of two feet", "a point on a flat foot"])
def test_derivatives_are_those_of_pinocchios_proximal_solver(name: str) -> None:
    """Theirs are of a system with a damping of 1e-8; on four flat feet, where these are zero, they are off by 2e-5."""
    s = State(name, "numpy", "local")
    model, data, theirs, datas, settings = pinocchio_of(s)
    pin.constraintDynamics(model, data, *s.given, theirs, datas, settings)
    pin.computeConstraintDynamicsDerivatives(model, data, theirs, datas, settings)
    d = s.robot.constrained_dynamics_derivatives(*s.given, s.contacts)
    for name, got in (("ddq_dq", d.da_dq), ("ddq_dv", d.da_dv), ("ddq_dtau", d.da_dtau)):
        agree(got, getattr(data, name), 1e-6, name, floor=1.0)


# Contacts that cannot hold


@pytest.mark.parametrize("backend", BACKENDS)
def test_contradictory_samples_are_nan_and_named(backend: str) -> None:
    """A stretched arm that turns cannot keep its tool: it accelerates inward. The other samples are not disturbed."""
    robot = fj.load("arm", backend=backend)
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    q = robot.random_configuration(0, size=(2, 3))
    expected = robot.constrained_dynamics(q, np.ones(7), np.zeros(7), contacts)
    q[0, 1] = q[1, 2] = robot.neutral()
    good = np.array([[1, 0, 1], [1, 1, 0]], bool)
    out = np.empty((2, 3, 7)), np.empty((2, 3, 3))
    for into in (None, out):
        with pytest.warns(ContactWarning, match=r"sample \(0, 1\) and 1 more: no force at 'tool'.*NaN"):
            found = robot.constrained_dynamics(q, np.ones(7), np.zeros(7), contacts, out=into)
        for x, y in zip(found, expected, strict=True):
            assert np.array_equal(x[good], y[good])
            assert np.isnan(x[~good]).all()
    with pytest.warns(ContactWarning, match=r"sample \(0, 1\)"):
        d = robot.constrained_dynamics_derivatives(q, np.zeros(7), np.zeros(7), contacts, np.zeros((7, 6)))
    assert np.isnan(d.dforces_dq[~good]).all()
    assert np.isfinite(d.dforces_dq[good]).all()
    for bad in (q[0, 1], q[[0, 1], [1, 2]]):
        with pytest.raises(SingularContacts, match="no force at 'tool' makes it move as required"):
            robot.constrained_dynamics(bad, np.ones(7), np.zeros(7), contacts)


def test_the_same_contact_twice_is_a_mistake() -> None:
    with pytest.raises(InputError, match="given twice"):
        fj.Contacts(fj.load("quadruped"), [fj.PointContact("LF_foot")] * 2)


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4])
def test_points_that_nearly_coincide(gap: float) -> None:
    """Accelerations by the null space of J, which grow inexact like its condition, not its square: 4e3 at 1 mm."""
    robot = fj.load("quadruped", backend="numpy")
    points = [fj.PointContact("LF_foot"), fj.PointContact("LF_foot", offset=(gap, 0, 0)), fj.PointContact("RH_foot")]
    contacts, rng = fj.Contacts(robot, points), np.random.default_rng(0)
    q, rest, tau = robot.neutral(), np.zeros(18), 3 * rng.normal(size=18)
    q[8::3], q[9::3] = 0.6, -1.2
    q = robot.integrate(q, 0.1 * rng.normal(size=18))

    def projected(q: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """a and da/dtau at rest, and the condition of J."""
        _, s, rows = np.linalg.svd(robot.contact_jacobian(q, contacts))
        assert s[7] > 1e-6 * s[0] > 1e6 * s[8]  # of nine rows, eight are independent
        N = rows[8:].T
        by_tau = N @ np.linalg.solve(N.T @ robot.mass_matrix(q) @ N, N.T)
        return by_tau @ (tau - robot.bias(q, rest)), by_tau, s[0] / s[7]

    a, by_tau, condition = projected(q)
    agree(robot.constrained_dynamics(q, rest, tau, contacts).a, a, 2e-15 * condition)
    d = robot.constrained_dynamics_derivatives(q, rest, tau, contacts)
    agree(d.da_dtau, by_tau, 2e-14 * condition)
    h = 1e-5
    moves = h * np.eye(18)
    ends = [[projected(robot.integrate(q, way))[0] for way in ways] for ways in (moves, -moves)]
    agree(d.da_dq, (np.array(ends[0]) - ends[1]).T / (2 * h), 1e-5)
