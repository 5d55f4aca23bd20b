"""Rotations: six parameterisations, the group's operations, the Jacobian of exp, all rates. Reference: [KINDR].

Quaternions here are Hamilton's and stored [w, x, y, z], the real part FIRST, as in [KINDR]; featherjet's
configurations hold Pinocchio's x y z w (`wxyz_from_xyzw`, `xyzw_from_wxyz`). C_IB maps components in B to
components in I. Leading axes are batch axes and broadcast. Perturbations act from the left.

    conversions   between quaternion, matrix, angle-axis, rotation vector and Euler angles ZYX, XYZ
    group         exp, log, concatenation, rotation of vectors, box plus and minus, slerp, Gamma
    rates         time derivatives to and from angular velocity, in both frames
    points        velocities of points, composition of angular velocities
    quaternion    skew matrices and quaternion algebra

Every formula of the first half of the sheet, and of its Appendix I, was checked against first principles.
These are misprinted, as the tests show; with the correct form:

1. Euler XYZ, first factor of the product: its entry (2, 2) is cos(x), not cos(z). (The product is right.)
2. Eq. 4, second matrix: its entry (3, 3) is cos(y), not cos(z).
3. Eq. 4, result: its last entry is -sin(y), not -sin(z). (Eq. 5 is right.)
4. Derivative of box minus by its second argument: -Gamma^-1(-(Phi1 [-] Phi2)); the leading minus is missing.
5. Gamma^-1(-v) = Gamma^-1(v) + skew(v), not Gamma(v) + skew(v).
6. Gamma(v), second term: (1 - cos|v|) skew(v) / |v|^2; the brackets around 1 - cos|v| are missing.
7. Euler angles: y ranges over the closed [-pi/2, pi/2]; without pi/2 some rotations have no angles at all.
8. Angle-axis from a quaternion: 2 arccos(q0) exceeds the stated range [0, pi] when q0 < 0; negate q first.
9. Rates of angle-axis and rotation vector from omega: excluded are all 2 pi k (for the rotation vector k > 0
   only, as its zero is removable), not 0 alone.
"""

from featherjet.math.rotations.conversions import (
    PARAMETERISATIONS,
    angle_axis_from_quaternion,
    convert,
    elementary_rotation,
    euler_xyz_from_matrix,
    euler_xyz_from_quaternion,
    euler_zyx_from_matrix,
    euler_zyx_from_quaternion,
    matrix_from_euler_xyz,
    matrix_from_euler_zyx,
    matrix_from_quaternion,
    matrix_from_rotation_vector,
    quaternion_from_angle_axis,
    quaternion_from_euler_xyz,
    quaternion_from_euler_zyx,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_matrix,
    rotation_vector_from_quaternion,
)
from featherjet.math.rotations.group import (
    Frame,
    box_minus,
    box_plus,
    concatenate,
    differentiate,
    exp,
    exp_matrix,
    gamma,
    gamma_inverse,
    integrate,
    inverse,
    log,
    rotate,
    rotate_frame,
    slerp,
)
from featherjet.math.rotations.points import compose_angular_velocities, velocity_in_rotating_frame, velocity_on_body
from featherjet.math.rotations.quaternion import (
    quaternion_conjugate,
    quaternion_identity,
    quaternion_inverse,
    quaternion_matrix,
    quaternion_matrix_bar,
    quaternion_normalise,
    quaternion_product,
    skew,
    unskew,
    wxyz_from_xyzw,
    xyzw_from_wxyz,
)
from featherjet.math.rotations.rates import (
    angle_axis_rate,
    euler_xyz_map,
    euler_xyz_map_inverse,
    euler_xyz_rate,
    euler_zyx_map,
    euler_zyx_map_inverse,
    euler_zyx_rate,
    matrix_rate,
    omega_from_angle_axis_rate,
    omega_from_euler_xyz_rate,
    omega_from_euler_zyx_rate,
    omega_from_matrix_rate,
    omega_from_quaternion_rate,
    omega_from_rate,
    omega_from_rotation_vector_rate,
    quaternion_rate,
    quaternion_rate_map,
    rate,
    rotation_vector_rate,
)

__all__ = [
    "PARAMETERISATIONS",
    "Frame",
    "angle_axis_from_quaternion",
    "angle_axis_rate",
    "box_minus",
    "box_plus",
    "compose_angular_velocities",
    "concatenate",
    "convert",
    "differentiate",
    "elementary_rotation",
    "euler_xyz_from_matrix",
    "euler_xyz_from_quaternion",
    "euler_xyz_map",
    "euler_xyz_map_inverse",
    "euler_xyz_rate",
    "euler_zyx_from_matrix",
    "euler_zyx_from_quaternion",
    "euler_zyx_map",
    "euler_zyx_map_inverse",
    "euler_zyx_rate",
    "exp",
    "exp_matrix",
    "gamma",
    "gamma_inverse",
    "integrate",
    "inverse",
    "log",
    "matrix_from_euler_xyz",
    "matrix_from_euler_zyx",
    "matrix_from_quaternion",
    "matrix_from_rotation_vector",
    "matrix_rate",
    "omega_from_angle_axis_rate",
    "omega_from_euler_xyz_rate",
    "omega_from_euler_zyx_rate",
    "omega_from_matrix_rate",
    "omega_from_quaternion_rate",
    "omega_from_rate",
    "omega_from_rotation_vector_rate",
    "quaternion_conjugate",
    "quaternion_from_angle_axis",
    "quaternion_from_euler_xyz",
    "quaternion_from_euler_zyx",
    "quaternion_from_matrix",
    "quaternion_from_rotation_vector",
    "quaternion_identity",
    "quaternion_inverse",
    "quaternion_matrix",
    "quaternion_matrix_bar",
    "quaternion_normalise",
    "quaternion_product",
    "quaternion_rate",
    "quaternion_rate_map",
    "rate",
    "rotate",
    "rotate_frame",
    "rotation_vector_from_matrix",
    "rotation_vector_from_quaternion",
    "rotation_vector_rate",
    "skew",
    "slerp",
    "unskew",
    "velocity_in_rotating_frame",
    "velocity_on_body",
    "wxyz_from_xyzw",
    "xyzw_from_wxyz",
]
