"""The derivative of a time step by its inputs: every stage differentiated in turn, contacts in their modes.

Worlds are one axis, B, and changes have columns, (B, n, K): what the state and torques do along K directions. Changes
of q are tangent vectors. The length of a step may change, too, as it does where a bounce divides it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algorithms.contacts.feet import landing
from ..contact.placed_feet import PlacedFeet
from ..errors import SimulationWarning, warn
from ..model.model import Array
from .balance import STEP, Balance, MovingState, StepLoad
from .engine import Engine, Struck
from .modes import ModeEquations
from .stages import Attempt, StepStart, attempts, ended
from .steps import TimeStepping
from .turning import Stage, Turning

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
        self.balance, self.axes = Balance(steps.evaluate), Turning(steps.evaluate)

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
        placed_feet = self.ground.footing(self.evaluate, s.q, table)
        lands = landing_slope(height, placed_feet.J[:, 2::3] @ s.dq, load)
        load, soft, dsoft = self._with_laws(s, load)
        start = np.zeros((len(s.q), 3 * len(self.ground.feet)))
        held = np.zeros((len(s.q), len(self.laws.stops), 2)) if stops else None
        ways = self.laws.ways(s.q) if stops else None
        given = StepStart(s.q, s.v, load.tau, soft, table, height, load.h, ways)
        dh = load.dh if load.dh.any() else None  # bounces divide the step
        tries = list(attempts(self.evaluate, self.axes, engine, given, start, held))
        last = tries[-1].found
        if not self.steps.settled(last.solver_report, last.P, last.held).all():
            warn(SimulationWarning("contact forces did not converge, nor do derivatives hold where they did not"))
        du = dspeed = tries[0].axes.change(s.dv, s.dv, dh)
        slope = SolutionSlopes(du, start)
        for k, attempt in enumerate(tries):
            du = attempt.axes.change(s.dv, dspeed, dh) if k else du
            starts, feet = (du, slope.du, dspeed), (table, placed_feet.axes, lands)
            slope = self._attempt(attempt, s, load, (soft, dsoft), feet, starts)
            dspeed = du + (1.0 - 0.5 * attempt.found.solver_report[..., 1:2, None]) * (slope.du - du)
        return self._ended(engine, given, s, load, tries[-1], dspeed, slope)

    def _with_laws(self, s: MovingState, load: StepLoad) -> tuple[StepLoad, Array, Array]:
        """Torques with those of springs and dampers, what these add to inertias, and how that changes."""
        laws, (h, dh) = self.laws, (load.h, load.dh)
        if laws.free and not (load.ddamping.size or load.damping.any() or load.stiffness.any()):
            return load, np.zeros_like(s.v), load.ddamping
        damping, stiffness = laws.damping + load.damping, laws.stiffness + load.stiffness
        soft = h * damping + h * h * stiffness
        dsoft = (damping + 2 * h * stiffness)[..., None] * dh
        if load.ddamping.size:
            dsoft = dsoft + h[..., None] * (load.ddamping + h[..., None] * load.dstiffness)
        force = laws.pull(s.q, s.v).force - h * stiffness * s.v
        dforce = -(laws.damping + h * stiffness)[..., None] * s.dv - (stiffness * s.v)[..., None] * dh
        dforce = dforce - laws.stiffness[:, None] * s.dq
        if load.dstiffness.size:
            dforce = dforce - (h * s.v)[..., None] * load.dstiffness
        return load._replace(tau=load.tau + force, dtau=load.dtau + dforce), soft, dsoft

    def _attempt(
        self, attempt: Attempt, s: MovingState, load: StepLoad, soft: tuple[Array, Array],
        feet: tuple[Array, Array, Array], starts: tuple[Array, Array, Array],
    ) -> SolutionSlopes:  # fmt: skip
        """How a solution of the contact laws changes; starts: changes of the velocities that it begins with."""
        du, dguess, dspeed = starts
        tau, dtau, h, dh, dtheta, *_ = load
        axes, half, mid, found = attempt[2:]
        dhalf = self._integrated(s, 0.5, axes, attempt.speed, dspeed, load)
        jump, still = found.v - axes.u, axes.still
        d = self.evaluate("inverse_dynamics_derivatives", half, mid, jump / h + still)
        A = d.dtau_da + soft[0][..., None] * np.eye(self.model.nv) if soft[0].any() else d.dtau_da
        dbias = d.dtau_dq @ dhalf + axes.by_mid(d.dtau_dv, d.dtau_da) @ (0.5 * (du + dguess))
        E = h[..., None] * (dbias - dtau) - A @ du
        if soft[1].size:
            E = E + jump[..., None] * soft[1]
        if dtheta.size:
            E = E + h[..., None] * (self.evaluate("torque_regressor", half, mid, jump / h + still) @ dtheta)
        if dh.any():
            bias = self.evaluate("inverse_dynamics", half, mid, still)
            E = E + (bias - tau)[..., None] * dh
        felt = found.P.any(-1)
        if found.held is not None:
            felt = felt | self.laws.rubs | found.held.any((-1, -2))
        if felt.all():
            return self._struck(found, A, E, s, load, half, dhalf, feet)
        free = SolutionSlopes(np.linalg.solve(A, -E), np.zeros((*found.P.shape, E.shape[-1])))
        if felt.any():  # each world's derivatives are those that it has alone
            held = None if found.held is None else found.held[felt]
            hit = Struck(found.v[felt], found.P[felt], found.solver_report[felt], held)
            at, push = MovingState(*(x[felt] for x in s)), StepLoad(*(x[felt] for x in load))
            table, planes, lands = (x[felt] for x in feet)
            given = hit, A[felt], E[felt], at, push, half[felt], dhalf[felt], (table, planes, lands)
            free.du[felt], free.dP[felt] = self._struck(*given)
        return free

    def _struck(
        self, found: Struck, A: Array, E: Array, s: MovingState, load: StepLoad, half: Array, dhalf: Array,
        feet: tuple[Array, Array, Array],
    ) -> SolutionSlopes:  # fmt: skip
        table, axes, lands = feet
        count, n = len(half), len(self.ground.feet)
        placed_feet = self.ground.footing(self.evaluate, half, table, axes)
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

    def _integrated(
        self, s: MovingState, share: float, axes: Stage, speed: Array, dspeed: Array, load: StepLoad
    ) -> Array:
        """The change of the configuration after a share of the way that a step with `speed` makes."""
        by_q, by_way = self.evaluate("integrate_jacobians", s.q, share * axes.way)
        found = by_q @ s.dq + (share * axes.by_speed(by_way, load.h)) @ dspeed
        return found + share * (by_way @ axes.by_h(speed)) * load.dh if load.dh.any() else found

    def _ended(
        self, engine: Engine, given: StepStart, s: MovingState, load: StepLoad, last: Attempt, dspeed: Array,
        slope: SolutionSlopes,
    ) -> Ended:  # fmt: skip
        """The state that the step leads to, and its changes."""
        found, report = last.found, last.found.solver_report
        speed, axes, end, after = ended(self.evaluate, self.axes, engine, given, last)
        dend = self._integrated(s, 1.0, axes, speed, dspeed, load)
        dafter = axes.change(slope.du, dspeed, load.dh if load.dh.any() else None)
        some = report[..., 3] > 0
        if engine.floats and some.any():
            part = [x[some] for x in (*s, *load, end, dend, axes.u, dafter)]
            before, push = MovingState(*part[:4]), StepLoad(*part[4:-4])
            dafter[some] = self.balance(before, push, MovingState(part[-4], part[-2], part[-3], part[-1]), after[some])
        return Ended(MovingState(end, after, dend, dafter), found.P, slope.dP)


def in_world(placed_feet: PlacedFeet, dP: Array) -> Array:
    """Changes of percussions (B, 3 n, K) in world axes from those in the feet's axes."""
    blocks = dP.reshape(len(dP), -1, 3, dP.shape[-1])
    return (np.swapaxes(placed_feet.axes, -1, -2) @ blocks).reshape(dP.shape)


def landing_slope(height: Array, dheight: Array, load: StepLoad) -> Array:
    """How `feet.landing` changes (B, n, K): what feet may come down, or must come up, as a velocity."""
    found = (landing(load.h, height + STEP * 1j).imag / STEP)[..., None] * dheight
    if load.dh.any():
        found += (landing(load.h + STEP * 1j, height).imag / STEP)[..., None] * load.dh
    return found
