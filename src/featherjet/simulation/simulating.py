"""Simulates a robot under a controller, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..blas import sum_of_squares
from ..contact.bilateral import Contacts
from ..contact.ground import Ground
from ..errors import (
    InputError,
    SimulationError,
    SimulationWarning,
    SingularContacts,
    SingularMassMatrix,
    UnknownName,
    warn,
)
from ..evaluate.convert import converted
from ..evaluate.evaluator import Evaluator
from ..evaluate.velocities import OwnVelocities
from ..forks import unforked
from ..model.model import Array
from .buried import buried
from .held import HeldStepping
from .laws import JointLaws, Pull
from .lost import FAILURES, Living, told
from .servos import Servo
from .steps import Smooth, Stopping, TimeStepping
from .trajectory import Trajectory

Controller = Callable[[float, Array, Array], ArrayLike]
STEPPING = "time-stepping"
METHODS = ("rk4", "semi-implicit", STEPPING)
MOST_BYTES = 16_000_000_000
STIFF = 0.5  # share of its velocity that a joint may lose in a step to springs and dampers, in explicit methods
MOST = 10_000_000  # steps; more is likely a mistake


def simulate(
    evaluator: Evaluator,
    q: ArrayLike,
    v: ArrayLike,
    controller: Controller | ArrayLike | None = None,
    contacts: Contacts | Ground | None = None,
    dt: float = 1e-3,
    duration: float = 1.0,
    method: str | None = None,
    passive: bool = True,
    progress: bool = True,
) -> Trajectory:
    """See `Robot.simulate`."""
    if isinstance(evaluator.coordinates, OwnVelocities):
        raise InputError(
            "simulate: a trajectory knows no own velocities; simulate the robot in its convention and use fj.convert"
        )
    standard = evaluator.standard  # steps do not depend on the convention
    start = converted(evaluator, standard, q, v)
    assert start.v is not None
    batch = np.broadcast_shapes(start.q.shape[:-1], start.v.shape[:-1])
    steps, laws = _count(dt, duration), JointLaws(evaluator.model, passive)
    servo = controller if isinstance(controller, Servo) else None
    step = _step(standard, contacts, float(dt), method, laws, batch, start.q, servo)
    command = _controller(evaluator, controller, laws, batch)
    record, living = _Record(evaluator, steps, float(dt), step, batch), Living(step, batch)
    record.state(0, start.q, start.v)
    if isinstance(step, TimeStepping) and (sunk := step.sunk(start.q)):
        warn(SimulationWarning(sunk))
    done = 0
    try:
        with _ProgressBar(progress, steps) as advance:
            for k in range(steps):
                at, u = record.q[k], record.v[k]
                tau, pull = command(k * dt, at.copy(), u.copy())
                try:
                    after = living(at, u, tau, pull)
                except (SingularContacts, SingularMassMatrix) as error:
                    raise SimulationError(f"at t = {k * dt:g} s: {error}", record.trajectory(k)) from error
                except FAILURES as error:  # numbers are no longer finite
                    raise _diverged(record, k, dt) from error
                record.step(k, living.replacing(tau), after.forces, after.residual, living.lost)
                if living.lost.all():
                    raise _diverged(record, k, dt)
                record.state(k + 1, after.q, after.v)
                record.unconverged += not after.converged.all()
                done = k + 1
                advance()
    except KeyboardInterrupt:
        warn(SimulationWarning(f"interrupted at t = {done * dt:g} s; returns the motion so far"))
    for said in filter(None, record.remarks(done, living.lost)):
        warn(SimulationWarning(said))
    return record.trajectory(done)


class _Record:
    """The motion so far, in standard coordinates."""

    def __init__(
        self,
        evaluator: Evaluator,
        steps: int,
        dt: float,
        step: Smooth | TimeStepping | HeldStepping | Stopping,
        batch: tuple,
    ) -> None:
        self.evaluator, self.steps, self.dt, self.contacts = evaluator, steps, dt, step.contacts
        nq, nv = evaluator.model.nq, evaluator.model.nv
        self.names, slices = ((), ()) if step.contacts is None else (step.contacts.names, step.contacts.slices)
        self.rows = tuple(at.stop - at.start for at in slices)
        self.friction = tuple(step.contacts.friction.tolist()) if isinstance(step.contacts, Ground) else ()
        n = (steps + 1, *batch)
        size = math.prod(n) * (nq + 2 * nv + sum(self.rows)) * 8
        if size > MOST_BYTES:
            raise InputError(
                f"simulate: {steps} steps of {math.prod(batch)} worlds would take {size / 1e9:.3g} GB; the limit is "
                f"{MOST_BYTES / 1e9:.3g} GB. Simulate fewer worlds, or a shorter duration, at a time"
            )
        self.q, self.v, self.tau = np.empty((*n, nq)), np.empty((*n, nv)), np.zeros((*n, nv))
        self.forces, self.residual = np.zeros((*n, sum(self.rows))), np.zeros(n)
        self.unconverged = 0
        self.lost_at = np.full(batch, steps + 1)  # the first state of each world that is not one

    def state(self, k: int, q: Array, v: Array) -> None:
        self.q[k], self.v[k] = q, v

    def step(self, k: int, tau: Array, forces: Array, residual: Array, lost: Array) -> None:
        self.tau[k], self.forces[k], self.residual[k] = tau, forces, residual
        if lost.any():
            self.lost_at[lost & (self.lost_at > k)] = k + 1

    def remarks(self, done: int, lost: Array) -> Iterator[str]:
        """What to warn of after so many steps."""
        if lost.any():
            yield f"{told(lost)} from t = {self.dt * self.lost_at.min():.3g} s on, and the others go on"
        if isinstance(self.contacts, Ground):
            yield buried(self.evaluator.standard, self.contacts, self.dt * np.arange(done + 1), self.q[: done + 1])
        if self.unconverged:
            yield (
                f"contact forces did not converge in {self.unconverged} of {done} steps; the largest residual is "
                f"{self.residual[:done].max():.1e} N s. See Trajectory.residual; a smaller dt may help"
            )

    def trajectory(self, done: int) -> Trajectory:
        """The first `done` steps, in the robot's convention; the last torques and forces are repeated."""
        n = done + 1
        standard = self.evaluator.standard
        here = converted(standard, self.evaluator, self.q[:n], self.v[:n], tau=self.tau[:n])
        parts = [np.array(x) for x in (here.q, here.v, here.tau, self.forces[:n], self.residual[:n])]
        gone = np.arange(n).reshape(-1, *[1] * self.lost_at.ndim) >= self.lost_at
        for x in parts[2:]:
            x[done] = x[max(done - 1, 0)]
        batch = self.residual.shape[1:]
        arrows, surface = np.zeros((n, *batch, 0, 2, 3)), np.zeros((0, 0, 3))
        if self.contacts is not None:
            arrows = self.contacts.arrows(standard, self.q[:n], parts[3])
            surface = self.contacts.surface(arrows[..., 0, :].reshape(-1, 3))
        for x in (*parts, arrows) if gone.any() else ():
            x[gone] = np.nan
        return Trajectory(
            self.dt * np.arange(n),
            *(np.moveaxis(x, 0, len(batch)) for x in parts),
            arrows=np.moveaxis(arrows, 0, len(batch)),
            surface=surface,
            contacts=self.names,
            rows=self.rows,
            robot=self.evaluator.model.name,
            model=self.evaluator.model,
            convention=self.evaluator.convention,
            complete=done == self.steps,
            friction=self.friction,
        )


def _count(dt: float, duration: float) -> int:
    for name, x in (("dt", dt), ("duration", duration)):
        if arrays.finite(name, x, (), "a number").shape != () or not 0 < x < 1e300:
            raise InputError(f"{name}: expected a positive time in seconds, got {x!r}")
    if dt > duration:
        raise InputError(f"dt: a step of {dt:g} s does not fit into a duration of {duration:g} s")
    steps = duration / dt if duration < dt * (MOST + 1) else np.inf
    if steps > MOST + 1e-9:
        many = f"{math.ceil(duration / dt - 1e-9)} steps" if duration / dt < np.inf else "too many steps"
        raise InputError(
            f"dt: {duration:g} s in steps of {dt:g} s would be {many}; the limit is {MOST}. Use a larger dt"
        )
    return math.ceil(steps - 1e-9)


def _step(
    evaluator: Evaluator, contacts: Contacts | Ground | None, dt: float, method: str | None, laws: JointLaws,
    batch: tuple[int, ...], q: Array, servo: Servo | None,
) -> Smooth | TimeStepping | HeldStepping | Stopping:  # fmt: skip
    """What makes the steps; without a method, the one that suits the robot and its controller."""
    if method is not None and method not in METHODS:
        raise UnknownName("method", method, METHODS)
    if isinstance(contacts, Ground):
        if not contacts.model.same_robot(evaluator.model):
            raise InputError(
                f"contacts: this ground belongs to another robot ({contacts.model.name!r}); make one with this robot"
            )
        return TimeStepping(evaluator, dt, contacts, laws, batch)
    if contacts is not None and not isinstance(contacts, Contacts):
        raise InputError(f"contacts: expected fj.Ground, fj.Contacts or None, got {type(contacts).__name__}")

    def stepping() -> TimeStepping | HeldStepping:
        if contacts is None:
            return TimeStepping(evaluator, dt, None, laws, batch)
        return HeldStepping(evaluator, dt, contacts, laws)

    if method == STEPPING or (method is None and (laws.rubs or _stiff(evaluator, dt, laws, q, servo))):
        return stepping()
    smooth = Smooth(evaluator, dt, method or "rk4", laws, contacts)
    return Stopping(smooth, stepping()) if laws.stops else smooth


def _stiff(evaluator: Evaluator, dt: float, laws: JointLaws, q: Array, servo: Servo | None) -> bool:
    """Whether springs or dampers act so fast that explicit methods would be unstable or inexact."""
    damping, stiffness = laws.damping, laws.stiffness
    if servo is not None:
        damping, stiffness = damping + servo.kd, stiffness + servo.kp
    if not (damping.any() or stiffness.any()):
        return False
    inertia = 1.0 / np.diagonal(evaluator("inverse_mass_matrix", q.reshape(-1, q.shape[-1])[0]))
    return bool((dt * damping + dt**2 * stiffness > STIFF * inertia).any())


def _controller(
    evaluator: Evaluator, given: Controller | ArrayLike | None, laws: JointLaws, batch: tuple[int, ...]
) -> Callable[..., tuple[Array, Pull | None]]:
    """A function from time and standard state to checked standard torques (..., nv), and a servo's gains.

    The user's controller reads and returns those of the evaluator's convention.
    """
    standard = evaluator.standard
    if isinstance(given, Servo):
        return _servo(evaluator, given, laws)
    command = _torques(evaluator, given, batch)

    def in_standard(t: float, q: Array, v: Array) -> tuple[Array, None]:
        if evaluator.coordinates is None:
            return laws.limited(command(t, q, v)), None
        here = converted(standard, evaluator, q, v)
        tau = command(t, here.q.copy(), here.v)  # a copy, which the controller may overwrite
        return laws.limited(np.asarray(converted(evaluator, standard, here.q, tau=tau).tau)), None

    return in_standard


def _servo(evaluator: Evaluator, servo: Servo, laws: JointLaws) -> Callable[..., tuple[Array, Pull | None]]:
    if not servo.model.same_robot(evaluator.model) or servo.evaluator.convention != evaluator.convention:
        raise InputError(
            f"controller: this servo belongs to another robot ({servo.model.name!r}) or convention; make one with this"
        )
    if evaluator.coordinates is not None:
        raise InputError(f"controller: servos do not know the convention {evaluator.convention!r}; use a function")

    def command(t: float, q: Array, v: Array) -> tuple[Array, Pull]:
        pull = servo.pull(t, q, v)
        force = laws.limited(pull.force)
        yields = (force == pull.force).astype(float)  # a motor at its limit is neither stiff nor damped
        return force, Pull(np.zeros_like(force), yields * pull.damping, yields * pull.stiffness)

    return command


def _torques(
    evaluator: Evaluator, given: Controller | ArrayLike | None, batch: tuple[int, ...]
) -> Callable[..., Array]:
    nv = evaluator.space.nv
    want = (*batch, nv)
    if callable(given):

        def command(t: float, q: Array, v: Array) -> Array:
            tau = given(t, q, v)
            if type(tau) is np.ndarray and tau.dtype == float and tau.shape == want:
                fine = isfinite(sum_of_squares(tau)) or np.isfinite(tau).all(-1)
                if np.any(fine) and (batch or np.all(fine)):  # worlds without torques are lost, the others go on
                    return tau
            tau = arrays.finite(f"controller's tau at t = {t:g}", tau, (nv,), f"nv = {nv}")
            if tau.shape != want and not _fits(tau.shape, want):
                raise InputError(f"controller's tau at t = {t:g}: expected shape {want}, got {tau.shape}")
            return tau

        return command
    tau = np.zeros(nv) if given is None else evaluator.checked_v("controller", given)
    if not _fits(tau.shape, want):
        raise InputError(f"controller: expected a function of t, q, v or torques {want}, got {tau.shape}")
    return lambda t, q, v: tau


def _fits(shape: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the other."""
    try:
        return np.broadcast_shapes(shape, want) == want
    except ValueError:
        return False


def _diverged(record: _Record, k: int, dt: float) -> SimulationError:
    return SimulationError(
        f"the motion diverges at t = {k * dt:g} s, with a largest velocity of {np.abs(record.v[k]).max():.3g}. Use a "
        "smaller dt or softer gains. This error's `trajectory` is the motion until then",
        record.trajectory(k),
    )


class _ProgressBar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, shown: bool, steps: int) -> None:
        self.shown, self.steps = shown, steps

    def __enter__(self) -> Callable[[], None]:
        with unforked:
            from ..terminal import progress

        self.bar = progress()
        if not self.shown or self.bar.disable:
            return lambda: None
        self.bar.start()
        task = self.bar.add_task("simulate", total=self.steps)
        return lambda: self.bar.advance(task)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
