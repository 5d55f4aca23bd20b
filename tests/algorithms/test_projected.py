"""The projected Newton-Euler equations against the recursive algorithms: two formulations that share no dynamics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.dynamics.projected import projected_newton_euler
from featherjet.algorithms.scan import Scan
from featherjet.evaluate.evaluator import BACKENDS
from featherjet.jit.graph import Graph
from helpers import State, agree, each_agrees, every_kind, models, random_state, with_state


def times(M: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (M @ x[..., None])[..., 0]


@settings(max_examples=25)
@given(with_state(models(most=7), size=2))
def test_random_trees(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    p = robot.projected_newton_euler(s.q, s.v, s.fext)
    M = robot.mass_matrix(s.q)
    each_agrees(p.M, M, 1e-12, "M")
    each_agrees(times(p.M, s.a) + p.g - p.f, robot.inverse_dynamics(s.q, s.v, s.a, s.fext), 1e-12, "tau")
    coriolis = robot.bias(s.q, s.v) - robot.gravity(s.q)
    each_agrees(p.g, coriolis, 1e-11, "g", floor=1e-2 * np.abs(M).max((-2, -1)))


def test_parts_are_what_they_say() -> None:
    """Without motion g vanishes; without gravity and forces f does; the weight is minus our gravity."""
    robot = every_kind()
    s = random_state(robot, 2)
    still = robot.projected_newton_euler(s.q, 0 * s.v)
    assert not still.g.any()
    agree(-still.f, robot.gravity(s.q), 1e-12)
    assert not robot.with_gravity([0, 0, 0]).projected_newton_euler(s.q, s.v).f.any()


def test_closed_form_of_a_pendulum() -> None:
    """A point mass m on a rod l with armature: M = m l^2 + armature, f = -m g l sin(q), g = 0."""
    b = fj.ModelBuilder("pendulum")
    b.add_joint("j", "revolute", axis=(0, 1, 0), armature=0.3)
    b.add_body("j", 2.0, np.array([0.0, 0.0, -0.7]), np.zeros((3, 3)))
    p = fj.Robot(b.build()).projected_newton_euler([0.4], [1.7])
    agree(p.M, [[2.0 * 0.49 + 0.3]], 1e-15)
    agree(p.f, [-2.0 * 9.81 * 0.7 * np.sin(0.4)], 1e-14)
    assert abs(p.g[0]) < 1e-15


def test_can_be_traced() -> None:
    """On expressions instead of numbers: what is recorded computes the same."""
    robot = every_kind()
    s = random_state(robot, 1)
    known, graph = {"q": s.q[0], "v": s.v[0]}, Graph()
    q, v = (np.array([graph.load((name, k)) for k in range(len(x))], object) for name, x in known.items())
    traced = projected_newton_euler(Scan(robot.evaluator.tree, (), object), q, v)
    for array, expected in zip(traced, robot.projected_newton_euler(s.q[0], s.v[0]), strict=True):
        roots = [graph.lift(x).index for x in array.flat]
        got = np.array(graph.interpret(roots, lambda at: known[at[0]][at[1]])).reshape(array.shape)
        agree(got, expected, 1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes_broadcast(backend: str) -> None:
    robot = fj.load("quadruped", backend=backend)
    s = random_state(robot, 3)
    p = robot.projected_newton_euler(s.q[0], s.v, s.fext[1])
    assert (p.M.shape, p.g.shape, p.f.shape) == ((3, 18, 18), (3, 18), (3, 18))
