"""The named tuples that users get of quantities with several results."""

from __future__ import annotations

from typing import NamedTuple

from ..display import compact
from .scan import Array


@compact
class InverseDynamicsDerivatives(NamedTuple):
    """Partials of inverse dynamics; each (..., nv, nv), columns in the tangent space of q."""

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array


@compact
class ForwardDynamicsDerivatives(NamedTuple):
    """Partials of forward dynamics; each (..., nv, nv), columns by q in the tangent space of q."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array


@compact
class InverseDynamicsGradients(NamedTuple):
    """Derivatives of w.tau by q (in its tangent space), v and a, each (..., nv)."""

    by_q: Array
    by_v: Array
    by_a: Array


@compact
class InverseDynamicsForceGradients(NamedTuple):
    """The same, and by the external forces (..., njoints, 6)."""

    by_q: Array
    by_v: Array
    by_a: Array
    by_fext: Array


@compact
class ForwardDynamicsGradients(NamedTuple):
    """Derivatives of w.a by q (in its tangent space), v and tau, each (..., nv)."""

    by_q: Array
    by_v: Array
    by_tau: Array


@compact
class ForwardDynamicsForceGradients(NamedTuple):
    """The same, and by the external forces (..., njoints, 6)."""

    by_q: Array
    by_v: Array
    by_tau: Array
    by_fext: Array


@compact
class InverseDynamicsHessian(NamedTuple):
    """Second derivatives of s = w.tau, each (..., nv, nv); those by (v, a) and (a, a) are zero.

    qv[i, j] = d2s/dq_i dv_j, qa[i, j] = d2s/dq_i da_j, and qq[j, i] is the derivative along dof i of ds/dq_j.
    """

    qq: Array
    qv: Array
    vv: Array
    qa: Array


@compact
class ForwardDynamicsHessian(NamedTuple):
    """Second derivatives of s = w.a, each (..., nv, nv); those by (v, tau) and (tau, tau) are zero.

    qv[i, j] = d2s/dq_i dv_j, qtau[i, j] = d2s/dq_i dtau_j, and qq[j, i] is the derivative along dof i of ds/dq_j.
    """

    qq: Array
    qv: Array
    vv: Array
    qtau: Array


@compact
class ForwardDynamicsSecondOrder(NamedTuple):
    """The fields of ForwardDynamicsHessian, then those of ForwardDynamicsDerivatives, each (..., nv, nv)."""

    qq: Array
    qv: Array
    vv: Array
    qtau: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array


@compact
class ConstrainedDynamics(NamedTuple):
    """Accelerations (..., nv) and contact forces (..., rows)."""

    a: Array
    forces: Array


@compact
class ConstrainedDynamicsDerivatives(NamedTuple):
    """Partials of accelerations (..., nv, nv) and of contact forces (..., rows, nv)."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_dtau: Array


@compact
class ImpulseDynamics(NamedTuple):
    """Velocities after the impact (..., nv) and impulses (..., rows) [N s]."""

    v: Array
    impulses: Array


@compact
class ImpulseDynamicsDerivatives(NamedTuple):
    """Partials of the velocities after the impact (..., nv, nv) and of impulses (..., rows, nv)."""

    dv_dq: Array
    dv_dv: Array
    dimpulses_dq: Array
    dimpulses_dv: Array


@compact
class ContactInverseDynamics(NamedTuple):
    """Torques (..., nv) and the contact forces (..., rows) they go with."""

    tau: Array
    forces: Array
