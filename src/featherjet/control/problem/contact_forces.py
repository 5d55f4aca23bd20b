"""Contact forces along a motion, for trajectories and the viewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...evaluate.evaluator import Evaluator
from ..compiled.phase import Segment


class ContactForces(NamedTuple):
    """Contacts of all phases by name, rows of forces each has, forces (..., T, sum of rows) as `constrained_dynamics`
    gives them, and arrows (..., T, contacts, 2, 3), points [m] and forces [N] in the world; where a contact does not
    hold, its force is zero."""

    names: tuple[str, ...]
    rows: tuple[int, ...]
    forces: Array
    arrows: Array


def contact_forces(evaluator: Evaluator, segments: Sequence[Segment], xs: Array, us: Array) -> ContactForces:
    """The forces of a motion xs (..., T + 1, nx), us (..., T, nu); impacts, which last no time, have none."""
    held = [s for s in segments if s.stage.body.contacts is not None and not s.stage.body.hits]
    rows: dict[str, int] = {}
    for s in held:
        rows |= {name: part.stop - part.start for name, part in _parts(s)}
    starts = dict(zip(rows, np.cumsum([0, *rows.values()]).tolist(), strict=False))
    places = list(rows)
    before = us.shape[:-1]
    followed: set[str] = set()  # contacts whose points are known at all times
    forces, arrows = np.zeros((*before, sum(rows.values()))), np.zeros((*before, len(rows), 2, 3))
    for s in held:
        contacts = s.stage.body.contacts
        assert contacts is not None
        new = [(k, places.index(name)) for k, name in enumerate(contacts.names) if name not in followed]
        if new:
            unloaded = contacts.arrows(
                evaluator, xs[..., :-1, : evaluator.model.nq], np.zeros((*before, contacts.rows))
            )
            for k, place in new:
                arrows[..., place, 0, :] = unloaded[..., k, 0, :]
            followed |= set(contacts.names)
        motion = s.stage.motion(xs[..., s.knots, :], us[..., s.knots, :])
        drawn = contacts.arrows(evaluator, motion.q, motion.forces)
        for k, (name, part) in enumerate(_parts(s)):
            forces[..., s.knots, starts[name] : starts[name] + rows[name]] = motion.forces[..., part]
            arrows[..., s.knots, places.index(name), :, :] = drawn[..., k, :, :]
    return ContactForces(tuple(rows), tuple(rows.values()), forces, arrows)


def _parts(s: Segment) -> list[tuple[str, slice]]:
    """The contacts of a segment and their rows of forces."""
    contacts = s.stage.body.contacts
    return [] if contacts is None else list(zip(contacts.names, contacts.slices, strict=True))
