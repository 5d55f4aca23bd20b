"""The methods of a robot with contacts that are more than one call of its evaluator."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.results import ContactInverseDynamics, ImpulseDynamics, ImpulseDynamicsDerivatives
from ..arrays import Out
from ..contact import Contacts, impacts
from ..contact import dynamics as contact
from ..errors import InputError
from ..model.model import Array
from .products import ProductMethods


class ContactMethods(ProductMethods):
    """Torques, inertias and impacts with contacts; forces (..., rows) concatenates those of all contacts."""

    __slots__ = ()

    def contact_inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        contacts: Contacts,
        forces: ArrayLike | None = None,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ContactInverseDynamics:
        """tau = M a + h - J^T forces, and the forces: the given ones, or the smallest that a free base needs."""
        return contact.contact_inverse_dynamics(self.evaluator, q, v, a, contacts, forces, fext, out)

    def contact_inertia(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """(J M^-1 J^T)^-1 (..., rows, rows): the inertia that contacts feel, also called operational-space inertia."""
        return contact.contact_inertia(self.evaluator, q, contacts, out)

    def impulse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        contacts: Contacts,
        restitution: float = 0.0,
        out: Out = None,
        *,
        friction: ArrayLike | None = None,
        normal: ArrayLike | None = None,
    ) -> ImpulseDynamics:
        """Velocities after an impact, and impulses: M (v+ - v) = J^T impulses, J v+ = -restitution J v.

        friction: None if contacts stick; otherwise points may slide and lift off: a coefficient, 0 for normal impulses
        alone, or one for each point. normal: of the ground (3,), or each point's (..., n, 3); by default z is up.
        """
        if friction is None:
            if normal is not None:
                raise InputError("normal: only impacts with friction have normals; give friction, such as 0.5")
            return contact.impulse_dynamics(self.evaluator, q, v, contacts, restitution, out)
        found = impacts.impact(self.evaluator, q, v, contacts, restitution, friction, normal)
        return ImpulseDynamics._make(arrays.copied(out, found))

    def impulse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0, out: Out = None
    ) -> ImpulseDynamicsDerivatives:
        """dv_dq, dv_dv (..., nv, nv) of the velocities after the impact, dimpulses_dq, dimpulses_dv (..., rows, nv)."""
        return contact.impulse_dynamics_derivatives(self.evaluator, q, v, contacts, restitution, out)
