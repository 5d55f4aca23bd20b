"""Optimal control: problems with costs and constraints over a horizon, and solvers for them."""

from .horizon import Horizon, Quadratic, Receding, Values
from .problem.phases import Impact, Phase
from .problem.problem import Problem
from .residuals.activations import Barrier, SmoothAbs, Square
from .residuals.cost import Constraint, Cost
from .residuals.residuals import (
    Acceleration,
    CenterOfMass,
    CenterOfPressure,
    Control,
    Custom,
    Energy,
    FrictionCone,
    JointLimits,
    Momentum,
    Placement,
    Residual,
    Rotation,
    State,
    Translation,
    Velocity,
    WrenchCone,
)
from .residuals.residuals import ContactForce as Force
from .solvers.fddp import Progress
from .solvers.mpc import MPC
from .solvers.solution import Log, Solution
from .solvers.solving import solve

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
    "JointLimits",
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
