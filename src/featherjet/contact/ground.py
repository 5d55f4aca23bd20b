"""Unilateral contact of a robot's feet with the ground: gaps and contact Jacobians."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.contacts.percussion import across
from ..algorithms.contacts.scene import Contact, ContactSet
from ..errors import InputError, sealed
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..evaluate.frames import canonical
from ..math.spatial import Transform
from ..math.vec3 import Vec3
from ..model.builder import transform
from ..model.model import WORLD, Array
from ..model.tree import Tree
from .bilateral import evaluator_of, numbered
from .placed_feet import Paths, PlacedFeet
from .terrain import Nearest, Plane, Terrain


@dataclass(frozen=True)
class Foot:
    """A sphere (a point if its radius is zero) at a frame's origin or, in that frame, at `offset` (3,) [m]."""

    frame: str
    _: KW_ONLY
    radius: float = 0.0
    offset: ArrayLike = (0.0, 0.0, 0.0)


@sealed
class Ground:
    """Feet and their terrain; contact is unilateral, with Coulomb friction and Newton's restitution.

    feet: names of frames, or Foot. friction: at least 0; restitution: 0 (none) to 1; one number, or one per foot.
    """

    def __init__(
        self,
        robot: HasEvaluator,
        feet: Sequence[str | Foot],
        *,
        friction: ArrayLike = 0.7,
        restitution: ArrayLike = 0.0,
        terrain: Terrain | None = None,
    ) -> None:
        if isinstance(feet, str | Foot) or not isinstance(feet, Iterable) or not feet:
            raise InputError("feet: expected a list of frame names or Foot, at least one")
        self.feet = tuple(f if isinstance(f, Foot) else Foot(f) for f in feet)
        evaluator = evaluator_of(robot, "Ground")
        self.model = evaluator.model
        self.terrain: Terrain = Plane() if terrain is None else terrain
        if isinstance(terrain, type) or not callable(getattr(self.terrain, "nearest", None)):
            raise InputError(f"terrain: expected fj.Plane(...) or fj.HeightField(...), got {terrain!r}")
        self.nearest(np.zeros((2, 3)))
        self.friction = self._per_foot("friction", friction, np.inf)
        self.restitution = self._per_foot("restitution", restitution, 1.0)
        offsets = [self._checked(f) for f in self.feet]
        places = [(f.frame, *x) for f, x in zip(self.feet, offsets, strict=True)]
        if twice := [name for k, (name, *_) in enumerate(places) if places[k] in places[:k]]:
            raise InputError(f"foot {twice[0]!r} is given twice")
        frames = [self.model.frame(f.frame) for f in self.feet]
        self._joints = [f.joint for f in frames]
        self._points = np.array([(f.placement @ [*x, 1.0])[:3] for f, x in zip(frames, offsets, strict=True)])
        self._radii = np.array([f.radius for f in self.feet])
        self._paths = Paths(evaluator.tree, self._joints)

    def __repr__(self) -> str:
        return f"<Ground of {self.model.name}: {', '.join(self.names)}>"

    @property
    def flat(self) -> bool:
        """Whether the ground is a plane."""
        return isinstance(self.terrain, Plane)

    @property
    def names(self) -> tuple[str, ...]:
        """The feet's frames; several feet of the same frame are numbered."""
        return numbered([f.frame for f in self.feet])

    @property
    def slices(self) -> list[slice]:
        """Where each foot's force is in the vector of all forces."""
        return [slice(3 * k, 3 * k + 3) for k in range(len(self.feet))]

    def nearest(self, points: Array) -> Nearest:
        """What the terrain says of points (n, 3), which may be a user's own terrain."""
        try:
            distance, normal = (np.asarray(x, dtype=float) for x in self.terrain.nearest(points))
        except (TypeError, ValueError):
            distance = normal = np.zeros(0)
        if distance.shape != points.shape[:1] or normal.shape != points.shape:
            raise InputError("terrain: nearest(points) must give distances (n,) and normals (n, 3) of points (n, 3)")
        return Nearest(distance, normal)

    def gap(self, robot: HasEvaluator, q: ArrayLike) -> Array:
        """The height of each foot above the ground, (..., n) [m], at configurations q (..., nq)."""
        return self.gaps(robot.evaluator, q)

    def gaps(self, evaluator: Evaluator, q: ArrayLike) -> Array:
        """`gap`, with an evaluator in place of a robot."""
        centres = self._centres(evaluator, q)
        distance, _ = self.nearest(centres.reshape(-1, 3))
        return distance.reshape(centres.shape[:-1]) - self._radii

    def arrows(self, evaluator: Evaluator, q: ArrayLike, forces: Array) -> Array:
        """The feet's lowest points and their forces, (..., n, 2, 3) in the world, from forces (..., 3 n)."""
        centres = self._centres(evaluator, q)
        _, normals = self.nearest(centres.reshape(-1, 3))
        lowest = centres - self._radii[:, None] * normals.reshape(centres.shape)
        return np.stack([lowest, forces.reshape(centres.shape)], -2)

    def surface(self, points: Array) -> Array:
        """A grid (k, l, 3) of the ground below and around points (n, 3), for drawing; empty if the terrain has none."""
        drawn = getattr(self.terrain, "surface", None)
        return np.zeros((0, 0, 3)) if drawn is None else drawn(points)

    def table(self, evaluator: Evaluator, q: Array) -> Array:
        """The plane below each foot, its radius and friction (..., n, 6); see `algorithms.contacts.feet.FOOT`.

        One table (n, 6) serves all configurations if the ground is a Plane.
        """
        if self.flat:
            normal, distance = np.zeros((len(self.feet), 3)), np.zeros(len(self.feet))
            found = self.nearest(np.zeros((1, 3)))
            normal[:], distance[:] = found.normal[0], -found.distance[0]
        else:
            centres = self._centres(evaluator, q)
            found = self.nearest(centres.reshape(-1, 3))
            normal = found.normal.reshape(centres.shape)
            distance = (normal * centres).sum(-1) - found.distance.reshape(centres.shape[:-1])
        shape = normal.shape[:-1]
        each = (distance, np.broadcast_to(self._radii, shape), np.broadcast_to(self.friction, shape))
        return np.concatenate([normal, np.stack(each, -1)], -1)

    @cached_property
    def core(self) -> ContactSet:
        """The feet's centres as point contacts, as algorithms take them."""
        tree = Tree(self.model)
        placed = [canonical(tree, j, transform(p=x)) for j, x in zip(self._joints, self._points, strict=True)]
        none = Transform.identity()
        each = (Contact(j, X, WORLD, none, True, True, None, None) for j, X in zip(self._joints, placed, strict=True))
        return ContactSet(tuple(each), None)

    def footing(self, evaluator: Evaluator, q: Array, table: Array, axes: Array | None = None) -> PlacedFeet:
        """The feet at configurations q (..., nq) over the planes of a table; axes: of these planes, if known."""
        if axes is None:
            axes = np.swapaxes(across(Vec3(*(table[..., k] for k in range(3)))).to_array(), -1, -2)
        radii = np.broadcast_to(self._radii, table.shape[:-1])
        return PlacedFeet(self._paths, self._centres(evaluator, q), axes, radii, evaluator("joint_columns", q))

    def _centres(self, evaluator: Evaluator, q: ArrayLike) -> Array:
        T = evaluator("forward_kinematics", q)[..., self._joints, :, :]
        return (T[..., :3, :3] @ self._points[:, :, None])[..., 0] + T[..., :3, 3]

    def _per_foot(self, name: str, value: ArrayLike, most: float) -> Array:
        x = arrays.finite(name, value, np.shape(value), "a number, or one for each foot")
        if x.shape not in ((), (len(self.feet),)):
            raise InputError(f"{name}: expected one number, or one for each of {len(self.feet)} feet; got {x.shape}")
        if (x < 0).any() or (x > most).any():
            limits = "not be negative" if most == np.inf else f"be from 0 to {most:g}"
            raise InputError(f"{name}: must {limits}, got {value!r}")
        return np.broadcast_to(x, len(self.feet))

    def _checked(self, foot: Foot) -> Array:
        if self.model.frame(foot.frame).joint == WORLD:
            raise InputError(f"foot {foot.frame!r}: this frame is fixed to the world; name a moving frame")
        if arrays.finite_exactly(f"foot {foot.frame!r}: radius", foot.radius, (), "a number") < 0:
            raise InputError(f"foot {foot.frame!r}: its radius must not be negative, got {foot.radius!r}")
        return arrays.finite_exactly(f"foot {foot.frame!r}: offset", foot.offset, (3,), "x y z")
