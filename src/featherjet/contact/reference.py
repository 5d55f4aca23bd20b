"""Runs the contact algorithms as they are written, on NumPy arrays of samples; also on complex ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..algorithms import contact as ct
from ..algorithms import contact_derivatives as cd
from ..algorithms.contact import Contacts
from ..algorithms.scan import Scan
from ..reference import Array, Reference


class ContactReference(Reference):
    """`run(name, inputs, contacts=...)`: each quantity's arrays, batch axes leading; margins come last."""

    def _enter(self, given: Mapping[str, Array], lanes: tuple[int, ...]) -> dict[str, Any]:
        """As for any quantity; forces have rows of contacts, which no joint's coupling concerns."""
        out = super()._enter({name: x for name, x in given.items() if name != "forces"}, lanes)
        if "forces" in given:
            forces = given["forces"]
            out["forces"] = np.moveaxis(np.broadcast_to(forces, (*lanes, forces.shape[-1])), -1, 0)
        return out

    def _constrained_dynamics(self, scan: Scan, q, v, tau, contacts: Contacts, fext=None):
        return ct.constrained_dynamics(scan, contacts, q, v, tau, fext)

    def _constrained_dynamics_derivatives(self, scan: Scan, q, v, tau, contacts: Contacts, fext=None):
        return cd.constrained_dynamics_derivatives(scan, contacts, q, v, tau, fext)

    def _impulse_dynamics(self, scan: Scan, q, v, contacts: Contacts, restitution=0.0):
        return ct.impulse_dynamics(scan, contacts, q, v, restitution)

    def _impulse_dynamics_derivatives(self, scan: Scan, q, v, contacts: Contacts, restitution=0.0):
        return cd.impulse_dynamics_derivatives(scan, contacts, q, v, restitution)

    def _contact_inverse_dynamics(self, scan: Scan, q, v, a, forces, contacts: Contacts, fext=None):
        return (ct.contact_inverse_dynamics(scan, contacts, q, v, a, forces, fext),)

    def _contact_jacobian(self, scan: Scan, q, contacts: Contacts):
        return (ct.told_jacobian(scan, contacts, q),)
