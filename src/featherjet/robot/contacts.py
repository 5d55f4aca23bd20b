"""What a Robot does when it touches something."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from numpy.typing import ArrayLike

from ..arrays import Out
from ..contact import Contacts, Ground
from ..contact import dynamics as contact
from ..contact.dynamics import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ContactInverseDynamics,
    ImpulseDynamics,
    ImpulseDynamicsDerivatives,
)
from ..contact.reference import ContactReference
from ..model.model import Array

if TYPE_CHECKING:
    from ..simulation.simulate import Controller
    from ..simulation.trajectory import Trajectory
    from .robot import Robot


class RobotContacts:
    """Part of `Robot`. forces (..., rows) are the contacts' one after the other; `contacts.split` names them."""

    @property
    def _robot(self) -> Robot:
        return cast("Robot", self)

    @cached_property
    def _touching(self) -> ContactReference:
        """Runs the contact algorithms, in our coordinates."""
        return ContactReference(self._robot.model)

    def _translated(self, run: Callable[..., tuple[Array, ...]], quantity: str, inputs: dict) -> tuple[Array, ...]:
        """A quantity by a `run` in our coordinates; robots of other conventions translate."""
        return run(quantity, inputs)

    def constrained_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamics:
        """Accelerations and contact forces: M a + h - J^T forces = tau, while the contacts hold."""
        return contact.constrained_dynamics(self._robot, contacts, fext, out, q=q, v=v, tau=tau)

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamicsDerivatives:
        """da_dq, da_dv, da_dtau (..., nv, nv) and dlambda_dq, dlambda_dv, dlambda_dtau (..., rows, nv)."""
        return contact.constrained_dynamics_derivatives(self._robot, contacts, fext, out, q=q, v=v, tau=tau)

    def contact_inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        contacts: Contacts,
        forces: ArrayLike | None = None,
        fext: ArrayLike | None = None,
    ) -> ContactInverseDynamics:
        """tau = M a + h - J^T forces, and the forces: those given, or the smallest that a free base needs."""
        return contact.contact_inverse_dynamics(self._robot, contacts, forces, fext, q=q, v=v, a=a)

    def contact_jacobian(self, q: ArrayLike, contacts: Contacts) -> Array:
        """J (..., rows, nv) in the axes of the forces, whose power is forces . J v."""
        return contact.contact_jacobian(self._robot, contacts, q)

    def impulse_dynamics(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0
    ) -> ImpulseDynamics:
        """Velocities after an impact, and impulses: M (v+ - v) = J^T impulses, J v+ = -restitution J v."""
        return contact.impulse_dynamics(self._robot, contacts, restitution, q=q, v=v)

    def impulse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0
    ) -> ImpulseDynamicsDerivatives:
        """dv_dq, dv_dv (..., nv, nv) of the velocities after the impact, dlambda_dq, dlambda_dv (..., rows, nv)."""
        return contact.impulse_dynamics_derivatives(self._robot, contacts, restitution, q=q, v=v)

    def simulate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        controller: Controller | ArrayLike | None = None,
        contacts: Contacts | Ground | None = None,
        dt: float = 1e-3,
        T: float = 1.0,
        method: str = "rk4",
        progress: bool = True,
    ) -> Trajectory:
        """The motion from one state, T seconds long or what whole steps make of it; Ctrl-C ends it early and keeps it.

        controller: a function of t, q, v that gives tau, asked once a step; or constant torques; None for none.
        contacts: a Ground to stand, slide and bounce on (time stepping), Contacts that hold, or None.
        method: "rk4" or "semi-implicit", for motion without a Ground.
        """
        from ..simulation import simulate

        return simulate(self._robot, q, v, controller, contacts, dt, T, method, progress)
