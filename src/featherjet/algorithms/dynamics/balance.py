"""Balance of momentum over a time step: robots that float keep exactly the momentum that nothing takes from them.

A step of any integrator changes momentum by its own error. Where gravity and torques on the base are all that acts from
outside, the momentum at the end is known: p + h m g, and the same angular momentum about the centre of mass. Joints'
limits and friction act inside. So the base's velocity is corrected by Ic^-1 (what is missing), Ic the inertia of the
whole robot. The correction is as small as the integrator's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...math.scalars import Scalar
from ...math.spatial import Force, Inertia, Motion, Transform
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..motion import standing

FREE = "free"


class Whole(NamedTuple):
    """A root's placement in the world, the inertia of its tree, and its momentum, both in the root's frame."""

    W: Transform
    I: Inertia
    momentum: Force

    @property
    def centre(self) -> Vec3:
        return (1.0 / self.I.m) * self.I.h

    def about_centre(self, f: Force) -> Vec3:
        """The angular part of a momentum or force about the centre of mass."""
        return f.ang - self.centre.cross(f.lin)


def summed(scan: Any, q: Any, v: Any) -> tuple:
    """The inertia and the momentum of every subtree, in the frame of its root."""
    bodies = scan.outward(standing, scan.coordinates(q), scan.rates(v))
    inertias = scan.each(lambda node, body: node.body.placed(body.X), bodies)
    momenta = scan.each(lambda node, I, body: I @ body.u, inertias, bodies)
    keep = lambda node, total: (total, total)  # noqa: E731
    return scan.inward(keep, inertias), scan.inward(keep, momenta)


def balanced(scan: Any, q: Any, v: Any, end: Any, after: Any, tau: Any, solver_report: Any, h: Any) -> Any:
    """The velocities `after` a step from (q, v) to `end`, corrected at free roots of robots that no foot holds.

    solver_report: that of `contacts.feet.strike`, whose last number is 1 unless a foot touches the ground.
    """
    dt, afloat = scan.number(h), scan.numbers(solver_report, 4)[3]
    before, then = summed(scan, q, v), summed(scan, end, after)
    gravity = scan.tree.gravity

    def step(
        node: Node, q0: Sequence[Scalar], I0: Inertia, h0: Force, q1: Sequence[Scalar], I1: Inertia, h1: Force,
        after: Sequence[Scalar], tau: Sequence[Scalar],
    ) -> list[Scalar]:  # fmt: skip
        if not node.is_root or node.kind.name != FREE:
            return list(after)
        first = Whole(node.kind.move(node.X, q0, node.pitch), I0, h0)
        last = Whole(node.kind.move(node.X, q1, node.pitch), I1, h1)
        S = node.kind.subspace(Transform.identity(), node.pitch)
        delta = missing(first, last, Force(Vec3(*tau[3:]), Vec3(*tau[:3])), gravity, dt)
        along = [s.ang.dot(delta.ang) + s.lin.dot(delta.lin) for s in S]
        return [x + afloat * y for x, y in zip(after, along, strict=True)]

    fields = (scan.coordinates(q), *before, scan.coordinates(end), *then, scan.rates(after), scan.rates(tau))
    return scan.vector(scan.each(step, *fields))


def missing(first: Whole, last: Whole, push: Force, gravity: Vec3, h: Scalar) -> Motion:
    """What the root's velocity lacks at the end; push: the force on the root in its own frame."""

    def turned(x: Vec3) -> Vec3:
        """From the first frame to the last."""
        return last.W.R.transposed_times(first.W.R @ x)

    half = 0.5 * h
    p = turned(first.momentum.lin + half * push.lin) + half * push.lin
    p = p + (h * last.I.m) * last.W.R.transposed_times(gravity)
    L = turned(first.about_centre(first.momentum) + half * first.about_centre(push)) + half * last.about_centre(push)
    c, I = last.centre, last.I
    about = I.I.minus_outer(-1.0 * I.h, c).plus_diagonal(-1.0 * I.h.dot(c))
    ang = about.inverse() @ (L - last.about_centre(last.momentum))
    lin = (1.0 / I.m) * (p - last.momentum.lin) + c.cross(ang)
    return Motion(ang, lin)
