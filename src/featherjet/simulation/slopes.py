"""The derivative of a time step by its inputs: every stage differentiated in turn, contacts in their modes.

Worlds are one axis, B, and changes have columns, (B, n, K): what the state and torques do along K directions. Changes
of q are tangent vectors. The length of a step may change, too, as it does where a bounce divides it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algorithms.contacts.feet import landing
from ..contact.placed_feet import PlacedFeet
from ..model.model import Array
from .balance import Balance, MovingState, StepLoad
from .engine import Engine, Struck
from .modes import ModeEquations
from .stages import Attempt, StepStart, attempts, ended
from .steps import TimeStepping
from .turning import Turning

FULL = 1e-9  # share of dry friction's most: closer to it, a joint slides


class Ended(NamedTuple):
    """The state after a step, and percussions (B, 3 n) in world axes with their changes (B, 3 n, K)."""

    state: MovingState
    P: Array
    dP: Array


class SolutionSlopes(NamedTuple):
    """How a solution of the contact laws changes: its velocities, and its percussions."""

    du: Array
    dP: Array


class StepSlopes:
    """Differentiates the steps of a TimeStepping."""

    def __init__(self, steps: TimeStepping) -> None:
        self.steps, self.evaluate, self.laws, self.ground = steps, steps.evaluate, steps.laws, steps.ground
        self.model = steps.evaluate.model
        self.balance, self.axes = Balance(steps.evaluate), Turning(self.model)

    def free(self, s: MovingState, load: StepLoad, table: Array, away: Array) -> Ended:
        """A step without bounces. table (B, n, 6), away (B, n): see `treejit.stepping.StepCompiler.step`."""
        steps, unlimited = self.steps, self.steps.unlimited
        if unlimited is None:
            return self._step(steps.engine, bool(self.laws.stops), s, load, table, away)
        ended = self._step(unlimited, False, s, load, table, away)
        beyond = self.laws.reached(ended.state.q)
        if beyond.any():
            some = (
                MovingState(*(x[beyond] for x in s)),
                StepLoad(*(x[beyond] for x in load)),
                table[beyond],
                away[beyond],
            )
            stopped = self._step(steps.engine, True, *some)
            for x, y in zip((*ended.state, ended.P, ended.dP), (*stopped.state, stopped.P, stopped.dP), strict=True):
                x[beyond] = y
        return ended

    def _step(self, engine: Engine, stops: bool, s: MovingState, load: StepLoad, table: Array, away: Array) -> Ended:
        height = engine.approach(s.q, s.v, table)[0] + away
        dheight = self.ground.footing(self.evaluate, s.q, table).J[:, 2::3] @ s.dq
        lands = landing_slope(height, dheight, load)
        load, soft, dsoft = self._with_laws(s, load)
        start = np.zeros((len(s.q), 3 * len(self.ground.feet)))
        held = np.zeros((len(s.q), len(self.laws.stops), 2)) if stops else None
        ways = self.laws.ways(s.q) if stops else None
        given = StepStart(s.q, s.v, load.tau, soft, table, height, load.h, ways)
        dspeed = self._later(s.v, s.dv, (s.v, s.dv), load)
        slope, tries = SolutionSlopes(dspeed, start), list(attempts(self.evaluate, engine, given, start, held))
        for attempt in tries:
            du = self._later(s.v, s.dv, (attempt.speed, dspeed), load)
            slope = self._attempt(attempt, s, load, (soft, dsoft), (table, lands), (du, slope.du, dspeed))
            dspeed = du + (1.0 - 0.5 * attempt.found.solver_report[..., 1:2, None]) * (slope.du - du)
        return self._ended(engine, given, s, load, tries[-1], dspeed, slope)

    def _later(self, v: Array, dv: Array, speed: tuple[Array, Array], load: StepLoad) -> Array:
        """Changes of velocities in the axes of half a step later, which turn with `speed`; its change is given, too."""
        turn = 0.5 * (load.h[..., None] * speed[1] + speed[0][..., None] * load.dh)
        return self.axes.later_change(v, dv, 0.5 * load.h * speed[0], turn)

    def _way(self, speed: Array, dspeed: Array, load: StepLoad) -> Array:
        """The change of the way that a step with `speed` makes."""
        change = load.h[..., None] * dspeed + speed[..., None] * load.dh
        return self.axes.straight_change(load.h * speed, change)

    def _with_laws(self, s: MovingState, load: StepLoad) -> tuple[StepLoad, Array, Array]:
        """Torques with those of springs and dampers, what these add to inertias, and how that changes."""
        laws, (h, dh) = self.laws, (load.h, load.dh)
        damping, stiffness = laws.damping + load.damping, laws.stiffness + load.stiffness
        soft = h * damping + h * h * stiffness
        dsoft = h[..., None] * (load.ddamping + h[..., None] * load.dstiffness)
        dsoft = dsoft + (damping + 2 * h * stiffness)[..., None] * dh
        force = laws.pull(s.q, s.v).force - h * stiffness * s.v
        dforce = -(laws.damping + h * stiffness)[..., None] * s.dv - (stiffness * s.v)[..., None] * dh
        dforce = dforce - (h * s.v)[..., None] * load.dstiffness - laws.stiffness[:, None] * s.dq
        return load._replace(tau=load.tau + force, dtau=load.dtau + dforce), soft, dsoft

    def _attempt(
        self, attempt: Attempt, s: MovingState, load: StepLoad, soft: tuple[Array, Array], feet: tuple[Array, Array],
        starts: tuple[Array, Array, Array],
    ) -> SolutionSlopes:  # fmt: skip
        """How a solution of the contact laws changes; starts: changes of the velocities that the attempt begins with."""
        du, dguess, dspeed = starts
        tau, dtau, h, dh, dtheta, *_ = load
        u, _, speed, way, half, mid, found = attempt
        dmid, dhalf = 0.5 * (du + dguess), self._integrated(s, way, 0.5 * self._way(speed, dspeed, load))
        jump, still = found.v - u, self.axes.still(mid)
        d = self.evaluate("inverse_dynamics_derivatives", half, mid, jump / h + still)
        A = d.dtau_da + soft[0][..., None] * np.eye(self.model.nv) if soft[0].any() else d.dtau_da
        dbias = d.dtau_dq @ dhalf + d.dtau_dv @ dmid + d.dtau_da @ self.axes.still_change(mid, dmid)
        E = h[..., None] * (dbias - dtau) - A @ du + jump[..., None] * soft[1]
        if dtheta.size:
            E = E + h[..., None] * (self.evaluate("torque_regressor", half, mid, jump / h + still) @ dtheta)
        if dh.any():
            bias = self.evaluate("inverse_dynamics", half, mid, still)
            E = E + (bias - tau)[..., None] * dh
        if not found.P.any() and (found.held is None or not (self.laws.rubs or found.held.any())):
            return SolutionSlopes(np.linalg.solve(A, -E), np.zeros((*found.P.shape, E.shape[-1])))
        return self._struck(found, A, E, s, load, half, dhalf, feet)

    def _struck(
        self, found: Struck, A: Array, E: Array, s: MovingState, load: StepLoad, half: Array, dhalf: Array,
        feet: tuple[Array, Array],
    ) -> SolutionSlopes:  # fmt: skip
        table, lands = feet
        count, n = len(half), len(self.ground.feet)
        placed_feet = self.ground.footing(self.evaluate, half, table)
        F = found.P.reshape(count, n, 3)
        P = (placed_feet.axes @ F[..., None])[..., 0]
        gamma = (placed_feet.J @ found.v[..., None]).reshape(count, n, 3)
        c = placed_feet.moved(found.v) @ dhalf
        c[:, 2::3] += lands
        r = placed_feet.pushed(F) @ dhalf - E
        rows, held, e = placed_feet.J, np.zeros((count, 0)), np.zeros_like(c)
        if found.held is not None:
            held, reach, rub = self._stops(found.held, s, load)
            dofs = np.eye(self.model.nv)[list(self.laws.stops)]
            rows = np.concatenate([rows, np.broadcast_to(dofs, (count, *dofs.shape))], 1)
            c, e = np.concatenate([c, reach], 1), np.concatenate([e, rub], 1)
        du, dx = ModeEquations(A, rows, P, gamma, table[..., 5], held).solve(r, c, e)
        return SolutionSlopes(du, in_world(placed_feet, dx[:, : 3 * n]))

    def _stops(self, held: Array, s: MovingState, load: StepLoad) -> tuple[Array, Array, Array]:
        """For each stop: whether its rate is given, the change of that rate, and the change of free percussions."""
        dry, limit = held[..., 0], held[..., 1]
        h, dh, most = load.h, load.dh, load.h * self.laws.friction
        pressed = limit != 0
        full = np.abs(dry) >= most * (1 - FULL)
        sign = np.where(full, np.sign(dry), 0.0)
        ways = self.laws.ways(s.q)
        way = np.where(limit > 0, ways[..., 0], -ways[..., 1])
        along = s.dq[:, list(self.laws.stops)] / h[..., None] - (way / h**2)[..., None] * dh
        reach = np.where(pressed[..., None], along, 0.0)
        rub = np.where(pressed, 0.0, sign * self.laws.friction)[..., None] * dh
        return (pressed | ~full).astype(float), reach, rub

    def _integrated(self, s: MovingState, way: Array, dway: Array) -> Array:
        by_q, by_way = self.evaluate("integrate_jacobians", s.q, way)
        return by_q @ s.dq + by_way @ dway

    def _ended(
        self, engine: Engine, given: StepStart, s: MovingState, load: StepLoad, last: Attempt, dspeed: Array,
        slope: SolutionSlopes,
    ) -> Ended:  # fmt: skip
        """The state that the step leads to, and its changes."""
        found, report = last.found, last.found.solver_report
        speed, way, end, after = ended(self.evaluate, engine, given, last)
        dend = self._integrated(s, way, self._way(speed, dspeed, load))
        dafter = self._later(found.v, slope.du, (speed, dspeed), load)
        some = report[..., 3] > 0
        if engine.floats and some.any():
            unbalanced = self.axes.later(found.v, speed, load.h)
            part = [x[some] for x in (*s, *load, end, dend, unbalanced, dafter)]
            before, push = MovingState(*part[:4]), StepLoad(*part[4:-4])
            dafter[some] = self.balance(before, push, MovingState(part[-4], part[-2], part[-3], part[-1]), after[some])
        return Ended(MovingState(end, after, dend, dafter), found.P, slope.dP)


def in_world(placed_feet: PlacedFeet, dP: Array) -> Array:
    """Changes of percussions (B, 3 n, K) in world axes from those in the feet's axes."""
    blocks = dP.reshape(len(dP), -1, 3, dP.shape[-1])
    return (np.swapaxes(placed_feet.axes, -1, -2) @ blocks).reshape(dP.shape)


def landing_slope(height: Array, dheight: Array, load: StepLoad) -> Array:
    """How `feet.landing` changes (B, n, K): what feet may come down, or must come up, as a velocity."""
    h, step = load.h, 1e-40j
    by_height, by_h = (landing(h + x, height + y).imag / 1e-40 for x, y in ((0.0, step), (step, 0.0)))
    return by_height[..., None] * dheight + by_h[..., None] * load.dh
