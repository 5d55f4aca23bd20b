"""The public oracles: complex step and central differences agree, with shapes as documented."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet import verify
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, SingularMassMatrix, UnknownName
from helpers import CALLS, agree, every_kind, random_state

INPUTS = {name: inputs for name, inputs in CALLS.items() if name in QUANTITIES} | {
    "projected_newton_euler": ("q", "v", "fext"),
    "static_torque": ("q", "fext"),
    "torque_regressor": ("q", "v", "a"),
    "interpolate": ("q0", "q1", "t"),
    "tangent_rate": ("dv", "v"),
    "rate_map": ("q",),
    "rate_map_inverse": ("q",),
}
PAIRS = [(quantity, by) for quantity, inputs in INPUTS.items() for by in inputs if by != "fext"]


def arguments(robot: fj.Robot, quantity: str, size: int = 2) -> dict[str, np.ndarray]:
    s = random_state(robot, size)
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": robot.inverse_dynamics(*s), "fext": s.fext}
    given |= {"dv": s.v, "q0": s.q, "q1": robot.integrate(s.q, s.a), "t": np.full((size, 1), 0.3)}
    return {name: given[name] for name in INPUTS[quantity]}


@pytest.mark.parametrize("quantity, by", PAIRS)
def test_complex_step_and_central_differences_agree(quantity: str, by: str) -> None:
    robot = every_kind(5, 8)
    inputs = arguments(robot, quantity)
    exact = verify.complex_step(robot, quantity, by, **inputs)
    rough = verify.central_difference(robot, quantity, by, **inputs)
    value = robot.evaluator(quantity, *(x for name, x in inputs.items() if name != "fext"), fext=inputs.get("fext"))
    value = value[0] if isinstance(value, tuple) else value
    assert exact.shape == rough.shape == (*value.shape, 1 if by == "t" else robot.nv)
    agree(rough, exact, 1e-6, floor=np.abs(value).max())


@pytest.mark.parametrize("quantity, by", PAIRS)
def test_one_sample_is_a_batch_without_axes(quantity: str, by: str) -> None:
    robot = every_kind(5, 8)
    inputs = arguments(robot, quantity)
    batch = verify.complex_step(robot, quantity, by, **inputs)
    one = verify.complex_step(robot, quantity, by, **{k: x[0] for k, x in inputs.items()})
    agree(one, batch[0], 1e-12, floor=np.abs(batch).max())


def test_inputs_broadcast() -> None:
    robot = every_kind(5, 8)
    s = random_state(robot, 4)
    d = verify.complex_step(robot, "inverse_dynamics", "q", q=s.q[0], v=s.v, a=s.a[0], fext=s.fext)
    assert d.shape == (4, robot.nv, robot.nv)
    expected = robot.inverse_dynamics_derivatives(s.q[0], s.v, s.a[0], s.fext).dtau_dq
    agree(d, expected, 1e-12)
    d = verify.complex_step(robot, "inverse_dynamics", "v", q=s.q, v=s.v[0], a=s.a, fext=None)
    agree(d, robot.inverse_dynamics_derivatives(s.q, s.v[0], s.a).dtau_dv, 1e-12)


def test_second_derivatives_are_symmetric() -> None:
    """The complex step of an analytic derivative: d2 tau / dv dv."""
    robot = every_kind(5, 8)
    inputs = arguments(robot, "inverse_dynamics")
    d = verify.complex_step(robot, "inverse_dynamics_derivatives", "a", **inputs)
    assert d.shape == (2, robot.nv, robot.nv, robot.nv)
    M = verify.complex_step(robot, "mass_matrix", "q", q=inputs["q"])
    agree(np.swapaxes(M, 1, 2), M, 1e-13)


def test_differentiate_your_own_function() -> None:
    robot = every_kind(5, 8)
    s = random_state(robot)
    got = verify.differentiate(robot, robot.potential_energy, s.q)
    assert got.shape == (3, robot.nv)
    agree(got, robot.gravity(s.q), 1e-7)
    J = verify.differentiate(robot, robot.center_of_mass, s.q[0])
    agree(J, verify.complex_step(robot, "center_of_mass", "q", q=s.q[0]), 1e-7)


def test_check_finds_every_derivative_right() -> None:
    found = verify.check(every_kind(2, 10), samples=3)
    assert [f.quantity for f in found] == ["dtau_dq", "dtau_dv", "dtau_da", "da_dq", "da_dv", "da_dtau"]
    assert all(f.error < 1e-11 and 0 <= f.sample < 3 for f in found)


def test_check_finds_a_wrong_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle that cannot fail is worth nothing."""
    robot = every_kind(2, 10)
    right = fj.Robot.inverse_dynamics_derivatives

    def wrong(self, *args, **kwargs):
        d = right(self, *args, **kwargs)
        d.dtau_dq[1, 0, 0] += 1e-6 * np.abs(d.dtau_dq[1]).max()
        return d

    monkeypatch.setattr(fj.Robot, "inverse_dynamics_derivatives", wrong)
    finding = verify.check(robot)[0]
    assert finding.quantity == "dtau_dq"
    assert finding.error == pytest.approx(1e-6, rel=1e-2)
    assert finding.sample == 1


def test_check_of_a_singular_robot_says_so() -> None:
    b = fj.ModelBuilder("ghost")
    b.add_joint("j", "revolute")
    with pytest.raises(SingularMassMatrix, match="'j'"):
        verify.check(fj.Robot(b.build()))


@pytest.mark.parametrize("oracle", [verify.complex_step, verify.central_difference])
def test_bad_questions_are_refused(oracle) -> None:
    robot = every_kind(5, 8)
    s = random_state(robot)
    with pytest.raises(UnknownName, match="unknown quantity 'inverse_dynamic'; did you mean: inverse_dynamics"):
        oracle(robot, "inverse_dynamic", "q", q=s.q, v=s.v, a=s.a)
    with pytest.raises(UnknownName, match="'x'"):
        oracle(robot, "inverse_dynamics", "x", q=s.q, v=s.v, a=s.a)
    with pytest.raises(UnknownName, match="'tau'"):
        oracle(robot, "inverse_dynamics", "tau", q=s.q, v=s.v, a=s.a)
    with pytest.raises(InputError, match="fext"):
        oracle(robot, "inverse_dynamics", "fext", q=s.q, v=s.v, a=s.a, fext=s.fext)
    with pytest.raises(InputError, match="q: expected shape"):
        oracle(robot, "inverse_dynamics", "q", q=s.v, v=s.v, a=s.a)
    with pytest.raises(InputError, match="finite"):
        oracle(robot, "inverse_dynamics", "q", q=s.q, v=np.nan * s.v, a=s.a)
    with pytest.raises(fj.FeatherjetError):  # an input is missing
        oracle(robot, "inverse_dynamics", "q", q=s.q, v=s.v)
    with pytest.raises(fj.FeatherjetError):  # one too many
        oracle(robot, "gravity", "q", q=s.q, v=s.v)
    with pytest.raises(InputError, match="broadcast"):
        oracle(robot, "inverse_dynamics", "v", q=s.q, v=s.v[:2], a=s.a)


@pytest.mark.parametrize("step", [0, -1e-6, 1, np.nan, np.inf, "small"])
def test_bad_steps_are_refused(step) -> None:
    robot = every_kind(5, 8)
    q = robot.neutral()
    with pytest.raises(InputError, match="step"):
        verify.central_difference(robot, "gravity", "q", step=step, q=q)
    with pytest.raises(InputError, match="step"):
        verify.differentiate(robot, robot.potential_energy, q, step=step)


def test_the_oracle_refuses_a_singular_robot() -> None:
    b = fj.ModelBuilder("ghost")
    b.add_joint("j", "revolute")
    robot = fj.Robot(b.build())
    zero = np.zeros(1)
    with pytest.raises(SingularMassMatrix):
        verify.complex_step(robot, "forward_dynamics", "q", q=zero, v=zero, tau=zero)


def test_check_covers_second_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """And finds a Hessian that is wrong in one entry."""
    robot = every_kind(5, 6)
    found = verify.check(robot, samples=2, order=2)
    assert [f.quantity for f in found][6:] == list(verify.SECOND)
    assert all(f.error < (1e-9 if f.quantity.startswith("a_") else 1e-12) for f in found[6:])
    run = robot.evaluator.run

    def spoiled(name, *given, **options):
        results = run(name, *given, **options)
        if name == "inverse_dynamics_hessian":
            results[1][1, 2, 3] += 1.0
        return results

    monkeypatch.setattr(robot.evaluator, "run", spoiled)
    worst = max(verify.check(robot, samples=2, order=2), key=lambda f: f.error)
    assert (worst.quantity, worst.sample) == ("tau_qv", 1)
    with pytest.raises(InputError, match="order: expected 1 or 2, got 3"):
        verify.check(robot, order=3)
