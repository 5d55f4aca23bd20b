"""float32 in, float32 out: code that computes in single precision, held to double precision at the same inputs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import featherjet as fj
from backends import CALLS, ROLLED, Pair, arguments, both, compare, kernel_of, pair_of, results, spoiled
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, PhysicsWarning, SingularMassMatrix
from featherjet.jit.engine import target
from featherjet.jit.number import SINGLE
from featherjet.model.builder import transform
from helpers import agree, random_state

DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
KINDS_OF_CODE = ("inverse_dynamics", "forward_kinematics", *DERIVATIVES)
single = np.float32


@pytest.fixture(params=[False, True], ids=["rolled", "unrolled"])
def arm(request: pytest.FixtureRequest) -> Pair:
    return pair_of("arm", request.param)


def floats(args: list[np.ndarray]) -> list[np.ndarray]:
    return [x.astype(single) for x in args]


# Accuracy


@pytest.mark.parametrize(
    "robot, unroll, names",
    [
        ("every kind", False, ("inverse_dynamics", "forward_dynamics")),
        ("quadruped", False, ROLLED),
        ("arm", True, CALLS),
    ],
)
def test_every_quantity(robot, unroll, names):
    """Every kind of joint, loops, straight-line code; whole vectors and a rest, and single states."""
    pair = pair_of(robot, unroll)
    compare(pair, random_state(pair.reference, 2 * target().lanes + 3), names, dtype=single)
    compare(pair, random_state(pair.reference, 2, seed=2), names, each=True, dtype=single)


def test_derivatives_of_a_quadruped():
    """2e-5 of the largest entry for inverse dynamics; M^-1 adds what it is conditioned by."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysicsWarning)
        robots = [fj.load("hyq", "free", backend=backend) for backend in ("compiled", "numpy")]
    s = random_state(robots[0], 64)
    args = floats([s.q, s.v, s.a])
    condition = np.linalg.cond(robots[1].mass_matrix(args[0])).max()
    for name, tolerance in zip(DERIVATIVES, (2e-5, np.finfo(single).eps * condition), strict=True):
        exact = results(robots[1], name, *(x.astype(float) for x in args))
        for x, y in zip(results(robots[0], name, *args), exact, strict=True):
            agree(x, y, tolerance)


@pytest.mark.parametrize("n", [3, 8, 15, 16, 17, 33])
def test_numbers_of_dofs_around_the_number_of_lanes(n):
    pair = both(fj.models.tree(n, seed=n), shared=False, fext=False)
    for size in (1, 2 * target().lanes, 2 * target().lanes + 1):
        compare(pair, random_state(pair.reference, size, seed=n), DERIVATIVES, dtype=single)


@pytest.mark.parametrize("n", [1, 3, 4, 5])
def test_numbers_of_entries_around_the_number_of_lanes(n):
    pair = both(fj.models.tree(n, seed=n), unroll=True)
    for size in (1, 2 * target().lanes + 1):
        compare(pair, random_state(pair.reference, size, seed=n), ("mass_matrix",), dtype=single)


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_narrower_targets(narrower, unroll):
    pair = pair_of("quadruped", unroll)
    compare(pair, random_state(pair.reference, 19, seed=1), KINDS_OF_CODE, dtype=single)
    compare(pair, random_state(pair.reference, 2, seed=2), KINDS_OF_CODE[:2], each=True, dtype=single)


def test_it_really_computes_in_single_precision(arm):
    """A mass matrix that is rounded only at the end would be nearest to the exact one everywhere."""
    s = random_state(arm.reference, 64)
    M = arm.compiled.mass_matrix(s.q.astype(single))
    exact = arm.reference.mass_matrix(s.q.astype(single).astype(float))
    assert (M != exact.astype(single)).mean() > 0.1


# Arrays


def test_code_for_doubles_is_left_alone(arm):
    """Mixed precision computes in double, and so does everything that is no float32 array."""
    s = random_state(arm.reference, 5)
    q, v, a = floats([s.q, s.v, s.a])
    expected = arm.compiled.inverse_dynamics(*(x.astype(float) for x in (q, v, a)))
    for given in ((q.astype(float), v, a), (q, v, a.astype(float)), (q.tolist(), v.tolist(), a.tolist())):
        found = arm.compiled.inverse_dynamics(*given)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", ["C", "window", "strided", "Fortran"])
@pytest.mark.parametrize("name", KINDS_OF_CODE)
def test_layouts(arm, name, layout):
    """Of inputs and of `out`: the same bits, and nothing beside them is touched."""
    for size in (None, 2 * target().lanes + 1):
        args = floats(arguments(name, random_state(arm.reference, size or 1)))
        args = args if size else [x[0] for x in args]
        expected = results(arm.compiled, name, *args)
        strided = [np.repeat(x, 2, -1)[..., ::2] for x in args]
        for x, y in zip(results(arm.compiled, name, *strided), expected, strict=True):
            np.testing.assert_array_equal(x, y)
        if name == "forward_kinematics":
            continue  # takes no out
        outs, wholes = [], []
        for y in expected:
            whole = np.full([2 * n + 3 for n in y.shape], -1234.5, single, order="F" if layout == "Fortran" else "C")
            step = 2 if layout == "strided" else 1
            view = whole[tuple(slice(1, 1 + step * n, step) for n in y.shape)]
            outs.append(np.empty_like(y) if layout == "C" else view)
            wholes.append(whole)
        results(arm.compiled, name, *args, out=tuple(outs) if len(outs) > 1 else outs[0])
        for x, y, whole in zip(outs, expected, wholes, strict=True):
            np.testing.assert_array_equal(x, y)
            assert (whole == -1234.5).sum() == whole.size - (layout != "C") * x.size, "wrote beside the array"


def test_results_of_the_other_precision_may_be_asked_for(arm):
    s = random_state(arm.reference, 5)
    args = floats([s.q, s.v, s.a])
    out = np.zeros((5, 7))
    assert arm.compiled.inverse_dynamics(*args, out=out) is out
    np.testing.assert_array_equal(out, arm.compiled.inverse_dynamics(*args))


def test_one_state_takes_the_direct_way_in_either_precision(arm):
    """And changes from one to the other at will."""
    robot = fj.Robot(arm.compiled.model, backend="compiled", threads=1, unroll=arm.compiled.unroll)
    s = random_state(robot, 1)
    args = arguments("forward_dynamics", s)
    both_kinds = [[x[0] for x in args], [x[0].astype(single) for x in args]]
    expected = [robot.forward_dynamics(*given) for given in both_kinds]
    for given, want in zip(both_kinds * 2, expected * 2, strict=True):
        for _ in range(2):
            found = robot.forward_dynamics(*given)
            assert found.dtype == given[0].dtype
            np.testing.assert_array_equal(found, want)
    direct = kernel_of(robot, "forward_dynamics").direct_code(SINGLE)
    assert direct is not None
    out = np.zeros(7, single)
    assert direct(*both_kinds[1], out) == 0
    np.testing.assert_array_equal(out, expected[1])
    assert direct(*both_kinds[0], out) != 0, "doubles are declined"


def test_results_do_not_depend_on_threads(arm):
    """To the last bit; 8001 samples end in the middle of a vector."""
    args = floats(arguments(DERIVATIVES[1], random_state(arm.reference, 8001)))
    robots = [
        fj.Robot(arm.compiled.model, backend="compiled", threads=n, unroll=arm.compiled.unroll) for n in (1, 2, 3)
    ]
    first, *others = [results(r, DERIVATIVES[1], *args) for r in robots]
    for other in others:
        for x, y in zip(first, other, strict=True):
            np.testing.assert_array_equal(x, y)


# Mistakes and singular mass matrices


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(arm, bad):
    s = random_state(arm.reference, 40)
    q, v, a = floats([s.q, s.v, s.a])
    with pytest.raises(InputError, match=r"v\[37, 2\] is"):
        arm.compiled.inverse_dynamics(q, spoiled(v, (37, 2), bad), a)
    with pytest.raises(InputError, match=r"v\[2\] is"):
        arm.compiled.inverse_dynamics(q[0], spoiled(v[0], (2,), bad), a[0])


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_quaternions(unroll):
    """Rounding to float32 is no mistake, a norm that is off by 1e-5 is."""
    robot = pair_of("quadruped", unroll).compiled
    q = random_state(robot, 500).q.astype(single)
    robot.mass_matrix(q)
    q[17, 3:7] *= 1 + 1e-5
    with pytest.raises(InputError, match="17"):
        robot.mass_matrix(q)


def hanging(mass: float) -> fj.Model:
    """Three links in a plane that carry a point mass: without mass of their own, one of them moves nothing."""
    b = fj.ModelBuilder("hanging")
    b.add_joint("upper", "revolute", axis=(0, 1, 0))
    b.add_body("upper", mass, (0, 0, 0.5), 0.1 * mass * np.eye(3))
    b.add_joint("lower", "revolute", "upper", transform(None, (0, 0, 1.0)), axis=(0, 1, 0))
    b.add_joint("tip", "revolute", "lower", transform(None, (0.3, 0, 0.4)), axis=(0, 1, 0))
    b.add_body("tip", 1.0, (0.1, 0, 0.2), np.zeros((3, 3)))
    return b.build()


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
@pytest.mark.parametrize("name", [x for x in CALLS if QUANTITIES[x].margins])
def test_singular_mass_matrices_are_noticed(unroll, name):
    robot = fj.Robot(hanging(0.0), backend="compiled", threads=1, unroll=unroll)
    args = floats(arguments(name, random_state(robot, 20)))
    with pytest.raises(SingularMassMatrix):
        results(robot, name, *args)
    with pytest.raises(SingularMassMatrix):
        results(robot, name, *(x[0] for x in args))


@pytest.mark.parametrize("unroll", [False, True], ids=["rolled", "unrolled"])
def test_nearly_singular_mass_matrices_are_computed_in_double(unroll):
    """Where single precision has no digits left, results are those of double precision, rounded."""
    robot = fj.Robot(hanging(1e-8), backend="compiled", threads=1, unroll=unroll)
    args = floats(arguments("forward_dynamics", random_state(robot, 20)))
    want = robot.forward_dynamics(*(x.astype(float) for x in args)).astype(single)
    assert kernel_of(robot, "forward_dynamics")(args, None, 1)[1], "single precision would do"
    for k in (slice(None), 3):
        given = [x[k] for x in args]
        np.testing.assert_array_equal(robot.forward_dynamics(*given), want[k])
        tau = given[2].copy()
        assert robot.forward_dynamics(given[0], given[1], tau, out=tau) is tau
        np.testing.assert_array_equal(tau, want[k])
