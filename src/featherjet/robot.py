"""Robot: what users hold. Names, shapes and conventions are Pinocchio's; arrays broadcast over leading axes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import checks, frames
from .algorithms import methods
from .algorithms.jacobians import Sight
from .algorithms.projected import ProjectedNewtonEuler
from .bound import Bound
from .checks import Out, into, outputs
from .contact import Contacts, Ground
from .contact import dynamics as contact
from .contact.dynamics import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ContactInverseDynamics,
    ImpulseDynamics,
    ImpulseDynamicsDerivatives,
)
from .errors import InputError, SingularMassMatrix, UnknownName
from .frames import FrameName
from .model import configuration
from .model.configuration import Limits
from .model.lock import lock
from .model.model import WORLD, Array, Model
from .quantities import DIVIDING, INPUTS, UNCOMPILED
from .reference import Reference
from .robot_derivatives import RobotDerivatives

if TYPE_CHECKING:
    from .compiled import Compiled, Specialised
    from .simulation.simulate import Controller
    from .simulation.trajectory import Trajectory

BACKENDS = ("compiled", "numpy")
CHUNK = 4096  # samples the reference treats at a time, so that a large batch does not fill the memory
SINGULAR = 1e-13  # a margin of the mass matrix this small is rounding error

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
SUSPECT = 4  # the flag a kernel raises for pivots that may be zero

FrameChoice = Literal["local", "world", "world_aligned"]
FRAMES = ("local", "world", "world_aligned")


def processors() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Robot(RobotDerivatives):
    """A model together with its dynamics.

    q (..., nq), v, a, tau (..., nv); fext (..., njoints, 6): force then moment on each joint's body, in that joint's
    frame. SI units. Leading axes broadcast.
    backend: "compiled" (the default) or "numpy", the plain reference; FEATHERJET_BACKEND changes the default.
    unroll: whether machine code is made for this robot alone, which takes a second and runs faster (True), or shared by
    all robots with the same kinds of joints (False); None, the default, leaves it to what each quantity costs, or to
    FEATHERJET_UNROLL, 0 or 1.
    """

    def __init__(
        self, model: Model, backend: str | None = None, threads: int | None = None, unroll: bool | None = None
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"Robot takes a Model, got {type(model).__name__}; to load a file use featherjet.load")
        backend = backend or os.environ.get("FEATHERJET_BACKEND") or "compiled"
        if backend not in BACKENDS:
            raise UnknownName("backend", backend, BACKENDS)
        self.model, self.backend = model, backend
        self._space: configuration.Space = model
        self._reference = Reference(model)
        self._compiled: Compiled | None = None
        self._specialised: dict[type, Specialised] = {}
        self._quick: dict[str, Any] = {}  # the shortest way to each quantity of one state
        self.unroll = {"0": False, "1": True}.get(os.environ.get("FEATHERJET_UNROLL", "")) if unroll is None else unroll
        self.threads = processors() if threads is None else threads

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.model.njoints} joints, nq {self.nq}, nv {self.nv}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "backend": self.backend, "threads": self.threads, "unroll": self.unroll}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    # What it is

    @property
    def threads(self) -> int:
        """How many threads a batch may use; results do not depend on it."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"threads: expected a positive whole number, got {count!r}")
        self._threads = int(count)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self._space.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.model.nv

    @property
    def njoints(self) -> int:
        return self.model.njoints

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.model.joint_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.model.frames)

    @property
    def mass(self) -> float:
        """Total moving mass [kg]."""
        return self.model.mass

    def lock(self, positions: Mapping[str, ArrayLike]) -> Robot:
        """A smaller robot with the named joints fixed at the given coordinates."""
        return Robot(lock(self.model, positions), self.backend, self.threads, self.unroll)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravity (3,) [m/s^2]."""
        model = self.model.with_gravity(checks.numbers("gravity", gravity, (3,), "x y z"))
        return Robot(model, self.backend, self.threads, self.unroll)

    @property
    def convention(self) -> str:
        """Whose coordinates q, v, a and tau are: "pinocchio", or what `with_convention` was given."""
        return "pinocchio"

    def with_convention(self, convention: str) -> Robot:
        """The same robot, all of whose inputs and results speak "pinocchio", "kindr", "mujoco" or "drake".

        Derivatives by q are then along that convention's velocities; docs/conventions.md has the tables.
        """
        from .convention import ConventionRobot

        return self if convention == self.convention else ConventionRobot.of(self, convention)

    # Configurations

    def neutral(self) -> Array:
        """The configuration (nq,) of no displacement."""
        return configuration.neutral(self._space)

    def limits(self) -> Limits:
        """Lower and upper limits of q (nq,), and limits of velocity and effort (nv,), infinite where there are none."""
        return configuration.limits(self._space)

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
        return configuration.random(self.model, rng, shape)

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """q moved along the tangent vector dv (..., nv)."""
        return configuration.integrate(self._space, *self._pair(q=self._q("q", q), dv=self._v("dv", dv)))

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The tangent vector (..., nv) at q0 that leads to q1."""
        return configuration.difference(self._space, *self._pair(q0=self._q("q0", q0), q1=self._q("q1", q1)))

    def interpolate(self, q0: ArrayLike, q1: ArrayLike, t: ArrayLike) -> Array:
        """The geodesic between q0 (t = 0) and q1 (t = 1)."""
        t = checks.numbers("t", t, (), "any shape")
        start, end = self._q("q0", q0), self._q("q1", q1)
        checks.common_batch({"q0": (start, 1), "q1": (end, 1), "t": (t, 0)})
        return configuration.interpolate(self._space, start, end, t)

    def integrate_jacobians(self, q: ArrayLike, dv: ArrayLike) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of integrate by q and by dv."""
        pair = self._pair(q=self._q("q", q), dv=self._v("dv", dv))
        return configuration.integrate_jacobians(self._space, *pair)

    def difference_jacobians(self, q0: ArrayLike, q1: ArrayLike) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of difference by q0 and by q1."""
        pair = self._pair(q0=self._q("q0", q0), q1=self._q("q1", q1))
        return configuration.difference_jacobians(self._space, *pair)

    def rate_map(self, q: ArrayLike) -> Array:
        """F (..., nq, nv): the coordinates' rates dq/dt = F v."""
        return configuration.rate_map(self._space, self._q("q", q))

    def rate_map_inverse(self, q: ArrayLike) -> Array:
        """Fbar (..., nv, nq): v = Fbar dq/dt, whatever dq/dt does to the norms of quaternions.

        D @ Fbar turns a derivative D by q in the tangent space (nv columns) into one by q's own entries (nq columns).
        """
        return configuration.rate_map_inverse(self._space, self._q("q", q))

    # Dynamics. `out` takes an array, or a tuple of arrays for several results, to write into.

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """tau = M a + C v + g - J^T fext, (..., nv)."""
        return self._run("inverse_dynamics", (q, v, a), fext, out)[0]

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """a = M^-1 (tau - C v - g + J^T fext), (..., nv)."""
        return self._run("forward_dynamics", (q, v, tau), fext, out)[0]

    def mass_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """M (..., nv, nv), symmetric, armature included."""
        return self._run("mass_matrix", (q,), None, out)[0]

    def gravity(self, q: ArrayLike, out: Out = None) -> Array:
        """g (..., nv): the torques that hold the robot still."""
        return self._run("gravity", (q,), None, out)[0]

    def bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C v + g (..., nv)."""
        return self._run("bias", (q, v), None, out)[0]

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C (..., nv, nv), such that Mdot - 2C is skew-symmetric."""
        return self._run("coriolis_matrix", (q, v), None, out)[0]

    def bind(self, quantity: str, fext: bool = False) -> Bound:
        """A call with buffers of its own, for control loops: `step.q[:] = ...; step(); step.da_dq`."""
        return Bound(self, quantity, fext)

    # Contacts. forces (..., rows) are the contacts' one after the other; `contacts.split` names them.

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
        return contact.constrained_dynamics(self, contacts, fext, out, q=q, v=v, tau=tau)

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamicsDerivatives:
        """da_dq, da_dv, da_dtau (..., nv, nv) and dlambda_dq, dlambda_dv, dlambda_dtau (..., rows, nv)."""
        return contact.constrained_dynamics_derivatives(self, contacts, fext, out, q=q, v=v, tau=tau)

    def contact_inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        contacts: Contacts,
        forces: ArrayLike | None = None,
        fext: ArrayLike | None = None,
    ) -> ContactInverseDynamics:
        """tau = M a + h - J^T forces, and the forces: those given, or the smallest that a free base needs."""
        return contact.contact_inverse_dynamics(self, contacts, forces, fext, q=q, v=v, a=a)

    def contact_jacobian(self, q: ArrayLike, contacts: Contacts) -> Array:
        """J (..., rows, nv) in the axes of the forces, whose power is forces . J v."""
        return contact.contact_jacobian(self, contacts, q)

    def impulse_dynamics(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0
    ) -> ImpulseDynamics:
        """Velocities after an impact, and impulses: M (v+ - v) = J^T impulses, J v+ = -restitution J v."""
        return contact.impulse_dynamics(self, contacts, restitution, q=q, v=v)

    def impulse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, contacts: Contacts, restitution: float = 0.0
    ) -> ImpulseDynamicsDerivatives:
        """dv_dq, dv_dv (..., nv, nv) of the velocities after the impact, dlambda_dq, dlambda_dv (..., rows, nv)."""
        return contact.impulse_dynamics_derivatives(self, contacts, restitution, q=q, v=v)

    def simulate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        controller: Controller | ArrayLike | None = None,
        contacts: Contacts | Ground | None = None,
        dt: float = 1e-3,
        T: float = 1.0,
        method: str = "rk4",
        progress: bool = True,
    ) -> Trajectory:
        """The motion from one state, T seconds long; Ctrl-C ends it early and keeps what was computed.

        controller: a function of t, q, v that gives tau, asked once a step; or constant torques; None for none.
        contacts: a Ground to stand, slide and bounce on (time stepping), Contacts that hold, or None.
        method: "rk4" or "semi-implicit", for motion without a Ground.
        """
        from .simulation import simulate

        return simulate(self, q, v, controller, contacts, dt, T, method, progress)

    # Kinematics, energy, momentum

    def forward_kinematics(self, q: ArrayLike) -> Array:
        """Placement (..., njoints, 4, 4) of every joint's frame in the world."""
        rows = self._run("forward_kinematics", (q,))[0]
        return rows.reshape((*np.shape(q)[:-1], self.njoints, 4, 4))

    def frame_placement(self, q: ArrayLike, name: FrameName) -> Array:
        """Placement (..., 4, 4) of a named frame in the world; (name, point) moves its origin to a point (3,) in it."""
        f = frames.named(self.model, name)
        if f.joint == WORLD:
            return np.broadcast_to(f.placement, (*self._q("q", q).shape[:-1], 4, 4)).copy()
        return self.forward_kinematics(q)[..., f.joint, :, :] @ f.placement

    def frame_jacobian(self, q: ArrayLike, name: FrameName, frame: FrameChoice = "local") -> Array:
        """Jacobian (..., 6, nv) of a named frame, or of (name, point), rows linear then angular.

        frame "local": the frame's velocity in its own axes; "world": the spatial velocity at the world's origin;
        "world_aligned": the velocity of the frame's origin in the world's axes.
        """
        f = self._frame(name, frame)
        if f.joint == WORLD:
            return np.zeros((*self._q("q", q).shape[:-1], 6, self.nv))
        columns = self._run("joint_columns", (q,))[0]
        placement = self.frame_placement(q, name)
        return frames.jacobian(self._reference.tree, f.joint, placement, columns, frame)

    def frame_velocity(self, q: ArrayLike, v: ArrayLike, name: FrameName, frame: FrameChoice = "local") -> Array:
        """Velocity (..., 6) of a named frame, linear then angular; frames as in `frame_jacobian`."""
        v = self._v("v", v)
        checks.common_batch({"q": (self._q("q", q), 1), "v": (v, 1)})
        return (self.frame_jacobian(q, name, frame) @ v[..., None])[..., 0]

    def jacobian_derivative(self, q: ArrayLike, v: ArrayLike, name: FrameName, frame: FrameChoice = "local") -> Array:
        """dJ/dt (..., 6, nv) of `frame_jacobian` when the robot moves with v."""
        return self._run("jacobian_derivative", (q, v), **self._sight(name, frame))[0]

    def jacobian_drift(self, q: ArrayLike, v: ArrayLike, name: FrameName, frame: FrameChoice = "local") -> Array:
        """dJ/dt v (..., 6), without forming dJ/dt: the rate of `frame_velocity` at constant v."""
        return self._run("jacobian_drift", (q, v), **self._sight(name, frame))[0]

    def jacobian_hessian(self, q: ArrayLike, name: FrameName, frame: FrameChoice = "local") -> Array:
        """dJ/dq (..., 6, nv, nv) of `frame_jacobian`: entry [..., i, k] is the change of column i along dof k."""
        return self._run("jacobian_hessian", (q,), **self._sight(name, frame))[0]

    def projected_newton_euler(self, q: ArrayLike, v: ArrayLike, fext: ArrayLike | None = None) -> ProjectedNewtonEuler:
        """M, g, f of M a + g = f + tau from the Jacobians of each body: slow and plain, to judge by."""
        return ProjectedNewtonEuler(*self._run("projected_newton_euler", (q, v), fext))

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Array:
        """v^T M v / 2 [J], (...)."""
        return self._run("kinetic_energy", (q, v))[0]

    def potential_energy(self, q: ArrayLike) -> Array:
        """Energy in the field of gravity [J], (...)."""
        return self._run("potential_energy", (q,))[0]

    def center_of_mass(self, q: ArrayLike) -> Array:
        """(..., 3) in the world [m]."""
        self._needs_mass()
        return self._run("center_of_mass", (q,))[0]

    def centroidal_map(self, q: ArrayLike) -> Array:
        """A (..., 6, nv): A v is the momentum about the centre of mass, linear then angular, in world axes."""
        self._needs_mass()
        return self._run("centroidal_map", (q,))[0]

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike) -> Array:
        """(..., 6): linear momentum, then angular momentum about the centre of mass, in world axes."""
        self._needs_mass()
        return self._run("centroidal_momentum", (q, v))[0]

    # Inside

    def _q(self, name: str, q: ArrayLike) -> Array:
        q = checks.numbers(name, q, (self.nq,), f"nq = {self.nq}")
        return checks.unit_parts(self._space, name, q)

    def _v(self, name: str, v: ArrayLike) -> Array:
        return checks.numbers(name, v, (self.nv,), f"nv = {self.nv}")

    def _pair(self, **given: Array) -> tuple[Array, ...]:
        """Arrays whose batches broadcast."""
        checks.common_batch({name: (x, 1) for name, x in given.items()})
        return tuple(given.values())

    def _needs_mass(self) -> None:
        if self.mass == 0:
            raise InputError(f"robot {self.name!r} has no mass, so no centre of mass")

    def _frame(self, name: FrameName, frame: str):
        if frame not in FRAMES:
            raise UnknownName("frame choice", frame, FRAMES)
        return frames.named(self.model, name)

    def _sight(self, name: FrameName, frame: str) -> dict[str, Sight]:
        """What frame to look at, and from where, as algorithms take it."""
        return {"sight": frames.sight(self._reference.tree, self._frame(name, frame), frame)}

    def _run(
        self, quantity: str, given: Sequence[Any], fext: Any = None, out: Out = None, **static: Any
    ) -> tuple[Array, ...]:
        """A quantity by the backend: inputs checked, flags explained."""
        quick = self._quick.get(quantity)
        if quick is not None and fext is None and out is None and not static:
            results = quick(*given)
            if results is not None:
                return results
        if self.backend != "compiled" or static or quantity in UNCOMPILED:
            results = self._run_reference(quantity, self._checked(quantity, given, fext), **static)
            single = all(isinstance(x, np.ndarray) and x.dtype == FLOAT32 for x in given)
            return into(out, tuple(r.astype(FLOAT32) for r in results) if single else results)
        compiled = self._compiled or self._compile()
        inputs = given if fext is None else (*given, fext)
        if not all(type(x) is np.ndarray and (x.dtype == FLOAT64 or x.dtype == FLOAT32) for x in inputs):
            inputs = tuple(self._checked(quantity, given, fext).values())
        outs = None if out is None else self._outputs(quantity, inputs, outputs(out))
        try:
            kernel = compiled.kernel(quantity, fext is not None)
            results, flags = kernel(inputs, outs, self._threads)
        except (TypeError, ValueError):
            self._checked(quantity, given, fext)  # says what is wrong, and where
            raise
        if flags or not results[0].size:  # an empty batch runs no kernel, so nothing has been looked at
            checked = self._checked(quantity, given, fext)
            if flags & SUSPECT:
                self._run_reference(quantity, checked)  # raises if the mass matrix is singular indeed
        elif quick is None and fext is None and results[0].ndim == len(kernel.shapes[0]):
            self._quick[quantity] = kernel.quick
        return results

    def _outputs(self, quantity: str, inputs: Sequence[Array], outs: tuple[Array, ...]) -> tuple[Array, ...]:
        """`out`, if it has the shapes of the results."""
        kernel = (self._compiled or self._compile()).kernel(quantity, len(inputs) > len(INPUTS[quantity]))
        named = {str(k): (x, core) for k, (x, core) in enumerate(zip(inputs, kernel.cores, strict=True))}
        batch = checks.common_batch(named)
        want = [(*batch, *shape) for shape in kernel.shapes]
        if [o.shape for o in outs] != want:
            expected, got = (", ".join(map(str, shapes)) for shapes in (want, [o.shape for o in outs]))
            raise InputError(f"out: expected arrays of shape {expected}; got {got or 'none'}")
        return outs

    def _bindable(self, quantity: str) -> tuple[tuple[str, ...], bool]:
        """A quantity's inputs, and whether it takes external forces."""
        inputs = INPUTS[quantity]
        return inputs, "a" in inputs or "tau" in inputs

    def _kernel(self, quantity: str, fext: bool):
        """Compiled code for a quantity, or None where there is none."""
        if self.backend != "compiled":
            return None
        return (self._compiled or self._compile()).kernel(quantity, fext)

    def _compile(self) -> Compiled:
        from .compiled import Compiled

        self._compiled = Compiled(self._reference.tree, self.unroll)
        return self._compiled

    def _checked(self, quantity: str, given: Sequence[Any], fext: Any) -> dict[str, Array]:
        """The inputs by name, as arrays that may be trusted."""
        inputs: dict[str, Array] = {}
        for name, value in zip(INPUTS[quantity], given, strict=True):
            inputs[name] = self._q(name, value) if name == "q" else self._v(name, value)
        if fext is not None:
            letters = f"njoints = {self.njoints}, then force and moment"
            inputs["fext"] = checks.numbers("fext", fext, (self.njoints, 6), letters)
        checks.common_batch({name: (x, 2 if name == "fext" else 1) for name, x in inputs.items()})
        return inputs

    def _by_reference(self, quantity: str, **static: Any) -> Callable[..., tuple[Array, ...]]:
        """What runs an algorithm: as it is written, or as machine code, if it has no kernel of its own."""
        kernel = quantity not in UNCOMPILED and not static
        traced = "method" not in static or methods.find(quantity, static["method"]).traced
        return self._reference.run if kernel or not traced else self._specialise(self._reference)

    def _specialise(self, reference: Reference) -> Callable[..., tuple[Array, ...]]:
        """`reference.run`, or on the compiled backend the same as machine code for this robot."""
        if self.backend != "compiled":
            return reference.run
        found = self._specialised.get(type(reference))
        if found is None:
            from .compiled import Specialised

            found = Specialised(reference, (self._compiled or self._compile()).tables)
            self._specialised[type(reference)] = found
        return partial(found.run, threads=self._threads)

    def _run_reference(
        self, quantity: str, inputs: dict[str, Array], run: Callable | None = None, **static: Any
    ) -> tuple[Array, ...]:
        """By the reference, or whatever runs in its place, chunk by chunk."""
        chunk = max(1, CHUNK // self.nv) if "method" in static else CHUNK  # methods may keep nv numbers for each entry
        cores = {name: 2 if name == "fext" else 1 for name in inputs}
        batch = checks.common_batch({name: (x, cores[name]) for name, x in inputs.items()})
        flat = {
            name: np.broadcast_to(x, (*batch, *x.shape[x.ndim - cores[name] :])).reshape(
                -1, *x.shape[x.ndim - cores[name] :]
            )
            for name, x in inputs.items()
        }
        total = int(np.prod(batch))
        run = run or self._by_reference(quantity, **static)
        pieces = []
        for start in range(0, max(total, 1), chunk):
            part = {name: x[start : start + chunk] for name, x in flat.items()}
            results = run(quantity, part, **static)
            if quantity in DIVIDING:
                self._refuse_singular(results[-1], start, batch)
                results = results[:-1]
            pieces.append(results)
        return tuple(np.concatenate(r).reshape((*batch, *r[0].shape[1:])) for r in zip(*pieces, strict=True))

    def _refuse_singular(self, margins: Array, start: int, batch: tuple[int, ...]) -> None:
        bad = ~(margins > SINGULAR)
        if bad.any():
            sample = int(np.argwhere(bad)[0, 0])
            # a margin of zero spoils those of all joints nearer the root: the outermost bad one is to blame
            dof = int(np.flatnonzero(bad[sample])[-1])
            joint = next(
                j.name for j, i in zip(self.model.joints, self.model.v_starts, strict=True) if i <= dof < i + j.nv
            )
            where = f" at sample {tuple(map(int, np.unravel_index(start + sample, batch)))}" if batch else ""
            raise SingularMassMatrix(
                f"robot {self.name!r}: the mass matrix is singular{where}: joint {joint!r} can move without moving any "
                "inertia. Give the links beyond it a mass and inertia, give the joint an armature, or lock it."
            )
