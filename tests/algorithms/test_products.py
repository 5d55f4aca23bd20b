"""Products with derivatives: against complex step of the dynamics, along one direction or by one weight at a time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from backends import both, small_quadruped
from featherjet.algorithms.derivatives import products, products_body
from featherjet.algorithms.record import flat
from featherjet.algorithms.scan import Scan
from featherjet.errors import InputError
from featherjet.model import configuration
from helpers import agree, every_kind, models, random_state

STEP = 1e-30
DYNAMICS = {"inverse_dynamics": 1e-12, "forward_dynamics": 1e-9}  # the latter divides by M


def directions(robot: fj.Robot, size: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    by = dict(zip(("q", "v", "third"), rng.normal(size=(3, size, robot.nv)), strict=True))
    return by | {"fext": rng.normal(size=(size, robot.njoints, 6))}


def rate(robot: fj.Robot, name: str, s, d: dict[str, np.ndarray]) -> np.ndarray:
    """The derivative of dynamics along a direction by complex step: exact, and of other algorithms."""
    third = {"inverse_dynamics": "a", "forward_dynamics": "tau"}[name]
    moved = {
        "q": configuration.integrate(robot.evaluator.space, s.q, 1j * STEP * d["q"]), "v": s.v + 1j * STEP * d["v"],
        third: s.a + 1j * STEP * d["third"], "fext": s.fext + 1j * STEP * d["fext"],
    }  # fmt: skip
    return np.imag(robot.evaluator.reference(name, moved)[0]) / STEP


def check(robot: fj.Robot, name: str, seed: int, size: int = 2) -> None:
    """Forward: the rate along a direction. Backward: w . rate = gradient . direction, for each input by itself."""
    s, d = random_state(robot, size, seed), directions(robot, size, seed)
    expected, tolerance = rate(robot, name, s, d), DYNAMICS[name]
    scale = np.abs(expected).max() + np.abs(getattr(robot, name)(s.q, s.v, s.a, s.fext)).max()
    along = d["q"], d["v"], d["third"]
    got = robot.jvp(name, s.q, s.v, s.a, *along, fext=s.fext, dfext=d["fext"])
    agree(got, expected, tolerance, f"{name}_jvp", floor=scale)
    fixed = d | {"fext": 0 * d["fext"]}
    without = robot.jvp(name, s.q, s.v, s.a, *along, fext=s.fext)
    agree(without, rate(robot, name, s, fixed), tolerance, f"{name}_jvp without dfext", floor=scale)
    w = np.random.default_rng(seed + 1).normal(size=(size, robot.nv))
    gradient = robot.vjp(name, s.q, s.v, s.a, w, fext=s.fext)
    for k, x in enumerate(gradient):
        along_k = {n: y if n == list(d)[k] else 0 * y for n, y in d.items()}
        want = (w * rate(robot, name, s, along_k)).sum(-1)
        agree((x * d[list(d)[k]]).reshape(size, -1).sum(-1), want, tolerance, gradient._fields[k], floor=10 * scale)


@pytest.mark.parametrize("name", DYNAMICS)
@settings(max_examples=25)
@given(model=models(most=7), seed=st.integers(0, 99))
def test_drawn_trees(name, model, seed):
    check(fj.Robot(model, backend="numpy"), name, seed)


@settings(max_examples=25)
@given(model=models(most=7), seed=st.integers(0, 99))
def test_body_coordinates_give_what_ground_coordinates_give(model, seed):
    """The adjoint and tangent of Balafoutis and Patel's recursion against the formulas of docs/second-order.md (2)."""
    robot = fj.Robot(model, backend="numpy")
    s, d = (
        {k: np.moveaxis(np.asarray(x), 0, -1) for k, x in parts.items()}
        for parts in (random_state(robot, 2, seed)._asdict(), directions(robot, 2, seed))
    )
    scan = Scan(robot.evaluator.tree, (2,))
    state, fext = (s["q"], s["v"], s["a"]), scan.forces(s["fext"])
    for name, more in (
        ("inverse_dynamics_force_vjp", (d["third"], fext)),
        ("inverse_dynamics_jvp", (d["q"], d["v"], d["third"], d["fext"], fext)),
        ("torque_slopes", (d["third"] ** 2,)),
    ):
        ground, body = (flat(getattr(module, name)(scan, *state, *more)) for module in (products, products_body))
        scale = max(np.abs(x).max() for x in ground)  # of all, since some vanish
        for x, y in zip(body, ground, strict=True):
            agree(x, y, 1e-13, name, floor=scale)


@pytest.mark.parametrize("name", DYNAMICS)
@pytest.mark.parametrize("load", ["panda", "quadruped", "every kind"])
def test_robots(name, load):
    check(every_kind() if load == "every kind" else fj.load(load, mimic=True), name, 3)


@pytest.mark.parametrize("name", DYNAMICS)
def test_products_are_rows_and_columns_of_the_matrices(name):
    robot = every_kind(2)
    s, d = random_state(robot, 3), directions(robot, 3, 1)
    D = getattr(robot, f"{name}_derivatives")(s.q, s.v, s.a)
    vjp, jvp = partial(robot.vjp, name), partial(robot.jvp, name)
    for got, matrix in zip(vjp(s.q, s.v, s.a, d["q"]), D, strict=True):
        agree(got, np.einsum("ni,nij->nj", d["q"], matrix), DYNAMICS[name] / 10)
    expected = sum(np.einsum("nij,nj->ni", M, x) for M, x in zip(D, (d["q"], d["v"], d["third"]), strict=True))
    agree(jvp(s.q, s.v, s.a, d["q"], d["v"], d["third"]), expected, DYNAMICS[name] / 10)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
@pytest.mark.parametrize("name", DYNAMICS)
def test_compiled_with_forces(name, unroll):
    """Derivatives by external forces have code of their own; test_compiled.py compares all other products."""
    pair = both(small_quadruped(), unroll, shared=False)
    s, d = random_state(pair.reference, 11), directions(pair.reference, 11, 2)
    for kind, more, forces in (
        ("vjp", (d["q"],), {"fext": s.fext}),
        ("jvp", (d["q"], d["v"], d["third"]), {"fext": s.fext, "dfext": d["fext"]}),
    ):
        got, expected = (getattr(r, kind)(name, s.q, s.v, s.a, *more, **forces) for r in pair[:2])
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected)), strict=True):
            agree(x, y, DYNAMICS[name] / 10)


def test_out_bound_calls_and_mistakes():
    robot = fj.Robot(fj.models.arm(), backend="numpy")
    s = random_state(robot, 4)
    out = tuple(np.empty((4, robot.nv)) for _ in range(3))
    found = robot.vjp("inverse_dynamics", s.q, s.v, s.a, s.a[0], out=out)
    assert all(x is y for x, y in zip(found, out, strict=True))
    step = robot.bind("forward_dynamics_vjp")
    step.q, step.v, step.tau, step.w = s.q[0], s.v[0], s.a[0], s.a[1]
    step()
    agree(step.by_tau, robot.inverse_mass_matrix(s.q[0]) @ s.a[1], 1e-12)
    with pytest.raises(InputError, match=r"w: expected shape \(\.\.\., 7\)"):
        robot.vjp("inverse_dynamics", s.q, s.v, s.a, s.q[:, :3])
    with pytest.raises(InputError, match=r"dfext: expected shape \(\.\.\., 7, 6\)"):
        robot.jvp("inverse_dynamics", s.q, s.v, s.a, s.v, s.v, s.v, dfext=s.v)
