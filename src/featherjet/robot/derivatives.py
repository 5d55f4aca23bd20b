"""The derivatives a Robot has, and the methods they can be computed by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.derivatives import methods
from ..algorithms.derivatives.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from ..algorithms.frames.centroidal import CentroidalDerivatives
from ..algorithms.frames.derivatives import FrameAccelerationDerivatives, FrameVelocityDerivatives
from ..model.model import Array, Model

if TYPE_CHECKING:
    from ..arrays import Out
    from ..evaluate.frames import FrameName
    from ..evaluate.reference import Reference
    from .robot import FrameChoice


class RobotDerivatives:
    """Part of `Robot`. Columns by q are in its tangent space.

    `method` is a name of `featherjet.methods()`: "auto" is fastest, and compiled; docs/methods.md compares them all.
    """

    if TYPE_CHECKING:
        model: Model
        backend: str
        _reference: Reference

        def _run(
            self, quantity: str, given: Sequence[Any], fext: Any = None, out: Out = None, **static: Any
        ) -> tuple[Array, ...]: ...

        def _sight(self, name: FrameName, frame: str) -> dict[str, Any]: ...

        def _needs_mass(self) -> None: ...

    # Of dynamics, by whatever method

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        fext: ArrayLike | None = None,
        method: str = "auto",
        out: Out = None,
    ) -> InverseDynamicsDerivatives:
        """dtau_dq, dtau_dv, dtau_da, each (..., nv, nv)."""
        if method == "auto":
            return InverseDynamicsDerivatives._make(self._run("inverse_dynamics_derivatives", (q, v, a), fext, out))
        return InverseDynamicsDerivatives._make(self._by(method, methods.ID, (q, v, a), fext, out))

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        fext: ArrayLike | None = None,
        method: str = "auto",
        out: Out = None,
    ) -> ForwardDynamicsDerivatives:
        """da_dq, da_dv, da_dtau, each (..., nv, nv)."""
        if method == "auto":
            return ForwardDynamicsDerivatives._make(self._run("forward_dynamics_derivatives", (q, v, tau), fext, out))
        return ForwardDynamicsDerivatives._make(self._by(method, methods.FD, (q, v, tau), fext, out))

    def inverse_mass_matrix(self, q: ArrayLike, method: str = "auto", out: Out = None) -> Array:
        """M^-1 (..., nv, nv)."""
        if method == "auto":
            return self._run("inverse_mass_matrix", (q,), None, out)[0]
        return self._by(method, methods.INVERSE, (q,), None, out)[0]

    def _by(self, method: str, quantity: str, given: tuple, fext: ArrayLike | None, out: Out) -> tuple[Array, ...]:
        """`_run` by a method: the kernel if it is of just that, else the reference."""
        methods.find(quantity, method, self._reference.tree.coupling is not None)
        if self.backend == "compiled" and method == methods.KERNEL[quantity]:
            return self._run(quantity, given, fext, out)
        return self._run(quantity, given, fext, out, method=method)

    # Of statics

    def gravity_derivatives(self, q: ArrayLike) -> Array:
        """dg_dq (..., nv, nv)."""
        return self._run("static_torque_derivatives", (q,))[0]

    def static_torque(self, q: ArrayLike, fext: ArrayLike | None = None) -> Array:
        """g - J^T fext (..., nv): the torques that hold the robot still against forces from outside."""
        return self._run("static_torque", (q,), fext)[0]

    def static_torque_derivatives(self, q: ArrayLike, fext: ArrayLike | None = None) -> Array:
        """d(g - J^T fext)/dq (..., nv, nv), fext being fixed in the joints' frames."""
        return self._run("static_torque_derivatives", (q,), fext)[0]

    # By external forces and by inertial parameters

    def inverse_dynamics_force_derivatives(self, q: ArrayLike) -> Array:
        """dtau_dfext (..., nv, njoints, 6) = -J^T."""
        return self._run("inverse_dynamics_force_derivatives", (q,))[0]

    def forward_dynamics_force_derivatives(self, q: ArrayLike) -> Array:
        """da_dfext (..., nv, njoints, 6) = M^-1 J^T."""
        return self._run("forward_dynamics_force_derivatives", (q,))[0]

    def inertial_parameters(self) -> Array:
        """(10 njoints,): joint after joint m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.

        Given in the joint's frame, I about its origin; the order is Pinocchio's.
        """
        upper = ([0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2])
        rows = []
        for body in (joint.body for joint in self.model.joints):
            c = body.com
            about = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
            rows.append([body.mass, *(body.mass * c), *about[upper]])
        return np.concatenate(rows)

    def torque_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Y = dtau/dparameters (..., nv, 10 njoints): tau = Y inertial_parameters() + armature * a."""
        return self._run("torque_regressor", (q, v, a))[0]

    def forward_dynamics_parameter_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None
    ) -> Array:
        """da/dparameters (..., nv, 10 njoints) = -M^-1 Y."""
        return self._run("forward_dynamics_parameter_derivatives", (q, v, tau), fext)[0]

    # Of kinematics and momentum

    def frame_velocity_derivatives(
        self, q: ArrayLike, v: ArrayLike, name: FrameName, frame: FrameChoice = "local"
    ) -> FrameVelocityDerivatives:
        """dv_dq, dv_dv (..., 6, nv) of `frame_velocity`."""
        run = self._run("frame_velocity_derivatives", (q, v), **self._sight(name, frame))
        return FrameVelocityDerivatives._make(run)

    def frame_acceleration(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, name: FrameName, frame: FrameChoice = "local"
    ) -> Array:
        """Spatial acceleration (..., 6) of a named frame without gravity, linear then angular; Pinocchio's.

        For the acceleration of the frame's origin add angular x linear velocity to the linear part.
        """
        return self._run("frame_acceleration", (q, v, a), **self._sight(name, frame))[0]

    def frame_acceleration_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, name: FrameName, frame: FrameChoice = "local"
    ) -> FrameAccelerationDerivatives:
        """da_dq, da_dv, da_da (..., 6, nv) of `frame_acceleration`."""
        run = self._run("frame_acceleration_derivatives", (q, v, a), **self._sight(name, frame))
        return FrameAccelerationDerivatives._make(run)

    def centroidal_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> CentroidalDerivatives:
        """dh_dq, dhdot_dq, dhdot_dv, dhdot_da (..., 6, nv) of `centroidal_momentum` h; dh_dv is `centroidal_map`."""
        self._needs_mass()
        return CentroidalDerivatives._make(self._run("centroidal_derivatives", (q, v, a)))
