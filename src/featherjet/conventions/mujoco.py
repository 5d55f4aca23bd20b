"""Converts states between featherjet's and MuJoCo's coordinates, for models read from MJCF.

Both lay out q and v joint by joint with the same sizes. They differ in the order of quaternions (x y z w here, w x y z
in MuJoCo) and in the linear part of a free joint's velocity, acceleration and force (in the body's axes here, in the
world's in MuJoCo). All functions take batches; leading axes broadcast.
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..model.io.mjcf import unit
from ..model.model import Array, Model
from .coordinates import Coordinates

JOINTS = ("free", "spherical", "revolute", "prismatic")


def configuration_from_mujoco(model: Model, qpos: object) -> Array:
    """featherjet's q (..., nq) from MuJoCo's qpos (..., nq); normalises quaternions, as MuJoCo does."""
    return _from(model, q=qpos)["q"]


def configuration_to_mujoco(model: Model, q: object) -> Array:
    """MuJoCo's qpos (..., nq) from featherjet's q (..., nq)."""
    return _to(model, q=q)["q"]


def velocity_from_mujoco(model: Model, qpos: object, qvel: object) -> Array:
    """featherjet's v (..., nv) from MuJoCo's qpos and qvel."""
    return _from(model, q=qpos, v=qvel)["v"]


def velocity_to_mujoco(model: Model, q: object, v: object) -> Array:
    """MuJoCo's qvel (..., nv) from featherjet's q and v."""
    return _to(model, q=q, v=v)["v"]


def acceleration_from_mujoco(model: Model, qpos: object, qvel: object, qacc: object) -> Array:
    """featherjet's a = dv/dt (..., nv) from MuJoCo's qpos, qvel and qacc."""
    return _from(model, q=qpos, v=qvel, a=qacc)["a"]


def acceleration_to_mujoco(model: Model, q: object, v: object, a: object) -> Array:
    """MuJoCo's qacc (..., nv) from featherjet's q, v and a."""
    return _to(model, q=q, v=v, a=a)["a"]


def force_from_mujoco(model: Model, qpos: object, qfrc: object) -> Array:
    """featherjet's tau (..., nv) from MuJoCo's generalised force at qpos; both have the same power."""
    return _from(model, q=qpos, tau=qfrc)["tau"]


def force_to_mujoco(model: Model, q: object, tau: object) -> Array:
    """MuJoCo's generalised force (..., nv) from featherjet's tau at q."""
    return _to(model, q=q, tau=tau)["tau"]


def _from(model: Model, **given: object) -> dict[str, Array]:
    names = {"q": "qpos", "v": "qvel", "a": "qacc", "tau": "qfrc"}
    space = _coordinates(model)
    arrays = {name: _checked(x, space.nq if name == "q" else space.nv, names[name]) for name, x in given.items()}
    for joint in space.joints:
        _normalise(arrays["q"][..., joint.q], joint.chart.manifold.units)
    return space.to_standard(arrays)[0]


def _to(model: Model, **given: object) -> dict[str, Array]:
    space = _coordinates(model)
    arrays = {name: _checked(x, model.nq if name == "q" else model.nv, name) for name, x in given.items()}
    for joint in space.joints:
        _normalise(arrays["q"][..., joint.standard_q], joint.joint.kind.manifold.units)
    return space.from_standard(arrays)


def _coordinates(model: Model) -> Coordinates:
    for joint in model.joints:
        if joint.mimic or joint.kind.name not in JOINTS:
            raise InputError(f"joint {joint.name!r} ({joint.kind}): MuJoCo has no joint of this kind")
    return Coordinates(model, "mujoco")


def _checked(x: object, n: int, what: str) -> Array:
    try:
        array = np.array(x, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected an array of numbers of shape (..., {n})") from None
    if array.ndim == 0 or array.shape[-1] != n:
        raise InputError(f"{what}: expected shape (..., {n}), got {array.shape}")
    return array


def _normalise(q: Array, units: tuple[slice, ...]) -> None:
    for part in units:
        q[..., part] = unit(q[..., part])
