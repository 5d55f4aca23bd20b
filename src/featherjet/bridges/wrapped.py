"""A robot's quantities as functions of a framework's arrays, whatever the framework."""

from __future__ import annotations

from typing import Any

from ..algorithms.results import (
    ConstrainedDynamics,
    ForwardDynamicsDerivatives,
    ImpulseDynamics,
    InverseDynamicsDerivatives,
)
from ..contact import Contacts, Ground
from ..evaluate.evaluator import HasEvaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..robot.robot import robot_of
from ..simulation.timestep import StepResult, TimeStep
from .robots import RobotFunction, RobotFunctions, Selection

NONE = Selection()


class WrappedRobot:
    """The quantities of a robot that bridges differentiate; a bridge says what `call` does with its arrays.

    q (..., nq), v, a, tau (..., nv), fext (..., njoints, 6): as for `Robot`; leading axes broadcast.
    """

    def __init__(self, robot: HasEvaluator, bridge: str) -> None:
        self._functions = RobotFunctions(robot, bridge)
        self._known: dict[str, RobotFunction] = {}  # those that need no selection
        self._steps: dict[tuple, Selection] = {}  # time steps, by ground, dt and whether the joints' laws act

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._functions.evaluator.model.name}: nq {self.nq}, nv {self.nv}>"

    def function(self, name: str, selection: Selection = NONE) -> RobotFunction:
        """A function of the table (bridges/table.py); the same object each time."""
        if selection is NONE:
            return self._known.get(name) or self._known.setdefault(name, self._functions.function(name))
        return self._functions.function(name, selection)

    def call(self, name: str, *given: Any, selection: Selection = NONE) -> Any:
        """The results of a function."""
        raise NotImplementedError

    @property
    def nq(self) -> int:
        """The number of entries of q."""
        return self._functions.ambient.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self._functions.ambient.nv

    # Configurations

    def integrate(self, q: Any, dv: Any) -> Any:
        """q moved along the tangent vector dv (..., nv): (..., nq)."""
        return self.call("integrate", q, dv)[0]

    def difference(self, q0: Any, q1: Any) -> Any:
        """The tangent vector (..., nv) that leads from q0 to q1."""
        return self.call("difference", q0, q1)[0]

    # Dynamics

    def inverse_dynamics(self, q: Any, v: Any, a: Any, fext: Any = None) -> Any:
        """tau (..., nv); fext (..., njoints, 6): force then moment on each joint's body, in that joint's frame."""
        if fext is None:
            return self.call("inverse_dynamics", q, v, a)[0]
        return self.call("inverse_dynamics_force", q, v, a, fext)[0]

    def forward_dynamics(self, q: Any, v: Any, tau: Any, fext: Any = None) -> Any:
        """a (..., nv); fext as for inverse_dynamics."""
        if fext is None:
            return self.call("forward_dynamics", q, v, tau)[0]
        return self.call("forward_dynamics_force", q, v, tau, fext)[0]

    def inverse_dynamics_derivatives(self, q: Any, v: Any, a: Any) -> InverseDynamicsDerivatives:
        """dtau_dq, dtau_dv, dtau_da (..., nv, nv), columns in the tangent space of q."""
        return InverseDynamicsDerivatives._make(self.call("inverse_dynamics_derivatives", q, v, a))

    def forward_dynamics_derivatives(self, q: Any, v: Any, tau: Any) -> ForwardDynamicsDerivatives:
        """da_dq, da_dv, da_dtau (..., nv, nv), columns in the tangent space of q."""
        return ForwardDynamicsDerivatives._make(self.call("forward_dynamics_derivatives", q, v, tau))

    def mass_matrix(self, q: Any) -> Any:
        """M (..., nv, nv)."""
        return self.call("mass_matrix", q)[0]

    def gravity(self, q: Any) -> Any:
        """g (..., nv): torques that hold the robot still."""
        return self.call("gravity", q)[0]

    def bias(self, q: Any, v: Any) -> Any:
        """C v + g (..., nv)."""
        return self.call("bias", q, v)[0]

    def torque_regressor(self, q: Any, v: Any, a: Any) -> Any:
        """Y (..., nv, 10 njoints) with tau = Y parameters."""
        return self.call("torque_regressor", q, v, a)[0]

    # Frames, centre of mass, energies

    def frame_placement(self, q: Any, frame: FrameName) -> Any:
        """Placement (..., 4, 4) of a frame in the world."""
        return self.call("frame_placement", q, selection=Selection(frame))[0]

    def frame_jacobian(self, q: Any, frame: FrameName, *, viewpoint: Viewpoint = "local") -> Any:
        """J (..., 6, nv) of a frame, rows linear then angular."""
        return self.call("jacobian", q, selection=Selection(frame, viewpoint))[0]

    def frame_velocity(self, q: Any, v: Any, frame: FrameName, *, viewpoint: Viewpoint = "local") -> Any:
        """The velocity (..., 6) of a frame, linear then angular."""
        return self.call("frame_velocity", q, v, selection=Selection(frame, viewpoint))[0]

    def center_of_mass(self, q: Any) -> Any:
        """In the world (..., 3) [m]."""
        return self.call("center_of_mass", q)[0]

    def centroidal_map(self, q: Any) -> Any:
        """A (..., 6, nv) with A v the momentum about the centre of mass, in world axes."""
        return self.call("centroidal_map", q)[0]

    def centroidal_momentum(self, q: Any, v: Any) -> Any:
        """The momentum (..., 6) about the centre of mass, linear then angular, in world axes."""
        return self.call("centroidal_momentum", q, v)[0]

    def kinetic_energy(self, q: Any, v: Any) -> Any:
        """v^T M v / 2 (...) [J]."""
        return self.call("kinetic_energy", q, v)[0]

    def potential_energy(self, q: Any) -> Any:
        """Of gravity (...) [J]."""
        return self.call("potential_energy", q)[0]

    # Contacts

    def constrained_dynamics(self, q: Any, v: Any, tau: Any, contacts: Contacts) -> ConstrainedDynamics:
        """Accelerations (..., nv) and contact forces (..., rows) while the contacts hold."""
        return ConstrainedDynamics._make(
            self.call("constrained_dynamics", q, v, tau, selection=Selection(contacts=contacts))
        )

    def impulse_dynamics(self, q: Any, v: Any, contacts: Contacts, restitution: float = 0.0) -> ImpulseDynamics:
        """Velocities (..., nv) after an impact and impulses (..., rows)."""
        selection = Selection(contacts=contacts, restitution=float(restitution))
        return ImpulseDynamics._make(self.call("impulse_dynamics", q, v, selection=selection))

    def step(
        self, q: Any, v: Any, tau: Any, contacts: Ground | None = None, *, dt: float = 1e-3, passive: bool = True
    ) -> StepResult:
        """The state after a time step, and contact forces (..., 3 feet); see `featherjet.TimeStep`.

        Derivatives are exact while contacts keep their modes. NumPy computes the step, on the host.
        """
        key = id(contacts), dt, passive
        found = self._steps.get(key)
        if found is None:
            robot = robot_of(self._functions.evaluator)
            found = self._steps.setdefault(key, Selection(step=TimeStep(robot, contacts, dt=dt, passive=passive)))
        return StepResult._make(self.call("step", q, v, tau, selection=found))
