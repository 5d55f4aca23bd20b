"""Simulates a robot under a controller, step by step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..contact.bilateral import Contacts
from ..contact.ground import Ground
from ..errors import InputError, SimulationError, SimulationWarning, SingularContacts, SingularMassMatrix, UnknownName
from ..evaluate.convert import converted
from ..evaluate.evaluator import Evaluator
from ..model.model import Array
from .steps import Smooth, TimeStepping
from .trajectory import Trajectory

Controller = Callable[[float, Array, Array], ArrayLike]
METHODS = ("rk4", "semi-implicit")
MOST = 10_000_000  # steps; more is likely a mistake
FASTEST = 1e8  # a larger velocity means that the motion diverges


def simulate(
    evaluator: Evaluator,
    q: ArrayLike,
    v: ArrayLike,
    controller: Controller | ArrayLike | None = None,
    contacts: Contacts | Ground | None = None,
    dt: float = 1e-3,
    duration: float = 1.0,
    method: str = "rk4",
    progress: bool = True,
) -> Trajectory:
    """See `Robot.simulate`."""
    standard = evaluator.standard  # steps do not depend on the convention
    start = converted(evaluator, standard, q, v)
    if start.q.ndim != 1 or start.v is None or start.v.ndim != 1:
        nq, nv = evaluator.space.nq, evaluator.space.nv
        raise InputError(f"simulate: expected one state at a time, q ({nq},) and v ({nv},); got a batch")
    steps = _count(dt, duration)
    step = _step(standard, contacts, float(dt), method)
    command = _controller(evaluator, controller)
    record = _Record(evaluator, steps, float(dt), step)
    record.state(0, start.q, start.v)
    if isinstance(step, TimeStepping) and (sunk := step.sunk(start.q)):
        warnings.warn(sunk, SimulationWarning, stacklevel=3)
    done = 0
    try:
        with _ProgressBar(progress, steps) as advance:
            for k in range(steps):
                at, u = record.q[k], record.v[k]
                tau = command(k * dt, at.copy(), u.copy())
                try:
                    after = step(at, u, tau)
                except (SingularContacts, SingularMassMatrix) as error:
                    raise SimulationError(f"at t = {k * dt:g} s: {error}", record.trajectory(k)) from error
                except (np.linalg.LinAlgError, InputError) as error:  # numbers are no longer finite
                    raise _diverged(record, k, dt) from error
                record.step(k, tau, after.forces, after.residual)
                if not (np.isfinite(after.q).all() and np.abs(after.v).max() < FASTEST):
                    raise _diverged(record, k, dt)
                record.state(k + 1, after.q, after.v)
                record.unconverged += not after.converged
                done = k + 1
                advance()
    except KeyboardInterrupt:
        warnings.warn(f"interrupted at t = {done * dt:g} s; returns the motion so far", SimulationWarning, stacklevel=3)
    if record.unconverged:
        worst = record.residual[:done].max()
        warnings.warn(
            f"contact forces did not converge in {record.unconverged} of {done} steps; the largest residual is "
            f"{worst:.1e} N s. See Trajectory.residual; a smaller dt may help",
            SimulationWarning,
            stacklevel=3,
        )
    return record.trajectory(done)


class _Record:
    """The motion so far, in standard coordinates."""

    def __init__(self, evaluator: Evaluator, steps: int, dt: float, step: Smooth | TimeStepping) -> None:
        self.evaluator, self.steps, self.dt, self.contacts = evaluator, steps, dt, step.contacts
        nq, nv = evaluator.model.nq, evaluator.model.nv
        self.names, slices = ((), ()) if step.contacts is None else (step.contacts.names, step.contacts.slices)
        self.rows = tuple(at.stop - at.start for at in slices)
        self.q, self.v = np.empty((steps + 1, nq)), np.empty((steps + 1, nv))
        self.tau, self.forces = np.zeros((steps + 1, nv)), np.zeros((steps + 1, sum(self.rows)))
        self.residual = np.zeros(steps + 1)
        self.unconverged = 0

    def state(self, k: int, q: Array, v: Array) -> None:
        self.q[k], self.v[k] = q, v

    def step(self, k: int, tau: Array, forces: Array, residual: float) -> None:
        self.tau[k], self.forces[k], self.residual[k] = tau, forces, residual

    def trajectory(self, done: int) -> Trajectory:
        """The first `done` steps, in the robot's convention; the last torques and forces are repeated."""
        n = done + 1
        standard = self.evaluator.standard
        here = converted(standard, self.evaluator, self.q[:n], self.v[:n], tau=self.tau[:n])
        parts = [np.array(x) for x in (here.q, here.v, here.tau, self.forces[:n], self.residual[:n])]
        for x in parts[2:]:
            x[done] = x[max(done - 1, 0)]
        arrows, surface = np.zeros((n, 0, 2, 3)), np.zeros((0, 0, 3))
        if self.contacts is not None:
            arrows = self.contacts.arrows(standard, self.q[:n], parts[3])
            surface = self.contacts.surface(arrows[..., 0, :].reshape(-1, 3))
        return Trajectory(
            self.dt * np.arange(n),
            *parts,
            arrows=arrows,
            surface=surface,
            contacts=self.names,
            rows=self.rows,
            robot=self.evaluator.model.name,
            model=self.evaluator.model,
            convention=self.evaluator.convention,
            complete=done == self.steps,
        )


def _count(dt: float, duration: float) -> int:
    for name, x in (("dt", dt), ("duration", duration)):
        if arrays.finite(name, x, (), "a number").shape != () or not x > 0:
            raise InputError(f"{name}: expected a positive time in seconds, got {x!r}")
    if dt > duration:
        raise InputError(f"dt: a step of {dt:g} s does not fit into a duration of {duration:g} s")
    steps = math.ceil(duration / dt - 1e-9)
    if steps > MOST:
        raise InputError(
            f"dt: {duration:g} s in steps of {dt:g} s would be {steps} steps; the limit is {MOST}. Use a larger dt"
        )
    return steps


def _step(evaluator: Evaluator, contacts: Contacts | Ground | None, dt: float, method: str) -> Smooth | TimeStepping:
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
    if isinstance(contacts, Ground):
        if not contacts.model.same_robot(evaluator.model):
            raise InputError(
                f"contacts: this ground belongs to another robot ({contacts.model.name!r}); make one with this robot"
            )
        return TimeStepping(evaluator, dt, contacts)
    if contacts is not None and not isinstance(contacts, Contacts):
        raise InputError(f"contacts: expected fj.Ground, fj.Contacts or None, got {type(contacts).__name__}")
    return Smooth(evaluator, dt, method, contacts)


def _controller(evaluator: Evaluator, given: Controller | ArrayLike | None) -> Callable[..., Array]:
    """A function from time and standard state to checked standard torques (nv,).

    The user's controller reads and returns those of the evaluator's convention.
    """
    command, standard = _torques(evaluator, given), evaluator.standard
    if evaluator is standard:
        return command

    def in_standard(t: float, q: Array, v: Array) -> Array:
        here = converted(standard, evaluator, q, v)
        tau = command(t, here.q.copy(), here.v)  # a copy, which the controller may overwrite
        return np.asarray(converted(evaluator, standard, here.q, tau=tau).tau)

    return in_standard


def _torques(evaluator: Evaluator, given: Controller | ArrayLike | None) -> Callable[..., Array]:
    nv = evaluator.space.nv
    if callable(given):

        def command(t: float, q: Array, v: Array) -> Array:
            tau = arrays.finite(f"controller's tau at t = {t:g}", given(t, q, v), (nv,), f"nv = {nv}")
            if tau.ndim != 1:
                raise InputError(f"controller's tau at t = {t:g}: expected shape ({nv},), got {tau.shape}")
            return tau

        return command
    tau = np.zeros(nv) if given is None else evaluator.checked_v("controller", given)
    if tau.ndim != 1:
        raise InputError(f"controller: expected a function of t, q, v or torques ({nv},), got {tau.shape}")
    return lambda t, q, v: tau


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
        from ..terminal import progress

        self.bar = progress()
        if not self.shown or self.bar.disable:
            return lambda: None
        self.bar.start()
        task = self.bar.add_task("simulate", total=self.steps)
        return lambda: self.bar.advance(task)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
