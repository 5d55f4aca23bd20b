"""Layer 2: joints, the frozen Model, its configuration space, loaders and built-in robots."""

from .builder import ModelBuilder
from .model import Model
from .parts import Body, Frame, Joint, Mimic

__all__ = ["Body", "Frame", "Joint", "Mimic", "Model", "ModelBuilder"]
