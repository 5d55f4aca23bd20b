"""A method for each quantity of a robot; `python tools/quantity_methods.py` writes them from the records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from ..algorithms.dynamics.projected import ProjectedNewtonEuler
from ..algorithms.frames.centroidal import CentroidalDerivatives
from ..algorithms.frames.derivatives import FrameAccelerationDerivatives, FrameVelocityDerivatives
from ..algorithms.results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ForwardDynamicsDerivatives,
    ForwardDynamicsHessian,
    ForwardDynamicsSecondOrder,
    InverseDynamicsDerivatives,
    InverseDynamicsHessian,
)
from ..arrays import Out
from ..contact import Contacts
from ..contact import dynamics as contact
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..model.model import Array


class QuantityMethods:
    """The quantities of a robot, one call of its evaluator each.

    Inputs come first, then a frame or contacts, external forces and `out`; leading axes broadcast. Everything else is
    by keyword. A frame is a name, or (name, point): its origin moved to a point (3,) [m] in it.
    """

    __slots__ = ("__weakref__", "_run", "evaluator")
    evaluator: Evaluator
    _run: Callable[..., Any]

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
        """tau = M a + C v + g - J^T fext; (..., nv)."""
        if method == "auto":
            return self._run("inverse_dynamics", (q, v, a), fext, out)[0]
        return self._run("inverse_dynamics", (q, v, a), fext, out, method=method)[0]

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """a = M^-1 (tau - C v - g + J^T fext); (..., nv)."""
        return self._run("forward_dynamics", (q, v, tau), fext, out)[0]

    def mass_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """M, symmetric, armature included; (..., nv, nv)."""
        return self._run("mass_matrix", (q,), None, out)[0]

    def inverse_mass_matrix(self, q: ArrayLike, out: Out = None, *, method: str = "auto") -> Array:
        """M^-1; (..., nv, nv)."""
        if method == "auto":
            return self._run("inverse_mass_matrix", (q,), None, out)[0]
        return self._run("inverse_mass_matrix", (q,), None, out, method=method)[0]

    def gravity(self, q: ArrayLike, out: Out = None) -> Array:
        """g: torques that hold the robot still; (..., nv)."""
        return self._run("gravity", (q,), None, out)[0]

    def bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C v + g; (..., nv)."""
        return self._run("bias", (q, v), None, out)[0]

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """C, such that Mdot - 2C is skew-symmetric; (..., nv, nv)."""
        return self._run("coriolis_matrix", (q, v), None, out)[0]

    def projected_newton_euler(
        self, q: ArrayLike, v: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> ProjectedNewtonEuler:
        """M, g, f of M a + g = f + tau from the Jacobians of each body; M (..., nv, nv), g (..., nv), f (..., nv).

        Slow and simple, for comparison.
        """
        return ProjectedNewtonEuler._make(self._run("projected_newton_euler", (q, v), fext, out))

    def static_torque(self, q: ArrayLike, fext: ArrayLike | None = None, out: Out = None) -> Array:
        """g - J^T fext: torques that hold the robot still; (..., nv)."""
        return self._run("static_torque", (q,), fext, out)[0]

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
        """dtau_dq, dtau_dv, dtau_da; each (..., nv, nv)."""
        if method == "auto":
            return InverseDynamicsDerivatives._make(self._run("inverse_dynamics_derivatives", (q, v, a), fext, out))
        return InverseDynamicsDerivatives._make(
            self._run("inverse_dynamics_derivatives", (q, v, a), fext, out, method=method)
        )

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
        """da_dq, da_dv, da_dtau; each (..., nv, nv)."""
        if method == "auto":
            return ForwardDynamicsDerivatives._make(self._run("forward_dynamics_derivatives", (q, v, tau), fext, out))
        return ForwardDynamicsDerivatives._make(
            self._run("forward_dynamics_derivatives", (q, v, tau), fext, out, method=method)
        )

    def static_torque_derivatives(self, q: ArrayLike, fext: ArrayLike | None = None, out: Out = None) -> Array:
        """d(g - J^T fext)/dq, fext fixed in the joints' frames; (..., nv, nv)."""
        return self._run("static_torque_derivatives", (q,), fext, out)[0]

    def inverse_dynamics_force_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """dtau_dfext = -J^T; (..., nv, njoints, 6)."""
        return self._run("inverse_dynamics_force_derivatives", (q,), None, out)[0]

    def forward_dynamics_force_derivatives(self, q: ArrayLike, out: Out = None) -> Array:
        """da_dfext = M^-1 J^T; (..., nv, njoints, 6)."""
        return self._run("forward_dynamics_force_derivatives", (q,), None, out)[0]

    def torque_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Y = dtau/dparameters; (..., nv, 10 njoints).

        tau = Y inertial_parameters() + armature * a.
        """
        return self._run("torque_regressor", (q, v, a), None, out)[0]

    def forward_dynamics_parameter_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """da/dparameters = -M^-1 Y; (..., nv, 10 njoints)."""
        return self._run("forward_dynamics_parameter_derivatives", (q, v, tau), fext, out)[0]

    def inverse_dynamics_placement_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """dtau by the joints' placements P exp(delta); (..., nv, njoints, 6).

        delta = (linear [m], angular [rad]) in the joint's frame at zero displacement; the body moves with its joint.
        """
        return self._run("inverse_dynamics_placement_derivatives", (q, v, a), fext, out)[0]

    def forward_dynamics_placement_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """da by the joints' placements; (..., nv, njoints, 6).

        See `inverse_dynamics_placement_derivatives`.
        """
        return self._run("forward_dynamics_placement_derivatives", (q, v, tau), fext, out)[0]

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
        """Second derivatives of w.tau; zero by (v, a) and (a, a); each (..., nv, nv).

        qv[i, j] is by q_i and v_j; qq[j, i] is the derivative along dof i of component j of the gradient by q.
        """
        if method == "auto":
            return InverseDynamicsHessian._make(self._run("inverse_dynamics_hessian", (q, v, a, w), fext, out))
        return InverseDynamicsHessian._make(
            self._run("inverse_dynamics_hessian", (q, v, a, w), fext, out, method=method)
        )

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
        """Second derivatives of w.a; zero by (v, tau) and (tau, tau); each (..., nv, nv)."""
        if method == "auto":
            return ForwardDynamicsHessian._make(self._run("forward_dynamics_hessian", (q, v, tau, w), fext, out))
        return ForwardDynamicsHessian._make(
            self._run("forward_dynamics_hessian", (q, v, tau, w), fext, out, method=method)
        )

    def forward_dynamics_second_order(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, w: ArrayLike, fext: ArrayLike | None = None, out: Out = None
    ) -> ForwardDynamicsSecondOrder:
        """Second derivatives of w.a, and da_dq, da_dv, da_dtau, all at once; each (..., nv, nv)."""
        return ForwardDynamicsSecondOrder._make(self._run("forward_dynamics_second_order", (q, v, tau, w), fext, out))

    def forward_kinematics(self, q: ArrayLike, out: Out = None) -> Array:
        """Placement of every joint's frame in the world; (..., njoints, 4, 4)."""
        return self._run("forward_kinematics", (q,), None, out)[0]

    def frame_placement(self, q: ArrayLike, frame: FrameName, out: Out = None) -> Array:
        """Placement of a frame in the world; (..., 4, 4)."""
        return frames.run(self.evaluator, "frame_placement", (q,), frame, None, out)[0]

    def frame_jacobian(
        self, q: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """J of a frame, rows linear then angular; (..., 6, nv).

        viewpoint "local": the frame's velocity in its own axes; "world": the spatial velocity at the world's origin;
        "world_aligned": the velocity of the frame's origin in the world's axes.
        """
        return frames.run(self.evaluator, "jacobian", (q,), frame, viewpoint, out)[0]

    def jacobian_derivative(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dt of a frame; (..., 6, nv)."""
        return frames.run(self.evaluator, "jacobian_derivative", (q, v), frame, viewpoint, out)[0]

    def jacobian_drift(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dt v of a frame; (..., 6)."""
        return frames.run(self.evaluator, "jacobian_drift", (q, v), frame, viewpoint, out)[0]

    def jacobian_hessian(
        self, q: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """dJ/dq of a frame; [.., i, k]: change of column i along dof k; (..., 6, nv, nv)."""
        return frames.run(self.evaluator, "jacobian_hessian", (q,), frame, viewpoint, out)[0]

    def frame_velocity(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> Array:
        """Velocity of a frame, linear then angular; (..., 6)."""
        return frames.run(self.evaluator, "frame_velocity", (q, v), frame, viewpoint, out)[0]

    def frame_velocity_derivatives(
        self, q: ArrayLike, v: ArrayLike, frame: FrameName, out: Out = None, *, viewpoint: Viewpoint = "local"
    ) -> FrameVelocityDerivatives:
        """dv_dq, dv_dv of a frame's velocity; each (..., 6, nv)."""
        return FrameVelocityDerivatives._make(
            frames.run(self.evaluator, "frame_velocity_derivatives", (q, v), frame, viewpoint, out)
        )

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
        """Spatial acceleration of a frame without gravity, linear then angular; (..., 6).

        It is Pinocchio's. For the acceleration of the frame's origin add angular x linear velocity to the linear part.
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
        """da_dq, da_dv, da_da of a frame's acceleration; each (..., 6, nv)."""
        return FrameAccelerationDerivatives._make(
            frames.run(self.evaluator, "frame_acceleration_derivatives", (q, v, a), frame, viewpoint, out)
        )

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """v^T M v / 2 [J]; (...)."""
        return self._run("kinetic_energy", (q, v), None, out)[0]

    def potential_energy(self, q: ArrayLike, out: Out = None) -> Array:
        """Energy of gravity [J]; zero for masses at the world's origin; (...)."""
        return self._run("potential_energy", (q,), None, out)[0]

    def center_of_mass(self, q: ArrayLike, out: Out = None) -> Array:
        """Centre of mass in the world [m]; (..., 3)."""
        return self._run("center_of_mass", (q,), None, out)[0]

    def centroidal_map(self, q: ArrayLike, out: Out = None) -> Array:
        """A with A v the momentum about the centre of mass, in world axes; (..., 6, nv)."""
        return self._run("centroidal_map", (q,), None, out)[0]

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Momentum about the centre of mass, linear then angular, in world axes; (..., 6)."""
        return self._run("centroidal_momentum", (q, v), None, out)[0]

    def centroidal_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None
    ) -> CentroidalDerivatives:
        """dh_dq, dhdot_dq, dhdot_dv, dhdot_da of the centroidal momentum h; each (..., 6, nv)."""
        return CentroidalDerivatives._make(self._run("centroidal_derivatives", (q, v, a), None, out))

    def integrate(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> Array:
        """q moved along the tangent vector dv; (..., nq)."""
        return self._run("integrate", (q, dv), None, out)[0]

    def difference(self, q0: ArrayLike, q1: ArrayLike, out: Out = None) -> Array:
        """The tangent vector that takes q0 to q1; (..., nv)."""
        return self._run("difference", (q0, q1), None, out)[0]

    def integrate_jacobians(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> tuple[Array, ...]:
        """Jacobians of integrate by q and by dv, between tangent spaces; each (..., nv, nv)."""
        return self._run("integrate_jacobians", (q, dv), None, out)

    def difference_jacobians(self, q0: ArrayLike, q1: ArrayLike, out: Out = None) -> tuple[Array, ...]:
        """Jacobians of difference by q0 and by q1, between tangent spaces; each (..., nv, nv)."""
        return self._run("difference_jacobians", (q0, q1), None, out)

    def rate_map(self, q: ArrayLike, out: Out = None) -> Array:
        """F of dq/dt = F v; (..., nq, nv)."""
        return self._run("rate_map", (q,), None, out)[0]

    def rate_map_inverse(self, q: ArrayLike, out: Out = None) -> Array:
        """Fbar of v = Fbar dq/dt, blind to changes of norm; (..., nv, nq).

        For any dq/dt, even one that changes the norms of quaternions. D @ Fbar converts a derivative D in the tangent
        space of q (nv columns) to one by the entries of q (nq columns).
        """
        return self._run("rate_map_inverse", (q,), None, out)[0]

    def constrained_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamics:
        """Accelerations and contact forces while the contacts hold; a (..., nv), forces (..., rows)."""
        return ConstrainedDynamics._make(
            contact.run(self.evaluator, "constrained_dynamics", (q, v, tau), contacts, fext, out)
        )

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        contacts: Contacts,
        fext: ArrayLike | None = None,
        out: Out = None,
    ) -> ConstrainedDynamicsDerivatives:
        """Derivatives of accelerations and contact forces by q, v, tau; da_dq (..., nv, nv), da_dv (..., nv, nv),
        da_dtau (..., nv, nv), dforces_dq (..., rows, nv), dforces_dv (..., rows, nv), dforces_dtau (..., rows, nv).
        """
        return ConstrainedDynamicsDerivatives._make(
            contact.run(self.evaluator, "constrained_dynamics_derivatives", (q, v, tau), contacts, fext, out)
        )

    def contact_jacobian(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """J of the contacts in the axes of their forces; (..., rows, nv).

        The power of the forces is forces . J v.
        """
        return contact.run(self.evaluator, "contact_jacobian", (q,), contacts, None, out)[0]

    def delassus(self, q: ArrayLike, contacts: Contacts, out: Out = None) -> Array:
        """J M^-1 J^T of the contacts in the axes of their forces; (..., rows, rows).

        How contacts accelerate under each other's forces.
        """
        return contact.run(self.evaluator, "delassus", (q,), contacts, None, out)[0]
