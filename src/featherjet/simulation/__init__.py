"""Simulation: smooth integrators on the manifold of q, time stepping with contacts, trajectories."""

from .simulate import simulate
from .trajectory import Trajectory

__all__ = ["Trajectory", "simulate"]
