"""Optimal control: problems with costs and constraints over a horizon, and solvers for them."""

from .fddp import Progress
from .horizon import Horizon, Quadratic, Receding, Values
from .mpc import MPC
from .solution import Log, Solution
from .solve import solve

__all__ = ["MPC", "Horizon", "Log", "Progress", "Quadratic", "Receding", "Solution", "Values", "solve"]
