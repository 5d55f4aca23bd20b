"""One JAX primitive for every function of a robot, with rules for all of JAX's transformations.

It takes arrays (*batch, *core) of one precision with equal batches. Parameters: f, the function; absent, the numbers of
inputs that are zero and left out; strict, whether bad inputs raise.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

from ..bridges.ambient import twisted
from ..bridges.robots import RobotFunction
from ..bridges.rules import Arrays, Point, in_rows, total
from ..bridges.table import Role
from .targets import target

MANY = 3  # directions; from more on, matrices cost less than as many products

function_p = Primitive("featherjet")
function_p.multiple_results = True


def call(f: RobotFunction, given: Sequence[Any], strict: bool) -> list[Any]:
    """A function of arrays whose batches broadcast; None stands for zero where it is linear."""
    known = [x for x in given if x is not None]
    dtype = jnp.result_type(*known)
    if dtype not in (jnp.float32, jnp.float64):
        dtype = jnp.result_type(float)
    cores = [s for x, s in zip(given, f.inputs, strict=True) if x is not None]
    arrays = [jnp.asarray(x, dtype) for x in known]
    batch = jnp.broadcast_shapes(*(x.shape[: x.ndim - len(s)] for x, s in zip(arrays, cores, strict=True)))
    wide = [jnp.broadcast_to(x, (*batch, *s)) for x, s in zip(arrays, cores, strict=True)]
    absent = tuple(k for k, x in enumerate(given) if x is None)
    if absent and f.record.value is not None:
        wide, absent = full(f, wide, absent), ()
    return function_p.bind(*wide, f=f, absent=absent, strict=strict)


def full(f: RobotFunction, given: Sequence[Any], absent: tuple[int, ...]) -> list[Any]:
    """All inputs, with zeros for those that are absent."""
    rest = iter(given)
    batch = batch_of(f, given, absent)
    zeros = partial(jnp.zeros, dtype=given[0].dtype)
    return [zeros((*batch, *s)) if k in absent else next(rest) for k, s in enumerate(f.inputs)]


def batch_of(f: RobotFunction, given: Sequence[Any], absent: tuple[int, ...]) -> tuple[int, ...]:
    first = next(k for k in range(len(f.inputs)) if k not in absent)
    return given[0].shape[: len(given[0].shape) - len(f.inputs[first])]


def gapped(f: RobotFunction, given: Sequence[Any], absent: tuple[int, ...]) -> list[Any]:
    """All inputs, with None for those that are absent."""
    rest = iter(given)
    return [None if k in absent else next(rest) for k in range(len(f.inputs))]


class JaxPoint(Point):
    """A point whose functions leave out zeros instead of computing with them, and call the host as the program runs."""

    def filled(self, changes: Arrays, shapes: Sequence[Any]) -> list[Any]:
        return list(changes)

    def host(self, function: Callable[..., Arrays], shapes: Sequence[Any]) -> Arrays:
        batch, dtype = self.x[0].shape[:-1], self.x[0].dtype
        results = [jax.ShapeDtypeStruct((*batch, *s), dtype) for s in shapes]
        return jax.pure_callback(lambda *x: function(*map(np.asarray, x)), results, *self.x)


def point(f: RobotFunction, x: Sequence[Any], strict: bool) -> Point:
    return JaxPoint(*f.point(jnp, x, lambda name, *given: call(f.another(name), given, strict)))


# Values


@function_p.def_abstract_eval
def _abstract(*avals: Any, f: RobotFunction, absent: tuple[int, ...], strict: bool) -> list[Any]:
    batch, first = batch_of(f, avals, absent), avals[0]
    found = []
    for core in f.results:
        spec = jax.sharding.PartitionSpec(*first.sharding.spec[: len(batch)], *[None] * len(core))
        sharding = first.sharding.update(spec=spec)
        found.append(first.update(shape=(*batch, *core), sharding=sharding, weak_type=False))
    return found


@partial(jax.jit, static_argnames=("f", "absent", "strict"))
def _at_once(*given: Any, **parameters: Any) -> Any:
    return function_p.bind(*given, **parameters)


function_p.def_impl(lambda *given, **parameters: _at_once(*given, **parameters))


def _lowered(ctx: Any, *given: Any, f: RobotFunction, absent: tuple[int, ...], strict: bool) -> Any:
    if f.record.value is not None:
        value = f.record.value
        return mlir.lower_fun(lambda *x: value(point(f, x, strict)), multiple_results=True)(ctx, *given)
    batch = batch_of(f, ctx.avals_in, absent)
    known = all(isinstance(n, int) for n in batch)
    name = target(f, ctx.avals_in[0].dtype, absent, strict, known and int(np.prod(batch)) == 1)
    attributes = {}
    if known:
        attributes["mhlo.frontend_attributes"] = ir.DictAttr.get({"num_batch_dims": ir.StringAttr.get(str(len(batch)))})
        attributes["sdy.sharding_rule"] = sharding_rule(len(batch), ctx.avals_in, ctx.avals_out)
    return jax.ffi.ffi_lowering(name, extra_attributes=attributes)(ctx, *given)


mlir.register_lowering(function_p, _lowered, platform="cpu")


def sharding_rule(batch: int, inputs: Sequence[Any], results: Sequence[Any]) -> ir.Attribute:
    """Says that all arrays may be cut along their first `batch` axes, alike, and along no other."""
    sizes = list(inputs[0].shape[:batch])
    sides = []
    for avals in (inputs, results):
        lists = []
        for a in avals:
            own = [*range(batch), *range(len(sizes), len(sizes) + len(a.shape) - batch)]
            sizes += a.shape[batch:]
            lists.append("[" + ", ".join(map(letter, own)) + "]")
        sides.append("(" + ", ".join(lists) + ")")
    lengths = ", ".join(f"{letter(k)}={n}" for k, n in enumerate(sizes))
    return ir.Attribute.parse(f"#sdy.op_sharding_rule<{'->'.join(sides)} {{{lengths}}}>")


def letter(k: int) -> str:
    """The name of the factor number k: i to z, then z_1, z_2, ..."""
    return "ijklmnopqrstuvwxyz"[k] if k < 18 else f"z_{k - 17}"


# Derivatives


def _jvp(primals: Any, tangents: Any, *, f: RobotFunction, absent: tuple[int, ...], strict: bool) -> Any:
    out = function_p.bind(*primals, f=f, absent=absent, strict=strict)
    record = f.record
    if record.derivation is None:

        def same(*x: Any) -> Any:
            if record.plain is not None:
                return list(record.plain(point(f, x, strict)))
            return f.replay(jnp, *full(f, x, absent))

        return out, jax.jvp(same, tuple(primals), tuple(ad.instantiate_zeros(t) for t in tangents))[1]
    x = gapped(f, primals, absent)
    changes = gapped(f, [None if type(t) is ad.Zero else t for t in tangents], absent)
    for k, p in enumerate(record.inputs):
        if p.role is Role.CONFIGURATION and changes[k] is not None:
            changes[k] = f.robot.ambient.tangent(jnp, x[k], changes[k])
    if any(y is None for y in x):  # rules look at every input
        x = full(f, primals, absent)
    rates = record.derivation.jvp(point(f, x, strict), *changes)
    return out, [moved(f, p.role, y, dy) for p, y, dy in zip(record.results, out, rates, strict=True)]


def moved(f: RobotFunction, role: Role, y: Any, dy: Any) -> Any:
    """The change of a result, entry by entry, from a tangent vector; None is zero."""
    if dy is None:
        return jnp.zeros_like(y)
    if role is Role.CONFIGURATION:
        dy = f.robot.ambient.rate(jnp, y, dy)
    elif role is Role.PLACEMENT:
        dy = twisted(jnp, y, dy)
    return jnp.broadcast_to(dy, y.shape)


ad.primitive_jvps[function_p] = _jvp


def _transpose(weights: Any, *given: Any, f: RobotFunction, absent: tuple[int, ...], strict: bool) -> Any:
    record, x = f.record, gapped(f, given, absent)
    fixed = len(f.inputs) - record.linear
    assert record.transpose is not None
    assert not any(ad.is_undefined_primal(y) for y in x[:fixed])
    w = [None if type(y) is ad.Zero else y for y in weights]
    known = [None if ad.is_undefined_primal(y) else y for y in x]
    found = record.transpose(point(f, known, strict), *w)
    back = [*[None] * fixed, *found]
    pairs = [(k, y) for k, y in enumerate(x) if k not in absent]
    return [back[k] if ad.is_undefined_primal(y) else None for k, y in pairs]


ad.primitive_transposes[function_p] = _transpose


# Batches


def _batched(args: Any, dims: Any, *, f: RobotFunction, absent: tuple[int, ...], strict: bool) -> Any:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    wide = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    mapped = gapped(f, [d is not None for d in dims], absent)
    fixed = len(f.inputs) - f.record.linear
    if f.record.matrices and size > MANY and not any(mapped[:fixed]):
        return _by_matrices(f, gapped(f, wide, absent), mapped, strict)
    wide = [jnp.broadcast_to(x, (size, *x.shape)) if d is None else x for x, d in zip(wide, dims, strict=True)]
    out = function_p.bind(*wide, f=f, absent=absent, strict=strict)
    return out, [0] * len(out)


def _by_matrices(f: RobotFunction, x: Sequence[Any], mapped: Sequence[Any], strict: bool) -> Any:
    """Products of many directions or weights, which alone are batched, with matrices that are computed once."""
    assert f.record.matrices is not None
    fixed = len(f.inputs) - f.record.linear
    matrices = call(f.another(f.record.matrices), x[:fixed], strict)
    axis = -2 if f.record.adjoint else -1
    factors = []
    for y, many in zip(x[fixed:], mapped[fixed:], strict=True):
        factors.append(None if y is None else jnp.moveaxis(y, 0, axis) if many else jnp.expand_dims(y, axis))
    if f.record.adjoint:
        columns = zip(*in_rows(matrices, f.record.linear), strict=True)
        terms = [[(w, M) for w, M in zip(factors, c, strict=True) if w is not None] for c in columns]
    else:
        rows = in_rows(matrices, len(f.results))
        terms = [[(M, d) for M, d in zip(row, factors, strict=True) if d is not None] for row in rows]
    found = [total([jnp.matmul(*pair) for pair in pairs]) for pairs in terms]
    return [jnp.moveaxis(y, axis, 0) for y in found], [0] * len(found)


batching.primitive_batchers[function_p] = _batched
