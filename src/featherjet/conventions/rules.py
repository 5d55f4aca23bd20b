"""Every quantity in the coordinates of another convention, from the same quantity in ours.

With our velocities v = B(q) u, forces tau = B tau_u and accelerations a = B du + Gamma(v, v) (model/convention.py), and
directions d of the convention's tangent space being B d in ours, differentiating tau_u = B^T ID(q, v, a) gives

    dtau_u/dq = B^T [ID_q + ID_v Gamma(v, .) + M (Gamma(B du, .) + K Gamma(v, .)) + tau.Gamma] B
    dtau_u/du = B^T [ID_v + M K] B,        K = Gamma(., v) + Gamma(v, .), the derivative of Gamma(v, v) by v

and du = B^T (FD(q, v, tau) - Gamma(v, v)) likewise, with contacts or without; contact forces are the same numbers in
every convention. docs/conventions.md derives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.quantities import INPUTS
from ..errors import InputError
from ..model.model import Array
from .coordinates import Coordinates, Turning, by_first, by_second, of_force

Inputs = Mapping[str, Array]
Results = tuple[Array, ...]
Run = Callable[..., Results]  # (quantity, inputs, **static) -> results, in our coordinates


class Given(NamedTuple):
    """A call's inputs in our coordinates, and what it takes to translate its results."""

    run: Run
    inputs: dict[str, Array]
    B: Turning
    static: dict[str, Any]

    def __call__(self, quantity: str, **changed: Array) -> Results:
        """Another quantity at the same inputs, some of them replaced."""
        known = self.inputs | changed
        wanted = (*INPUTS[quantity], "fext") if "fext" in known else INPUTS[quantity]
        return self.run(quantity, {name: known[name] for name in wanted})

    @property
    def v(self) -> Array:
        return self.inputs["v"]


# How each quantity's results, in our coordinates, read in the convention's


def same(at: Given, *results: Array) -> Results:
    return results


def covector(at: Given, tau: Array, *rest: Array) -> Results:
    return (at.B.own(tau), *rest)


def similar(at: Given, X: Array, *rest: Array) -> Results:
    """B^T X B: the mass matrix, and as B is orthogonal its inverse."""
    return (at.B.similar(X), *rest)


def columns(at: Given, X: Array) -> Results:
    return (at.B.columns(X),)


def rows(at: Given, X: Array, *rest: Array) -> Results:
    """B^T X: derivatives of torques, or of accelerations, by what is the same in every convention."""
    return (at.B.rows(X), *rest)


def rows_by_forces(at: Given, X: Array, *rest: Array) -> Results:
    flat = X.reshape(*X.shape[:-2], -1)
    return (at.B.rows(flat).reshape(X.shape), *rest)


def joint_columns(at: Given, X: Array) -> Results:
    """B^T X, with a row for each dof of the tree."""
    X = np.array(X)
    for b in at.B.blocks:
        X[..., b.dofs, :] = np.swapaxes(b.B, -1, -2) @ X[..., b.dofs, :]
    return (X,)


def bias(at: Given, b: Array) -> Results:
    """The torques of no du/dt; ours take a = c then."""
    return covector(at, *at("inverse_dynamics", a=at.B.rate(at.v)))


def acceleration(at: Given, a: Array, *rest: Array) -> Results:
    return (at.B.own(a - at.B.rate(at.v)), *rest)


def coriolis_matrix(at: Given, C: Array) -> Results:
    """B^T (C B + M dB/dt), whose Mdot - 2C is skew as well."""
    (M,) = at("mass_matrix")
    C = np.array(C)
    for b in at.B.blocks:
        C[..., b.v] += M[..., b.v] @ by_first(b, at.v)
    return (at.B.similar(C),)


def chained(at: Given, by_q: Array, by_v: Array, by_a: Array | None = None) -> tuple[Array, Array]:
    """Derivatives by q and v of any rows, when v and a are functions of q and u: B is still to be applied.

    Along a direction v moves by Gamma(v, .), and a = B du + Gamma(v, v) by Gamma(B du, .) + K times that.
    """
    du = None if by_a is None else at.inputs["a"] - at.B.rate(at.v)  # B du/dt
    by_q, by_v = np.array(by_q), np.array(by_v)
    for b in at.B.blocks:
        dv = by_second(b, at.v)
        by_q[..., b.v] += by_v[..., b.v] @ dv
        if by_a is not None and du is not None:
            K = by_first(b, at.v) + dv
            by_q[..., b.v] += by_a[..., b.v] @ (by_second(b, du) + K @ dv)
            by_v[..., b.v] += by_a[..., b.v] @ K
    return by_q, by_v


def of_rows(at: Given, by_q: Array, by_v: Array, *by_a: Array) -> Results:
    """Derivatives of what is the same in every convention: a frame's velocity or acceleration."""
    return tuple(at.B.columns(X) for X in (*chained(at, by_q, by_v, *by_a), *by_a))


def centroidal_derivatives(at: Given, dh_dq: Array, by_q: Array, by_v: Array, by_a: Array) -> Results:
    dh_dq, _ = chained(at, dh_dq, *at("centroidal_map"))
    return at.B.columns(dh_dq), *of_rows(at, by_q, by_v, by_a)


def static_torque_derivatives(at: Given, by_q: Array) -> Results:
    return (at.B.similar(turned(at, by_q, *at("static_torque"))),)


def turned(at: Given, by_q: Array, tau: Array) -> Array:
    """With tau.Gamma, what the turning of B^T makes of torques."""
    by_q = np.array(by_q)
    for b in at.B.blocks:
        by_q[..., b.v, b.v] += of_force(b, tau)
    return by_q


def inverse_dynamics_derivatives(at: Given, by_q: Array, by_v: Array, M: Array) -> Results:
    by_q, by_v = chained(at, turned(at, by_q, *at("inverse_dynamics")), by_v, M)
    return at.B.similar(by_q), at.B.similar(by_v), at.B.similar(M)


def forward_dynamics_derivatives(at: Given, *results: Array) -> Results:
    return *forward_derivatives(at, at("forward_dynamics")[0], *results[:3]), *results[3:]


def forward_derivatives(at: Given, a: Array, by_q: Array, by_v: Array, by_tau: Array) -> Results:
    """Of accelerations, from those of ours, which are a."""
    du = a - at.B.rate(at.v)
    by_q, by_v = np.array(by_q), np.array(by_v)
    for b in at.B.blocks:
        dv = by_second(b, at.v)
        K = by_first(b, at.v) + dv
        by_q[..., b.v] += by_v[..., b.v] @ dv - by_tau[..., b.v] @ of_force(b, at.inputs["tau"])
        by_q[..., b.v, b.v] -= K @ dv + by_second(b, du)
        by_v[..., b.v, b.v] -= K
    return at.B.similar(by_q), at.B.similar(by_v), at.B.similar(by_tau)


def constrained_dynamics_derivatives(at: Given, *results: Array) -> Results:
    """Accelerations as without contacts; forces are numbers that every convention shares."""
    (a_q, a_v, a_tau), (l_q, l_v, l_tau), margins = results[:3], results[3:6], results[6:]
    a, *_ = at.run("constrained_dynamics", at.inputs)
    l_q, l_v = chained(at, l_q, l_v)
    for b in at.B.blocks:
        l_q[..., b.v] -= l_tau[..., b.v] @ of_force(b, at.inputs["tau"])
    forces = (at.B.columns(X) for X in (l_q, l_v, l_tau))
    return *forward_derivatives(at, a, a_q, a_v, a_tau), *forces, *margins


def impulse_dynamics_derivatives(at: Given, j_q: Array, j_v: Array, l_q: Array, l_v: Array, *rest: Array) -> Results:
    """Of the jump B^T (v+ - v-), and of impulses."""
    jump, *_ = at.run("impulse_dynamics", at.inputs)
    by_q, by_v = chained(at, turned(at, j_q, jump), j_v)
    return (at.B.similar(by_q), at.B.similar(by_v), *of_rows(at, l_q, l_v), *rest)


def jacobian_derivative(at: Given, dJ: Array) -> Results:
    """(dJ/dt B + J dB/dt)."""
    J, dJ = at.run("jacobian", {"q": at.inputs["q"]}, **at.static)[0], np.array(dJ)
    for b in at.B.blocks:
        dJ[..., b.v] += J[..., b.v] @ by_first(b, at.v)
    return (at.B.columns(dJ),)


def jacobian_drift(at: Given, drift: Array) -> Results:
    J = at.run("jacobian", {"q": at.inputs["q"]}, **at.static)[0]
    return (drift + (J @ at.B.rate(at.v)[..., None])[..., 0],)


def jacobian_hessian(at: Given, H: Array) -> Results:
    """The derivative of column i of J B along B e_k: H is carried along, and B e_i turns."""
    J, H = at.run("jacobian", {"q": at.inputs["q"]}, **at.static)[0], np.array(H)
    for b in at.B.blocks:
        H[..., b.v, b.v] += np.einsum("...ri,ijk->...rjk", J[..., b.v], b.gamma)
    wide = Turning([b._replace(B=b.B[..., None, :, :]) for b in at.B.blocks])
    return (wide.similar(H),)


def projected_newton_euler(at: Given, M: Array, g: Array, f: Array) -> Results:
    g = g + (M @ at.B.rate(at.v)[..., None])[..., 0]
    return at.B.similar(M), at.B.own(g), at.B.own(f)


TRANSLATIONS: dict[str, Callable[..., Results]] = {
    "inverse_dynamics": covector,
    "gravity": covector,
    "bias": bias,
    "forward_dynamics": acceleration,
    "mass_matrix": similar,
    "inverse_mass_matrix": similar,
    "coriolis_matrix": coriolis_matrix,
    "inverse_dynamics_derivatives": inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": forward_dynamics_derivatives,
    "jacobian": columns,
    "joint_columns": joint_columns,
    "jacobian_derivative": jacobian_derivative,
    "jacobian_drift": jacobian_drift,
    "jacobian_hessian": jacobian_hessian,
    "projected_newton_euler": projected_newton_euler,
    "centroidal_map": columns,
    "centroidal_derivatives": centroidal_derivatives,
    "static_torque": covector,
    "static_torque_derivatives": static_torque_derivatives,
    "constrained_dynamics": acceleration,
    "constrained_dynamics_derivatives": constrained_dynamics_derivatives,
    "contact_inverse_dynamics": covector,
    "contact_jacobian": columns,
    "impulse_dynamics": covector,
    "impulse_dynamics_derivatives": impulse_dynamics_derivatives,
    "torque_regressor": rows,
    "forward_dynamics_parameter_derivatives": rows,
    **dict.fromkeys(("inverse_dynamics_force_derivatives", "forward_dynamics_force_derivatives"), rows_by_forces),
    **dict.fromkeys(("frame_velocity_derivatives", "frame_acceleration_derivatives"), of_rows),
    **dict.fromkeys(("forward_kinematics", "center_of_mass", "potential_energy"), same),
    **dict.fromkeys(("kinetic_energy", "centroidal_momentum", "frame_acceleration"), same),
}


def translated(space: Coordinates, run: Run, quantity: str, inputs: Inputs, **static: Any) -> Results:
    """A quantity in the convention's coordinates, by a `run` in ours."""
    if quantity not in TRANSLATIONS:
        raise InputError(
            f"{quantity} is not available in the convention {space.convention!r}; "
            "take it from robot.with_convention('pinocchio')"
        )
    given, B = space.plain({name: x for name, x in inputs.items() if x is not None})
    results = run(quantity, given, **static)
    return TRANSLATIONS[quantity](Given(run, given, B, static), *results) if B.blocks else tuple(results)
