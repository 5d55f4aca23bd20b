"""Bilateral contacts and impulses, with exact derivatives; and unilateral contact with the ground, with friction."""

from .bilateral import Contacts, PointContact, SurfaceContact
from .ground import Foot, Ground
from .terrain import HeightField, Plane

__all__ = ["Contacts", "Foot", "Ground", "HeightField", "Plane", "PointContact", "SurfaceContact"]
