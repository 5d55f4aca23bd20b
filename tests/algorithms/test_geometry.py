"""Derivatives by the placements of joints, against complex step through the placements themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featherjet as fj
from backends import both, small_quadruped
from featherjet.algorithms.dynamics import aba, rnea
from featherjet.algorithms.scan import Scan
from featherjet.math.spatial import Transform
from featherjet.math.vec3 import Mat3, Vec3
from featherjet.model.parts import Mimic
from featherjet.model.tree import Tree
from helpers import agree, every_kind, random_state

STEP = 1e-30


def moved(tree: Tree, joint: int, e: int) -> Tree:
    """The tree with one joint's placement P exp(i h delta), delta the unit motion e (linear, angular)."""
    node = tree.nodes[joint]
    align = np.array([[c.x, c.y, c.z] for c in (node.align.x, node.align.y, node.align.z)]).T
    R = np.array([[c.x, c.y, c.z] for c in (node.X.R.x, node.X.R.y, node.X.R.z)]).T
    p = np.array([node.X.p.x, node.X.p.y, node.X.p.z])
    user = R @ align.T  # the joint's own axes, in the parent's canonical frame
    delta = 1j * STEP * np.eye(6)[e]
    x, y, z = delta[3:]
    turned = user @ (np.eye(3) + np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])) @ align
    X = Transform(Mat3(*(Vec3(*c) for c in turned.T)), Vec3(*(p + user @ delta[:3])))
    other = object.__new__(Tree)
    other.__dict__.update(tree.__dict__)
    other.nodes = [replace(n, X=X) if n is node else n for n in tree.nodes]
    return other


def by_complex_step(model: fj.Model, function, nv: int) -> np.ndarray:
    tree = Tree(model)
    found = np.empty((nv, len(tree.nodes), 6))
    for i in range(len(tree.nodes)):
        for e in range(6):
            found[:, i, e] = np.imag(function(Scan(moved(tree, i, e), (), complex))) / STEP
    return found


@pytest.mark.parametrize("forces", [False, True], ids=["", "fext"])
@pytest.mark.parametrize("seed", range(3))
def test_by_complex_step(seed: int, forces: bool) -> None:
    robot = every_kind(seed, n=14)
    s = random_state(robot, size=1)
    q, v, a = (x[0] for x in (s.q, s.v, s.a))
    fext = np.random.default_rng(seed).normal(size=(robot.njoints, 6)) if forces else None
    rows = None if fext is None else [tuple(f) for f in fext]
    tau = robot.inverse_dynamics(q, v, a, fext)
    expected = by_complex_step(robot.model, lambda scan: rnea.inverse_dynamics(scan, q, v, a, rows), robot.nv)
    agree(robot.inverse_dynamics_placement_derivatives(q, v, a, fext), expected, 1e-13)
    expected = by_complex_step(robot.model, lambda scan: aba.forward_dynamics(scan, q, v, tau, rows).a, robot.nv)
    agree(robot.forward_dynamics_placement_derivatives(q, v, tau, fext), expected, 1e-10)


def test_lengths_of_a_double_pendulum() -> None:
    """tau2 = (m2 c2^2 + I2) a2 + ... + m2 c2 l1 (a1 cos q2 + v1^2 sin q2) + g c2 m2 cos(q1 + q2), by l1."""
    robot = fj.Robot(fj.models.auto_tree(2), backend="numpy").with_gravity((0.0, -9.81, 0.0))
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    by = robot.inverse_dynamics_placement_derivatives(q, v, a)
    lengths = np.einsum("ijk,jk->ij", by, robot.model.length_directions)
    c2 = 0.5
    by_l1 = c2 * (a[0] * np.cos(q[1]) + v[0] ** 2 * np.sin(q[1]))
    assert lengths[1, 1] == pytest.approx(by_l1, abs=1e-13)
    h = 1e-6
    far, near = (np.array(robot.model.joints[1].placement) for _ in range(2))
    far[0, 3] += h
    near[0, 3] -= h
    up, down = (robot.with_placements({"joint1": T}).inverse_dynamics(q, v, a) for T in (far, near))
    assert lengths[:, 1] == pytest.approx((up - down) / (2 * h), abs=1e-8)
    assert not lengths[:, 0].any()  # the first joint is at the world's origin


def test_a_mimicking_joint_moves_with_its_leader() -> None:
    b = fj.ModelBuilder("fingers")
    one = b.add_joint("one", "revolute")
    b.add_body(one, 1.0, (0.1, 0.2, 0.0), np.eye(3))
    two = b.add_joint("two", "revolute", one, fj.models.auto_tree(2).joints[1].placement)
    b.add_body(two, 1.0, (0.3, 0.0, 0.1), np.eye(3))
    three = b.add_joint("three", "prismatic", two, axis=(1, 0, 0), mimic=Mimic("two", 0.5, 0.1))
    b.add_body(three, 0.7, (0.0, 0.1, 0.1), np.eye(3))
    robot = fj.Robot(b.build(), backend="numpy")
    q, v, a = np.random.default_rng(1).normal(size=(3, robot.nv))
    tau = robot.inverse_dynamics(q, v, a)
    by = robot.inverse_dynamics_placement_derivatives(q, v, a)
    da = robot.forward_dynamics_placement_derivatives(q, v, tau)
    h = 1e-6
    for e in range(3):
        T = [np.array(robot.model.joints[2].placement) for _ in range(2)]
        T[0][e, 3] += h
        T[1][e, 3] -= h
        up, down = (robot.with_placements({"three": x}) for x in T)
        d = (up.inverse_dynamics(q, v, a) - down.inverse_dynamics(q, v, a)) / (2 * h)
        assert by[:, 2, e] == pytest.approx(d, abs=1e-7)
        d = (up.forward_dynamics(q, v, tau) - down.forward_dynamics(q, v, tau)) / (2 * h)
        assert da[:, 2, e] == pytest.approx(d, abs=1e-7)


def test_compiled_code_agrees() -> None:
    compiled, reference, _ = both(small_quadruped(("HAA", "KFE")))
    s = random_state(reference)
    for name, third in (("inverse", s.a), ("forward", s.a)):
        x, y = (getattr(r, f"{name}_dynamics_placement_derivatives")(s.q, s.v, third) for r in (compiled, reference))
        agree(x, y, 1e-11)


def test_placements_must_be_rigid_and_joints_known() -> None:
    robot = fj.load("arm", backend="numpy")
    with pytest.raises(fj.FeatherjetError, match="placement of joint 'joint2': not a rigid transform"):
        robot.with_placements({"joint2": 2 * np.eye(4)})
    with pytest.raises(fj.FeatherjetError, match="joint22"):
        robot.with_placements({"joint22": np.eye(4)})
