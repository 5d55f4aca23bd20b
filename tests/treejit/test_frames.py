"""Quantities of frames in code that all robots share, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from backends import FRAMED, both
from featherjet.algorithms.frames.jacobians import VIEWPOINTS
from featherjet.algorithms.quantities import QUANTITIES
from helpers import each_agrees, frame_of, random_state

ROLLED = [name for name in FRAMED if QUANTITIES[name].rolled]


def given(robot: fj.Robot, name: str, frame: np.ndarray, batch: int) -> list[np.ndarray]:
    s = random_state(robot, batch)
    known = {"q": s.q, "v": s.v, "a": s.a, "frame": frame}
    return [known[i.name] for i in QUANTITIES[name].inputs]


@pytest.fixture(scope="module")
def pair():
    """Two roots, branches, every kind of joint."""
    return both(fj.models.random_tree(8, seed=6))


@pytest.mark.parametrize("name", ROLLED)
@pytest.mark.parametrize("viewpoint", VIEWPOINTS)
def test_shared_code_gives_what_the_reference_gives(pair, name, viewpoint):
    """For every frame, also the world's, and for a batch with a frame of its own for each sample."""
    options = {"viewpoint": viewpoint} if QUANTITIES[name].options else {}
    frames = [frame_of(pair.reference, f.name)["frame"] for f in pair.reference.model.frames]
    world = np.array([-1.0, *np.eye(3).ravel(), 0.1, 0.2, 0.3])
    own = np.array([*frames, world])
    for frame in (*own, own):
        inputs = given(pair.reference, name, frame, len(own))
        found, expected = (r.evaluator.run(name, inputs, **options) for r in (pair.compiled, pair.reference))
        for x, y in zip(found, expected, strict=True):
            each_agrees(x, y, 1e-12, name, floor=1.0)  # velocities are of size one; many slopes are zero
            if x.ndim == 3 and x.shape[1] == 6 and frame.ndim == 1:
                tree, joint = pair.reference.evaluator.tree, int(frame[0])
                assert not x[..., tree.moves(joint) == 0].any(), "dofs that do not move the frame"
    record = QUANTITIES[name]
    kernel = pair.compiled.evaluator.kernel(record, [i.name for i in record.inputs], options)
    assert kernel is not None
    assert not kernel.separate_single, "it is shared code"


def test_long_robots_take_shared_code():
    robot, other = fj.Robot(fj.models.chain(300), backend="compiled"), fj.Robot(fj.models.chain(300), backend="numpy")
    s = random_state(robot, 3)
    each_agrees(robot.frame_jacobian(s.q, "joint250"), other.frame_jacobian(s.q, "joint250"), 1e-11)
    each_agrees(robot.frame_velocity(s.q, s.v, "joint250"), other.frame_velocity(s.q, s.v, "joint250"), 1e-11)
    assert robot.evaluator.kernels.choice(QUANTITIES["jacobian"]).unrolls is False
