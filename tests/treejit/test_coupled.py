"""Robots with mimicking joints in code that robots share: the tree's own between two maps, against the reference."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import featherjet as fj
from backends import Pair, both
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, SingularMassMatrix
from featherjet.jit.chain import Chain
from featherjet.model.io.urdf import parse_urdf
from featherjet.model.parts import Mimic
from featherjet.treejit.coupled import is_foldable
from featherjet.treejit.linear import Runs
from helpers import each_agrees, frame_of, random_state
from urdf_helpers import coupled_urdf

FOLDED = [x.name for x in QUANTITIES.values() if is_foldable(x) or x.solves]


@cache
def pair(root: str) -> Pair:
    return both(parse_urdf(coupled_urdf(), root, mimic=True), unroll=False)


def inputs(
    robot: fj.Robot, name: str, batch: tuple[int, ...], forces: bool
) -> tuple[list[np.ndarray], np.ndarray | None]:
    rng, size = np.random.default_rng(len(name)), robot.evaluator.inputs.sizes()

    def values(axes):
        return rng.normal(size=(*batch, *(size[x] if isinstance(x, str) else x for x in axes)))

    q = robot.random_configuration(rng, batch) if batch else robot.random_configuration(rng)
    known = {"q": q, "frame": frame_of(robot, "l6")["frame"]}
    given = [known[i.name] if i.name in known else values(i.axes) for i in QUANTITIES[name].inputs]
    return given, values(("joints", 6)) if forces else None


def options(name: str) -> dict[str, str]:
    return dict.fromkeys(QUANTITIES[name].options, "local")


@pytest.mark.parametrize("name", FOLDED)
@pytest.mark.parametrize("root", ["fixed", "free"])
def test_shared_code_gives_what_the_reference_gives(name, root):
    robot, reference, _ = pair(root)
    for forces in (False, True) if QUANTITIES[name].forces else (False,):
        for batch in ((), (11,)):
            given, fext = inputs(robot, name, batch, forces)
            found, expected = (r.evaluator.run(name, given, fext, **options(name)) for r in (robot, reference))
            for x, y in zip(found, expected, strict=True):
                each_agrees(x[None], y[None], 1e-11, name)
    record = QUANTITIES[name]
    assert isinstance(robot.evaluator.kernel(record, [i.name for i in record.inputs], options(name)), Chain)


@pytest.mark.parametrize(
    "name", ["mass_matrix", "inverse_mass_matrix", "forward_dynamics_derivatives", "torque_regressor"]
)
def test_results_go_to_rows_that_are_apart(name):
    robot, reference, _ = pair("free")
    given, _ = inputs(robot, name, (5,), False)
    expected = reference.evaluator.run(name, given)
    out = tuple(np.full((5, 2 * x.shape[1], *x.shape[2:]), np.nan)[:, ::2] for x in expected)
    robot.evaluator.run(name, given, out=out)
    for x, y in zip(out, expected, strict=True):
        each_agrees(x, y, 1e-11)


def test_single_precision():
    robot, reference, _ = pair("fixed")
    s = random_state(reference, 20)
    found = robot.inverse_dynamics_derivatives(*(x.astype(np.float32) for x in (s.q, s.v, s.a)))
    for x, y in zip(found, reference.inverse_dynamics_derivatives(s.q, s.v, s.a), strict=True):
        assert x.dtype == np.float32
        each_agrees(x, y, 2e-5)


def test_mistakes_are_named():
    robot, reference, _ = pair("fixed")
    s = random_state(reference, 5)
    s.v[3, 1] = np.nan
    with pytest.raises(InputError, match=r"v\[3, 1\] is nan"):
        robot.inverse_dynamics_derivatives(s.q, s.v, s.a)


def test_singular_mass_matrices_are_refused():
    b = fj.ModelBuilder("nothing")
    b.add_joint("leader", "revolute")
    b.add_joint("follower", "revolute", "leader", mimic=Mimic("leader", -1.0))
    b.add_body("follower", 1.0, np.zeros(3), np.diag([0.1, 0.2, 0.3]))
    robot = fj.Robot(b.build(), backend="compiled", unroll=False)
    for q in (np.zeros(1), np.zeros((5, 1))):
        with pytest.raises(SingularMassMatrix, match="'leader'"):
            robot.inverse_mass_matrix(q)


def long_chain(n: int) -> fj.Model:
    """Every third joint follows the one before it."""
    b = fj.ModelBuilder("long")
    rng = np.random.default_rng(0)
    for i in range(n):
        mimic = Mimic(f"j{i - 1}", 0.5, 0.1) if i % 3 == 2 else None
        b.add_joint(f"j{i}", "revolute", f"j{i - 1}" if i else None, axis=np.eye(3)[i % 3], mimic=mimic)
        b.add_body(f"j{i}", 1.0, rng.normal(size=3) / 10, np.diag([0.3, 0.4, 0.5]))
    return b.build()


def test_long_robots_are_compiled_as_they_are(caplog):
    """No quantity of these falls back to NumPy; forward dynamics undoes inverse dynamics."""
    robot = fj.Robot(long_chain(120), backend="compiled", threads=1)
    s = random_state(robot, 3)
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    each_agrees(robot.forward_dynamics(s.q, s.v, tau), s.a, 1e-7)
    first = robot.inverse_dynamics_derivatives(s.q, s.v, s.a)
    second = robot.forward_dynamics_derivatives(s.q, s.v, tau)
    each_agrees(second.da_dq, -np.linalg.solve(first.dtau_da, first.dtau_dq), 1e-7)
    inverse = robot.inverse_mass_matrix(s.q)
    np.testing.assert_array_equal(inverse, inverse.swapaxes(1, 2))
    each_agrees(first.dtau_da, robot.mass_matrix(s.q), 1e-12)
    assert not caplog.records


def test_runs():
    runs = Runs.of(np.array([0, 1, 1, 2, 3, 0]), np.array([1.0, 1.0, 0.5, 1.0, 1.0, 2.0]))
    assert runs.places.tolist() == [[0, 0, 1], [1, 1, 1], [3, 2, 1], [4, 3, 1], [2, 1, 1], [5, 0, 1]]
    joined = runs.joined()
    assert (joined.places.tolist(), joined.factors.tolist()) == (
        [[0, 0, 2], [3, 2, 2], [2, 1, 1], [5, 0, 1]],
        [1, 1, 0.5, 2],
    )
    assert (runs.first, joined.first) == (4, 2)
