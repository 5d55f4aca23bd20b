"""Robot: what users hold. Names, shapes and conventions are Pinocchio's; arrays broadcast over leading axes."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.dynamics.projected import ProjectedNewtonEuler
from ..algorithms.frames.jacobians import Sight
from ..arrays import Out
from ..errors import InputError, UnknownName
from ..evaluate import frames
from ..evaluate.evaluator import Backends
from ..evaluate.frames import FrameName
from ..model import configuration
from ..model.configuration import Limits
from ..model.lock import lock
from ..model.model import WORLD, Array
from .bound import Bound
from .contacts import RobotContacts
from .derivatives import RobotDerivatives

if TYPE_CHECKING:
    pass

FrameChoice = Literal["local", "world", "world_aligned"]
FRAMES = ("local", "world", "world_aligned")


class Robot(RobotDerivatives, RobotContacts, Backends):
    """A model together with its dynamics.

    q (..., nq), v, a, tau (..., nv); fext (..., njoints, 6): force then moment on each joint's body, in that joint's
    frame. SI units. Leading axes broadcast.
    backend: "compiled" (the default) or "numpy", the plain reference; FEATHERJET_BACKEND changes the default.
    unroll: whether machine code is made for this robot alone, which takes a second and runs faster (True), or shared by
    all robots with the same kinds of joints (False); None, the default, leaves it to what each quantity costs, or to
    FEATHERJET_UNROLL, 0 or 1.
    """

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.model.njoints} joints, nq {self.nq}, nv {self.nv}>"

    # What it is

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
        model = self.model.with_gravity(arrays.numbers("gravity", gravity, (3,), "x y z"))
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
        t = arrays.numbers("t", t, (), "any shape")
        start, end = self._q("q0", q0), self._q("q1", q1)
        arrays.common_batch({"q0": (start, 1), "q1": (end, 1), "t": (t, 0)})
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
        arrays.common_batch({"q": (self._q("q", q), 1), "v": (v, 1)})
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

    # Inputs

    def checked_q(self, name: str, q: ArrayLike) -> Array:
        """q as an array (..., nq) of finite numbers with unit quaternions, or an InputError that names it."""
        return self._q(name, q)

    def checked_v(self, name: str, v: ArrayLike) -> Array:
        """v as an array (..., nv) of finite numbers, or an InputError that names it."""
        return self._v(name, v)

    # Inside

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
