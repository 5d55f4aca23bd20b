"""Random robots and states, comparison relative to the largest entry, and featherjet's models as Pinocchio's.

`to_pinocchio` is the library's own conversion, which the benchmark uses too. As an oracle it is independent enough: it
copies the numbers of a Model and computes nothing, so that an error in it shows as a disagreement between Pinocchio
and featherjet. An error that both share would have to be in the Model, and tests/model/io/test_to_pinocchio.py holds
converted models against what Pinocchio reads from the same URDF.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from hypothesis import strategies as st

import featherjet as fj
from featherjet.evaluate.frames import FrameName, numbers
from featherjet.lab.bench.peers import to_pinocchio as to_pinocchio
from featherjet.model.builder import transform
from featherjet.model.joints import KINDS

ROOT = Path(__file__).parent.parent
MULTI_DOF = ("spherical", "translation", "planar", "free")

# What users call on a robot, and with which inputs.
CALLS: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "v", "a", "fext"),
    "forward_dynamics": ("q", "v", "tau", "fext"),
    "inverse_dynamics_derivatives": ("q", "v", "a", "fext"),
    "forward_dynamics_derivatives": ("q", "v", "tau", "fext"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
    "gravity": ("q",),
    "bias": ("q", "v"),
    "coriolis_matrix": ("q", "v"),
    "forward_kinematics": ("q",),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "center_of_mass": ("q",),
    "centroidal_map": ("q",),
    "centroidal_momentum": ("q", "v"),
    "integrate": ("q", "dv"),
    "integrate_jacobians": ("q", "dv"),
    "difference": ("q0", "q1"),
    "difference_jacobians": ("q0", "q1"),
}


def frame_of(robot: fj.Robot, name: FrameName) -> dict[str, np.ndarray]:
    """A frame as an input of quantities."""
    return {"frame": numbers(robot.evaluator, name)[0]}


def error(actual: object, expected: object, floor: float = 0.0) -> float:
    """The largest difference, relative to the largest expected entry (or to `floor`, if that is larger)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    assert np.isfinite(actual).all(), "not finite"
    assert np.isfinite(expected).all(), "the oracle is not finite"
    if not expected.size:
        return 0.0
    scale = max(float(np.abs(expected).max()), floor)
    difference = float(np.abs(actual - expected).max())
    return difference / scale if difference else 0.0


def agree(actual: object, expected: object, tolerance: float, what: str = "", floor: float = 0.0) -> None:
    """Both are equal up to `tolerance` of the largest expected entry.

    `floor` is the size below which entries are rounding errors of a true zero: a lone slider has dtau_dv = 0,
    and 1e-17 in its place is no error. Callers take it far below what the quantity is made of.
    """
    worst = error(actual, expected, floor)
    assert worst <= tolerance, f"{what}: off by {worst:.2e} of the largest entry, allowed {tolerance:.0e}"


def each_agrees(actual: object, expected: object, tolerance: float, what: str = "", floor: object = 0.0) -> None:
    """`agree` for every sample of a batch by itself."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    floors = np.broadcast_to(floor, len(expected))
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        agree(a, e, tolerance, f"{what}, sample {k}", float(floors[k]))


# States


class State(NamedTuple):
    """A batch of states: q (n, nq), v, a (n, nv), fext (n, njoints, 6)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    fext: np.ndarray


def random_state(robot: fj.Robot, size: int = 3, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, size)
    v, a = rng.normal(size=(2, size, robot.nv))
    return State(q, v, a, rng.normal(size=(size, robot.njoints, 6)))


def lamp() -> fj.Model:
    """A spherical joint, then a revolute one and a rail: what the tests of bridges share, so that they share code."""
    b = fj.ModelBuilder("lamp")
    for name, kind, parent in (
        ("ball", "spherical", None),
        ("hinge", "revolute", "ball"),
        ("rail", "prismatic", "hinge"),
    ):
        offset = np.eye(4)
        offset[:3, 3] = 0.1, 0.2, 0.3
        b.add_joint(name, kind, parent, offset, axis=(0.0, 0.6, 0.8), armature=0.1 * (kind == "revolute"))
        b.add_body(name, 1.5, (0.02, 0.01, 0.1), np.diag([0.03, 0.02, 0.025]))
    b.add_frame("tip", "rail", np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]], float))
    return b.build()


# Random robots


class Numbers:
    """The numbers of one joint and its body, all from one seed; short decimals, and zeros more often than by chance.

    Seed 0 is the plainest joint there is.
    """

    def __init__(self, seed: int) -> None:
        self.plain, self._rng = seed == 0, np.random.default_rng(seed)

    def rare(self, chance: float) -> bool:
        """Whether something unusual happens; to the plainest joint it never does."""
        return not self.plain and self._rng.random() < chance

    def vector(self, most: int) -> np.ndarray:
        """Of up to `most` tenths in each direction."""
        x = self._rng.integers(-most, most, 3, endpoint=True) / 10
        return np.zeros(3) if self.plain or self.rare(0.15) else x

    def count(self, low: int, high: int) -> int:
        return low if self.plain else int(self._rng.integers(low, high, endpoint=True))

    def placement(self, most: int) -> np.ndarray:
        return transform(pin.exp3(self.vector(31)), self.vector(most))

    def axis(self) -> tuple[int, ...]:
        """One of the six directions of the frame as often as any other."""
        axis = [0, 0, 0]
        if self.plain or self.rare(0.5):
            axis[2 if self.plain else self.count(0, 2)] = -1 if self.rare(0.5) else 1
        while not any(axis):
            axis = self._rng.integers(-3, 3, 3, endpoint=True).tolist()
        return tuple(axis)

    def body(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia of a body that could exist: second moments are positive."""
        mass, R = self.count(1, 30) / 10, pin.exp3(self.vector(31))
        second = mass * R @ np.diag([self.count(1, 20) / 1000 for _ in range(3)]) @ R.T
        return mass, self.vector(3), np.trace(second) * np.eye(3) - second


@st.composite
def models(draw: st.DrawFn, kinds: Sequence[str] = tuple(KINDS), most: int = 10, armature: bool = True) -> fj.Model:
    """A whole tree: kinds, parents (several roots too), axes, placements, inertias, armatures, gravity.

    hypothesis draws the tree and, for each joint, the seed of its numbers: to draw every number would take longer than
    most of what is tested. Failures shrink to few joints, and to plain ones where numbers do not matter.
    """
    b = fj.ModelBuilder("drawn", gravity=draw(st.sampled_from([(0.0, 0.0, -9.81), (1.0, -2.0, 3.0)])))
    joints = st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from(kinds), st.integers(0, 10_000))
    for i, (back, apart, kind, seed) in enumerate(draw(st.lists(joints, min_size=1, max_size=most))):
        numbers = Numbers(seed)
        root = i - 1 - back < 0 or apart == 9
        b.add_joint(
            f"j{i}",
            kind,
            None if root else f"j{i - 1 - back}",
            numbers.placement(5),
            axis=numbers.axis(),
            pitch=numbers.count(-3, 3) / 10 if kind == "helical" else 0.0,
            armature=[numbers.count(0, 5) / 50 for _ in range(KINDS[kind].nv)] if armature else 0.0,
        )
        b.add_body(f"j{i}", *numbers.body(), name=f"body{i}")
        if numbers.rare(0.5):
            b.add_frame(f"tool{i}", f"j{i}", numbers.placement(3))
    return b.build()


def with_state(m: st.SearchStrategy[fj.Model], size: int = 3) -> st.SearchStrategy[tuple[fj.Robot, State]]:
    """A robot and a batch of its states.

    On the plain backend: every new set of joint kinds costs the compiled one seconds. `test_backends_agree`
    holds both together.
    """

    def pair(model: fj.Model, seed: int) -> tuple[fj.Robot, State]:
        robot = fj.Robot(model, backend="numpy")
        return robot, random_state(robot, size, seed)

    return st.builds(pair, m, st.integers(0, 1000))


def every_kind(seed: int = 0, n: int = 12) -> fj.Robot:
    """One fixed robot that has every kind of joint."""
    return fj.Robot(fj.models.random_tree(n, seed=seed))


# Pinocchio


def forces(fext: np.ndarray) -> pin.StdVec_Force:
    """Our fext (njoints, 6) as Pinocchio's list, which begins with the universe."""
    return pin.StdVec_Force([pin.Force.Zero(), *(pin.Force(np.array(f)) for f in fext)])


# Documents


def rows(page: str, first: str) -> list[list[str]]:
    """The cells of the Markdown table that begins with this heading."""
    text = (ROOT / page).read_text()
    lines = text[text.index(f"| {first} |") :].splitlines()
    table = lines[2 : next(i for i, line in enumerate([*lines, ""]) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
