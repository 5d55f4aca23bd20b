"""Runs the contact algorithms as they are written, on NumPy arrays of samples; also on complex ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..algorithms.contacts import derivatives as cd
from ..algorithms.contacts import dynamics as ct
from ..algorithms.contacts.dynamics import ContactSet
from ..algorithms.scan import Scan
from ..evaluate.reference import Array, Reference


class ContactReference(Reference):
    """`run(name, inputs, contacts=...)`: each quantity's arrays, batch axes leading; margins come last.

    Beside those of joints there are the inputs forces (rows,), restitution (1,) and settings, which are the contacts'.
    """

    longest = 300_000  # a humanoid on two flat feet

    def compute(
        self, name: str, given: Mapping[str, Array], lanes: tuple[int, ...], dtype: Any, **static: Any
    ) -> Sequence[Array]:
        if "settings" in given:
            static["contacts"] = static["contacts"].with_settings(_front(given["settings"], lanes))
        return super().compute(name, {k: x for k, x in given.items() if k != "settings"}, lanes, dtype, **static)

    def _enter(self, given: Mapping[str, Array], lanes: tuple[int, ...]) -> dict[str, Any]:
        """As for any quantity; no joint's coupling concerns what contacts have."""
        own = {name: _front(x, lanes) for name, x in given.items() if name in ("forces", "restitution")}
        return super()._enter({name: x for name, x in given.items() if name not in own}, lanes) | own

    def _constrained_dynamics(self, scan: Scan, q, v, tau, contacts: ContactSet, fext=None):
        return ct.constrained_dynamics(scan, q, v, tau, fext, contacts=contacts)

    def _constrained_dynamics_derivatives(self, scan: Scan, q, v, tau, contacts: ContactSet, fext=None):
        return cd.constrained_dynamics_derivatives(scan, q, v, tau, fext, contacts=contacts)

    def _impulse_dynamics(self, scan: Scan, q, v, restitution, contacts: ContactSet):
        return ct.impulse_dynamics(scan, q, v, restitution, contacts=contacts)

    def _impulse_dynamics_derivatives(self, scan: Scan, q, v, restitution, contacts: ContactSet):
        return cd.impulse_dynamics_derivatives(scan, q, v, restitution, contacts=contacts)

    def _contact_inverse_dynamics(self, scan: Scan, q, v, a, forces, contacts: ContactSet, fext=None):
        return (ct.contact_inverse_dynamics(scan, q, v, a, forces, fext, contacts=contacts),)

    def _contact_jacobian(self, scan: Scan, q, contacts: ContactSet):
        return (ct.contact_jacobian(scan, q, contacts=contacts),)


def _front(x: Array, lanes: tuple[int, ...]) -> Array:
    """(..., n) as (n, *lanes)."""
    return np.moveaxis(np.broadcast_to(x, (*lanes, x.shape[-1])), -1, 0)
