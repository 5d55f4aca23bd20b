"""featherjet: the dynamics of robots and all their analytical derivatives, from Python.

>>> import featherjet as fj
>>> robot = fj.load("quadruped")
>>> tau = robot.inverse_dynamics(robot.neutral(), v, a)
"""

from importlib.metadata import version as _version

from . import errors, models, verify
from .algorithms.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from .convention import convert
from .errors import FeatherjetError
from .loading import load, robots
from .model import Model, ModelBuilder
from .robot import Robot

__version__ = _version("featherjet")
__all__ = [
    "FeatherjetError",
    "ForwardDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "Model",
    "ModelBuilder",
    "Robot",
    "convert",
    "errors",
    "load",
    "models",
    "robots",
    "verify",
]
