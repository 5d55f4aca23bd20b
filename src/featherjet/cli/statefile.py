"""Files of a transition's ends: a state, or a clip of sampled motion, as JSON or .npz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import shortened
from ..errors import FeatherjetError, InputError
from ..files.npz import read_npz
from ..model.io.xmltree import read_bytes
from ..model.lock import coordinates
from ..robot.robot import Robot
from ..transitions import Clip

KNOWN = ("q", "v", "dt")


def read_state(robot: Robot, path: Path) -> tuple[Any, Any] | Clip:
    """(q, v), or a Clip if the file has a time step."""
    found = read_npz(path) if path.suffix.lower() == ".npz" else _read_json(path)
    if unknown := [name for name in found if name not in KNOWN]:
        raise InputError(f"{path}: {unknown[0]!r} is not known; a state has q and v, a clip also dt")
    if "q" not in found:
        raise InputError(f"{path}: has no 'q'")
    try:
        if "dt" in found:
            dt: Any = np.asarray(found["dt"])
            return Clip(found["q"], dt.item() if dt.size == 1 else dt, found.get("v")).checked(robot, "clip")
        v = found.get("v")
        q = robot.evaluator.checked_q("q", _configuration(robot, found["q"]))
        if q.ndim != 1:
            raise InputError(f"q: expected one state, got shape {q.shape}; a clip also has dt, its time step [s]")
        return q, np.zeros(robot.nv) if v is None else robot.evaluator.checked_v("v", _velocity(robot, v))
    except FeatherjetError as error:
        raise InputError(f"{path}: {error}") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:  # numbers that NumPy cannot take
        raise InputError(f"{path}: {error}") from None


def _read_json(path: Path) -> dict[str, Any]:
    text = read_bytes(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise InputError(f'{path}: expected an object such as {{"q": [...], "v": [...]}}')
    return found


def _configuration(robot: Robot, q: Any) -> Any:
    """A configuration from coordinates by joint names; joints not named are neutral."""
    if not isinstance(q, dict):
        return q
    out, model = robot.neutral(), robot.model
    for name, value in q.items():
        i = model.joint_index(name)
        joint, at = model.joints[i], model.q_starts[i]
        if joint.mimic:
            raise InputError(f"joint {name!r} mimics {joint.mimic.joint!r}; give that one")
        out[at : at + joint.nq] = coordinates(joint, value)
    return out


def _velocity(robot: Robot, v: Any) -> Any:
    """A velocity from entries by joint names; joints not named are at rest."""
    if not isinstance(v, dict):
        return v
    out, model = np.zeros(robot.nv), robot.model
    for name, value in v.items():
        i = model.joint_index(name)
        joint, at = model.joints[i], model.v_starts[i]
        try:
            x = np.atleast_1d(np.asarray(value, float))
        except (TypeError, ValueError, OverflowError):
            x = np.zeros(0)
        if joint.mimic or x.shape != (joint.nv,):
            raise InputError(f"v: joint {name!r}: expected {joint.nv} numbers, got {shortened(value)}")
        out[at : at + joint.nv] = x
    return out
