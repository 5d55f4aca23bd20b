"""A robot that speaks another convention: everything in and out of it is translated, derivatives included.

With our velocities v = B(q) u, forces tau = B tau_u and accelerations a = B du + Gamma(v, v) (model/convention.py), and
directions d of the convention's tangent space being B d in ours, differentiating tau_u = B^T ID(q, v, a) gives

    dtau_u/dq = B^T [ID_q + ID_v Gamma(v, .) + M (Gamma(B du, .) + K Gamma(v, .)) + tau.Gamma] B
    dtau_u/du = B^T [ID_v + M K] B,        K = Gamma(., v) + Gamma(v, .), the derivative of Gamma(v, v) by v

and du = B^T (FD(q, v, tau) - Gamma(v, v)) likewise. docs/conventions.md derives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import checks
from .errors import InputError
from .model.convention import Coordinates, Part, Turning, by_first, by_second, of_force
from .model.model import Array, Model
from .quantities import INPUTS
from .reference import Reference
from .robot import Out, Robot, into

Inputs = Mapping[str, Array]
Results = tuple[Array, ...]
Run = Callable[..., Results]  # (quantity, inputs, **static) -> results, in our coordinates


class State(NamedTuple):
    """What `convert` was given, in other coordinates; None where it was not given."""

    q: Array
    v: Array | None
    a: Array | None
    tau: Array | None


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


def covector(at: Given, tau: Array) -> Results:
    return (at.B.own(tau),)


def similar(at: Given, X: Array, *rest: Array) -> Results:
    """B^T X B: the mass matrix, and as B is orthogonal its inverse."""
    return (at.B.similar(X), *rest)


def columns(at: Given, X: Array) -> Results:
    return (at.B.columns(X),)


def joint_columns(at: Given, X: Array) -> Results:
    """One row for each dof of the tree: B^T X."""
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


def inverse_dynamics_derivatives(at: Given, by_q: Array, by_v: Array, M: Array) -> Results:
    (tau,) = at("inverse_dynamics")
    du = at.inputs["a"] - at.B.rate(at.v)  # B du/dt
    by_q, by_v = np.array(by_q), np.array(by_v)
    for b in at.B.blocks:
        dv = by_second(b, at.v)
        K = by_first(b, at.v) + dv
        by_q[..., b.v] += by_v[..., b.v] @ dv + M[..., b.v] @ (by_second(b, du) + K @ dv)
        by_q[..., b.v, b.v] += of_force(b, tau)
        by_v[..., b.v] += M[..., b.v] @ K
    return at.B.similar(by_q), at.B.similar(by_v), at.B.similar(M)


def forward_dynamics_derivatives(at: Given, by_q: Array, by_v: Array, Minv: Array, *rest: Array) -> Results:
    a = at("forward_dynamics")[0]
    du = a - at.B.rate(at.v)
    by_q, by_v = np.array(by_q), np.array(by_v)
    for b in at.B.blocks:
        dv = by_second(b, at.v)
        K = by_first(b, at.v) + dv
        by_q[..., b.v] += by_v[..., b.v] @ dv - Minv[..., b.v] @ of_force(b, at.inputs["tau"])
        by_q[..., b.v, b.v] -= K @ dv + by_second(b, du)
        by_v[..., b.v, b.v] -= K
    return (at.B.similar(by_q), at.B.similar(by_v), at.B.similar(Minv), *rest)


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
    **dict.fromkeys(("forward_kinematics", "center_of_mass", "potential_energy"), same),
    **dict.fromkeys(("kinetic_energy", "centroidal_momentum"), same),
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


class ConventionReference(Reference):
    """The plain backend in the convention's coordinates, for oracles; on complex numbers too."""

    def __init__(self, space: Coordinates) -> None:
        super().__init__(space.model)
        self.space = space

    def run(self, name: str, inputs: Any, **static: Any) -> Results:
        return translated(self.space, super().run, name, inputs, **static)


class ConventionRobot(Robot):
    """A robot in the coordinates of another convention; `plain` is the same robot in ours.

    `model` stays as it is: what its joints say of limits and coordinates is in ours.
    """

    def __init__(self, model: Model, convention: str, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.plain = Robot(model, **settings)
        self._space = self._coordinates = Coordinates(model, convention)
        self._reference = ConventionReference(self._coordinates)

    @staticmethod
    def of(robot: Robot, convention: str) -> Robot:
        """The robot in a convention; the plain robot, if that is ours."""
        Coordinates(robot.model, convention)  # refuses a name that is none
        if convention == "pinocchio":
            return robot.plain if isinstance(robot, ConventionRobot) else robot
        return ConventionRobot(**Robot.__getstate__(robot), convention=convention)

    @property
    def convention(self) -> str:
        return self._coordinates.convention

    def __repr__(self) -> str:
        return super().__repr__().replace("<Robot", f"<Robot ({self.convention})")

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"convention": self.convention}

    def lock(self, positions: Mapping[str, ArrayLike]) -> Robot:
        known = {part.joint.name: part for part in self._coordinates.parts}
        ours: Any = positions
        if isinstance(positions, Mapping):
            ours = {name: x if name not in known else _plain_position(known[name], x) for name, x in positions.items()}
        return self.of(self.plain.lock(ours), self.convention)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        return self.of(self.plain.with_gravity(gravity), self.convention)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> Array:
        return self._coordinates.own_q(self.plain.random_configuration(rng, size))

    def _run(
        self, quantity: str, given: Sequence[Any], fext: Any = None, out: Out = None, **static: Any
    ) -> tuple[Array, ...]:
        inputs = self._checked(quantity, given, fext)
        self.plain.threads, self.plain.unroll = self.threads, self.unroll
        return into(out, translated(self._coordinates, self._run_plain, quantity, inputs, **static))

    def _run_plain(self, quantity: str, inputs: Mapping[str, Array], **static: Any) -> Results:
        given = [inputs[name] for name in INPUTS[quantity]]
        return self.plain._run(quantity, given, inputs.get("fext"), **static)

    def _kernel(self, quantity: str, fext: bool) -> None:
        """Bound calls go through `_run`: no kernel knows of conventions."""


def _plain_position(part: Part, x: ArrayLike) -> Any:
    """A joint's coordinates to lock it at, in ours; `lock` judges what is not of the right shape."""
    n = part.chart.manifold.nq
    try:
        own = np.atleast_1d(np.asarray(x, float))
    except (TypeError, ValueError):
        own = np.array([])
    if own.shape != (n,):
        raise InputError(f"joint {part.joint.name!r} ({part.joint.kind}): expected {n} coordinates, got {x!r}")
    return part.chart.plain(own)


def convert(
    source: Robot,
    target: Robot,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> State:
    """A state of `source` as the same state of `target`, which is the same robot in another convention.

    q (..., nq), v, a, tau (..., nv) as `source` writes them; a needs v, since axes that turn accelerate.
    """
    if source.joint_names != target.joint_names or source.nv != target.nv:
        raise InputError(f"convert: {source.name!r} and {target.name!r} are not the same robot")
    if a is not None and v is None:
        raise InputError("convert: an acceleration needs v too, as it depends on how fast the axes turn")
    given = {"q": source._q("q", q)} | {
        name: source._v(name, x) for name, x in (("v", v), ("a", a), ("tau", tau)) if x is not None
    }
    checks.common_batch({name: (x, 1) for name, x in given.items()})
    if isinstance(source, ConventionRobot):
        given = source._coordinates.plain(given)[0]
    if isinstance(target, ConventionRobot):
        given = target._coordinates.own(given)
    return State(given["q"], given.get("v"), given.get("a"), given.get("tau"))
