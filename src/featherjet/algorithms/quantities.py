"""Every quantity a robot has, one record each: what it takes, what it gives, and the algorithms that compute it.

Robot's methods, bound calls, both backends, the verifier, conventions, automatic differentiation, the command line
and the table in docs/quantities.md all read these records. To add a quantity, write its algorithm and its record;
record.py says what is in one; space.py has those of configurations, second_order.py those of products and second
derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..conventions import rules
from ..errors import UnknownName
from . import joint_laws
from .contact_products import RECORDS as CONTACT_PRODUCTS
from .contacts import delassus, grips
from .contacts import derivatives as contact_derivatives
from .contacts import dynamics as contact_dynamics
from .derivatives import direct, fdsva, geometry, idsva, idsva_body, one_factor, regressor, statics
from .derivatives import methods as ways
from .dynamics import aba, balafoutis, coriolis, coupled, crba, minv, projected, rnea
from .frames import centroidal, energies, jacobians, kinematics
from .frames import derivatives as frame_derivatives
from .record import FEXT as FEXT
from .record import (
    FORCES,
    ITSELF,
    LONG_CONTACTS,
    RESTITUTION,
    SIX_V,
    TAU,
    VV,
    A,
    Flops,
    Q,
    Quantity,
    Result,
    V,
    named,
)
from .record import FRAME as FRAME
from .record import SETTINGS as SETTINGS
from .record import Axis as Axis
from .record import Input as Input
from .record import flat as flat
from .record import shape as shape
from .record import sizes as sizes
from .results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives,
)
from .second_order import RECORDS as SECOND_ORDER
from .space import RECORDS as SPACE

BLOCKS = 12_000  # operations; beyond, rolled code of matrices with a block of columns for each body is as fast


def _table(*rows: Quantity) -> dict[str, Quantity]:
    return {row.name: row for row in rows}


inverse_dynamics = Quantity(
    "inverse_dynamics", "tau = M a + C v + g - J^T fext", (Q, V, A), (Result("tau", ("v",)),),
    balafoutis.inverse_dynamics, forces=True, on_numpy=rnea.inverse_dynamics, methods=ways.TABLES[ways.TORQUES],
    cost=Flops(120), rolled=True, laws=joint_laws.added,
)  # fmt: skip
forward_dynamics = Quantity(
    "forward_dynamics", "a = M^-1 (tau - C v - g + J^T fext)", (Q, V, TAU), (Result("a", ("v",), True, True),),
    aba.forward_dynamics, forces=True, margins=("mass",), mimic=coupled.forward_dynamics, cost=Flops(450), rolled=True,
    rule=rules.acceleration, laws=joint_laws.pushed,
)  # fmt: skip
static_torque = Quantity(
    "static_torque", "g - J^T fext: torques that hold the robot still", (Q,), (Result("tau", ("v",)),),
    statics.static_torque, forces=True, cost=Flops(55), rolled=True, laws=joint_laws.added,
)  # fmt: skip
jacobian = Quantity(
    "jacobian", "J of a frame, rows linear then angular", (Q, FRAME), (Result("J", SIX_V),), jacobians.jacobian,
    options=("viewpoint",), cost=Flops(90), rolled=True,
    called="frame_jacobian",
    note="""viewpoint "local": the frame's velocity in its own axes; "world": the spatial velocity at the world's
    origin; "world_aligned": the velocity of the frame's origin in the world's axes.""",
)  # fmt: skip
frame_velocity = Quantity(
    "frame_velocity", "velocity of a frame, linear then angular", (Q, V, FRAME), (Result("velocity", (6,)),),
    jacobians.frame_velocity, options=("viewpoint",), cost=Flops(85), rolled=True,
)  # fmt: skip
frame_acceleration = Quantity(
    "frame_acceleration", "spatial acceleration of a frame without gravity, linear then angular", (Q, V, A, FRAME),
    (Result("acceleration", (6,)),), frame_derivatives.frame_acceleration, options=("viewpoint",),
    cost=Flops(125), rolled=True,
    note="""It is Pinocchio's. For the acceleration of the frame's origin add angular x linear velocity to the linear
    part.""",
)  # fmt: skip
constrained_dynamics = Quantity(
    "constrained_dynamics", "accelerations and contact forces while the contacts hold", (Q, V, TAU),
    (Result("a", ("v",), True, True), Result("forces", ("rows",))), contact_dynamics.constrained_dynamics,
    returns=ConstrainedDynamics._make, forces=True, options=("contacts",),
    margins=("contacts", "mass"), mimic=ITSELF, contact_walk=grips.constrained_dynamics, longest=LONG_CONTACTS,
    rule=rules.acceleration, laws=joint_laws.pushed,
)  # fmt: skip
impulse_dynamics = Quantity(
    "impulse_dynamics", "the jump of velocities at an impact, and impulses", (Q, V, RESTITUTION),
    (Result("jump", ("v",), True), Result("impulses", ("rows",))), contact_dynamics.impulse_dynamics,
    options=("contacts",), margins=("contacts", "mass"), mimic=ITSELF, contact_walk=grips.impulse_dynamics,
    longest=LONG_CONTACTS,
)  # fmt: skip
kinetic_energy = Quantity(
    "kinetic_energy", "v^T M v / 2 [J]", (Q, V), (Result("energy", ()),), kinematics.kinetic_energy,
    cost=Flops(150), rolled=True,
)  # fmt: skip

QUANTITIES: Mapping[str, Quantity] = _table(
    # Dynamics
    inverse_dynamics,
    forward_dynamics,
    Quantity(
        "mass_matrix", "M, symmetric, armature included", (Q,), (Result("M", VV),), crba.mass_matrix,
        cost=Flops(100, 10), rolled=True,
    ),
    Quantity(
        "inverse_mass_matrix", "M^-1", (Q,), (Result("Minv", VV, True),), minv.inverse_mass_matrix, margins=("mass",),
        mimic=coupled.inverse_mass_matrix, methods=ways.TABLES[ways.INVERSE], cost=Flops(250, 0, 20), rolled=True,
    ),
    Quantity(
        "gravity", "g: torques that hold the robot still", (Q,), (Result("g", ("v",)),), balafoutis.gravity,
        on_numpy=rnea.gravity, cost=Flops(55), rolled=True, laws=joint_laws.added,
    ),
    Quantity(
        "bias", "C v + g", (Q, V), (Result("b", ("v",)),), balafoutis.bias, on_numpy=rnea.bias, cost=Flops(110),
        rolled=True, rule=rules.bias, laws=joint_laws.added,
    ),
    Quantity(
        "coriolis_matrix", "C, such that Mdot - 2C is skew-symmetric", (Q, V), (Result("C", VV),),
        coriolis.coriolis_matrix, cost=Flops(220, 25), rolled=True, rule=rules.coriolis_matrix,
    ),
    Quantity(
        "projected_newton_euler", "M, g, f of M a + g = f + tau from the Jacobians of each body", (Q, V),
        named(projected.ProjectedNewtonEuler, VV, ("v",), ("v",)), projected.projected_newton_euler,
        returns=projected.ProjectedNewtonEuler._make, forces=True, rule=rules.projected_newton_euler,
        laws=joint_laws.taken,
        note="Slow and simple, for comparison.",
    ),
    static_torque,
    # Their derivatives
    Quantity(
        "inverse_dynamics_derivatives", "dtau_dq, dtau_dv, dtau_da", (Q, V, A),
        named(InverseDynamicsDerivatives, VV), idsva.inverse_dynamics_derivatives,
        returns=InverseDynamicsDerivatives._make, forces=True,
        for_small=(idsva.inverse_dynamics_derivatives, idsva_body.inverse_dynamics_derivatives),
        methods=ways.TABLES[ways.ID], cost=Flops(350, 50), rolled=True, base=inverse_dynamics, by=("q", "v", "a"),
        rule=rules.derivatives, laws=joint_laws.inverse_derivatives,
    ),
    Quantity(
        "forward_dynamics_derivatives", "da_dq, da_dv, da_dtau", (Q, V, TAU),
        named(ForwardDynamicsDerivatives, VV), direct.forward_dynamics_derivatives,
        returns=ForwardDynamicsDerivatives._make, forces=True, margins=("mass",), on_numpy=fdsva.auto,
        mimic=fdsva.reduced, for_small=(one_factor.forward_dynamics_derivatives,),
        methods=ways.TABLES[ways.FD], cost=Flops(500, 0, 65), rolled=True, base=forward_dynamics, by=("q", "v", "tau"),
        rule=rules.derivatives, laws=joint_laws.forward_derivatives,
    ),
    Quantity(
        "static_torque_derivatives", "d(g - J^T fext)/dq, fext fixed in the joints' frames", (Q,),
        (Result("dtau_dq", VV),), statics.static_torque_derivatives, forces=True, cost=Flops(80, 8), rolled=True,
        base=static_torque, by=("q",),
        rule=rules.derivatives, laws=joint_laws.inverse_derivatives,
    ),
    Quantity(
        "inverse_dynamics_force_derivatives", "dtau_dfext = -J^T", (Q,), (Result("dtau_dfext", ("v", "joints", 6)),),
        regressor.force_derivatives, cost=Flops(100, 16), unrolls=BLOCKS, rolled=True,
    ),
    Quantity(
        "forward_dynamics_force_derivatives", "da_dfext = M^-1 J^T", (Q,),
        (Result("da_dfext", ("v", "joints", 6), True),), regressor.forward_force_derivatives, margins=("mass",),
        mimic=ITSELF, solves="inverse_dynamics_force_derivatives",
    ),
    Quantity(
        "torque_regressor", "Y = dtau/dparameters", (Q, V, A), (Result("Y", ("v", "parameters")),),
        regressor.torque_regressor, cost=Flops(250, 50), unrolls=BLOCKS, rolled=True,
        note="tau = Y inertial_parameters() + armature * a.",
    ),
    Quantity(
        "forward_dynamics_parameter_derivatives", "da/dparameters = -M^-1 Y", (Q, V, TAU),
        (Result("da_dparameters", ("v", "parameters"), True),), regressor.forward_parameter_derivatives, forces=True,
        margins=("mass",), mimic=ITSELF, solves="torque_regressor", laws=joint_laws.pushed,
    ),
    Quantity(
        "inverse_dynamics_placement_derivatives", "dtau by the joints' placements P exp(delta)",
        (Q, V, A), (Result("dtau_dplacements", ("v", "joints", 6)),), geometry.placement_derivatives, forces=True,
        note="""delta = (linear [m], angular [rad]) in the joint's frame at zero displacement; the body moves with its
        joint.""",
    ),
    Quantity(
        "forward_dynamics_placement_derivatives", "da by the joints' placements", (Q, V, TAU),
        (Result("da_dplacements", ("v", "joints", 6), True),), geometry.forward_placement_derivatives, forces=True,
        margins=("mass",), mimic=ITSELF, solves="inverse_dynamics_placement_derivatives", laws=joint_laws.pushed,
        note="See `inverse_dynamics_placement_derivatives`.",
    ),
    *SECOND_ORDER,
    # Kinematics, energy, momentum
    Quantity(
        "forward_kinematics", "placement of every joint's frame in the world", (Q,),
        (Result("placements", ("joints", 4, 4)),), kinematics.forward_kinematics, cost=Flops(40), rolled=True,
    ),
    Quantity(
        "joint_columns", "motion that each dof of the tree gives, at the world's origin, linear then angular", (Q,),
        (Result("columns", ("dofs", 6)),), kinematics.joint_columns, cost=Flops(40), rolled=True,
        inside=True,
    ),
    Quantity(
        "frame_placement", "placement of a frame in the world", (Q, FRAME), (Result("placement", (4, 4)),),
        jacobians.frame_placement, cost=Flops(60), rolled=True,
    ),
    jacobian,
    Quantity(
        "jacobian_derivative", "dJ/dt of a frame", (Q, V, FRAME), (Result("dJ_dt", SIX_V),),
        jacobians.jacobian_derivative, options=("viewpoint",), cost=Flops(190), rolled=True,
        rule=rules.jacobian_derivative,
    ),
    Quantity(
        "jacobian_drift", "dJ/dt v of a frame", (Q, V, FRAME), (Result("drift", (6,)),), jacobians.jacobian_drift,
        options=("viewpoint",), cost=Flops(140), rolled=True, rule=rules.jacobian_drift,
    ),
    Quantity(
        "jacobian_hessian", "dJ/dq of a frame; [.., i, k]: change of column i along dof k", (Q, FRAME),
        (Result("dJ_dq", (6, "v", "v")),), jacobians.jacobian_hessian, options=("viewpoint",), base=jacobian, by=("q",),
        rule=rules.derivatives,
    ),
    frame_velocity,
    Quantity(
        "frame_velocity_derivatives", "dv_dq, dv_dv of a frame's velocity", (Q, V, FRAME),
        named(frame_derivatives.FrameVelocityDerivatives, SIX_V), frame_derivatives.frame_velocity_derivatives,
        returns=frame_derivatives.FrameVelocityDerivatives._make, options=("viewpoint",), cost=Flops(240),
        rolled=True, base=frame_velocity,
        by=("q", "v"), rule=rules.derivatives,
    ),
    frame_acceleration,
    Quantity(
        "frame_acceleration_derivatives", "da_dq, da_dv, da_da of a frame's acceleration", (Q, V, A, FRAME),
        named(frame_derivatives.FrameAccelerationDerivatives, SIX_V), frame_derivatives.frame_acceleration_derivatives,
        returns=frame_derivatives.FrameAccelerationDerivatives._make, options=("viewpoint",), cost=Flops(440),
        rolled=True, base=frame_acceleration,
        by=("q", "v", "a"), rule=rules.derivatives,
    ),
    kinetic_energy,
    Quantity(
        "kinetic_energy_derivatives", "the gradient of kinetic energy: by q, and M v", (Q, V),
        (Result("dkinetic_dq", ("v",)), Result("dkinetic_dv", ("v",))), energies.kinetic_energy_derivatives,
        cost=Flops(200), rolled=True, base=kinetic_energy, by=("q", "v"), rule=rules.derivatives,
        inside=True,
    ),
    Quantity(
        "potential_energy", "energy of gravity [J]; zero for masses at the world's origin", (Q,),
        (Result("energy", ()),), kinematics.potential_energy, cost=Flops(20), rolled=True,
    ),
    Quantity(
        "center_of_mass", "centre of mass in the world [m]", (Q,), (Result("center", (3,)),), kinematics.center_of_mass,
        needs_mass=True, cost=Flops(55), rolled=True,
    ),
    Quantity(
        "centroidal_map", "A with A v the momentum about the centre of mass, in world axes", (Q,),
        (Result("A", SIX_V),), kinematics.centroidal_map, needs_mass=True, cost=Flops(150), rolled=True,
    ),
    Quantity(
        "centroidal_momentum", "momentum about the centre of mass, linear then angular, in world axes", (Q, V),
        (Result("h", (6,)),), kinematics.centroidal_momentum, needs_mass=True, cost=Flops(150), rolled=True,
    ),
    Quantity(
        "centroidal_derivatives", "dh_dq, dhdot_dq, dhdot_dv, dhdot_da of the centroidal momentum h", (Q, V, A),
        named(centroidal.CentroidalDerivatives, SIX_V), centroidal.centroidal_derivatives,
        returns=centroidal.CentroidalDerivatives._make, needs_mass=True, cost=Flops(700), rolled=True,
        rule=rules.centroidal_derivatives,
    ),
    # Configurations
    *SPACE,
    # Contacts
    constrained_dynamics,
    Quantity(
        "constrained_dynamics_derivatives", "derivatives of accelerations and contact forces by q, v, tau", (Q, V, TAU),
        named(ConstrainedDynamicsDerivatives, VV, VV, VV, *[("rows", "v")] * 3),
        contact_derivatives.constrained_dynamics_derivatives,
        returns=ConstrainedDynamicsDerivatives._make, forces=True, options=("contacts",),
        margins=("contacts", "mass"), mimic=ITSELF, contact_walk=grips.constrained_slopes, longest=LONG_CONTACTS,
        base=constrained_dynamics,
        by=("q", "v", "tau"), rule=rules.derivatives, laws=joint_laws.forward_derivatives,
    ),
    Quantity(
        "contact_inverse_dynamics", "tau = M a + C v + g - J^T forces - J^T fext", (Q, V, A, FORCES),
        (Result("tau", ("v",)),), contact_dynamics.contact_inverse_dynamics, forces=True, options=("contacts",),
        mimic=ITSELF, contact_walk=grips.contact_inverse_dynamics, longest=LONG_CONTACTS, laws=joint_laws.added,
    ),
    Quantity(
        "contact_jacobian", "J of the contacts in the axes of their forces", (Q,), (Result("J", ("rows", "v")),),
        contact_dynamics.contact_jacobian, options=("contacts",), mimic=ITSELF, contact_walk=grips.contact_jacobian,
        longest=LONG_CONTACTS,
        note="The power of the forces is forces . J v.",
    ),
    Quantity(
        "delassus", "J M^-1 J^T of the contacts in the axes of their forces", (Q,),
        (Result("G", ("rows", "rows")),), delassus.delassus, options=("contacts",), margins=("mass",), mimic=ITSELF,
        contact_walk=delassus.by_walks, longest=LONG_CONTACTS,
        note="How contacts accelerate under each other's forces.",
    ),
    impulse_dynamics,
    Quantity(
        "impulse_dynamics_derivatives", "of the jump and of impulses by q and v", (Q, V, RESTITUTION),
        (
            Result("djump_dq", VV), Result("djump_dv", VV), Result("dimpulses_dq", ("rows", "v")),
            Result("dimpulses_dv", ("rows", "v")),
        ),
        contact_derivatives.impulse_dynamics_derivatives, options=("contacts",), margins=("contacts", "mass"),
        mimic=ITSELF, contact_walk=grips.impulse_slopes_of, longest=LONG_CONTACTS, base=impulse_dynamics,
        by=("q", "v"), rule=rules.derivatives,
    ),
    *CONTACT_PRODUCTS,
)  # fmt: skip


def quantity(name: str | Quantity) -> Quantity:
    """The record of that name."""
    if isinstance(name, Quantity):
        return name
    if not isinstance(name, str) or name not in QUANTITIES:
        raise UnknownName("quantity", name, QUANTITIES)
    return QUANTITIES[name]
