"""Optimal control: problems with costs and constraints over a horizon, and solvers for them."""

from .horizon import Horizon, Quadratic, Receding, Values

__all__ = ["Horizon", "Quadratic", "Receding", "Values"]
