"""The parts of a time step with NumPy and dense matrices: the definition, and the way of robots that mimic."""

from __future__ import annotations

import numpy as np

from ..algorithms.contacts import dense, feet
from ..algorithms.dynamics import balance
from ..algorithms.scan import Scan
from ..contact.ground import Ground
from ..evaluate.evaluator import Evaluator
from ..evaluate.reference import leading, trailing
from ..math.vec3 import Vec3
from ..model.model import Array
from .engine import IN_FLIGHT, Struck, WorldStep
from .stages import StepStart, attempts, ended
from .turning import Turning


class Reference:
    """An `engine.Engine` that is not compiled."""

    def __init__(
        self, evaluator: Evaluator, ground: Ground, stops: tuple[int, ...] = (), balanced: bool = False
    ) -> None:
        self.evaluate, self.ground, self.stops, self.floats = evaluator, ground, list(stops), balanced
        self.axes = Turning(evaluator)

    def approach(self, q: Array, v: Array, table: Array) -> tuple[Array, Array]:
        rows = self.ground.footing(self.evaluate, q, table)
        normal, d, radius = table[..., :3], table[..., 3], table[..., 4]
        return (normal * rows.centres).sum(-1) - d - radius, (rows.J @ v[..., None])[..., 2::3, 0]

    def step(
        self, q: Array, v: Array, tau: Array, soft: Array, table: Array, away: Array, start: Array, h: Array,
        stops: Array | None, held: Array | None,
    ) -> WorldStep:  # fmt: skip
        given = StepStart(q, v, tau, soft, table, self.approach(q, v, table)[0] + away, h, stops)
        *_, last = attempts(self.evaluate, self.axes, self, given, start, held)
        end, found = ended(self.evaluate, self.axes, self, given, last), last.found
        return WorldStep(end.q, end.v, found.P, found.solver_report, found.held)

    def strike(
        self, half: Array, v: Array, mid: Array, tau: Array, soft: Array, table: Array, height: Array, start: Array,
        h: Array, stops: Array | None, held: Array | None,
    ) -> Struck:  # fmt: skip
        M = self.evaluate("mass_matrix", half) + soft[..., None] * np.eye(soft.shape[-1])
        bias = self.evaluate("inverse_dynamics", half, mid, self.axes.stage(mid, mid, 0.0 * mid, h).still)
        free = v + h * np.linalg.solve(M, (tau - bias)[..., None])[..., 0]
        laws = feet.Law, table, height, h, start
        return self._settled(M, self.ground.footing(self.evaluate, half, table).J, free, laws, stops, held)

    def impact(self, law: str, q: Array, v: Array, table: Array, height: Array, start: Array) -> WorldStep:
        kind = {"compression": feet.Compression, "restitution": feet.Restitution}[law]
        M, J = self.evaluate("mass_matrix", q), self.ground.footing(self.evaluate, q, table).J
        found = self._settled(M, J, v, (kind, table, height, np.ones(1), start), None, None)
        return WorldStep(q, *found[:3])

    def _settled(self, M: Array, J: Array, free: Array, laws: tuple, stops: Array | None, held: Array | None) -> Struck:
        """The percussions after which velocities obey the laws; free: velocities without them."""
        kind, *given = laws
        lanes, n = free.shape[:-1], len(self.ground.feet)
        table, height, h, start = (trailing(x, core, lanes) for x, core in zip(given, (2, 1, 1, 1), strict=True))
        each = [kind(table[k], height[k], h[0], Vec3(*start[3 * k : 3 * k + 3])) for k in range(n)]
        rows = J
        if stops is not None:
            own = np.eye(M.shape[-1])[self.stops]
            rows = np.concatenate([J, np.broadcast_to(own, (*lanes, *own.shape))], -2)
        back = np.linalg.solve(M, np.swapaxes(rows, -1, -2))
        G, velocity = trailing(rows @ back, 2, lanes), trailing((rows @ free[..., None])[..., 0], 1, lanes).copy()
        for k, law in enumerate(each):
            velocity[3 * k + 2] += law.landing
        ways = trailing(np.zeros((0, 3)) if stops is None else stops, 2, lanes)
        guess = None if held is None else trailing(held, 2, lanes)
        found = dense.settle(G, dense.GivenLaws(each, velocity, ways, h[0]), guess)
        x, P, held_by, report = (leading(y, len(lanes)) for y in found)
        after = free + (back @ x[..., None])[..., 0]
        return Struck(after, P.reshape(*lanes, 3 * n), report, None if held is None else held_by)

    def balanced(self, q: Array, v: Array, end: Array, after: Array, tau: Array, h: Array) -> Array:
        tree, lanes = self.evaluate.tree, after.shape[:-1]
        given = [trailing(x, 1, lanes) for x in (q, v, end, after, tau, IN_FLIGHT, h)]
        found, own = given[3].copy(), np.arange(tree.nv)
        if (c := tree.coupling) is not None:
            own = c.vi
            for k, x in enumerate(given[:5]):
                given[k] = (x[c.qi].T * c.qs + c.q0).T if k in (0, 2) else (x[c.vi].T * c.vs).T
        corrected = balance.balanced(Scan(tree, lanes), *given)
        for node in tree.nodes:
            if node.is_root and node.kind.name == balance.FREE:  # nothing mimics these, nor do they
                found[own[node.v]] = corrected[node.v]
        return leading(found, len(lanes))
