"""CasADi functions of robots: derivatives against complex steps and automatic differentiation, sparsity, IPOPT.

Jacobians are compared with complex steps of the NumPy reference at q / |q|, by all entries of q. Hessians of dynamics,
which analytic algorithms give, are compared with forward over reverse mode on the trace of the recursion itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from compilers import needed, run
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.errors import InputError, UnknownName
from featherjet.evaluate import sparse
from featherjet.evaluate.entries import SparseCode
from featherjet.evaluate.sparse import SparseFunction
from featherjet.model.manifolds import on_arrays
from helpers import agree
from trees import small_tree

ca = pytest.importorskip("casadi", reason="needs the package casadi")
TREE, ARM = small_tree(), fj.models.arm()
STEP = 1e-30
DYNAMICS = ("inverse_dynamics", "forward_dynamics")
OTHERS = ("center_of_mass", "frame_velocity", "integrate", "kinetic_energy", "mass_matrix", "frame_placement")


def bridge():
    from featherjet import casadi

    return casadi


def made(quantity: str, horizon: int = 1, model: fj.Model = TREE):
    robot = fj.Robot(model)
    frame = "tip" if quantity.startswith("frame") else None
    return robot, bridge().function(robot, quantity, horizon=horizon, frame=frame)


def state(f, seed: int = 0) -> list[np.ndarray]:
    """Inputs of a function, quaternions of any norm."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, f.size_in(i)) + 0.3 for i in range(f.n_in())]


def reference(robot: fj.Robot, quantity: str, *given: np.ndarray) -> np.ndarray:
    """The results of one state by the reference, on complex numbers, at q / |q|."""
    record, frame = QUANTITIES[quantity], None
    if quantity.startswith("frame"):
        from featherjet.evaluate.frames import numbers

        frame = numbers(robot.evaluator, "tip")[0]
    inputs = {}
    for i, x in zip([i for i in record.inputs if i.name != "frame"], given, strict=True):
        inputs[i.name] = x.ravel()
        if i.axes == ("q",):
            parts = [on_arrays(p.manifold.normalised, x.ravel()[p.q]) for p in robot.model.parts]
            inputs[i.name] = np.concatenate(parts)
    options = {"viewpoint": "local"} if record.options else {}
    inputs |= {} if frame is None else {"frame": frame}
    found = robot.evaluator.reference(quantity, inputs, **options)
    return np.concatenate([np.ravel(x) for x in found[: len(record.results)]])


def by_complex_step(robot: fj.Robot, quantity: str, given: list[np.ndarray]) -> np.ndarray:
    columns = []
    for k, x in enumerate(given):
        for j in range(x.size):
            moved = [y.astype(complex) for y in given]
            moved[k].flat[j] += 1j * STEP
            columns.append(np.imag(reference(robot, quantity, *moved)) / STEP)
    return np.array(columns).T


def gradient_and_hessian(f, weights: np.ndarray):
    """CasADi's function of the gradient and the Hessian of weighted results by all inputs."""
    x = [ca.MX.sym(f.name_in(i), *f.size_in(i)) for i in range(f.n_in())]
    flat = ca.veccat(*x)
    total = ca.dot(ca.DM(weights), f(*x))
    hessian, gradient = ca.hessian(total, flat)
    return ca.Function("second", x, [gradient, hessian])


@pytest.mark.parametrize("quantity", [*DYNAMICS, *OTHERS])
def test_values_and_jacobians(quantity: str) -> None:
    robot, f = made(quantity)
    x = state(f)
    y = f(*x)
    agree(np.array(y).ravel(), np.real(reference(robot, quantity, *x)), 1e-12)
    found = f.jacobian().call([*x, y])
    agree(np.hstack([np.array(b) for b in found]), by_complex_step(robot, quantity, x), 1e-12)


@pytest.mark.parametrize("quantity", DYNAMICS)
def test_hessians_of_dynamics(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analytic Hessian, off the unit sphere, through CasADi; and every one of its blocks by the other way."""
    robot, f = made(quantity)
    x, w = state(f), np.random.default_rng(1).normal(size=f.size_out(0))
    gradient, hessian = gradient_and_hessian(f, w)(*x)
    monkeypatch.setattr(sparse, "ANALYTIC", ())
    plain = SparseFunction(robot.evaluator, QUANTITIES[quantity])
    blocks = dense(plain.hessian, [*x, w])
    n = f.n_in()
    expected = np.block([[blocks[i * n + j] for j in range(n)] for i in range(n)])
    agree(np.array(hessian), expected, 1e-12)
    agree(np.array(gradient), np.vstack(dense(plain.adjoint, [*x, w])), 1e-12)


def dense(code: SparseCode, given: list[np.ndarray]) -> list[np.ndarray]:
    """The blocks of sparse code, one state, as matrices."""
    kernel = code.kernel()
    found = iter(kernel([np.ascontiguousarray(x.ravel()) for x in given], None, 1)[0])
    blocks = [np.zeros(p.shape) for p in code.patterns]
    for k in code.written:
        blocks[k][code.patterns[k].rows, code.patterns[k].columns] = next(found)
    return blocks


@pytest.mark.parametrize("quantity", OTHERS)
def test_hessians_of_others(quantity: str) -> None:
    """Against central differences of CasADi's gradient; their error is that of a step of 1e-5, squared."""
    _, f = made(quantity)
    x, w = state(f), np.random.default_rng(1).normal(size=f.size_out(0))
    second = gradient_and_hessian(f, w)
    hessian = np.array(second(*x)[1])
    columns = []
    for k in range(f.n_in()):
        for j in range(x[k].size):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [y.copy() for y in x]
                moved[k].flat[j] += step
                ends.append(np.array(second(*moved)[0]).ravel())
            columns.append((ends[0] - ends[1]) / 2e-5)
    agree(hessian, np.array(columns).T, 1e-8, floor=1.0)


@pytest.mark.parametrize("quantity", DYNAMICS)
@pytest.mark.parametrize("model", [ARM, TREE], ids=lambda model: model.name)
def test_patterns_are_those_of_dense_derivatives(quantity: str, model: fj.Model) -> None:
    """What is zero at random states is left out, and everything else is kept.

    The motion of a free tree does not depend on its orientation either, but that is so only up to rounding errors.
    """
    robot, f = made(quantity, 1, model)
    second = gradient_and_hessian(f, np.random.default_rng(2).normal(size=f.size_out(0)))
    held = np.hstack([entries(f.jacobian().sparsity_out(k)) for k in range(f.n_in())])
    jacobian = np.zeros(held.shape)
    hessian = np.zeros(second.size_out(1))
    for seed in range(3):
        x = state(f, seed)
        jacobian = np.maximum(jacobian, np.abs(by_complex_step(robot, quantity, x)))
        hessian = np.maximum(hessian, np.abs(np.array(second(*x)[1])))
    found = jacobian > 1e-13 * jacobian.max()
    assert not (found & ~held).any()
    assert found.sum() >= (0.99 if model is ARM else 0.8) * held.sum()
    kept = entries(second.sparsity_out(1))
    assert (hessian > 1e-13 * hessian.max()).sum() >= 0.8 * kept.sum()
    assert kept.sum() < 0.6 * kept.size


def entries(sparsity) -> np.ndarray:
    """A sparsity as a matrix of booleans."""
    return np.array(ca.DM(sparsity, 1)) != 0


def test_external_forces() -> None:
    """Forces as an input: derivatives by them are -J^T, those by q are the ones under these forces."""
    robot = fj.Robot(TREE)
    f = bridge().function(robot, "inverse_dynamics", fext=True)
    q, v, a, fext = state(f)
    q = robot.random_configuration(0)
    by_q, *_, by_fext = (np.array(b) for b in f.jacobian().call([q, v, a, fext, 0]))
    agree(by_fext, robot.inverse_dynamics_force_derivatives(q).reshape(robot.nv, -1), 1e-12)
    fext = fext.reshape(-1, 6)
    along = by_q @ robot.rate_map(q)
    agree(along, robot.inverse_dynamics_derivatives(q, v.ravel(), a.ravel(), fext).dtau_dq, 1e-12)


def test_a_horizon_is_its_states_side_by_side() -> None:
    _, one = made("forward_dynamics")
    _, many = made("forward_dynamics", 5)
    x = state(many)
    y = np.array(many(*x))
    blocks = [np.array(b) for b in many.jacobian().call([*x, y])]
    for s in range(5):
        own = [z[:, [s]] for z in x]
        want = one(*own)
        agree(y[:, [s]], np.array(want), 1e-13)
        for whole, part in zip(blocks, one.jacobian().call([*own, want]), strict=True):
            n, m = part.shape
            agree(whole[s * n : (s + 1) * n, s * m : (s + 1) * m], np.array(part), 1e-13)
            assert not whole[s * n : (s + 1) * n, (s + 1) * m :].any()
    w = np.random.default_rng(3).normal(size=y.shape)
    hessian = gradient_and_hessian(many, w)(*x)[1]
    assert hessian.nnz() == 5 * gradient_and_hessian(one, w[:, [0]])(*(z[:, [0]] for z in x))[1].nnz()


def test_what_is_not_finite_gives_what_is_not() -> None:
    _, f = made("inverse_dynamics", 2)
    x = state(f)
    x[1][0, 1] = np.nan
    found = np.array(f(*x))
    assert np.isfinite(found[:, 0]).all()
    assert np.isnan(found[:, 1]).any()


# An optimal control problem


def swing(f, knots: int):
    """Rest to rest with least torque, by forward dynamics."""
    n, h = ARM.nv, 0.5 / knots
    Q, V, U = (ca.MX.sym(k, n, knots) for k in "QVU")
    a = f(Q, V, U)
    g = [V[:, 1:] - V[:, :-1] - h * a[:, :-1], Q[:, 1:] - Q[:, :-1] - h * V[:, 1:]]
    start, end = np.zeros(n), np.full(n, 0.4)
    g += [Q[:, 0] - start, Q[:, -1] - end, V[:, 0], V[:, -1]]
    x = ca.veccat(Q, V, U)
    problem = {"x": x, "f": h * ca.sumsqr(U), "g": ca.veccat(*g)}
    quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
    solver = ca.nlpsol("solver", "ipopt", problem, quiet)
    guess = np.concatenate([np.linspace(start, end, knots).ravel(), np.zeros(2 * n * knots)])
    return solver(x0=guess, lbg=0, ubg=0), solver.stats()


def test_ipopt_finds_the_optimum() -> None:
    """With exact Hessians in few iterations; the motion that comes out is one of the robot."""
    robot, f = made("forward_dynamics", 12, ARM)
    found, stats = swing(f, 12)
    assert stats["success"]
    assert stats["iter_count"] < 40  # as a Newton method takes; L-BFGS takes hundreds
    q, v, tau = np.array(found["x"]).reshape(3, 12, robot.nv)
    a = robot.forward_dynamics(q, v, tau)
    agree(v[:-1] + 0.5 / 12 * a[:-1], v[1:], 1e-7, floor=1.0)


# Libraries


@pytest.mark.parametrize("horizon", [1, 3])
def test_library_gives_the_same(tmp_path: Path, horizon: int) -> None:
    needed("gcc")
    robot, f = made("inverse_dynamics", horizon)
    path = bridge().library(robot, "inverse_dynamics", out=tmp_path, horizon=horizon)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"inverse_dynamics{e}" for e in (".o", ".so", "_casadi.c")]
    g = ca.external("inverse_dynamics", str(path))
    x, w = state(f), np.random.default_rng(1).normal(size=f.size_out(0))
    for ours, theirs in zip(
        (f(*x), *f.jacobian().call([*x, 0]), *gradient_and_hessian(f, w)(*x)),
        (g(*x), *g.jacobian().call([*x, 0]), *gradient_and_hessian(g, w)(*x)),
        strict=True,
    ):
        assert ours.sparsity() == theirs.sparsity()
        agree(np.array(theirs), np.array(ours), 1e-13)


@pytest.mark.parametrize("folder", ["-v", "-o", "@file"])
def test_a_folder_is_no_option_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = bridge().library(fj.load("arm", backend="numpy"), "gravity", out=folder)
    assert path.is_file()
    assert [x.name for x in tmp_path.iterdir()] == [folder]


def test_generated_code_links_with_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of acados: CasADi writes C for a graph that calls us, and the object is linked to it."""
    gcc = needed("gcc")
    robot = fj.Robot(ARM)
    path = bridge().library(robot, "gravity", out=tmp_path, name="holding")
    x = ca.MX.sym("x", ARM.nq)
    f = ca.Function("f", [x], [ca.sin(ca.external("holding", str(path))(x))])
    monkeypatch.chdir(tmp_path)
    writer = ca.CodeGenerator("f.c")
    writer.add(f)
    writer.add(f.jacobian())
    writer.generate()
    run(gcc, "-shared", "-fPIC", "f.c", "holding_casadi.c", "holding.o", "-lm", "-o", tmp_path / "f.so")
    linked = ca.external("f", str(tmp_path / "f.so"))
    q = np.linspace(-1, 1, ARM.nq)
    agree(np.array(linked(q)).ravel(), np.sin(robot.gravity(q)), 1e-13)
    agree(np.array(linked.jacobian()(q, 0)), np.array(f.jacobian()(q, 0)), 1e-13)


def test_files_stay_and_compilers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = fj.Robot(ARM)
    (tmp_path / "gravity.o").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        bridge().library(robot, "gravity", out=tmp_path, compiler="gcc")
    assert (tmp_path / "gravity.o").read_text() == "mine"
    with pytest.raises(InputError, match="nowhere-cc"):
        bridge().library(robot, "gravity", out=tmp_path, name="other", compiler="nowhere-cc")
    with pytest.raises(fj.FeatherjetError, match="false failed"):
        bridge().library(robot, "gravity", out=tmp_path, compiler="false", overwrite=True)
    assert not (tmp_path / "gravity.so").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install ziglang"):
        bridge().library(robot, "gravity", out=tmp_path, overwrite=True)


# Mistakes


def test_mistakes_are_named() -> None:
    robot = fj.Robot(TREE)
    with pytest.raises(UnknownName, match="forward_dynamics"):
        bridge().function(robot, "forward_dynamic")
    for horizon in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="horizon"):
            bridge().function(robot, "gravity", horizon=horizon)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="frame="):
        bridge().function(robot, "jacobian")
    with pytest.raises(InputError, match="no external forces"):
        bridge().function(robot, "gravity", fext=True)
    with pytest.raises(InputError, match="contacts="):
        bridge().function(robot, "constrained_dynamics")
    with pytest.raises(InputError, match="with_convention"):
        bridge().function(robot.with_convention("drake"), "gravity")


def test_casadi_is_imported_when_it_is_used_and_missed_by_name() -> None:
    program = """
import sys, featherjet as fj
assert "casadi" not in sys.modules
sys.modules["casadi"] = None
try:
    fj.casadi
except fj.errors.MissingExtra as error:
    assert "featherjet[casadi]" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)
