"""Impacts of points on the ground, which pushes but does not pull, with Coulomb friction; Poisson's law of restitution.

An impact compresses first: percussions that obey the laws of `algorithms.contacts.percussion` without restitution. Then
normal percussions grow by the share e, and friction, with this much to press it, brakes the points most. No energy is
created (see `simulation.bounces`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.contacts.percussion import FootBlock, across, block, rubbed, struck
from ..algorithms.results import ImpulseDynamics
from ..errors import ContactWarning, InputError, SingularContacts, warn
from ..evaluate.evaluator import Evaluator
from ..math.vec3 import Sym3, Vec3
from ..model.model import Array
from . import gauss_seidel
from .bilateral import Contacts, PointContact
from .dynamics import contact_jacobian, delassus, restitution_of

SWEEPS = 1000
ENOUGH, MOST = 1e-11, 1e-9  # of the residual, relative to the largest percussion: after sweeps, and at all
TOLERANCE = 1e-13  # of a sweep's change, relative to the largest percussion


def impact(
    evaluator: Evaluator, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float, friction: ArrayLike,
    normal: ArrayLike | None,
) -> ImpulseDynamics:  # fmt: skip
    """Velocities after the impact, and impulses in world axes."""
    if any(map(arrays.is_lazy, (q, v))):
        raise InputError("impulse_dynamics: with friction it takes no Dask arrays; map it over blocks")
    e, mu, n = float(restitution_of(restitution)[0]), friction_of(contacts, friction), len(contacts.held)
    v = evaluator.checked_v("v", v)
    J, G = contact_jacobian(evaluator, q, contacts), delassus(evaluator, q, contacts)
    axes = axes_of(contacts, normal)
    batch = np.broadcast_shapes(J.shape[:-2], v.shape[:-1], axes.shape[:-3])
    turn = np.zeros((*axes.shape[:-3], 3 * n, 3 * n))
    for k in range(n):
        turn[..., 3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = axes[..., k, :, :]
    back = np.swapaxes(turn, -1, -2)
    own = np.broadcast_to(back @ G @ turn, (*batch, 3 * n, 3 * n)).reshape(-1, 3 * n, 3 * n)
    before = np.broadcast_to((back @ (J @ v[..., None]))[..., 0], (*batch, 3 * n)).reshape(-1, 3 * n)
    P = turn @ percussions(own, before, mu, e).reshape(*batch, 3 * n, 1)
    refuse_lawless(contacts, np.asarray(np.isnan(P[..., 0]).any(-1)))
    jump = evaluator("inverse_mass_matrix", q) @ (np.swapaxes(J, -1, -2) @ P)
    return ImpulseDynamics(v + jump[..., 0], P[..., 0])


def refuse_lawless(contacts: Contacts, samples: Array) -> None:
    """Raise if no sample has impulses that obey the laws, warn if some have not."""
    if not samples.any():
        return
    where = f" at sample {tuple(map(int, np.argwhere(samples)[0]))}" if samples.ndim else ""
    text = f"contacts {', '.join(contacts.names)}: no impulses found that obey the laws of friction{where}"
    if samples.all():
        raise SingularContacts(f"{text}; so strong a friction may have none: reduce it")
    warn(ContactWarning(f"{text}. Results are NaN there"))


def percussions(G: Array, before: Array, mu: Array, e: float) -> Array:
    """P (samples, 3 n), each point's two tangents and normal, from G (samples, 3 n, 3 n) and velocities before.

    NaN where none is found.
    """
    P = sweep(G, before, np.zeros_like(before), lambda of, gamma, k, p: struck(of, gamma, mu[k], p))
    for s in np.flatnonzero(residuals(G, before, mu, P) > ENOUGH * np.abs(P).max(-1)):
        found = gauss_seidel.solve(G[s], before[s], mu, P[s])  # points that share a body, or strong friction
        P[s] = found.P if found.residual <= MOST * np.abs(found.P).max() else np.nan
    if e == 0:
        return P
    P[:, 2::3] *= 1.0 + e
    return sweep(G, before, P, lambda of, gamma, k, p: rubbed(of, gamma, mu[k], p))


def sweep(G: Array, b: Array, P: Array, law: Callable[[FootBlock, Vec3, int, Vec3], Vec3]) -> Array:
    """P by sweeps over all points until they settle; law(block, velocity, point, percussion)."""
    n = b.shape[1] // 3
    blocks = []
    for k in range(n):
        B = G[:, 3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        blocks.append(block(Sym3(B[:, 0, 0], B[:, 0, 1], B[:, 0, 2], B[:, 1, 1], B[:, 1, 2], B[:, 2, 2])))
    P, settled = P.copy(), np.zeros(len(b), bool)
    for _ in range(SWEEPS):
        old = P.copy()
        for k in range(n):
            at = slice(3 * k, 3 * k + 3)
            gamma = (G[:, at] @ P[..., None])[..., 0] + b[:, at]
            with np.errstate(over="ignore", invalid="ignore"):  # where a point cannot slide, the laws drop that case
                found = law(blocks[k], Vec3(*gamma.T), k, Vec3(*P[:, at].T))
            P[:, at] = np.stack(np.broadcast_arrays(found.x, found.y, found.z), -1)
        P[settled] = old[settled]  # samples do not see each other
        settled |= ~(np.abs(P - old).max(-1) > TOLERANCE * np.abs(P).max(-1))  # or not a number
        if settled.all():
            break
    return P


def residuals(G: Array, b: Array, mu: Array, P: Array) -> Array:
    """The `gauss_seidel.residual` of every sample."""
    return np.array([gauss_seidel.residual(g, x, mu, p) for g, x, p in zip(G, b, P, strict=True)])


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
