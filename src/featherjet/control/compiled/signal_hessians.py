"""Hessians of signals at all knots, contracted with weights of their tangents, for exact Hessians of costs.

Those of accelerations and forces come with the next state, see `dynamics_hessian`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...algorithms.frames.centroidal_curvature import center_of_mass_curvature, composites, momentum_curvature
from ...algorithms.frames.curvature import (
    LINEAR,
    Curvature,
    MovingFrame,
    placement_curvature,
    transposed,
    viewpoint_turns,
    weights_in_frame,
)
from ..residuals.signals import Signal
from .motion import PhaseMotion

Array = np.ndarray


def of_placement(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    return Curvature(placement_curvature(m.robot.order, m.of_frame("jacobian", signal)[0], w))


def of_velocity(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    local, viewpoint = signal._replace(viewpoint="local"), signal.viewpoint or "local"
    s = m.of_frame("jacobian", local)[0]
    T = m.of_frame("frame_placement", local)[0]
    return MovingFrame(m.robot.order, s, m.v).seen(weights_in_frame(w, T, viewpoint), viewpoint_turns(s, viewpoint))


def of_center_of_mass(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    return Curvature(times_mass(m, w / m.mass))


def of_potential_energy(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    return Curvature(times_mass(m, -w * m.robot.evaluator.model.gravity))


def times_mass(m: PhaseMotion, w: Array) -> Array:
    """The Hessian of w.(mass c), c the centre of mass."""
    return center_of_mass_curvature(m.robot.order, m.of_robot("centroidal_map")[0][..., LINEAR, :], columns(m), w)


def of_kinetic_energy(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    """v^T M v / 2, from second derivatives of v^T M a at a = v: inverse dynamics at rest, less gravity's part."""
    hessian, zero = m.robot.kernel("inverse_dynamics_hessian"), m.robot.zero_acceleration
    qq, _, _, qa = hessian.values(m.q, zero, m.v, m.v)
    gravity = hessian.values(m.q, zero, zero, m.v)[0]
    k = w[..., None]
    qq = 0.5 * (qq - gravity)
    return Curvature(0.5 * k * (qq + transposed(qq)), k * qa, k * m.of_robot("mass_matrix")[0])


def of_momentum(m: PhaseMotion, signal: Signal, w: Array) -> Curvature:
    evaluator = m.robot.evaluator
    c, A = m.of_robot("center_of_mass")[0], m.of_robot("centroidal_map")[0]
    IC = composites(evaluator.tree, evaluator.model.joints, m.of_robot("forward_kinematics")[0], c)
    return momentum_curvature(m.robot.order, c, A, columns(m), IC, m.v, w, m.mass)


def columns(m: PhaseMotion) -> Array:
    """The motion that each dof gives, at the world's origin (..., 6, nv)."""
    return transposed(m.of_robot("joint_columns")[0])


SIGNAL_HESSIANS: dict[str, Callable[[PhaseMotion, Signal, Array], Curvature]] = {
    "placement": of_placement, "velocity": of_velocity, "com": of_center_of_mass, "momentum": of_momentum,
    "kinetic": of_kinetic_energy, "potential": of_potential_energy,
}  # fmt: skip
