"""Products with derivatives: `Robot.vjp` and `Robot.jvp`, for everything that people differentiate through.

Dynamics, with contacts too, integrate and difference have code of their own that forms no matrix. Frames, centre of
mass and energies have derivatives with at most six rows, which are as long as the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from .. import arrays
from ..contact import Contacts
from ..contact import dynamics as contact
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName
from ..model.model import Array

Single: TypeAlias = Literal[
    "inverse_dynamics", "forward_dynamics", "integrate", "difference", "frame_placement", "frame_velocity",
    "center_of_mass", "kinetic_energy", "potential_energy",
]  # fmt: skip
Double: TypeAlias = Literal["constrained_dynamics", "impulse_dynamics"]
INPUTS: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "v", "a"),
    "forward_dynamics": ("q", "v", "tau"),
    "integrate": ("q", "dv"),
    "difference": ("q0", "q1"),
    "frame_placement": ("q",),
    "frame_velocity": ("q", "v"),
    "center_of_mass": ("q",),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "constrained_dynamics": ("q", "v", "tau"),
    "impulse_dynamics": ("q", "v"),
}
DIRECT = ("inverse_dynamics", "forward_dynamics", "integrate", "difference")
WEIGHTS = {"constrained_dynamics": ("w_a", "w_forces"), "impulse_dynamics": ("w_v", "w_impulses")}
ENERGIES = ("kinetic_energy", "potential_energy")
FORCED = ("inverse_dynamics", "forward_dynamics", "constrained_dynamics")
FRAMES = ("frame_placement", "frame_velocity")


class Choice(NamedTuple):
    """What quantities take besides their inputs."""

    frame: FrameName | None
    viewpoint: str
    contacts: Contacts | None
    restitution: float
    fext: ArrayLike | None


def vjp(evaluator: Evaluator, quantity: str, given: Sequence[ArrayLike], choice: Choice) -> tuple[Array, ...]:
    """See `Robot.vjp`."""
    inputs, weights = _split("vjp", quantity, given, WEIGHTS.get(quantity, ("w",)), choice)
    held: Any = choice.contacts
    if quantity in DIRECT:
        kind = "vjp" if choice.fext is None else "force_vjp"
        return evaluator.run(f"{quantity}_{kind}", (*inputs, *weights.values()), choice.fext)
    if quantity == "constrained_dynamics":
        return contact.run(evaluator, "constrained_dynamics_vjp", (*inputs, *weights.values()), held, choice.fext)
    if quantity == "impulse_dynamics":
        e = contact.restitution_of(choice.restitution)
        by_q, by_v = contact.run(evaluator, "impulse_dynamics_vjp", (*inputs, e, *weights.values()), held)
        return by_q, by_v + arrays.numbers(weights["w_v"])  # v+ = v + jump
    D = derivatives(evaluator, quantity, inputs, choice)
    w = _checked(weights, [rows[0].shape[-2] for rows in D], D[0][0], quantity in ENERGIES)
    return tuple(
        _sum([(x[..., None, :] @ M)[..., 0, :] for x, M in zip(w, c, strict=True)]) for c in zip(*D, strict=True)
    )


def jvp(evaluator: Evaluator, quantity: str, given: Sequence[ArrayLike], choice: Choice) -> tuple[Array, ...]:
    """See `Robot.jvp`; a tuple of the rates of all results."""
    names = [f"d{name}" for name in INPUTS.get(quantity, ())]
    inputs, directions = _split("jvp", quantity, given, names, choice)
    held: Any = choice.contacts
    if quantity in DIRECT:
        return evaluator.run(f"{quantity}_jvp", (*inputs, *directions.values()), choice.fext)
    if quantity == "constrained_dynamics":
        return contact.run(evaluator, "constrained_dynamics_jvp", (*inputs, *directions.values()), held, choice.fext)
    if quantity == "impulse_dynamics":
        e = contact.restitution_of(choice.restitution)
        djump, dimpulses = contact.run(evaluator, "impulse_dynamics_jvp", (*inputs, e, *directions.values()), held)
        return djump + arrays.numbers(directions["dv"]), dimpulses
    D = derivatives(evaluator, quantity, inputs, choice)
    d = _checked(directions, [evaluator.model.nv] * len(directions), D[0][0])
    rates = tuple(_sum([(M @ x[..., None])[..., 0] for M, x in zip(rows, d, strict=True)]) for rows in D)
    return tuple(r[..., 0] for r in rates) if quantity in ENERGIES else rates


def derivatives(evaluator: Evaluator, quantity: str, inputs: tuple, choice: Choice) -> tuple[tuple[Array, ...], ...]:
    """For each result, its derivatives (..., rows, nv) by each input; an energy has one row."""
    frame, viewpoint = choice.frame or "", choice.viewpoint
    if quantity == "frame_placement":
        return (frames.run(evaluator, "jacobian", inputs, frame, "local", None),)
    if quantity == "frame_velocity":
        return (frames.run(evaluator, "frame_velocity_derivatives", inputs, frame, viewpoint, None),)
    if quantity == "center_of_mass":
        return ((evaluator.run("centroidal_map", inputs)[0][..., :3, :] / evaluator.model.mass,),)
    if quantity == "kinetic_energy":
        return (tuple(x[..., None, :] for x in evaluator.run("kinetic_energy_derivatives", inputs)),)
    return ((evaluator.run("gravity", inputs)[0][..., None, :],),)


def _sum(terms: Sequence[Array]) -> Array:
    return reduce(add, terms)


def _split(
    product: str, quantity: str, given: Sequence[ArrayLike], more: Sequence[str], choice: Choice
) -> tuple[tuple, dict[str, ArrayLike]]:
    """The quantity's inputs, and the weights or directions by name; raises if any is missing or out of place."""
    if not isinstance(quantity, str) or quantity not in INPUTS:
        raise UnknownName("quantity to differentiate", quantity, INPUTS)
    names = (*INPUTS[quantity], *more)
    if len(given) != len(names):
        raise InputError(f"{product} of {quantity}: takes {', '.join(names)}; got {len(given)} arrays")
    for what, takes, got in (
        ("a frame", quantity in FRAMES, choice.frame is not None),
        ("contacts", quantity in WEIGHTS, choice.contacts is not None),
    ):
        if takes != got:
            raise InputError(f"{product} of {quantity}: {'needs' if takes else 'does not take'} {what}")
    for what, takes, got in (
        ("a viewpoint", quantity == "frame_velocity", choice.viewpoint != "local"),
        ("a restitution", quantity == "impulse_dynamics", choice.restitution != 0.0),
        ("external forces", quantity in FORCED, choice.fext is not None),
    ):
        if got and not takes:
            raise InputError(f"{product} of {quantity}: does not take {what}")
    count = len(INPUTS[quantity])
    return tuple(given[:count]), dict(zip(more, given[count:], strict=True))


def _checked(given: dict[str, ArrayLike], sizes: Sequence[int], like: Array, scalars: bool = False) -> list[Array]:
    """Vectors of these sizes, or numbers as vectors of one, whose batches broadcast against `like` (..., rows, nv)."""
    found = {}
    for (name, x), size in zip(given.items(), sizes, strict=True):
        checked = arrays.finite(name, x, () if scalars else (size,), "any shape" if scalars else f"{size} entries")
        found[name] = (checked[..., None] if scalars else checked).astype(like.dtype, copy=False)
    arrays.common_batch({"inputs": (like, 2)} | {name: (x, 1) for name, x in found.items()})
    return list(found.values())
