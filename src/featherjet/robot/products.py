"""Products with derivatives: `Robot.vjp` and `Robot.jvp`, for everything that people differentiate through.

Dynamics, with contacts too, integrate and difference have records of their products, which form no matrix. Frames,
centre of mass and energies have derivatives with at most six rows, which are as long as the products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.quantities import FRAME, QUANTITIES, RESTITUTION, Quantity, quantity
from ..algorithms.record import Product
from ..algorithms.results import (
    ForwardDynamicsForceGradients,
    ForwardDynamicsGradients,
    ForwardDynamicsHessian,
    InverseDynamicsForceGradients,
    InverseDynamicsGradients,
    InverseDynamicsHessian,
)
from ..arrays import Out
from ..contact import Contacts
from ..contact import dynamics as contact
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..model.model import Array
from .quantity_methods import QuantityMethods

Single: TypeAlias = Literal[
    "inverse_dynamics", "forward_dynamics", "integrate", "difference", "frame_placement", "frame_velocity",
    "center_of_mass", "kinetic_energy", "potential_energy",
]  # fmt: skip
Double: TypeAlias = Literal["constrained_dynamics", "impulse_dynamics"]
PRODUCTS: dict[Product, Quantity] = {x.product: x for x in QUANTITIES.values() if x.product is not None}


class Choice(NamedTuple):
    """What quantities take besides their inputs."""

    frame: FrameName | None
    viewpoint: str
    contacts: Contacts | None
    restitution: float
    fext: ArrayLike | None
    dfext: ArrayLike | None = None


Matrices: TypeAlias = Callable[[Evaluator, tuple, Choice], tuple[Array, ...]]
# the derivatives (..., rows, nv) by each input of quantities without products of their own; an energy has one row
MATRICES: dict[str, Matrices] = {
    "frame_placement": lambda e, x, c: frames.run(e, "jacobian", x, c.frame or "", "local", None),
    "frame_velocity": lambda e, x, c: frames.run(e, "frame_velocity_derivatives", x, c.frame or "", c.viewpoint, None),
    "center_of_mass": lambda e, x, c: (e.run("centroidal_map", x)[0][..., :3, :] / e.model.mass,),
    "kinetic_energy": lambda e, x, c: tuple(d[..., None, :] for d in e.run("kinetic_energy_derivatives", x)),
    "potential_energy": lambda e, x, c: (e.run("gravity", x)[0][..., None, :],),
}
DIFFERENTIABLE = tuple(dict.fromkeys([*(x.of for x in PRODUCTS), *MATRICES]))
# products that are one call without contacts, by quantity and whether there are external forces: name, count of
# inputs, and what makes users' results of the gradients
VJPS, JVPS = (
    {
        (key.of, forced): (product.name, len(product.inputs), product.returns or tuple)
        for key, product in PRODUCTS.items()
        for forced in (False, True)
        if key.kind == kind and not product.options
        if (key.under_forces == forced if kind == "vjp" else not key.under_forces and product.forces >= forced)
    }
    for kind in ("vjp", "jvp")
)


class ProductMethods(QuantityMethods):
    """Products with first derivatives of everything that people differentiate through; tensors of second ones."""

    __slots__ = ()

    @overload
    def vjp(
        self, quantity: Literal["inverse_dynamics"], *given: ArrayLike, fext: None = None, out: Out = None
    ) -> InverseDynamicsGradients: ...
    @overload
    def vjp(
        self, quantity: Literal["inverse_dynamics"], *given: ArrayLike, fext: ArrayLike, out: Out = None
    ) -> InverseDynamicsForceGradients: ...
    @overload
    def vjp(
        self, quantity: Literal["forward_dynamics"], *given: ArrayLike, fext: None = None, out: Out = None
    ) -> ForwardDynamicsGradients: ...
    @overload
    def vjp(
        self, quantity: Literal["forward_dynamics"], *given: ArrayLike, fext: ArrayLike, out: Out = None
    ) -> ForwardDynamicsForceGradients: ...
    @overload
    def vjp(
        self,
        quantity: Single | Double,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, ...]: ...

    def vjp(
        self,
        quantity: Single | Double,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> Any:
        """The gradient of w . quantity by each of its inputs in order, each (..., nv): `vjp("integrate", q, dv, w)`.

        given: the inputs of the method of that name (inverse_dynamics, forward_dynamics, integrate, difference,
        frame_placement, frame_velocity, center_of_mass, kinetic_energy, potential_energy, constrained_dynamics,
        impulse_dynamics), then w as its result: (..., nv), (..., 6), (..., 3) or, of energies, (...). A result that is
        a configuration or placement has w in its tangent space, that of a placement in the frame's axes, linear then
        angular. Two results, as of contacts, have two w. Gradients of inverse and forward dynamics have names, such as
        by_q, and under fext one by it (..., njoints, 6) at the end. Nothing forms a matrix of nv rows.
        """
        if contacts is None and frame is None and restitution == 0.0 and viewpoint == "local":  # one call, often
            name, count, gradients = VJPS.get((quantity, fext is not None), NO_CALL)
            if len(given) == count:
                return gradients(self._run(name, given, fext, out))
        choice = Choice(frame, viewpoint, contacts, restitution, fext)
        return arrays.copied(out, vjp(self.evaluator, quantity, given, choice))

    @overload
    def jvp(
        self,
        quantity: Single,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        fext: ArrayLike | None = None,
        dfext: ArrayLike | None = None,
        out: Out = None,
    ) -> Array: ...
    @overload
    def jvp(
        self,
        quantity: Double,
        *given: ArrayLike,
        contacts: Contacts,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array]: ...

    def jvp(
        self,
        quantity: Single | Double,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        dfext: ArrayLike | None = None,
        out: Out = None,
    ) -> Array | tuple[Array, ...]:
        """The rate of a quantity along a direction of each of its inputs: `jvp("integrate", q, dv, dq, ddv)`.

        given: the inputs, then the directions, each (..., nv). The rate is as the quantity, or in the tangent space of
        its result; see `vjp`. Contacts have two, a tuple. fext stays fixed, unless inverse or forward dynamics are
        given its direction dfext (..., njoints, 6).
        """
        if contacts is None and frame is None and dfext is None and restitution == 0.0 and viewpoint == "local":
            name, count, _ = JVPS.get((quantity, fext is not None), NO_CALL)
            if len(given) == count:
                return self._run(name, given, fext, out)[0]
        choice = Choice(frame, viewpoint, contacts, restitution, fext, dfext)
        first, *rest = arrays.copied(out, jvp(self.evaluator, quantity, given, choice))
        return (first, *rest) if rest else first

    def inverse_dynamics_second_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> InverseDynamicsHessian:
        """The Hessians of every torque, each (..., nv, nv, nv): qq[k] is `inverse_dynamics_hessian` with w = e_k."""
        name = "inverse_dynamics_second_derivatives"
        if self.evaluator.kernels.computing(quantity(name)).name == name:
            return InverseDynamicsHessian._make(self._run(name, (q, v, a), fext, out))
        return self.inverse_dynamics_hessian(*self._for_each_dof(q, v, a, fext), out=out)

    def forward_dynamics_second_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> ForwardDynamicsHessian:
        """The Hessians of every acceleration, each (..., nv, nv, nv): qq[k] is `forward_dynamics_hessian` of a_k."""
        return self.forward_dynamics_hessian(*self._for_each_dof(q, v, tau, fext), out=out)

    def _for_each_dof(self, q: ArrayLike, v: ArrayLike, third: ArrayLike, fext: ArrayLike | None) -> list[Any]:
        """A state and a weight for each dof, so that Hessians contracted with the weights are those of each dof."""
        state = [arrays.numbers(x)[..., None, :] for x in (q, v, third)]
        kind = np.float32 if all(x.dtype == np.float32 for x in state) else float
        weights = np.eye(self.evaluator.model.nv, dtype=kind)
        return [*state, weights, None if fext is None else arrays.numbers(fext)[..., None, :, :]]


NO_CALL = "", -1, tuple


def vjp(evaluator: Evaluator, name: str, given: Sequence[ArrayLike], choice: Choice) -> tuple[Array, ...]:
    """See `Robot.vjp`."""
    forced = choice.fext is not None and choice.contacts is None
    record, inputs, weights = _split(Product("vjp", name, forced), given, choice)
    product = PRODUCTS.get(Product("vjp", name))
    if product is not None:
        found = _run(evaluator, product, inputs, weights, choice)
        return (found[0], found[1] + arrays.numbers(weights["w_v"])) if RESTITUTION in record.inputs else found
    D = MATRICES[name](evaluator, inputs, choice)
    (w,) = _checked(weights, [D[0].shape[-2]], D[0], not record.results[0].axes)
    return tuple((w[..., None, :] @ M)[..., 0, :] for M in D)


def jvp(evaluator: Evaluator, name: str, given: Sequence[ArrayLike], choice: Choice) -> tuple[Array, ...]:
    """See `Robot.jvp`; a tuple of the rates of all results."""
    record, inputs, directions = _split(Product("jvp", name, choice.dfext is not None), given, choice)
    product = PRODUCTS.get(Product("jvp", name, choice.dfext is not None))
    if product is not None:
        found = _run(evaluator, product, inputs, directions, choice)  # v+ = v + jump
        return (found[0] + arrays.numbers(directions["dv"]), found[1]) if RESTITUTION in record.inputs else found
    D = MATRICES[name](evaluator, inputs, choice)
    d = _checked(directions, [evaluator.model.nv] * len(directions), D[0])
    rate = reduce(add, [(M @ x[..., None])[..., 0] for M, x in zip(D, d, strict=True)])
    return (rate if record.results[0].axes else rate[..., 0],)


def _run(
    evaluator: Evaluator, product: Quantity, inputs: tuple, more: dict[str, ArrayLike], choice: Choice
) -> tuple[Array, ...]:
    """The results of the code of a product."""
    if RESTITUTION in product.inputs:
        inputs = (*inputs, contact.restitution_of(choice.restitution))
    if choice.contacts is None:
        return evaluator.run(product.name, (*inputs, *more.values()), choice.fext)
    return contact.run(evaluator, product.name, (*inputs, *more.values()), choice.contacts, choice.fext)


def _split(product: Product, given: Sequence[ArrayLike], choice: Choice) -> tuple[Quantity, tuple, dict[str, Any]]:
    """A quantity's record and inputs, and the weights or directions by name; raises if any is missing or misplaced."""
    kind, name, _ = product
    if not isinstance(name, str) or name not in DIFFERENTIABLE:
        raise UnknownName("quantity to differentiate", name, DIFFERENTIABLE)
    record = QUANTITIES[name]
    inputs, more = _names(product)
    if choice.dfext is not None and "dfext" in more:
        given = (*given, choice.dfext)
    if len(given) != len(inputs) + len(more):
        takes = ", ".join(x for x in [*inputs, *more] if x != "dfext")
        raise InputError(f"{kind} of {name}: takes {takes}; got {len(given) - ('dfext' in more)} arrays")
    for what, takes, got in (
        ("a frame", FRAME in record.inputs, choice.frame is not None),
        ("contacts", "contacts" in record.options, choice.contacts is not None),
    ):
        if takes != got:
            raise InputError(f"{kind} of {name}: {'needs' if takes else 'does not take'} {what}")
    for what, takes, got in (
        ("a viewpoint", "viewpoint" in record.options, choice.viewpoint != "local"),
        ("a restitution", RESTITUTION in record.inputs, choice.restitution != 0.0),
        ("external forces", record.forces, choice.fext is not None),
        ("a direction of external forces", "dfext" in more, choice.dfext is not None),
    ):
        if got and not takes:
            raise InputError(f"{kind} of {name}: does not take {what}")
    return record, tuple(given[: len(inputs)]), dict(zip(more, given[len(inputs) :], strict=True))


@cache
def _names(product: Product) -> tuple[list[str], list[str]]:
    """What a product takes: the inputs of the quantity, and weights or directions."""
    kind, name, _ = product
    record, found = QUANTITIES[name], PRODUCTS.get(product) or PRODUCTS.get(Product(kind, name))
    inputs = [i.name for i in record.inputs if i not in (FRAME, RESTITUTION)]
    if found is not None:
        return inputs, [i.name for i in found.inputs[len(record.inputs) :]]
    return inputs, ["w"] if kind == "vjp" else [f"d{x}" for x in inputs]


def _checked(given: dict[str, ArrayLike], sizes: Sequence[int], like: Array, scalars: bool = False) -> list[Array]:
    """Vectors of these sizes, or numbers as vectors of one, whose batches broadcast against `like` (..., rows, nv)."""
    found = {}
    for (name, x), size in zip(given.items(), sizes, strict=True):
        checked = arrays.finite(name, x, () if scalars else (size,), "any shape" if scalars else f"{size} entries")
        found[name] = (checked[..., None] if scalars else checked).astype(like.dtype, copy=False)
    arrays.common_batch({"inputs": (like, 2)} | {name: (x, 1) for name, x in found.items()})
    return list(found.values())
