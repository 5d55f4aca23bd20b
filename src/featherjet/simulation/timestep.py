"""One time step as a function of state and torques, with its derivatives."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..arrays import Out, copied
from ..contact.ground import Ground
from ..errors import InputError, SimulationWarning, warn
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..model.model import Array
from .balance import MovingState, StepLoad
from .bounce_slopes import bounced
from .laws import JointLaws, Pull
from .servos import Servo
from .slopes import Ended, StepSlopes
from .steps import TimeStepping

CHUNK = 256  # worlds that are differentiated at once


class StepResult(NamedTuple):
    """The state after a step, (..., nq) and (..., nv), and contact forces (..., 3 feet) [N] in world axes."""

    q: Array
    v: Array
    forces: Array


class StepDerivatives(NamedTuple):
    """Partials of the state after a step, (..., nv, nv), and of contact forces, (..., 3 feet, nv).

    Rows of q and columns by q are in the tangent spaces there.
    """

    dq_dq: Array
    dq_dv: Array
    dq_dtau: Array
    dv_dq: Array
    dv_dv: Array
    dv_dtau: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_dtau: Array


class StepParameterDerivatives(NamedTuple):
    """Partials by inertial parameters, (..., nv, 10 njoints) and (..., 3 feet, 10 njoints)."""

    dq_dparameters: Array
    dv_dparameters: Array
    dforces_dparameters: Array


class StepGainDerivatives(NamedTuple):
    """Partials by a servo's gains kp and kd, (..., nv, nv) and (..., 3 feet, nv)."""

    dq_dkp: Array
    dq_dkd: Array
    dv_dkp: Array
    dv_dkd: Array
    dforces_dkp: Array
    dforces_dkd: Array


class Changes(NamedTuple):
    """Of what a step takes, (..., n, K) each: state, torques, inertial parameters, a servo's gains; None: none."""

    dq: Array | None = None
    dv: Array | None = None
    dtau: Array | None = None
    dtheta: Array | None = None
    dkp: Array | None = None
    dkd: Array | None = None


class StepGradients(NamedTuple):
    """Derivatives of a weighted sum of what a step gives, (..., nv) each; that by q is in its tangent space."""

    by_q: Array
    by_v: Array
    by_tau: Array


class TimeStep:
    """A time step of dt as a function (q, v, tau) -> (q, v, forces): that of `World` and of "time-stepping".

    contacts: the Ground that feet touch, or None; passive: whether the joints' own laws act, as in `Robot.simulate`.
    servo: a Servo, which adds its torques to tau; its target may have an entry for each state, but is no function.
    Leading axes of q (..., nq), v, tau (..., nv) broadcast. Derivatives are exact while contacts keep their modes:
    each foot stays open, sticks or slides, each joint stays at its limit or away from it. At a change of modes they are
    those of one side. docs/contacts.md has more.

        step = fj.TimeStep(robot, ground, dt=2e-3)
        q, v, forces = step(q, v, tau)
        d = step.derivatives(q, v, tau)  # d.dq_dq, d.dv_dtau, ...
    """

    def __init__(
        self, robot: HasEvaluator, contacts: Ground | None = None, *, dt: float = 1e-3, passive: bool = True,
        servo: Servo | None = None,
    ) -> None:  # fmt: skip
        self.evaluator = evaluator = checked_robot(robot, contacts, dt, "TimeStep")
        self.servo = servo
        if servo is not None and not servo.model.same_robot(evaluator.model):
            raise InputError(f"servo: this servo belongs to another robot ({servo.model.name!r}); make one with this")
        if servo is not None and any(map(callable, (servo.target, servo.velocity, servo.feedforward))):
            raise InputError("servo: a step knows no time; give the servo's target as an array, not as a function")
        self.contacts, self.dt, self.passive = contacts, float(dt), bool(passive)
        self.laws = JointLaws(evaluator.model, passive)
        self._steps = TimeStepping(evaluator, self.dt, contacts, self.laws, ())
        self._slopes = StepSlopes(self._steps)
        self.forces = 0 if contacts is None else 3 * len(contacts.feet)

    def __repr__(self) -> str:
        return f"<TimeStep of {self.evaluator.model.name}: dt = {self.dt:g} s>"

    @property
    def facts(self) -> tuple:
        """What tells one step from another, of the same robot."""
        ground = self.contacts
        own = () if ground is None else (ground.core, ground.feet, ground.friction, ground.restitution, ground.terrain)
        return self.dt, self.passive, *own

    def steps(self, batch: tuple[int, ...]) -> TimeStepping:
        """The steps of worlds that go on from step to step."""
        return self._steps.afresh(batch)

    def __call__(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, out: Out = None) -> StepResult:
        """The state after a step, and the contact forces during it."""
        q, v, tau = self._checked(q, v, tau)
        push, pull = self._driven(q, v, tau)
        found = self.steps(q.shape[:-1])(q, v, self.laws.limited(push), pull)
        if not found.converged.all():
            warn(SimulationWarning(f"contact forces did not converge; the residual is {found.residual.max():.1e} N s"))
        return StepResult._make(copied(out, (found.q, found.v, found.forces)))

    def derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, out: Out = None) -> StepDerivatives:
        """Those of q, v and forces after the step, by q, v and tau."""
        q, v, tau = self._checked(q, v, tau)
        nv, batch = v.shape[-1], q.shape[:-1]
        columns = [np.eye(3 * nv)[k * nv : (k + 1) * nv] for k in range(3)]
        found = self._along(q, v, tau, Changes(*(np.broadcast_to(c, (*batch, *c.shape)) for c in columns)))
        parts = [x[..., k * nv : (k + 1) * nv] for x in found for k in range(3)]
        return StepDerivatives._make(copied(out, tuple(map(np.ascontiguousarray, parts))))

    def parameter_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, out: Out = None
    ) -> StepParameterDerivatives:
        """Those of q, v and forces after the step, by the inertial parameters of `Robot.inertial_parameters`."""
        q, v, tau = self._checked(q, v, tau)
        count = 10 * self.evaluator.model.njoints
        changes = Changes(dtheta=np.broadcast_to(np.eye(count), (*v.shape[:-1], count, count)))
        return StepParameterDerivatives._make(copied(out, tuple(self._along(q, v, tau, changes))))

    def gain_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, out: Out = None
    ) -> StepGainDerivatives:
        """Those of q, v and forces after the step, by the gains kp and kd of the servo."""
        if self.servo is None:
            raise InputError("gain_derivatives: this step has no servo; make it with TimeStep(..., servo=servo)")
        q, v, tau = self._checked(q, v, tau)
        nv = v.shape[-1]
        kp, kd = (np.broadcast_to(x, (*v.shape[:-1], nv, 2 * nv)) for x in np.split(np.eye(2 * nv), 2))
        found = self._along(q, v, tau, Changes(dkp=kp, dkd=kd))
        parts = (np.ascontiguousarray(part) for x in found for part in np.split(x, 2, -1))
        return StepGainDerivatives._make(copied(out, tuple(parts)))

    def jvp(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, dq: ArrayLike | None = None,
        dv: ArrayLike | None = None, dtau: ArrayLike | None = None,
    ) -> StepResult:  # fmt: skip
        """The change of q (..., nv, in its tangent space), v and forces along changes dq, dv, dtau (..., nv)."""
        q, v, tau = self._checked(q, v, tau)
        zero = np.zeros(v.shape[-1])
        changes = [
            zero if x is None else self.evaluator.checked_v(name, x)
            for name, x in (("dq", dq), ("dv", dv), ("dtau", dtau))
        ]
        batch = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in changes))
        wide = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v, tau, *changes)]
        found = self._along(wide[0], wide[1], wide[2], Changes(*(x[..., None] for x in wide[3:])))
        return StepResult._make(x[..., 0] for x in found)

    def vjp(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, wq: ArrayLike | None = None,
        wv: ArrayLike | None = None, wforces: ArrayLike | None = None,
    ) -> StepGradients:  # fmt: skip
        """The derivatives of wq.q + wv.v + wforces.forces after the step by q, v and tau.

        wq (..., nv) weighs the tangent vectors of q after the step; wv (..., nv), wforces (..., 3 feet).
        """
        d = self.derivatives(q, v, tau)
        given = {"wq": wq, "wv": wv, "wforces": wforces}
        sizes = (d.dq_dq.shape[-2], d.dv_dq.shape[-2], self.forces)
        weights = [
            np.zeros(n) if w is None else arrays.finite(name, w, (n,), f"{n} numbers")
            for (name, w), n in zip(given.items(), sizes, strict=True)
        ]
        by = [
            sum(((w[..., None, :] @ M)[..., 0, :] for w, M in zip(weights, d[k::3], strict=True)), np.zeros(()))
            for k in range(3)
        ]
        return StepGradients._make(by)

    def _checked(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None) -> tuple[Array, Array, Array]:
        """The inputs with equal batches."""
        e = self.evaluator
        tau = np.zeros(e.model.nv) if tau is None else e.checked_v("tau", tau)
        q, v = e.checked_q("q", q), e.checked_v("v", v)
        batch = arrays.common_batch({"q": (q, 1), "v": (v, 1), "tau": (tau, 1)})
        q, v, tau = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v, tau))
        return q, v, tau

    def _driven(self, q: Array, v: Array, tau: Array) -> tuple[Array, Pull | None]:
        """Torques, a servo's included, before effort limits; and its gains where its motors are within these."""
        if self.servo is None:
            return tau, None
        force, kd, kp = self.servo.pull(0.0, q, v)
        push = tau + force
        yields = (np.abs(push) <= self.laws.effort).astype(float)  # a motor at its limit is neither stiff nor damped
        return push, Pull(np.zeros_like(push), yields * kd, yields * kp)

    def _along(self, q: Array, v: Array, tau: Array, changes: Changes) -> list[Array]:
        """Changes of q, v and forces (..., n, K) at q, v, tau (..., n)."""
        batch, columns = v.shape[:-1], next(x.shape[-1] for x in changes if x is not None)
        none = np.zeros((*v.shape, columns))
        dq, dv, dtau = (none if x is None else x for x in changes[:3])
        dtheta, dkp, dkd = (np.zeros((*batch, 0, columns)) if x is None else x for x in changes[3:])
        push, pull = self._driven(q, v, tau)
        inside = (np.abs(push) <= self.laws.effort)[..., None]
        damping = stiffness = np.zeros_like(v)
        if self.servo is not None and pull is not None:
            way, rate = self.servo.errors(0.0, q, v)
            dtau = dtau + self.servo.kp[:, None] * (self.servo.turn(0.0, q) @ dq) - self.servo.kd[:, None] * dv
            if dkp.size:
                dtau = dtau + way[..., None] * dkp + rate[..., None] * dkd
            damping, stiffness = pull.damping, pull.stiffness
        h, dh = np.full((*batch, 1), self.dt), np.zeros((*batch, 1, columns))
        gains = damping, stiffness, *(np.where(inside, x, 0.0) if x.size else x for x in (dkd, dkp))
        load = StepLoad(self.laws.limited(push), np.where(inside, dtau, 0.0), h, dh, dtheta, *gains)
        count = prod(batch)
        flat = [x.reshape(count, *x.shape[len(batch) :]) for x in (q, v, dq, dv, *load)]
        parts = [self._of_some(*(x[k : k + CHUNK] for x in flat)) for k in range(0, max(count, 1), CHUNK)]
        found = [np.concatenate(x) for x in zip(*parts, strict=True)]
        return [x.reshape(*batch, *x.shape[1:]) for x in found]

    def _of_some(self, q: Array, v: Array, dq: Array, dv: Array, *load: Array) -> tuple[Array, ...]:
        ended = self._ended(MovingState(q, v, dq, dv), StepLoad(*load))
        return ended.state.dq, ended.state.dv, ended.dP[:, : self.forces] / self.dt

    def _ended(self, state: MovingState, load: StepLoad) -> Ended:
        if self._steps.bounces is not None:
            return bounced(self._slopes, self.steps((len(state.q),)), state, load)
        table = self._steps.table(state.q)
        table = np.broadcast_to(table, (len(state.q), *table.shape[-2:]))
        return self._slopes.free(state, load, table, np.zeros(table.shape[:-1]))


def checked_robot(robot: HasEvaluator, contacts: Ground | None, dt: float, what: str) -> Evaluator:
    """The evaluator of a robot that is stepped on its ground in steps of dt; raises if they do not fit."""
    evaluator = getattr(robot, "evaluator", None)
    if not isinstance(evaluator, Evaluator):
        raise InputError(f"{what}: expected a robot first, such as fj.load(...), got {type(robot).__name__}")
    if evaluator.coordinates is not None:
        raise InputError(f"{what}: does not know the convention {evaluator.convention!r}; use robot.simulate")
    if contacts is not None and not (isinstance(contacts, Ground) and contacts.model.same_robot(evaluator.model)):
        raise InputError("contacts: expected a Ground of this robot, or None")
    if not (isinstance(dt, (int, float)) and 0 < dt < 1e30):
        raise InputError(f"dt: expected a positive time in seconds, got {arrays.shortened(dt)}")
    return evaluator.standard
