"""States in MuJoCo's coordinates and in ours, for models read from MJCF.

Both lay out q and v joint by joint with the same sizes. They differ in the order of quaternions (w x y z
there, x y z w here) and in the linear part of a free joint's velocity, acceleration and force (in the world's
axes there, in the body's here). A time derivative of body coordinates turns with the body, hence
accelerations need the velocity: a = R^T qacc - w x (R^T qvel). All functions take batches, whose leading axes
broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import InputError
from .model import Array, Model

WXYZ_FROM_XYZW = (3, 0, 1, 2)
XYZW_FROM_WXYZ = (1, 2, 3, 0)


def configuration_from_mujoco(model: Model, qpos: object) -> Array:
    """Our q (..., nq) from MuJoCo's qpos (..., nq); quaternions are normalised, as MuJoCo does on use."""
    return _requaternioned(model, _checked(qpos, model.nq, "qpos"), XYZW_FROM_WXYZ)


def configuration_to_mujoco(model: Model, q: object) -> Array:
    """MuJoCo's qpos (..., nq) from our q (..., nq)."""
    return _requaternioned(model, _checked(q, model.nq, "q"), WXYZ_FROM_XYZW)


def velocity_from_mujoco(model: Model, qpos: object, qvel: object) -> Array:
    """Our v (..., nv) at MuJoCo's qpos and qvel."""
    q = configuration_from_mujoco(model, qpos)
    return _turned(model, q, _checked(qvel, model.nv, "qvel"), to_body=True)


def velocity_to_mujoco(model: Model, q: object, v: object) -> Array:
    """MuJoCo's qvel (..., nv) at our q and v."""
    return _turned(model, _checked(q, model.nq, "q"), _checked(v, model.nv, "v"), to_body=False)


def acceleration_from_mujoco(model: Model, qpos: object, qvel: object, qacc: object) -> Array:
    """Our a = dv/dt (..., nv) at MuJoCo's qpos, qvel and qacc."""
    q = configuration_from_mujoco(model, qpos)
    v = velocity_from_mujoco(model, qpos, qvel)
    a = _turned(model, q, _checked(qacc, model.nv, "qacc"), to_body=True)
    return _minus_turning(model, a, v, sign=1.0)


def acceleration_to_mujoco(model: Model, q: object, v: object, a: object) -> Array:
    """MuJoCo's qacc (..., nv) at our q, v and a."""
    a = _minus_turning(model, _checked(a, model.nv, "a"), _checked(v, model.nv, "v"), sign=-1.0)
    return _turned(model, _checked(q, model.nq, "q"), a, to_body=False)


def force_from_mujoco(model: Model, qpos: object, qfrc: object) -> Array:
    """Our tau (..., nv) from a generalised force of MuJoCo's at qpos; its power is the same."""
    return velocity_from_mujoco(model, qpos, qfrc)


def force_to_mujoco(model: Model, q: object, tau: object) -> Array:
    """MuJoCo's generalised force (..., nv) from our tau at q."""
    return velocity_to_mujoco(model, q, tau)


def _checked(x: object, n: int, what: str) -> Array:
    try:
        array = np.array(x, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected an array of numbers of shape (..., {n})") from None
    if array.ndim == 0 or array.shape[-1] != n:
        raise InputError(f"{what}: expected shape (..., {n}), got {array.shape}")
    return array


def _joints(model: Model) -> Iterator[tuple[str, int, int]]:
    """Kind, first coordinate and first velocity of each joint that MuJoCo writes differently."""
    for joint, q, v in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if joint.mimic or joint.kind.name not in ("free", "spherical", "revolute", "prismatic"):
            raise InputError(f"joint {joint.name!r} ({joint.kind}): MuJoCo has no such joint")
        if joint.kind.name in ("free", "spherical"):
            yield joint.kind.name, q, v


def _requaternioned(model: Model, q: Array, order: tuple[int, ...]) -> Array:
    for kind, start, _ in _joints(model):
        at = slice(start + 3, start + 7) if kind == "free" else slice(start, start + 4)
        q[..., at] = unit(q[..., at])[..., order]
    return q


def _turned(model: Model, q: Array, v: Array, to_body: bool) -> Array:
    """The linear parts of free joints, turned from the world's axes to the body's or back."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    out = np.array(np.broadcast_to(v, (*batch, v.shape[-1])))
    for kind, iq, iv in _joints(model):
        if kind == "free":
            R = rotation(q[..., iq + 3 : iq + 7][..., WXYZ_FROM_XYZW])
            subscripts = "...ji,...j->...i" if to_body else "...ij,...j->...i"
            out[..., iv : iv + 3] = np.einsum(subscripts, R, v[..., iv : iv + 3])
    return out


def _minus_turning(model: Model, a: Array, v: Array, sign: float) -> Array:
    """a - sign * w x v in the linear parts of free joints."""
    out = np.array(np.broadcast_to(a, np.broadcast_shapes(a.shape, v.shape)))
    for kind, _, i in _joints(model):
        if kind == "free":
            out[..., i : i + 3] -= sign * np.cross(v[..., i + 3 : i + 6], v[..., i : i + 3])
    return out


def rotation(wxyz: Array) -> Array:
    """Rotation matrices (..., 3, 3) of quaternions w x y z (..., 4), which need not be of unit length."""
    w, x, y, z = np.moveaxis(unit(wxyz), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def unit(quaternion: Array) -> Array:
    """Quaternions of unit length; those that are so to rounding stay as they are."""
    norm = np.linalg.norm(quaternion, axis=-1, keepdims=True)
    if not (np.isfinite(norm).all() and (norm > 1e-15).all()):
        raise InputError("a quaternion is zero or not finite")
    return np.where(np.abs(norm - 1) < 1e-15, quaternion, quaternion / norm)
