"""The results of derivatives of inverse and forward dynamics."""

from __future__ import annotations

from typing import NamedTuple

from ..scan import Array


class InverseDynamicsDerivatives(NamedTuple):
    """Partials of inverse dynamics; each (..., nv, nv), columns in the tangent space of q."""

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """Partials of forward dynamics; each (..., nv, nv), columns by q in the tangent space of q."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array
