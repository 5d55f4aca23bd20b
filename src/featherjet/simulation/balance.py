"""The derivative of the balance of momentum in flight (`algorithms.dynamics.balance`).

With one root, momentum h = A v about the centre of mass is a quantity with derivatives, and the velocity of the base at
the end solves A v+ = h + dt m g + dt / 2 (wrenches of the base's torques at both ends). With several roots, each has
its own balance, and complex step differentiates the algorithm, exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algorithms.dynamics import balance
from ..algorithms.scan import Scan
from ..contact.placed_feet import cross
from ..errors import InputError
from ..evaluate.evaluator import Evaluator
from ..model.model import WORLD, Array
from .engine import IN_FLIGHT

BASE = slice(0, 6)
STEP = 1e-40


class MovingState(NamedTuple):
    """States q (B, nq), v (B, nv) and their changes (B, nv, K)."""

    q: Array
    v: Array
    dq: Array
    dv: Array


class StepLoad(NamedTuple):
    """What acts in a step: torques (B, nv); its length h (B, 1); their changes (B, nv, K) and (B, 1, K).

    dtheta (B, 10 njoints, K): the change of inertial parameters; (B, 0, K) if they do not change. damping, stiffness
    (B, nv): a servo's gains, which act implicitly, and their changes (B, nv, K), or (B, 0, K).
    """

    tau: Array
    dtau: Array
    h: Array
    dh: Array
    dtheta: Array
    damping: Array
    stiffness: Array
    ddamping: Array
    dstiffness: Array


class Masses(NamedTuple):
    """Changes with inertial parameters: of momentum (B, 6, K), of the centre of mass (B, 3, K), of mass (B, 1, K)."""

    momentum: Array
    centre: Array
    mass: Array


class Balance:
    """Differentiates velocities that keep momentum."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluate, self.model = evaluator, evaluator.model
        self.rooted = sum(joint.parent == WORLD for joint in evaluator.model.joints) == 1

    def __call__(self, s: MovingState, load: StepLoad, then: MovingState, after: Array) -> Array:
        """The change (B, nv, K) of `after`, the balanced velocities, where `then` has those before the balance."""
        if self.rooted:
            return self._of_one_root(s, load, then, after)
        if load.dtheta.size:
            raise InputError("parameter_derivatives: robots with several roots have none in flight")
        return self._of_many(s, load, then)

    def _of_one_root(self, s: MovingState, load: StepLoad, then: MovingState, after: Array) -> Array:
        h, dh = load.h[..., None], load.dh
        A0, A1 = (self.evaluate("centroidal_map", x) for x in (s.q, then.q))
        want = self._slope(s.q, s.v) @ s.dq + A0 @ s.dv
        want[:, :3] += self.model.mass * np.asarray(self.model.gravity)[:3, None] * dh
        for at, v, A, sign in ((s, s.v, A0, 1.0), (then, after, A1, -1.0)):
            masses = self._masses(at.q, v, A, load.dtheta)
            want += sign * masses.momentum
            wrench, change = self._wrench(at.q, A, at.dq, load, masses)
            want += 0.5 * (h * change + wrench[..., None] * dh)
        want[:, :3] += h * np.asarray(self.model.gravity)[:3, None] * masses.mass
        found = then.dv.copy()
        rest = want - self._slope(then.q, after) @ then.dq - A1[..., 6:] @ found[:, 6:]
        found[:, BASE] = np.linalg.solve(A1[..., BASE], rest)
        return found

    def _slope(self, q: Array, v: Array) -> Array:
        return self.evaluate("centroidal_derivatives", q, v, np.zeros_like(v)).dh_dq

    def _masses(self, q: Array, v: Array, A: Array, dtheta: Array) -> Masses:
        """By the regressor: the base's rows of M x are the momentum of x about the base, in its axes."""
        if not dtheta.size:
            return Masses(*(np.zeros((1, n, 1)) for n in (6, 3, 1)))
        rest = np.zeros_like(v)
        weight = self.evaluate("torque_regressor", q, rest, rest)
        x, y, Y = (
            ((self.evaluate("torque_regressor", q, rest, a) - weight)[:, BASE] @ dtheta)
            for a in (rest + np.eye(self.model.nv)[0], rest + np.eye(self.model.nv)[1], v)
        )
        T = self.evaluate("forward_kinematics", q)[:, 0]
        R, centre = T[:, :3, :3], self.evaluate("center_of_mass", q) - T[:, :3, 3]
        mass, moments = x[:, :1], np.stack([y[:, 5], -x[:, 5], x[:, 4]], 1)  # of M e_x and M e_y, m c x e
        dcentre = (R @ moments - centre[..., None] * mass) / self.model.mass
        linear, momentum = R @ Y[:, :3], (A[:, :3] @ v[..., None])[:, None, :, 0]
        angular = np.swapaxes(R @ Y[:, 3:], -1, -2) - cross(np.swapaxes(dcentre, -1, -2), momentum)
        angular = angular - cross(centre[:, None], np.swapaxes(linear, -1, -2))
        return Masses(np.concatenate([linear, np.swapaxes(angular, -1, -2)], 1), dcentre, mass)

    def _wrench(self, q: Array, A: Array, dq: Array, load: StepLoad, masses: Masses) -> tuple[Array, Array]:
        """Of the base's torques, about the centre of mass, in world axes (B, 6); and its change (B, 6, K)."""
        T = self.evaluate("forward_kinematics", q)[:, 0]
        R, p = T[:, :3, :3], T[:, :3, 3]
        force, moment = ((R @ load.tau[:, k, None])[..., 0] for k in (slice(0, 3), slice(3, 6)))
        centre = self.evaluate("center_of_mass", q) - p
        turn = np.swapaxes(R @ dq[:, 3:6], -1, -2)  # (B, K, 3)
        dforce = cross(turn, force[:, None]) + np.swapaxes(R @ load.dtau[:, :3], -1, -2)
        dmoment = cross(turn, moment[:, None]) + np.swapaxes(R @ load.dtau[:, 3:6], -1, -2)
        dcentre = np.swapaxes(A[:, :3] @ dq / self.model.mass - R @ dq[:, :3] + masses.centre, -1, -2)
        dmoment = dmoment - cross(dcentre, force[:, None]) - cross(centre[:, None], dforce)
        wrench = np.concatenate([force, moment - cross(centre, force)], -1)
        return wrench, np.swapaxes(np.concatenate([dforce, dmoment], -1), -1, -2)

    def _of_many(self, s: MovingState, load: StepLoad, then: MovingState) -> Array:
        def along(x: Array, dx: Array) -> Array:
            return x[:, None] + 1j * STEP * np.swapaxes(dx, -1, -2)  # (B, K, n)

        def moved(q: Array, dq: Array) -> Array:
            given = {"q": q[:, None], "dv": 1j * STEP * np.swapaxes(dq, -1, -2)}
            return self.evaluate.reference("integrate", given)[0]

        count, columns = s.dq.shape[0], s.dq.shape[-1]
        given = [moved(s.q, s.dq), along(s.v, s.dv), moved(then.q, then.dq), along(then.v, then.dv)]
        given += [along(load.tau, load.dtau), np.broadcast_to(IN_FLIGHT, (count, columns, 4))]
        given.append(along(load.h, load.dh))
        lanes = [np.moveaxis(x, -1, 0) for x in given]
        found = balance.balanced(Scan(self.evaluate.tree, (count, columns), complex), *lanes)
        return np.moveaxis(np.imag(found) / STEP, 0, 1)
