"""The immutable description of a robot: a tree of joints, each with one rigid body, and named frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from ..errors import InputError, ModelError, PhysicsWarning, UnknownName, warn_of_places
from .checks import Array, bounded, numbers, require_name, rigid
from .parts import Body, Frame, Joint, Part, Rebuilt, equal

WORLD = -1
GRAVITY = (0.0, 0.0, -9.81)
MODEST = 1e-12, 1e9  # of a model's numbers: with inputs below 1e8, no result then exceeds the largest float32


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
        """The inertial parameters of all bodies, (10 njoints,); see `Body.parameters`."""
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
    return equal(a.joints, b.joints) and equal(a.frames, b.frames)
