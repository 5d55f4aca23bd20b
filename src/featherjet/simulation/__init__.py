"""Simulation: smooth integrators on the manifold of q, time stepping with contacts, trajectories."""

from .servos import Servo
from .simulating import simulate
from .timestep import StepDerivatives, StepGradients, StepResult, TimeStep
from .trajectory import Trajectory
from .world import World

__all__ = ["Servo", "StepDerivatives", "StepGradients", "StepResult", "TimeStep", "Trajectory", "World", "simulate"]
