"""Names for the entries of q and v: the joint's name, and which part it is where a joint has several."""

from __future__ import annotations

from . import configuration
from .model import Model


def coordinate_names(model: Model) -> tuple[list[str], list[str]]:
    """Names of the nq entries of q and of the nv entries of v, such as "elbow" or "root.qx"."""
    q_names, v_names = [], []
    for joint, *_ in configuration.parts(model):
        q_names += [f"{joint.name}.{part}".rstrip(".") for part in joint.kind.q_parts]
        v_names += [f"{joint.name}.{part}".rstrip(".") for part in joint.kind.v_parts]
    return q_names, v_names
