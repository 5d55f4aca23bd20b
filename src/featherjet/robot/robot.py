"""Robot: the main class for users. Names, shapes and conventions are Pinocchio's; leading axes broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.dynamics.projected import ProjectedNewtonEuler
from ..algorithms.frames.centroidal import CentroidalDerivatives
from ..algorithms.frames.derivatives import FrameAccelerationDerivatives, FrameVelocityDerivatives
from ..algorithms.quantities import quantity
from ..algorithms.results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ContactInverseDynamics,
    ForwardDynamicsDerivatives,
    ForwardDynamicsForceGradients,
    ForwardDynamicsGradients,
    ForwardDynamicsHessian,
    ForwardDynamicsSecondOrder,
    ImpulseDynamics,
    ImpulseDynamicsDerivatives,
    InverseDynamicsDerivatives,
    InverseDynamicsForceGradients,
    InverseDynamicsGradients,
    InverseDynamicsHessian,
)
from ..arrays import Out
from ..contact import Contacts, Ground, impacts
from ..contact import dynamics as contact
from ..errors import FixedAttribute, InputError
from ..evaluate import frames
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
from ..simulation.playback import Playback, sampled
from ..simulation.simulating import Controller, simulate
from ..simulation.trajectory import Trajectory
from . import products
from .ahead import tasks
from .bind import bind
from .chunks import chunks
from .joint import RobotJoint, html, joint
from .products import Double, Single

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from ..view.pose import Pose
    from ..view.show import ViewOptions
    from ..view.viewer import Viewer


class Robot:
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

    __slots__ = ("__weakref__", "_run", "evaluator")

    def __init__(
        self, model: Model, *, backend: str | None = None, threads: int | None = None, unroll: bool | None = None
    ) -> None:
        self._hold(Evaluator(model, backend, threads, unroll))

    def _hold(self, evaluator: Evaluator) -> None:
        self.evaluator, self._run = evaluator, evaluator.run

    @classmethod
    def of(cls, evaluator: Evaluator) -> Robot:
        """The robot of an evaluator."""
        robot = cls.__new__(cls)
        robot._hold(evaluator)
        return robot

    def __reduce__(self) -> tuple:
        return Robot.of, (self.evaluator,)

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
        return Robot.of(self.evaluator.with_model(lock(self.model, standard)))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravity (3,) [m/s^2]."""
        model = self.model.with_gravity(arrays.finite("gravity", gravity, (3,), "x y z"))
        return Robot.of(self.evaluator.with_model(model))

    def with_placements(self, placements: Mapping[str, ArrayLike]) -> Robot:
        """The same robot with the named joints placed elsewhere (4, 4) in their parents' frames."""
        return Robot.of(self.evaluator.with_model(self.model.with_placements(placements)))

    def with_inertial_parameters(self, parameters: ArrayLike | Mapping[str, ArrayLike]) -> Robot:
        """The same robot with other masses and inertias: (10 njoints,) as `inertial_parameters` gives them, or (10,)
        by name of the joint for some bodies.
        """
        return Robot.of(self.evaluator.with_model(self.model.with_inertial_parameters(parameters)))

    @property
    def convention(self) -> str:
        """The convention of q, v, a and tau: "pinocchio", or that of `with_convention`."""
        return self.evaluator.convention

    def with_convention(self, convention: str) -> Robot:
        """The same robot with inputs and results in the convention "pinocchio", "kindr", "mujoco" or "drake".

        Derivatives by q are then along that convention's velocities; docs/conventions.md has the tables.
        """
        evaluator = self.evaluator.with_convention(convention)
        return self if evaluator is self.evaluator else Robot.of(evaluator)

    def with_velocities(self, B: Callable[[Any], Any]) -> Robot:
        """The same robot with its own velocities u: v = B(q) u, where q and v are those of this robot.

        B takes the entries of q (nq,) and returns an invertible matrix (nv, nv); it is traced, and differentiated
        automatically. Accelerations are du/dt, torques B^T tau, and derivatives by q are along u.
        """
        return Robot.of(self.evaluator.with_velocities(B))

    def with_joint_laws(self, *, slip: float = SLIP) -> Robot:
        """The same robot with its joints' damping, springs and dry friction in all of its dynamics and derivatives.

        inverse_dynamics then gives M a + C v + g + p(q, v), and forward_dynamics a under tau - p(q, v), with
        p = damping v + stiffness (q - spring) + friction v / sqrt(v^2 + slip^2); slip [rad/s, m/s]. Simulations, where
        these laws act anyway, are those of this robot.
        """
        settings: dict[str, Any] = self.evaluator.__getstate__() | {"slip": slip}
        if self.evaluator.coordinates is not None:
            raise InputError("with_joint_laws: joints' laws are known in the convention 'pinocchio' alone")
        return Robot.of(LawfulEvaluator(**settings))

    # Configurations

    def checked_q(self, name: str, q: ArrayLike) -> Array:
        """Configurations (..., nq) as a float array; raises for wrong shapes, NaN and quaternions not of norm one."""
        return self.evaluator.checked_q(name, q)

    def checked_v(self, name: str, v: ArrayLike) -> Array:
        """Vectors (..., nv) over degrees of freedom as a float array; raises for wrong shapes and NaN."""
        return self.evaluator.checked_v(name, v)

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

    def integrate(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> Array:
        """q moved along the tangent vector dv (..., nv)."""
        return self._run("integrate", (q, dv), None, out)[0]

    def difference(self, q0: ArrayLike, q1: ArrayLike, out: Out = None) -> Array:
        """The tangent vector (..., nv) that takes q0 to q1."""
        return self._run("difference", (q0, q1), None, out)[0]

    def interpolate(self, q0: ArrayLike, q1: ArrayLike, t: ArrayLike, out: Out = None) -> Array:
        """The geodesic between q0 (t = 0) and q1 (t = 1); t (...) broadcasts against the batch."""
        if type(t) is float:
            t = np.array(t, np.float32 if getattr(q0, "dtype", None) == np.float32 else np.float64)
        ready = isinstance(t, np.ndarray) or arrays.is_lazy(t)
        share: Any = (t if ready else arrays.finite("t", t, (), "any shape"))[..., None]  # type: ignore[index]
        return self._run("interpolate", (q0, q1, share), None, out)[0]

    def integrate_jacobians(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of integrate by q and by dv."""
        by_q, by_dv = self._run("integrate_jacobians", (q, dv), None, out)
        return by_q, by_dv

    def difference_jacobians(self, q0: ArrayLike, q1: ArrayLike, out: Out = None) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of difference by q0 and by q1."""
        by_q0, by_q1 = self._run("difference_jacobians", (q0, q1), None, out)
        return by_q0, by_q1

    def rate_map(self, q: ArrayLike, out: Out = None) -> Array:
        """F (..., nq, nv) of dq/dt = F v."""
        return self._run("rate_map", (q,), None, out)[0]

    def rate_map_inverse(self, q: ArrayLike, out: Out = None) -> Array:
        """Fbar (..., nv, nq) of v = Fbar dq/dt, for any dq/dt, even one that changes the norms of quaternions.

        D @ Fbar converts a derivative D in the tangent space of q (nv columns) to one by the entries of q (nq columns).
        """
        return self._run("rate_map_inverse", (q,), None, out)[0]

    # Dynamics

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        method: str = "auto",
    ) -> Array:
        """tau = M a + C v + g - J^T fext, (..., nv)."""
        if method == "auto":
            return self._run("inverse_dynamics", (q, v, a), fext, out)[0]
        return self._run("inverse_dynamics", (q, v, a), fext, out, method=method)[0]

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """a = M^-1 (tau - C v - g + J^T fext), (..., nv)."""
        return self._run("forward_dynamics", (q, v, tau), fext, out)[0]

    def mass_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """M (..., nv, nv), symmetric, armature included."""
        return self._run("mass_matrix", (q,), None, out)[0]

    def inverse_mass_matrix(self, q: ArrayLike, out: Out = None, *, method: str = "auto") -> Array:
        """M^-1 (..., nv, nv)."""
        if method == "auto":
            return self._run("inverse_mass_matrix", (q,), None, out)[0]
        return self._run("inverse_mass_matrix", (q,), None, out, method=method)[0]

    def gravity(self, q: ArrayLike, out: Out = None) -> Array:
        """g (..., nv): the torques that hold the robot still."""
        return self._run("gravity", (q,), None, out)[0]

    def bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C v + g (..., nv)."""
        return self._run("bias", (q, v), None, out)[0]

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C (..., nv, nv), such that Mdot - 2C is skew-symmetric."""
        return self._run("coriolis_matrix", (q, v), None, out)[0]

    def projected_newton_euler(
        self, q: ArrayLike, v: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> ProjectedNewtonEuler:
        """M, g, f of M a + g = f + tau from the Jacobians of each body: slow and simple, for comparison."""
        return ProjectedNewtonEuler._make(self._run("projected_newton_euler", (q, v), fext, out))

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
            self.evaluator, quantities, Path(out), target=target, dtype=dtype, name=name, batch=batch,
            overwrite=overwrite, choices=choices,
        )  # fmt: skip

    # Derivatives. `featherjet.methods()` lists all values of `method`; "auto" is the fastest. docs/methods.md compares.

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        method: str = "auto",
    ) -> InverseDynamicsDerivatives:
        """dtau_dq, dtau_dv, dtau_da, each (..., nv, nv)."""
        if method == "auto":
            return InverseDynamicsDerivatives._make(self._run("inverse_dynamics_derivatives", (q, v, a), fext, out))
        found = self._run("inverse_dynamics_derivatives", (q, v, a), fext, out, method=method)
        return InverseDynamicsDerivatives._make(found)

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        method: str = "auto",
    ) -> ForwardDynamicsDerivatives:
        """da_dq, da_dv, da_dtau, each (..., nv, nv)."""
        if method == "auto":
            return ForwardDynamicsDerivatives._make(self._run("forward_dynamics_derivatives", (q, v, tau), fext, out))
        found = self._run("forward_dynamics_derivatives", (q, v, tau), fext, out, method=method)
        return ForwardDynamicsDerivatives._make(found)

    # Products with these derivatives, in O(nv) without the matrices. Given external forces, they treat them too.

    def inverse_dynamics_vjp(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        w: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> InverseDynamicsGradients | InverseDynamicsForceGradients:
        """The gradient of w.tau: by_q, by_v, by_a, each (..., nv); with fext also by_fext (..., njoints, 6)."""
        if fext is None:
            return InverseDynamicsGradients._make(self._run("inverse_dynamics_vjp", (q, v, a, w), None, out))
        return InverseDynamicsForceGradients._make(self._run("inverse_dynamics_force_vjp", (q, v, a, w), fext, out))

    def inverse_dynamics_jvp(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        da: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        dfext: ArrayLike | None = None,
    ) -> Array:
        """The rate of tau (..., nv) along dq (in the tangent space), dv, da (..., nv) and dfext (..., njoints, 6)."""
        if dfext is None:
            return self._run("inverse_dynamics_jvp", (q, v, a, dq, dv, da), fext, out)[0]
        return self._run("inverse_dynamics_force_jvp", (q, v, a, dq, dv, da, dfext), fext, out)[0]

    def forward_dynamics_vjp(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        w: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ForwardDynamicsGradients | ForwardDynamicsForceGradients:
        """The gradient of w.a: by_q, by_v, by_tau, each (..., nv); with fext also by_fext (..., njoints, 6)."""
        if fext is None:
            return ForwardDynamicsGradients._make(self._run("forward_dynamics_vjp", (q, v, tau, w), None, out))
        return ForwardDynamicsForceGradients._make(self._run("forward_dynamics_force_vjp", (q, v, tau, w), fext, out))

    def forward_dynamics_jvp(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dtau: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        dfext: ArrayLike | None = None,
    ) -> Array:
        """The rate of a (..., nv) along dq (in the tangent space), dv, dtau (..., nv) and dfext (..., njoints, 6)."""
        if dfext is None:
            return self._run("forward_dynamics_jvp", (q, v, tau, dq, dv, dtau), fext, out)[0]
        return self._run("forward_dynamics_force_jvp", (q, v, tau, dq, dv, dtau, dfext), fext, out)[0]

    # The same for everything that people differentiate through

    def vjp(
        self,
        quantity: Single | Double,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, ...]:
        """The gradient of w . quantity by each of its inputs in order, each (..., nv): `vjp("integrate", q, dv, w)`.

        given: the inputs of the method of that name (inverse_dynamics, forward_dynamics, integrate, difference,
        frame_placement, frame_velocity, center_of_mass, kinetic_energy, potential_energy, constrained_dynamics,
        impulse_dynamics), then w as its result: (..., nv), (..., 6), (..., 3) or, of energies, (...). A result that is
        a configuration or placement has w in its tangent space, that of a placement in the frame's axes, linear then
        angular. Two results, as of contacts, have two w. Inverse and forward dynamics under fext have its gradient
        too, at the end. Contacts form the matrices of their derivatives; nothing else forms one of nv rows.
        """
        choice = products.Choice(frame, viewpoint, contacts, restitution, fext)
        return arrays.copied(out, products.vjp(self.evaluator, quantity, given, choice))

    @overload
    def jvp(
        self,
        quantity: Single,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> Array: ...
    @overload
    def jvp(
        self,
        quantity: Double,
        *given: ArrayLike,
        contacts: Contacts,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array]: ...

    def jvp(
        self,
        quantity: Single | Double,
        *given: ArrayLike,
        frame: FrameName | None = None,
        viewpoint: Viewpoint = "local",
        contacts: Contacts | None = None,
        restitution: float = 0.0,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> Array | tuple[Array, ...]:
        """The rate of a quantity along a direction of each of its inputs: `jvp("integrate", q, dv, dq, ddv)`.

        given: the inputs, then the directions, each (..., nv). The rate is as the quantity, or in the tangent space of
        its result; see `vjp`. Contacts have two, a tuple. fext stays fixed.
        """
        choice = products.Choice(frame, viewpoint, contacts, restitution, fext)
        first, *rest = arrays.copied(out, products.jvp(self.evaluator, quantity, given, choice))
        return (first, *rest) if rest else first

    # Second derivatives, contracted with a vector w

    def inverse_dynamics_hessian(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        w: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        method: str = "auto",
    ) -> InverseDynamicsHessian:
        """Second derivatives of w.tau: qq, qv, vv, qa, each (..., nv, nv); those by (v, a) and (a, a) are zero.

        qv[i, j] is by q_i and v_j; qq[j, i] is the derivative along dof i of component j of the gradient by q.
        """
        options = {} if method == "auto" else {"method": method}
        return InverseDynamicsHessian._make(self._run("inverse_dynamics_hessian", (q, v, a, w), fext, out, **options))

    def forward_dynamics_hessian(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        w: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
        *,
        method: str = "auto",
    ) -> ForwardDynamicsHessian:
        """Second derivatives of w.a: qq, qv, vv, qtau, each (..., nv, nv); those by (v, tau), (tau, tau) are zero."""
        options = {} if method == "auto" else {"method": method}
        return ForwardDynamicsHessian._make(self._run("forward_dynamics_hessian", (q, v, tau, w), fext, out, **options))

    def forward_dynamics_second_order(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        w: ArrayLike,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ForwardDynamicsSecondOrder:
        """forward_dynamics_hessian and forward_dynamics_derivatives in one: nothing is computed twice."""
        return ForwardDynamicsSecondOrder._make(self._run("forward_dynamics_second_order", (q, v, tau, w), fext, out))

    def inverse_dynamics_second_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> InverseDynamicsHessian:
        """The Hessians of every torque, each (..., nv, nv, nv): qq[k] is `inverse_dynamics_hessian` with w = e_k."""
        name = "inverse_dynamics_second_derivatives"
        if self.backend == "numpy" or self.evaluator.compiler.compiles_fast(quantity(name)):
            return InverseDynamicsHessian._make(self._run(name, (q, v, a), fext, out))
        return self.inverse_dynamics_hessian(*self._for_each_dof(q, v, a, fext), out=out)

    def forward_dynamics_second_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> ForwardDynamicsHessian:
        """The Hessians of every acceleration, each (..., nv, nv, nv): qq[k] is `forward_dynamics_hessian` of a_k."""
        return self.forward_dynamics_hessian(*self._for_each_dof(q, v, tau, fext), out=out)

    def _for_each_dof(self, q: ArrayLike, v: ArrayLike, third: ArrayLike, fext: ArrayLike | None) -> list[Any]:
        """A state and a weight for each dof, so that Hessians contracted with the weights are those of each dof."""
        state = [arrays.numbers(x)[..., None, :] for x in (q, v, third)]
        kind = np.float32 if all(x.dtype == np.float32 for x in state) else float
        return [*state, np.eye(self.nv, dtype=kind), None if fext is None else arrays.numbers(fext)[..., None, :, :]]

    # More derivatives

    def gravity_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """dg_dq (..., nv, nv)."""
        return self._run("static_torque_derivatives", (q,), None, out)[0]

    def static_torque(self, q: ArrayLike, fext: ArrayLike | None = None, out: Out = None) -> Array:
        """g - J^T fext (..., nv): the torques that hold the robot still against external forces."""
        return self._run("static_torque", (q,), fext, out)[0]

    def static_torque_derivatives(self, q: ArrayLike, fext: ArrayLike | None = None, out: Out = None) -> Array:
        """d(g - J^T fext)/dq (..., nv, nv), with fext fixed in the joints' frames."""
        return self._run("static_torque_derivatives", (q,), fext, out)[0]

    def inverse_dynamics_force_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """dtau_dfext (..., nv, njoints, 6) = -J^T."""
        return self._run("inverse_dynamics_force_derivatives", (q,), None, out)[0]

    def forward_dynamics_force_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """da_dfext (..., nv, njoints, 6) = M^-1 J^T."""
        return self._run("forward_dynamics_force_derivatives", (q,), None, out)[0]

    def inertial_parameters(self) -> Array:
        """(10 njoints,): for each joint m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz, in Pinocchio's order.

        All are in the joint's frame, I about its origin.
        """
        return self.model.inertial_parameters()

    def torque_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Y = dtau/dparameters (..., nv, 10 njoints): tau = Y inertial_parameters() + armature * a."""
        return self._run("torque_regressor", (q, v, a), None, out)[0]

    def forward_dynamics_parameter_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """da/dparameters (..., nv, 10 njoints) = -M^-1 Y."""
        return self._run("forward_dynamics_parameter_derivatives", (q, v, tau), fext, out)[0]

    def inverse_dynamics_placement_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """dtau by the joints' placements (..., nv, njoints, 6), as each placement P becomes P exp(delta).

        delta = (linear [m], angular [rad]) in the joint's frame at zero displacement; the body moves with its joint.
        """
        return self._run("inverse_dynamics_placement_derivatives", (q, v, a), fext, out)[0]

    def forward_dynamics_placement_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """da by the joints' placements (..., nv, njoints, 6); see `inverse_dynamics_placement_derivatives`."""
        return self._run("forward_dynamics_placement_derivatives", (q, v, tau), fext, out)[0]

    # Kinematics, energy, momentum. Name a frame, or give (name, point) to move its origin to a point (3,) in it.

    def forward_kinematics(self, q: ArrayLike, out: Out = None) -> Array:
        """Placement (..., njoints, 4, 4) of every joint's frame in the world."""
        return self._run("forward_kinematics", (q,), None, out)[0]

    def frame_placement(self, q: ArrayLike, frame: FrameName, out: Out = None) -> Array:
        """Placement (..., 4, 4) of a frame in the world."""
        return frames.placement(self.evaluator, q, frame, out)

    def frame_jacobian(
        self, q: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """Jacobian (..., 6, nv) of a frame, rows linear then angular.

        viewpoint "local": the frame's velocity in its own axes; "world": the spatial velocity at the world's origin;
        "world_aligned": the velocity of the frame's origin in the world's axes.
        """
        return frames.run(self.evaluator, "jacobian", (q,), frame, viewpoint, out)[0]

    def frame_velocity(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """Velocity (..., 6) of a frame, linear then angular; `viewpoint` as in `frame_jacobian`."""
        return frames.run(self.evaluator, "frame_velocity", (q, v), frame, viewpoint, out)[0]

    def frame_velocity_derivatives(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> FrameVelocityDerivatives:
        """dv_dq, dv_dv (..., 6, nv) of `frame_velocity`."""
        found = frames.run(self.evaluator, "frame_velocity_derivatives", (q, v), frame, viewpoint, out)
        return FrameVelocityDerivatives._make(found)

    def frame_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: FrameName,
        out: Out = None,
        *,
        viewpoint: Viewpoint = "local",
    ) -> Array:
        """Spatial acceleration (..., 6) of a frame without gravity, linear then angular; Pinocchio's.

        For the acceleration of the frame's origin add angular x linear velocity to the linear part.
        """
        return frames.run(self.evaluator, "frame_acceleration", (q, v, a), frame, viewpoint, out)[0]

    def frame_acceleration_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: FrameName,
        out: Out = None,
        *,
        viewpoint: Viewpoint = "local",
    ) -> FrameAccelerationDerivatives:
        """da_dq, da_dv, da_da (..., 6, nv) of `frame_acceleration`."""
        found = frames.run(self.evaluator, "frame_acceleration_derivatives", (q, v, a), frame, viewpoint, out)
        return FrameAccelerationDerivatives._make(found)

    def jacobian_derivative(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dt (..., 6, nv) of `frame_jacobian` at velocity v."""
        return frames.run(self.evaluator, "jacobian_derivative", (q, v), frame, viewpoint, out)[0]

    def jacobian_drift(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dt v (..., 6), without forming dJ/dt: the rate of `frame_velocity` at constant v."""
        return frames.run(self.evaluator, "jacobian_drift", (q, v), frame, viewpoint, out)[0]

    def jacobian_hessian(
        self, q: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dq (..., 6, nv, nv) of `frame_jacobian`: entry [..., i, k] is the derivative of column i along dof k."""
        return frames.run(self.evaluator, "jacobian_hessian", (q,), frame, viewpoint, out)[0]

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """v^T M v / 2 [J], (...)."""
        return self._run("kinetic_energy", (q, v), None, out)[0]

    def potential_energy(self, q: ArrayLike, out: Out = None) -> Array:
        """Energy in the gravity field [J], (...)."""
        return self._run("potential_energy", (q,), None, out)[0]

    def center_of_mass(self, q: ArrayLike, out: Out = None) -> Array:
        """(..., 3) in the world [m]."""
        return self._run("center_of_mass", (q,), None, out)[0]

    def centroidal_map(self, q: ArrayLike, out: Out = None) -> Array:
        """A (..., 6, nv): A v is the momentum about the centre of mass, linear then angular, in world axes."""
        return self._run("centroidal_map", (q,), None, out)[0]

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """(..., 6): linear momentum, then angular momentum about the centre of mass, in world axes."""
        return self._run("centroidal_momentum", (q, v), None, out)[0]

    def centroidal_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None
    ) -> CentroidalDerivatives:
        """dh_dq, dhdot_dq, dhdot_dv, dhdot_da (..., 6, nv) of `centroidal_momentum` h; dh_dv is `centroidal_map`."""
        return CentroidalDerivatives._make(self._run("centroidal_derivatives", (q, v, a), None, out))

    # Contacts. forces (..., rows) concatenates those of all contacts; `contacts.split` names them.

    def constrained_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamics:
        """Accelerations and contact forces: M a + h - J^T forces = tau, while the contacts hold."""
        return contact.constrained_dynamics(self.evaluator, q, v, tau, contacts, fext, out)

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamicsDerivatives:
        """da_dq, da_dv, da_dtau (..., nv, nv) and dforces_dq, dforces_dv, dforces_dtau (..., rows, nv)."""
        return contact.constrained_dynamics_derivatives(self.evaluator, q, v, tau, contacts, fext, out)

    def contact_inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        contacts: Contacts,
        forces: ArrayLike | None = None,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ContactInverseDynamics:
        """tau = M a + h - J^T forces, and the forces: the given ones, or the smallest that a free base needs."""
        return contact.contact_inverse_dynamics(self.evaluator, q, v, a, contacts, forces, fext, out)

    def contact_jacobian(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """J (..., rows, nv) in the axes of the forces; their power is forces . J v."""
        return contact.contact_jacobian(self.evaluator, q, contacts, out)

    def delassus(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """J M^-1 J^T (..., rows, rows): how contacts accelerate under each other's forces, in the forces' axes."""
        return contact.delassus(self.evaluator, q, contacts, out)

    def contact_inertia(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """(J M^-1 J^T)^-1 (..., rows, rows): the inertia that contacts feel, also called operational-space inertia."""
        return contact.contact_inertia(self.evaluator, q, contacts, out)

    def impulse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        contacts: Contacts,
        restitution: float = 0.0,
        out: Out = None,
        *,
        friction: ArrayLike | None = None,
        normal: ArrayLike | None = None,
    ) -> ImpulseDynamics:
        """Velocities after an impact, and impulses: M (v+ - v) = J^T impulses, J v+ = -restitution J v.

        friction: None if contacts stick; otherwise points may slide and lift off: a coefficient, 0 for normal impulses
        alone, or one for each point. normal: of the ground (3,), or each point's (..., n, 3); by default z is up.
        """
        if friction is None:
            if normal is not None:
                raise InputError("normal: only impacts with friction have normals; give friction, such as 0.5")
            return contact.impulse_dynamics(self.evaluator, q, v, contacts, restitution, out)
        found = impacts.impact(self.evaluator, q, v, contacts, restitution, friction, normal)
        return ImpulseDynamics._make(arrays.copied(out, found))

    def impulse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0, out: Out = None
    ) -> ImpulseDynamicsDerivatives:
        """dv_dq, dv_dv (..., nv, nv) of the velocities after the impact, dimpulses_dq, dimpulses_dv (..., rows, nv)."""
        return contact.impulse_dynamics_derivatives(self.evaluator, q, v, contacts, restitution, out)

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
        Many states are many worlds, at once. Ctrl-C returns the motion so far.
        """
        return simulate(self.evaluator, q, v, controller, contacts, dt, duration, method, passive, progress)

    # Seeing

    def playable(
        self, q: ArrayLike | None = None, fext: ArrayLike | None = None, dt: float | None = None
    ) -> Pose | Playback:
        """The robot at rest at configurations q (..., nq), for `show`; by default the neutral one. dt: see `view`."""
        with unforked:
            from ..view.pose import Pose, start

        at = start(self.model) if q is None else converted(self.evaluator, self.evaluator.standard, q).q
        if dt is not None:
            if fext is not None:
                raise InputError("view: fext is drawn of robots at rest alone; leave out dt, or fext")
            return sampled(self.model, at, dt)
        forces = None if fext is None else arrays.finite("fext", fext, (self.njoints, 6), "a wrench for each joint")
        return Pose(self.evaluator, at, forces)

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
            from ..view.show import show

        return show(self.playable(q, fext, dt), **options)

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
