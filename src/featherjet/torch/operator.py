"""One PyTorch operator for every function of a robot, with rules for autograd, torch.func and torch.compile.

`call` is the way in. Plain tensors go straight to machine code. Tensors that need derivatives go through an
autograd.Function; PyTorch has a quick kind, and one that its function transforms (`torch.func`) understand. Whoever
traces (torch.compile, torch.export, fake tensors) sees the operator `featherjet::call`, which names the function by its
digest: compiled programs are cached on disk, and must find the same robot in another process.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..bridges.robots import RobotFunction
from ..bridges.rules import in_rows, total
from ..errors import InputError
from .derivatives import made_of_others, pulled, pushed
from .internals import ahead, modes, transforming, with_changes

MANY = 3  # directions; from more on, matrices cost less than as many products
KINDS = (torch.float64, torch.float32)

_known: WeakValueDictionary[str, RobotFunction] = WeakValueDictionary()


def registered(f: RobotFunction) -> RobotFunction:
    """A function that the operator finds by its digest: this one, or an equal one that is already known."""
    return _known.setdefault(f.digest, f)


def call(f: RobotFunction, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of a function of tensors (..., *core), whose batches broadcast."""
    if transforming():
        return Transformed.apply(f, *given)
    if modes():
        return tuple(operator(list(given), registered(f).digest))
    changing = ahead()
    if changing and f.record.derivation is None:
        return made_of_others(f, call)(*given)
    if changing or (torch.is_grad_enabled() and any([x.requires_grad for x in given])):
        return Differentiated.apply(f, *given)
    return _computed(f, given)


def _kind(given: Sequence[Any]) -> torch.dtype:
    """The precision of the results."""
    return torch.float32 if all(x.dtype == torch.float32 for x in given) else torch.float64


def _computed(f: RobotFunction, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Machine code reads the tensors' memory, and results are tensors on the memory that it writes."""
    arrays = [x.detach().numpy() if x.requires_grad else x.numpy() for x in given]
    return tuple([torch.from_numpy(y) for y in f.values(*arrays)])


# Derivatives


def _gradients(f: RobotFunction, x: Sequence[Tensor], y: Sequence[Any], w: Sequence[Any]) -> list[Tensor | None]:
    """The derivatives of the sum of w.y by the inputs."""
    if transforming() or modes() or torch.is_grad_enabled() or f.record.derivation is None:
        found = pulled(f, torch, call, x, y, w)
        return [None if g is None else _like(a, g) for a, g in zip(x, found, strict=True)]
    # nobody will differentiate these: they are cheaper in NumPy
    arrays: list[list[Any]] = [[None if t is None else t.detach().numpy() for t in side] for side in (x, y, w)]
    found = pulled(f, np, _values, *arrays)
    return [None if g is None else torch.from_numpy(_alike(a, g)) for a, g in zip(arrays[0], found, strict=True)]


def _values(f: RobotFunction, given: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    return f.values(*given)


def _like(x: Tensor, g: Tensor) -> Tensor:
    """A derivative in the shape and precision of what it is by: sums over the batch axes that were broadcast."""
    return (g if g.shape == x.shape else g.sum_to_size(x.shape)).to(x.dtype)


def _alike(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    if g.shape != x.shape:
        more = g.ndim - x.ndim
        stretched = [k + more for k, n in enumerate(x.shape) if n == 1 and g.shape[k + more] != 1]
        g = g.sum((*range(more), *stretched), keepdims=True).reshape(x.shape)
    return g.astype(x.dtype, copy=False)


def _changes(f: RobotFunction, x: Sequence[Any], y: Sequence[Any], dx: Sequence[Any]) -> tuple[Any, ...]:
    """The changes of the results along changes of the inputs."""
    first: Any = x[0]
    if transforming():  # those around this one differentiate the changes, too, but not along this change again
        x = [forward_ad.unpack_dual(t).primal for t in x]
        y = [None if t is None else forward_ad.unpack_dual(t).primal for t in y]
        with with_changes():
            found = pushed(f, torch, call, x, y, dx)
    else:
        found = pushed(f, torch, call, x, y, dx)
    batch = torch.broadcast_shapes(*(a.shape[: a.ndim - len(s)] for a, s in zip(x, f.inputs, strict=True)))
    kind = _kind(x)
    return tuple(
        first.new_zeros((*batch, *s), dtype=kind) if d is None else d.expand((*batch, *s))
        for d, s in zip(found, f.results, strict=True)
    )


def _kept(f: RobotFunction, x: Sequence[Tensor], y: Sequence[Tensor]) -> Sequence[Tensor]:
    """What derivatives need: the inputs, and results whose tangent vectors depend on where they are."""
    return (*x, *y) if f.curved else x


def _saved(ctx: Any) -> tuple[Sequence[Tensor], Sequence[Any]]:
    """Inputs and results; None for results that nothing needs."""
    count, kept = len(ctx.f.inputs), ctx.saved_tensors
    return kept[:count], kept[count:] or [None] * len(ctx.f.results)


class Differentiated(torch.autograd.Function):
    """A function of tensors of which some need derivatives, outside of function transforms."""

    @staticmethod
    def forward(ctx: Any, f: RobotFunction, *x: Tensor) -> tuple[Tensor, ...]:
        y = _computed(f, x)
        ctx.f, kept = f, _kept(f, x, y)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*kept)
        if ahead():
            ctx.save_for_forward(*kept)
        return y

    @staticmethod
    def backward(ctx: Any, *w: Any) -> Any:
        return None, *_gradients(ctx.f, *_saved(ctx), w)

    @staticmethod
    def jvp(ctx: Any, *dx: Any) -> Any:
        return _changes(ctx.f, *_saved(ctx), dx[1:])


class Transformed(torch.autograd.Function):
    """The same within torch.func's transforms."""

    @staticmethod
    def forward(f: RobotFunction, *x: Tensor) -> tuple[Tensor, ...]:
        return _computed(f, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.f, *x = inputs
        kept = _kept(ctx.f, x, output)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    backward = staticmethod(Differentiated.backward)
    jvp = staticmethod(Differentiated.jvp)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        f, *x = given
        found = _mapped(f, in_dims[1:], x)
        return found, (0,) * len(found)


# Batches


def _mapped(f: RobotFunction, dims: Sequence[int | None], given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results, with the mapped axis in front, of inputs that have it at `dims`, or not at all."""
    record, wide = f.record, []
    fixed = len(f.inputs) - record.linear
    size = next(x.shape[d] for x, d in zip(given, dims, strict=True) if d is not None)
    if record.matrices and size > MANY and all(d is None for d in dims[:fixed]):
        return _by_matrices(f, dims, given)
    cores = [len(s) for s in f.inputs]
    most = max(x.ndim - c - (d is not None) for x, c, d in zip(given, cores, dims, strict=True))
    for x, c, d in zip(given, cores, dims, strict=True):
        if d is not None:
            x = x.movedim(d, 0)
            x = x.reshape(size, *(1,) * (most - (x.ndim - 1 - c)), *x.shape[1:])
        wide.append(x)
    return call(f, wide)


def _by_matrices(f: RobotFunction, dims: Sequence[int | None], given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Products of many directions or weights, which alone are mapped, with matrices that are computed once."""
    fixed = len(f.inputs) - f.record.linear
    matrices = call(f.another(str(f.record.matrices)), given[:fixed])
    factors = [x[None] if d is None else x.movedim(d, 0) for x, d in zip(given[fixed:], dims[fixed:], strict=True)]
    if f.record.adjoint:
        groups, product = zip(*in_rows(matrices, f.record.linear), strict=True), "...ij,k...i->k...j"
    else:
        groups, product = in_rows(matrices, len(f.results)), "...ij,k...j->k...i"
    terms = ([torch.einsum(product, M, d) for M, d in zip(group, factors, strict=True)] for group in groups)
    return tuple(map(total, terms))


# The operator


def _operator(given: Sequence[Tensor], function: str) -> list[Tensor]:
    """A function of a robot, by its digest."""
    return list(_computed(_function_of(function), given))


SCHEMA = "(Tensor[] given, str function) -> Tensor[]"
operator: Any = torch.library.custom_op("featherjet::call", _operator, mutates_args=(), schema=SCHEMA)


def _function_of(digest: str) -> RobotFunction:
    f = _known.get(digest)
    if f is None:
        raise InputError(
            "featherjet::call: the robot of this compiled program is gone: keep what fj.torch.wrap(robot) returns, and "
            "in a new process call the function once before the program"
        )
    return f


@operator.register_fake
def _(given: Sequence[Tensor], function: str) -> list[Tensor]:
    f = _function_of(function)
    batch = torch.broadcast_shapes(*(x.shape[: x.ndim - len(s)] for x, s in zip(given, f.inputs, strict=True)))
    return [given[0].new_empty((*batch, *s), dtype=_kind(given)) for s in f.results]


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    given, function = inputs
    ctx.f = _function_of(function)
    ctx.save_for_backward(*_kept(ctx.f, given, output))


def _backward(ctx: Any, w: Sequence[Any]) -> Any:
    return _gradients(ctx.f, *_saved(ctx), w), None


operator.register_autograd(_backward, setup_context=_remember)


@operator.register_vmap
def _(info: Any, in_dims: Any, given: Sequence[Tensor], function: str) -> Any:
    found = list(_mapped(_function_of(function), in_dims[0], given))
    return found, [0] * len(found)
