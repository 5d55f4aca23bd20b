"""The derivatives that bridges follow, on the algorithms themselves: by complex step, and off the unit sphere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.bridges.ambient import twisted, untwisted
from featherjet.bridges.robots import RobotFunction, RobotFunctions, Selection
from featherjet.bridges.rules import BeyondOrder, Point
from featherjet.bridges.table import TABLE, Role, smooth
from featherjet.errors import InputError, UnknownName
from featherjet.robot.robot import robot_of
from helpers import agree, error

STEP, SIZE = 1e-30, 2
TOLERANCE = 1e-11  # accelerations and contact forces are solved for
FIRST_ONLY = [f"{k}_{x}" for k in ("constrained_dynamics", "impulse_dynamics") for x in ("jvp", "vjp", "derivatives")]
ENDED = [k for k, f in TABLE.items() if k.endswith(("hessian", "second")) or "force_" in k or k in FIRST_ONLY]


@cache
def functions() -> RobotFunctions:
    """Of a robot with joints of several manifolds: a free base, a spherical, a planar and two one-dof joints."""
    b = fj.ModelBuilder("puppet")
    for name, kind, parent in (
        ("base", "free", None),
        ("neck", "spherical", "base"),
        ("knob", "continuous", "neck"),
        ("sled", "planar", "base"),
        ("turn", "revolute", "sled"),
    ):
        offset = np.eye(4)
        offset[:3, 3] = 0.1, 0.2, 0.3
        b.add_joint(name, kind, parent, offset, axis=(0.0, 0.6, 0.8), armature=0.1 * (kind == "revolute"))
        b.add_body(name, 1.5, (0.02, 0.01, 0.1), np.diag([0.03, 0.02, 0.025]))
    b.add_frame("tip", "turn", np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]], float))
    return RobotFunctions(fj.Robot(b.build(), backend="compiled"), "tests")


@cache
def selection() -> Selection:
    robot = robot_of(functions().evaluator)
    return Selection("tip", "world_aligned", fj.Contacts(robot, [fj.PointContact("tip")], baumgarte=(0.0, 3.0)), 0.4)


def on_algorithms(f: RobotFunction, x: Any) -> Any:
    """A point whose calls run the algorithms on NumPy's numbers, which may be complex."""

    def call(name: str, *given: Any) -> Any:
        return values(f.another(name), given)

    return f.point(np, x, call)


def values(f: RobotFunction, given: Any) -> Any:
    if f.record.value is not None:
        return f.record.value(on_algorithms(f, given))
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - len(s)] for x, s in zip(given, f.inputs, strict=True)))
    return f.replay(np, *(np.broadcast_to(x, (*batch, *s)) for x, s in zip(given, f.inputs, strict=True)))


def inputs(f: RobotFunction, seed: int = 0) -> list[np.ndarray]:
    """Of a batch; quaternions and cosine-sine pairs are of norm 1.4, or 0.8."""
    rng = np.random.default_rng(seed)
    robot, found = robot_of(f.robot.evaluator), []
    for p, core in zip(f.record.inputs, f.inputs, strict=True):
        x = rng.normal(size=(SIZE, *core))
        if p.role is Role.CONFIGURATION:
            x = robot.random_configuration(rng, SIZE)
            for k, (start, size) in enumerate(robot.evaluator.places.units):
                x[:, start : start + size] *= (1.4, 0.8)[k % 2]
        found.append(x)
    return found


def moved(f: RobotFunction, x: Any, dx: Any) -> list[np.ndarray]:
    """The rates of the results along changes of the inputs, entry by entry, by complex step."""
    ahead = [a + 1j * STEP * np.asarray(d) for a, d in zip(x, dx, strict=True)]
    return [np.imag(y) / STEP for y in values(f, ahead)]


def tangents(f: RobotFunction, x: Any, dx: Any) -> list[Any]:
    ambient = f.robot.ambient
    pairs = zip(f.record.inputs, x, dx, strict=True)
    return [ambient.tangent(np, a, d) if p.role is Role.CONFIGURATION else d for p, a, d in pairs]


def entries(f: RobotFunction, y: Any, dy: Any) -> list[Any]:
    """Changes of results, entry by entry, from tangent vectors."""
    turn = {
        Role.CONFIGURATION: lambda a, d: f.robot.ambient.rate(np, a, d),
        Role.PLACEMENT: lambda a, d: twisted(np, a, d),
        Role.VECTOR: lambda a, d: d,
    }
    return [turn[p.role](a, d) for p, a, d in zip(f.record.results, y, dy, strict=True)]


def dots(a: Any, b: Any) -> np.ndarray:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return np.asarray(sum((x * y).reshape(SIZE, -1).sum(-1) for x, y in pairs))


@pytest.mark.parametrize("name", [k for k, f in TABLE.items() if f.derivation is not None and k not in ENDED])
def test_derivations(name: str) -> None:
    f = functions().function(name, selection())
    assert f.record.derivation is not None
    x = inputs(f)
    rng = np.random.default_rng(1)
    dx = [rng.normal(size=a.shape) for a in x]
    at, y, d = on_algorithms(f, x), values(f, x), tangents(f, x, dx)
    dy = [
        np.zeros((SIZE, *s)) if t is None else t
        for t, s in zip(f.record.derivation.jvp(at, *d), f.result_tangents, strict=True)
    ]
    for actual, expected in zip(entries(f, y, dy), moved(f, x, dx), strict=True):
        agree(actual, expected, TOLERANCE, name, floor=1e-3)
    w = [rng.normal(size=(SIZE, *s)) for s in f.result_tangents]
    agree(dots(f.record.derivation.vjp(at, *w), d), dots(w, dy), TOLERANCE, name)


@pytest.mark.parametrize("name", [k for k, f in TABLE.items() if f.derivation is not None and k not in ENDED])
def test_zeros_are_left_out(name: str) -> None:
    """A change or weight that is None counts as zero."""
    f = functions().function(name, selection())
    assert f.record.derivation is not None
    x = inputs(f)
    at = on_algorithms(f, x)
    for k in range(len(x)):
        d: list[Any] = [None] * len(x)
        d[k] = np.random.default_rng(k).normal(size=(SIZE, *f.input_tangents[k]))
        full = [np.zeros((SIZE, *s)) if e is None else e for e, s in zip(d, f.input_tangents, strict=True)]
        for some, all_ in zip(f.record.derivation.jvp(at, *d), f.record.derivation.jvp(at, *full), strict=True):
            agree(np.zeros_like(all_) if some is None else some, all_, TOLERANCE, name, floor=1e-3)


@pytest.mark.parametrize("name", [k for k, f in TABLE.items() if f.transpose is not None])
def test_transposes(name: str) -> None:
    f = functions().function(name, selection())
    assert f.record.transpose is not None
    x = inputs(f)
    count = len(x) - f.record.linear
    w = [np.random.default_rng(1).normal(size=(SIZE, *s)) for s in f.results]
    seen = on_algorithms(f, [*x[:count], *[None] * f.record.linear])
    agree(dots(f.record.transpose(seen, *w), x[count:]), dots(w, values(f, x)), TOLERANCE, name)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_matrices_of_products(name: str) -> None:
    """Those that replace products with many directions."""
    f = functions().function(f"{name}_jvp")
    x = inputs(f)
    assert f.record.matrices is not None
    D = values(f.another(f.record.matrices), x[:3])
    product = sum((M @ d[..., None])[..., 0] for M, d in zip(D, x[3:], strict=True))
    agree(product, values(f, x)[0], TOLERANCE)


@pytest.mark.parametrize("name", [k for k, f in TABLE.items() if f.plain is not None])
def test_functions_made_of_others(name: str) -> None:
    f = functions().function(name, selection())
    assert f.record.plain is not None
    x = inputs(f)
    for actual, expected in zip(f.record.plain(on_algorithms(f, x)), values(f, x), strict=True):
        agree(actual, expected, TOLERANCE, name)


def test_the_impact_changes_the_velocity() -> None:
    """Its function is v + jump, as the robot's own."""
    f = functions().function("impulse_dynamics", selection())
    robot, (q, v) = robot_of(f.robot.evaluator), inputs(f)
    q = f.robot.ambient.normalised(np, q)
    assert selection().contacts is not None
    found = robot.impulse_dynamics(q, v, selection().contacts, 0.4)
    for actual, expected in zip(values(f, [q, v]), found, strict=True):
        agree(actual, expected, TOLERANCE)


@pytest.mark.parametrize("name", ENDED)
def test_what_cannot_be_differentiated_says_so(name: str) -> None:
    f = functions().function(name, selection())
    assert f.record.derivation is not None
    with pytest.raises(BeyondOrder, match="derivative"):
        f.record.derivation.jvp(on_algorithms(f, inputs(f)), *inputs(f))


def test_tangents_of_configurations() -> None:
    """Cotangent and corate are transposes; a change along q itself moves nothing; tangent undoes rate."""
    ambient, f = functions().ambient, functions().function("gravity")
    (q,), rng = inputs(f), np.random.default_rng(2)
    dq, g = rng.normal(size=q.shape), rng.normal(size=(SIZE, ambient.nv))
    agree(dots([ambient.tangent(np, q, dq)], [g]), dots([dq], [ambient.cotangent(np, q, g)]), 1e-14)
    unit = ambient.normalised(np, q)
    agree(dots([ambient.rate(np, unit, g)], [dq]), dots([g], [ambient.corate(np, unit, dq)]), 1e-14)
    agree(ambient.tangent(np, unit, ambient.rate(np, unit, g)), g, 1e-14)
    radial = np.zeros_like(q)
    for start, size in functions().evaluator.places.units:
        radial[:, start : start + size] = q[:, start : start + size]
    assert np.abs(ambient.tangent(np, q, radial)).max() < 1e-14
    T, C = np.broadcast_to(np.eye(4), (SIZE, 4, 4)), rng.normal(size=(SIZE, 4, 4))
    twist = rng.normal(size=(SIZE, 6))
    agree(dots([twisted(np, T, twist)], [C]), dots([twist], [untwisted(np, T, C)]), 1e-14)


def test_machine_code_takes_the_same_inputs() -> None:
    """In the order of the code, with the frame filled in, single precision too; norms do not matter."""
    for name in ("inverse_dynamics", "frame_placement", "inverse_dynamics_force_vjp"):
        f = functions().function(name, selection())
        x = inputs(f)
        for actual, expected in zip(f.values(*x), values(f, x), strict=True):
            agree(actual, expected, TOLERANCE, name)
        single = f.values(*(y.astype(np.float32) for y in x))
        assert [y.dtype for y in single] == [np.float32] * len(f.results)
        assert max(error(a, b) for a, b in zip(single, values(f, x), strict=True)) < 1e-4


def test_what_bridges_refuse() -> None:
    robot = fj.load("pendulum") if "pendulum" in fj.robots() else fj.Robot(fj.models.chain(2), backend="compiled")
    with pytest.raises(InputError, match="convention"):
        RobotFunctions(robot.with_convention("mujoco"), "fj.jax")
    with pytest.raises(InputError, match="compiled code"):
        RobotFunctions(fj.Robot(fj.models.chain(2), backend="numpy"), "fj.jax")
    with pytest.raises(UnknownName, match="inverse_dynamics"):
        smooth("inverse_dynamic")
    with pytest.raises(InputError, match="needs a frame"):
        _ = functions().function("frame_placement").constants
    with pytest.raises(InputError, match="contacts"):
        functions().function("constrained_dynamics", Selection())


def test_functions_are_the_same_objects() -> None:
    R = functions()
    assert R.function("gravity") is R.function("gravity")
    point = np.array([0.1, 0.2, 0.3])
    one = R.function("frame_placement", Selection(("tip", point)))
    assert one is R.function("frame_placement", Selection(("tip", point.copy())))
    assert one is not R.function("frame_placement", Selection(("tip", 2 * point)))
    assert one.digest != R.function("frame_placement", Selection(("tip", 2 * point))).digest
    assert isinstance(one.point(np, []), Point)


def test_compiled_transposes() -> None:
    """The machine code of `cotangent` and `corate`, for one sample and for a batch, off the unit sphere too."""
    ambient, compiled = functions().ambient, functions().compiled_ambient
    rng = np.random.default_rng(4)
    q = inputs(functions().function("gravity"))[0]
    for name, length in (("cotangent", ambient.nv), ("corate", ambient.nq)):
        x = rng.normal(size=(SIZE, length))
        expected = getattr(ambient, name)(np, q, x)
        agree(getattr(compiled, name)(np, q, x), expected, 1e-14, name)
        agree(getattr(compiled, name)(np, q[0], x[0]), expected[0], 1e-14, name)
