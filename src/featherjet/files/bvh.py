"""Motion-capture files (Biovision hierarchy, .bvh).

In a BVH file each joint has an offset from its parent and rotations about fixed axes, and all frames are aligned in the
rest pose. With R_i the rotation of joint i's frame in the world and R0_i the same at the neutral configuration, joint
i's frame in the file is therefore R_i R0_i^T, and its offset is the difference of positions at neutral. Joints that
also slide get position channels, which replace the offset. A robot with several roots, or a fixed one, hangs below a
motionless root called "world".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import arrays
from ..atomic import write_text
from ..errors import UnknownName
from ..math import rotations as so3
from ..model.model import WORLD, Array, Model

# Rotations from featherjet's world, where z is up.
UP_AXES = {"z": np.eye(3), "y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])}
POSITION = "Xposition Yposition Zposition"
ROTATION = "Zrotation Yrotation Xrotation"


def write_bvh(
    path: Path,
    model: Model,
    rest: Array,
    placements: Array,
    dt: float,
    up: str = "y",
    scale: float = 1.0,
    overwrite: bool = True,
) -> Path:
    """Write a motion sampled every `dt` seconds; lengths are multiplied by `scale`, angles are in degrees.

    rest (njoints, 4, 4) are the joints' placements in the world at the neutral configuration, placements
    (n, njoints, 4, 4) those of the motion. up: "y" or "z", the file's vertical axis.
    """
    if up not in UP_AXES:
        raise UnknownName("up axis", up, UP_AXES)
    scale, to_file = arrays.positive_number("scale", scale), UP_AXES[up]
    R0, p0 = to_file @ rest[:, :3, :3], scale * rest[:, :3, 3] @ to_file.T
    R = to_file @ placements[..., :3, :3] @ np.swapaxes(R0, -1, -2)
    p = scale * placements[..., :3, 3] @ to_file.T
    lines, order, world_root = _hierarchy(model, p0)
    rows = _channels(model, order, R, p)
    if world_root:
        rows = np.concatenate([np.zeros((len(rows), 3)), rows], 1)
    lines += ["MOTION", f"Frames: {len(rows)}", f"Frame Time: {dt:.9g}"]
    lines += [_joined(row) for row in rows.tolist()]
    return write_text(path, "\n".join(lines) + "\n", overwrite)


def _hierarchy(model: Model, p0: Array) -> tuple[list[str], list[int], bool]:
    """The lines of the skeleton, its joints in the order of their channels, and whether "world" is its root."""
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(model.joints):
        children.setdefault(joint.parent, []).append(i)
    lines, order = ["HIERARCHY"], []
    world_root = len(children[WORLD]) != 1 or model.joints[0].kind.name != "free"
    if world_root:
        lines += ["ROOT world", "{", "  OFFSET 0 0 0", f"  CHANNELS 3 {ROTATION}"]
        for i in children[WORLD]:
            _add_subtree(model, children, p0, i, 1, lines, order)
        lines.append("}")
    else:
        _add_subtree(model, children, p0 - p0[0], 0, 0, lines, order)
    return lines, order, world_root


def _add_subtree(
    model: Model, children: dict[int, list[int]], p0: Array, root: int, depth: int, lines: list[str], order: list[int]
) -> None:
    """Append joint `root` and everything below it; without recursion, since a chain may be long."""
    stack: list[tuple[int, int, Array] | str] = [(root, depth, np.zeros(3))]
    while stack:
        top = stack.pop()
        if isinstance(top, str):  # a closing brace
            lines.append(top)
            continue
        i, depth, parent_position = top
        joint, indent = model.joints[i], "  " * depth
        order.append(i)
        channels = f"6 {POSITION} {ROTATION}" if joint.kind.slides else f"3 {ROTATION}"
        name = "_".join(joint.name.split()) or f"joint{i}"
        lines += [
            f"{indent}{'JOINT' if depth else 'ROOT'} {name}",
            f"{indent}{{",
            f"{indent}  OFFSET {_joined(p0[i] - parent_position)}",
            f"{indent}  CHANNELS {channels}",
        ]
        stack.append(f"{indent}}}")
        below = children.get(i, [])
        if not below:
            lines += [f"{indent}  End Site", f"{indent}  {{", f"{indent}    OFFSET 0 0 0", f"{indent}  }}"]
        stack += [(k, depth + 1, p0[i]) for k in reversed(below)]


def _channels(model: Model, order: list[int], R: Array, p: Array) -> Array:
    """The rows (n, channels) of all joints, from rotations R (n, njoints, 3, 3) and positions p (n, njoints, 3)."""
    columns = []
    for i in order:
        parent = model.joints[i].parent
        parent_R = np.broadcast_to(np.eye(3), R[:, i].shape) if parent == WORLD else R[:, parent]
        to_parent = np.swapaxes(parent_R, -1, -2)
        if model.joints[i].kind.slides:
            from_parent = p[:, i] - (0.0 if parent == WORLD else p[:, parent])
            columns.append((to_parent @ from_parent[..., None])[..., 0])
        columns.append(np.degrees(so3.euler_zyx_from_matrix(to_parent @ R[:, i])))
    return np.concatenate(columns, 1)


def _joined(x: Array | list[float]) -> str:
    return " ".join(f"{value:.9g}" for value in x)
