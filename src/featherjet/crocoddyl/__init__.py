"""Problems in Crocoddyl: `fj.crocoddyl.problem(problem)` is a `crocoddyl.ShootingProblem` that featherjet evaluates.

>>> solver = crocoddyl.SolverFDDP(fj.crocoddyl.problem(problem))
>>> solver.solve(*(list(x) for x in problem.guess()))
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from ..errors import MissingExtra
from .versions import clash

if clash():  # before the import, which may crash
    raise MissingExtra("fj.crocoddyl", clash(), "crocoddyl")
try:
    import crocoddyl as _crocoddyl  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtra("fj.crocoddyl", "Crocoddyl", "crocoddyl") from error

from .shooting import problem

__all__ = ["problem"]
