"""The Delassus matrix J M^-1 J^T: how contacts accelerate under each other's forces. Without damping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...math.vec3 import Scalar
from ..scan import Array, Scan
from . import dynamics as ct
from . import grips
from .scene import ContactSet, scene


def delassus(
    scan: Scan, q: Array, *, contacts: ContactSet, settings: Sequence[Scalar] | None = None
) -> tuple[Array, Array]:
    """J M^-1 J^T (rows, rows) in the user's axes, and the margins of M."""
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q)
    K = ct.system(scan, contacts, q, ct.jacobian(scan, contacts, s))
    half = ct.to_user_axes(contacts, s, ct.inverse_inertia(K.M, K.Y, K.parts, None))
    return ct.to_user_axes(contacts, s, np.swapaxes(half, 0, 1)), K.margins


def by_walks(scan: Any, q: Any) -> tuple:
    """The same as walks over bodies and contacts."""
    p = grips.prepared(scan, q, None)
    touches = scan.touches(grips.touching(scan.tree.gravity), p.bodies, p.places)
    return scan.system(grips.pivots(scan, p), touches), p.margins
