"""What has no kernel of its own, compiled for one robot: other methods, statics, frames, regressors, contacts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import featherjet as fj
from backends import Pair, both, small_quadruped
from featherjet.algorithms.derivatives import methods
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit.fingerprint import fingerprint
from featherjet.jit.kernel import Kernel
from helpers import agree, random_state

TRACED = [(m.quantity, m.name) for m in fj.methods() if m.traced and m.name != "auto"]


@pytest.fixture(scope="module")
def arm() -> Pair:
    return both(fj.models.chain(3), shared=False)


@pytest.fixture(scope="module")
def quadruped() -> Pair:
    return both(small_quadruped())


def given(quantity: str, s) -> tuple:
    state = (s.q,) if quantity == methods.INVERSE else (s.q, s.v, s.a)
    return (*state, s.v) if quantity in (methods.ID_HESSIAN, methods.FD_HESSIAN) else state


def specialised(robot: fj.Robot) -> list[Kernel | None]:
    return list(robot.evaluator.ready.kernels.values())


@pytest.mark.parametrize("quantity, name", TRACED)
def test_every_method_gives_what_the_reference_gives(arm, quantity, name):
    s = random_state(arm.reference, 9)
    found, expected = (getattr(r, quantity)(*given(quantity, s), method=name) for r in arm[:2])
    agree(found, expected, 1e-12, name)
    assert specialised(arm.compiled)[-1] is not None


CALLS = {
    "static_torque": lambda r, s: r.static_torque(s.q, s.fext),
    "static_torque_derivatives": lambda r, s: r.static_torque_derivatives(s.q, s.fext),
    "torque_regressor": lambda r, s: r.torque_regressor(s.q, s.v, s.a),
    "da_dfext": lambda r, s: r.forward_dynamics_force_derivatives(s.q),
    "jacobian_derivative": lambda r, s: r.jacobian_derivative(s.q, s.v, "LF_foot", viewpoint="world"),
    "jacobian_hessian": lambda r, s: r.jacobian_hessian(s.q, "RH_foot", viewpoint="local"),
    "projected": lambda r, s: r.projected_newton_euler(s.q, s.v),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("size", [9, None])
def test_quantities_without_a_kernel(quadruped, name, size):
    s = random_state(quadruped.reference, 9 if size is None else size)
    if size is None:
        s = type(s)(*(x[0] for x in s))
    found, expected = (CALLS[name](r, s) for r in quadruped[:2])
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        agree(x, y, 1e-12, name)


def test_frames_do_not_share_code(quadruped):
    s = random_state(quadruped.reference, 5)
    one, other = (quadruped.compiled.jacobian_drift(s.q, s.v, f) for f in ("LF_foot", "RF_foot"))
    assert not np.allclose(one, other)


def test_contacts(target):
    quadruped = both(small_quadruped())
    s = random_state(quadruped.reference, 9)
    results = []
    for robot in quadruped[:2]:
        contacts = fj.Contacts(robot, [fj.PointContact(f) for f in ("LF_foot", "RH_foot")], baumgarte=(0.0, 1.0))
        results.append(
            (*robot.constrained_dynamics(s.q, s.v, s.a, contacts), *robot.impulse_dynamics(s.q, s.v, contacts))
        )
    for x, y in zip(*results, strict=True):
        agree(x, y, 1e-10)


def test_contacts_that_differ_do_not_share_code(quadruped):
    robot, s = quadruped.compiled, random_state(quadruped.reference, 3)
    soft, stiff = (
        robot.constrained_dynamics(s.q, s.v, s.a, fj.Contacts(robot, [fj.PointContact("LF_foot")], baumgarte=(0.0, kd)))
        for kd in (0.0, 100.0)
    )
    assert not np.allclose(soft.forces, stiff.forces)


def test_what_would_take_too_long_is_left_to_the_reference(monkeypatch):
    record = QUANTITIES["inverse_dynamics_derivatives"]
    monkeypatch.setitem(QUANTITIES, record.name, replace(record, longest=500))
    pair = both(fj.models.chain(4))
    s = random_state(pair.reference, 3)
    found, expected = (r.inverse_dynamics_derivatives(s.q, s.v, s.a, method="chain-rule") for r in pair[:2])
    agree(found, expected, 1e-13)
    assert specialised(pair.compiled) == [None]


def test_a_singular_mass_matrix_is_refused_by_every_method():
    builder = fj.ModelBuilder("massless")
    builder.add_joint("a", "revolute", axis=[0, 0, 1])
    robot = fj.Robot(builder.build(), backend="compiled", threads=1)
    with pytest.raises(fj.errors.SingularMassMatrix, match="'a'"):
        robot.forward_dynamics_derivatives([0.0], [0.0], [0.0], method="fdsva-ltl")


# Fingerprints


@dataclass
class Thing:
    x: object


DIFFERENT = [
    1, 1.0, "1", None, True, (1,), ((1,),), 0.1, 0.1 + 1e-17, np.nextafter(0.1, 1).item(), Thing(1), Thing(2),
    np.zeros(3), np.zeros((3, 1)), np.zeros(3, np.float32), np.array([0.0, 0.0, -0.0]), slice(0, 3), {"a": 1}, {"a": 2},
]  # fmt: skip


def test_fingerprints_tell_apart_what_differs():
    seen: dict[object, object] = {}
    for value in DIFFERENT:
        found = fingerprint({"value": value})
        assert found not in seen or value == seen[found], (value, seen[found])
        seen[found] = value
    assert len(seen) == len(DIFFERENT) - 1  # 0.1 + 1e-17 is 0.1


def test_what_has_no_fingerprint_is_refused():
    with pytest.raises(TypeError, match="function"):
        fingerprint(lambda: 0)


# Single precision


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "mass_matrix", "forward_dynamics_derivatives", "forward_kinematics"]
)
@pytest.mark.parametrize("batch", [(), (1,), (11,), (3, 4)])
def test_single_precision_in_and_out(name, unroll, batch):
    single_precision_in_and_out(name, unroll, batch)


def single_precision_in_and_out(name: str, unroll: bool, batch: tuple[int, ...]) -> None:
    pair = both(fj.models.arm(), unroll, shared=False)
    s = random_state(pair.reference, 12)
    state = [x.astype(np.float32) for x in (s.q, s.v, s.a)]
    state = [x[0] if batch == () else x[: int(np.prod(batch))].reshape(*batch, -1) for x in state]
    inputs = state[:1] if name in ("mass_matrix", "forward_kinematics") else state
    found, slow = getattr(pair.compiled, name)(*inputs), getattr(pair.reference, name)(*inputs)
    exact = getattr(pair.reference, name)(*(x.astype(float) for x in inputs))
    for x, y, z in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, slow, exact)), strict=True):
        assert x.dtype == y.dtype == np.float32
        # the reference computes in double: each number is the nearest to the exact one, give or take a tie
        assert (np.abs(y - z) <= 1.01 * np.spacing(np.abs(z).astype(np.float32)) + 1e-9).all()
        agree(x, z, 2e-5)
    strided = [np.repeat(x, 2, -1)[..., ::2] for x in inputs]
    again = getattr(pair.compiled, name)(*strided)
    agree(again, found, 0.0)


@pytest.mark.parametrize("unroll", [False, True])
def test_single_precision_for_narrower_targets(narrower, unroll):
    for batch in ((), (11,)):
        single_precision_in_and_out("mass_matrix", unroll, batch)


def test_methods_for_narrower_targets(narrower):
    pair = both(fj.models.chain(3), shared=False)
    s = random_state(pair.reference, 9)
    found, expected = (r.inverse_dynamics_derivatives(s.q, s.v, s.a, method="chain-rule") for r in pair[:2])
    agree(found, expected, 1e-12)
    assert specialised(pair.compiled)[-1] is not None


def test_mixed_precision_is_double(quadruped):
    s = random_state(quadruped.reference, 3)
    assert quadruped.compiled.inverse_dynamics(s.q.astype(np.float32), s.v, s.a).dtype == np.float64
