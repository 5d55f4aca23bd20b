"""Rotations and rigid motions for users: `fj.geometry.rotations` (SO(3)) and `fj.geometry.se3`; docs/rotations.md.

>>> T = fj.geometry.se3.exp([0.1, 0, 0, 0, 0, 1.2])        # linear [m], angular [rad]
>>> fj.geometry.rotations.euler_zyx_from_matrix(T[:3, :3])
"""

from .math import rotations, se3

__all__ = ["rotations", "se3"]
