"""Solutions of optimal control problems: the motion, the policy around it, and the log of the search."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...forks import unforked
from ...model.model import Model
from ...model.names import coordinate_names
from ...simulation.trajectory import Trajectory
from ...view.backend import drawn, refuse_other_formats
from ...view.playable import Playable, motion_to_show
from ..horizon import Horizon
from .pictures import Picture, figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from ...view.show import ViewOptions
    from ...view.viewer import Viewer

# What a log has of each iteration: the cost before it, the step's length, the gain in cost and the expected gain, the
# largest gap between knots, the regularisation, and what has to fall below the tolerance.
COLUMNS = ("cost", "step", "gain", "expected", "gap", "regularisation", "stop")
OUTCOMES = (
    "converged",
    "stopped after the most iterations allowed",
    "stopped: no step gains anything, even with the largest regularisation",
    "stopped at the time limit",
    "stopped by the callback",
    "the constraints do not hold to the tolerance",
)
CONVERGED, ITERATIONS, STUCK, TIME, CALLBACK, VIOLATED = range(len(OUTCOMES))


@dataclass
class Log:
    """What happened at each iteration of each problem: `columns` (..., iterations, 7), NaN after a problem's last one.

    log["cost"] is a column (..., iterations); COLUMNS has their names.
    """

    columns: Array

    def __getitem__(self, name: str) -> Array:
        if name not in COLUMNS:
            raise InputError(f"log: no column {name!r}; there are {', '.join(COLUMNS)}")
        return self.columns[..., COLUMNS.index(name)]

    def __len__(self) -> int:
        return self.columns.shape[-2]

    def __str__(self) -> str:
        """A table, for one problem."""
        if self.columns.ndim > 2:
            return f"<Log of {self.columns.shape[:-2]} problems, {len(self)} iterations>"
        lines = ["    " + "".join(f"{x:>15}" for x in COLUMNS)]
        lines += [f"{i:>4}" + "".join(f"{x:>15.6g}" for x in row) for i, row in enumerate(self.columns)]
        return "\n".join(lines)


@dataclass
class Solution:
    """States and controls, the policy around them, and how a solver found them; axes that lead are problems.

    xs (..., T + 1, nx), us (..., T, nu); cost (...); gap (...): the largest gap between knots;
    converged (...); outcome (...): a number that OUTCOMES explains;
    iterations (...): steps before the one at which the solver stopped, as Crocoddyl counts them;
    k (..., T, nu), K (..., T, nu, ndx): the policy u = us - k - K (x (-) xs) of the last backward pass;
    Vx (..., T + 1, ndx): the gradient of the value function, which are the costates;
    violation (...): the largest violation of constraints, of solvers that know any; seconds: that solving took.
    """

    horizon: Horizon
    xs: Array
    us: Array
    cost: Array
    gap: Array
    converged: Array
    outcome: Array
    iterations: Array
    k: Array
    K: Array
    Vx: Array
    log: Log
    seconds: float = 0.0
    violation: Array | None = None
    multipliers: dict[str, Array] = field(default_factory=dict)  # of constraints, for warm starts

    @property
    def batch(self) -> tuple[int, ...]:
        return self.xs.shape[:-2]

    @property
    def message(self) -> str:
        """The outcome in words."""
        if not self.batch:
            return OUTCOMES[int(self.outcome)]
        counts = [(int((self.outcome == k).sum()), text) for k, text in enumerate(OUTCOMES)]
        return ", ".join(f"{count} {text}" for count, text in counts if count)

    def __repr__(self) -> str:
        if self.batch:
            return f"<Solution of {self.batch} problems: {self.message}>"
        return f"<Solution: cost {float(self.cost):.9g}, {int(self.iterations)} iterations, {self.message}>"

    @property
    def t(self) -> Array:
        """Times of the knots (T + 1,) [s]."""
        return np.concatenate([[0.0], np.cumsum(self.horizon.durations)])

    def __getitem__(self, which: Any) -> Solution:
        """One problem of a batch, or some."""
        if not self.batch:
            raise InputError("solution: it is of one problem; index its arrays, such as solution.xs")
        names = ("xs", "us", "cost", "gap", "converged", "outcome", "iterations", "k", "K", "Vx")
        parts = {name: getattr(self, name)[which] for name in names}
        violation = None if self.violation is None else self.violation[which]
        multipliers = {name: x[which] for name, x in self.multipliers.items()}
        log = Log(self.log.columns[which])
        return Solution(
            self.horizon, **parts, log=log, seconds=self.seconds, violation=violation, multipliers=multipliers
        )

    def plot(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = True) -> Figure:
        """A matplotlib figure of states, controls against their limits, costs by term, and the solver's way there.

        It is written as a PNG if there is a path.
        """
        refuse_other_formats(path)
        if self.batch:
            raise InputError(f"solution: {self.batch} problems are too many for a plot; take one, such as solution[0]")
        h, log, nv = self.horizon, self.log, self.horizon.ndx // 2
        model: Model | None = getattr(h, "model", None)
        q_names, v_names = ([], []) if model is None else coordinate_names(model)
        driven = getattr(h, "driven", range(0))
        picture = Picture(
            title=f"{h.T} knots, cost {float(self.cost):.6g}, {self.message}", t=self.t, q=self.xs[:, :-nv],
            v=self.xs[:, -nv:], us=self.us, limits=(h.u_lower, h.u_upper), terms=h.terms(self.xs, self.us),
            search={"cost - best": log["cost"] - float(self.cost), "gap": log["gap"], "expected gain": log["stop"]},
            names=(q_names, v_names, [v_names[i] for i in driven] if v_names else []),
        )  # fmt: skip
        return drawn(figure_of(picture), path, overwrite)

    def view(self, **options: Unpack[ViewOptions]) -> Viewer:
        """Play the motion in the browser, many problems side by side; see `Robot.view` for the options."""
        with unforked:
            from ...view.show import show

        return show(self, **options)

    def trajectory(self) -> Trajectory:
        """The motion as a `Trajectory`, to save, view and compare with simulations; impacts take no time in it."""
        h = self.horizon
        model: Model | None = getattr(h, "model", None)
        if model is None:
            raise InputError("solution: its horizon has no robot, so there is no trajectory to make")
        tau = np.zeros((*self.us.shape[:-1], model.nv))
        tau[..., getattr(h, "driven", slice(None))] = self.us
        contacts = h.contact_forces(self.xs, self.us) if hasattr(h, "contact_forces") else None  # type: ignore[attr-defined]
        (lasting,) = np.nonzero(h.durations > 0)
        repeated, whole = np.append(lasting, lasting[-1]), np.append(lasting, h.T)
        xs, none = self.xs[..., whole, :], np.zeros((*self.batch, len(whole), 0))
        return Trajectory(
            t=self.t[whole], q=xs[..., : model.nq], v=xs[..., model.nq :], tau=tau[..., repeated, :],
            forces=none if contacts is None else contacts.forces[..., repeated, :], residual=np.zeros(xs.shape[:-1]),
            arrows=np.zeros((*none.shape, 2, 3)) if contacts is None else contacts.arrows[..., repeated, :, :, :],
            surface=np.zeros((0, 0, 3)), contacts=() if contacts is None else contacts.names,
            rows=() if contacts is None else contacts.rows, robot=model.name, model=model,
        )  # fmt: skip


@motion_to_show.register(Solution)
def _(solution: Solution) -> Playable:
    with unforked:
        from ...simulation.playback import Playback

    return Playback(solution.trajectory(), "optimised")
