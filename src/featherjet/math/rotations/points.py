"""Velocities of points and composition of angular velocities. Reference: [KINDR], "Linear Velocity".

Every vector (..., 3) of one call has its components in the same frame; leading axes broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherjet.errors import InputError
from featherjet.math.rotations.inputs import Array, checked


def velocity_in_rotating_frame(v_A: ArrayLike, dr_AP: ArrayLike, omega_IB: ArrayLike, r_AP: ArrayLike) -> Array:
    """v_P = v_A + dr_AP + omega_IB x r_AP, all in B: the absolute velocity (m/s) of a point P.

    A is any moving point, r_AP (m) goes from A to P, dr_AP (m/s) is the rate of its components in B, and
    omega_IB (rad/s) the velocity of B.
    """
    name = "velocity_in_rotating_frame"
    v_A, dr_AP = checked(name, "v_A", v_A, 3), checked(name, "dr_AP", dr_AP, 3)
    return v_A + dr_AP + np.cross(checked(name, "omega_IB", omega_IB, 3), checked(name, "r_AP", r_AP, 3))


def velocity_on_body(v_P: ArrayLike, omega: ArrayLike, r_PQ: ArrayLike) -> Array:
    """v_Q = v_P + omega x r_PQ (m/s) of two points P and Q of one rigid body, omega (rad/s) its velocity."""
    v_P = checked("velocity_on_body", "v_P", v_P, 3)
    omega, r_PQ = checked("velocity_on_body", "omega", omega, 3), checked("velocity_on_body", "r_PQ", r_PQ, 3)
    return v_P + np.cross(omega, r_PQ)


def compose_angular_velocities(*omegas: ArrayLike) -> Array:
    """omega_AD = omega_AB + omega_BC + omega_CD (rad/s), for a chain of any length; -> (..., 3)."""
    if not omegas:
        raise InputError("compose_angular_velocities: give at least one angular velocity (..., 3)")
    total = checked("compose_angular_velocities", "omega", omegas[0], 3)
    for omega in omegas[1:]:
        total = total + checked("compose_angular_velocities", "omega", omega, 3)
    return total
