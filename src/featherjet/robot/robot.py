"""Robot: the main class for users. Names, shapes and conventions are Pinocchio's; leading axes broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..arrays import Out
from ..contact import Contacts, Ground
from ..errors import FixedAttribute, InputError
from ..evaluate.bound import Bound
from ..evaluate.convert import converted
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..evaluate.lawful import SLIP, LawfulEvaluator
from ..forks import unforked
from ..model import configuration
from ..model.configuration import Limits
from ..model.lock import lock
from ..model.model import Array, Model
from ..simulation.playback import sampled
from ..simulation.simulating import Controller, simulate
from ..simulation.trajectory import Trajectory
from ..view.playable import Playable, motion_to_show
from .ahead import tasks
from .bind import bind
from .chunks import chunks
from .contact_methods import ContactMethods
from .joint import RobotJoint, html, joint

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from ..view.show import ViewOptions
    from ..view.viewer import Viewer


class Robot(ContactMethods):
    """A model together with its dynamics.

    q (..., nq), v, a, tau (..., nv); fext (..., njoints, 6): force then moment on each joint's body, in that joint's
    frame. SI units. Leading axes broadcast. Results are written into `out`, an array or a tuple of arrays, if given.
    Derivatives by q have columns in its tangent space.

    backend: "compiled" (the default) or "numpy", the reference; FEATHERJET_BACKEND changes the default.
    threads: the most threads a batch may use; by default the number of cores.
    unroll: True compiles machine code for this robot alone, which takes a second and runs faster; False shares code
    among all robots with the same kinds of joints; None, the default, chooses by the cost of each quantity.
    FEATHERJET_UNROLL, 0 or 1, changes the default.
    """

    __slots__ = ()

    def __init__(
        self, model: Model, *, backend: str | None = None, threads: int | None = None, unroll: bool | None = None
    ) -> None:
        self.__setstate__(Evaluator(model, backend, threads, unroll))

    def __getstate__(self) -> Evaluator:
        return self.evaluator

    def __setstate__(self, evaluator: Evaluator) -> None:
        self.evaluator, self._run = evaluator, evaluator.run

    def __setattr__(self, name: str, value: object) -> None:
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            raise FixedAttribute("Robot", name, dir(self), ("threads",)) from None

    def __repr__(self) -> str:
        convention = "" if self.convention == "pinocchio" else f" ({self.convention})"
        return f"<Robot{convention} {self.name}: {self.model.njoints} joints, nq {self.nq}, nv {self.nv}>"

    def _repr_html_(self) -> str:
        return html(self.evaluator, repr(self)[1:-1])

    # Properties, and variants of the robot

    @property
    def model(self) -> Model:
        """Joints, bodies and frames; its limits and coordinates are in the standard convention."""
        return self.evaluator.model

    @property
    def backend(self) -> str:
        """Either "compiled", or "numpy" for the reference."""
        return self.evaluator.backend

    @property
    def unroll(self) -> bool | None:
        """Whether code is compiled for this robot alone; None: for each quantity, whichever pays."""
        return self.evaluator.unroll

    @property
    def threads(self) -> int:
        """The most threads a batch may use; results do not depend on it."""
        return self.evaluator.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.evaluator.threads = count

    @property
    def name(self) -> str:
        """The robot's name."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self.evaluator.space.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.model.nv

    @property
    def njoints(self) -> int:
        """The number of joints that move, mimicking ones included."""
        return self.model.njoints

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints' names, in the order of every array over joints."""
        return self.model.joint_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of all frames: joints, links, and those that were added."""
        return tuple(f.name for f in self.model.frames)

    @property
    def mass(self) -> float:
        """Total moving mass [kg]."""
        return self.model.mass

    def joint(self, name: str) -> RobotJoint:
        """One joint: its slices of q and v, limits, placement, parent, body; `q[..., robot.joint("knee").q]`."""
        return joint(self.evaluator, name)

    def lock(self, positions: Mapping[str, ArrayLike]) -> Robot:
        """A smaller robot with the named joints fixed at the given coordinates."""
        coordinates = self.evaluator.coordinates
        standard = positions if coordinates is None else coordinates.positions_to_standard(positions)
        return robot_of(self.evaluator.with_model(lock(self.model, standard)))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravity (3,) [m/s^2]."""
        model = self.model.with_gravity(arrays.finite("gravity", gravity, (3,), "x y z"))
        return robot_of(self.evaluator.with_model(model))

    def with_placements(self, placements: Mapping[str, ArrayLike]) -> Robot:
        """The same robot with the named joints placed elsewhere (4, 4) in their parents' frames."""
        return robot_of(self.evaluator.with_model(self.model.with_placements(placements)))

    def with_inertial_parameters(self, parameters: ArrayLike | Mapping[str, ArrayLike]) -> Robot:
        """The same robot with other masses and inertias: (10 njoints,) as `inertial_parameters` gives them, or (10,)
        by name of the joint for some bodies.
        """
        return robot_of(self.evaluator.with_model(self.model.with_inertial_parameters(parameters)))

    @property
    def convention(self) -> str:
        """The convention of q, v, a and tau: "pinocchio", or that of `with_convention`."""
        return self.evaluator.convention

    def with_convention(self, convention: str) -> Robot:
        """The same robot with inputs and results in the convention "pinocchio", "kindr", "mujoco" or "drake".

        Derivatives by q are then along that convention's velocities; docs/conventions.md has the tables.
        """
        evaluator = self.evaluator.with_convention(convention)
        return self if evaluator is self.evaluator else robot_of(evaluator)

    def with_velocities(self, B: Callable[[Any], Any]) -> Robot:
        """The same robot with its own velocities u: v = B(q) u, where q and v are those of this robot.

        B takes the entries of q (nq,) and returns an invertible matrix (nv, nv); it is traced, and differentiated
        automatically. Accelerations are du/dt, torques B^T tau, and derivatives by q are along u.
        """
        return robot_of(self.evaluator.with_velocities(B))

    def with_joint_laws(self, *, slip: float = SLIP) -> Robot:
        """The same robot with its joints' damping, springs and dry friction in all of its dynamics and derivatives.

        inverse_dynamics then gives M a + C v + g + p(q, v), and forward_dynamics a under tau - p(q, v), with
        p = damping v + stiffness (q - spring) + friction v / sqrt(v^2 + slip^2); slip [rad/s, m/s]. Simulations, where
        these laws act anyway, are those of this robot.
        """
        settings: dict[str, Any] = self.evaluator.__getstate__() | {"slip": slip}
        if self.evaluator.coordinates is not None:
            raise InputError("with_joint_laws: joints' laws are known in the convention 'pinocchio' alone")
        return robot_of(LawfulEvaluator(**settings))

    # Configurations

    def neutral(self) -> Array:
        """The configuration (nq,) without displacement."""
        return configuration.neutral(self.evaluator.space)

    def limits(self) -> Limits:
        """Lower and upper limits of q (nq,), and limits of velocity and effort (nv,); infinite if absent."""
        return configuration.limits(self.evaluator.space)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> Array:
        """Configurations (*size, nq) within the joint limits; rng is a Generator or a seed."""
        try:
            rng = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        except (TypeError, ValueError) as e:
            raise InputError(f"rng: expected a numpy Generator, a seed or None, got {rng!r}") from e
        try:
            shape = () if size is None else tuple(map(index, size)) if isinstance(size, tuple) else (index(size),)
        except TypeError as e:
            raise InputError(f"size: expected a whole number or a tuple of them, got {size!r}") from e
        if any(n < 0 for n in shape):
            raise InputError(f"size: must not be negative, got {size!r}")
        q = configuration.random(self.model, rng, shape)
        return self.evaluator.from_standard({"q": q})["q"]

    def interpolate(self, q0: ArrayLike, q1: ArrayLike, t: ArrayLike, out: Out = None) -> Array:
        """The geodesic between q0 (t = 0) and q1 (t = 1); t (...) broadcasts against the batch."""
        if type(t) is float:
            t = np.array(t, np.float32 if getattr(q0, "dtype", None) == np.float32 else np.float64)
        ready = isinstance(t, np.ndarray) or arrays.is_lazy(t)
        share: Any = (t if ready else arrays.finite("t", t, (), "any shape"))[..., None]  # type: ignore[index]
        return self._run("interpolate", (q0, q1, share), None, out)[0]

    # Calls with buffers, in chunks, compiled ahead

    def bind(
        self,
        quantity: str,
        *,
        fext: bool = False,
        contacts: Contacts | None = None,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        method: str = "auto",
    ) -> Bound:
        """A call with fixed buffers, for control loops: `step.q[:] = ...; step(); step.da_dq`.

        docs/quantities.md lists all quantities, with their inputs and results. Give `contacts` to those of contacts,
        a `frame` to those of frames, with `viewpoint` as in `frame_jacobian`; fext=True adds external forces.
        """
        return bind(self.evaluator, quantity, fext, contacts, frame, viewpoint, method)

    def chunks(
        self,
        quantity: str,
        *inputs: Any,
        fext: ArrayLike | None = None,
        contacts: Contacts | None = None,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        method: str = "auto",
        each: Callable[[slice, Any], Any] | None = None,
        size: int | None = None,
    ) -> Iterator[tuple[slice, Any]]:
        """A large batch chunk by chunk along its first axis: (part of the axis, results), in order.

        `for part, d in robot.chunks("inverse_dynamics_derivatives", q, v, a): total += d.dtau_dq.sum(0)`

        `threads` workers compute chunks ahead of the loop, each small enough for a core's cache; memory is reused once
        results are dropped. each(part, results), if given, runs on the workers, and its value takes the results' place:
        the place to reduce them. size: samples of the first axis in a chunk. Inputs are arrays, or anything with
        `ndim`, `shape` and slices, such as files mapped to memory. Quantities and options are those of `bind`.
        """
        return chunks(self.evaluator, quantity, inputs, fext, contacts, frame, viewpoint, method, each, size)

    def compile(
        self,
        *quantities: str,
        fext: bool = False,
        contacts: Contacts | None = None,
        viewpoint: Viewpoint = "local",
    ) -> None:
        """Compile quantities now, for one state and for batches, so that no later call waits for the compiler.

        Without names, all that need no options, and with `contacts` those of contacts. The code stays on disk, where
        later processes find it; `featherjet compile` does the same with a progress bar. fext=True: with external
        forces. viewpoint: as in `frame_jacobian`, for the quantities of frames.
        """
        for _, task in tasks(self.evaluator, quantities, fext, contacts, viewpoint):
            task()

    def export(
        self,
        *quantities: str,
        out: str | PathLike[str],
        target: str = "native",
        dtype: str = "float64",
        name: str | None = None,
        fext: bool = False,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        batch: bool = False,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write machine code of quantities for C and C++ programs into the folder `out`, and return the files.

        A relocatable object NAME.o, headers NAME.h and NAME.hpp, NAME_example.c, which checks itself, and a CMake file.
        The functions take arrays of `dtype` ("float64" or "float32") and a workspace, allocate nothing and need no
        library but memcpy and memset. target: "native", "x86-64-v3", "aarch64" and others (docs/export.md). name: the
        prefix of all names, by default the robot's. fext: with external forces. frame, viewpoint: of the quantities of
        frames. contacts: of those of contacts. batch: also functions of many samples at a time. Files that exist stay
        unless `overwrite`. Equal calls write equal bytes.
        """
        with unforked:
            from ..export.functions import Choices
            from ..export.package import export

        choices = Choices(fext, frame, viewpoint, contacts)
        return export(
            self.evaluator, quantities, arrays.path_of(out), target=target, dtype=dtype, name=name, batch=batch,
            overwrite=overwrite, choices=choices,
        )  # fmt: skip

    def gravity_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """dg_dq (..., nv, nv)."""
        return self._run("static_torque_derivatives", (q,), None, out)[0]

    def inertial_parameters(self) -> Array:
        """(10 njoints,): for each joint m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, in Pinocchio's order.

        All are in the joint's frame, I about its origin.
        """
        return self.model.inertial_parameters()

    # Simulation

    def simulate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        controller: Controller | ArrayLike | None = None,
        contacts: Contacts | Ground | None = None,
        *,
        dt: float = 1e-3,
        duration: float = 1.0,
        method: str | None = None,
        passive: bool = True,
        progress: bool = True,
    ) -> Trajectory:
        """The motion from states q (..., nq), v (..., nv) for `duration` seconds, in whole steps of dt.

        controller: a function of t, q, v that returns tau, called once per step; a Servo; constant torques; or None.
        contacts: a Ground to stand, slide and bounce on (time stepping), bilateral Contacts, or None.
        method: without a ground, "rk4" (fourth order), "semi-implicit" (first) or "time-stepping" (second, or first
        with Contacts; it alone knows dry friction, and is stable however stiff joints are); None takes the one that
        suits the robot.
        passive: whether limits, effort limits, damping, dry friction and springs of the joints act.
        Many states are many worlds, at once; those that diverge are NaN from then on. Ctrl-C returns the motion so far.
        """
        return simulate(self.evaluator, q, v, controller, contacts, dt, duration, method, passive, progress)

    # Seeing

    def view(
        self,
        q: ArrayLike | None = None,
        fext: ArrayLike | None = None,
        *,
        dt: float | None = None,
        **options: Unpack[ViewOptions],
    ) -> Viewer:
        """Show the robot in the browser, with a slider for each degree of freedom; many configurations side by side.

        q (..., nq): by default the neutral configuration, as far as limits allow it. fext (..., njoints, 6): external
        forces to draw, as the dynamics take them. dt: configurations q (..., n, nq) that follow each other every dt
        seconds, and play as a motion.
        Options, the same for trajectories, transitions and `fj.show`:
        host, port: the page's address; by default http://127.0.0.1:8080, or the next port that is free.
        meshes:  a URDF or MJCF file with the robot's looks, in place of the file it came from.
        play, speed, loop: whether a motion plays at once, how fast, and again and again.
        spacing: the distance [m] of robots side by side; 0 draws all in one place; None makes room for each.
        traces:  names of frames whose ways are drawn.

        `screenshot` and `record` of the result write pictures, GIF, MP4 and pages that need nothing else; a cell of a
        notebook shows it.
        """
        with unforked:
            from ..view.pose import standing
            from ..view.show import show

        if dt is None:
            return show(standing(self.evaluator, q, fext), **options)
        if fext is not None:
            raise InputError("view: fext is drawn of robots at rest alone; leave out dt, or fext")
        at = converted(self.evaluator, self.evaluator.standard, self.neutral() if q is None else q).q
        return show(sampled(self.model, at, dt), **options)

    def plot_sparsity(self, path: str | PathLike[str] | None = None, *, overwrite: bool = True) -> Figure:
        """A matplotlib figure of the zeros in all derivatives of dynamics, written as a PNG if there is a path.

        Entries count as zero if they are nothing but rounding at three random states.
        """
        with unforked:
            from ..view.backend import drawn, refuse_other_formats
            from ..view.matrices import spy_figure

        refuse_other_formats(path)
        rng = np.random.default_rng(0)
        q, (v, a) = self.random_configuration(rng, 3), rng.normal(size=(2, 3, self.nv))
        found = {**self.inverse_dynamics_derivatives(q, v, a)._asdict()}
        found |= self.forward_dynamics_derivatives(q, v, self.inverse_dynamics(q, v, a))._asdict()
        return drawn(spy_figure(self.model, found), path, overwrite)


def robot_of(evaluator: Evaluator) -> Robot:
    """The robot that computes with this evaluator."""
    robot = Robot.__new__(Robot)
    robot.__setstate__(evaluator)
    return robot


@motion_to_show.register(Robot)
def _(robot: Robot) -> Playable:
    """At rest at its neutral configuration."""
    with unforked:
        from ..view.pose import standing

    return standing(robot.evaluator)
