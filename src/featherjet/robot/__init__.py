"""What users hold: a robot, loaded by name or from a file."""

from .robot import Robot

__all__ = ["Robot"]
