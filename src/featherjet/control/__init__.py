"""Optimal control: problems with costs and constraints over a horizon, and solvers for them."""

from .activations import Barrier, SmoothAbs, Square
from .fddp import Progress
from .horizon import Horizon, Quadratic, Receding, Values
from .mpc import MPC
from .phases import Impact, Phase
from .problem import Problem
from .residuals import (
    Acceleration,
    CenterOfMass,
    CenterOfPressure,
    Control,
    Custom,
    Energy,
    Force,
    FrictionCone,
    Momentum,
    Placement,
    Residual,
    Rotation,
    State,
    Translation,
    Velocity,
    WrenchCone,
)
from .solution import Log, Solution
from .solve import solve
from .terms import Constraint, Cost

__all__ = [
    "MPC",
    "Acceleration",
    "Barrier",
    "CenterOfMass",
    "CenterOfPressure",
    "Constraint",
    "Control",
    "Cost",
    "Custom",
    "Energy",
    "Force",
    "FrictionCone",
    "Horizon",
    "Impact",
    "Log",
    "Momentum",
    "Phase",
    "Placement",
    "Problem",
    "Progress",
    "Quadratic",
    "Receding",
    "Residual",
    "Rotation",
    "SmoothAbs",
    "Solution",
    "Square",
    "State",
    "Translation",
    "Values",
    "Velocity",
    "WrenchCone",
    "solve",
]
