"""Bilateral contacts: points and frames of a robot, fixed to the world or to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.contacts.scene import Contact, ContactSet
from ..errors import InputError, ModelError, UnknownName, sealed
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..evaluate.frames import canonical, placement
from ..evaluate.ready import ReadyCalls
from ..math.spatial import Transform
from ..model.builder import transform
from ..model.checks import rigid
from ..model.model import WORLD, Array, Model
from ..model.tree import Tree

AXES = ("world_aligned", "local")


@dataclass(frozen=True)
class PointContact:
    """A fixed point: a frame's origin or, in that frame, `offset` (3,) [m]. Its force has three components.

    other   a frame on another body that it is fixed to (a closed loop); None: the world
    at      where it is fixed: (3,) in the other frame (by default its origin) or in the world, where only Baumgarte's
            kp needs it
    axes    of its force: "world_aligned", or "local" for those of the frame
    """

    frame: str
    _: KW_ONLY
    other: str | None = None
    at: ArrayLike | None = None
    offset: ArrayLike = (0.0, 0.0, 0.0)
    axes: str = "world_aligned"

    @property
    def rows(self) -> int:
        return 3

    def placement(self, x: Any, what: str) -> Array:
        return transform(p=arrays.finite_exactly(what, x, (3,), "x y z"))


@dataclass(frozen=True)
class SurfaceContact:
    """A fixed frame, such as a flat foot: force, then moment about its origin, six components.

    Like PointContact, but `at` and `offset` are placements (4, 4).
    """

    frame: str
    _: KW_ONLY
    other: str | None = None
    at: ArrayLike | None = None
    offset: ArrayLike | None = None
    axes: str = "world_aligned"

    @property
    def rows(self) -> int:
        return 6

    def placement(self, x: Any, what: str) -> Array:
        try:
            return rigid(None if x is None else arrays.finite(what, x, (4, 4), "a placement"), what)
        except ModelError as e:
            raise InputError(str(e)) from None


Held = PointContact | SurfaceContact


@sealed
class Contacts:
    """Contacts of one robot that hold at the same time.

    baumgarte (kp, kd): makes relative accelerations -kp * error - kd * velocity instead of zero [1/s^2, 1/s].
    damping: mu [1/kg]: each contact accelerates by mu times its force. Redundant contacts hold without it, by the
    smallest forces, but only with it are their forces determined.
    """

    def __init__(
        self,
        robot: HasEvaluator,
        held: Sequence[Held],
        *,
        baumgarte: tuple[float, float] = (0.0, 0.0),
        damping: float = 0.0,
    ) -> None:
        self.held = tuple(held) if isinstance(held, Sequence) else ()
        if not self.held or not all(isinstance(c, PointContact | SurfaceContact) for c in self.held):
            raise InputError("Contacts: expected a robot and a list of PointContact and SurfaceContact, at least one")
        gains = arrays.finite_exactly("baumgarte", baumgarte, (2,), "kp, kd")
        mu = arrays.finite_exactly("damping", damping, (), "a number")
        if (gains < 0).any():
            raise InputError(f"baumgarte: kp and kd must not be negative, got {baumgarte!r}")
        if mu < 0:
            raise InputError(f"damping: must not be negative, got {damping!r}")
        evaluator = evaluator_of(robot, "Contacts")
        self.model: Model = evaluator.model
        self.damping = float(mu)
        tree, (kp, kd) = evaluator.tree, gains.tolist()
        each = tuple(contact_of(self.model, tree, c, kp or None, kd or None) for c in self.held)
        self.core = ContactSet(each, self.damping or None)
        self.settings = np.array(
            self.core.settings, float
        )  # inputs of the compiled code, so that all footholds share it
        self.outline = self.core.with_settings(np.full(len(self.settings), np.nan).tolist())
        self.ready: dict[Evaluator, ReadyCalls] = {}  # of the evaluator that ran last: its calls with these contacts
        self._refuse_repeated()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ready": {}}  # code is not pickled

    def __repr__(self) -> str:
        return f"<Contacts of {self.model.name}: {', '.join(self.names)}>"

    @property
    def rows(self) -> int:
        """The number of force components of all contacts."""
        return sum(c.rows for c in self.held)

    @property
    def names(self) -> tuple[str, ...]:
        """The frames of each contact; contacts of the same frames are numbered."""
        return numbered([c.frame if c.other is None else f"{c.frame}-{c.other}" for c in self.held])

    @property
    def slices(self) -> list[slice]:
        """Where each contact's force is in the vector of all forces."""
        return self.core.rows

    def split(self, forces: ArrayLike) -> dict[str, Array]:
        """Forces (..., rows) by contact: (..., 3) for a point; (..., 6), force then moment, for a surface."""
        forces = arrays.finite("forces", forces, (self.rows,), f"rows = {self.rows}")
        return {name: forces[..., at] for name, at in zip(self.names, self.slices, strict=True)}

    def arrows(self, evaluator: Evaluator, q: ArrayLike, forces: Array) -> Array:
        """The contacts' points and forces, (..., n, 2, 3) in the world, from forces (..., rows)."""
        out = []
        for c, f in zip(self.held, self.split(forces).values(), strict=True):
            T = placement(evaluator, q, c.frame) @ c.placement(c.offset, "offset")
            turned = (T[..., :3, :3] @ f[..., :3, None])[..., 0] if c.axes == "local" else f[..., :3]
            out.append(np.stack([T[..., :3, 3], turned], -2))
        return np.stack(out, -3)

    def surface(self, points: Array) -> Array:
        """An empty grid: there is no ground to draw."""
        return np.zeros((0, 0, 3))

    def _refuse_repeated(self) -> None:
        """Raise if a contact is given twice."""
        given: list[tuple[str, str | None, bytes]] = []
        for c in self.held:
            given.append((c.frame, c.other, c.placement(c.offset, "offset").tobytes()))
            if given[-1] in given[:-1]:
                raise InputError(f"contact {c.frame!r} is given twice")


def evaluator_of(robot: HasEvaluator, what: str) -> Evaluator:
    evaluator = getattr(robot, "evaluator", None)
    if not isinstance(evaluator, Evaluator):
        raise InputError(f"{what}: expected a robot first, such as fj.load(...), got {type(robot).__name__}")
    return evaluator


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with numbers after those that occur several times."""
    return tuple(n if names.count(n) == 1 else f"{n} {names[: k + 1].count(n)}" for k, n in enumerate(names))


def contact_of(model: Model, tree: Tree, held: Held, kp: float | None, kd: float | None) -> Contact:
    """A contact as algorithms take it."""
    what = f"contact {held.frame!r}"
    if held.axes not in AXES:
        raise UnknownName(f"axes of {what}", held.axes, AXES)
    frame = model.frame(held.frame)
    if frame.joint == WORLD:
        raise InputError(f"{what}: this frame is fixed to the world; name a moving frame, and this one as `other`")
    X = frame.placement @ held.placement(held.offset, f"{what}: offset")
    other, Y = WORLD, np.eye(4)
    if held.other is not None:
        second = model.frame(held.other)
        other, Y = second.joint, second.placement
        if other == frame.joint:
            raise InputError(f"{what}: {held.other!r} is on the same body; name a frame of another body")
    elif held.at is None and kp:
        raise InputError(
            f"{what}: baumgarte's kp needs a place to pull to: give `at`, such as robot.frame_placement(q, frame)"
        )
    if held.at is not None:
        Y = Y @ held.placement(held.at, f"{what}: at")
    first = canonical(tree, frame.joint, X)
    second = Transform.identity() if kp is None else canonical(tree, other, Y)
    point, world_axes = isinstance(held, PointContact), held.axes == "world_aligned"
    return Contact(frame.joint, first, other, second, point, world_axes, kp, kd)
