"""Robots differentiated automatically: by the methods' names, against the analytical ones; and any quantity."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet import verify
from featherjet.algorithms.quantities import FRAME, QUANTITIES
from featherjet.conventions.charts import CONVENTIONS
from featherjet.errors import InputError, SingularMassMatrix, UnknownName
from featherjet.evaluate import differentiation
from featherjet.jit.autodiff import jacobian
from featherjet.jit.graph import Graph
from featherjet.model.joints import KINDS
from featherjet.model.parts import Mimic
from helpers import agree, models, random_state, with_state

METHODS = ("autodiff", "autodiff-reverse")


# The tangent space

MANIFOLDS = {k: kind.manifold for k, kind in KINDS.items()} | {
    f"{convention}-{k}": chart.manifold for convention, charts in CONVENTIONS.items() for k, chart in charts.items()
}


@pytest.mark.parametrize("name", MANIFOLDS)
def test_rate_maps_are_the_rates_of_integrate(name, rng):
    """By the graph's derivatives of `integrate` at no displacement, where its coefficients come from their series."""
    m = MANIFOLDS[name]
    q = m.normalised(rng.normal(size=m.nq))
    graph = Graph()
    v = [graph.load(k) for k in range(m.nv)]
    J = jacobian([graph.lift(x) for x in m.integrate(q, v)], v)
    values = graph.interpret([x.index for x in J.flat], dict.fromkeys(range(m.nv), 0.0))
    np.testing.assert_allclose(np.reshape(values, J.shape), m.rate_map(q), rtol=0, atol=1e-15)


# Methods


def both_quantities(robot, s, method, fext=True, tolerance=1e-11):
    """Both derivatives by a method against the analytical ones."""
    forces = s.fext if fext else None
    tau = robot.inverse_dynamics(s.q, s.v, s.a, forces)
    for call, third, own in (
        ("inverse_dynamics_derivatives", s.a, "idsva"),
        ("forward_dynamics_derivatives", tau, "fdsva-ltl" if robot.model.has_mimic else "direct"),
    ):
        plain = fj.Robot(robot.model, backend="numpy")
        expected = getattr(plain, call)(s.q, s.v, third, forces, method=own)
        scale = np.abs(tau).max() if call.startswith("inverse") else np.abs(s.a).max()
        found = getattr(robot, call)(s.q, s.v, third, forces, method=method)
        for name, x, y in zip(found._fields, found, expected, strict=True):
            agree(x, y, tolerance, f"{name} by {method}", floor=1e-3 * scale)


@settings(max_examples=6)
@given(with_state(models(most=3), size=2))
def test_methods_on_random_trees(drawn):
    robot, s = drawn
    try:
        robot.forward_dynamics(s.q, s.v, s.a)
    except SingularMassMatrix:
        return
    for method in METHODS:
        both_quantities(robot, s, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_methods_on_every_kind_of_joint(kind, method):
    """At the root and further out, with armature and external forces."""
    b = fj.ModelBuilder("pair")
    b.add_joint("a", kind, axis=(1, 2, 2), armature=0.1, pitch=0.2 if kind == "helical" else 0.0)
    b.add_body("a", 1.0, (0.1, 0.2, 0.3), np.diag([0.05, 0.06, 0.07]))
    placement = np.eye(4)
    placement[:3, 3] = 0.3, -0.1, 0.2
    b.add_joint("b", kind, "a", placement, axis=(0, 1, 0), pitch=-0.1 if kind == "helical" else 0.0)
    b.add_body("b", 0.5, (-0.1, 0.1, 0.2), np.diag([0.03, 0.02, 0.04]))
    robot = fj.Robot(b.build(), backend="numpy")
    both_quantities(robot, random_state(robot, 2), method)


@pytest.mark.parametrize(
    ("name", "root", "method"),
    [("panda", "fixed", METHODS[0]), ("panda", "fixed", METHODS[1]), ("hyq_no_sensors", "free", METHODS[0])],
)
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning")
def test_methods_on_real_robots(name, root, method):
    robot = fj.load(name, root=root)
    both_quantities(robot, random_state(robot, 2), method)


@pytest.mark.parametrize("method", METHODS)
def test_methods_where_joints_mimic(method):
    robot = fj.Robot(mimicking(), backend="numpy")
    both_quantities(robot, random_state(robot, 2), method)


def mimicking() -> fj.Model:
    """One joint leads, one follows it at once, one at another pace, and one is free to move."""
    b = fj.ModelBuilder("coupled")
    followers = {"b": Mimic("a", 1.0, 0.0), "d": Mimic("a", -0.4, 0.3)}
    for name, kind, parent in (
        ("a", "revolute", None),
        ("b", "revolute", "a"),
        ("c", "spherical", "b"),
        ("d", "prismatic", "c"),
    ):
        b.add_joint(name, kind, parent, axis=(1, 2, 0), armature=0.05, mimic=followers.get(name))
        b.add_body(name, 1.0, (0.1, 0.2, 0.3), np.diag([0.05, 0.06, 0.07]))
    return b.build()


def small() -> fj.Model:
    """A ball joint with a hinge on it, that is quick to compile."""
    b = fj.ModelBuilder("small")
    b.add_joint("ball", "spherical", armature=0.02)
    b.add_body("ball", 1.0, (0.1, 0.0, 0.3), np.diag([0.05, 0.06, 0.07]))
    b.add_joint("hinge", "revolute", "ball", axis=(0, 1, 0))
    b.add_body("hinge", 0.5, (0.0, 0.2, 0.1), np.diag([0.02, 0.03, 0.04]))
    return b.build()


@pytest.mark.parametrize(("model", "method"), [(small, METHODS[0]), (mimicking, METHODS[1])])
def test_methods_as_machine_code(model, method):
    robot = fj.Robot(model(), backend="compiled")
    s = random_state(robot, 5)
    both_quantities(robot, s, method, fext=model is small)
    kernels = {key: x for key, x in robot.evaluator.ready.kernels.items() if ("method", repr(method)) in key}
    assert len(kernels) == 2
    assert all(kernels.values())  # none was left to the reference


def test_what_is_too_long_to_compile_is_played(monkeypatch):
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        monkeypatch.setitem(QUANTITIES, name, replace(QUANTITIES[name], longest=100))
    robot = fj.Robot(fj.models.chain(3, seed=5), backend="compiled")
    both_quantities(robot, random_state(robot, 3), "autodiff", fext=False)
    assert not any(x for key, x in robot.evaluator.ready.kernels.items() if ("method", "'autodiff'") in key)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(
    ("call", "other"), [("inverse_dynamics_derivatives", "idsva"), ("forward_dynamics_derivatives", "direct")]
)
def test_a_trace_that_gets_too_long_is_refused(monkeypatch, backend, call, other):
    monkeypatch.setattr(differentiation, "LONGEST", 2000)
    robot = fj.Robot(fj.models.chain(7), backend=backend)
    s = random_state(robot, 2)
    message = f"7 degrees of freedom takes more than 2000 operations; use another method of {call}, such as '{other}'"
    with pytest.raises(InputError, match=message):
        getattr(robot, call)(s.q, s.v, s.a, method="autodiff")


@pytest.mark.parametrize(("backend", "method"), [("numpy", m) for m in METHODS] + [("compiled", METHODS[0])])
@pytest.mark.filterwarnings("error")
def test_a_joint_that_moves_nothing_is_refused(backend, method):
    b = fj.ModelBuilder("hollow")
    b.add_joint("a", "revolute", axis=(0, 0, 1))
    b.add_body("a", 1.0, (0.1, 0.0, 0.0), np.eye(3))
    b.add_joint("b", "revolute", "a", axis=(0, 1, 0))
    robot = fj.Robot(b.build(), backend=backend)
    zeros = np.zeros(2)
    with pytest.raises(SingularMassMatrix, match="joint 'b' can move without moving any inertia"):
        robot.forward_dynamics_derivatives(zeros, zeros, zeros, method=method)
    tau = robot.inverse_dynamics_derivatives(zeros, zeros, zeros, method=method)
    agree(tau.dtau_da, robot.mass_matrix(zeros), 1e-15)


def test_a_robot_is_traced_once_by_all_threads(monkeypatch):
    made = []
    whole = differentiation.Derivative
    monkeypatch.setattr(differentiation, "Derivative", lambda *args, **kw: made.append(1) or whole(*args, **kw))
    robot = fj.Robot(fj.models.chain(3), backend="numpy")
    s = random_state(robot, 2)
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(robot.inverse_dynamics_derivatives(s.q, s.v, s.a, method="autodiff"))
        )
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    assert len(made) == 1
    for d in found:
        np.testing.assert_array_equal(d.dtau_dq, found[0].dtau_dq)


def test_batches_of_any_shape():
    robot = fj.Robot(small(), backend="numpy")
    s = random_state(robot, 6)
    q, v = s.q.reshape(2, 3, -1), s.v.reshape(2, 3, -1)
    d = robot.forward_dynamics_derivatives(q, v, s.a[0], method="autodiff")
    e = robot.forward_dynamics_derivatives(q, v, s.a[0])
    for x, y in zip(d, e, strict=True):
        assert x.shape == (2, 3, 4, 4)
        agree(x, y, 1e-12)
    one = robot.forward_dynamics_derivatives(s.q[0], s.v[0], s.a[0], method="autodiff")
    agree(one.da_dq, d.da_dq[0, 0], 1e-14)
    assert robot.inverse_dynamics_derivatives(q[:0], v[:0], v[:0], method="autodiff").dtau_dq.shape == (0, 3, 4, 4)


def test_methods_in_another_convention():
    robot = fj.Robot(small(), backend="numpy").with_convention("drake")
    s = random_state(robot, 2)
    d = robot.inverse_dynamics_derivatives(s.q, s.v, s.a, method="autodiff")
    agree(d.dtau_dq, verify.complex_step(robot, "inverse_dynamics", "q", q=s.q, v=s.v, a=s.a), 1e-13)


# Any quantity


@pytest.fixture(scope="module", params=["small", "mimicking"])
def robot(request) -> fj.Robot:
    return fj.Robot({"small": small, "mimicking": mimicking}[request.param](), backend="numpy")


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_energies(robot, mode):
    s = random_state(robot, 3)
    agree(fj.autodiff(robot, "potential_energy", mode=mode)(s.q), robot.gravity(s.q), 1e-13)
    momentum = (robot.mass_matrix(s.q) @ s.v[..., None])[..., 0]
    agree(fj.autodiff(robot, "kinetic_energy", by="v", mode=mode)(s.q, s.v), momentum, 1e-13)
    by_q = verify.complex_step(robot, "kinetic_energy", "q", q=s.q, v=s.v)
    agree(fj.autodiff(robot, "kinetic_energy", by="q", mode=mode)(q=s.q, v=s.v), by_q, 1e-13)


@pytest.mark.parametrize("quantity", [x.name for x in QUANTITIES.values() if not x.options and FRAME not in x.inputs])
def test_quantities_by_their_first_input(robot, quantity):
    s = random_state(robot, 2)
    inputs = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a, "weights": s.a}
    inputs |= {"w": s.v, "dq": s.a, "da": s.a, "dtau": s.v, "dfext": s.fext}
    inputs |= {"ddv": s.a, "dq0": s.a, "dq1": s.v}
    inputs |= {"dv": s.v, "q0": s.q, "q1": robot.integrate(s.q, s.a), "t": np.full((2, 1), 0.3)}
    state = {i.name: inputs[i.name] for i in QUANTITIES[quantity].inputs}
    by = next(iter(state))
    found = fj.autodiff(robot, quantity, by=by)(*state.values())
    first = found[0] if isinstance(found, tuple) else found
    agree(first, verify.complex_step(robot, quantity, by, **state), 1e-12, floor=1e-3)


def test_by_forces_and_of_frames(robot):
    s = random_state(robot, 2)
    by_force = fj.autodiff(robot, "inverse_dynamics", by="fext")(s.q, s.v, s.a, s.fext)
    agree(by_force, robot.inverse_dynamics_force_derivatives(s.q), 1e-13)
    by_force = fj.autodiff(robot, "forward_dynamics", by="fext")(s.q, s.v, s.a, fext=s.fext)
    agree(by_force, robot.forward_dynamics_force_derivatives(s.q), 1e-12)
    name = robot.joint_names[-1]
    hessian = fj.autodiff(robot, "jacobian", frame=name, viewpoint="world")(s.q)
    agree(hessian, robot.jacobian_hessian(s.q, name, viewpoint="world"), 1e-13)


def test_any_quantity_as_machine_code():
    robot = fj.Robot(small(), backend="compiled")
    s = random_state(robot, 3)
    derivative = fj.autodiff(robot, "center_of_mass")
    true = verify.complex_step(robot, "center_of_mass", "q", q=s.q)
    agree(derivative(s.q), true, 1e-13)
    agree(derivative(s.q[0]), true[0], 1e-13)
    assert all(robot.evaluator.ready.kernels.values())


def test_autodiff_refuses(robot, monkeypatch):
    s = random_state(robot, 2)
    with pytest.raises(UnknownName, match="unknown quantity 'energy'"):
        fj.autodiff(robot, "energy")
    with pytest.raises(UnknownName, match="unknown input of gravity 'v'; choose from: q"):
        fj.autodiff(robot, "gravity", by="v")
    with pytest.raises(UnknownName, match="unknown mode 'sideways'"):
        fj.autodiff(robot, "gravity", mode="sideways")
    with pytest.raises(InputError, match="jacobian needs a frame"):
        fj.autodiff(robot, "jacobian")
    with pytest.raises(InputError, match="gravity takes no frame"):
        fj.autodiff(robot, "gravity", frame="a")
    with pytest.raises(InputError, match="convention 'kindr'"):
        fj.autodiff(robot.with_convention("kindr"), "gravity")
    with pytest.raises(InputError, match="takes q, v, a, fext; got q, v"):
        fj.autodiff(robot, "inverse_dynamics")(s.q, s.v)
    with pytest.raises(InputError, match=r"takes q, v, a, fext; got q, v, a$"):
        fj.autodiff(robot, "inverse_dynamics", by="fext")(s.q, s.v, s.a)
    with pytest.raises(InputError, match="takes q; got q, v"):
        fj.autodiff(robot, "gravity")(s.q, v=s.v)
    with pytest.raises(InputError, match="finite"):
        fj.autodiff(robot, "gravity")(s.q * np.nan)
    monkeypatch.setattr(differentiation, "LONGEST", 100)
    with pytest.raises(InputError, match=r"of mass_matrix .* more than 100 operations; lock joints"):
        fj.autodiff(robot, "mass_matrix", mode="reverse")(s.q)
