"""Mistakes outside of arrays: what is no list, no number, no path, or beyond all sizes gets an error that says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from backends import both
from featherjet.errors import InputError, ModelError
from featherjet.export.functions import identifier

DIGITS = int("9" * 400)
ZERO = np.zeros(7)
ENDS = (ZERO, ZERO), (ZERO + 0.1, ZERO)


def arm() -> Any:
    return fj.load("arm")


def built(joint: Any = None, body: Any = None, frame: Any = None) -> fj.Model:
    """A model of one joint, with other arguments than usual."""
    b = fj.ModelBuilder("one")
    b.add_joint(**{"name": "a", "kind": "revolute", **(joint or {})})
    b.add_body(**{"joint": "a", "mass": 1.0, "inertia": np.eye(3), **(body or {})})
    if frame:
        b.add_frame(**{"name": "f", "joint": "a", **frame})
    return b.build()


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: fj.Ground(arm(), 1.0), "feet: expected a list"),  # type: ignore[arg-type]
    (lambda: built(body={"mass": "heavy"}), "mass: expected numbers, got str"),
    (lambda: built(body={"mass": "2.5"}), "mass: expected numbers, got str"),
    (lambda: built(body={"mass": None}), "mass: must be finite"),
    (lambda: built(body={"mass": DIGITS}), "mass: expected numbers"),
    (lambda: built(body={"mass": 1j}), "mass: expected numbers"),
    (lambda: built(body={"mass": [1, 2]}), r"mass: expected shape \(\)"),
    (lambda: built(body={"com": np.array([1j, 0, 0])}), "centre of mass: expected numbers"),
    (lambda: built(body={"joint": ["a"]}), r"there is no joint \['a'\]"),
    (lambda: built(frame={"joint": ["a"]}), r"there is no joint \['a'\]"),
    (lambda: built(joint={"parent": ["a"]}), r"its parent \['a'\] has not been added"),
    (lambda: built(joint={"lower": 2, "upper": 1}), r"lower limit \[2.\] above upper limit \[1.\]; exchange them"),
    (lambda: fj.models.chain(10**400), "at most 10000; got a number of 401 digits"),
    (lambda: fj.models.random_tree(10**400), "at most 10000; got a number of 401 digits"),
    (lambda: fj.models.chain(True), "the number of joints must be a positive whole number"),
    (lambda: fj.models.chain(2, seed=-1), "seed: expected a whole number, at least 0"),
    (lambda: fj.models.random_tree(2, seed="a"), "seed: expected a whole number"),  # type: ignore[arg-type]
    (lambda: arm().simulate(ZERO, ZERO, dt=1e-320), "too many steps; the limit is"),
    (lambda: arm().simulate(ZERO, ZERO, duration=1e308), "duration: expected a positive time"),
    (lambda: arm().simulate(ZERO, ZERO, dt=1e-9, duration=1e299), "too many steps|steps; the limit is"),
    (lambda: arm().simulate(ZERO, ZERO, dt=1e308, duration=1e308), "expected a positive time"),
    (lambda: arm().simulate(ZERO, ZERO, dt=DIGITS), "dt: expected real numbers"),
    (lambda: fj.World(arm(), ZERO, ZERO, dt=DIGITS), "dt: .* a number of 400 digits"),
    (lambda: fj.World(arm(), ZERO, ZERO, dt=1e308), "dt: expected a positive time"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, intervals=10**6), "intervals: expected at most 1000, got 1000000"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, intervals=DIGITS), "intervals: .* a number of 400 digits"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, points=10**6), "points: expected at most 64"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, limits=5), "limits: expected names"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, limits={"velocity": "a"}), "limits: velocity: expected one number"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, limits={"velocity": DIGITS}), "limits: velocity: .* 400 digits"),
    (lambda: fj.transition(arm(), *ENDS, 0.5, supports=1.0), "supports: expected frames"),
    (lambda: arm().lock(0.5), "lock: expected a mapping of joint names to coordinates, got 0.5"),
    (lambda: fj.load(b"arm.urdf"), "expected a path of type str"),
]  # fmt: skip


@pytest.mark.parametrize("make, message", MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises((InputError, ModelError), match=message):
        make()


@pytest.mark.parametrize("path", [b"motion.npz", 3, None, ["a"]])
def test_paths_are_text(path: Any) -> None:
    motion = arm().simulate(ZERO, ZERO, dt=0.01, duration=0.02)
    for use in (motion.save, fj.Trajectory.load, fj.Transition.load):
        with pytest.raises(InputError, match=f"path: expected a str or a pathlib.Path, got {type(path).__name__}"):
            use(path)


def test_paths_of_other_libraries_are_taken(tmp_path: Path) -> None:
    class Place(os.PathLike):
        def __fspath__(self) -> str:
            return str(tmp_path / "motion.npz")

    motion = arm().simulate(ZERO, ZERO, dt=0.01, duration=0.02)
    assert motion.save(Place()) == tmp_path / "motion.npz"
    assert (fj.Trajectory.load(Place()).q == motion.q).all()


def test_read_only_results_are_refused() -> None:
    """Fresh code and ready calls, one state and many, and arrays that were broadcast."""
    pair = both(fj.models.arm())
    for robot in (pair.compiled, pair.reference):
        for q, shape in ((ZERO, (7, 7)), (np.zeros((3, 7)), (3, 7, 7))):
            fixed = np.zeros(shape)
            fixed.flags.writeable = False
            for out in (fixed, np.broadcast_to(np.zeros(7), shape)):
                for _ in range(3):
                    with pytest.raises(InputError, match="out: an array is read-only"):
                        robot.mass_matrix(q, out=out)
            robot.mass_matrix(q, out=np.zeros(shape))


@pytest.mark.parametrize("name", ["test", "all", "clean", "nan", "gamma", "sinf", "malloc", "install", "a" * 300])
def test_names_that_others_own_are_refused(name: str) -> None:
    """By CMake, or by the C library."""
    with pytest.raises(InputError, match="makes no name for C; choose another"):
        identifier(name, "name")


def test_other_names_are_taken() -> None:
    assert [identifier(x, "name") for x in ("arm", "testbed", "UR5", "allf_x", "7dof")] == [
        "arm", "testbed", "ur5", "allf_x", "robot_7dof",
    ]  # fmt: skip
