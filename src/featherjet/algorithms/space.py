"""The records of motion on the manifold of configurations."""

from __future__ import annotations

from ..conventions import space_rules as rules
from . import configurations
from .record import VV, Input, Product, Q, Quantity, Result, V

Q0, Q1, DV = Input("q0", ("q",), "q"), Input("q1", ("q",), "q"), Input("dv", ("v",), "v")
W, DQ, DDV = (Input(name, ("v",), "v") for name in ("w", "dq", "ddv"))
DQ0, DQ1 = Input("dq0", ("v",), "v"), Input("dq1", ("v",), "v")

RECORDS = (
    Quantity(
        "integrate", "q moved along the tangent vector dv", (Q, DV), (Result("end", ("q",)),),
        configurations.integrate, of_space=True, rule=rules.Along(),
    ),
    Quantity(
        "difference", "the tangent vector that takes q0 to q1", (Q0, Q1), (Result("dv", ("v",), True),),
        configurations.difference, of_space=True,
    ),
    Quantity(
        "interpolate", "the geodesic from q0 (t = 0) to q1 (t = 1)", (Q0, Q1, Input("t", (1,))),
        (Result("q", ("q",)),), configurations.interpolate, of_space=True,
    ),
    Quantity(
        "integrate_jacobians", "Jacobians of integrate by q and by dv, between tangent spaces", (Q, DV),
        (Result("by_q", VV), Result("by_dv", VV)), configurations.integrate_jacobians, of_space=True,
        rule=rules.Along(rules.integrate_jacobians),
    ),
    Quantity(
        "difference_jacobians", "Jacobians of difference by q0 and by q1, between tangent spaces", (Q0, Q1),
        (Result("by_q0", VV), Result("by_q1", VV)), configurations.difference_jacobians, of_space=True,
        rule=rules.difference_jacobians,
    ),
    Quantity(
        "integrate_vjp", "w^T times the Jacobians of integrate", (Q, DV, W),
        (Result("by_q", ("v",)), Result("by_dv", ("v",))), configurations.integrate_vjp, of_space=True,
        rule=rules.Along(rules.vjp("integrate_jacobians", rules.integrate_jacobians)),
        product=Product("vjp", "integrate"),
    ),
    Quantity(
        "integrate_jvp", "the rate of integrate along dq, ddv, in the tangent space of its result", (Q, DV, DQ, DDV),
        (Result("rate", ("v",), True),), configurations.integrate_jvp, of_space=True,
        rule=rules.Along(rules.jvp("integrate_jacobians", rules.integrate_jacobians, ("dq", "ddv"))),
        product=Product("jvp", "integrate"),
    ),
    Quantity(
        "difference_vjp", "w^T times the Jacobians of difference", (Q0, Q1, W),
        (Result("by_q0", ("v",)), Result("by_q1", ("v",))), configurations.difference_vjp, of_space=True,
        rule=rules.vjp("difference_jacobians", rules.difference_jacobians),
        product=Product("vjp", "difference"),
    ),
    Quantity(
        "difference_jvp", "the rate of difference along dq0, dq1", (Q0, Q1, DQ0, DQ1), (Result("rate", ("v",), True),),
        configurations.difference_jvp, of_space=True,
        rule=rules.jvp("difference_jacobians", rules.difference_jacobians, ("dq0", "dq1")),
        product=Product("jvp", "difference"),
    ),
    Quantity(
        "tangent_rate", "the rate of dv while integrate(q, dv) moves with velocity v", (DV, V),
        (Result("rate", ("v",)),), configurations.tangent_rate, of_space=True, rule=None,
        inside=True,
    ),
    Quantity(
        "rate_map", "F of dq/dt = F v", (Q,), (Result("F", ("q", "v")),), configurations.rate_map, of_space=True,
    ),
    Quantity(
        "rate_map_inverse", "Fbar of v = Fbar dq/dt, blind to changes of norm", (Q,),
        (Result("Fbar", ("v", "q"), True),), configurations.rate_map_inverse, of_space=True,
        note="""For any dq/dt, even one that changes the norms of quaternions. D @ Fbar converts a derivative D in the
        tangent space of q (nv columns) to one by the entries of q (nq columns).""",
    ),
)  # fmt: skip
