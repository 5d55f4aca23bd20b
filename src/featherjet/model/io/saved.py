"""A Model as JSON text and back, so that the file of a motion contains the robot it moves."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ...errors import InputError, ModelError
from ..joints import kind
from ..model import Model
from ..parts import Body, Frame, Joint, Mimic


def dumps(model: Model) -> str:
    """The model as JSON; floats keep every digit, so `loads` returns the same numbers."""
    joints = [
        {f.name: _as_json(getattr(j, f.name)) for f in fields(Joint) if f.name not in ("kind", "body", "mimic")}
        | {"kind": j.kind.name, "body": {k: _as_json(x) for k, x in asdict(j.body).items()}}
        | {"mimic": None if j.mimic is None else asdict(j.mimic)}
        for j in model.joints
    ]
    frames = [{f.name: _as_json(getattr(x, f.name)) for f in fields(Frame)} for x in model.frames]
    about = {"name": model.name, "gravity": _as_json(model.gravity), "source": model.source}
    return json.dumps({**about, "joints": joints, "frames": frames})


def loads(text: str) -> Model:
    """Read a model from text that `dumps` wrote."""
    try:
        found = json.loads(text)
        joints = tuple(_joint(j) for j in found["joints"])
        frames = tuple(Frame(**_arrays(f)) for f in found["frames"])
        return Model(found["name"], joints, frames, np.array(found["gravity"]), found.get("source", ""))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise InputError(f"not a saved featherjet model: {error!r}") from None


def _joint(found: dict[str, Any]) -> Joint:
    mimic = found.pop("mimic")
    body, named = Body(**_arrays(found.pop("body"))), kind(found.pop("kind"))
    return Joint(kind=named, body=body, mimic=None if mimic is None else Mimic(**mimic), **_arrays(found))


def _as_json(x: Any) -> Any:
    """Arrays as lists, everything else unchanged."""
    return x.tolist() if isinstance(x, np.ndarray) else x


def _arrays(found: dict[str, Any]) -> dict[str, Any]:
    """Lists as arrays, everything else unchanged."""
    return {k: np.array(x) if isinstance(x, list) else x for k, x in found.items()}
