"""Compiled motion on the manifold of configurations against the reference, for every joint and convention."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from backends import kernel_of
from featherjet.conventions.charts import CONVENTIONS
from helpers import error, every_kind

EPS = float(np.finfo(float).eps)
CALLS = {
    "integrate": ("q", "dv"),
    "difference": ("q", "end"),
    "interpolate": ("q", "end", "t"),
    "integrate_jacobians": ("q", "dv"),
    "difference_jacobians": ("q", "end"),
    "rate_map": ("q",),
    "rate_map_inverse": ("q",),
}
# none, tiny, small, at the border of series and closed forms (4 rad), large; the last entries of v turn
SIZES = [0.0, 1e-160, 1e-12, 1e-4, 1.0, 3.9999, 4.0, 4.0001, 40.0]


@pytest.fixture(scope="module")
def model() -> fj.Model:
    return every_kind(3, 8).model


def given(robot: fj.Robot, size: float, batch: int = 9) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng, batch)
    dv = rng.normal(size=(batch, robot.nv))
    for part in robot.evaluator.places.nodes:
        turn = dv[:, part.v][:, -3:]
        turn *= size / np.linalg.norm(turn, axis=-1, keepdims=True)
    reference = fj.Robot(robot.model, backend="numpy").with_convention(robot.convention)
    return {"q": q, "dv": dv, "end": reference.integrate(q, dv),
            "t": rng.uniform(-1, 2, batch)}  # fmt: skip


def called(robot: fj.Robot, name: str, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    found = getattr(robot, name)(*(inputs[k] for k in CALLS[name]))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_agrees_with_the_reference(model, convention, name):
    """To a few roundings of the largest entry: both run the same operations, in another order.

    Near half a turn the Jacobians of the difference are well-conditioned still; the difference itself may jump.
    """
    compiled = fj.Robot(model, backend="compiled").with_convention(convention)
    reference = fj.Robot(model, backend="numpy").with_convention(convention)
    for size in SIZES:
        inputs = given(compiled, size)
        for batch in (inputs, {k: x[0] for k, x in inputs.items()}):
            for ours, theirs in zip(called(compiled, name, batch), called(reference, name, batch), strict=True):
                assert error(ours, theirs, floor=1.0) <= 16 * EPS, size
    assert compiled.evaluator.ready.kernels, "nothing was compiled"


@pytest.mark.parametrize("angle", [np.pi - 1e-3, np.pi - 1e-9, np.pi])
def test_near_half_a_turn(angle):
    """The way there is as long, and leads to the same place."""
    b = fj.ModelBuilder("x")
    for kind in ("continuous", "planar", "spherical", "free"):
        b.add_joint(kind, kind)
    robot = fj.Robot(b.build(), backend="compiled")
    inputs = given(robot, angle, 64)
    back = robot.difference(inputs["q"], inputs["end"])
    R = robot.forward_kinematics
    assert error(R(robot.integrate(inputs["q"], back)), R(inputs["end"]), floor=1.0) <= 64 * EPS
    for joint, _, _, v in robot.model.parts:
        if joint.name != "planar":
            length = np.linalg.norm(back[:, v][:, -3:], axis=-1)
            assert np.abs(length - angle).max() <= 16 * EPS * np.pi, joint.name


def test_singles_batches_precisions_and_outputs(model):
    robot = fj.Robot(model, backend="compiled")
    inputs = given(robot, 1.0, 5)
    for name in CALLS:
        whole = called(robot, name, inputs)
        out = tuple(np.full_like(x, np.nan) for x in whole)
        args = [inputs[k] for k in CALLS[name]]
        found = getattr(robot, name)(*args, out=out if len(out) > 1 else out[0])
        assert (found[0] if isinstance(found, tuple) else found) is out[0]
        for x, y in zip(out, whole, strict=True):
            np.testing.assert_array_equal(x, y)
        single = called(robot, name, {k: x.astype(np.float32) for k, x in inputs.items()})
        assert all(x.dtype == np.float32 for x in single)
        for x, y in zip(single, whole, strict=True):
            assert error(x, y, floor=1.0) <= 2e-6  # quaternions of rounded entries
        grid = called(robot, name, {k: x[:, None] if k == "q" else x[None] for k, x in inputs.items()})
        if len(args) > 1:
            assert grid[0].shape[:2] == (5, 5)
            np.testing.assert_array_equal(grid[0][2, 2], whole[0][2])


def test_wrong_inputs_are_named(model):
    robot = fj.Robot(model, backend="compiled")
    q, v = robot.neutral(), np.zeros(robot.nv)
    robot.integrate(q, v), robot.difference(q, q)
    with pytest.raises(fj.errors.InputError, match=r"dv: expected shape \(..., \d+\), with nv"):
        robot.integrate(q, v[:-1])
    with pytest.raises(fj.errors.InputError, match=r"dv\[0\] is nan"):
        robot.integrate(q, v * np.nan)
    with pytest.raises(fj.errors.InputError, match=r"q1: joint .*has norm 0, not 1"):
        robot.difference(q, 0 * q)
    with pytest.raises(fj.errors.InputError, match="batch shapes do not broadcast: q0"):
        robot.difference(np.stack([q] * 2), np.stack([q] * 3))
    with pytest.raises(fj.errors.InputError, match="out: expected shapes"):
        robot.integrate(q, v, out=np.empty(3))
    with pytest.raises(fj.errors.InputError, match="t"):
        robot.interpolate(q, q, "half")


def test_jacobians_of_large_robots():
    """Nearly all zeros, which take neither operations nor code."""
    robot = fj.Robot(fj.models.chain(120), backend="compiled")
    assert kernel_of(robot, "integrate_jacobians").separate_single
    by_q, by_dv = robot.integrate_jacobians(np.zeros(120), np.ones(120))
    np.testing.assert_array_equal(by_q, np.eye(120))
    np.testing.assert_array_equal(by_dv, np.eye(120))


def test_mimicking_joints_have_no_coordinates():
    robot, reference = (fj.load("panda", mimic=True, backend=b) for b in ("compiled", "numpy"))
    rng = np.random.default_rng(0)
    q, end = robot.random_configuration(rng, 2)
    np.testing.assert_allclose(robot.difference(q, end), end - q, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(robot.integrate(q, end - q), reference.integrate(q, end - q))
