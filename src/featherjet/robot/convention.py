"""Robots that speak another convention: everything in and out of them is translated (translation.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.quantities import INPUTS
from ..arrays import Out, into
from ..conventions.coordinates import Coordinates, Part
from ..conventions.rules import Results, translated
from ..errors import InputError
from ..evaluate.reference import Reference
from ..model.model import Array, Model
from .robot import Robot


class State(NamedTuple):
    """What `convert` was given, in other coordinates; None where it was not given."""

    q: Array
    v: Array | None
    a: Array | None
    tau: Array | None


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

    def _translated(self, run: Any, quantity: str, inputs: Any) -> Results:
        return translated(self._coordinates, run, quantity, inputs)

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
    arrays.common_batch({name: (x, 1) for name, x in given.items()})
    if isinstance(source, ConventionRobot):
        given = source._coordinates.plain(given)[0]
    if isinstance(target, ConventionRobot):
        given = target._coordinates.own(given)
    return State(given["q"], given.get("v"), given.get("a"), given.get("tau"))
