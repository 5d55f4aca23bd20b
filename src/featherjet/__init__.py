"""featherjet: rigid-body dynamics of robots and all their analytical derivatives, in Python.

>>> import featherjet as fj
>>> robot = fj.load("quadruped")
>>> tau = robot.inverse_dynamics(robot.neutral(), v, a)
"""

from . import errors, models, verify
from .algorithms.derivatives.methods import methods
from .algorithms.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from .contact import Contacts, Foot, Ground, HeightField, Plane, PointContact, SurfaceContact
from .errors import FeatherjetError
from .model import Model, ModelBuilder
from .robot.autodiff import autodiff
from .robot.convert import convert
from .robot.loading import load, robots
from .robot.robot import Robot
from .simulation import Trajectory
from .transition import Clip, Target, Transition, transition

__all__ = [
    "Clip",
    "Contacts",
    "FeatherjetError",
    "Foot",
    "ForwardDynamicsDerivatives",
    "Ground",
    "HeightField",
    "InverseDynamicsDerivatives",
    "Model",
    "ModelBuilder",
    "Plane",
    "PointContact",
    "Robot",
    "SurfaceContact",
    "Target",
    "Trajectory",
    "Transition",
    "autodiff",
    "convert",
    "errors",
    "load",
    "methods",
    "models",
    "robots",
    "transition",
    "verify",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("featherjet")
    raise AttributeError(f"module 'featherjet' has no attribute {name!r}")
