"""featherjet: rigid-body dynamics of robots and all their analytical derivatives, in Python.

>>> import featherjet as fj
>>> robot = fj.load("quadruped")
>>> tau = robot.inverse_dynamics(robot.neutral(), v, a)
"""

from importlib import import_module
from typing import Any

from . import interpreter  # noqa: F401  (first: it refuses a Python that the rest cannot run on)

# isort: split
from . import errors, geometry, models, verify
from .algorithms.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from .contact import Contacts, Foot, Ground, HeightField, Plane, PointContact, SurfaceContact
from .errors import FeatherjetError
from .model import Model, ModelBuilder
from .robot.autodiff import autodiff
from .robot.chosen_methods import methods
from .robot.convert import convert
from .robot.loading import load, robots
from .robot.robot import Robot
from .simulation import Servo, TimeStep, Trajectory, World
from .transitions import Clip, Target, Transition, transition
from .view.show import show

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
    "Servo",
    "SurfaceContact",
    "Target",
    "TimeStep",
    "Trajectory",
    "Transition",
    "World",
    "autodiff",
    "convert",
    "errors",
    "geometry",
    "load",
    "methods",
    "models",
    "robots",
    "show",
    "transition",
    "verify",
]

LAZY = ("casadi", "control", "crocoddyl", "jax", "torch")  # imported when first used


def __dir__() -> list[str]:
    return sorted({*__all__, *LAZY, "__doc__", "__file__", "__version__"})


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        from importlib.metadata import version

        return version("featherjet")
    raise AttributeError(f"module 'featherjet' has no attribute {name!r}", name=name, obj=import_module(__name__))
