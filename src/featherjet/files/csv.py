"""Results as tables, and files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..model import configuration
from ..model.model import Model
from ..transition.clip import whole
from .whole import written

if TYPE_CHECKING:
    from ..transition.result import Transition

PARTS = {
    "free": (("x", "y", "z", "qx", "qy", "qz", "qw"), ("x", "y", "z", "rx", "ry", "rz")),
    "spherical": (("qx", "qy", "qz", "qw"), ("rx", "ry", "rz")),
    "planar": (("x", "y", "cos", "sin"), ("x", "y", "rz")),
    "translation": (("x", "y", "z"), ("x", "y", "z")),
    "continuous": (("cos", "sin"), ("",)),
}


def write_whole(path: Path, text: str) -> Path:
    """Text into a file, in one step."""
    with written(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def coordinate_names(model: Model) -> tuple[list[str], list[str]]:
    """What each entry of q, and each of v, is called: the joint's name, and which part where there are several."""
    q, v = [], []
    for joint, *_ in configuration.parts(model):
        of_q, of_v = PARTS.get(joint.kind.name, (("",), ("",)))
        q += [f"{joint.name}.{part}".rstrip(".") for part in of_q]
        v += [f"{joint.name}.{part}".rstrip(".") for part in of_v]
    return q, v


def write_csv(result: Transition, path: Path, count: int) -> Path:
    """Columns t, q:..., v:..., a:..., tau:...; numbers are written so that they are read back the same."""
    t = result.times(whole("count", count, 2))
    of_q, of_v = coordinate_names(result.robot.model)
    header = ["t"] + [f"{x}:{name}" for x, names in zip("qva", (of_q, of_v, of_v), strict=True) for name in names]
    header += [f"tau:{name}" for name in of_v]
    rows = np.column_stack([t, result.q(t), result.v(t), result.a(t), result.tau(t)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([repr(x) for x in row] for row in rows.tolist())
    return write_whole(path, text.getvalue())
