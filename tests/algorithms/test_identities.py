"""Identities J1-J9 ([IDSVA] App. C) on trees with multi-dof joints, by complex step in ground coordinates.

All nine hold as printed, for j <= i with the joint's own dofs included. (Copies may number J6 as a
second J5 and lose a dot in eq. 31; the paper itself does not.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherjet as fj
from featherjet.algorithms.frames import kinematics
from featherjet.algorithms.scan import Scan
from featherjet.math.spatial import Motion
from featherjet.math.vec3 import Vec3
from featherjet.model import configuration
from helpers import MULTI_DOF, State, agree, models, with_state
from spatial_helpers import crb, crf, crm, times

Array = np.ndarray
H = 1e-30
TOLERANCE = 1e-12
cases = st.one_of(with_state(models(most=6), 1), with_state(models(kinds=MULTI_DOF, most=4), 1))


class Ground(NamedTuple):
    """One body's quantities in ground coordinates, lanes leading."""

    S: Array  # (lanes, 6, nv of the joint)
    v: Array  # (lanes, 6)
    xi: Array
    gamma: Array
    I: Array  # (lanes, 6, 6)


def ground(robot: fj.Robot, q: Array, v: Array, a: Array) -> list[Ground]:
    """The definitions of [IDSVA] Sec. III, written with matrices; q, v, a (lanes, n)."""
    tree = robot.evaluator.tree
    lanes = len(q)
    scan = Scan(tree, (lanes,), np.result_type(q, v, a))
    out: list[Ground] = []
    for node, body in zip(tree.nodes, kinematics.bodies(scan, q.T), strict=True):
        S = np.stack([column(s.ang, s.lin, lanes) for s in body.S], -1)
        placed = node.body.placed(body.X)
        units = [placed @ Motion(Vec3(*e[:3]), Vec3(*e[3:])) for e in np.eye(6).tolist()]
        I = np.stack([column(f.ang, f.lin, lanes) for f in units], -1)
        zero = np.zeros((lanes, 6))
        v0, xi0, gamma0 = (zero, zero, zero) if node.is_root else out[node.parent][1:4]
        vJ = times(S, v[:, node.v])
        vi = v0 + vJ
        out.append(Ground(S, vi, xi0 + times(crm(vi), vJ), gamma0 + times(S, a[:, node.v]), I))
    return out


def column(ang: Vec3, lin: Vec3, lanes: int) -> Array:
    return np.stack([x + np.zeros(lanes) for p in (ang, lin) for x in (p.x, p.y, p.z)], -1)


class Case(NamedTuple):
    """Everything at a state, its complex steps by q and by v, and arbitrary fixed vectors f and m."""

    robot: fj.Robot
    at: list[Ground]
    by_q: list[Ground]
    by_v: list[Ground]
    f: Array
    m: Array

    def parent(self, j: int) -> Ground:
        """The quantities of j's parent: zero for the ground."""
        up = self.robot.model.joints[j].parent
        return self.at[up] if up >= 0 else Ground(*(np.zeros_like(x) for x in self.at[j]))

    def dofs(self):
        """Each dof as (its lane, its joint j, its column s of S_j)."""
        lane = 0
        for j, body in enumerate(self.at):
            for p in range(body.S.shape[-1]):
                yield lane, j, body.S[0, :, p]
                lane += 1


def prepare(case: tuple[fj.Robot, State]) -> Case:
    robot, s = case
    n = robot.nv
    q, v, a = (np.tile(x, (n, 1)) for x in (s.q, s.v, s.a))
    step = 1j * H * np.eye(n)
    rng = np.random.default_rng(0)
    return Case(
        robot,
        ground(robot, s.q, s.v, s.a),
        ground(robot, configuration.integrate(robot.model, q, step), v, a),
        ground(robot, q, v + step, a),
        rng.normal(size=6),
        rng.normal(size=6),
    )


def rate(x: Array, lane: int) -> Array:
    return x[lane].imag / H


def psid(c: Case, j: int, s: Array) -> Array:
    return crm(c.parent(j).v[0]) @ s


# The right-hand sides: derivatives for body i along column s of joint j, where j <= i.


def j1(c, i, j, s):
    return crm(s) @ c.at[i].S[0]


def j2(c, i, j, s):
    return crb(c.f) @ (crm(c.parent(j).v[0] - c.at[i].v[0]) @ s)


def j3(c, i, j, s):
    return -c.at[i].S[0].T @ (crb(c.f) @ s)


def j4(c, i, j, s):
    I = c.at[i].I[0]
    return crb(I @ c.m) @ s + I @ (crm(c.m) @ s)


def j5(c, i, j, s):
    I = c.at[i].I[0]
    return crb(I @ c.at[i].v[0]) @ s + I @ psid(c, j, s)


def j6(c, i, j, s):
    up, here = c.parent(j), c.at[i]
    return crm(up.v[0] - here.v[0]) @ psid(c, j, s) + crm(up.xi[0] - here.xi[0]) @ s


def j7(c, i, j, s):
    return crm(c.parent(j).gamma[0] - c.at[i].gamma[0]) @ s


def j8(c, i, j, s):
    return s


def j9(c, i, j, s):
    Sd = crm(c.at[j].v[0]) @ s
    return psid(c, j, s) + Sd - crm(c.at[i].v[0]) @ s


IDENTITIES = {
    "J1": ("by_q", lambda c, b: b.S, j1),
    "J2": ("by_q", lambda c, b: times(crf(b.v), c.f), j2),
    "J3": ("by_q", lambda c, b: np.swapaxes(b.S, -1, -2) @ c.f, j3),
    "J4": ("by_q", lambda c, b: b.I @ c.m, j4),
    "J5": ("by_q", lambda c, b: times(b.I, b.v), j5),
    "J6": ("by_q", lambda c, b: b.xi, j6),
    "J7": ("by_q", lambda c, b: b.gamma, j7),
    "J8": ("by_v", lambda c, b: b.v, j8),
    "J9": ("by_v", lambda c, b: b.xi, j9),
}


@pytest.mark.parametrize("name", IDENTITIES)
@given(cases)
def test_identity(name: str, case: tuple[fj.Robot, State]) -> None:
    """The derivative of every body i along every dof of joint j: as printed if j <= i, else an exact zero."""
    c = prepare(case)
    by, quantity, formula = IDENTITIES[name]
    ends = c.robot.model.subtree_end
    for i, moved in enumerate(getattr(c, by)):
        derivative = quantity(c, moved)
        for lane, j, s in c.dofs():
            got = rate(derivative, lane)
            if j <= i < ends[j]:
                size = np.abs(quantity(c, c.at[i])).max() + np.abs(got).max()
                agree(got, formula(c, i, j, s), TOLERANCE, f"{name}, body {i}, joint {j}", floor=1.0 + size)
            else:
                assert not got.any()
