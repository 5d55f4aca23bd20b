"""Layer 2: joints, the frozen Model, its configuration space, loaders and built-in robots."""

from .builder import ModelBuilder
from .model import Body, Frame, Joint, Mimic, Model

__all__ = ["Body", "Frame", "Joint", "Mimic", "Model", "ModelBuilder"]
