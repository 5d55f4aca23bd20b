"""Contacts: bilateral ones and impulses, with exact derivatives; and the ground, with friction."""

from .bilateral import Contacts, PointContact, SurfaceContact
from .ground import Foot, Ground
from .terrain import HeightField, Plane

__all__ = ["Contacts", "Foot", "Ground", "HeightField", "Plane", "PointContact", "SurfaceContact"]
