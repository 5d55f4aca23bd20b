"""Motion-capture files (Biovision hierarchy).

In a BVH file a joint has an offset from its parent and rotations about fixed axes, and in the rest pose no frame is
turned. So with R_i the rotation of joint i's frame in the world, and R0_i the same at the neutral configuration, joint
i's frame in the file is R_i R0_i^T, and its offset is the difference of positions at neutral. Joints that also slide
have position channels, which replace the offset. A robot with several roots, or a fixed one, hangs below a root called
"world", which stands still.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UnknownName
from ..math import rotations as so3
from ..model.model import WORLD, Model
from ..robot.robot import Robot
from ..transition.clip import positive
from .csv import write_whole

if TYPE_CHECKING:
    from ..transition.result import Transition

Array = np.ndarray
UP = {"z": np.eye(3), "y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])}  # from our world, where z is up
SLIDING = ("prismatic", "helical", "translation", "planar", "free")
POSITION = "Xposition Yposition Zposition"
ROTATION = "Zrotation Yrotation Xrotation"


def write_bvh(result: Transition, path: Path, fps: float, up: str, scale: float, joined: bool) -> Path:
    """The motion at `fps` frames a second; lengths times `scale`, degrees."""
    if up not in UP:
        raise UnknownName("up axis", up, UP)
    fps, scale = positive("fps", fps), positive("scale", scale)
    if joined and (result.before is not None or result.after is not None):
        clip = result.joined(1 / fps)
        q, dt = np.asarray(clip.q), clip.dt
    else:
        n = max(2, round(result.duration * fps) + 1)
        q, dt = result.q(result.times(n)), result.duration / (n - 1)
    return write_whole(path, text(result.robot, q, dt, UP[up], scale))


def text(robot: Robot, q: Array, dt: float, turn: Array, scale: float) -> str:
    """The file of configurations (n, nq), dt seconds apart."""
    model = robot.model
    rest, moved = robot.forward_kinematics(robot.neutral()), robot.forward_kinematics(q)
    R0, p0 = turn @ rest[:, :3, :3], scale * rest[:, :3, 3] @ turn.T
    R = turn @ moved[..., :3, :3] @ np.swapaxes(R0, -1, -2)
    p = scale * moved[..., :3, 3] @ turn.T
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(model.joints):
        children.setdefault(joint.parent, []).append(i)
    single = len(children[WORLD]) == 1 and model.joints[0].kind.name == "free"
    lines, order = ["HIERARCHY"], []
    if single:
        p0 = p0 - p0[0]
        _node(model, children, p0, np.zeros(3), 0, 0, lines, order, "ROOT")
    else:
        lines += ["ROOT world", "{", "  OFFSET 0 0 0", f"  CHANNELS 3 {ROTATION}"]
        for i in children[WORLD]:
            _node(model, children, p0, np.zeros(3), i, 1, lines, order, "JOINT")
        lines.append("}")
    columns = [] if single else [np.zeros((len(q), 3))]
    for i in order:
        parent = model.joints[i].parent
        Rp = np.broadcast_to(np.eye(3), R[:, i].shape) if parent == WORLD else R[:, parent]
        back = np.swapaxes(Rp, -1, -2)
        if model.joints[i].kind.name in SLIDING:
            from_parent = p[:, i] - (0.0 if parent == WORLD else p[:, parent])
            columns.append((back @ from_parent[..., None])[..., 0])
        columns.append(np.degrees(so3.euler_zyx_from_matrix(back @ R[:, i])))
    rows = np.concatenate(columns, 1)
    lines += ["MOTION", f"Frames: {len(q)}", f"Frame Time: {dt:.9g}"]
    lines += [" ".join(f"{x:.9g}" for x in row) for row in rows.tolist()]
    return "\n".join(lines) + "\n"


def _node(
    model: Model, children: dict, p0: Array, above: Array, i: int, depth: int, lines: list, order: list, word: str
) -> None:
    """Joint i and all below it; a chain may be long, so without recursion."""
    stack: list[tuple[int, int, Array, str] | str] = [(i, depth, above, word)]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            lines.append(top)
            continue
        i, depth, above, word = top
        joint, tab = model.joints[i], "  " * depth
        order.append(i)
        channels = f"6 {POSITION} {ROTATION}" if joint.kind.name in SLIDING else f"3 {ROTATION}"
        name = "_".join(joint.name.split()) or f"joint{i}"
        lines += [f"{tab}{word} {name}", f"{tab}{{", f"{tab}  OFFSET {_numbers(p0[i] - above)}"]
        lines.append(f"{tab}  CHANNELS {channels}")
        stack.append(f"{tab}}}")
        below = children.get(i, [])
        if not below:
            lines += [f"{tab}  End Site", f"{tab}  {{", f"{tab}    OFFSET 0 0 0", f"{tab}  }}"]
        stack += [(k, depth + 1, p0[i], "JOINT") for k in reversed(below)]


def _numbers(x: Array) -> str:
    return " ".join(f"{v:.9g}" for v in x)
