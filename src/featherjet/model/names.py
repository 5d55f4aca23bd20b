"""Names for the entries of q and v: the joint's name, and which part it is where a joint has several."""

from __future__ import annotations

from . import configuration
from .model import Model

# For each kind of joint with several coordinates: the parts of its q, and of its v.
PARTS = {
    "free": (("x", "y", "z", "qx", "qy", "qz", "qw"), ("x", "y", "z", "rx", "ry", "rz")),
    "spherical": (("qx", "qy", "qz", "qw"), ("rx", "ry", "rz")),
    "planar": (("x", "y", "cos", "sin"), ("x", "y", "rz")),
    "translation": (("x", "y", "z"), ("x", "y", "z")),
    "continuous": (("cos", "sin"), ("",)),
}


def coordinate_names(model: Model) -> tuple[list[str], list[str]]:
    """Names of the nq entries of q and of the nv entries of v, such as "elbow" or "root.qx"."""
    q_names, v_names = [], []
    for joint, *_ in configuration.parts(model):
        q_parts, v_parts = PARTS.get(joint.kind.name, (("",), ("",)))
        q_names += [f"{joint.name}.{part}".rstrip(".") for part in q_parts]
        v_names += [f"{joint.name}.{part}".rstrip(".") for part in v_parts]
    return q_names, v_names
