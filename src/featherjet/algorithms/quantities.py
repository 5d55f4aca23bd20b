"""What can be computed: each quantity's inputs, which are not compiled, and what bound calls name the results."""

from __future__ import annotations

from .derivatives.results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives

INPUTS = {
    "inverse_dynamics": ("q", "v", "a"),
    "inverse_dynamics_derivatives": ("q", "v", "a"),
    "forward_dynamics": ("q", "v", "tau"),
    "forward_dynamics_derivatives": ("q", "v", "tau"),
    **dict.fromkeys(("bias", "coriolis_matrix", "kinetic_energy", "centroidal_momentum"), ("q", "v")),
    **dict.fromkeys(("mass_matrix", "inverse_mass_matrix", "gravity", "forward_kinematics", "joint_columns"), ("q",)),
    **dict.fromkeys(("jacobian_derivative", "jacobian_drift", "projected_newton_euler"), ("q", "v")),
    **dict.fromkeys(("jacobian", "jacobian_hessian"), ("q",)),
    **dict.fromkeys(("frame_acceleration", "frame_acceleration_derivatives"), ("q", "v", "a")),
    **dict.fromkeys(("torque_regressor", "centroidal_derivatives"), ("q", "v", "a")),
    **dict.fromkeys(("frame_velocity_derivatives",), ("q", "v")),
    **dict.fromkeys(("static_torque", "static_torque_derivatives", "inverse_dynamics_force_derivatives"), ("q",)),
    "forward_dynamics_force_derivatives": ("q",),
    "forward_dynamics_parameter_derivatives": ("q", "v", "tau"),
    **dict.fromkeys(("potential_energy", "center_of_mass", "centroidal_map"), ("q",)),
}
UNCOMPILED = {  # on the reference, whatever the backend
    "projected_newton_euler", "torque_regressor", "centroidal_derivatives", "static_torque",
    "static_torque_derivatives", "inverse_dynamics_force_derivatives", "forward_dynamics_force_derivatives",
    "forward_dynamics_parameter_derivatives",
}  # fmt: skip
# Their last result are the margins of the mass matrix, which tell whether it is singular.
DIVIDING = {
    "forward_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives", "forward_dynamics_force_derivatives",
    "forward_dynamics_parameter_derivatives",
}  # fmt: skip
RESULTS: dict[str, tuple[str, ...]] = {
    "inverse_dynamics": ("tau",),
    "forward_dynamics": ("a",),
    "mass_matrix": ("M",),
    "inverse_mass_matrix": ("Minv",),
    "gravity": ("g",),
    "bias": ("b",),
    "coriolis_matrix": ("C",),
    "inverse_dynamics_derivatives": InverseDynamicsDerivatives._fields,
    "forward_dynamics_derivatives": ForwardDynamicsDerivatives._fields,
}
