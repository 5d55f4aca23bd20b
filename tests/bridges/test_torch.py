"""`fj.torch`: values, derivatives of first and second order in every mode of PyTorch, by complex step; and refusals."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.bridges.robots import RobotFunctions, Selection
from featherjet.bridges.rules import BeyondOrder
from featherjet.bridges.table import Role
from featherjet.errors import InputError, MissingExtra
from helpers import agree, lamp

torch = pytest.importorskip("torch", reason="the extra featherjet[torch] is not installed")
from featherjet.torch import operator, wrap  # noqa: E402

STEP = 1e-30
SIZE = 2
TOLERANCE = 1e-12
SOLVED = 1e-11  # accelerations and contact forces are solved for
F = torch.func


@cache
def robot() -> fj.Robot:
    return fj.Robot(lamp(), backend="compiled", threads=1, unroll=True)


@cache
def wrapped() -> Any:
    return wrap(robot())


@cache
def functions() -> RobotFunctions:
    return RobotFunctions(robot(), "tests")


@cache
def contacts() -> fj.Contacts:
    return fj.Contacts(robot(), [fj.PointContact("tip")], baumgarte=(0.0, 3.0))


# What is tested: a name in the table of functions, its selection, and the method of the wrapped robot
FUNCTIONS = {
    "inverse_dynamics": (Selection(), lambda w, *x: w.inverse_dynamics(*x)),
    "forward_dynamics": (Selection(), lambda w, *x: w.forward_dynamics(*x)),
    "forward_dynamics_force": (Selection(), lambda w, *x: w.forward_dynamics(*x)),
    "inverse_dynamics_derivatives": (Selection(), lambda w, *x: w.inverse_dynamics_derivatives(*x)),
    "integrate": (Selection(), lambda w, *x: w.integrate(*x)),
    "difference": (Selection(), lambda w, *x: w.difference(*x)),
    "frame_placement": (Selection("tip"), lambda w, *x: w.frame_placement(*x, "tip")),
    "frame_velocity": (Selection("tip", "world"), lambda w, *x: w.frame_velocity(*x, "tip", viewpoint="world")),
    "jacobian": (Selection("tip"), lambda w, *x: w.frame_jacobian(*x, "tip")),
    "center_of_mass": (Selection(), lambda w, *x: w.center_of_mass(*x)),
    "kinetic_energy": (Selection(), lambda w, *x: w.kinetic_energy(*x)),
    "potential_energy": (Selection(), lambda w, *x: w.potential_energy(*x)),
    "mass_matrix": (Selection(), lambda w, *x: w.mass_matrix(*x)),
    "bias": (Selection(), lambda w, *x: w.bias(*x)),
    "centroidal_momentum": (Selection(), lambda w, *x: w.centroidal_momentum(*x)),
    "constrained_dynamics": ("contacts", lambda w, *x: w.constrained_dynamics(*x, contacts())),
    "impulse_dynamics": ("impulses", lambda w, *x: w.impulse_dynamics(*x, contacts(), 0.4)),
}


def found(name: str) -> Any:
    """The function as the table has it, and the method."""
    selection, method = FUNCTIONS[name]
    if isinstance(selection, str):
        selection = Selection(contacts=contacts(), restitution=0.4 * (selection == "impulses"))
    f = functions().function(name, selection)

    def results(*x: Any) -> tuple:
        y = method(wrapped(), *x)
        return tuple(y) if isinstance(y, tuple) else (y,)

    return f, results


def values(f: Any, given: Any) -> list[np.ndarray]:
    """By the algorithm itself, at numbers that may be complex."""
    if f.name == "impulse_dynamics":
        jump, impulses = f.another("impulse_jump").replay(np, *given)
        return [given[1] + jump, impulses]
    return f.replay(np, *given)


def inputs(f: Any) -> list[np.ndarray]:
    """Of a batch; quaternions are of norm 1.4."""
    rng, r = np.random.default_rng(0), robot()
    x = []
    for p, core in zip(f.record.inputs, f.inputs, strict=True):
        y = rng.normal(size=(SIZE, *core))
        if p.role is Role.CONFIGURATION:
            y = r.random_configuration(rng, SIZE)
            for start, size in r.evaluator.places.units:
                y[:, start : start + size] *= 1.4
        x.append(y)
    return x


def jacobians(f: Any, x: Any) -> list[list[np.ndarray]]:
    """By complex step: for each result and input, (SIZE, *result, *input)."""
    rows: list[list[np.ndarray]] = []
    for k, a in enumerate(x):
        columns = []
        for entry in np.ndindex(*a.shape[1:]):
            ahead = [y.astype(complex) for y in x]
            ahead[k][(slice(None), *entry)] += 1j * STEP
            columns.append([np.imag(y) / STEP for y in values(f, ahead)])
        rows.append([np.stack(c, -1).reshape(*c[0].shape, *a.shape[1:]) for c in zip(*columns, strict=True)])
    return [list(r) for r in zip(*rows, strict=True)]


def tensors(x: Any, grad: bool = False) -> list[Any]:
    return [torch.from_numpy(y.copy()).requires_grad_(grad) for y in x]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives(name: str) -> None:
    """Values, backward, jacrev (matrices), jacfwd (matrices) and forward mode, off the unit sphere."""
    f, method = found(name)
    x = inputs(f)
    tolerance = SOLVED if "forward" in name or "constrained" in name or "impulse" in name else TOLERANCE
    want, J = values(f, x), jacobians(f, x)
    for y, expected in zip(method(*tensors(x)), want, strict=True):
        agree(y.numpy(), expected, tolerance, name)
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=y.shape) for y in want]
    given = tensors(x, grad=True)
    gradients = torch.autograd.grad(method(*given), given, tensors(weights))
    axes = [list(range(1, y.ndim)) for y in want]
    for k, g in enumerate(gradients):
        terms = [
            np.stack([np.tensordot(w[s], row[k][s], len(a)) for s in range(SIZE)])
            for w, row, a in zip(weights, J, axes, strict=True)
        ]
        agree(g.numpy(), sum(terms), tolerance, f"{name}: gradient by input {k}", floor=1e-3)
    numbers = tuple(range(len(x)))
    for mode in (F.jacrev, F.jacfwd):
        blocks = F.vmap(mode(method, argnums=numbers))(*tensors(x))
        for row, expected in zip(blocks, J, strict=True):
            for k, (block, M) in enumerate(zip(row, expected, strict=True)):
                agree(block.numpy(), M, tolerance, f"{name}: {mode.__name__} by input {k}", floor=1e-3)
    changes = [rng.normal(size=a.shape) for a in x]
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(*pair) for pair in zip(tensors(x), tensors(changes), strict=True)]
        rates = [torch.autograd.forward_ad.unpack_dual(y).tangent for y in method(*duals)]
    for rate, row in zip(rates, J, strict=True):
        expected = sum(
            np.stack([np.tensordot(M[s], d[s], d[s].ndim) for s in range(SIZE)])
            for M, d in zip(row, changes, strict=True)
        )
        agree(rate.numpy(), expected, tolerance, f"{name}: forward mode", floor=1e-3)


# Second order


def gradient(name: str, x: Any, w: Any) -> np.ndarray:
    """Of w.y by the entries of q, v and the third input, side by side, at numbers that may be complex."""
    ambient, evaluator = functions().ambient, robot().evaluator
    q, *rest = x
    third = {"inverse_dynamics": "a", "forward_dynamics": "tau"}[name]
    given = {"q": ambient.normalised(np, q), "v": rest[0], third: rest[1], "w": w}
    by_q, *others = evaluator.reference(f"{name}_vjp", given)[:3]
    return np.concatenate([ambient.cotangent(np, q, by_q), *others], -1)


NESTED = {
    "reverse over reverse": lambda f: F.jacrev(F.jacrev(f)),
    "forward over reverse": F.hessian,
    "reverse over forward": lambda f: F.jacrev(F.jacfwd(f)),
    "forward over forward": lambda f: F.jacfwd(F.jacfwd(f)),
}


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_second_derivatives(name: str) -> None:
    """Of w.y, in every nesting of modes, and by backward twice."""
    f, method = found(name)
    x = [a[:1] for a in inputs(f)]
    w = np.random.default_rng(2).normal(size=(1, robot().nv))
    ends = np.cumsum([a.shape[1] for a in x])[:-1]
    flat = np.concatenate(x, -1)
    columns = []
    for k in range(flat.shape[1]):
        ahead = flat.astype(complex)
        ahead[0, k] += 1j * STEP
        columns.append(np.imag(gradient(name, np.split(ahead, ends, -1), w.astype(complex)))[0] / STEP)
    expected = np.stack(columns, -1)
    sizes = [a.shape[1] for a in x]

    def scalar(z: Any) -> Any:
        return (method(*torch.split(z, sizes))[0] * torch.from_numpy(w[0])).sum()

    z = torch.from_numpy(flat[0])
    for nesting, hessian in NESTED.items():
        agree(hessian(scalar)(z).numpy(), expected, SOLVED, f"{name}: {nesting}")
    twice = torch.autograd.functional.hessian(scalar, z)
    agree(twice.numpy(), expected, SOLVED, f"{name}: backward twice")


def test_second_derivatives_of_functions_made_of_others() -> None:
    """Integrate, whose products PyTorch differentiates on the algorithm, and energies, made of dynamics."""
    for name in ("integrate", "kinetic_energy", "mass_matrix"):
        f, method = found(name)
        given = [y[:1].detach().requires_grad_() for y in tensors(inputs(f))]
        assert torch.autograd.gradgradcheck(lambda *x, m=method: m(*x)[0], given, check_fwd_over_rev=False)
        q = given[0][0].detach()
        rest = [y[0].detach() for y in given[1:]]

        def scalar(q: Any, m: Any = method, rest: Any = rest) -> Any:
            return (m(q, *rest)[0] ** 2).sum()

        want = F.hessian(scalar)(q)
        for nesting in ("reverse over reverse", "forward over forward"):
            agree(NESTED[nesting](scalar)(q).numpy(), want.numpy(), SOLVED, f"{name}: {nesting}")


def test_third_derivatives_are_refused() -> None:
    f, method = found("inverse_dynamics")
    q, v, a = (y[0] for y in tensors(inputs(f)))
    with pytest.raises(BeyondOrder, match="no further derivative"):
        F.jacrev(F.hessian(lambda v: method(q, v, a)[0].sum()))(v)


# PyTorch's own checks


@cache
def pendulum() -> Any:
    return wrap(fj.Robot(fj.models.chain(2), backend="compiled", threads=1))


def state(grad: bool = False) -> list[Any]:
    rng = np.random.default_rng(3)
    return [torch.from_numpy(x).requires_grad_(grad) for x in rng.normal(size=(3, 2, 2))]


def test_gradcheck() -> None:
    x = state(grad=True)
    assert torch.autograd.gradcheck(pendulum().forward_dynamics, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(pendulum().forward_dynamics, x, check_fwd_over_rev=True)


def test_opcheck() -> None:
    f = operator.registered(pendulum().function("forward_dynamics"))
    for grad in (False, True):
        torch.library.opcheck(operator.operator, (state(grad), f.digest))


def test_compiled_programs() -> None:
    """The whole graph, values and gradients. The backend needs no C++ compiler."""
    w = pendulum()

    def loss(q: Any, v: Any, tau: Any) -> Any:
        return torch.sin(w.forward_dynamics(q, v, tau)).sum() + w.frame_placement(q, "link1").sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    x = state(grad=True)
    assert torch.equal(compiled(*x), loss(*x))
    for g, want in zip(torch.autograd.grad(compiled(*x), x), torch.autograd.grad(loss(*x), x), strict=True):
        agree(g.numpy(), want.numpy(), TOLERANCE, "gradient of a compiled program")


def test_exported_programs() -> None:
    w = pendulum()

    class Module(torch.nn.Module):
        def forward(self, q: Any, v: Any, tau: Any) -> Any:
            return 2 * w.forward_dynamics(q, v, tau)

    x = state()
    program = torch.export.export(Module(), tuple(x)).module()
    other = [3 * y for y in x]
    assert torch.equal(program(*other), 2 * w.forward_dynamics(*other))


def test_a_compiled_program_without_its_robot_says_so() -> None:
    w = wrap(fj.Robot(fj.models.chain(1), backend="compiled"))
    digest = operator.registered(w.function("gravity")).digest
    q = torch.zeros(1, dtype=torch.float64)
    assert torch.equal(operator.operator([q], digest)[0], w.gravity(q))
    del w
    gc.collect()
    with pytest.raises(InputError, match=r"keep what fj\.torch\.wrap"):
        operator.operator([q], digest)


# Tensors


def test_batches_broadcast_and_gradients_sum_over_them() -> None:
    q, v, tau = state()
    w = pendulum()
    given = [q[:, None].requires_grad_(), v[None, :1].requires_grad_(), tau[0].requires_grad_()]
    a = w.forward_dynamics(*given)
    assert a.shape == (2, 1, 2)
    found = torch.autograd.grad(a.sum(), given)
    assert [g.shape for g in found] == [x.shape for x in given]
    wide = [x.detach().expand(2, 1, 2).clone().requires_grad_() for x in given]
    want = torch.autograd.grad(w.forward_dynamics(*wide).sum(), wide)
    agree(found[0].numpy(), want[0].numpy(), TOLERANCE, "q")
    agree(found[1].numpy(), want[1].sum(0, keepdim=True).numpy(), TOLERANCE, "v")
    agree(found[2].numpy(), want[2].sum((0, 1)).numpy(), TOLERANCE, "tau")


def test_vmap_over_any_axis() -> None:
    q, v, tau = state()
    w = pendulum()
    want = w.forward_dynamics(q, v[0], tau)
    assert torch.equal(F.vmap(w.forward_dynamics, (0, None, 1))(q, v[0], tau.T), want)
    nested = F.vmap(F.vmap(w.forward_dynamics, (None, 0, 0)), (0, None, None))(q, v, tau)
    agree(nested.numpy(), w.forward_dynamics(q[:, None], v, tau).numpy(), TOLERANCE, "nested")


def test_precision() -> None:
    x = state()
    w = pendulum()
    single = [y.float().requires_grad_() for y in x]
    a = w.forward_dynamics(*single)
    assert a.dtype == torch.float32
    assert all(g.dtype == torch.float32 for g in torch.autograd.grad(a.sum(), single))
    mixed = [single[0], *state(grad=True)[1:]]
    a = w.forward_dynamics(*mixed)
    assert a.dtype == torch.float64
    found = torch.autograd.grad(a.sum(), mixed)
    assert [g.dtype for g in found] == [torch.float32, torch.float64, torch.float64]
    agree(w.forward_dynamics(*single).detach().double().numpy(), w.forward_dynamics(*x).numpy(), 2e-5, "single")


def test_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code reads the tensors' memory, and results are on the memory that it writes."""
    w, x, seen = pendulum(), state(), []
    f = w.function("forward_dynamics")
    run = f.values

    def watched(*given: Any) -> Any:
        seen.extend([given, run(*given)])
        return seen[-1]

    monkeypatch.setattr(f, "values", watched)
    a = w.forward_dynamics(*x)
    assert all(np.shares_memory(array, y.numpy()) for array, y in zip(seen[0], x, strict=True))
    assert np.shares_memory(seen[1][0], a.numpy())


def test_not_a_number_gives_not_a_number() -> None:
    q, v, tau = state()
    q[0, 0] = float("nan")
    a = pendulum().forward_dynamics(q, v, tau)
    assert a[0].isnan().any()
    assert not a[1].isnan().any()


def test_wrapped_robots_are_copied_and_pickled() -> None:
    x, w = state(), pendulum()
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert torch.equal(other.forward_dynamics(*x), w.forward_dynamics(*x))


def test_refusals() -> None:
    q, v, tau = state()
    w = pendulum()
    for call, said in (
        (lambda: w.forward_dynamics(q.numpy(), v, tau), "q: expected a tensor, got ndarray"),
        (lambda: w.forward_dynamics(q, v.half(), tau), "v: expected torch.float64 or torch.float32"),
        (lambda: w.forward_dynamics(q, v, tau[:, :1]), r"tau: expected shape \(..., 2\), got \(2, 1\)"),
        (lambda: w.forward_dynamics(q.to("meta"), v, tau), "q: expected a tensor on the CPU, got one on meta"),
        (lambda: wrap(fj.Robot(fj.models.chain(2), backend="numpy")), "fj.torch needs compiled code"),
        (lambda: wrap(robot().with_convention("kindr")), "fj.torch is not available in the convention 'kindr'"),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [k for k in sys.modules if k.startswith("featherjet.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(fj, "torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'featherjet\[torch\]'"):
        fj.torch  # noqa: B018
