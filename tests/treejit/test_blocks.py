"""Loops that sum over all bodies, and matrices with a block of columns for each body, held to the reference."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import featherjet as fj
from backends import BLOCKS, SUMMED, Pair, arguments, both, branches, kernel_of, results
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.evaluate import kernels
from featherjet.jit.engine import target
from helpers import agree, random_state

SUMS = ("kinetic_energy", "potential_energy", "center_of_mass", "centroidal_map", "centroidal_momentum")
TOLERANCES = ((np.float64, 1e-12), (np.float32, 2e-5))


@pytest.fixture(scope="module")
def every() -> Pair:
    """Two roots, branches, most kinds of joints."""
    return both(fj.models.random_tree(8, seed=6), shared=False)


def compare(pair: Pair, names: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    """Batches and single states of either precision, as loops."""
    for name in names:
        assert not kernel_of(pair.compiled, name).separate_single, "not a loop"
        for size in sizes:
            s = random_state(pair.reference, size, seed=size)
            for dtype, tolerance in TOLERANCES:
                args = [x.astype(dtype) for x in arguments(name, s)]
                expected = results(pair.reference, name, *(x.astype(float) for x in args))
                found = [results(pair.compiled, name, *args), results(pair.compiled, name, *(x[-1] for x in args))]
                for batch, one, y in zip(*found, expected, strict=True):
                    assert batch.dtype == one.dtype == dtype
                    agree(batch, y, tolerance, name)
                    agree(one, y[-1], tolerance, name, floor=float(np.abs(y).max()))


def test_every_quantity(every):
    compare(every, (*SUMMED, *SUMS), (3, 2 * target().lanes + 1))


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_numbers_of_columns_around_the_number_of_lanes(n):
    """10 n and 6 n columns, in whole vectors and a rest."""
    compare(both(fj.models.tree(n, seed=n), shared=False), BLOCKS, (1, target().lanes))


def test_narrower_targets(narrower):
    compare(both(fj.models.tree(5, seed=5), shared=False), (*BLOCKS, "centroidal_map"), (9,))


@pytest.mark.parametrize("name", BLOCKS)
def test_a_force_on_a_body_moves_the_joints_that_carry_it_alone(every, name):
    """All other entries are exact zeros."""
    robot = every.compiled
    x = results(robot, name, *arguments(name, random_state(robot, 5)))[0].reshape(5, robot.nv, robot.njoints, -1)
    joints = robot.model.joints
    carries = np.eye(len(joints), dtype=bool)
    for i, joint in enumerate(joints):
        if joint.parent >= 0:
            carries[:, i] |= carries[:, joint.parent]
    of = np.repeat(np.arange(len(joints)), [j.nv for j in joints])
    assert not x[:, ~carries[of]].any()
    assert (x[:, carries[of]] != 0).any()
    assert (carries | carries.T)[np.ix_(of, of)].tolist() == branches(robot)[0].tolist()


@pytest.mark.parametrize("name", [*BLOCKS, "centroidal_map", "center_of_mass", "kinetic_energy"])
@pytest.mark.parametrize("layout", ["window", "strided", "Fortran"])
def test_out_of_any_layout(every, name, layout):
    robot = every.compiled
    for size in (None, 9):
        args = arguments(name, random_state(robot, size or 1))
        args = args if size else [x[0] for x in args]
        (expected,) = results(robot, name, *args)
        whole = np.full([2 * n + 3 for n in expected.shape], -1234.5, order="F" if layout == "Fortran" else "C")
        step = 2 if layout == "strided" else 1
        out = whole[(..., *(slice(1, 1 + step * n, step) for n in expected.shape))]
        robot.evaluator.run(name, args, out=out)
        np.testing.assert_array_equal(out, expected)
        assert (whole == -1234.5).sum() == whole.size - out.size, "wrote beside the array"


def test_forces_hold_a_robot_still(every):
    s = random_state(every.reference, 5)
    for name in ("static_torque", "static_torque_derivatives"):
        found, expected = (getattr(r, name)(s.q, s.fext) for r in every[:2])
        agree(found, expected, 1e-12)


def test_sums_begin_anew_in_every_call(every):
    s = random_state(every.reference, 40)
    first = every.compiled.center_of_mass(s.q)
    np.testing.assert_array_equal(every.compiled.center_of_mass(s.q), first)


def test_what_numpy_computes_is_logged_once(caplog):
    """A quantity that is too long to compile."""
    robot = fj.Robot(fj.models.chain(3), backend="compiled")
    s = random_state(robot, 2)
    record = replace(QUANTITIES["projected_newton_euler"], longest=50)
    with caplog.at_level(logging.WARNING, logger="featherjet"):
        for _ in range(2):
            found = robot.evaluator.run(record, [s.q, s.v])
    agree(found[0], robot.mass_matrix(s.q), 1e-12)
    (message,) = [r.getMessage() for r in caplog.records if r.name == "featherjet"]
    assert "projected_newton_euler" in message
    assert "chain3" in message


def test_jacobians_of_configurations_that_numpy_computes_are_logged(caplog, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_ENTRIES", 17)
    robot = fj.Robot(fj.models.chain(3), backend="compiled")
    s = random_state(robot, 2)
    with caplog.at_level(logging.WARNING, logger="featherjet"):
        assert robot.rate_map(s.q).shape == (2, 3, 3)
        assert not caplog.records
        for _ in range(2):
            robot.integrate_jacobians(s.q, s.v)
    (message,) = [r.getMessage() for r in caplog.records if r.name == "featherjet"]
    assert "integrate_jacobians of robot 'chain3' has more than 17 entries" in message


@pytest.mark.parametrize("name", [x.name for x in QUANTITIES.values() if x.solves])
@pytest.mark.parametrize("dtype, tolerance", TOLERANCES)
@pytest.mark.parametrize("joints", [1, 4, 30])
def test_derivatives_of_accelerations_are_products(name, joints, dtype, tolerance, caplog):
    """By forces, parameters and placements: chains of compiled quantities, down to matrices smaller than a block."""
    pair = both(fj.models.tree(joints, seed=3), shared=False)
    s = random_state(pair.reference, 3)
    args = [x.astype(dtype) for x in arguments(name, s, True)]
    (expected,) = results(pair.reference, name, *(x.astype(float) for x in args))
    condition = np.linalg.cond(pair.reference.mass_matrix(s.q)).max()
    for k in (slice(None), 1):
        with caplog.at_level(logging.WARNING, logger="featherjet"):
            (found,) = results(pair.compiled, name, *(x[k] for x in args))
        assert found.dtype == dtype
        agree(found, expected[k], tolerance * condition / 10)
    assert not caplog.records
    inputs = args[: len(QUANTITIES[name].inputs)]
    plain = pair.compiled.evaluator.run(name, inputs)[0]
    rows = np.empty((*plain.shape[:1], 2 * plain.shape[1], *plain.shape[2:]), dtype)[:, ::2]
    for out in (np.empty_like(plain), rows, np.empty(plain.shape[::-1], dtype).T):
        pair.compiled.evaluator.run(name, inputs, out=out)
        np.testing.assert_array_equal(out, plain)
    with pytest.raises(fj.errors.InputError, match="q: expected shape"):
        results(pair.compiled, name, args[0][..., :-1], *args[1:])
