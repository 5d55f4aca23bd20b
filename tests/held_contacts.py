"""A tree of all kinds of joints, and contacts drawn on it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import featherjet as fj
from featherjet.model.builder import transform


def two_trees() -> fj.Model:
    """Two roots, branches, and joints of one, three and six dofs; few kinds, since each costs compile time."""
    rng = np.random.default_rng(2)
    b = fj.ModelBuilder("two_trees")
    kinds = {"base": "free", "arm": "revolute", "wrist": "spherical", "leg": "revolute", "slide": "prismatic"}
    parents = {"arm": "base", "wrist": "arm", "leg": "base", "shin": "leg", "hand": "slide"}
    for name in ("base", "arm", "wrist", "leg", "shin", "slide", "hand"):
        place = transform(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
        kind = kinds.get(name, "revolute")
        b.add_joint(name, kind, parents.get(name), place, axis=rng.normal(size=3), armature=0.05)
        b.add_body(name, rng.uniform(1, 3), rng.normal(size=3), np.diag(rng.uniform(1, 1.5, 3)))
    return b.build()


TREE = two_trees()


def draw(robot: fj.Robot, rng: np.random.Generator, closed: bool) -> fj.Contacts:
    """Up to four points and surfaces, of which the first, if `closed`, are held by other bodies."""
    frames = [f.name for f in robot.model.frames if f.joint >= 0]

    def placement() -> np.ndarray:
        return transform(pin.exp3(rng.normal(size=3)), rng.normal(size=3))

    held: list[fj.PointContact | fj.SurfaceContact] = []
    for k in range(int(rng.integers(1, 5))):
        frame, other = map(str, rng.choice(frames, 2, replace=False))
        apart = robot.model.frame(frame).joint != robot.model.frame(other).joint
        what = other if closed and apart and k < 2 else None
        at, offset, axes = placement(), placement(), str(rng.choice(["local", "world_aligned"]))
        held.append(
            fj.SurfaceContact(frame, other=what, at=at, offset=offset, axes=axes)
            if rng.random() < 0.5
            else fj.PointContact(frame, other=what, at=at[:3, 3], offset=offset[:3, 3], axes=axes)
        )
    gains = (rng.uniform(0, 9), rng.uniform(0, 5)) if rng.random() < 0.7 else (0.0, 0.0)
    return fj.Contacts(robot, held, baumgarte=gains, damping=rng.uniform(0.1, 2))
