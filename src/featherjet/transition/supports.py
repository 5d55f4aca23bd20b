"""Frames that stand on something: the forces they take over, chosen so that the least torque remains.

With f the forces of all supports in their joints' frames and A = J^T, a state needs the torques tau = tau0 - A f. At
every state f minimises tau^T W tau + EASE f^T f, where torques in the rows `idle` (an unactuated root) must vanish:

    [ A_w^T W A_w + EASE   -A_i^T ] [ f  ]   [ A_w^T W tau0_w ]        w: the rows that work
    [ A_i                     0   ] [ mu ] = [ tau0_i         ]        i: the idle rows

The derivative of the least value is that of the Lagrangian at fixed f and mu (envelope theorem): multipliers W tau in
the working rows and mu in the idle ones. Forces are fixed in the joints' frames, as derivatives of dynamics take them.
The torques that remain (effort limits ask for them) change with f too. With lambda these multipliers and d'tau their
change at fixed f, df solves the system above with d'tau in the place of tau0, and dA^T lambda added to its first rows.
Nothing keeps a support from pulling: there is no friction cone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..contact import PointContact, SurfaceContact
from ..robot.robot import Robot

Array = np.ndarray
Support = PointContact | SurfaceContact
EASE = 1e-6  # cost of a newton (or newton metre) squared: decides where torques do not


class Carried(NamedTuple):
    """energy (N,), torques and multipliers (N, nv), forces fext (N, njoints, 6) in the joints' frames."""

    energy: Array
    tau: Array
    multipliers: Array
    fext: Array


class Supports:
    """What the supports of a robot take over."""

    def __init__(self, robot: Robot, supports: Sequence[Support], weights: Array, idle: slice) -> None:
        self.robot, self.frames = robot, [robot.model.frame(s.frame) for s in supports]
        self.maps = [
            _wrench(f.placement, isinstance(s, PointContact)) for f, s in zip(self.frames, supports, strict=True)
        ]
        self.idle = np.zeros(robot.nv, bool)
        self.idle[idle] = True
        self.weights = np.where(self.idle, 0.0, weights)

    def columns(self, q: Array) -> Array:
        """A (N, nv, forces): the torques that unit forces take over."""
        parts = []
        for f, wrench in zip(self.frames, self.maps, strict=True):
            J = self.robot.frame_jacobian(q, self.robot.joint_names[f.joint], "local")
            parts.append(np.swapaxes(J, -1, -2) @ wrench)
        return np.concatenate(parts, -1)

    def _respond(self, A: Array, tau: Array, more: Array | float = 0.0) -> tuple[Array, Array]:
        """Forces (N, forces, k) and multipliers of idle rows (N, idle, k) for needed torques (N, nv, k).

        more: (N, forces, k), added to A^T W tau.
        """
        n, count = A.shape[2], int(self.idle.sum())
        At = np.swapaxes(A, 1, 2)
        AtW = At * self.weights
        system = np.zeros((len(A), n + count, n + count))
        system[:, :n, :n] = AtW @ A + EASE * np.eye(n)
        system[:, :n, n:] = -At[:, :, self.idle]
        system[:, n:, :n] = A[:, self.idle]
        solution = np.linalg.solve(system, np.concatenate([AtW @ tau + more, tau[:, self.idle]], 1))
        return solution[:, :n], solution[:, n:]

    def carry(self, q: Array, tau: Array) -> Carried:
        """The best forces at states that need tau (N, nv) without them."""
        A = self.columns(q)
        f, mu = (x[..., 0] for x in self._respond(A, tau[..., None]))
        rest = tau - (A @ f[..., None])[..., 0]
        multipliers = self.weights * rest
        energy = (multipliers * rest).sum(1) + EASE * (f * f).sum(1)
        multipliers[:, self.idle] = mu
        rest[:, self.idle] = 0.0
        return Carried(energy, rest, multipliers, self._spread(f))

    def torque_slopes(self, q: Array, v: Array, a: Array, exact: bool = True) -> Array:
        """Derivatives (N, nv, 3, nv) by q, v, a of the torques that remain, while forces are chosen anew.

        exact: False leaves out dA^T lambda, which Gauss-Newton steps hardly notice.
        """
        A, (n, nv) = self.columns(q), v.shape
        carried = self.carry(q, self.robot.inverse_dynamics(q, v, a))
        D = np.concatenate(self.robot.inverse_dynamics_derivatives(q, v, a, carried.fext), -1)
        more = np.zeros((n, A.shape[2], 3 * nv))
        if exact:
            more[..., :nv] = self._turned(q, carried.multipliers)
        F, _ = self._respond(A, D, more)
        D -= A @ F
        D[:, self.idle] = 0.0
        return D.reshape(n, nv, 3, nv)

    def _turned(self, q: Array, multipliers: Array) -> Array:
        """dA^T lambda (N, forces, nv): how the velocity of the supports at rates lambda changes with q."""
        names = (self.robot.joint_names[f.joint] for f in self.frames)
        turned = [self.robot.frame_velocity_derivatives(q, multipliers, name, "local").dv_dq for name in names]
        return np.concatenate([wrench.T @ x for wrench, x in zip(self.maps, turned, strict=True)], 1)

    def forces(self, fext: Array) -> dict[str, Array]:
        """The wrench (..., 6) on each support's joint, in that joint's frame, by the support's name."""
        return {f.name: fext[..., f.joint, :] for f in self.frames}

    def _spread(self, f: Array) -> Array:
        fext = np.zeros((len(f), self.robot.njoints, 6))
        at = 0
        for frame, wrench in zip(self.frames, self.maps, strict=True):
            size = wrench.shape[1]
            fext[:, frame.joint] += f[:, at : at + size] @ wrench.T
            at += size
        return fext


def _wrench(placement: Array, point: bool) -> Array:
    """Wrench (6, 6) or (6, 3) in the joint's frame of a unit force (and moment) at a frame."""
    if not point:
        return np.eye(6)
    x, y, z = placement[:3, 3]
    return np.concatenate([np.eye(3), [[0, -z, y], [z, 0, -x], [-y, x, 0]]])
