"""Residuals: vectors that costs make small and constraints keep within bounds, as functions of traced signals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError
from ...evaluate.evaluator import HasEvaluator
from ...evaluate.frames import Viewpoint, checked_viewpoint
from ...math.scalars import Scalar
from ...model.configuration import limits
from ...model.manifolds import SE3, SO3, Rows, is_flat
from .cones import friction_cone, pressure_rows, wrench_cone
from .references import check_rotations, finite_numbers, quaternion, quaternions
from .signals import FORCES, Signal, Sizes, TracedKnot

Array = np.ndarray
Q, V, U = Signal("q"), Signal("v"), Signal("u")  # the tangents that every knot has


class Residual:
    """A function of signals and of a reference that is an input of its code: changing it compiles nothing.

    reference: (n,), or (..., knots, n) for one that varies along a phase, or over a batch of problems.
    """

    def __init__(self, reference: ArrayLike = ()) -> None:
        self.reference = finite_numbers(f"{type(self).__name__}: reference", reference)

    @property
    def name(self) -> str:
        """What logs and plots call it."""
        return type(self).__name__

    def numbers(self, size: Sizes) -> Array:
        """The reference as code reads it, (..., n)."""
        return self.reference

    def _wide(self, n: int, letters: str = "") -> Array:
        """The reference, which must have n numbers."""
        if self.reference.shape[-1:] != (n,):
            raise InputError(f"{self.name}: expected a reference (..., {letters}{n}), got {self.reference.shape}")
        return self.reference

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        """The residual, traced."""
        raise NotImplementedError

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows] | None:
        """Its Jacobian by the tangents of signals if known in closed form; None: the tracer differentiates it."""
        return None

    def curved_tangents(self, size: Sizes) -> Sequence[int] | None:
        """The tangents of q, v and u along which its Jacobian changes: () if it is linear in its signals.

        None: any that it depends on.
        """
        return None

    def key(self) -> Hashable | None:
        """What determines the code besides the class, the sizes and the signals; None if only a trace can tell."""
        return ()


class LinearResidual(Residual):
    """A residual that is linear in its signals."""

    def curved_tangents(self, size: Sizes) -> Sequence[int]:
        return ()


class State(Residual):
    """x (-) reference (2 nv,): configuration and velocities relative to a state [q, v]; by default at rest."""

    def __init__(self, reference: ArrayLike | None = None) -> None:
        self.default = reference is None
        super().__init__(() if reference is None else reference)

    def numbers(self, size: Sizes) -> Array:
        if self.default:
            q = np.concatenate([p.manifold.neutral() for p in size.places.nodes])
            return np.concatenate([q, np.zeros(size.nv)])
        return self._wide(size.nq + size.nv, "nq + nv = ")

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        nq, way = at.size.nq, []
        for p in at.size.places.nodes:
            way += p.manifold.difference(reference[p.q], at.q[p.q])
        return [*way, *(v - w for v, w in zip(at.v, reference[nq:], strict=True))]

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows]:
        nv = at.size.nv
        by_q = np.zeros((2 * nv, nv), object)
        for p in at.size.places.nodes:
            by_q[p.v, p.v] = np.array(p.manifold.right_jacobian_inverse(rows[p.v]), object)
        by_v = np.eye(2 * nv)[:, nv:]
        return {Q: by_q.tolist(), V: by_v.tolist()}

    def curved_tangents(self, size: Sizes) -> Sequence[int]:
        curved = [p.v for p in size.places.nodes if not is_flat(p.manifold)]
        return [k for at in curved for k in range(at.start, at.stop)]


class JointLimits(State):
    """Configuration and velocities (2 nv,) within the limits of a robot's joints; where these have none, unbounded.

    A cost charges what exceeds them, a constraint forbids it.
    """

    def __init__(self, robot: HasEvaluator) -> None:
        super().__init__()
        evaluator = robot.evaluator
        bounds, nv = limits(evaluator.space), evaluator.model.nv
        self.lower, self.upper = np.full(2 * nv, -np.inf), np.full(2 * nv, np.inf)
        for _, manifold, iq, iv in evaluator.model.parts:
            if is_flat(manifold):
                self.lower[iv], self.upper[iv] = (x[iq] - manifold.neutral() for x in (bounds.lower, bounds.upper))
        self.lower[nv:], self.upper[nv:] = -bounds.velocity, bounds.velocity


class Control(LinearResidual):
    """u - reference (nu,); the reference is zero by default."""

    def numbers(self, size: Sizes) -> Array:
        return self._wide(size.nu, "nu = ") if self.reference.size else np.zeros(size.nu)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [u - r for u, r in zip(at.u, reference, strict=True)]

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows]:
        return {U: np.eye(at.size.nu).tolist()}


class Framed(Residual):
    """A residual of a frame."""

    def __init__(self, frame: str, reference: ArrayLike) -> None:
        super().__init__(reference)
        self.frame = frame

    @property
    def name(self) -> str:
        return f"{type(self).__name__} {self.frame}"

    @property
    def signal(self) -> Signal:
        return Signal("placement", self.frame)


class Placement(Framed):
    """log(reference^-1 T) (6,), linear then angular: where a frame is relative to a placement (..., 4, 4)."""

    def numbers(self, size: Sizes) -> Array:
        if self.reference.shape[-2:] != (4, 4):
            raise InputError(f"Placement of {self.frame!r}: expected (..., 4, 4), got {self.reference.shape}")
        check_rotations(self.name, self.reference[..., :3, :3])
        return np.concatenate([self.reference[..., :3, 3], quaternions(self.reference[..., :3, :3])], -1)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        pose = [*at.position(self.frame), *quaternion(at.rotation(self.frame))]
        return SE3().difference(reference, pose)

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows]:
        return {self.signal: SE3().right_jacobian_inverse(rows)}


class Rotation(Framed):
    """log(reference^T R) (3,): how a frame is turned relative to a rotation matrix (..., 3, 3)."""

    def numbers(self, size: Sizes) -> Array:
        if self.reference.shape[-2:] != (3, 3):
            raise InputError(f"Rotation of {self.frame!r}: expected (..., 3, 3), got {self.reference.shape}")
        check_rotations(self.name, self.reference)
        return quaternions(self.reference)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return SO3().difference(reference, quaternion(at.rotation(self.frame)))

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows]:
        return {self.signal: [[0.0] * 3 + list(row) for row in SO3().right_jacobian_inverse(rows)]}


class Translation(Framed):
    """p - reference (3,): where a frame's origin is relative to a point (..., 3) in the world."""

    def numbers(self, size: Sizes) -> Array:
        return self._wide(3)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [p - r for p, r in zip(at.position(self.frame), reference, strict=True)]


class Velocity(Framed):
    """The velocity of a frame, linear then angular, minus a reference (..., 6), by default zero."""

    def __init__(self, frame: str, reference: ArrayLike = (0.0,) * 6, *, viewpoint: Viewpoint = "local") -> None:
        super().__init__(frame, reference)
        self.viewpoint = checked_viewpoint(viewpoint)

    def numbers(self, size: Sizes) -> Array:
        return self._wide(6)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [v - r for v, r in zip(at.velocity(self.frame, self.viewpoint), reference, strict=True)]

    def curved_tangents(self, size: Sizes) -> Sequence[int]:
        return ()


class CenterOfMass(LinearResidual):
    """The centre of mass minus a reference (..., 3) in the world."""

    def numbers(self, size: Sizes) -> Array:
        return self._wide(3)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [c - r for c, r in zip(at.com, reference, strict=True)]


class Momentum(LinearResidual):
    """Linear momentum and angular momentum about the centre of mass, minus a reference (..., 6), by default zero."""

    def __init__(self, reference: ArrayLike = (0.0,) * 6) -> None:
        super().__init__(reference)

    def numbers(self, size: Sizes) -> Array:
        return self._wide(6)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [h - r for h, r in zip(at.momentum, reference, strict=True)]


class Energy(LinearResidual):
    """Kinetic plus potential energy minus a reference [J]."""

    def __init__(self, reference: ArrayLike = 0.0) -> None:
        super().__init__(finite_numbers("Energy: reference", reference)[..., None])

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [at.kinetic_energy + at.potential_energy - reference[0]]


class Acceleration(LinearResidual):
    """Joint accelerations minus a reference (..., nv), by default zero."""

    def numbers(self, size: Sizes) -> Array:
        return self._wide(size.nv, "nv = ") if self.reference.size else np.zeros(size.nv)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [a - r for a, r in zip(at.a, reference, strict=True)]


class ContactForce(LinearResidual):
    """The force of a contact minus a reference (..., 3) or, of a surface, (..., 6); by default zero."""

    def __init__(self, contact: str, reference: ArrayLike = ()) -> None:
        super().__init__(reference)
        self.contact = contact

    @property
    def name(self) -> str:
        return f"{type(self).__name__} {self.contact}"

    def numbers(self, size: Sizes) -> Array:
        at = size.force(self.contact)
        return self._wide(at.stop - at.start) if self.reference.size else np.zeros(at.stop - at.start)

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        return [f - r for f, r in zip(at.force(self.contact), reference, strict=True)]


class ForceRows(ContactForce):
    """A matrix (rows, 3 or 6) times the force of a contact; the matrix is an input of the code."""

    def __init__(self, contact: str, matrix: Array) -> None:
        super().__init__(contact, matrix.reshape(*matrix.shape[:-2], -1))
        self.shape = matrix.shape[-2:]

    def numbers(self, size: Sizes) -> Array:
        at = size.force(self.contact)
        if at.stop - at.start != self.shape[1]:
            kind = "a point contact" if at.stop - at.start == 3 else "a surface contact"
            raise InputError(f"{self.name}: {self.contact!r} is {kind}, whose force has {at.stop - at.start} rows")
        return self.reference

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        f = at.force(self.contact)
        return [sum((a * x for a, x in zip(row, f, strict=True)), 0.0) for row in reference.reshape(self.shape)]

    def slopes(self, at: TracedKnot, reference: Array, rows: Sequence[Scalar]) -> Mapping[Signal, Rows]:
        out = np.zeros((self.shape[0], at.size.rows), object)
        out[:, at.size.force(self.contact)] = reference.reshape(self.shape)
        return {FORCES: out.tolist()}

    def key(self) -> Hashable:
        return self.shape


class FrictionCone(ForceRows):
    """A point's force in a pyramid of `facets` sides: rows <= 0, the last one, the normal force, >= 0.

    mu: the coefficient of friction; normal: of the ground (3,). The pyramid is around the cone, or within if `inner`.
    """

    def __init__(
        self, contact: str, mu: float, normal: ArrayLike = (0.0, 0.0, 1.0), *, facets: int = 4, inner: bool = False
    ) -> None:
        matrix, self.lower, self.upper = friction_cone(mu, normal, facets, inner)
        super().__init__(contact, matrix)


class WrenchCone(ForceRows):
    """Force and moment of a flat foot that neither slides nor tips nor twists off: rows <= 0, the normal force >= 0.

    half_size: half its length and half its width [m]; mu, facets, inner: as of a FrictionCone. [Caron 2015]
    """

    def __init__(
        self, contact: str, mu: float, half_size: tuple[float, float], *, facets: int = 4, inner: bool = True
    ) -> None:
        matrix, self.lower, self.upper = wrench_cone(mu, half_size, facets, inner)
        super().__init__(contact, matrix)


class CenterOfPressure(ForceRows):
    """The centre of pressure of a flat foot within its sides, times the normal force: four rows <= 0."""

    def __init__(self, contact: str, half_size: tuple[float, float]) -> None:
        super().__init__(contact, pressure_rows(half_size))
        self.lower, self.upper = np.full(4, -np.inf), np.zeros(4)


class Custom(Residual):
    """A function's own residual: f(at) or f(at, reference) -> a list of scalars.

    `at` has traced q, v, u, a, com, momentum, position(frame), rotation(frame), velocity(frame), force(contact), ...;
    the function uses + - * / and, of `featherjet.math.scalars`, sqrt, sincos and where_less. It is differentiated.
    """

    def __init__(self, function: Callable[..., Any], reference: ArrayLike | None = None, *, name: str = "") -> None:
        super().__init__(() if reference is None else np.atleast_1d(reference))
        if not callable(function):
            raise InputError(f"Custom: expected a function of a knot, got {type(function).__name__}")
        self.function, self._name = function, name or getattr(function, "__name__", "Custom")
        self.takes = len(inspect.signature(function).parameters)

    @property
    def name(self) -> str:
        return self._name

    def rows(self, at: TracedKnot, reference: Array) -> Sequence[Scalar]:
        rows = self.function(at, reference) if self.takes > 1 else self.function(at)
        return list(np.atleast_1d(np.asarray(rows, object)).ravel())

    def key(self) -> Hashable | None:
        return None
