"""Diagnostics of a model: massless bodies, joints without limits, and anything else that looks wrong."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import SingularMassMatrix
from ..robot.robot import Robot

NAMED = 5  # joints that a sentence lists


def diagnose(robot: Robot) -> list[str]:
    """One sentence for each kind of problem; empty if there is none."""
    joints = robot.model.joints
    found = [f"joint {j.name!r}: the body it carries has {defect}" for j in joints for defect in j.body.defects]
    scalar = [j for j in joints if j.kind.nq == 1 and not j.mimic]
    open_ended = (j.name for j in scalar if np.isinf(j.lower[0]) or np.isinf(j.upper[0]))
    crossed = (j.name for j in scalar if j.lower[0] > j.upper[0])
    motionless = (j.name for j in scalar if j.lower[0] == j.upper[0])
    massless = (j.name for j in joints if j.body.mass == 0)
    found += listed("no mass on {}", massless)
    found += listed("no position limit, or only one, on {}: random configurations take -pi to pi there", open_ended)
    found += listed("lower limit above upper on {}", crossed)
    found += listed("lower limit equal to upper on {}: random configurations never move there", motionless)
    return found + singular(robot)


def listed(sentence: str, names: Iterable[str]) -> list[str]:
    """A list of the sentence about these joints, empty if there are none."""
    names = list(names)
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [sentence.format(f"joint{'s' * (len(names) > 1)} {', '.join(names[:NAMED])}{more}")]


def singular(robot: Robot) -> list[str]:
    """A sentence if forward dynamics fails at a random configuration."""
    still = np.zeros(robot.nv)
    try:
        robot.forward_dynamics(robot.random_configuration(0), still, still)
    except SingularMassMatrix as error:
        return [f"no forward dynamics: {error}"]
    return []
