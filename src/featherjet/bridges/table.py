"""The differentiable functions of a robot: one record each, with its derivatives.

A function is a quantity (algorithms/quantities.py) with the derivatives that bridges follow. Those of dynamics are
products that form no matrix, and their own derivatives the contracted Hessian; the others are matrices. Where neither
exists, automatic differentiation of the trace gives the matrices ("X by q").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.quantities import FEXT, FRAME, QUANTITIES, RESTITUTION
from ..algorithms.record import Axis
from ..errors import UnknownName
from . import rules
from .rules import Arrays, Derivation, Point, Rule

FIXED = (FRAME, RESTITUTION)  # inputs that a function's selection fills in


class Role(Enum):
    """What an array of a function is, which says what its tangent vectors are."""

    VECTOR = auto()  # an array of numbers; its tangent vectors are arrays of the same shape
    CONFIGURATION = auto()  # q, with tangent vectors over degrees of freedom
    PLACEMENT = auto()  # (4, 4), with twists (6,) in the frame's own axes


class Port(NamedTuple):
    """An input or result: its name, the axes of one sample, and what it is."""

    name: str
    axes: tuple[Axis, ...]
    role: Role = Role.VECTOR

    @property
    def tangent(self) -> tuple[Axis, ...]:
        """The axes of its tangent vectors."""
        return {Role.CONFIGURATION: ("v",), Role.PLACEMENT: (6,)}.get(self.role, self.axes)


def port(given: Any) -> Port:
    return Port(given.name, given.axes, Role.CONFIGURATION if given.axes == ("q",) else Role.VECTOR)


@dataclass(frozen=True, eq=False)
class FunctionRecord:
    """A differentiable function.

    quantity: whose code computes it, or None where `value` does, from other functions.
    derivation: its first derivatives. plain(Point) -> results: the same function made of others and of array
    operations, in entries of q, for the framework to differentiate; `derivation` is None then.
    linear: in how many of its last inputs it is linear, all together; transpose(Point, *weights) gives the derivatives
    by these, and `matrices` names the function of the other inputs that gives the matrices it multiplies with, if
    that pays for many directions; `adjoint` says whether from the left.
    replayed: frameworks differentiate the algorithm itself, on arrays.
    by: the input that this is the derivative by, as automatic differentiation of the quantity's trace gives it.
    """

    name: str
    quantity: str | None
    inputs: tuple[Port, ...]
    results: tuple[Port, ...]
    derivation: Derivation | None = None
    plain: Rule | None = None
    value: Rule | None = None
    linear: int = 0
    transpose: Rule | None = None
    matrices: str | None = None
    adjoint: bool = False
    replayed: bool = False
    by: str | None = None
    viewpoint: str | None = None  # of a frame, whatever the user selects


def of(
    quantity: str, name: str = "", order: Sequence[str] = (), roles: Sequence[Role] = (), **more: Any
) -> FunctionRecord:
    """The function of a quantity; order: of its inputs, if not that of the record."""
    record = QUANTITIES[quantity]
    inputs = {i.name: port(i) for i in (*record.inputs, FEXT) if i not in FIXED}
    order = order or [i.name for i in record.inputs if i not in FIXED]
    results = [port(r) for r in record.results]
    if roles:
        results = [r._replace(role=role) for r, role in zip(results, roles, strict=True)]
    return FunctionRecord(name or quantity, quantity, tuple(inputs[k] for k in order), tuple(results), **more)


def dynamics(quantity: str, third: str) -> list[FunctionRecord]:
    """Inverse or forward dynamics, their products, matrices and Hessian."""
    x = ["q", "v", third]
    second = rules.Second(quantity)
    jvp, vjp, derivatives, hessian, both = (
        f"{quantity}_{k}" for k in ("jvp", "vjp", "derivatives", "hessian", "second")
    )
    forward = of(jvp, derivation=second.of_jvp(), linear=3, transpose=back_to(vjp, 3), matrices=derivatives)
    again = tuple(Port(f"e{k}", ("v",)) for k in x)
    return [
        of(quantity, derivation=rules.by_products(jvp, vjp)),
        forward,
        of(
            vjp, derivation=second.of_vjp(), linear=1, transpose=back_to(jvp, 3), matrices=derivatives, adjoint=True,
        ),
        of(derivatives, derivation=second.of_matrices()),
        of(hessian, derivation=ended(hessian)),
        FunctionRecord(
            both, None, (*forward.inputs, *again), forward.results, ended(both), value=second.along_both, linear=3,
            transpose=second.back_along_both,
        ),
    ]  # fmt: skip


def pushed(quantity: str, third: str) -> list[FunctionRecord]:
    """Inverse or forward dynamics under external forces, and their products; by forces, first derivatives alone."""
    x = ["q", "v", third, "fext"]
    name, jvp, vjp = (f"{quantity}_force{k}" for k in ("", "_jvp", "_vjp"))
    end = ended(f"the derivative of {quantity} under external forces")
    return [
        of(quantity, name, x, derivation=rules.by_products(jvp, vjp)),
        of(jvp, order=[*x, *(f"d{k}" for k in x)], derivation=end, linear=4, transpose=back_to(vjp, 4)),
        of(vjp, order=[*x, "w"], derivation=end, linear=1, transpose=back_to(jvp, 4)),
    ]


def back_to(name: str, count: int) -> Rule:
    """The transpose of a product is the other product, at the first `count` inputs."""

    def rule(at: Point, *w: Any) -> Arrays:
        return at.call(name, *at.x[:count], *at.filled(w, at.results))

    return rule


def ended(what: str) -> Derivation:
    return Derivation(rules.beyond(what), rules.beyond(what))


def products(quantity: str) -> list[FunctionRecord]:
    """A quantity of configurations and its products, whose derivatives the framework takes."""
    jvp, vjp = f"{quantity}_jvp", f"{quantity}_vjp"
    return [
        of(quantity, derivation=rules.by_products(jvp, vjp)),
        of(jvp, replayed=True, linear=2, transpose=back_to(vjp, 2)),
        of(vjp, replayed=True, linear=1, transpose=back_to(jvp, 2)),
    ]


def with_contacts(quantity: str, name: str, inputs: int) -> list[FunctionRecord]:
    """A quantity with contacts, its products and matrices, which have no derivatives themselves."""
    jvp, vjp, derivatives = (f"{quantity}_{k}" for k in ("jvp", "vjp", "derivatives"))
    end = ended(f"the derivative of {quantity}")
    return [
        of(quantity, name, derivation=rules.by_products(jvp, vjp)),
        of(jvp, derivation=end, linear=inputs, transpose=back_to(vjp, inputs), matrices=derivatives),
        of(vjp, derivation=end, linear=2, transpose=back_to(jvp, inputs), matrices=derivatives, adjoint=True),
        of(derivatives, derivation=end),
    ]


def traced(quantity: str, by: Sequence[str]) -> Derivation:
    """Differentiated by automatic differentiation of the traced quantity."""
    record = QUANTITIES[quantity]

    def blocks(at: Point) -> list[list[Any]]:
        columns = [at.call(f"{quantity} by {k}", *at.x) for k in by]
        return [list(row) for row in zip(*columns, strict=True)]

    return rules.by_matrices(blocks, *(len(r.axes) for r in record.results))


def traced_function(name: str) -> FunctionRecord:
    """The function "X by k": the derivative of the quantity X by its input k."""
    quantity, _, by = name.partition(" by ")
    base = of(quantity)
    along = next(p.tangent for p in base.inputs if p.name == by)
    results = tuple(Port(f"d{r.name}_d{by}", (*r.tangent, *along)) for r in base.results)
    return FunctionRecord(name, quantity, base.inputs, results, ended(name), by=by)


# Functions that are made of others, for their derivatives


def mass_matrix(at: Point) -> Arrays:
    """M, from inverse dynamics: its columns are the torques of unit accelerations, without those of gravity."""
    q, rest = at.x[0][..., None, :], at.zeros((at.nv,))
    columns = at.call("inverse_dynamics", q, rest, at.constant(np.eye(at.nv)))[0]
    return [columns - at.call("inverse_dynamics", q, rest, rest)[0]]


def gravity(at: Point) -> Arrays:
    rest = at.zeros((at.nv,))
    return at.call("inverse_dynamics", at.x[0], rest, rest)


def bias(at: Point) -> Arrays:
    return at.call("inverse_dynamics", *at.x, at.zeros((at.nv,)))


def kinetic_slopes(at: Point) -> Arrays:
    """The derivatives of v^T M v / 2 by q and v, from inverse dynamics without gravity: that by v is M v."""
    (q, v), rest = at.x, at.zeros((at.nv,))
    by_q, _, momentum = at.call("inverse_dynamics_vjp", q, rest, v, v)
    return [0.5 * (by_q - at.call("inverse_dynamics_vjp", q, rest, rest, v)[0]), momentum]


def momentum(at: Point) -> Arrays:
    q, v = at.x
    return [rules.right(at, at.call("centroidal_map", q)[0], v)]


def impulses(at: Point) -> Arrays:
    jump, found = at.call("impulse_jump", *at.x)
    return [at.x[1] + jump, found]


def center_rows(at: Point) -> list[list[Any]]:
    return [[at.call("centroidal_map", *at.x)[0][..., :3, :] / at.mass]]


def from_blocks(derivatives: str, results: int = 1, rows: Sequence[int] = (1,)) -> Derivation:
    return rules.by_matrices(rules.blocks_of(derivatives, results), *rows)


RECORDS = (
    *dynamics("inverse_dynamics", "a"),
    *dynamics("forward_dynamics", "tau"),
    *pushed("inverse_dynamics", "a"),
    *pushed("forward_dynamics", "tau"),
    of("mass_matrix", plain=mass_matrix),
    of("gravity", plain=gravity),
    of("bias", plain=bias),
    of("torque_regressor", derivation=traced("torque_regressor", ("q", "v", "a"))),
    *products("integrate"),
    *products("difference"),
    of("frame_placement", roles=(Role.PLACEMENT,), derivation=from_blocks("local_jacobian")),
    of(
        "jacobian", "local_jacobian", derivation=from_blocks("local_jacobian_hessian", rows=(2,)), viewpoint="local",
    ),
    of("jacobian_hessian", "local_jacobian_hessian", derivation=ended("jacobian_hessian"), viewpoint="local"),
    of("jacobian", derivation=from_blocks("jacobian_hessian", rows=(2,))),
    of("jacobian_hessian", derivation=ended("jacobian_hessian")),
    of("frame_velocity", derivation=from_blocks("frame_velocity_derivatives")),
    of("frame_velocity_derivatives", derivation=traced("frame_velocity_derivatives", ("q", "v"))),
    of("center_of_mass", derivation=rules.by_matrices(center_rows, 1)),
    of("centroidal_map", derivation=traced("centroidal_map", ("q",))),
    of("centroidal_momentum", plain=momentum),
    of("potential_energy", derivation=from_blocks("gravity", rows=(0,))),
    of("kinetic_energy", derivation=from_blocks("kinetic_energy_derivatives", rows=(0,))),
    of("kinetic_energy_derivatives", plain=kinetic_slopes),
    *with_contacts("constrained_dynamics", "constrained_dynamics", 3),
    *with_contacts("impulse_dynamics", "impulse_jump", 2),
)  # fmt: skip
_impulses = of("impulse_dynamics")
IMPULSES = FunctionRecord("impulse_dynamics", None, _impulses.inputs, _impulses.results, plain=impulses, value=impulses)
TABLE: dict[str, FunctionRecord] = {f.name: f for f in (*RECORDS, IMPULSES)}


def smooth(name: str) -> FunctionRecord:
    """The record of the function of that name."""
    if name not in TABLE and " by " in name:
        return traced_function(name)
    if name not in TABLE:
        raise UnknownName("function", name, TABLE)
    return TABLE[name]
