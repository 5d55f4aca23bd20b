"""The records of products with derivatives of dynamics with contacts."""

from __future__ import annotations

from ..conventions.rules import Jvp, Vjp
from . import joint_laws
from .contacts import derivatives, products
from .record import FORCES, ITSELF, LONG_CONTACTS, RESTITUTION, TAU, Input, Product, Q, Quantity, Result, V

W_A, W_FORCES = Input("w_a", ("v",)), Input("w_forces", FORCES.axes)
W_V, W_IMPULSES = Input("w_v", ("v",)), Input("w_impulses", FORCES.axes)
DQ, DV, DTAU = (Input(name, ("v",)) for name in ("dq", "dv", "dtau"))  # of independent joints
BY_Q, BY_V, BY_TAU = Result("by_q", ("v",)), Result("by_v", ("v",)), Result("by_tau", ("v",), True)

RECORDS = (
    Quantity(
        "constrained_dynamics_vjp", "w_a^T and w_forces^T times the derivatives, without the matrices",
        (Q, V, TAU, W_A, W_FORCES), (BY_Q, BY_V, BY_TAU), derivatives.constrained_dynamics_vjp, forces=True,
        options=("contacts",), margins=("contacts", "mass"), mimic=ITSELF, contact_walk=products.constrained_vjp,
        longest=LONG_CONTACTS, rule=Vjp("constrained_dynamics", True, True, "tau", "w_a"), laws=joint_laws.forward_vjp,
        product=Product("vjp", "constrained_dynamics"),
    ),
    Quantity(
        "constrained_dynamics_jvp", "da and dforces along dq, dv, dtau, without the matrices",
        (Q, V, TAU, DQ, DV, DTAU), (Result("da", ("v",), True), Result("dforces", FORCES.axes)),
        derivatives.constrained_dynamics_jvp, forces=True, options=("contacts",), margins=("contacts", "mass"),
        mimic=ITSELF, contact_walk=products.constrained_jvp, longest=LONG_CONTACTS,
        rule=Jvp("constrained_dynamics", True, True), laws=joint_laws.forward_jvp,
        product=Product("jvp", "constrained_dynamics"),
    ),
    Quantity(
        "impulse_dynamics_vjp", "w_v^T and w_impulses^T times the derivatives, without the matrices",
        (Q, V, RESTITUTION, W_V, W_IMPULSES), (BY_Q, BY_V), derivatives.impulse_dynamics_vjp,
        options=("contacts",), margins=("contacts", "mass"), mimic=ITSELF, contact_walk=products.impulse_vjp,
        longest=LONG_CONTACTS, rule=Vjp("impulse_dynamics", True, weight="w_v"),
        product=Product("vjp", "impulse_dynamics"),
    ),
    Quantity(
        "impulse_dynamics_jvp", "the changes of jump and impulses along dq, dv, without the matrices",
        (Q, V, RESTITUTION, DQ, DV), (Result("djump", ("v",), True), Result("dimpulses", FORCES.axes)),
        derivatives.impulse_dynamics_jvp, options=("contacts",), margins=("contacts", "mass"), mimic=ITSELF,
        contact_walk=products.impulse_jvp, longest=LONG_CONTACTS, rule=Jvp("impulse_dynamics", True),
        product=Product("jvp", "impulse_dynamics"),
    ),
)  # fmt: skip
