"""Robot: what users hold. Names, shapes and conventions are Pinocchio's; arrays broadcast over leading axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import checks
from .algorithms.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from .errors import InputError, SingularMassMatrix, UnknownName
from .model import configuration
from .model.lock import lock
from .model.model import WORLD, Array, Model
from .reference import Reference

BACKENDS = ("numpy",)
CHUNK = 4096  # samples the reference treats at a time, so that a large batch does not fill the memory
AZA_FROM = 60  # dofs from which the reference sends columns through the tree instead of multiplying by M^-1
SINGULAR = 1e-13  # a pivot this small against its diagonal entry is rounding error

FrameChoice = Literal["local", "world", "world_aligned"]
FRAMES = ("local", "world", "world_aligned")


class Robot:
    """A model together with its dynamics.

    q (..., nq), v, a, tau (..., nv); fext (..., njoints, 6): force then moment on each joint's body, in that joint's
    frame. SI units. Leading axes broadcast.
    """

    def __init__(self, model: Model, backend: str = "numpy") -> None:
        if not isinstance(model, Model):
            raise InputError(f"Robot takes a Model, got {type(model).__name__}; to load a file use featherjet.load")
        if backend not in BACKENDS:
            raise UnknownName("backend", backend, BACKENDS)
        self.model, self.backend = model, backend
        self._reference = Reference(model)

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.model.njoints} joints, nq {self.nq}, nv {self.nv}>"

    # What it is

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self.model.nq

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
        return Robot(lock(self.model, positions), self.backend)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravity (3,) [m/s^2]."""
        return Robot(self.model.with_gravity(checks.numbers("gravity", gravity, (3,), "x y z")), self.backend)

    # Configurations

    def neutral(self) -> Array:
        """The configuration (nq,) of no displacement."""
        return configuration.neutral(self.model)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> Array:
        """Configurations (*size, nq) within the joint limits; rng is a Generator or a seed."""
        try:
            rng = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        except (TypeError, ValueError) as e:
            raise InputError(f"rng: expected a numpy Generator, a seed or None, got {rng!r}") from e
        try:
            shape = () if size is None else tuple(int(n) for n in np.atleast_1d(np.asarray(size, dtype=int)))
        except (TypeError, ValueError) as e:
            raise InputError(f"size: expected a whole number or a tuple of them, got {size!r}") from e
        if any(n < 0 for n in shape):
            raise InputError(f"size: must not be negative, got {size!r}")
        return configuration.random(self.model, rng, shape)

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """q moved along the tangent vector dv (..., nv)."""
        return configuration.integrate(self.model, self._q("q", q), self._v("dv", dv))

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The tangent vector (..., nv) at q0 that leads to q1."""
        return configuration.difference(self.model, self._q("q0", q0), self._q("q1", q1))

    def interpolate(self, q0: ArrayLike, q1: ArrayLike, t: ArrayLike) -> Array:
        """The geodesic between q0 (t = 0) and q1 (t = 1)."""
        t = checks.numbers("t", t, (), "any shape")
        return configuration.interpolate(self.model, self._q("q0", q0), self._q("q1", q1), t)

    def integrate_jacobians(self, q: ArrayLike, dv: ArrayLike) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of integrate by q and by dv."""
        return configuration.integrate_jacobians(self.model, self._q("q", q), self._v("dv", dv))

    def difference_jacobians(self, q0: ArrayLike, q1: ArrayLike) -> tuple[Array, Array]:
        """Jacobians (..., nv, nv) of difference by q0 and by q1."""
        return configuration.difference_jacobians(self.model, self._q("q0", q0), self._q("q1", q1))

    # Dynamics

    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None
    ) -> Array:
        """tau = M a + C v + g - J^T fext, (..., nv)."""
        return self._run("inverse_dynamics", q=q, v=v, a=a, fext=fext)[0]

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None
    ) -> Array:
        """a = M^-1 (tau - C v - g + J^T fext), (..., nv)."""
        return self._run("forward_dynamics", q=q, v=v, tau=tau, fext=fext)[0]

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (..., nv, nv), symmetric, armature included."""
        return self._run("mass_matrix", q=q)[0]

    def inverse_mass_matrix(self, q: ArrayLike) -> Array:
        """M^-1 (..., nv, nv)."""
        return self._run("inverse_mass_matrix", q=q)[0]

    def gravity(self, q: ArrayLike) -> Array:
        """g (..., nv): the torques that hold the robot still."""
        return self._run("gravity", q=q)[0]

    def bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """C v + g (..., nv)."""
        return self._run("bias", q=q, v=v)[0]

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike) -> Array:
        """C (..., nv, nv), such that Mdot - 2C is skew-symmetric."""
        return self._run("coriolis_matrix", q=q, v=v)[0]

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None
    ) -> InverseDynamicsDerivatives:
        """dtau_dq, dtau_dv, dtau_da, each (..., nv, nv); columns by q in its tangent space."""
        return InverseDynamicsDerivatives(*self._run("inverse_dynamics_derivatives", q=q, v=v, a=a, fext=fext))

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, method: str = "auto"
    ) -> ForwardDynamicsDerivatives:
        """da_dq, da_dv, da_dtau, each (..., nv, nv); method "auto", "fdsva-dmm",
        "fdsva-aza" or "direct"."""
        methods = ("auto", "fdsva-dmm", "fdsva-aza", "direct")
        if method not in methods:
            raise UnknownName("method", method, methods)
        if method == "auto":
            method = "fdsva-aza" if self.nv >= AZA_FROM else "fdsva-dmm"
        run = self._run("forward_dynamics_derivatives", q=q, v=v, tau=tau, fext=fext, method=method)
        return ForwardDynamicsDerivatives(*run)

    # Kinematics, energy, momentum

    def forward_kinematics(self, q: ArrayLike) -> Array:
        """Placement (..., njoints, 4, 4) of every joint's frame in the world."""
        return self._run("forward_kinematics", q=q)[0]

    def frame_placement(self, q: ArrayLike, name: str) -> Array:
        """Placement (..., 4, 4) of a named frame in the world."""
        f = self.model.frame(name)
        if f.joint == WORLD:
            return np.broadcast_to(f.placement, (*self._q("q", q).shape[:-1], 4, 4)).copy()
        return self._run("frame_placement", q=q, joint=f.joint, placement=f.placement)[0]

    def frame_jacobian(self, q: ArrayLike, name: str, frame: FrameChoice = "local") -> Array:
        """Jacobian (..., 6, nv) of a named frame, rows linear then angular.

        frame "local": the frame's velocity in its own axes; "world": the spatial velocity at the world's origin;
        "world_aligned": the velocity of the frame's origin in the world's axes.
        """
        f = self._frame(name, frame)
        if f.joint == WORLD:
            return np.zeros((*self._q("q", q).shape[:-1], 6, self.nv))
        return self._run("frame_jacobian", q=q, joint=f.joint, placement=f.placement, frame=frame)[0]

    def frame_velocity(self, q: ArrayLike, v: ArrayLike, name: str, frame: FrameChoice = "local") -> Array:
        """Velocity (..., 6) of a named frame, linear then angular; frames as in `frame_jacobian`."""
        f = self._frame(name, frame)
        if f.joint == WORLD:
            batch = checks.common_batch({"q": (self._q("q", q), 1), "v": (self._v("v", v), 1)})
            return np.zeros((*batch, 6))
        return self._run("frame_velocity", q=q, v=v, joint=f.joint, placement=f.placement, frame=frame)[0]

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> Array:
        """v^T M v / 2 [J], (...)."""
        return self._run("kinetic_energy", q=q, v=v)[0]

    def potential_energy(self, q: ArrayLike) -> Array:
        """Energy in the field of gravity [J], (...)."""
        return self._run("potential_energy", q=q)[0]

    def center_of_mass(self, q: ArrayLike) -> Array:
        """(..., 3) in the world [m]."""
        self._needs_mass()
        return self._run("center_of_mass", q=q)[0]

    def centroidal_map(self, q: ArrayLike) -> Array:
        """A (..., 6, nv): A v is the momentum about the centre of mass, linear then angular, in world axes."""
        self._needs_mass()
        return self._run("centroidal_map", q=q)[0]

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike) -> Array:
        """(..., 6): linear momentum, then angular momentum about the centre of mass, in world axes."""
        self._needs_mass()
        return self._run("centroidal_momentum", q=q, v=v)[0]

    # Inside

    def _q(self, name: str, q: ArrayLike) -> Array:
        q = checks.numbers(name, q, (self.nq,), f"nq = {self.nq}")
        return checks.unit_parts(self.model, name, q)

    def _v(self, name: str, v: ArrayLike) -> Array:
        return checks.numbers(name, v, (self.nv,), f"nv = {self.nv}")

    def _needs_mass(self) -> None:
        if self.mass == 0:
            raise InputError(f"robot {self.name!r} has no mass, so no centre of mass")

    def _frame(self, name: str, frame: str):
        if frame not in FRAMES:
            raise UnknownName("frame choice", frame, FRAMES)
        return self.model.frame(name)

    def _run(self, quantity: str, **given: Any) -> tuple[Array, ...]:
        """Check the inputs, run the reference chunk by chunk, and check what must hold of the result."""
        inputs: dict[str, Array] = {}
        for name in ("q", "v", "a", "tau", "fext"):
            value = given.pop(name, None)
            if value is None:
                continue
            if name == "q":
                inputs[name] = self._q(name, value)
            elif name == "fext":
                inputs[name] = checks.numbers(
                    name, value, (self.njoints, 6), f"njoints = {self.njoints}, then force and moment"
                )
            else:
                inputs[name] = self._v(name, value)
        cores = {name: 2 if name == "fext" else 1 for name in inputs}
        batch = checks.common_batch({name: (x, cores[name]) for name, x in inputs.items()})
        flat = {
            name: np.broadcast_to(x, (*batch, *x.shape[x.ndim - cores[name] :])).reshape(
                -1, *x.shape[x.ndim - cores[name] :]
            )
            for name, x in inputs.items()
        }
        total = int(np.prod(batch))
        pieces = []
        for start in range(0, max(total, 1), CHUNK):
            part = {name: x[start : start + CHUNK] for name, x in flat.items()}
            results = self._reference.run(quantity, part, **given)
            if quantity in ("forward_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives"):
                self._refuse_singular(results[-1], part["q"], start, batch)
                results = results[:-1]
            pieces.append(results)
        return tuple(np.concatenate(r).reshape(*batch, *r[0].shape[1:]) for r in zip(*pieces, strict=True))

    def _refuse_singular(self, pivots: Array, q: Array, start: int, batch: tuple[int, ...]) -> None:
        (diagonal,) = self._reference.run("mass_diagonal", {"q": q})
        bad = ~(pivots > SINGULAR * np.abs(diagonal))
        if bad.any():
            sample = int(np.argwhere(bad)[0, 0])
            # a pivot of zero spoils those of all joints nearer the root: the outermost bad one is to blame
            dof = int(np.flatnonzero(bad[sample])[-1])
            joint = next(
                j.name
                for j, i in zip(self.model.joints, self.model.v_starts, strict=True)
                if i <= dof < i + j.nv
            )
            where = f" at sample {tuple(map(int, np.unravel_index(start + sample, batch)))}" if batch else ""
            raise SingularMassMatrix(
                f"robot {self.name!r}: the mass matrix is singular{where}: joint {joint!r} can move without moving any "
                "inertia. Give the links beyond it a mass and inertia, give the joint an armature, or lock it."
            )
