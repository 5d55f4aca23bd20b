"""A robot's tree of joints as rows of text, readable however long or bushy it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..model.model import WORLD, Array, Model
from ..model.parts import Joint

DEEPEST = 12  # levels of indentation; more would push everything else off the screen


class Row(NamedTuple):
    """One joint; `marks` draw its branch."""

    marks: str
    name: str
    kind: str
    axis: str
    limits: str
    q: str
    v: str
    mass: float


def outline(model: Model) -> Iterator[Row]:
    """The joints in order. Only a branching indents, so that a chain of any length stays in one column."""
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(model.joints):
        children.setdefault(joint.parent, []).append(i)
    stack = _branches(children.get(WORLD, []), ())
    while stack:
        i, ahead, below = stack.pop()
        yield row(model, i, "".join(_clipped(ahead)))
        stack += _branches(children.get(i, []), below)


def _branches(joints: list[int], above: tuple[str, ...]) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """For sibling joints, last first: index, marks before the name, and marks before the names of children."""
    if len(joints) < 2:
        return [(i, above, above) for i in joints]
    *most, last = [(i, (*above, "├─ "), (*above, "│  ")) for i in joints]
    return [(last[0], (*above, "└─ "), (*above, "   ")), *reversed(most)]


def _clipped(marks: tuple[str, ...]) -> tuple[str, ...]:
    hidden = len(marks) - DEEPEST
    return marks if hidden <= 0 else (f"({hidden} more) ", *marks[-DEEPEST:])


def row(model: Model, i: int, marks: str) -> Row:
    joint = model.joints[i]
    q, v = (span(start, size) for start, size in ((model.q_starts[i], joint.nq), (model.v_starts[i], joint.nv)))
    kind = joint.kind.name
    if joint.mimic:
        kind += f" = {joint.mimic.multiplier:g} {joint.mimic.joint}"
        kind += f" {joint.mimic.offset:+g}" if joint.mimic.offset else ""
    return Row(marks, joint.name, kind, axis(joint), limits(joint), q, v, joint.body.mass)


def span(start: int, size: int) -> str:
    """The range of entries of q or v, such as "3" or "0-5"."""
    return "" if size == 0 else str(start) if size == 1 else f"{start}-{start + size - 1}"


def axis(joint: Joint) -> str:
    """The letter of a coordinate axis, or the vector."""
    if not joint.kind.has_axis:
        return ""
    pitch = f", {joint.pitch:.3g} m/rad" if joint.kind.name == "helical" else ""
    return direction(joint.axis) + pitch


def direction(x: Array) -> str:
    k = int(np.argmax(np.abs(x)))
    if abs(abs(x[k]) - 1) < 1e-9:
        return ("" if x[k] > 0 else "-") + "xyz"[k]
    return " ".join(f"{e:.2f}" for e in x)


def limits(joint: Joint) -> str:
    """The limits of a joint with one coordinate; empty for others."""
    if joint.kind.nq != 1:
        return ""
    low, high = (f"{x[0]:.3g}" if np.isfinite(x[0]) else "none" for x in (joint.lower, joint.upper))
    return "none" if (low, high) == ("none", "none") else f"{low} to {high}"
