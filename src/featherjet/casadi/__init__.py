"""Robots in CasADi: quantities as CasADi functions with exact first and second derivatives and their sparsity.

>>> f = fj.casadi.function(robot, "forward_dynamics", horizon=40)
>>> a = f(q, v, tau)                                          # matrices with a column for each of 40 states
>>> path = fj.casadi.library(robot, "forward_dynamics", out="code", horizon=40)     # for casadi.external and acados
"""

from ..errors import MissingExtra

try:
    import casadi  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtra("featherjet.casadi", "casadi", "casadi") from error

from .functions import function
from .horizons import horizon
from .shared import library
from .stage_functions import StageFunction, stages

__all__ = ["StageFunction", "function", "horizon", "library", "stages"]
