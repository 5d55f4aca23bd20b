"""The public face: a robot, loaded by name or from a file."""

from .robot import Robot

__all__ = ["Robot"]
