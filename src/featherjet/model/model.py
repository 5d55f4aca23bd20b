"""The immutable description of a robot: a tree of joints, each with one rigid body, and named frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import display
from ..arrays import masked
from ..errors import InputError, ModelError, PhysicsWarning, UnknownName, warn_of_places
from .joints import JointKind
from .manifolds import Manifold

Array = np.ndarray
WORLD = -1
GRAVITY = (0.0, 0.0, -9.81)
LARGEST = 1e30  # of a model's numbers: with inputs below 1e60, no result then exceeds the largest double
MODEST = 1e-12, 1e9  # of a model's numbers: with inputs below 1e8, no result then exceeds the largest float32


def numbers(x: object, what: str) -> Array:
    """A new float array of whatever numbers x holds."""
    if masked(x):
        raise ModelError(f"{what}: some entries are masked; fill them in first")
    try:
        return np.array(x, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what}: expected numbers, got {type(x).__name__}") from None


def require_name(what: str, name: object) -> None:
    """Raise a ModelError unless a name can be shown on a terminal as it is."""
    if not isinstance(name, str):
        raise ModelError(f"{what}: expected a name, got {type(name).__name__}")
    if not name.isprintable():
        raise ModelError(f"{what} {name!r}: its name contains control characters")


def whole(x: object, what: str) -> int:
    """An index; anything but a whole number is an error."""
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)):
        raise ModelError(f"{what}: expected a whole number, got {str(x)[:40]}")
    return int(x)


def frozen(x: object, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float array of the given shape without NaN; anything else is an error."""
    a = numbers(x, what)
    if a.shape != shape:
        raise ModelError(f"{what}: expected shape {shape}, got {a.shape}")
    if np.isnan(a).any():
        raise ModelError(f"{what}: contains NaN")
    a.flags.writeable = False
    return a


def bounded(x: object, shape: tuple[int, ...], what: str) -> Array:
    """A read-only array of numbers that are finite and can be computed with."""
    if not np.isfinite(numbers(x, what)).all():
        raise ModelError(f"{what}: must be finite, got {x}")
    a = frozen(x, shape, what)
    if a.size and np.abs(a).max() > LARGEST:
        raise ModelError(f"{what}: {np.abs(a).max():.3g} is too large to compute with; the limit is {LARGEST:g}")
    return a


class Rebuilt:
    """Equal if its fields are. Pickled and copied as them, and made anew: checked, and with read-only arrays."""

    def __eq__(self, other: object) -> bool:
        return self is other or _equal(self, other)

    def __hash__(self) -> int:
        return hash((type(self), getattr(self, "name", None)))  # names tell parts of a robot apart

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]


def rigid(T: object, what: str) -> Array:
    """A read-only homogeneous transform (4, 4), identity for None; its rotation is checked."""
    a = bounded(np.eye(4) if T is None else T, (4, 4), what)
    R = a[:3, :3]
    if np.abs(R).max() > 2 or np.abs(R.T @ R - np.eye(3)).max() > 1e-8 or np.linalg.det(R) < 0:
        raise ModelError(f"{what}: not a rigid transform: its rotation block is not orthonormal")
    if (a[3] != (0.0, 0.0, 0.0, 1.0)).any():
        raise ModelError(f"{what}: not a rigid transform: its last row is {a[3]}, not 0 0 0 1")
    return a


@dataclass(frozen=True, eq=False, repr=False)
class Body(Rebuilt):
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg m^2], in the joint's frame."""

    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", float(self.mass))
        bounded(self.mass, (), "mass")
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


@dataclass(frozen=True, eq=False, repr=False)
class Model(Rebuilt):
    """A robot: frames, gravity (3,) [m/s^2], and joints in depth-first order, so that every subtree is a range.

    Models are equal if all their numbers and names are. `source` is the file it was read from, where the viewer finds
    its meshes, or empty; it has no part in what the robot is.
    """

    name: str
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    gravity: Array = field(default_factory=lambda: np.array(GRAVITY))
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", bounded(self.gravity, (3,), "gravity"))
        if not self.joints:
            raise ModelError(
                f"robot {self.name!r} has no moving joint; load it with root='free' to move it as one body"
            )
        path: list[int] = []
        for i, joint in enumerate(self.joints):
            while path and path[-1] != joint.parent:
                path.pop()
            if joint.parent != (path[-1] if path else WORLD):
                raise ModelError(f"joint {joint.name!r}: joints are not in depth-first order")
            path.append(i)
        require_name("robot", self.name)
        if not isinstance(self.source, str):
            raise ModelError(f"robot {self.name!r}: source: expected a path as text, got {type(self.source).__name__}")
        for what, names in (("joint", self.joint_names), ("frame", [f.name for f in self.frames])):
            seen: set[str] = set()
            for name in names:
                require_name(what, name)
                if name in seen:
                    raise ModelError(f"{what} {name!r} is defined twice")
                seen.add(name)
        for frame in self.frames:
            if frame.joint not in range(WORLD, self.njoints):
                raise ModelError(f"frame {frame.name!r}: there is no joint {frame.joint}")
        bounded(self._extent, (), "mass times squared length of the robot")
        named = dict(zip(self.joint_names, self.joints, strict=True))
        for joint in self.joints:
            if joint.mimic:
                if joint.mimic.joint not in named:
                    raise UnknownName("joint", joint.mimic.joint, self.joint_names)
                leader = named[joint.mimic.joint]
                if leader.mimic:
                    raise ModelError(f"joint {joint.name!r} mimics {leader.name!r}, which itself mimics a joint")
                if (leader.kind.nq, joint.kind.nq) != (1, 1):
                    raise ModelError(
                        f"joint {joint.name!r} ({joint.kind}) cannot mimic {leader.name!r} ({leader.kind}): "
                        "both must have one coordinate"
                    )

    def __repr__(self) -> str:
        sizes = f"{self.njoints} joints, nq {self.nq}, nv {self.nv}"
        return f"<Model {self.name}: {sizes}, {self.mass:.4g} kg, {len(self.frames)} frames>"

    @property
    def _extent(self) -> float:
        """Mass times squared length, a bound on what the inertia of a subtree can be; the length alone, too."""
        reach = sum(np.linalg.norm(j.placement[:3, 3]) + np.linalg.norm(j.body.com) for j in self.joints)
        return float(reach**2 * (1 + sum(abs(j.body.mass) for j in self.joints)))

    @cached_property
    def modest(self) -> bool:
        """Whether single precision has room for what is computed from the numbers of this model."""
        least, most = MODEST
        bodies = [j.body for j in self.joints]
        inertias = np.array([(b.mass, *np.diag(b.inertia)) for b in bodies])
        inertias = np.abs(np.concatenate([inertias.ravel(), *(j.armature for j in self.joints)]))
        mimics = [abs(x) for j in self.joints if j.mimic for x in (j.mimic.multiplier, j.mimic.offset)]
        others = [self._extent, *np.abs(self.gravity), *(abs(j.pitch) for j in self.joints), *mimics]
        return bool(max(inertias.max(), *others) <= most and inertias[inertias > 0].min(initial=1.0) >= least)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(j.name for j in self.joints)

    @property
    def njoints(self) -> int:
        """The number of joints, mimicking ones included."""
        return len(self.joints)

    @property
    def nq(self) -> int:
        """The length of a configuration."""
        return self._sizes[0]

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        return sum(j.nq for j in self.joints), sum(j.nv for j in self.joints)

    @cached_property
    def q_starts(self) -> tuple[int, ...]:
        """Where each joint's coordinates start in q; for a joint that mimics another, where that one's start."""
        return self._starts("nq")

    @cached_property
    def v_starts(self) -> tuple[int, ...]:
        return self._starts("nv")

    def _starts(self, size: str) -> tuple[int, ...]:
        starts, at = {}, 0
        for joint in self.joints:
            if not joint.mimic:
                starts[joint.name] = at
                at += getattr(joint, size)
        return tuple(starts[j.mimic.joint if j.mimic else j.name] for j in self.joints)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The joints that have coordinates of their own, in order: all but those that mimic."""
        return self._parts

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        starts = zip(self.joints, self.q_starts, self.v_starts, strict=True)
        return tuple(
            Part(joint, joint.kind.manifold, slice(iq, iq + joint.nq), slice(iv, iv + joint.nv))
            for joint, iq, iv in starts
            if not joint.mimic
        )

    def joint_limits(self) -> list[tuple[Array, Array, Array, Array]]:
        """Lower, upper, velocity and effort limits of each part."""
        return [(j.lower, j.upper, j.velocity_limit, j.effort_limit) for j, *_ in self.parts]

    @cached_property
    def subtree_end(self) -> tuple[int, ...]:
        """The subtree of joint i is the joints range(i, subtree_end[i])."""
        end = list(range(1, self.njoints + 1))
        for i in reversed(range(self.njoints)):
            if self.joints[i].parent != WORLD:
                end[self.joints[i].parent] = max(end[self.joints[i].parent], end[i])
        return tuple(end)

    @property
    def mass(self) -> float:
        """The total mass [kg] of all bodies that move."""
        return sum(j.body.mass for j in self.joints)

    @property
    def has_mimic(self) -> bool:
        return any(j.mimic for j in self.joints)

    def joint_index(self, name: str) -> int:
        """The place of a joint in every array over joints."""
        try:
            return self.joint_names.index(name)
        except ValueError:
            raise UnknownName("joint", name, self.joint_names) from None

    def frame(self, name: str) -> Frame:
        """The frame of that name; joints, links and fixed joints all have one."""
        found = self._frames.get(name) if isinstance(name, str) else None
        if isinstance(name, np.ndarray):
            raise InputError("frame: expected the name of a frame, got an array; q comes before it")
        if found is None:
            raise UnknownName("frame", name, self._frames)
        return found

    @cached_property
    def _frames(self) -> Mapping[str, Frame]:
        return {f.name: f for f in self.frames}

    def same_robot(self, other: Model) -> bool:
        """Whether another model has the same joints and frames, such as a pickled copy; gravity may differ."""
        if self is other or (self.joints is other.joints and self.frames is other.frames):
            return True
        return _same_robot(self, other)

    def with_gravity(self, gravity: object) -> Model:
        """The same model under another gravity (3,) [m/s^2]."""
        return replace(self, gravity=numbers(gravity, "gravity"))

    def with_placements(self, placements: Mapping[str, object]) -> Model:
        """The same robot with the named joints placed elsewhere (4, 4) in their parents' frames."""
        if not isinstance(placements, Mapping):
            raise ModelError(f"placements: expected a mapping from joint names, got {type(placements).__name__}")
        joints = list(self.joints)
        for name, placement in placements.items():
            i = self.joint_index(name)
            joints[i] = replace(joints[i], placement=rigid(placement, f"placement of joint {name!r}"))
        return replace(self, joints=tuple(joints))

    def inertial_parameters(self) -> Array:
        """Those of all bodies, (10 njoints,); see `Body.parameters`."""
        return np.concatenate([joint.body.parameters for joint in self.joints])

    def with_inertial_parameters(self, parameters: Mapping[str, object] | object) -> Model:
        """The same robot with other inertial parameters: of all bodies (10 njoints,) or (njoints, 10), or (10,) by name
        of the joint.

        A warning tells which of them no body can have.
        """
        if not isinstance(parameters, Mapping):
            every = numbers(parameters, "inertial parameters")
            every = every.ravel() if every.shape == (self.njoints, 10) else every
            every = bounded(every, (10 * self.njoints,), "inertial parameters").reshape(-1, 10)
            parameters = dict(zip(self.joint_names, every, strict=True))
        joints = list(self.joints)
        for name, given in parameters.items():
            i = self.joint_index(name)
            body = Body.from_parameters(given, f"inertial parameters of joint {name!r}")
            joints[i] = replace(joints[i], body=body)
        defects = [f"joint {name!r}: {x}" for name in parameters for x in joints[self.joint_index(name)].body.defects]
        warn_of_places(PhysicsWarning, "impossible inertias", defects)
        return replace(self, joints=tuple(joints))

    @property
    def length_directions(self) -> Array:
        """For each joint (njoints, 6) the change of its placement, linear then angular, as its parent's link grows.

        It moves away from its parent's origin by 1 m for 1 m of length; zero for a joint at that origin.
        """
        found = np.zeros((self.njoints, 6))
        for row, joint in zip(found, self.joints, strict=True):
            length = np.linalg.norm(joint.placement[:3, 3])
            if length > 0:
                row[:3] = joint.placement[:3, :3].T @ joint.placement[:3, 3] / length
        return found


@lru_cache(maxsize=64)
def _same_robot(a: Model, b: Model) -> bool:
    return _equal(a.joints, b.joints) and _equal(a.frames, b.frames)


def _equal(a: Any, b: Any) -> bool:
    """Whether two parts of models are equal to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and bool((a == b).all())
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, Rebuilt):
        names = [f.name for f in fields(a) if f.compare]  # type: ignore[arg-type]
        return a is b or all(_equal(getattr(a, name), getattr(b, name)) for name in names)
    return a == b
