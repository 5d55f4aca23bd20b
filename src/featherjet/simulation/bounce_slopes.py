"""The derivative of a step with bounces, at the instants where they happen.

A passage ends where a foot touches the ground, height = 0, so its length h changes with the state: dheight/dh dh +
dheight = 0, and what is left of the step changes by -dh. The impact follows: M (u - v) = J^T P, with percussions in the
modes of its compression, then of its restitution, whose normal percussions are (1 + e) times those of compression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Array
from .balance import MovingState, StepLoad
from .bounces import Bounce, Passage
from .engine import WorldStep
from .laws import Pull
from .modes import ModeEquations
from .slopes import Ended, StepSlopes, in_world
from .steps import TimeStepping


class _Total(NamedTuple):
    """Changes of all worlds so far, (B, n, K) each: state, time that is left, percussions."""

    dq: Array
    dv: Array
    left: Array
    dP: Array


def bounced(slopes: StepSlopes, steps: TimeStepping, s: MovingState, load: StepLoad) -> Ended:
    """A step of `steps`, which has restitution."""
    assert steps.bounces is not None
    log: list[Passage] = []
    pull = Pull(np.zeros_like(load.tau), load.damping, load.stiffness)
    found, P = steps.bounces(s.q, s.v, load.tau, pull, log)
    total = _Total(s.dq.copy(), s.dv.copy(), load.dh.copy(), np.zeros((*P.shape, s.dq.shape[-1])))
    for passage in log:
        _pass(slopes, passage, load, total)
        if passage.impact is not None:
            _collide(slopes, steps, passage, passage.impact, load.dtheta, total)
    return Ended(MovingState(found.q, found.v, total.dq, total.dv), P, total.dP)


def _pass(slopes: StepSlopes, passage: Passage, load: StepLoad, total: _Total) -> None:
    """Move on to the end of a passage, whose length is one more column."""
    moves = passage.spent > 0
    at = passage.worlds[moves]
    if not len(at):
        return
    table = np.broadcast_to(passage.table, (len(passage.q), *passage.table.shape[-2:]))[moves]
    state = MovingState(passage.q[moves], passage.v[moves], _wider(total.dq[at]), _wider(total.dv[at]))
    h = passage.spent[moves, None]
    dh = np.zeros((len(at), 1, state.dq.shape[-1]))
    dh[..., -1] = 1.0
    now = StepLoad(*(x[at] if x.ndim == 2 else _wider(x[at]) for x in load))._replace(h=h, dh=dh)
    ended = slopes.free(state, now, table, passage.away[moves])
    hits = passage.hits[moves]
    rows = slopes.ground.footing(slopes.evaluate, ended.state.q, table).J[:, 2::3]
    rise = (rows[np.arange(len(at)), np.maximum(hits, 0), None] @ ended.state.dq)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        until = -rise[:, :-1] / rise[:, -1:]
    length = np.where((hits >= 0)[:, None], until, total.left[at, 0])[:, None]
    for x, y in ((total.dq, ended.state.dq), (total.dv, ended.state.dv)):
        x[at] = y[..., :-1] + y[..., -1:] * length
    total.dP[at] += ended.dP[..., :-1] + ended.dP[..., -1:] * length
    total.left[at] -= length


def _wider(x: Array) -> Array:
    return np.concatenate([x, np.zeros_like(x[..., :1])], -1)


def _collide(
    slopes: StepSlopes, steps: TimeStepping, passage: Passage, impact: Bounce, dtheta: Array, total: _Total
) -> None:
    at = impact.worlds
    rows = np.searchsorted(passage.worlds, at)
    table = passage.table if passage.table.ndim == 2 else passage.table[rows]
    table = np.broadcast_to(table, (len(at), *table.shape[-2:]))
    hit = _Hit(slopes, impact, total, table, dtheta[at])
    _, dP = hit.changes(impact.compressed, None)
    normals = (table[..., :3, None] * dP.reshape(len(at), -1, 3, dP.shape[-1])).sum(-2)
    dv, dP = hit.changes(impact.restored, (1.0 + steps.ground.restitution)[:, None] * normals)
    total.dv[at] = dv
    total.dP[at] += dP


class _Hit:
    """The equations of an impact of some worlds."""

    def __init__(self, slopes: StepSlopes, impact: Bounce, total: _Total, table: Array, dtheta: Array) -> None:
        self.slopes, self.table, self.dtheta = slopes, table, dtheta
        self.q, self.dq, self.dv = impact.compressed.q, total.dq[impact.worlds], total.dv[impact.worlds]
        self.before = impact.before
        self.placed_feet = slopes.ground.footing(slopes.evaluate, self.q, table)

    def changes(self, found: WorldStep, normals: Array | None) -> tuple[Array, Array]:
        """Of velocities and of percussions in world axes; normals (B, n, K): the change of given normal percussions."""
        evaluate, placed_feet, n = self.slopes.evaluate, self.placed_feet, self.table.shape[-2]
        jump, rest = found.v - self.before, np.zeros_like(found.v)
        d, weight = (evaluate("inverse_dynamics_derivatives", self.q, rest, a) for a in (jump, rest))
        M = d.dtau_da
        F = found.P.reshape(-1, n, 3)
        r = (placed_feet.pushed(F) - d.dtau_dq + weight.dtau_dq) @ self.dq + M @ self.dv
        if self.dtheta.size:
            Y, Y0 = (evaluate("torque_regressor", self.q, rest, a) for a in (jump, rest))
            r = r - (Y - Y0) @ self.dtheta
        c = placed_feet.moved(found.v) @ self.dq
        e = np.zeros_like(c)
        if normals is not None:
            e[:, 2::3] = normals
        P = (placed_feet.axes @ F[..., None])[..., 0]
        gamma = (placed_feet.J @ found.v[..., None]).reshape(P.shape)
        held = np.zeros((len(P), 0))
        problem = ModeEquations(M, placed_feet.J, P, gamma, self.table[..., 5], held, normals is not None)
        du, dx = problem.solve(r, c, e)
        return du, in_world(placed_feet, dx)
