"""`Robot.vjp` and `Robot.jvp`: against complex step of what they differentiate, and products with matrices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import FRAME, QUANTITIES
from featherjet.algorithms.quantities import RESTITUTION as COEFFICIENT
from featherjet.errors import InputError, UnknownName
from featherjet.model import configuration
from featherjet.robot.products import DIFFERENTIABLE
from helpers import agree, error, frame_of, random_state

STEP, SIZE = 1e-30, 3
TOLERANCE = 1e-11  # accelerations and contact forces are solved for
RESTITUTION = 0.4
CASES = [(name, "local") for name in DIFFERENTIABLE] + [("frame_velocity", x) for x in ("world", "world_aligned")]


@cache
def spine(backend: str) -> fj.Robot:
    """A free base with a spherical joint, and two more joints beyond it."""
    b = fj.ModelBuilder("spine")
    for name, kind, parent in (
        ("base", "free", None),
        ("neck", "spherical", "base"),
        ("slide", "prismatic", "neck"),
        ("turn", "revolute", "slide"),
    ):
        offset = np.eye(4)
        offset[:3, 3] = 0.1, 0.2, 0.3
        b.add_joint(
            name, kind, parent, offset, axis=(0.0, 0.6, 0.8), lower=-1.0, upper=1.0, armature=0.1 * (kind == "revolute")
        )
        b.add_body(name, 1.5, (0.02, 0.01, 0.1), np.diag([0.03, 0.02, 0.025]))
    b.add_frame("tip", "turn", np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]], float))
    return fj.Robot(b.build(), backend=backend)


def options(robot: fj.Robot, name: str, viewpoint: str) -> dict[str, Any]:
    """What a quantity needs besides its inputs."""
    if FRAME in QUANTITIES[name].inputs:
        return {"frame": "tip", "viewpoint": viewpoint}
    if "contacts" not in QUANTITIES[name].options:
        return {}
    contacts = fj.Contacts(robot, [fj.PointContact("tip")])
    return {"contacts": contacts} | ({"restitution": RESTITUTION} if name == "impulse_dynamics" else {})


def inputs_of(robot: fj.Robot, name: str) -> dict[str, np.ndarray]:
    s = random_state(robot, SIZE)
    known = {"q": s.q, "q0": s.q, "q1": random_state(robot, SIZE, 5).q, "v": s.v, "dv": s.v, "a": s.a, "tau": s.a}
    return {i.name: known[i.name] for i in QUANTITIES[name].inputs if i not in (FRAME, COEFFICIENT)}


def rates(robot: fj.Robot, name: str, inputs: dict, along: dict, chosen: dict) -> list[np.ndarray]:
    """The rate of each result along directions of the inputs, by complex step of the reference."""
    moved = {
        k: configuration.integrate(robot.evaluator.space, x, 1j * STEP * along[k])
        if k[0] == "q"
        else x + 1j * STEP * along[k]
        for k, x in inputs.items()
    }
    static: dict[str, Any] = {"contacts": chosen["contacts"].core} if "contacts" in chosen else {}
    if FRAME in QUANTITIES[name].inputs:
        moved["frame"] = np.broadcast_to(frame_of(robot, "tip")["frame"], (SIZE, 13))
    if name == "frame_velocity":
        static["viewpoint"] = chosen["viewpoint"]
    if name == "impulse_dynamics":
        moved["restitution"] = np.full((SIZE, 1), RESTITUTION)
    count = len(QUANTITIES[name].results)
    found = robot.evaluator.reference(name, moved, **static)[:count]
    slopes = [np.imag(x) / STEP for x in found]
    if name == "integrate":  # from the rates of coordinates to the tangent space
        slopes = [(robot.rate_map_inverse(np.real(found[0])) @ slopes[0][..., None])[..., 0]]
    if name == "frame_placement":  # the twist of T^-1 dT
        T = np.linalg.inv(np.real(found[0])) @ slopes[0]
        slopes = [np.stack([*np.moveaxis(T[..., :3, 3], -1, 0), T[..., 2, 1], T[..., 0, 2], T[..., 1, 0]], -1)]
    if name == "impulse_dynamics":  # v+ = v + jump
        slopes[0] = slopes[0] + along["v"]
    return slopes


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize(("name", "viewpoint"), CASES)
def test_against_complex_step(name: Any, viewpoint: str, backend: str) -> None:
    robot = spine(backend)
    rng = np.random.default_rng(1)
    inputs, chosen = inputs_of(robot, name), options(robot, name, viewpoint)
    along = {k: rng.normal(size=(SIZE, robot.nv)) for k in inputs}
    expected = rates(robot, name, inputs, along, chosen)
    found = robot.jvp(name, *inputs.values(), *along.values(), **chosen)
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        agree(got, want, TOLERANCE, "jvp")
    w = [rng.normal(size=x.shape) for x in expected]
    gradients = robot.vjp(name, *inputs.values(), *w, **chosen)
    assert len(gradients) == len(inputs)
    for k, by in zip(inputs, gradients, strict=True):
        only = {n: x if n == k else 0 * x for n, x in along.items()}
        parts = rates(robot, name, inputs, only, chosen)
        want = sum((x * y).reshape(SIZE, -1).sum(-1) for x, y in zip(w, parts, strict=True))
        scale = float(np.abs(by * along[k]).sum(-1).max())
        agree((by * along[k]).sum(-1), want, TOLERANCE, f"vjp by {k}", floor=scale)


def test_products_are_rows_and_columns_of_the_matrices() -> None:
    robot: Any = spine("compiled")
    s, other = random_state(robot, SIZE), random_state(robot, SIZE, 5)
    w, d = s.a, other.v
    for name, x, matrices in (
        ("integrate", (s.q, s.v), robot.integrate_jacobians(s.q, s.v)),
        ("difference", (s.q, other.q), robot.difference_jacobians(s.q, other.q)),
    ):
        for got, M in zip(robot.vjp(name, *x, w), matrices, strict=True):
            agree(got, np.einsum("ni,nij->nj", w, M), 1e-13)
        agree(
            robot.jvp(name, *x, d, w),
            np.einsum("nij,nj->ni", matrices[0], d) + (matrices[1] @ w[..., None])[..., 0],
            1e-13,
        )
    by_q, by_v = robot.vjp("kinetic_energy", s.q, s.v, 2.0)
    agree(by_v, 2 * (robot.mass_matrix(s.q) @ s.v[..., None])[..., 0], 1e-13)
    assert error(by_q[:, :6], np.zeros((SIZE, 6)), 1.0) < 1e-14  # energy does not see where the base is


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_both_kinds_of_code(unroll: bool) -> None:
    robot, plain = fj.Robot(spine("numpy").model, backend="compiled", unroll=unroll), spine("numpy")
    s = random_state(plain, 11)
    for got, want in zip(*(r.vjp("kinetic_energy", s.q, s.v, s.q[:, 0]) for r in (robot, plain)), strict=True):
        agree(got, want, 1e-13)


def test_batches_broadcast_and_results_go_where_asked() -> None:
    robot = spine("numpy")
    s = random_state(robot, 4)
    w = np.random.default_rng(0).normal(size=(5, 1, 6))
    by_q, by_v = robot.vjp("frame_velocity", s.q, s.v, w, frame="tip", viewpoint="world")
    assert by_q.shape == by_v.shape == (5, 4, robot.nv)
    agree(by_q[2, 1], robot.vjp("frame_velocity", s.q[1], s.v[1], w[2, 0], frame="tip", viewpoint="world")[0], 1e-13)
    assert robot.jvp("kinetic_energy", s.q, s.v, s.a[0], s.a).shape == (4,)
    out = np.empty((4, 3))
    assert robot.jvp("center_of_mass", s.q, s.v, out=out) is out
    agree(out, robot.centroidal_momentum(s.q, s.v)[:, :3] / robot.mass, 1e-13)


def test_other_products_and_conventions() -> None:
    robot = spine("numpy")
    s = random_state(robot, 2)
    by = robot.vjp("forward_dynamics", s.q, s.v, s.a, s.v, fext=s.fext)
    assert [x.shape for x in by] == [(2, robot.nv)] * 3 + [(2, robot.njoints, 6)]
    own = robot.with_convention("drake")
    t = random_state(own, 2)
    for gradient, matrix in zip(own.vjp("integrate", t.q, t.v, t.a), own.integrate_jacobians(t.q, t.v), strict=True):
        agree(gradient, np.einsum("ni,nij->nj", t.a, matrix), 1e-13)
    by_q, by_v = own.vjp("kinetic_energy", t.q, t.v, 1.0)
    agree(by_v, (own.mass_matrix(t.q) @ t.v[..., None])[..., 0], 1e-12)
    for k, h in enumerate(1e-6 * np.eye(robot.nv)):
        ends = [own.kinetic_energy(own.integrate(t.q, x), t.v) for x in (h, -h)]
        agree(by_q[:, k], (ends[0] - ends[1]) / 2e-6, 1e-7, floor=float(np.abs(by_q).max()))


def test_mistakes() -> None:
    robot: Any = spine("numpy")
    s = random_state(robot, 2)
    with pytest.raises(UnknownName, match="quantity to differentiate"):
        robot.vjp("integrat", s.q, s.v, s.v)
    with pytest.raises(InputError, match="jvp of integrate: takes q, dv, dq, ddv; got 3 arrays"):
        robot.jvp("integrate", s.q, s.v, s.v)
    with pytest.raises(InputError, match=r"w: expected shape \(\.\.\., 11\)"):
        robot.vjp("integrate", s.q, s.v, s.v[:, :3])
    with pytest.raises(InputError, match=r"w: expected shape \(\.\.\., 3\)"):
        robot.vjp("center_of_mass", s.q, s.v)
    with pytest.raises(InputError, match="batch shapes do not broadcast"):
        robot.vjp("center_of_mass", s.q, np.ones((3, 3)))
    with pytest.raises(InputError, match="needs a frame"):
        robot.vjp("frame_placement", s.q, np.ones(6))
    with pytest.raises(InputError, match="does not take contacts"):
        robot.vjp("potential_energy", s.q, 1.0, contacts=fj.Contacts(robot, [fj.PointContact("tip")]))
    with pytest.raises(InputError, match="does not take external forces"):
        robot.jvp("potential_energy", s.q, s.v, fext=s.fext)
    with pytest.raises(InputError, match="does not take a viewpoint"):
        robot.jvp("frame_placement", s.q, s.v, frame="tip", viewpoint="world")
    with pytest.raises(InputError, match="does not take a restitution"):
        robot.jvp("integrate", s.q, s.v, s.v, s.v, restitution=0.5)
