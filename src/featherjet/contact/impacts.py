"""Impacts of points on the ground, which pushes but does not pull, with Coulomb friction; Poisson's law of restitution.

An impact compresses first: percussions that obey the laws of `algorithms.contacts.percussion` without restitution. Then
normal percussions grow by the share e, and friction, with this much to press it, brakes the points most. No energy is
created (see `simulation.bounces`). Compiled code solves the contact laws of a time step; NumPy solves them with dense
matrices, also where code finds no percussions, and there by plain sweeps in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.contacts import dense, feet
from ..algorithms.contacts.percussion import across
from ..algorithms.results import ImpulseDynamics
from ..errors import ContactWarning, InputError, SingularContacts, warn
from ..evaluate.evaluator import Evaluator
from ..jit.flags import Flag
from ..math.vec3 import Vec3
from ..model.model import Array
from .bilateral import Contacts, PointContact
from .dynamics import contact_jacobian, delassus, restitution_of

if TYPE_CHECKING:
    pass

MOST = 1e-9  # of the residual, relative to the largest percussion


class StrikingPoints(NamedTuple):
    """Points that strike the ground: q, v (samples, ...) in standard coordinates, the ground's axes (samples, n, 3, 3).

    mu (n,); G (samples, 3 n, 3 n) and J (samples, 3 n, nv) in these axes.
    """

    q: Array
    v: Array
    axes: Array
    mu: Array
    J: Array
    G: Array

    def some(self, which: Array) -> StrikingPoints:
        """Some of the samples."""
        return StrikingPoints(*(x if x is self.mu else x[which] for x in self))


def impact(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float, friction: ArrayLike,
    normal: ArrayLike | None,
) -> ImpulseDynamics:  # fmt: skip
    """Velocities after the impact, and impulses in world axes."""
    if any(map(arrays.is_lazy, (q, v))):
        raise InputError("impulse_dynamics: with friction it takes no Dask arrays; map it over blocks")
    e, mu = float(restitution_of(restitution)[0]), friction_of(contacts, friction)
    given = {"q": evaluator.checked_q("q", q), "v": evaluator.checked_v("v", v)}
    axes, standard = axes_of(contacts, normal), evaluator.standard
    arrays.common_batch({"normal": (axes, 3)} | {name: (x, 1) for name, x in given.items()})
    given = evaluator.to_standard(given)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in given.values()), axes.shape[:-3])
    at = gathered(standard, contacts, given["q"], given["v"], axes, mu, batch)
    solve = by_matrices if standard.backend == "numpy" or standard.tree.coupling is not None else by_code
    after, P = solve(standard, contacts, at, e)
    refuse_lawless(contacts, np.isnan(P).any(-1).reshape(batch))
    found = evaluator.from_standard({"q": given["q"], "v": after.reshape(*batch, after.shape[-1])})
    return ImpulseDynamics(found["v"], P.reshape(*batch, P.shape[-1]))


def gathered(
    evaluator: Evaluator, contacts: Contacts, q: Array, v: Array, axes: Array, mu: Array, batch: tuple[int, ...]
) -> StrikingPoints:
    """All samples on one axis, and the points' matrices in the ground's axes."""

    def flat(x: Array, core: int) -> Array:
        own = x.shape[x.ndim - core :]
        return np.ascontiguousarray(np.broadcast_to(x, (*batch, *own)).reshape(-1, *own))

    n = len(mu)
    turn = np.zeros((*axes.shape[:-3], 3 * n, 3 * n))
    for k in range(n):
        turn[..., 3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = axes[..., k, :, :]
    back = np.swapaxes(turn, -1, -2)
    J, G = back @ contact_jacobian(evaluator, q, contacts), back @ delassus(evaluator, q, contacts) @ turn
    return StrikingPoints(flat(q, 1), flat(v, 1), flat(axes, 3), mu, flat(J, 2), flat(G, 2))


def to_world(at: StrikingPoints, P: Array) -> Array:
    """Percussions (samples, 3 n) in world axes, from those in the ground's."""
    return (at.axes @ P.reshape(*at.axes.shape[:2], 3, 1)).reshape(P.shape)


def judged(at: StrikingPoints, P: Array) -> Array:
    """P, in the ground's axes, but NaN where it does not obey the laws."""
    b = (at.J @ at.v[..., None])[..., 0]
    lawful = residuals(at.G, b, at.mu, P) <= MOST * np.abs(P).max(-1, initial=0.0)
    return np.where(lawful[:, None], P, np.nan)


# Compiled code


def by_code(evaluator: Evaluator, contacts: Contacts, at: StrikingPoints, e: float) -> tuple[Array, Array]:
    """Velocities after the impact, and percussions in world axes."""
    kernels = evaluator.steps(contacts.core)
    n = len(at.mu)
    table = np.zeros((len(at.q), n, len(feet.FOOT)))  # planes and sizes do not matter: all points touch
    table[..., :3], table[..., -1] = at.axes[..., 2], at.mu
    touching, nothing, one = np.zeros(n), np.zeros(3 * n), np.ones(1)

    def strike(kernel: Any, start: Array) -> tuple[Array, Array]:
        (after, P, _), flags = kernel([at.q, at.v, table, touching, start, one], None, evaluator.threads)
        if flags & Flag.SMALL_MARGIN:
            evaluator.refuse_singular("forward_dynamics", {"q": at.q, "v": at.v, "tau": np.zeros(evaluator.model.nv)})
        return after, P

    after, P = strike(kernels.compression, nothing)
    own = (np.swapaxes(at.axes, -1, -2) @ P.reshape(-1, n, 3, 1)).reshape(P.shape)
    lawless = np.flatnonzero(np.isnan(judged(at, own)).any(-1))
    if e > 0:
        own[:, 2::3] *= 1.0 + e
        after, P = strike(kernels.restitution, to_world(at, own))
    if len(lawless):
        after[lawless], P[lawless] = by_matrices(evaluator, contacts, at.some(lawless), e)
    return after, P


# NumPy


def by_matrices(evaluator: Evaluator, contacts: Contacts, at: StrikingPoints, e: float) -> tuple[Array, Array]:
    """The same by dense matrices, the definition."""
    P = judged(at, settled(at, feet.Compression, np.zeros((len(at.q), 3 * len(at.mu))), True))
    lawless = np.flatnonzero(np.isnan(P).any(-1))
    if len(lawless):
        some = at.some(lawless)
        P[lawless] = judged(some, settled(some, feet.Compression, np.zeros_like(P[lawless]), False))
    if e > 0:
        P[:, 2::3] *= 1.0 + e
        P = settled(at, feet.Restitution, P, False)
    jump = evaluator("inverse_mass_matrix", at.q) @ (np.swapaxes(at.J, -1, -2) @ P[..., None])
    return at.v + jump[..., 0], to_world(at, P)


def settled(at: StrikingPoints, law: type[feet.Law], start: Array, at_once: bool) -> Array:
    """Percussions (samples, 3 n) in the ground's axes that obey a law, from a guess; at_once: see `dense.settle`."""
    guess, b = start.T, (at.J @ at.v[..., None])[..., 0].T
    laws = [law((0.0, 0.0, 1.0, 0.0, 0.0, mu), 0.0, 1.0, Vec3(*guess[3 * k : 3 * k + 3])) for k, mu in enumerate(at.mu)]
    given = dense.GivenLaws(laws, b, np.zeros((0, 3)), 1.0)
    return dense.settle(np.moveaxis(at.G, 0, -1), given, at_once=at_once).rows.T


def refuse_lawless(contacts: Contacts, samples: Array) -> None:
    """Raise if no sample has impulses that obey the laws, warn if some have not."""
    if not samples.any():
        return
    where = f" at sample {tuple(map(int, np.argwhere(samples)[0]))}" if samples.ndim else ""
    text = f"contacts {', '.join(contacts.names)}: no impulses found that obey the laws of friction{where}"
    if samples.all():
        raise SingularContacts(f"{text}; so strong a friction may have none: reduce it")
    warn(ContactWarning(f"{text}. Results are NaN there"))


def residuals(G: Array, b: Array, mu: Array, P: Array) -> Array:
    """How far each sample's P (samples, 3 n) is from obeying the laws [N s].

    The laws are P = prox(P - r (G P + b)) for any r > 0, where prox projects onto Pn >= 0 and |Pt| <= mu Pn; here r is
    one over the trace of the point's block of G.
    """
    own = P.reshape(len(P), len(mu), 3)
    gamma = ((G @ P[..., None])[..., 0] + b).reshape(own.shape)
    r = 1.0 / np.diagonal(G, axis1=-2, axis2=-1).reshape(own.shape).sum(-1, keepdims=True)
    x = own - r * gamma
    normal = np.maximum(x[..., 2], 0.0)
    share = np.minimum(1.0, mu * normal / np.maximum(np.hypot(x[..., 0], x[..., 1]), np.finfo(float).tiny))
    projected = np.stack([share * x[..., 0], share * x[..., 1], normal], -1)
    return np.abs(own - projected).max((1, 2), initial=0.0)


def friction_of(contacts: Contacts, friction: ArrayLike) -> Array:
    """The coefficient of each point (n,); raises for contacts that cannot slide and lift off."""
    if not isinstance(contacts, Contacts):
        raise InputError(f"contacts: expected fj.Contacts(robot, [...]), got {type(contacts).__name__}")
    for name, c in zip(contacts.names, contacts.held, strict=True):
        if not isinstance(c, PointContact) or c.other is not None or c.axes != "world_aligned":
            raise InputError(f"contact {name!r}: with friction, use a PointContact with the world, in world axes")
    if contacts.damping:
        raise InputError("contacts: with friction, they need no damping")
    mu: Any = arrays.finite("friction", friction, (), "a number")
    if mu.shape not in ((), (len(contacts.held),)) or (mu < 0).any():
        raise InputError(f"friction: expected a number >= 0, or {len(contacts.held)} of them, got {friction!r}")
    return np.broadcast_to(mu, (len(contacts.held),))


def axes_of(contacts: Contacts, normal: ArrayLike | None) -> Array:
    """Two tangents and the normal of each point as columns (..., n, 3, 3), in the world."""
    n = arrays.finite("normal", (0.0, 0.0, 1.0) if normal is None else normal, (3,), "x y z")
    points = len(contacts.held)
    if n.ndim > 1 and n.shape[-2] not in (1, points):
        raise InputError(f"normal: expected (3,), or (..., {points}, 3) for {points} contacts; got {n.shape}")
    length = np.linalg.norm(n, axis=-1, keepdims=True)
    if not (length > 0).all():
        raise InputError("normal: must not be zero")
    n = np.broadcast_to(n / length, (*n.shape[:-2], points, 3))
    A = across(Vec3(n[..., 0], n[..., 1], n[..., 2]))
    return np.stack([np.stack(np.broadcast_arrays(c.x, c.y, c.z), -1) for c in (A.x, A.y, A.z)], -1)
