"""The result of a search: a motion as functions of time, how it was found, and its files."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..contact import PointContact, SurfaceContact
from ..errors import FeatherjetError, InputError, UnknownName
from ..forks import unforked
from ..model.io import saved
from ..model.model import Model
from ..robot.robot import Robot
from ..view.playable import DrawnForces, motion_to_show
from . import limits
from .baselines import baselines
from .chart import FlatChart
from .clip import Clip, EndState
from .energy import TorqueEnergy
from .problem import Setting, energy_of
from .solve import Report
from .spline import Spline

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from ..view.show import ViewOptions
    from ..view.viewer import Viewer

Array = np.ndarray
KIND, VERSION = "featherjet transition", "3"  # of its files
PLOTS = ("curves", "torques", "phase")
ARRAYS = ("about", "control", "reference", "weights", "history")  # that a file must have


@dataclass(frozen=True, eq=False)
class Transition:
    """A motion between two states.

    q(t), v(t), a(t), tau(t) take a time or an array of times [s] from 0 to `duration`; tau are the torques that joints
    apply, beside the forces of supports. `energy` is the integral of the weighted squared torques, `history` its value
    at every iteration of the solver, `report` the outcome of the search. `before` and `after` are the clips it joins.
    """

    robot: Robot
    spline: Spline
    control: Array  # (count, nv), in flat coordinates
    reference: Array  # (nq,), the configuration around which flat coordinates are taken
    model_energy: TorqueEnergy
    setting: Setting
    report: Report
    history: Array
    before: Clip | None = None
    after: Clip | None = None

    def __repr__(self) -> str:
        r = self.report
        return f"<Transition of {self.robot.name}: {self.duration:g} s, energy {self.energy:.6g}, {r.message}>"

    # The motion over time

    worlds = 1

    @property
    def model(self) -> Model:
        """The robot's model."""
        return self.robot.model

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
        """The weights (nv,) of the squared torques."""
        return self.setting.weights

    @cached_property
    def _chart(self) -> FlatChart:
        return FlatChart(self.robot.model, self.reference)

    def _state(self, t: ArrayLike) -> tuple[tuple[int, ...], Array, Array, Array]:
        """The shape of t, and q, v, a at all of its entries, (N, ...)."""
        times = arrays.finite("t", t, (), "any shape")
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

    def placements(self, t: ArrayLike) -> Array:
        """Placements (..., njoints, 4, 4) of the joints' frames in the world."""
        return self.robot.forward_kinematics(self.q(t))

    def v(self, t: ArrayLike) -> Array:
        """Velocities (..., nv)."""
        shape, _, v, _ = self._state(t)
        return v.reshape(*shape, self.robot.nv)

    def a(self, t: ArrayLike) -> Array:
        """Accelerations (..., nv)."""
        shape, _, _, a = self._state(t)
        return a.reshape(*shape, self.robot.nv)

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., nv) [N m, N] that joints apply, beside the forces of supports."""
        shape, q, v, a = self._state(t)
        return self.model_energy.torques(q, v, a).reshape(*shape, self.robot.nv)

    def forces(self, t: ArrayLike) -> dict[str, Array]:
        """The wrench of each support by name: force and moment (..., 6) on its joint's body, in that joint's frame."""
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
    def contact_forces(self) -> DrawnForces | None:
        """The forces of supports, if there are any, for the viewer; `forces` has their moments too."""
        names = tuple(support.frame for support in self.setting.supports)
        return DrawnForces(names, np.zeros((0, 0, 3)), self._arrows) if names else None

    def _arrows(self, t: ArrayLike) -> Array:
        """Where supports are [m] and their forces [N], (..., supports, 2, 3) in the world."""
        T, forces, found = self.placements(t), self.forces(t), []
        for support in self.setting.supports:
            frame = self.model.frame(support.frame)
            here = T[..., frame.joint, :, :]
            force = (here[..., :3, :3] @ forces[support.frame][..., :3, None])[..., 0]
            found.append(np.stack([(here @ frame.placement)[..., :3, 3], force], -2))
        return np.stack(found, -3)

    @property
    def caption(self) -> str:
        """One line that describes the motion."""
        return f"energy {self.energy:.4g}, {self.report.solver}: {self.report.message}"

    def times(self, count: int = 201) -> Array:
        """`count` equally spaced times (count,) from 0 to `duration`."""
        return np.linspace(0.0, self.duration, count)

    # Judging it

    def baselines(self) -> dict[str, float]:
        """The energy of simple motions between the same end states; they ignore supports, targets and limits."""
        return {name: self.model_energy(c)[0] for name, c in baselines(self.spline, self.control).items()}

    def beyond_limits(self) -> dict[str, list[str]]:
        """The joints that exceed the model's limits, by quantity: "position", "velocity" or "effort"."""
        bounds = limits.bounds(self.robot, limits.LIMITED, (self.setting.start, self.setting.end))
        excess = limits.LimitWatch(self.model_energy, bounds).excess(self.control)
        found = {}
        for b, off in zip(bounds, excess, strict=True):
            if (dofs := b.dofs[(off > limits.SLACK).any(0)]).size:
                found[b.quantity] = list(dict.fromkeys(limits.joint_of(self.robot, int(k)) for k in dofs))
        return found

    def joined(self, dt: float | None = None) -> Clip:
        """One clip of the joined clips with the transition between them, sampled every `dt` or as the first clip."""
        clips = [c for c in (self.before, self.after) if c is not None]
        if dt is None and not clips:
            raise InputError("joined: there is no clip to take dt from; give one")
        dt = clips[0].dt if dt is None else dt
        n = max(2, round(self.duration / dt) + 1)
        t = np.linspace(0.0, self.duration, n)
        q, v = [self.q(t)], [self.v(t)]
        if self.before is not None:
            q.insert(0, np.asarray(self.before.q)[:-1])
            v.insert(0, self.before.velocities(self.robot)[:-1])
        if self.after is not None:
            q.append(np.asarray(self.after.q)[1:])
            v.append(self.after.velocities(self.robot)[1:])
        return Clip(np.concatenate(q), self.duration / (n - 1), np.concatenate(v))

    # Files

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write an .npz file that contains everything, the robot included; atomically."""
        with unforked:
            from ..files.npz import write_npz

        s = self.setting
        about: dict[str, Any] = dict(
            degree=self.spline.degree, intervals=self.spline.intervals, duration=self.duration,
            points=s.points, root_forces=s.root_forces, report=asdict(self.report),
            supports=[(x.frame, isinstance(x, PointContact)) for x in s.supports],
            model=saved.dumps(self.robot.model),
        )  # fmt: skip
        entries: dict[str, Any] = dict(
            format=f"{KIND} {VERSION}", about=json.dumps(about),
            control=self.control, reference=self.reference, weights=s.weights, history=self.history,
        )  # fmt: skip
        for name, clip in (("before", self.before), ("after", self.after)):
            if clip is not None:
                entries |= {f"{name}_q": np.asarray(clip.q), f"{name}_dt": np.asarray(clip.dt)}
                entries |= {} if clip.v is None else {f"{name}_v": np.asarray(clip.v)}
        t = self.times()
        entries |= dict(t=t, q=self.q(t), v=self.v(t), a=self.a(t), tau=self.tau(t))  # for readers without featherjet
        return write_npz(arrays.path_of(path), entries, overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str], *, backend: str | None = None) -> Transition:
        """Read a file that `save` wrote."""
        with unforked:
            from ..files.npz import read_npz, require_arrays, require_format

        found = read_npz(arrays.path_of(path))
        try:
            require_format(found, KIND, VERSION)
            require_arrays(found, KIND, ARRAYS)
            return _rebuilt(json.loads(str(found["about"])), found, backend)
        except FeatherjetError as error:
            raise InputError(f"{path}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise InputError(f"{path}: damaged {KIND} file ({error!r})") from None

    def to_csv(self, path: str | os.PathLike[str], *, count: int = 201, overwrite: bool = True) -> Path:
        """Write a table of t, q, v, a, tau at `count` times."""
        with unforked:
            from ..files.csv import write_csv

        t = self.times(arrays.whole_number("count", count, 2))
        return write_csv(arrays.path_of(path), self.model, t, self.q(t), self.v(t), self.a(t), self.tau(t), overwrite)

    def to_bvh(
        self,
        path: str | os.PathLike[str],
        *,
        fps: float = 60.0,
        up: str = "y",
        scale: float = 1.0,
        joined: bool = True,
        overwrite: bool = True,
    ) -> Path:
        """Write a motion-capture file of `fps` frames a second, with the joined clips unless `joined` is False."""
        with unforked:
            from ..files.bvh import write_bvh

        fps = arrays.positive_number("fps", fps)
        if joined and (self.before is not None or self.after is not None):
            clip = self.joined(1 / fps)
            q, dt = np.asarray(clip.q), clip.dt
        else:
            n = max(2, round(self.duration * fps) + 1)
            q, dt = self.q(self.times(n)), self.duration / (n - 1)
        rest = self.robot.forward_kinematics(self.robot.neutral())
        return write_bvh(
            arrays.path_of(path), self.model, rest, self.robot.forward_kinematics(q), dt, up, scale, overwrite
        )

    def view(self, **options: Unpack[ViewOptions]) -> Viewer:
        """Play the motion in the browser; see `Robot.view` for the options."""
        with unforked:
            from ..view.show import show

        return show(self, **options)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        what: Literal["curves", "torques", "phase"] = "curves",
        overwrite: bool = True,
    ) -> Figure:
        """A matplotlib figure of the motion, written as a PNG if there is a path.

        what: "curves", torques and energy over time, and how the solver found them; "torques", against their limits;
        "phase", velocities over positions.
        """
        with unforked:
            from ..view.backend import drawn, refuse_other_formats
            from ..view.charts import phase_figure, torques_figure
            from ..view.curves import SearchRecord, energy_figure

        refuse_other_formats(path)
        title, t = f"{self.robot.name}: {self.duration:g} s, energy {self.energy:.4g}", self.times(301)
        if what == "curves":
            figure = energy_figure(title, self, SearchRecord(self.report.solver, self.history, self.baselines()))
        elif what == "torques":
            figure = torques_figure(self.model, t, self.tau(t), title)
        elif what == "phase":
            figure = phase_figure(self.model, self.q(t), self.v(t), title)
        else:
            raise UnknownName("plot", what, PLOTS)
        return drawn(figure, path, overwrite)


motion_to_show.register(Transition, lambda transition: transition)


def _rebuilt(about: dict[str, Any], found: dict[str, Array], backend: str | None) -> Transition:
    """The transition of a file: its JSON part `about`, and its arrays."""
    robot = Robot(saved.loads(about["model"]), backend=backend)
    spline = Spline(int(about["degree"]), int(about["intervals"]), float(about["duration"]))
    control, reference, weights = (np.asarray(found[k], float) for k in ("control", "reference", "weights"))
    if control.shape != (spline.count, robot.nv) or reference.shape != (robot.nq,) or weights.shape != (robot.nv,):
        raise InputError(f"arrays do not fit the robot {robot.name!r}")
    supports = tuple(PointContact(f) if point else SurfaceContact(f) for f, point in about["supports"])
    unknown = EndState(reference, np.zeros(robot.nv))  # the control points contain the ends
    setting = Setting(
        robot, unknown, unknown, spline, int(about["points"]), weights, str(about["root_forces"]), supports, (), []
    )
    chart = FlatChart(robot.model, reference, robot.backend == "compiled")
    clips = {
        k: Clip(found[f"{k}_q"], float(found[f"{k}_dt"]), found.get(f"{k}_v")) if f"{k}_q" in found else None
        for k in ("before", "after")
    }
    energy = energy_of(robot, chart, setting)
    kinds = {"float": float, "int": int, "bool": bool, "str": str}
    report = Report(**{f.name: kinds[str(f.type)](about["report"][f.name]) for f in fields(Report)})
    history = np.asarray(found["history"], float)
    return Transition(robot, spline, control, reference, energy, setting, report, history, **clips)
