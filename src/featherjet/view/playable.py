"""What the viewer and the curves need to know of a motion, and of what has one."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple, Protocol

from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.model import Array, Model


class DrawnForces(NamedTuple):
    """The contacts and external forces of a motion, for the viewer to draw.

    names: one for each contact. surface (k, l, 3): points of the ground in the world [m], possibly none.
    arrows(t): where forces act [m] and the forces [N], (..., contacts, 2, 3) in the world, at times t (...).
    friction: the coefficient of each contact; empty if there is none.
    """

    names: tuple[str, ...]
    surface: Array
    arrows: Callable[[ArrayLike], Array]
    friction: tuple[float, ...] = ()


class Playable(Protocol):
    """A motion of a robot as a function of time t [s], a number or an array (...) from 0 to `duration`.

    A motion of many worlds has an axis of worlds behind those of time.
    """

    @property
    def model(self) -> Model: ...

    @property
    def duration(self) -> float:
        """[s]; 0 for a robot that stands still."""
        ...

    @property
    def caption(self) -> str:
        """One line that describes the motion."""
        ...

    @property
    def worlds(self) -> int:
        """How many robots move; 1 for a motion without an axis of worlds."""
        ...

    @property
    def contact_forces(self) -> DrawnForces | None:
        """Contacts to draw, if the motion has any."""
        ...

    def times(self, count: int = ...) -> Array:
        """`count` equally spaced times (count,) from 0 to `duration`."""
        ...

    def placements(self, t: ArrayLike) -> Array:
        """Placements (..., njoints, 4, 4) of the joints' frames in the world."""
        ...

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., nv) [N m, N]."""
        ...

    def energy_rate(self, t: ArrayLike) -> Array:
        """Weighted sum of squared torques (...)."""
        ...


@singledispatch
def motion_to_show(thing: object) -> Playable:
    """The motion that `show` plays of a robot, trajectory or transition; each registers its own."""
    raise InputError(f"show: expected robots, trajectories and transitions, got {type(thing).__name__}")
