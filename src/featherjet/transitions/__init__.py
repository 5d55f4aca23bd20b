"""Transitions: motions of least torque between states and clips, by spacetime optimisation ([BP])."""

from .clip import Clip, Target
from .plan import transition
from .result import Transition
from .solve import Report

__all__ = ["Clip", "Report", "Target", "Transition", "transition"]
