"""Time steps of robots held by bilateral contacts, whose joints have limits and dry friction.

Over a step of length h from velocities u to u+, with percussions P at the joints and Lambda at the contacts,

    M (u+ - u) = h (tau - bias) + J^T Lambda + P,        J u+ + mu Lambda = J u - h gamma

where gamma is that of `contact.dynamics`: contacts hold as accelerations make them hold, whatever joints do. With
W = M^-1 and G = J W J^T + mu, contacts leave joints the inverse inertia C = W - W J^T G^-1 J W, and percussions change
u+ by C P. Sweeps find the P that obey the laws of `percussion.stopped`. Contacts may be redundant, and joints that they
fix feel no percussion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algorithms.contacts import dense
from ..contact.bilateral import Contacts
from ..contact.dynamics import constrained_dynamics, contact_jacobian
from ..evaluate.evaluator import Evaluator
from ..evaluate.reference import leading, trailing
from ..model.model import Array
from .laws import FAR, JointLaws, Pull
from .steps import CONVERGED, Stepped

REDUNDANT = 1e-10  # of the largest eigenvalue of G: smaller ones are those of forces that do nothing
FIXED = 1e-10  # share of a joint's own inverse inertia that contacts leave it, if they fix it
NO_STOP = (FAR, FAR, 0.0)  # ways to limits, and dry friction, of a joint that contacts fix


class Yielding(NamedTuple):
    """How held robots yield: C (..., nv, nv), and Lambda (..., rows, nv) by percussions at the joints."""

    C: Array
    rows: Array


class HeldStepping:
    """Semi-implicit steps, of first order; joints reach their limits, stick and slide."""

    def __init__(self, evaluator: Evaluator, dt: float, contacts: Contacts, laws: JointLaws) -> None:
        self.evaluate, self.dt, self.contacts, self.laws = evaluator, dt, contacts, laws

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped:
        dt, stops = self.dt, list(self.laws.stops)
        tau, soft = self.laws.implicit(q, v, tau, pull, np.array([dt]))
        free, forces, yields = self.without_stops(q, v, tau, soft)
        P, residual, size = self.percussions(yields.C[..., stops, :][..., stops], free[..., stops], self.laws.ways(q))
        push = np.zeros_like(free)
        push[..., stops] = P
        after = free + (yields.C @ push[..., None])[..., 0]
        forces = forces + (yields.rows @ push[..., None])[..., 0] / dt
        return Stepped(self.evaluate("integrate", q, dt * after), after, forces, residual, residual <= CONVERGED * size)

    def forget(self, which: Array) -> None:
        """Nothing: these steps remember nothing."""

    def without_stops(self, q: Array, v: Array, tau: Array, soft: Array) -> tuple[Array, Array, Yielding]:
        """Velocities after the step and contact forces without percussions, and how the robot yields to them.

        soft: what implicit springs and dampers add to the joints' inertias.
        """
        dt, evaluate, contacts = self.dt, self.evaluate, self.contacts
        a, forces = constrained_dynamics(evaluate, q, v, tau, contacts, None, None)
        J, M = contact_jacobian(evaluate, q, contacts), evaluate("mass_matrix", q)
        W = np.linalg.inv(M + soft[..., None] * np.eye(soft.shape[-1]))
        back = np.swapaxes(J, -1, -2)
        G = J @ W @ back + contacts.damping * np.eye(contacts.rows)
        inverse = np.linalg.pinv(G, rcond=REDUNDANT, hermitian=True)
        rows = -inverse @ J @ W
        C = W + W @ back @ rows
        if not soft.any():
            return v + dt * a, forces, Yielding(C, rows)
        slower = -(soft * a)[..., None]  # (M + soft) (a + d) = M a + J^T l leaves d = -C soft a
        return v + dt * (a + (C @ slower)[..., 0]), forces + (rows @ slower)[..., 0], Yielding(C, rows)

    def percussions(self, C: Array, rate: Array, ways: Array) -> tuple[Array, Array, Array]:
        """P (..., stops), the changes in the last sweep (...), and the largest P that a joint alone would need.

        rate: of the joints with stops, without percussions; ways: see `JointLaws.ways`.
        """
        own, lanes = np.diagonal(C, axis1=-2, axis2=-1), rate.shape[:-1]
        fixed = own <= FIXED * own.max(-1, keepdims=True, initial=0.0) + np.finfo(float).tiny
        inverse = np.where(fixed, 1.0, own)
        C = C + np.eye(C.shape[-1]) * (inverse - own)[..., None]
        ways = np.where(fixed[..., None], NO_STOP, ways)
        laws = dense.GivenLaws((), trailing(rate, 1, lanes), trailing(ways, 2, lanes), self.dt)
        found = dense.settle(trailing(C, 2, lanes), laws)
        size = np.abs(np.where(fixed, 0.0, rate / inverse)).max(-1, initial=0.0)
        return leading(found.rows, len(lanes)), found.report[0], size
