"""Robots made by code, with no files: the papers' test systems, and an arm, a quadruped and a humanoid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .builder import ModelBuilder, transform
from .joints import KINDS
from .model import Array, Model


def chain(n: int, seed: int = 0) -> Model:
    """A serial chain of n revolute joints about their own z axes, with random placements and inertias."""
    return _revolute_tree(f"chain{n}", n, 1, seed)


def tree(n: int, branching: int = 2, seed: int = 0) -> Model:
    """A tree of n revolute joints in which every body has up to `branching` children ([RBDA] sec. 4.1.4)."""
    if not isinstance(branching, int) or branching < 1:
        raise InputError(f"branching must be a positive whole number, got {branching!r}")
    return _revolute_tree(f"tree{n}x{branching}", n, branching, seed)


def random_tree(n: int, seed: int = 0) -> Model:
    """A tree of n joints of every kind, of random shape (several roots too), placements, axes and inertias."""
    _check_count(n)
    rng = np.random.default_rng(seed)
    kinds = list(KINDS)
    order = [*rng.permutation(kinds), *rng.choice(kinds, max(0, n - len(kinds)))][:n]
    b = ModelBuilder(f"random_tree{n}")
    for i, kind in enumerate(order):
        parent = None if i == 0 or rng.random() < 0.1 else f"joint{rng.integers(max(0, i - 4), i)}"
        axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.3 else rng.normal(size=3)
        b.add_joint(
            f"joint{i}",
            str(kind),
            parent,
            _random_placement(rng),
            axis=axis,
            pitch=rng.uniform(-0.3, 0.3),
            armature=rng.uniform(0, 0.1),
        )
        b.add_body(f"joint{i}", *_random_body(rng), name=f"link{i}")
    return b.build()


def arm() -> Model:
    """A seven-axis arm of 18 kg, shoulder-elbow-wrist, with a tool frame."""
    b = ModelBuilder("arm")
    reach = [0.34, 0.0, 0.4, 0.0, 0.39, 0.0, 0.12]
    mass = [4.0, 3.6, 3.2, 2.8, 2.2, 1.4, 0.8]
    effort = [176.0, 176.0, 110.0, 110.0, 110.0, 40.0, 40.0]
    parent = None
    for k in range(7):
        twist = k % 2 == 0
        limit = 2.9 if twist else 2.1
        parent = b.add_joint(
            f"joint{k + 1}",
            "revolute",
            parent,
            transform(p=(0.0, 0.0, reach[k])),
            axis=(0, 0, 1) if twist else (0, 1, 0),
            lower=-limit,
            upper=limit,
            velocity_limit=2.0,
            effort_limit=effort[k],
            armature=0.05,
            damping=0.1,
        )
        size = np.array([0.12, 0.12, 0.22]) * (1 - 0.08 * k)
        b.add_body(parent, mass[k], (0.0, 0.02 * (-1) ** k, 0.06), _box(mass[k], size), name=f"link{k + 1}")
    b.add_frame("tool", parent, transform(p=(0.0, 0.0, 0.1)))
    return b.build()


def quadruped() -> Model:
    """A floating-base quadruped of 30 kg with three joints in each leg and a frame at each foot."""
    b = ModelBuilder("quadruped")
    b.add_joint("root", "free")
    b.add_body("root", 16.0, (0.0, 0.0, 0.02), _box(16.0, (0.6, 0.3, 0.2)), name="trunk")
    for name, x, y in (("LF", 1, 1), ("LH", -1, 1), ("RF", 1, -1), ("RH", -1, -1)):
        _leg(
            b,
            name,
            "root",
            (0.3 * x, 0.12 * y, 0.0),
            side=y,
            lengths=(0.08, 0.3, 0.3),
            masses=(1.6, 1.5, 0.4),
        )
        b.add_frame(f"{name}_foot", f"{name}_KFE", transform(p=(0.0, 0.0, -0.3)))
    return b.build()


def humanoid() -> Model:
    """A floating-base humanoid of 72 kg with 38 degrees of freedom: legs 6, arms 7, waist 2, neck 2, grippers 1."""
    b = ModelBuilder("humanoid")
    b.add_joint("root", "free")
    b.add_body("root", 10.0, (0.0, 0.0, 0.05), _box(10.0, (0.2, 0.32, 0.2)), name="pelvis")
    b.add_joint("waist_yaw", "revolute", "root", transform(p=(0, 0, 0.12)), **_motor(1.2, 150))
    b.add_body("waist_yaw", 2.0, (0, 0, 0.03), _box(2.0, (0.15, 0.2, 0.1)), name="waist")
    b.add_joint("waist_pitch", "revolute", "waist_yaw", transform(p=(0, 0, 0.06)), axis=(0, 1, 0), **_motor(1.0, 150))
    b.add_body("waist_pitch", 16.0, (0, 0, 0.2), _box(16.0, (0.22, 0.34, 0.42)), name="torso")
    b.add_joint("neck_yaw", "revolute", "waist_pitch", transform(p=(0, 0, 0.45)), **_motor(1.3, 10))
    b.add_body("neck_yaw", 0.5, (0, 0, 0.03), _box(0.5, (0.06, 0.06, 0.08)), name="neck")
    b.add_joint("neck_pitch", "revolute", "neck_yaw", transform(p=(0, 0, 0.07)), axis=(0, 1, 0), **_motor(0.8, 10))
    b.add_body("neck_pitch", 3.5, (0.01, 0, 0.09), _box(3.5, (0.18, 0.15, 0.22)), name="head")
    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    legs = (
        ("hip_yaw", "z", (0, 0.1, -0.06), 1.5, 80),
        ("hip_roll", "x", (0, 0, -0.02), 1.8, 150),
        ("hip_pitch", "y", (0, 0, -0.02), 6.0, 200),
        ("knee", "y", (0, 0, -0.4), 3.2, 250),
        ("ankle_pitch", "y", (0, 0, -0.4), 0.4, 150),
        ("ankle_roll", "x", (0, 0, -0.02), 1.1, 80),
    )
    arms = (
        ("shoulder_pitch", "y", (0, 0.2, 0.38), 1.4, 60),
        ("shoulder_roll", "x", (0, 0.03, 0), 0.8, 60),
        ("shoulder_yaw", "z", (0, 0, -0.12), 1.4, 40),
        ("elbow", "y", (0, 0, -0.17), 0.8, 40),
        ("forearm_yaw", "z", (0, 0, -0.1), 0.9, 20),
        ("wrist_roll", "x", (0, 0, -0.15), 0.3, 15),
        ("wrist_pitch", "y", (0, 0, -0.03), 0.4, 15),
    )
    length = {"hip_pitch": 0.4, "knee": 0.4, "shoulder_yaw": 0.17, "forearm_yaw": 0.15}
    for prefix, side in (("left", 1), ("right", -1)):
        for parts, start in ((legs, "root"), (arms, "waist_pitch")):
            parent = start
            for name, axis, p, mass, effort in parts:
                at = transform(p=(p[0], side * p[1], p[2]))
                joint = f"{prefix}_{name}"
                b.add_joint(joint, "revolute", parent, at, axis=axes[axis], **_motor(2.0, effort))
                size = length.get(name, 0.08)
                box = _box(mass, (0.1, 0.1, size))
                b.add_body(joint, mass, (0, 0, -size / 2), box, name=f"{joint}_link")
                parent = joint
        b.add_joint(
            f"{prefix}_gripper", "prismatic", f"{prefix}_wrist_pitch", transform(p=(0, 0, -0.08)),
            axis=(0, 1, 0), lower=0.0, upper=0.05, velocity_limit=0.2, effort_limit=30.0, armature=0.01,
        )  # fmt: skip
        b.add_body(f"{prefix}_gripper", 0.1, (0, 0, -0.02), _box(0.1, (0.02, 0.02, 0.05)))
        b.add_frame(f"{prefix}_foot", f"{prefix}_ankle_roll", transform(p=(0.03, 0, -0.08)))
        b.add_frame(f"{prefix}_hand", f"{prefix}_wrist_pitch", transform(p=(0, 0, -0.1)))
    return b.build()


BUILTIN: dict[str, Callable[[], Model]] = {"arm": arm, "quadruped": quadruped, "humanoid": humanoid}


def _leg(b: ModelBuilder, name: str, parent: str, at, side: int, lengths, masses) -> None:
    """Hip abduction, hip and knee flexion, as quadrupeds have them."""
    abduct, thigh, shank = lengths
    b.add_joint(f"{name}_HAA", "revolute", parent, transform(p=at), axis=(1, 0, 0), **_motor(0.9, 80))
    b.add_body(f"{name}_HAA", masses[0], (0, side * abduct / 2, 0), _box(masses[0], (0.1, abduct, 0.1)))
    at = transform(p=(0, side * abduct, 0))
    b.add_joint(f"{name}_HFE", "revolute", f"{name}_HAA", at, axis=(0, 1, 0), **_motor(1.8, 80))
    b.add_body(f"{name}_HFE", masses[1], (0, 0, -0.35 * thigh), _box(masses[1], (0.06, 0.06, thigh)))
    at = transform(p=(0, 0, -thigh))
    b.add_joint(f"{name}_KFE", "revolute", f"{name}_HFE", at, axis=(0, 1, 0), **_motor(2.4, 80))
    b.add_body(f"{name}_KFE", masses[2], (0, 0, -0.45 * shank), _box(masses[2], (0.04, 0.04, shank)))


def _motor(limit: float, effort: float) -> dict[str, Any]:
    """Settings of a geared revolute drive; the armature grows with its strength."""
    return dict(
        lower=-limit,
        upper=limit,
        velocity_limit=10.0,
        effort_limit=effort,
        armature=effort * 5e-4,
        damping=0.1,
    )


def _box(mass: float, size) -> Array:
    """Inertia of a solid box about its centre."""
    x, y, z = np.square(size)
    return mass / 12 * np.diag([y + z, x + z, x + y])


def _check_count(n: int) -> None:
    if not isinstance(n, int) or n < 1:
        raise InputError(f"a robot needs a positive whole number of joints, got {n!r}")


def _revolute_tree(name: str, n: int, branching: int, seed: int) -> Model:
    _check_count(n)
    rng = np.random.default_rng(seed)
    b = ModelBuilder(name)
    for i in range(n):
        parent = f"joint{(i - 1) // branching}" if i else None
        b.add_joint(f"joint{i}", "revolute", parent, _random_placement(rng))
        b.add_body(f"joint{i}", *_random_body(rng), name=f"link{i}")
    return b.build()


def _random_placement(rng: np.random.Generator) -> Array:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return transform(Q * np.sign(np.linalg.det(Q)), rng.uniform(-0.3, 0.3, 3))


def _random_body(rng: np.random.Generator) -> tuple[float, Array, Array]:
    """Mass, centre and inertia of a solid of random points: always physical."""
    points = rng.uniform(-0.2, 0.2, (8, 3))
    mass = rng.uniform(0.5, 3.0)
    d = points - points.mean(0)
    second = mass / len(d) * d.T @ d
    return mass, points.mean(0), np.trace(second) * np.eye(3) - second
