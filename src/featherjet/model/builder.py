"""Build a Model joint by joint; all loaders and the built-in robots use this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, ModelWarning, PhysicsWarning, warn_of_places
from .checks import bounded, frozen, numbers, require_name, rigid
from .joints import kind as kind_named
from .model import GRAVITY, WORLD, Array, Model
from .parts import Body, Frame, Joint, Mimic


def transform(R: Any = None, p: Any = None) -> Array:
    """A homogeneous transform (4, 4) from a rotation matrix and an origin."""
    T = np.eye(4)
    if R is not None:
        T[:3, :3] = R
    if p is not None:
        T[:3, 3] = p
    return T


def per_dof(value: object, n: int, what: str) -> Array:
    """An array (n,) from one value for all degrees of freedom or from n values."""
    a = numbers(value, what)
    return frozen(np.full(n, a) if a.ndim == 0 else a, (n,), what)


def nonnegative(value: object, n: int, where: str, what: str) -> Array:
    """The same of numbers that must not be negative: "velocity limit", "armature"."""
    found = per_dof(value, n, f"{where}{what}")
    if (found < 0).any():
        raise ModelError(f"{where}its {what} must not be negative, got {value}")
    return found


def direction(axis: object, joint: str) -> Array:
    """The axis of a joint, (3,), as a unit vector."""
    axis = frozen(axis, (3,), f"joint {joint!r}: axis")
    length = np.linalg.norm(axis)
    if not np.isfinite(length) or length < 1e-9:
        raise ModelError(f"joint {joint!r}: the axis {axis} has no direction")
    return frozen(axis / length, (3,), "axis")


@dataclass
class _Draft:
    settings: dict[str, Any]
    body: Body = field(default_factory=Body)


class ModelBuilder:
    """Collects joints, bodies and frames, parents before children, and builds the immutable Model.

    `build` puts the joints in depth-first order, the children of a joint in the order they were added, and warns once
    of all that is physically impossible; a builder that is `strict` raises an error at once. source: the file, if any.
    """

    __slots__ = ("_drafts", "_dubious", "_frames", "_impossible", "gravity", "name", "source", "strict")

    def __init__(
        self, name: str, *, gravity: Sequence[float] = GRAVITY, strict: bool = False, source: str = ""
    ) -> None:
        self.name, self.gravity, self.strict, self.source = name, gravity, strict, source
        self._impossible: list[str] = []
        self._dubious: dict[str, list[str]] = {}  # by kind
        self._drafts: dict[str, _Draft] = {}
        self._frames: list[tuple[str, str | None, Array, str]] = []

    def __repr__(self) -> str:
        return f"<ModelBuilder {self.name}: {len(self._drafts)} joints, {len(self._frames)} frames>"

    def add_joint(
        self,
        name: str,
        kind: str,
        parent: str | None = None,
        placement: ArrayLike | None = None,
        *,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        pitch: float = 0.0,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        velocity_limit: ArrayLike = np.inf,
        effort_limit: ArrayLike = np.inf,
        armature: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        stiffness: float = 0.0,
        spring: float = 0.0,
        mimic: Mimic | None = None,
    ) -> str:
        """Add a joint and a frame of the same name, and return the name.

        kind: "revolute", "continuous", "prismatic", "helical" (with `pitch` [m/rad]), "spherical", "translation",
        "planar" or "free". parent: a joint's name, or None for the world. placement (4, 4): of its frame at zero
        displacement, in the parent's frame. axis (3,): of the first four kinds, in its own frame. Limits and what acts
        per degree of freedom are one number for all, or an array: lower, upper (nq,) [rad or m], velocity_limit
        [rad/s or m/s], effort_limit [N m or N], armature [kg m^2 or kg], damping, friction (nv,), each in SI units.
        stiffness and spring: of a spring that pulls one coordinate to `spring`. mimic: the joint that it follows.
        """
        self._refuse_bad_place(name, parent, mimic)
        k = kind_named(kind)
        where = f"joint {name!r}: "
        low, high = (per_dof(x, k.nq, f"{where}{what} limits") for x, what in ((lower, "lower"), (upper, "upper")))
        if (low > high).any() and not self.source:  # readers of files warn of it, by line
            raise ModelError(f"{where}lower limit {low} above upper limit {high}; exchange them")
        bounded(per_dof(armature, k.nv, where + "armature"), (k.nv,), where + "armature")
        self._drafts[name] = _Draft(
            dict[str, Any](
                name=name,
                kind=k,
                parent=parent,
                placement=rigid(placement, where + "placement"),
                axis=direction(axis, name),
                pitch=float(bounded(pitch, (), where + "pitch")),
                lower=low,
                upper=high,
                velocity_limit=nonnegative(velocity_limit, k.nv, where, "velocity limit"),
                effort_limit=nonnegative(effort_limit, k.nv, where, "effort limit"),
                armature=nonnegative(armature, k.nv, where, "armature"),
                damping=per_dof(damping, k.nv, where + "damping"),
                friction=per_dof(friction, k.nv, where + "friction"),
                stiffness=stiffness,
                spring=spring,
                mimic=mimic,
            )
        )
        self.add_frame(name, name, kind="joint")
        return name

    def _refuse_bad_place(self, name: str, parent: str | None, mimic: Mimic | None) -> None:
        """Raise unless a joint has a name of its own, its parent is there, and it mimics as a Mimic says."""
        require_name("joint", name)
        if not name:
            raise ModelError("joint: its name is empty")
        if name in self._drafts:
            raise ModelError(f"joint {name!r} is defined twice")
        if parent is not None and (not isinstance(parent, str) or parent not in self._drafts):
            raise ModelError(f"joint {name!r}: its parent {parent!r} has not been added")
        if mimic is not None and not isinstance(mimic, Mimic):
            raise ModelError(f"joint {name!r}: mimic: expected a Mimic, such as Mimic({str(mimic)[:40]!r}), or None")

    def add_body(
        self,
        joint: str | None,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
        placement: ArrayLike | None = None,
        *,
        name: str | None = None,
        label: str | None = None,
    ) -> None:
        """Weld a body to a joint's moving frame, or to the world (None), where its mass has no effect.

        `com` (3,) and `inertia` (3, 3) about the com are in the frame `placement` (4, 4), itself in the joint's frame.
        With `name`, a frame of kind "body" is added too. `label` names the body in messages, for example by its place
        in a file.
        """
        label = label or f"body {name or joint!r}"
        T = rigid(placement, f"{label}: placement")
        body = Body(mass, com, np.zeros((3, 3)) if inertia is None else inertia)  # type: ignore[arg-type]
        for defect in body.defects:
            self._remark(self._impossible, f"{label}: {defect}")
        if joint is not None:
            draft = self._draft(joint, "body")
            draft.body = draft.body + body.placed(T)
        if name is not None:
            self.add_frame(name, joint, T, kind="body")

    def add_frame(
        self, name: str, joint: str | None, placement: ArrayLike | None = None, *, kind: str = "operational"
    ) -> None:
        """Add a named frame to a joint's body, or to the world (None)."""
        if joint is not None:
            self._draft(joint, f"frame {name!r}")
        self._frames.append((name, joint, rigid(placement, f"frame {name!r}"), kind))

    def doubt(self, message: str, kind: str = "dubious settings") -> None:
        """Warn, when the model is built, of something dubious that can be computed with; an error if strict.

        One warning tells of all of a kind.
        """
        self._remark(self._dubious.setdefault(kind, []), message)

    def _remark(self, remarks: list[str], message: str) -> None:
        if self.strict:
            raise ModelError(message)
        remarks.append(message)

    def build(self) -> Model:
        """The model of everything added so far."""
        model = self._built()
        warn_of_places(PhysicsWarning, "impossible inertias", self._impossible, self.source)
        for kind, messages in self._dubious.items():
            warn_of_places(ModelWarning, kind, messages, self.source)
        return model

    def _built(self) -> Model:
        children: dict[str | None, list[str]] = {}
        for name, draft in self._drafts.items():
            children.setdefault(draft.settings["parent"], []).append(name)
        index: dict[str | None, int] = {None: WORLD}
        joints = []
        stack = list(reversed(children.get(None, [])))
        while stack:
            name = stack.pop()
            draft = self._drafts[name]
            index[name] = len(joints)
            settings: dict[str, Any] = {**draft.settings, "parent": index[draft.settings["parent"]]}
            joints.append(Joint(**settings, body=draft.body))
            stack.extend(reversed(children.get(name, [])))
        frames, taken = [], set()
        for name, joint, placement, kind in self._frames:
            if name in taken:  # URDF allows a link and a joint of the same name: the first keeps it
                if kind == "operational":
                    raise ModelError(f"frame {name!r} is defined twice")
                continue
            taken.add(name)
            frames.append(Frame(name, index[joint], placement, kind))
        return Model(self.name, tuple(joints), tuple(frames), self.gravity)  # type: ignore[arg-type]

    def _draft(self, joint: str, what: str) -> _Draft:
        if not isinstance(joint, str) or joint not in self._drafts:
            raise ModelError(f"{what}: there is no joint {joint!r}")
        return self._drafts[joint]
