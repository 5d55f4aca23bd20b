"""Supports: frames that stand still and carry the robot, with the forces that leave the least torque to the joints.

With f the forces of all supports in their joints' frames and A = J^T, the joints apply tau = tau0 - A f. At every state
f minimises tau^T W tau + EASE f^T f, subject to zero torques in the rows `idle` (an unactuated root):

    [ A_w^T W A_w + EASE   -A_i^T ] [ f  ]   [ A_w^T W tau0_w ]        w: working rows
    [ A_i                     0   ] [ mu ] = [ tau0_i         ]        i: idle rows

The derivative of the minimum is that of the Lagrangian at fixed f and mu (envelope theorem), with multipliers W tau in
the working rows and mu in the idle rows. Forces are fixed in the joints' frames, as derivatives of dynamics assume. The
remaining torques, which effort limits bound, also change with f: with lambda the multipliers and d'tau the change of
the torques at fixed f, df solves the system above with d'tau instead of tau0 and dA^T lambda added to its first rows.
Supports may pull: there is no friction cone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..contact import PointContact, SurfaceContact
from ..robot.robot import Robot

Array = np.ndarray
Support = PointContact | SurfaceContact
EASE = 1e-6  # cost of a squared force [1/N^2, 1/(N m)^2]; it decides where torques leave forces undetermined


class SupportedTorques(NamedTuple):
    """What supports leave to the joints: torques tau (N, nv), the energy (N,) of these, and their multipliers (N, nv).

    fext (N, njoints, 6): the forces of the supports, in the joints' frames.
    """

    energy: Array
    tau: Array
    multipliers: Array
    fext: Array


class Supports:
    """The supports of a robot, and the forces they apply."""

    def __init__(self, robot: Robot, supports: Sequence[Support], weights: Array, idle: slice) -> None:
        self.robot, self.frames = robot, [robot.model.frame(s.frame) for s in supports]
        self.maps = [
            _wrench(f.placement, isinstance(s, PointContact)) for f, s in zip(self.frames, supports, strict=True)
        ]
        self.idle = np.zeros(robot.nv, bool)
        self.idle[idle] = True
        self.weights = np.where(self.idle, 0.0, weights)

    def columns(self, q: Array) -> Array:
        """A (N, nv, forces): the torques that unit forces replace."""
        parts = []
        for f, wrench in zip(self.frames, self.maps, strict=True):
            J = self.robot.frame_jacobian(q, self.robot.joint_names[f.joint], viewpoint="local")
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

    def carry(self, q: Array, tau: Array) -> SupportedTorques:
        """The best forces at configurations q (N, nq) where inverse dynamics without supports is tau (N, nv)."""
        A = self.columns(q)
        f, mu = (x[..., 0] for x in self._respond(A, tau[..., None]))
        rest = tau - (A @ f[..., None])[..., 0]
        multipliers = self.weights * rest
        energy = (multipliers * rest).sum(1) + EASE * (f * f).sum(1)
        multipliers[:, self.idle] = mu
        rest[:, self.idle] = 0.0
        return SupportedTorques(energy, rest, multipliers, self._wrenches(f))

    def torque_slopes(self, q: Array, v: Array, a: Array, exact: bool = True) -> Array:
        """Derivatives (N, nv, 3, nv) of the remaining torques by q, v, a; forces adapt to each change.

        exact=False leaves out dA^T lambda, which hardly affects Gauss-Newton steps.
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
        """dA^T lambda (N, forces, nv): the derivative by q of the supports' velocity at joint velocity lambda."""
        names = (self.robot.joint_names[f.joint] for f in self.frames)
        turned = [
            self.robot.frame_velocity_derivatives(q, multipliers, name, viewpoint="local").dv_dq for name in names
        ]
        return np.concatenate([wrench.T @ x for wrench, x in zip(self.maps, turned, strict=True)], 1)

    def forces(self, fext: Array) -> dict[str, Array]:
        """The wrench (..., 6) on each support's joint, in that joint's frame, by the name of the support."""
        return {f.name: fext[..., f.joint, :] for f in self.frames}

    def _wrenches(self, f: Array) -> Array:
        """fext (N, njoints, 6) from the forces f (N, forces)."""
        fext = np.zeros((len(f), self.robot.njoints, 6))
        at = 0
        for frame, wrench in zip(self.frames, self.maps, strict=True):
            size = wrench.shape[1]
            fext[:, frame.joint] += f[:, at : at + size] @ wrench.T
            at += size
        return fext


def _wrench(placement: Array, point: bool) -> Array:
    """Wrenches (6, 6) in the joint's frame of unit forces and moments at a frame; (6, 3), forces only, at a point."""
    if not point:
        return np.eye(6)
    x, y, z = placement[:3, 3]
    return np.concatenate([np.eye(3), [[0, -z, y], [z, 0, -x], [-y, x, 0]]])
