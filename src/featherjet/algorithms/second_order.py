"""The records of products with derivatives, and of second derivatives."""

from __future__ import annotations

from ..conventions.rules import Jvp, Vjp
from . import joint_laws
from .derivatives import forward_hessian, hessian, products, products_body, tensors
from .derivatives import methods as ways
from .derivatives.forward_hessian import hessian_alone
from .record import FEXT, TAU, VV, A, Flops, Input, Product, Q, Quantity, Result, V, named
from .results import (
    ForwardDynamicsForceGradients,
    ForwardDynamicsGradients,
    ForwardDynamicsHessian,
    ForwardDynamicsSecondOrder,
    InverseDynamicsForceGradients,
    InverseDynamicsGradients,
    InverseDynamicsHessian,
)

W_TAU, W_A = Input("w", ("v",), "v"), Input("w", ("v",))  # of torques; of accelerations
DQ, DV, DA = (Input(name, ("v",), "v") for name in ("dq", "dv", "da"))
DTAU, DFEXT = Input("dtau", ("v",)), Input("dfext", FEXT.axes)
WEIGHTS = Input("weights", ("v",), "v")
TAU_BY = tuple(Result(name, ("v",)) for name in InverseDynamicsGradients._fields)
A_BY = tuple(Result(name, ("v",), name == "by_tau") for name in ForwardDynamicsGradients._fields)
A_SECOND = 12_000  # operations that compile within a second
A_QUADRUPED = 36_000  # operations for a free base and twelve joints: nearly twice as fast as rolled code
TENSORS = 42_000  # operations for a free base and twelve joints
BY_FEXT = Result("by_fext", FEXT.axes)
ID_VJP, FD_VJP = Vjp("inverse_dynamics", third="a"), Vjp("forward_dynamics", True, True, "tau")
ID_JVP, FD_JVP = Jvp("inverse_dynamics"), Jvp("forward_dynamics", True, True)

RECORDS = (
    Quantity(
        "inverse_dynamics_vjp", "w^T (dtau_dq, dtau_dv, dtau_da), without the matrices", (Q, V, A, W_TAU), TAU_BY,
        products_body.inverse_dynamics_vjp, on_numpy=products.inverse_dynamics_vjp,
        returns=InverseDynamicsGradients._make, cost=Flops(240), unrolls=A_SECOND, rolled=True, rule=ID_VJP,
        laws=joint_laws.inverse_vjp,
        product=Product("vjp", "inverse_dynamics"),
    ),
    Quantity(
        "inverse_dynamics_force_vjp", "the same under external forces, and w^T dtau_dfext", (Q, V, A, W_TAU),
        (*TAU_BY, BY_FEXT), products_body.inverse_dynamics_force_vjp, on_numpy=products.inverse_dynamics_force_vjp,
        returns=InverseDynamicsForceGradients._make, forces=True, cost=Flops(240), unrolls=A_SECOND, rolled=True,
        rule=ID_VJP, laws=joint_laws.inverse_vjp,
        product=Product("vjp", "inverse_dynamics", True),
    ),
    Quantity(
        "inverse_dynamics_jvp", "dtau_dq dq + dtau_dv dv + dtau_da da, without the matrices", (Q, V, A, DQ, DV, DA),
        (Result("dtau", ("v",)),), products_body.inverse_dynamics_jvp, on_numpy=products.inverse_dynamics_jvp,
        forces=True, cost=Flops(240), unrolls=A_SECOND, rolled=True, rule=ID_JVP, laws=joint_laws.inverse_jvp,
        product=Product("jvp", "inverse_dynamics"),
    ),
    Quantity(
        "inverse_dynamics_force_jvp", "the same plus dtau_dfext dfext", (Q, V, A, DQ, DV, DA, DFEXT),
        (Result("dtau", ("v",)),), products_body.inverse_dynamics_jvp, on_numpy=products.inverse_dynamics_jvp,
        forces=True, cost=Flops(240), unrolls=A_SECOND, rolled=True, rule=ID_JVP, laws=joint_laws.inverse_jvp,
        product=Product("jvp", "inverse_dynamics", True),
    ),
    Quantity(
        "forward_dynamics_vjp", "w^T (da_dq, da_dv, da_dtau), without the matrices", (Q, V, TAU, W_A), A_BY,
        products.forward_dynamics_vjp, returns=ForwardDynamicsGradients._make, margins=("mass",),
        mimic=products.coupled_vjp, cost=Flops(580), rolled=True, rule=FD_VJP, laws=joint_laws.forward_vjp,
        product=Product("vjp", "forward_dynamics"),
    ),
    Quantity(
        "forward_dynamics_force_vjp", "the same under external forces, and w^T da_dfext", (Q, V, TAU, W_A),
        (*A_BY, BY_FEXT), products.forward_dynamics_force_vjp, returns=ForwardDynamicsForceGradients._make,
        forces=True, margins=("mass",),
        mimic=products.coupled_force_vjp, cost=Flops(600), rolled=True, rule=FD_VJP, laws=joint_laws.forward_vjp,
        product=Product("vjp", "forward_dynamics", True),
    ),
    Quantity(
        "forward_dynamics_jvp", "da_dq dq + da_dv dv + da_dtau dtau, without the matrices", (Q, V, TAU, DQ, DV, DTAU),
        (Result("da", ("v",), True),), products.forward_dynamics_jvp, forces=True, margins=("mass",),
        mimic=products.coupled_jvp, cost=Flops(620), rolled=True, rule=FD_JVP, laws=joint_laws.forward_jvp,
        product=Product("jvp", "forward_dynamics"),
    ),
    Quantity(
        "forward_dynamics_force_jvp", "the same plus da_dfext dfext", (Q, V, TAU, DQ, DV, DTAU, DFEXT),
        (Result("da", ("v",), True),), products.forward_dynamics_jvp, forces=True, margins=("mass",),
        mimic=products.coupled_jvp, cost=Flops(640), rolled=True, rule=FD_JVP, laws=joint_laws.forward_jvp,
        product=Product("jvp", "forward_dynamics", True),
    ),
    Quantity(
        "inverse_dynamics_hessian", "second derivatives of w.tau; zero by (v, a) and (a, a)", (Q, V, A, W_TAU),
        named(InverseDynamicsHessian, VV), hessian.inverse_dynamics_hessian, returns=InverseDynamicsHessian._make,
        forces=True, methods=ways.TABLES[ways.ID_HESSIAN], cost=Flops(500, 75), rolled=True, rule=None,
        laws=joint_laws.inverse_hessian,
        note="""qv[i, j] is by q_i and v_j; qq[j, i] is the derivative along dof i of component j of the gradient by
        q.""",
    ),
    Quantity(
        "inverse_dynamics_second_derivatives", "the Hessians of all torques; qq[k] is that of tau_k", (Q, V, A),
        named(InverseDynamicsHessian, ("v", "v", "v")), tensors.inverse_dynamics_second_derivatives,
        returns=InverseDynamicsHessian._make, forces=True, cost=Flops(1100, 160), unrolls=TENSORS, rolled=True,
        contracted="inverse_dynamics_hessian", rule=None, laws=joint_laws.inverse_second_derivatives,
    ),
    Quantity(
        "forward_dynamics_hessian", "second derivatives of w.a; zero by (v, tau) and (tau, tau)", (Q, V, TAU, W_A),
        named(ForwardDynamicsHessian, VV), forward_hessian.forward_dynamics_hessian,
        returns=ForwardDynamicsHessian._make, forces=True, margins=("mass",),
        on_numpy=hessian_alone(forward_hessian.on_numpy), mimic=hessian_alone(forward_hessian.reduced),
        methods=ways.TABLES[ways.FD_HESSIAN],
        cost=Flops(700, 10, 65), unrolls=A_QUADRUPED, rolled=True, rule=None, laws=joint_laws.forward_hessian,
    ),
    Quantity(
        "forward_dynamics_second_order", "second derivatives of w.a, and da_dq, da_dv, da_dtau, all at once",
        (Q, V, TAU, W_A),
        named(ForwardDynamicsSecondOrder, VV), forward_hessian.forward_dynamics_second_order,
        returns=ForwardDynamicsSecondOrder._make, forces=True, margins=("mass",),
        on_numpy=forward_hessian.on_numpy, mimic=forward_hessian.reduced,
        cost=Flops(700, 10, 65), unrolls=A_QUADRUPED, rolled=True, rule=None, laws=joint_laws.forward_hessian,
    ),
    Quantity(
        "torque_slopes", "tau and w^T (dtau_dq, dtau_dv, dtau_da) at w = weights tau", (Q, V, A, WEIGHTS),
        (Result("tau", ("v",)), *TAU_BY), products_body.torque_slopes, on_numpy=products.torque_slopes,
        cost=Flops(240), unrolls=A_SECOND, rolled=True, rule=None, laws=joint_laws.torque_slopes,
        inside=True,
    ),
)  # fmt: skip
