"""featherjet in JAX: every transformation against derivatives of the algorithm by complex step and differences."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.bridges.robots import RobotFunctions, Selection
from featherjet.bridges.rules import BeyondOrder
from featherjet.errors import InputError, MissingExtra
from helpers import agree, error, lamp

jax = pytest.importorskip("jax", reason="the extra featherjet[jax] is not installed")
import jax.numpy as jnp  # noqa: E402

from featherjet.jax import wrap  # noqa: E402

TOLERANCE = 1e-12  # of the largest entry; second derivatives of accelerations are solved for twice
SOLVED = 1e-11
SIZE = 3


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@cache
def robot() -> fj.Robot:
    return fj.Robot(lamp(), backend="compiled", threads=2, unroll=True)


@cache
def functions() -> RobotFunctions:
    return RobotFunctions(robot(), "tests")


# The oracle: a polynomial with the derivatives of a function at some states


ORDER = np.array([1, -9, 45]) / 60  # of central differences, at three, two and one steps
STEP, WIDTH = 1e-30, 5e-3  # of complex steps; of differences, whose error is WIDTH^6 / 140 of the seventh derivative


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Value (size, m), derivative (size, m, n) and second derivative (size, m, n, n) at flat inputs (size, n)."""

    at: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    curve: np.ndarray

    def __call__(self, k: Any, *given: Any) -> Any:
        """What the function at state k and near it is, to second order."""
        d = jnp.concatenate([x.reshape(-1) for x in given]) - jnp.asarray(self.at)[k]
        slope, curve = jnp.asarray(self.slope)[k], jnp.asarray(self.curve)[k]
        return jnp.asarray(self.value)[k] + slope @ d + 0.5 * jnp.einsum("ijk,j,k->i", curve, d, d)


def polynomial(f: Callable[..., Any], x: Sequence[Any]) -> Polynomial:
    """Of a function of NumPy arrays (..., *core), which may be complex, at inputs (size, *core)."""
    cores = [np.shape(y)[1:] for y in x]
    flat = np.concatenate([np.reshape(y, (len(y), -1)) for y in x], -1)
    n = flat.shape[-1]

    def run(z: np.ndarray) -> np.ndarray:
        parts = np.split(z, np.cumsum([int(np.prod(s)) for s in cores])[:-1], -1)
        found = f(*(part.reshape(*z.shape[:-1], *s) for part, s in zip(parts, cores, strict=True)))
        return np.concatenate([y.reshape(*z.shape[:-1], -1) for y in found], -1)

    def slope(z: np.ndarray) -> np.ndarray:
        return np.swapaxes(np.imag(run(z[..., None, :] + 1j * STEP * np.eye(n))) / STEP, -1, -2)

    widths = WIDTH * np.array([3, 2, 1, -1, -2, -3])
    weights = np.concatenate([ORDER, -ORDER[::-1]]) / WIDTH
    shifted = flat[:, None, None, :] + widths[:, None] * np.eye(n)[:, None, :]
    curve = np.einsum("bjsik,s->bikj", slope(shifted), weights)
    return Polynomial(flat, run(flat), slope(flat), curve)


@cache
def expected(name: str, selection: Selection | None = None) -> Polynomial:
    f = functions().function(name, selection)
    x = states()
    given = {"q": x[0], "q0": x[0], "q1": x[0] + 0.1 * np.sin(x[0]), "fext": forces()}
    inputs = [np.asarray(given.get(p.name, x[1 + (k - 1) % 2])) for k, p in enumerate(f.record.inputs)]
    return polynomial(lambda *z: f.replay(np, *z), inputs)


def forces() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(SIZE, robot().njoints, 6))


def states(size: int = SIZE, norm: float = 1.3) -> list[Any]:
    """q, whose quaternion is of norm 1.3, and two vectors over dofs."""
    rng = np.random.default_rng(0)
    q = robot().random_configuration(rng, size)
    q[:, :4] *= norm
    return [jnp.asarray(x) for x in (q, *rng.normal(size=(2, size, robot().nv)))]


def some_loss(y: Any) -> Any:
    return (jnp.sin(0.1 * y) ** 2).sum()


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: some_loss(f(*x))


def one() -> list[Any]:
    return [x[1] for x in states()]


# Each takes a function of (k, q, v, t), k the number of a state, and differentiates it at such states.
WHICH = np.arange(SIZE)
TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "jit": lambda f: jax.jit(f)(1, *one()),
    "vmap": lambda f: jax.vmap(f)(WHICH, *states()),
    "vmap nested": lambda f: jax.vmap(jax.vmap(f, (None, None, None, 0)), (0, 0, 0, None))(WHICH, *states()),
    "vmap of another axis": lambda f: jax.vmap(f, (0, 0, 1, 0), 1)(WHICH, states()[0], states()[1].T, states()[2]),
    "jvp": lambda f: jax.jvp(partial(f, 1), one(), [0.1 * x for x in one()]),
    "vmap jvp": lambda f: jax.jvp(lambda *x: jax.vmap(f)(WHICH, *x), states(), states())[1],
    "grad": lambda f: jax.grad(loss(f), (1, 2, 3))(1, *one()),
    "grad of a batch": lambda f: jax.jit(jax.grad(loss(jax.vmap(f)), (1, 3)))(WHICH, *states()),
    "jacfwd": lambda f: jax.jacfwd(f, (1, 2, 3))(1, *one()),
    "jacrev": lambda f: jax.jacrev(f, (1, 2, 3))(1, *one()),
    "vmap jacfwd": lambda f: jax.vmap(jax.jacfwd(f, 1))(WHICH, *states()),
    "vmap jacrev": lambda f: jax.vmap(jax.jacrev(f, 2))(WHICH, *states()),
    "checkpoint": lambda f: jax.grad(loss(jax.checkpoint(f)), 1)(1, *one()),
    "hvp": lambda f: jax.jvp(jax.grad(loss(partial(f, 1)), (0, 1, 2)), one(), [0.1 * x for x in one()])[1],
    "grad of jvp": lambda f: jax.grad(lambda *x: jax.jvp(loss(partial(f, 1)), x, tuple(one()))[1], (0, 1))(*one()),
    "grad of grad": lambda f: jax.grad(lambda *x: (jax.grad(loss(f), 1)(1, *x) ** 2).sum(), (0, 1))(*one()),
    "hessian": lambda f: jax.hessian(loss(f), (1, 2, 3))(1, *one()),
    "vmap hessian": lambda f: jax.vmap(jax.hessian(loss(f), 1))(WHICH, *states()),
    "jacfwd jacrev": lambda f: jax.jacfwd(jax.jacrev(f, (1, 2)), (1, 3))(1, *one()),
    "jacrev jacfwd": lambda f: jax.jacrev(jax.jacfwd(f, (1, 2)), (1, 2))(1, *one()),
    "jacfwd jacfwd": lambda f: jax.jacfwd(jax.jacfwd(f, (1, 3)), (1, 2))(1, *one()),
    "jvp of jvp": lambda f: jax.jvp(lambda x: jax.jvp(lambda x: f(1, *x), (x,), (one(),))[1], (one(),), (one(),))[1],
}  # fmt: skip


SOME = ("vmap nested", "grad of a batch", "jacfwd", "jacrev", "hvp", "hessian", "jacfwd jacrev", "jvp of jvp")
CASES = [("inverse_dynamics", x) for x in TRANSFORMATIONS] + [("forward_dynamics", x) for x in SOME]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_transformations(name: str, what: str) -> None:
    f = getattr(wrap(robot()), name)
    transformed = TRANSFORMATIONS[what]
    compare(at_once(transformed, lambda k, *x: f(*x)), at_once(transformed, expected(name)), name, what)


def at_once(f: Callable[..., Any], *given: Any) -> Any:
    """One program, which takes less time to compile than many."""
    return jax.jit(lambda: f(*given))()


def compare(actual: Any, wanted: Any, name: str, what: str) -> None:
    leaves = jax.tree.leaves(wanted)  # where one is all zeros, the oracle has rounding errors of the others' size
    floor = 0.1 * max(float(jnp.abs(y).max()) for y in leaves)
    for x, y in zip(jax.tree.leaves(actual), leaves, strict=True):
        agree(x, y, TOLERANCE if name == "inverse_dynamics" else SOLVED, f"{what} of {name}", floor)


CONTACTS = cache(lambda: fj.Contacts(robot(), [fj.PointContact("tip")], damping=0.1))
METHODS: dict[str, tuple[str, Callable[..., Any], int]] = {  # function, method, order of derivatives
    "integrate": ("integrate", lambda r: r.integrate, 2),
    "difference": ("difference", lambda r: r.difference, 2),
    "mass_matrix": ("mass_matrix", lambda r: r.mass_matrix, 2),
    "gravity": ("gravity", lambda r: r.gravity, 2),
    "bias": ("bias", lambda r: r.bias, 2),
    "inverse dynamics under forces": ("inverse_dynamics_force", lambda r: r.inverse_dynamics, 1),
    "forward dynamics under forces": ("forward_dynamics_force", lambda r: r.forward_dynamics, 1),
    "inverse_dynamics_derivatives": ("inverse_dynamics_derivatives", lambda r: r.inverse_dynamics_derivatives, 1),
    "forward_dynamics_derivatives": ("forward_dynamics_derivatives", lambda r: r.forward_dynamics_derivatives, 1),
    "frame_placement": ("frame_placement", lambda r: partial(r.frame_placement, frame="tip"), 2),
    "frame_jacobian": ("jacobian", lambda r: partial(r.frame_jacobian, frame="tip", viewpoint="world"), 1),
    "frame_velocity": ("frame_velocity", lambda r: partial(r.frame_velocity, frame="tip", viewpoint="world"), 2),
    "center_of_mass": ("center_of_mass", lambda r: r.center_of_mass, 2),
    "centroidal_map": ("centroidal_map", lambda r: r.centroidal_map, 1),
    "centroidal_momentum": ("centroidal_momentum", lambda r: r.centroidal_momentum, 1),
    "kinetic_energy": ("kinetic_energy", lambda r: r.kinetic_energy, 2),
    "potential_energy": ("potential_energy", lambda r: r.potential_energy, 2),
    "torque_regressor": ("torque_regressor", lambda r: r.torque_regressor, 1),
    "constrained_dynamics": ("constrained_dynamics", lambda r: partial(r.constrained_dynamics, contacts=CONTACTS()), 1),
    "impulse_dynamics": ("impulse_jump", lambda r: lambda q, v: r.impulse_dynamics(q, v, CONTACTS(), 0.3), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    """Values, gradients, and second derivatives where there are any; elsewhere an error."""
    record, method, order = METHODS[name]
    selection = Selection("tip", "world", CONTACTS(), 0.3)
    f, same = method(wrap(robot())), expected(record, selection)
    shapes = functions().function(record, selection).inputs
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    x = [jnp.asarray(y.reshape(-1, *s)) for y, s in zip(np.split(same.at, ends, -1), shapes, strict=True)]

    def flat(*given: Any) -> Any:
        found = jax.tree.leaves(f(*given))
        if name == "impulse_dynamics":
            found[0] = found[0] - given[1]  # the jump
        return jnp.concatenate([y.reshape(-1) for y in found])

    at = [y[1] for y in x]
    numbers = tuple(range(len(at)))
    values = at_once(lambda: (flat(*at), f(*x)))
    compare(values[0], same.value[1], name, "value")
    assert jax.tree.leaves(values[1])[0].shape[0] == SIZE
    directions = [0.1 * np.cos(y) for y in at]

    def slopes(g: Callable[..., Any]) -> Any:
        gradient = jax.grad(loss(g), numbers)
        return gradient(*at) if order == 1 else jax.jvp(gradient, at, directions)

    compare(at_once(slopes, flat), at_once(slopes, partial(same, 1)), name, "slopes")
    if order == 1:
        with pytest.raises(BeyondOrder, match="derivative"):
            jax.make_jaxpr(lambda: jax.jvp(jax.grad(loss(flat), numbers), at, directions))()


def test_jacobians_with_contacts() -> None:
    """Each result by each input, from the matrices."""
    same = expected("constrained_dynamics", Selection("tip", "world", CONTACTS(), 0.3))
    f = partial(wrap(robot()).constrained_dynamics, contacts=CONTACTS())
    x = [jnp.asarray(y) for y in np.split(same.at[1], [robot().nq, robot().nq + robot().nv])]
    for jacobian in (jax.jacfwd, jax.jacrev):
        found = at_once(lambda jacobian=jacobian: jacobian(f, (0, 1, 2))(*x))
        agree(np.concatenate([np.concatenate(row, -1) for row in found]), same.slope[1], SOLVED)
    called = primitives(jax.make_jaxpr(jax.jacrev(f))(*x).jaxpr)
    assert set(called) == {"constrained_dynamics", "constrained_dynamics_derivatives"}


@cache
def pendulum() -> fj.Robot:
    b = fj.ModelBuilder("pendulum")
    b.add_joint("pivot", "revolute", None, np.eye(4), axis=(0.0, 1.0, 0.0))
    b.add_body("pivot", 2.0, (0.0, 0.0, -0.5), np.diag([0.1, 0.1, 0.1]))
    return fj.Robot(b.build(), backend="compiled", unroll=True)


def swings(dynamics: Callable[..., Any], move: Callable[..., Any], gain: Any) -> Any:
    """What a pendulum with a controller does in 20 steps."""

    def step(state: Any, _: Any) -> Any:
        q, v = state
        v = v + 0.02 * dynamics(q, v, -gain[0] * q - gain[1] * v)
        q = move(q, 0.02 * v)
        return (q, v), q

    start = jnp.array([0.5]), jnp.array([0.1])
    return (jax.lax.scan(step, start, None, length=20)[1] ** 2).sum()


def test_scan_and_its_derivatives() -> None:
    """Against the closed form, (0.1 + 2 * 0.5^2) a = tau - 2 * 9.81 * 0.5 sin q."""
    r, gain = wrap(pendulum()), jnp.array([0.3, 0.2])
    ours = partial(swings, r.forward_dynamics, r.integrate)
    closed = partial(swings, lambda q, v, tau: (tau - 9.81 * jnp.sin(q)) / 0.6, lambda q, dv: q + dv)

    def everything(f: Callable[..., Any]) -> Any:
        return f(gain), jax.grad(f)(gain), jax.grad(jax.checkpoint(f))(gain), jax.hessian(f)(gain)

    for actual, wanted in zip(at_once(everything, ours), at_once(everything, closed), strict=True):
        agree(actual, wanted, SOLVED)


def test_third_derivatives_are_refused() -> None:
    f = loss(wrap(robot()).forward_dynamics)
    with pytest.raises(BeyondOrder, match="twice"):
        jax.make_jaxpr(lambda: jax.jvp(lambda *x: jax.jvp(jax.grad(f), x, x)[1], tuple(one()), tuple(one())))()


def primitives(jaxpr: Any) -> list[str]:
    """The functions of robots that a program calls."""
    found = []
    for e in jaxpr.eqns:
        if e.primitive.name == "featherjet":
            found.append(e.params["f"].name)
        for inner in jax.tree.leaves(
            list(e.params.values()), is_leaf=lambda x: hasattr(x, "jaxpr") or hasattr(x, "eqns")
        ):
            if hasattr(inner, "jaxpr") or hasattr(inner, "eqns"):
                found += primitives(getattr(inner, "jaxpr", inner))
    return found


def test_products_where_products_are_asked_for_and_matrices_elsewhere() -> None:
    f, x = wrap(robot()).inverse_dynamics, states()
    assert primitives(jax.make_jaxpr(jax.grad(loss(f)))(*x).jaxpr) == ["inverse_dynamics", "inverse_dynamics_vjp"]
    forward = jax.make_jaxpr(lambda *x: jax.jvp(f, x, x)[1])(*x)
    assert set(primitives(forward.jaxpr)) == {"inverse_dynamics", "inverse_dynamics_jvp"}
    for jacobian in (jax.jacfwd, jax.jacrev):
        found = primitives(jax.make_jaxpr(jax.vmap(jacobian(f)))(*x).jaxpr)
        assert set(found) == {"inverse_dynamics", "inverse_dynamics_derivatives"}
        assert found.count("inverse_dynamics_derivatives") == 1
    found = primitives(jax.make_jaxpr(jax.hessian(loss(f)))(*one()).jaxpr)
    assert found.count("inverse_dynamics_hessian") == 1


def test_single_precision() -> None:
    f = wrap(robot()).forward_dynamics
    single = [x.astype(jnp.float32) for x in states()]
    both = jax.jit(lambda *x: (f(*x), jax.grad(loss(f))(*x)))
    found, wanted = both(*single), both(*states())
    assert [x.dtype for x in found] == [jnp.float32] * 2
    assert error(found[0], wanted[0]) < 1e-4
    assert error(found[1], wanted[1]) < 1e-3
    assert both(single[0], *states()[1:])[0].dtype == jnp.float64


def test_results_are_those_of_numpy() -> None:
    """Bit by bit, in every precision, for one state and for batches that XLA's threads share."""
    r = wrap(robot())
    for size in (1, 3, 20_000):
        x = states(size, norm=1.0)
        for given in (x, [y.astype(jnp.float32) for y in x]):
            want = robot().inverse_dynamics(*map(np.asarray, given))
            assert (np.asarray(jax.jit(r.inverse_dynamics)(*given)) == want).all()
    assert jax.jit(r.inverse_dynamics)(*states(0)).shape == (0, robot().nv)


ERRORS = (ValueError, jax.errors.JaxRuntimeError)  # XLA's errors, before a call has returned and after


def test_bad_numbers() -> None:
    q, v, a = states(20_000, norm=1.0)
    bad = q.at[7].set(jnp.nan)
    rows = jnp.isnan(jax.jit(wrap(robot()).inverse_dynamics)(bad, v, a)).any(-1)
    assert np.flatnonzero(rows).tolist() == [7]
    strict = jax.jit(wrap(robot(), strict=True).inverse_dynamics)
    agree(strict(q, v, a), wrap(robot()).inverse_dynamics(q, v, a), 0.0)
    for size in (8, 20_000):  # on one thread, and on several
        with pytest.raises(ERRORS, match="inverse_dynamics of lamp: an input is not finite"):
            jax.block_until_ready(strict(bad[:size], v[:size], a[:size]))
    with pytest.raises(ERRORS, match="not of norm one"):
        jax.block_until_ready(strict(1.1 * q[:8], v[:8], a[:8]))


def test_what_is_refused() -> None:
    r, (q, v, a) = wrap(robot()), states()
    with pytest.raises(InputError, match=r"q: expected shape \(\.\.\., 6\), got \(3, 5\)"):
        r.inverse_dynamics(v, v, a)
    with pytest.raises(InputError, match=r"featherjet\.jax\.wrap"):
        jax.jit(robot().inverse_dynamics)(q, v, a)
    with pytest.raises(InputError, match="numpy"):
        wrap(fj.Robot(robot().model, backend="numpy"))
    for dtype in ("complex64", "bfloat16", "float16", "bool"):
        for function in (r.gravity, jax.jit(r.gravity), r.normalised, lambda x: r.bias(q, x[..., : r.nv])):
            with pytest.raises(InputError, match=f"expected float32 or float64, got {dtype}"):
                function(jnp.asarray(q).astype(dtype))
    with pytest.raises(InputError, match="expected a robot"):
        wrap(3)  # type: ignore[arg-type]


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [k for k in sys.modules if k == "featherjet.jax" or k.startswith("featherjet.jax.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(fj, "jax", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"featherjet\[jax\]"):
        _ = fj.jax


def test_functions_know_their_robot() -> None:
    r = wrap(robot())
    assert repr(r) == "<JaxRobot lamp: nq 6, nv 5>"
    agree(r.neutral(), robot().neutral(), 0.0)
    agree(jnp.linalg.norm(r.normalised(states()[0])[:, :4], axis=-1), np.ones(3), 1e-15)


# Other processes, with two devices: sharded arrays, exported functions, and XLA's own cache of compiled programs

SCRIPT = """
import os, sys
from importlib.util import find_spec
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.export, jax.monitoring, jax.numpy as jnp, numpy as np
import featherjet as fj
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
folder, write = sys.argv[1], sys.argv[2] == "write"
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", folder + "/xla")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
robot = fj.load("arm", backend="compiled"); r = fj.jax.wrap(robot)
rng = np.random.default_rng(0)
x = robot.random_configuration(rng, 8), *rng.normal(size=(2, 8, robot.nv))
want = robot.inverse_dynamics(*x)
f = jax.jit(lambda *x: 2 * r.inverse_dynamics(*x))
if write:
    with jax.log_compiles(False):
        assert (f(*x) == 2 * want).all()
    names = [n for n in __import__("featherjet.jax.targets", fromlist=["x"])._registered]
    checks = [jax.export.DisabledSafetyCheck.custom_call(n) for n in names]
    exported = jax.export.export(f, disabled_checks=checks)(*x)
    assert (exported.call(*x) == 2 * want).all()
    if find_spec("flatbuffers"):
        open(folder + "/f.bin", "wb").write(exported.serialize())
    n = jax.export.symbolic_shape("n")[0]
    shapes = [jax.ShapeDtypeStruct((n, robot.nv), jnp.float64)] * 3
    checks = [jax.export.DisabledSafetyCheck.custom_call(n) for n in names]
    again = jax.export.export(jax.jit(r.inverse_dynamics), disabled_checks=checks)(*shapes)
    assert (again.call(*(y[:5] for y in x)) == want[:5]).all()
    mesh = jax.make_mesh((2,), ("b",), axis_types=(AxisType.Auto,))
    sharded = [jax.device_put(y, NamedSharding(mesh, P("b"))) for y in x]
    for g in (r.inverse_dynamics, jax.grad(lambda *x: (r.inverse_dynamics(*x) ** 2).sum())):
        text = jax.jit(g).lower(*sharded).compile().as_text()
        assert "all-gather" not in text and "featherjet" in text, text
    y = jax.jit(r.inverse_dynamics)(*sharded)
    assert (y == want).all() and y.sharding.spec == P("b")
    for check in (False, True):
        g = jax.shard_map(r.inverse_dynamics, mesh=mesh, in_specs=(P("b"),) * 3, out_specs=P("b"), check_vma=check)
        assert (g(*x) == want).all()
    assert (jax.pmap(r.inverse_dynamics)(*(y.reshape(2, 4, -1) for y in x)).reshape(8, -1) == want).all()
else:
    hits = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if "cache_hits" in event else None)
    assert (f(*x) == 2 * want).all()
    assert hits, "XLA compiled it again"
    if find_spec("flatbuffers"):
        g = jax.export.deserialize(bytearray(open(folder + "/f.bin", "rb").read()))
        assert (g.call(*x) == 2 * want).all()
print("fine")
"""


def test_other_processes_and_devices(tmp_path: Any) -> None:
    for what in ("write", "read"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path), what], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.stdout.strip() == "fine", run.stderr[-3000:]
