"""The notation of docs/direct.md, on plain 6x6 matrices; docs/second-order.md builds on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherjet.algorithms.motion import moving
from featherjet.algorithms.scan import Scan
from featherjet.math.spatial import Motion
from featherjet.math.vec3 import Vec3
from featherjet.model.tree import Tree

Array = np.ndarray


def six(x) -> Array:
    return np.array([float(c) for part in (x.ang, x.lin) for c in (part.x, part.y, part.z)])


def matrix(function: Callable) -> Array:
    return np.stack([six(function(Motion(Vec3(*e[:3]), Vec3(*e[3:])))) for e in np.eye(6)], 1)


def cross(v: Array) -> Array:
    """(v x), whose minus transpose is (v x*)."""

    def skew(w: Array) -> Array:
        return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])

    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def star(v: Array) -> Array:
    return -cross(v).T


class Page:
    """The notation of the page for one state, dofs in the tree's order."""

    def __init__(self, tree: Tree, q: Array, v: Array, a: Array) -> None:
        scan = Scan(tree)
        bodies = scan.outward(moving(tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
        self.nodes, self.n = tree.nodes, tree.nv
        self.parent = [node.parent for node in tree.nodes]
        self.joint = [node.index for node in tree.nodes for _ in node.armature]
        self.dofs = [list(range(node.v.start, node.v.stop)) for node in tree.nodes]
        self.S = [six(s) for body in bodies for s in body.S]
        self.m = [x for node in tree.nodes for x in node.armature]
        self.v, self.a = [six(b.v) for b in bodies], [six(b.a) for b in bodies]
        self.v_parent, self.a_parent = [six(b.v_parent) for b in bodies], [six(b.a_parent) for b in bodies]
        inertias = [node.body.placed(body.X) for node, body in zip(tree.nodes, bodies, strict=True)]
        self.I = [matrix(lambda m, I=I: I @ m) for I in inertias]
        self.B2 = [
            np.stack([star(v) @ I @ m - I @ cross(v) @ m + star(m) @ I @ v for m in np.eye(6)], 1)
            for I, v in zip(self.I, self.v, strict=True)
        ]
        f = [I @ a + star(v) @ I @ v for I, v, a in zip(self.I, self.v, self.a, strict=True)]
        self.fC = [sum((f[k] for k in range(len(f)) if self.within(k, J)), np.zeros(6)) for J in range(len(f))]
        self.eliminate()

    def within(self, k: int, J: int) -> bool:
        """Whether body k is in sub(J)."""
        while k > J:
            k = self.parent[k]
        return k == J

    def eliminate(self) -> None:
        """(2), and what each joint hands to its parent."""
        IA, PA = [I.copy() for I in self.I], [B.copy() for B in self.B2]
        self.U, self.d, self.R = {}, {}, {}
        for k in reversed(range(len(IA))):
            for i in reversed(self.dofs[k]):
                S = self.S[i]
                U, R = IA[k] @ S, PA[k].T @ S
                d = S @ U + self.m[i]
                PA[k] -= np.outer(U, R) / d
                IA[k] -= np.outer(U, U) / d
                self.U[i], self.d[i], self.R[i] = U, d, R
            if self.parent[k] >= 0:
                IA[self.parent[k]] += IA[k]
                PA[self.parent[k]] += PA[k]
        self.IA, self.PA = IA, PA

    def up(self, k: int, h: Array) -> dict[int, float]:
        """Step 2, from body k to the root."""
        left = {}
        while k >= 0:
            for i in reversed(self.dofs[k]):
                left[i] = -self.S[i] @ h / self.d[i]
                h = h + self.U[i] * left[i]
            k = self.parent[k]
        return left

    def column(self, j: int, x: Array, y: Array, g: Array) -> Array:
        """The theorem; trees other than J's get zeros by themselves, since u and a are zero there."""
        J = self.joint[j]
        u = self.up(self.parent[J], self.PA[J] @ x + self.IA[J] @ y + g)
        return self.outward(u, J, x, y)

    def outward(self, u: dict[int, float], J: int, x: Array, y: Array) -> Array:
        """Step 3."""
        r, a = np.zeros(self.n), {-1: np.zeros(6)}
        for k in range(len(self.I)):
            inside = self.within(k, J)
            at = a[self.parent[k]] + (y if k == J else 0)
            for i in self.dofs[k]:
                r[i] = u.get(i, 0.0) - ((self.R[i] @ x if inside else 0.0) + self.U[i] @ at) / self.d[i]
                at = at + self.S[i] * r[i]
            a[k] = at
        return r

    def terms_by_q(self, j: int) -> tuple[Array, Array, Array]:
        """x, y and g of (1)."""
        J, S = self.joint[j], self.S[j]
        Psid = cross(self.v_parent[J]) @ S
        Psidd = cross(self.a_parent[J]) @ S + cross(self.v_parent[J]) @ Psid
        return Psid, Psidd, star(S) @ self.fC[J]

    def terms_by_v(self, j: int) -> tuple[Array, Array, Array]:
        J, S = self.joint[j], self.S[j]
        return S, cross(self.v[J]) @ S + cross(self.v_parent[J]) @ S, np.zeros(6)

    def by_q(self, j: int) -> Array:
        return self.column(j, *self.terms_by_q(j))

    def by_v(self, j: int) -> Array:
        return self.column(j, *self.terms_by_v(j))

    def by_tau(self, j: int) -> Array:
        J = self.joint[j]
        u, h = {j: 1 / self.d[j]}, self.U[j] / self.d[j]
        for i in reversed(range(self.dofs[J][0], j)):
            u[i] = -self.S[i] @ h / self.d[i]
            h = h + self.U[i] * u[i]
        return self.outward(u | self.up(self.parent[J], h), J, np.zeros(6), np.zeros(6))

    def compliances(self) -> dict[int, Array]:
        """(5), of every body; of the world at -1."""
        found = {-1: np.zeros((6, 6))}
        for k in range(len(self.I)):
            Omega = found[self.parent[k]]
            for i in self.dofs[k]:
                S, d = self.S[i], self.d[i]
                pass_on = np.eye(6) - np.outer(S, self.U[i]) / d
                Omega = pass_on @ Omega @ pass_on.T + np.outer(S, S) / d
            found[k] = Omega
        return found

    def row(self, k: int) -> tuple[Array, Array, Array]:
        """Theorem 2: row k by q, by v and of M^-1."""
        Omega, K = self.compliances(), self.joint[k]
        p, phi, handed, A = np.zeros(6), np.zeros(6), {}, {-1: np.zeros(6)}
        J = K
        while J >= 0:
            A[J] = -Omega[J] @ p  # for K itself replaced below
            for i in reversed([i for i in self.dofs[J] if i <= k]):
                s = -1.0 if i == k else self.S[i] @ p
                p, phi = p - self.U[i] * s / self.d[i], phi + self.R[i] * s / self.d[i]
            handed[J] = p, phi
            J = self.parent[J]
        by_tau = self.by_tau(k)
        A[K] = A[self.parent[K]] + sum(self.S[i] * by_tau[i] for i in self.dofs[K])
        for b in range(len(self.I)):
            if b not in A:
                A[b] = A[self.parent[b]] + sum(self.S[i] * by_tau[i] for i in self.dofs[b])
        rows = []
        for columns in (self.terms_by_q, self.terms_by_v):
            row = []
            for j in range(self.n):
                J, (x, y, g) = self.joint[j], columns(j)
                P, h = self.parent[J], self.PA[J] @ x + self.IA[J] @ y + g
                if not self.within(K, J):
                    row.append(-h @ A[P])
                    continue
                p, phi = handed[J]
                row.append(p @ (Omega[P] @ h - y) + phi @ x)
            rows.append(np.array(row))
        return rows[0], rows[1], by_tau
