"""Contact forces along a motion, for trajectories and the viewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...evaluate.evaluator import Evaluator
from ..compiled.phase import CompiledPhase


class ContactForces(NamedTuple):
    """The forces of all contacts along a motion; where a contact does not hold, its force is zero.

    names, rows: of the contacts of all phases, and how many rows of force each has; forces (..., T, sum of rows): as
    `constrained_dynamics` gives them; arrows (..., T, contacts, 2, 3): points [m] and forces [N] in the world.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    forces: Array
    arrows: Array


def contact_forces(evaluator: Evaluator, phases: Sequence[CompiledPhase], xs: Array, us: Array) -> ContactForces:
    """The forces of a motion xs (..., T + 1, nx), us (..., T, nu); impacts, which last no time, have none."""
    held = [(p, p.robot.contacts) for p in phases if p.robot.contacts is not None and not p.robot.hits]
    rows: dict[str, int] = {}
    for _, contacts in held:
        rows |= {name: part.stop - part.start for name, part in zip(contacts.names, contacts.slices, strict=True)}
    starts = dict(zip(rows, np.cumsum([0, *rows.values()]).tolist(), strict=False))
    places = list(rows)
    before = us.shape[:-1]
    drawn: set[str] = set()  # contacts whose points are known at all times
    forces, arrows = np.zeros((*before, sum(rows.values()))), np.zeros((*before, len(rows), 2, 3))
    for phase, contacts in held:
        new = [(k, places.index(name)) for k, name in enumerate(contacts.names) if name not in drawn]
        if new:
            unloaded = contacts.arrows(
                evaluator, xs[..., :-1, : evaluator.model.nq], np.zeros((*before, contacts.rows))
            )
            for k, place in new:
                arrows[..., place, 0, :] = unloaded[..., k, 0, :]
            drawn |= set(contacts.names)
        motion = phase.motion(xs, us)
        loaded = contacts.arrows(evaluator, motion.q, motion.forces)
        for k, (name, part) in enumerate(zip(contacts.names, contacts.slices, strict=True)):
            forces[..., phase.at, starts[name] : starts[name] + rows[name]] = motion.forces[..., part]
            arrows[..., phase.at, places.index(name), :, :] = loaded[..., k, :, :]
    return ContactForces(tuple(rows), tuple(rows.values()), forces, arrows)
