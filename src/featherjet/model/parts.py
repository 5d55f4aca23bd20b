"""The parts of a robot: bodies, joints and named frames, all immutable."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from .. import display
from ..errors import ModelError
from .checks import Array, bounded, frozen, rigid, whole
from .joints import JointKind
from .manifolds import Manifold


class Rebuilt:
    """A part of a model: equal to others whose fields are equal.

    Pickles and copies are made anew from the fields, so that they are checked, and their arrays read-only.
    """

    def __eq__(self, other: object) -> bool:
        return self is other or equal(self, other)

    def __hash__(self) -> int:
        return hash((type(self), getattr(self, "name", None)))  # names tell parts of a robot apart

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class Body(Rebuilt):
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg m^2], in the joint's frame."""

    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", float(bounded(self.mass, (), "mass")))
        object.__setattr__(self, "com", bounded(self.com, (3,), "centre of mass"))
        object.__setattr__(self, "inertia", bounded(self.inertia, (3, 3), "inertia"))
        bounded(self.mass * parallel_axis(self.com), (3, 3), "mass times squared distance")

    def __repr__(self) -> str:
        return f"<Body {self.mass:.6g} kg, com {display.brief(self.com)}>"

    @classmethod
    def from_parameters(cls, parameters: object, what: str = "inertial parameters") -> Body:
        """The body with these `parameters` (10,)."""
        m, x, y, z, *about = bounded(parameters, (10,), what)
        xx, xy, yy, xz, yz, zz = about
        moment = np.array([x, y, z])
        if m == 0 and moment.any():
            raise ModelError(f"{what}: the mass is zero, but mass times centre of mass is {moment}")
        com = moment / m if m else moment
        return cls(m, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * parallel_axis(com))

    @property
    def parameters(self) -> Array:
        """(10,): m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, with I about the joint's origin."""
        about = self.inertia + self.mass * parallel_axis(self.com)
        return np.array([self.mass, *(self.mass * self.com), *about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])

    def __add__(self, other: Body) -> Body:
        """Two bodies welded together, both given in the same frame."""
        mass = self.mass + other.mass
        if mass == 0:
            if np.any(self.mass * self.com + other.mass * other.com):
                raise ModelError("cannot weld two bodies whose masses cancel but whose first moments do not")
            return Body(0.0, np.zeros(3), self.inertia + other.inertia)
        com = (self.mass * self.com + other.mass * other.com) / mass
        parts = [b.inertia + b.mass * parallel_axis(b.com - com) for b in (self, other)]
        return Body(mass, com, parts[0] + parts[1])

    def placed(self, T: Array) -> Body:
        """The same body, expressed in the frame in which T (4, 4) places its own."""
        R, p = T[:3, :3], T[:3, 3]
        return Body(self.mass, R @ self.com + p, R @ self.inertia @ R.T)

    @property
    def definite(self) -> bool:
        """Whether no motion of the body has negative kinetic energy, up to rounding."""
        moments = np.linalg.eigvalsh((self.inertia + self.inertia.T) / 2)
        return self.mass >= 0 and bool(moments[0] >= -1e-9 * np.abs(moments).max())

    @property
    def defects(self) -> list[str]:
        """What makes these parameters unphysical; empty if a body can have them."""
        found = []
        if self.mass < 0:
            found.append(f"negative mass {self.mass:g}")
        moments = np.linalg.eigvalsh((self.inertia + self.inertia.T) / 2)
        scale = max(np.abs(moments).max(), 1e-300)
        if np.abs(self.inertia - self.inertia.T).max() > 1e-9 * scale:
            found.append("inertia not symmetric")
        if moments[0] < -1e-9 * scale:
            found.append(f"inertia not positive (principal moments {np.array2string(moments, precision=3)})")
        elif moments[0] + moments[1] < moments[2] * (1 - 1e-6):
            found.append(f"principal moments {np.array2string(moments, precision=3)} violate the triangle inequality")
        if self.mass == 0 and scale > 1e-300:
            found.append("inertia without mass")
        return found


def parallel_axis(d: Array) -> Array:
    """Inertia of a unit point mass at d."""
    return np.dot(d, d) * np.eye(3) - np.outer(d, d)


@dataclass(frozen=True)
class Mimic:
    """q = multiplier * q[joint] + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("multiplier", "offset"):
            number = bounded(getattr(self, name), (), f"mimics joint {self.joint!r}: its {name}")
            object.__setattr__(self, name, float(number))  # a long integer would make arrays of objects


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Rebuilt):
    """One joint and the body it carries.

    `placement` (4, 4) is the joint's frame at zero displacement, in the parent's frame. The limits `lower` and `upper`
    have nq entries, everything per degree of freedom has nv. `parent` is an index into `Model.joints`, or WORLD.
    Damping [N m s/rad], friction [N m] and springs act in simulations and in the dynamics of `Robot.with_joint_laws`;
    other dynamics ignore them, as Pinocchio's do. A spring of `stiffness` [N m/rad] pulls a joint with one coordinate
    to the coordinate `spring`.
    """

    name: str
    kind: JointKind
    parent: int
    placement: Array
    axis: Array
    pitch: float
    body: Body
    lower: Array
    upper: Array
    velocity_limit: Array
    effort_limit: Array
    armature: Array
    damping: Array
    friction: Array
    mimic: Mimic | None = None
    stiffness: float = 0.0
    spring: float = 0.0

    def __post_init__(self) -> None:
        where, nq, nv = f"joint {self.name!r}: ", self.kind.nq, self.kind.nv
        found = {
            "parent": whole(self.parent, where + "parent"),
            "placement": rigid(self.placement, where + "placement"),
            "axis": bounded(self.axis, (3,), where + "axis"),
            "armature": bounded(self.armature, (nv,), where + "armature"),
            "lower": frozen(self.lower, (nq,), where + "lower limits"),
            "upper": frozen(self.upper, (nq,), where + "upper limits"),
            "velocity_limit": frozen(self.velocity_limit, (nv,), where + "velocity limits"),
            "effort_limit": frozen(self.effort_limit, (nv,), where + "effort limits"),
            "damping": frozen(self.damping, (nv,), where + "damping"),
            "friction": frozen(self.friction, (nv,), where + "friction"),
            "pitch": float(bounded(self.pitch, (), where + "pitch")),
            "stiffness": float(bounded(self.stiffness, (), where + "stiffness")),
            "spring": float(bounded(self.spring, (), where + "spring")),
        }
        for name, x in found.items():
            object.__setattr__(self, name, x)
        if abs(np.linalg.norm(self.axis) - 1) > 1e-6:
            raise ModelError(f"{where}axis {self.axis} must have norm 1")
        if (self.armature < 0).any():
            raise ModelError(f"{where}armature must not be negative, got {self.armature}")
        for name in ("damping", "friction", "stiffness"):
            if not (np.asarray(getattr(self, name)) >= 0).all():
                raise ModelError(f"{where}{name} must not be negative, got {getattr(self, name)}")
        if self.stiffness and (nq, nv) != (1, 1):
            raise ModelError(f"{where}only joints with one coordinate can have a spring, not {self.kind.name} ones")

    def __repr__(self) -> str:
        return f"<Joint {self.name}: {self.kind}, {self.body.mass:.4g} kg>"

    @property
    def nq(self) -> int:
        """The number of its own coordinates: 0 if it mimics another joint."""
        return 0 if self.mimic else self.kind.nq

    @property
    def nv(self) -> int:
        return 0 if self.mimic else self.kind.nv


class Part(NamedTuple):
    """A joint with coordinates of its own: the manifold they live on, and its slices of q and v."""

    joint: Joint
    manifold: Manifold
    q: slice
    v: slice


@dataclass(frozen=True, eq=False, repr=False)
class Frame(Rebuilt):
    """A named frame on a joint's body: `placement` (4, 4) is in the joint's frame, or in the world's."""

    name: str
    joint: int
    placement: Array
    kind: str = "operational"  # or "joint", "fixed_joint", "body"

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint", whole(self.joint, f"frame {self.name!r}: joint"))
        object.__setattr__(self, "placement", rigid(self.placement, f"frame {self.name!r}: placement"))

    def __repr__(self) -> str:
        return f"<Frame {self.name}: {self.kind}, at {display.brief(self.placement[:3, 3])} of joint {self.joint}>"


def equal(a: Any, b: Any) -> bool:
    """Whether two parts of models are equal to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and bool((a == b).all())
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Rebuilt):
        names = [f.name for f in fields(a) if f.compare]  # type: ignore[arg-type]
        return a is b or all(equal(getattr(a, name), getattr(b, name)) for name in names)
    return a == b
