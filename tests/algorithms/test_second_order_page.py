"""docs/second-order.md, equation by equation as it stands there, on plain 6x6 matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.derivatives import gradients, numeric
from featherjet.algorithms.dynamics import aba
from featherjet.algorithms.scan import Scan
from helpers import State, agree, models, with_state
from pages import Page, cross, star

pytestmark = pytest.mark.filterwarnings(
    "ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning"
)
Array = np.ndarray
quickly = settings(max_examples=15)
drawn = with_state(models(most=5), 1)


def twice_coriolis(I: Array, v: Array) -> Array:
    return np.stack([star(v) @ I @ m - I @ cross(v) @ m + star(m) @ I @ v for m in np.eye(6)], 1)


class SecondPage(Page):
    """The notation of the page, with w beside the state."""

    def __init__(self, tree, q: Array, v: Array, a: Array, w: Array) -> None:
        super().__init__(tree, q, v, a)
        self.V, self.V_parent = [], []
        for k, dofs in enumerate(self.dofs):
            self.V_parent.append(self.V[self.parent[k]] if self.parent[k] >= 0 else np.zeros(6))
            self.V.append(self.V_parent[k] + sum(w[i] * self.S[i] for i in dofs))
        BV = [twice_coriolis(I, V) for I, V in zip(self.I, self.V, strict=True)]
        self.IC, self.BC, self.BV = (self.sums(x) for x in (self.I, self.B2, BV))
        self.h = self.sums([I @ V for I, V in zip(self.I, self.V, strict=True)])
        self.b = self.sums([B.T @ V for B, V in zip(self.B2, self.V, strict=True)])
        self.terms()

    def sums(self, x: list[Array]) -> list[Array]:
        return [sum((x[k] for k in range(len(x)) if self.within(k, J)), 0 * x[0]) for J in range(len(x))]

    def D(self, J: int, x: Array) -> Array:
        return 2 * star(x) @ self.h[J] - self.BV[J] @ x

    def terms(self) -> None:
        at = [(self.joint[j], self.S[j]) for j in range(self.n)]
        self.L = [cross(self.V_parent[J]) @ S for J, S in at]
        self.Psid = [cross(self.v_parent[J]) @ S for J, S in at]
        self.Psidd = [
            cross(self.a_parent[J]) @ S + cross(self.v_parent[J]) @ cross(self.v_parent[J]) @ S for J, S in at
        ]
        self.SPd = [cross(self.v[J]) @ S + cross(self.v_parent[J]) @ S for J, S in at]
        self.rest = [star(S) @ self.b[J] + self.D(J, x) for (J, S), x in zip(at, self.Psid, strict=True)]  # E'
        self.G = [self.D(J, S) for J, S in at]
        self.E = [e + self.BC[J].T @ L for e, (J, _), L in zip(self.rest, at, self.L, strict=True)]
        self.F = [self.IC[J] @ L + star(S) @ self.h[J] for (J, S), L in zip(at, self.L, strict=True)]
        self.t1 = [self.IC[J] @ S for J, S in at]
        self.t2 = [self.BC[J] @ S + self.IC[J] @ y for (J, S), y in zip(at, self.SPd, strict=True)]
        self.t3 = [
            self.BC[J] @ x + self.IC[J] @ y + star(S) @ self.fC[J]
            for (J, S), x, y in zip(at, self.Psid, self.Psidd, strict=True)
        ]

    def gradient(self, w: Array) -> Array:
        """(2), and armature."""
        J, n = self.joint, range(self.n)
        return (
            np.array(
                [self.L[j] @ self.fC[J[j]] + self.b[J[j]] @ self.Psid[j] + self.h[J[j]] @ self.Psidd[j] for j in n]
            ),
            np.array([self.b[J[j]] @ self.S[j] + self.h[J[j]] @ self.SPd[j] for j in n]),
            np.array([self.h[J[j]] @ self.S[j] + self.m[j] * w[j] for j in n]),
        )

    def hessian(self) -> Array:
        """(4) and (5): qq, qv, vv, qa."""
        qq, qv, vv, qa = H = np.zeros((4, self.n, self.n))
        for i in range(self.n):
            for j in range(self.n):
                same = self.joint[i] == self.joint[j]
                if not self.within(self.joint[j], self.joint[i]):
                    continue
                qq[j, i] = self.L[i] @ self.t3[j] + self.Psid[i] @ self.E[j] + self.Psidd[i] @ self.F[j]
                qv[i, j] = self.L[i] @ self.t2[j] + self.Psid[i] @ self.G[j]
                qa[i, j] = self.L[i] @ self.t1[j]
                vv[i, j] = (self.S[i] @ self.G[j] + self.S[j] @ self.G[i]) / 2 if same else self.S[i] @ self.G[j]
                if not same:
                    qq[i, j], vv[j, i] = qq[j, i], vv[i, j]
                    qv[j, i] = self.S[i] @ self.E[j] + self.SPd[i] @ self.F[j]
                    qa[j, i] = self.S[i] @ self.F[j]
        return H

    def remains(self) -> tuple[Array, Array]:
        """What cancellation leaves of qq and qv, (9) within joints."""
        qq, qv = np.zeros((2, self.n, self.n))
        for i in range(self.n):
            for k in range(self.n):
                I, K = self.joint[i], self.joint[k]
                if I == K:
                    turned, swept = star(self.S[k]) @ self.fC[I], [star(self.S[x]) @ self.h[I] for x in (i, k)]
                    qq[k, i] = self.Psid[i] @ self.rest[k] + self.L[i] @ turned - self.Psidd[k] @ swept[0]
                    qv[k, i] = self.Psid[k] @ self.G[i] - self.SPd[i] @ swept[1]
                elif self.within(K, I):
                    qq[k, i] = qq[i, k] = self.Psid[i] @ self.rest[k]
                    qv[i, k], qv[k, i] = self.Psid[i] @ self.G[k], self.S[i] @ self.rest[k]
        return qq, qv

    def read_off(self, j: int, r: Array, x: Array, y: Array, g: Array, unit: bool = False) -> Array:
        """(8) without the terms that cancel, for the column r of dof j."""
        J = self.joint[j]
        handed = {} if unit else {J: self.PA[J] @ x + self.IA[J] @ y + g}
        if unit:
            p = self.U[j] / self.d[j]
            for i in reversed(range(self.dofs[J][0], j)):
                p = p - self.U[i] * (self.S[i] @ p) / self.d[i]
            handed[J] = p
        k = J
        while self.parent[k] >= 0:
            p, k = handed[k], self.parent[k]
            for i in reversed(self.dofs[k]):
                p = p - self.U[i] * (self.S[i] @ p) / self.d[i]
            handed[k] = p
        Y = self.motions(r)
        out = np.zeros(self.n)
        for i in range(self.n):
            I = self.joint[i]
            Z, a = self.IA[I] @ self.L[i] + star(self.S[i]) @ self.h[I], Y[self.parent[I]]
            if self.within(I, J) and not (unit and I == J):
                out[i] = Z @ (a + y) + (self.PA[I].T @ self.L[i]) @ x
            else:
                out[i] = Z @ a + (self.L[i] @ handed[I] if I in handed else 0.0)
        return out

    def motions(self, r: Array) -> dict[int, Array]:
        Y = {-1: np.zeros(6)}
        for k, dofs in enumerate(self.dofs):
            Y[k] = Y[self.parent[k]] + sum(r[i] * self.S[i] for i in dofs)
        return Y

    def by_sums(self, r: Array) -> Array:
        """(7)."""
        Y = self.motions(r)
        f = self.sums([I @ Y[k] for k, I in enumerate(self.I)])
        at = [(self.joint[i], self.L[i], self.S[i]) for i in range(self.n)]
        return np.array([L @ f[I] + Y[self.parent[I]] @ star(S) @ self.h[I] for I, L, S in at])


@quickly
@given(drawn)
def test_gradient_and_hessian_of_inverse_dynamics(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    scan, w = Scan(robot.evaluator.tree), np.cos(np.arange(robot.nv) + 1.0)
    state = s.q[0], s.v[0], s.a[0]
    page = SecondPage(robot.evaluator.tree, *state, w)
    truth = numeric.inverse(numeric.complex_step)(scan, *state)
    M = np.abs(truth.dtau_da).max()
    for got, D in zip(page.gradient(w), truth, strict=True):
        agree(got, w @ D, 1e-11, floor=1e-2 * M)
    for got, want in zip(page.hessian(), gradients.inverse(numeric.complex_step)(scan, *state, w), strict=True):
        agree(got, want, 1e-11, floor=1e-2 * M)


@quickly
@given(drawn)
def test_terms_of_tensors(case: tuple[fj.Robot, State]) -> None:
    """(5a): what each dof contributes to the Hessian of one torque; and that other dofs contribute nothing."""
    robot, s = case
    tree, state = robot.evaluator.tree, (s.q[0], s.v[0], s.a[0])
    for k in range(robot.nv):
        page = SecondPage(tree, *state, np.eye(robot.nv)[k])
        K, S = page.joint[k], page.S[k]
        for j, J in enumerate(page.joint):
            below = page.within(J, K) and J != K
            at = J if below else K
            h, b = page.IC[at] @ S, page.BC[at].T @ S
            BV = sum(twice_coriolis(page.I[i], S) for i in range(len(page.I)) if page.within(i, at))
            L = cross(S) @ page.S[j] if below else np.zeros(6)
            D = [2 * star(x) @ h - BV @ x for x in (page.Psid[j], page.S[j])]
            E = page.BC[J].T @ L + star(page.S[j]) @ b + D[0]
            F = page.IC[J] @ L + star(page.S[j]) @ h
            together = below or page.within(K, J)
            for x, y in ((page.L, L), (page.E, E), (page.F, F), (page.G, D[1])):
                agree(x[j], y if together else np.zeros(6), 1e-11, floor=np.abs(page.IC[K]).max())


@quickly
@given(drawn)
def test_identities(case: tuple[fj.Robot, State]) -> None:
    """(3), and that the linear half of D vanishes."""
    robot, s = case
    page = SecondPage(robot.evaluator.tree, s.q[0], s.v[0], s.a[0], s.v[0])
    x, y = np.random.default_rng(0).normal(size=(2, 6))
    by_x = page.sums([twice_coriolis(I, x).T @ V for I, V in zip(page.I, page.V, strict=True)])
    for J, h in enumerate(page.h):
        size = np.abs(page.IC[J]).max() * np.abs(page.V).max()
        agree(by_x[J], page.D(J, x), 1e-12, floor=size)
        agree(x @ page.D(J, y) - y @ page.D(J, x), 2 * h @ cross(x) @ y, 1e-12, floor=size)
        agree(page.D(J, x)[3:], np.zeros(3), 1e-12, floor=size)


@quickly
@given(drawn)
def test_hessian_of_forward_dynamics(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    tree, scan, w = robot.evaluator.tree, Scan(robot.evaluator.tree), np.cos(np.arange(robot.nv) + 1.0)
    q, v, tau = s.q[0], s.v[0], s.a[0]
    a = np.asarray(aba.forward_dynamics(scan, q, v, tau).a, float)
    first, _ = numeric.forward(numeric.complex_step)(scan, q, v, tau)
    truth, _ = gradients.forward(numeric.complex_step)(scan, q, v, tau, w)
    page = SecondPage(tree, q, v, a, -first.da_dtau @ w)
    qq, qv, vv, P = page.hessian()
    floor = 1e-2 * np.abs(first.da_dtau).max()
    by_q, by_v, by_tau = (P @ x for x in first)
    for got, want in zip((qq + by_q + by_q.T, qv + by_v, vv, by_tau), truth, strict=True):  # (6)
        agree(got, want, 1e-9, floor=floor)
    for column in first.da_dq.T:
        agree(page.by_sums(column), P @ column, 1e-11, floor=1e-2 * np.abs(P).max())
    n, none = range(page.n), np.zeros(6)
    turned = [star(page.S[j]) @ page.fC[page.joint[j]] for j in n]
    z_q, z_v, z_tau = (
        np.stack(columns, 1)
        for columns in (
            [page.read_off(j, first.da_dq[:, j], page.Psid[j], page.Psidd[j], turned[j]) for j in n],
            [page.read_off(j, first.da_dv[:, j], page.S[j], page.SPd[j], none) for j in n],
            [page.read_off(j, first.da_dtau[:, j], none, none, none, unit=True) for j in n],
        )
    )
    rest_qq, rest_qv = page.remains()
    for got, want in zip((rest_qq + z_q + z_q.T, rest_qv + z_v, z_tau), (truth[0], truth[1], truth[3]), strict=True):
        agree(got, want, 1e-9, floor=floor)
