"""What a transition is: a motion as functions of time, how it was found, and its file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..contact import PointContact, SurfaceContact
from ..errors import InputError
from ..files.whole import written
from ..model.io import saved
from ..robot.robot import Robot
from . import baselines, limits
from .chart import Chart
from .clip import Clip
from .energy import Energy
from .problem import Setting
from .solve import Report
from .spline import Spline

Array = np.ndarray
FORMAT = "featherjet transition 2"


@dataclass(frozen=True, eq=False)
class Transition:
    """A motion between two states.

    q(t), v(t), a(t), tau(t) take a time or an array of times [s] from 0 to `duration`; torques are those that joints
    apply, after what supports take over. `energy` is the integral of the weighted squared torques, `history` its value
    at every iteration of the solver, `report` how that fared. `before` and `after` are the clips that were joined.
    """

    robot: Robot
    spline: Spline
    control: Array  # (count, nv), in the chart's coordinates
    reference: Array  # (nq,), the configuration in the middle of the chart
    model_energy: Energy
    setting: Setting
    report: Report
    history: Array
    before: Clip | None = None
    after: Clip | None = None
    source: str = ""  # the file or name of the robot, for its meshes

    def __repr__(self) -> str:
        r = self.report
        return f"<Transition of {self.robot.name}: {self.duration:g} s, energy {self.energy:.6g}, {r.message}>"

    @property
    def duration(self) -> float:
        """[s]."""
        return self.spline.duration

    @property
    def energy(self) -> float:
        """Integral of sum_i weight_i tau_i^2 [N^2 m^2 s]."""
        return self.report.energy

    @property
    def weights(self) -> Array:
        """Of the torques, (nv,)."""
        return self.setting.weights

    @cached_property
    def _chart(self) -> Chart:
        return Chart(self.robot.model, self.reference)

    def _state(self, t: ArrayLike) -> tuple[tuple[int, ...], Array, Array, Array]:
        """The shape of t, and q, v, a at its entries in one row."""
        times = arrays.numbers("t", t, (), "any shape")
        slack = 1e-9 * self.duration
        if times.size and not (times.min() >= -slack and times.max() <= self.duration + slack):
            raise InputError(f"t: expected times from 0 to {self.duration:g} s, got {times.min():g} to {times.max():g}")
        jets = self.spline.jets(np.clip(times.ravel(), 0.0, self.duration)) @ self.control
        q = np.empty((times.size, self.robot.nq))
        if times.size:
            self._chart.lift(jets, q)
        return times.shape, q, jets[:, 1], jets[:, 2]

    def q(self, t: ArrayLike) -> Array:
        """Configurations (..., nq)."""
        shape, q, _, _ = self._state(t)
        return q.reshape(*shape, self.robot.nq)

    def v(self, t: ArrayLike) -> Array:
        """Velocities (..., nv)."""
        shape, _, v, _ = self._state(t)
        return v.reshape(*shape, self.robot.nv)

    def a(self, t: ArrayLike) -> Array:
        """Accelerations (..., nv)."""
        shape, _, _, a = self._state(t)
        return a.reshape(*shape, self.robot.nv)

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., nv)."""
        shape, q, v, a = self._state(t)
        return self.model_energy.torques(q, v, a).reshape(*shape, self.robot.nv)

    def forces(self, t: ArrayLike) -> dict[str, Array]:
        """What each support takes over: force and moment (..., 6) on its joint's body, in that joint's frame."""
        shape, q, v, a = self._state(t)
        supports = self.model_energy.supports
        if supports is None:
            return {}
        found = supports.forces(supports.carry(q, self.robot.inverse_dynamics(q, v, a)).fext)
        return {name: f.reshape(*shape, 6) for name, f in found.items()}

    def energy_rate(self, t: ArrayLike) -> Array:
        """sum_i weight_i tau_i^2 at times t, (...)."""
        return (self.model_energy.weights * self.tau(t) ** 2).sum(-1)

    @property
    def caption(self) -> str:
        """What it is, in a line."""
        return f"energy {self.energy:.4g}, {self.report.solver}: {self.report.message}"

    def times(self, count: int = 201) -> Array:
        """So many times from start to end."""
        return np.linspace(0.0, self.duration, count)

    def baselines(self) -> dict[str, float]:
        """The energy of other motions between the same end states; they know no supports, targets or limits."""
        return {name: self.model_energy(control)[0] for name, control in baselines.controls(self).items()}

    def beyond_limits(self) -> dict[str, list[str]]:
        """The joints whose position, velocity or effort leaves the model's limits, by quantity, where any does."""
        bounds = limits.bounds(self.robot, limits.QUANTITIES, (self.setting.start, self.setting.end))
        excess = limits.Watched(self.model_energy, bounds).excess(self.control)
        found = {}
        for b, off in zip(bounds, excess, strict=True):
            if (dofs := b.dofs[(off > limits.SLACK).any(0)]).size:
                found[b.quantity] = list(dict.fromkeys(limits.joint_of(self.robot, int(k)) for k in dofs))
        return found

    def joined(self, dt: float | None = None) -> Clip:
        """The clips that were joined with the transition between them, sampled at the first clip's dt (or `dt`)."""
        clips = [c for c in (self.before, self.after) if c is not None]
        if dt is None and not clips:
            raise InputError("joined: there is no clip to take dt from; give one")
        dt = clips[0].dt if dt is None else dt
        n = max(2, round(self.duration / dt) + 1)
        t = np.linspace(0.0, self.duration, n)
        q, v = self.q(t), self.v(t)
        ends = ((self.before, slice(None, -1)), (self.after, slice(1, None)))
        parts = [(np.asarray(c.q)[part], velocities(self.robot, c)[part]) for c, part in ends if c is not None]
        if self.before is not None:
            q, v = np.concatenate([parts[0][0], q]), np.concatenate([parts[0][1], v])
        if self.after is not None:
            q, v = np.concatenate([q, parts[-1][0]]), np.concatenate([v, parts[-1][1]])
        return Clip(q, self.duration / (n - 1), v)

    # Files

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Into an .npz file with everything in it, the robot included; whole or not at all."""
        path = Path(path)
        s = self.setting
        told: dict[str, Any] = dict(
            format=FORMAT, degree=self.spline.degree, intervals=self.spline.intervals, duration=self.duration,
            points=s.points, root=s.root, source=self.source, report=self.report.as_dict(),
            supports=[(x.frame, isinstance(x, PointContact)) for x in s.supports],
            model=saved.dumps(self.robot.model),
        )  # fmt: skip
        arrays = dict(control=self.control, reference=self.reference, weights=s.weights, history=self.history)
        for name, clip in (("before", self.before), ("after", self.after)):
            if clip is not None:
                arrays |= {f"{name}_q": np.asarray(clip.q), f"{name}_dt": np.asarray(clip.dt)}
                arrays |= {} if clip.v is None else {f"{name}_v": np.asarray(clip.v)}
        t = self.times()
        samples = dict(t=t, q=self.q(t), v=self.v(t), a=self.a(t), tau=self.tau(t))  # for readers without featherjet
        with written(path) as beside, open(beside, "wb") as file:
            np.savez(file, about=json.dumps(told), **arrays, **samples)  # type: ignore[arg-type]
        return path

    @staticmethod
    def load(path: str | os.PathLike[str], backend: str | None = None) -> Transition:
        """From a file that `save` wrote."""
        from ..files.npz import read_npz

        found = read_npz(Path(path))
        try:
            about = json.loads(str(found["about"]))
            if about["format"] != FORMAT:
                raise InputError(f"{path}: its format is {about['format']!r}, not {FORMAT!r}")
            return _rebuilt(about, found, backend)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: no transition of ours ({error})") from None

    def to_csv(self, path: str | os.PathLike[str], count: int = 201) -> Path:
        """A table of t, q, v, a, tau at so many times."""
        from ..files.csv import write_csv

        return write_csv(self, Path(path), count)

    def to_bvh(
        self, path: str | os.PathLike[str], fps: float = 60.0, up: str = "y", scale: float = 1.0, joined: bool = True
    ) -> Path:
        """A motion-capture file; with the clips that were joined unless `joined` is False."""
        from ..files.bvh import write_bvh

        return write_bvh(self, Path(path), fps, up, scale, joined)

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Torque and energy curves as a PNG."""
        from ..view.transition import save_plot

        return save_plot(self, Path(path))


def velocities(robot: Robot, clip: Clip) -> Array:
    """A clip's velocities (n, nv): its own, or differences of its configurations."""
    if clip.v is not None:
        return np.asarray(clip.v)
    q = np.asarray(clip.q)
    inner = (robot.difference(q[1:-1], q[2:]) - robot.difference(q[1:-1], q[:-2])) / (2 * clip.dt)
    return np.concatenate([clip.end(robot, False).v[None], inner, clip.end(robot, True).v[None]])


def _rebuilt(about: dict[str, Any], found: dict[str, Array], backend: str | None) -> Transition:
    from .clip import State
    from .problem import energy_of

    robot = Robot(saved.loads(about["model"]), backend)
    spline = Spline(int(about["degree"]), int(about["intervals"]), float(about["duration"]))
    control, reference, weights = (np.asarray(found[k], float) for k in ("control", "reference", "weights"))
    if control.shape != (spline.count, robot.nv) or reference.shape != (robot.nq,) or weights.shape != (robot.nv,):
        raise InputError(f"arrays do not fit the robot {robot.name!r}")
    supports = tuple(PointContact(f) if point else SurfaceContact(f) for f, point in about["supports"])
    none = State(reference, np.zeros(robot.nv))
    setting = Setting(robot, none, none, spline, int(about["points"]), weights, str(about["root"]), supports, (), [])
    chart = Chart(robot.model, reference, robot.backend == "compiled")
    clips = {
        k: Clip(found[f"{k}_q"], float(found[f"{k}_dt"]), found.get(f"{k}_v")) if f"{k}_q" in found else None
        for k in ("before", "after")
    }
    energy = energy_of(robot, chart, setting)
    report = Report(**about["report"])
    history, source = np.asarray(found["history"], float), str(about["source"])
    return Transition(robot, spline, control, reference, energy, setting, report, history, **clips, source=source)
