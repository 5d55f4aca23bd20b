"""Every quantity a robot has, one record each: what it takes, what it gives, and the algorithms that compute it.

Robot's methods, bound calls, both backends, the verifier, conventions, automatic differentiation, the command line
and the table in docs/quantities.md all read these records. To add a quantity, write its algorithm and its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..conventions import rules
from ..conventions.rules import Rule
from ..errors import UnknownName
from ..model.tree import Tree
from .contacts import derivatives as contact_derivatives
from .contacts import dynamics as contact_dynamics
from .derivatives import direct, fdsva, idsva, regressor, slopes, statics
from .derivatives import methods as ways
from .derivatives.methods import Method
from .dynamics import aba, coriolis, coupled, crba, factored, minv, projected, rnea
from .frames import centroidal, jacobians, kinematics
from .frames import derivatives as frame_derivatives
from .results import (
    ConstrainedDynamics,
    ConstrainedDynamicsDerivatives,
    ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives,
)
from .scan import Array, Scan

Axis = str | int  # a name in `sizes`, or a length
Shape = tuple[int, ...]


class Input(NamedTuple):
    """Something a quantity takes; `expands` says whether mimicking joints add to it, as coordinates or as rates."""

    name: str
    axes: tuple[Axis, ...]
    expands: str = ""


class Result(NamedTuple):
    """Something a quantity gives."""

    name: str
    axes: tuple[Axis, ...]
    acceleration: bool = False  # of degrees of freedom: conventions whose axes turn see another one


class Cost(NamedTuple):
    """Roughly how many operations a quantity takes: for each dof, each pair of dofs on a path, each pair of dofs."""

    dofs: float
    paths: float = 0
    pairs: float = 0

    def of(self, tree: Tree) -> float:
        paths = sum((n.v.stop - n.v.start) * (tree.subtree(n).stop - n.v.start) for n in tree.nodes)
        return self.dofs * tree.nv + self.paths * paths + self.pairs * tree.nv**2


REDUCE, ITSELF = "reduce", "itself"


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity.

    algorithm(scan, *inputs, fext=None, **options) gives the results and then the margins, if there are any.
    mimic: what happens where joints mimic. REDUCE: the algorithm treats them as independent, and its results shrink to
    the independent joints along every axis "v"; ITSELF: the algorithm knows; or a function (scan, G, *inputs, fext) to
    run in its place, v_tree = G v.
    """

    name: str
    summary: str
    inputs: tuple[Input, ...]
    results: tuple[Result, ...]
    algorithm: Callable[..., Any]
    returns: Callable[[Sequence[Array]], Any] | None = None  # makes the named tuple that users get of several results
    forces: bool = False  # whether external forces may be given
    options: tuple[str, ...] = ()  # what else it takes by keyword: a frame's `view`, `contacts`, ...
    margins: tuple[str, ...] = ()  # after the results: how far "contacts" or "mass" matrix are from singular
    needs_mass: bool = False
    mimic: str | Callable[..., Any] = REDUCE
    on_numpy: Callable[..., Any] | None = None  # an algorithm that suits arrays better
    alternatives: tuple[Callable[..., Any], ...] = ()  # compiled for small robots if they take fewer operations
    methods: dict[str, Method] = field(default_factory=dict)
    cost: Cost | None = None  # None: known once it is traced
    rolled: bool = False  # whether it is made of walks alone, and one piece of code serves all robots
    longest: int = 100_000  # operations that are worth compiling for one robot
    base: Quantity | None = None  # what this is the derivative of
    by: tuple[str, ...] = ()  # and by which of its inputs, for each of its results
    rule: Rule | None = rules.axes  # how it reads in other conventions; None: it is refused there

    def __str__(self) -> str:
        return self.name

    @property
    def optional(self) -> tuple[Input, ...]:
        """Inputs that may be left out."""
        return ((FEXT,) if self.forces else ()) + ((SETTINGS,) if "contacts" in self.options else ())

    @property
    def matrices(self) -> bool:
        """Whether it has results over pairs of degrees of freedom."""
        return any(r.axes == ("v", "v") for r in self.results)

    def input(self, name: str) -> Input:
        return next(i for i in (*self.inputs, *self.optional) if i.name == name)

    def input_shapes(self, given: Sequence[str], size: Mapping[str, int]) -> dict[str, Shape]:
        """The core shapes of the inputs that are given, by name."""
        return {name: shape(self.input(name).axes, size) for name in given}

    def result_shapes(self, size: Mapping[str, int]) -> list[Shape]:
        return [shape(r.axes, size) for r in self.results]

    def packed(self, results: Sequence[Array]) -> Any:
        """Results as users get them: an array, or a named tuple of several."""
        return results[0] if len(self.results) == 1 else self.returns(results) if self.returns else tuple(results)

    def compute(self, scan: Scan, given: Mapping[str, Any], method: str | None = None, **options: Any) -> list[Array]:
        """Results, then margins, from inputs of the robot's: core axes lead, lanes trail, on scalars of any kind."""
        coupling = scan.tree.coupling
        inputs = [
            given[i.name] if coupling is None else coupled.expand(coupling, i, given[i.name]) for i in self.inputs
        ]
        if "fext" in given:
            options["fext"] = [tuple(f) for f in given["fext"]]
        if "settings" in given:
            options["settings"] = given["settings"]
        if method is not None:
            found = self.methods[method].function(scan, *inputs, **options)
        elif coupling is not None and callable(self.mimic):
            found = self.mimic(scan, coupling.G, *inputs, **options)
        else:
            algorithm = self.algorithm if scan.dtype is object else self.on_numpy or self.algorithm
            found = algorithm(scan, *inputs, **options)
        results = flat(found)
        size = sizes(scan.tree, options.get("contacts"))
        reduce = coupling is not None and self.mimic == REDUCE
        if reduce:
            size = size | {"v": size["dofs"]}
        for k, r in enumerate(self.results):
            results[k] = shaped(results[k], (*shape(r.axes, size), *scan.lanes))
            if reduce and coupling is not None:
                results[k] = coupled.reduce(coupling.G, r.axes, results[k])
        return results


def flat(found: Any) -> list[Any]:
    """Arrays out of tuples within tuples."""
    return [x for part in found for x in flat(part)] if isinstance(found, tuple) else [found]


def shape(axes: Sequence[Axis], size: Mapping[str, int]) -> Shape:
    return tuple(size[a] if isinstance(a, str) else a for a in axes)


def shaped(x: Any, want: Shape) -> Array:
    x = np.asarray(x)
    return x if x.shape == want else x.reshape(want) if x.size == prod(want) else np.broadcast_to(x, want)


def sizes(tree: Tree, contacts: Any = None) -> dict[str, int]:
    """The lengths of named axes; "q" and "v" are those of the independent joints, where some mimic."""
    c, joints = tree.coupling, len(tree.nodes)
    nq, nv = (int(c.qi.max()) + 1, c.G.shape[1]) if c else (tree.nq, tree.nv)
    found = {"q": nq, "v": nv, "dofs": tree.nv, "joints": joints, "parameters": 10 * joints}
    if contacts is not None:
        found |= {"rows": contacts.rows[-1].stop, "settings": len(contacts.settings)}
    return found


Q, V, A = Input("q", ("q",), "q"), Input("v", ("v",), "v"), Input("a", ("v",), "v")
TAU, WEIGHTS, FORCES = Input("tau", ("v",)), Input("weights", ("v",), "v"), Input("forces", ("rows",))
RESTITUTION, FEXT, SETTINGS = Input("restitution", (1,)), Input("fext", ("joints", 6)), Input("settings", ("settings",))
VV: tuple[Axis, ...] = ("v", "v")
SIX_V: tuple[Axis, ...] = (6, "v")
LONG_CONTACTS = 300_000  # a humanoid on two flat feet


def named(result: Any, *axes: tuple[Axis, ...]) -> tuple[Result, ...]:
    """Results called as the fields of a named tuple, with their axes, or all with the same."""
    each = axes if len(axes) > 1 else axes * len(result._fields)
    return tuple(Result(name, a) for name, a in zip(result._fields, each, strict=True))


def _table(*rows: Quantity) -> dict[str, Quantity]:
    return {row.name: row for row in rows}


inverse_dynamics = Quantity(
    "inverse_dynamics", "tau = M a + C v + g - J^T fext", (Q, V, A), (Result("tau", ("v",)),), rnea.inverse_dynamics,
    forces=True, cost=Cost(300), rolled=True,
)  # fmt: skip
forward_dynamics = Quantity(
    "forward_dynamics", "a = M^-1 (tau - C v - g + J^T fext)", (Q, V, TAU), (Result("a", ("v",), True),),
    aba.forward_dynamics, forces=True, margins=("mass",), mimic=coupled.forward_dynamics, cost=Cost(450), rolled=True,
    rule=rules.acceleration,
)  # fmt: skip
static_torque = Quantity(
    "static_torque", "g - J^T fext: torques that hold the robot still", (Q,), (Result("tau", ("v",)),),
    statics.static_torque, forces=True,
)  # fmt: skip
jacobian = Quantity(
    "jacobian", "J of a frame, rows linear then angular", (Q,), (Result("J", SIX_V),), jacobians.jacobian,
    options=("view",),
)  # fmt: skip
frame_velocity = Quantity(
    "frame_velocity", "velocity of a frame, linear then angular", (Q, V), (Result("velocity", (6,)),),
    jacobians.frame_velocity, options=("view",),
)  # fmt: skip
frame_acceleration = Quantity(
    "frame_acceleration", "spatial acceleration of a frame without gravity, linear then angular", (Q, V, A),
    (Result("acceleration", (6,)),), frame_derivatives.frame_acceleration, options=("view",),
)  # fmt: skip
constrained_dynamics = Quantity(
    "constrained_dynamics", "accelerations and contact forces while the contacts hold", (Q, V, TAU),
    (Result("a", ("v",), True), Result("forces", ("rows",))), contact_dynamics.constrained_dynamics,
    returns=ConstrainedDynamics._make, forces=True, options=("contacts",),
    margins=("contacts", "mass"), mimic=ITSELF, longest=LONG_CONTACTS, rule=rules.acceleration,
)  # fmt: skip
impulse_dynamics = Quantity(
    "impulse_dynamics", "the jump of velocities at an impact, and impulses", (Q, V, RESTITUTION),
    (Result("jump", ("v",)), Result("impulses", ("rows",))), contact_dynamics.impulse_dynamics, options=("contacts",),
    margins=("contacts", "mass"), mimic=ITSELF, longest=LONG_CONTACTS,
)  # fmt: skip

QUANTITIES: Mapping[str, Quantity] = _table(
    # Dynamics
    inverse_dynamics,
    forward_dynamics,
    Quantity(
        "mass_matrix", "M, symmetric, armature included", (Q,), (Result("M", VV),), crba.mass_matrix,
        cost=Cost(100, 10), rolled=True,
    ),
    Quantity(
        "inverse_mass_matrix", "M^-1", (Q,), (Result("Minv", VV),), minv.inverse_mass_matrix, margins=("mass",),
        mimic=coupled.inverse_mass_matrix, on_numpy=factored.auto, methods=ways.TABLES[ways.INVERSE],
        cost=Cost(250, 0, 20), rolled=True,
    ),
    Quantity(
        "gravity", "g: torques that hold the robot still", (Q,), (Result("g", ("v",)),), rnea.gravity,
        cost=Cost(55), rolled=True,
    ),
    Quantity(
        "bias", "C v + g", (Q, V), (Result("b", ("v",)),), rnea.bias, cost=Cost(280), rolled=True, rule=rules.bias,
    ),
    Quantity(
        "coriolis_matrix", "C, such that Mdot - 2C is skew-symmetric", (Q, V), (Result("C", VV),),
        coriolis.coriolis_matrix, cost=Cost(220, 25), rolled=True, rule=rules.coriolis_matrix,
    ),
    Quantity(
        "projected_newton_euler", "M, g, f of M a + g = f + tau from the Jacobians of each body", (Q, V),
        named(projected.ProjectedNewtonEuler, VV, ("v",), ("v",)), projected.projected_newton_euler,
        returns=projected.ProjectedNewtonEuler._make, forces=True, rule=rules.projected_newton_euler,
    ),
    static_torque,
    # Their derivatives
    Quantity(
        "inverse_dynamics_derivatives", "dtau_dq, dtau_dv, dtau_da", (Q, V, A),
        named(InverseDynamicsDerivatives, VV), idsva.inverse_dynamics_derivatives,
        returns=InverseDynamicsDerivatives._make, forces=True, methods=ways.TABLES[ways.ID],
        cost=Cost(350, 50), rolled=True, base=inverse_dynamics, by=("q", "v", "a"), rule=rules.derivatives,
    ),
    Quantity(
        "forward_dynamics_derivatives", "da_dq, da_dv, da_dtau", (Q, V, TAU),
        named(ForwardDynamicsDerivatives, VV), direct.forward_dynamics_derivatives,
        returns=ForwardDynamicsDerivatives._make, forces=True, margins=("mass",), on_numpy=fdsva.auto,
        mimic=fdsva.reduced, alternatives=(fdsva.dmm, fdsva.aza, fdsva.by_ltl),
        methods=ways.TABLES[ways.FD], cost=Cost(500, 0, 65), rolled=True, base=forward_dynamics, by=("q", "v", "tau"),
        rule=rules.derivatives,
    ),
    Quantity(
        "static_torque_derivatives", "d(g - J^T fext)/dq, fext fixed in the joints' frames", (Q,),
        (Result("dtau_dq", VV),), statics.static_torque_derivatives, forces=True, base=static_torque, by=("q",),
        rule=rules.derivatives,
    ),
    Quantity(
        "inverse_dynamics_force_derivatives", "dtau_dfext = -J^T", (Q,), (Result("dtau_dfext", ("v", "joints", 6)),),
        regressor.force_derivatives,
    ),
    Quantity(
        "forward_dynamics_force_derivatives", "da_dfext = M^-1 J^T", (Q,), (Result("da_dfext", ("v", "joints", 6)),),
        regressor.forward_force_derivatives, margins=("mass",), mimic=ITSELF,
    ),
    Quantity(
        "torque_regressor", "Y = dtau/dparameters", (Q, V, A), (Result("Y", ("v", "parameters")),),
        regressor.torque_regressor,
    ),
    Quantity(
        "forward_dynamics_parameter_derivatives", "da/dparameters = -M^-1 Y", (Q, V, TAU),
        (Result("da_dparameters", ("v", "parameters")),), regressor.forward_parameter_derivatives, forces=True,
        margins=("mass",), mimic=ITSELF,
    ),
    Quantity(
        "torque_slopes", "tau and w^T (dtau_dq, dtau_dv, dtau_da), w = weights tau, or the weights if `fixed`",
        (Q, V, A, WEIGHTS), tuple(Result(name, ("v",)) for name in ("tau", "by_q", "by_v", "by_a")),
        slopes.torque_slopes, forces=True, options=("fixed",), rule=None,
    ),
    # Kinematics, energy, momentum
    Quantity(
        "forward_kinematics", "placement of every joint's frame in the world", (Q,),
        (Result("placements", ("joints", 4, 4)),), kinematics.forward_kinematics, cost=Cost(40), rolled=True,
    ),
    Quantity(
        "joint_columns", "motion that each dof of the tree gives, at the world's origin, linear then angular", (Q,),
        (Result("columns", ("dofs", 6)),), kinematics.joint_columns, cost=Cost(40), rolled=True,
    ),
    jacobian,
    Quantity(
        "jacobian_derivative", "dJ/dt of a frame", (Q, V), (Result("dJ_dt", SIX_V),), jacobians.jacobian_derivative,
        options=("view",), rule=rules.jacobian_derivative,
    ),
    Quantity(
        "jacobian_drift", "dJ/dt v of a frame", (Q, V), (Result("drift", (6,)),), jacobians.jacobian_drift,
        options=("view",), rule=rules.jacobian_drift,
    ),
    Quantity(
        "jacobian_hessian", "dJ/dq of a frame; [.., i, k]: change of column i along dof k", (Q,),
        (Result("dJ_dq", (6, "v", "v")),), jacobians.jacobian_hessian, options=("view",), base=jacobian, by=("q",),
        rule=rules.derivatives,
    ),
    frame_velocity,
    Quantity(
        "frame_velocity_derivatives", "dv_dq, dv_dv of a frame's velocity", (Q, V),
        named(frame_derivatives.FrameVelocityDerivatives, SIX_V), frame_derivatives.frame_velocity_derivatives,
        returns=frame_derivatives.FrameVelocityDerivatives._make, options=("view",), base=frame_velocity,
        by=("q", "v"), rule=rules.derivatives,
    ),
    frame_acceleration,
    Quantity(
        "frame_acceleration_derivatives", "da_dq, da_dv, da_da of a frame's acceleration", (Q, V, A),
        named(frame_derivatives.FrameAccelerationDerivatives, SIX_V), frame_derivatives.frame_acceleration_derivatives,
        returns=frame_derivatives.FrameAccelerationDerivatives._make, options=("view",), base=frame_acceleration,
        by=("q", "v", "a"), rule=rules.derivatives,
    ),
    Quantity(
        "kinetic_energy", "v^T M v / 2 [J]", (Q, V), (Result("energy", ()),), kinematics.kinetic_energy,
        cost=Cost(150),
    ),
    Quantity(
        "potential_energy", "of gravity [J], zero for masses at the world's origin", (Q,), (Result("energy", ()),),
        kinematics.potential_energy, cost=Cost(40),
    ),
    Quantity(
        "center_of_mass", "in the world [m]", (Q,), (Result("center", (3,)),), kinematics.center_of_mass,
        needs_mass=True, cost=Cost(40),
    ),
    Quantity(
        "centroidal_map", "A with A v the momentum about the centre of mass, in world axes", (Q,),
        (Result("A", SIX_V),), kinematics.centroidal_map, needs_mass=True, cost=Cost(120),
    ),
    Quantity(
        "centroidal_momentum", "momentum about the centre of mass, linear then angular, in world axes", (Q, V),
        (Result("h", (6,)),), kinematics.centroidal_momentum, needs_mass=True, cost=Cost(150),
    ),
    Quantity(
        "centroidal_derivatives", "dh_dq, dhdot_dq, dhdot_dv, dhdot_da of the centroidal momentum h", (Q, V, A),
        named(centroidal.CentroidalDerivatives, SIX_V), centroidal.centroidal_derivatives,
        returns=centroidal.CentroidalDerivatives._make, needs_mass=True, rule=rules.centroidal_derivatives,
    ),
    # Contacts
    constrained_dynamics,
    Quantity(
        "constrained_dynamics_derivatives", "of accelerations and contact forces by q, v, tau", (Q, V, TAU),
        named(ConstrainedDynamicsDerivatives, VV, VV, VV, *[("rows", "v")] * 3),
        contact_derivatives.constrained_dynamics_derivatives,
        returns=ConstrainedDynamicsDerivatives._make, forces=True, options=("contacts",),
        margins=("contacts", "mass"), mimic=ITSELF, longest=LONG_CONTACTS, base=constrained_dynamics,
        by=("q", "v", "tau"), rule=rules.derivatives,
    ),
    Quantity(
        "contact_inverse_dynamics", "tau = M a + C v + g - J^T forces - J^T fext", (Q, V, A, FORCES),
        (Result("tau", ("v",)),), contact_dynamics.contact_inverse_dynamics, forces=True, options=("contacts",),
        mimic=ITSELF, longest=LONG_CONTACTS,
    ),
    Quantity(
        "contact_jacobian", "J of the contacts in the axes of their forces", (Q,), (Result("J", ("rows", "v")),),
        contact_dynamics.contact_jacobian, options=("contacts",), mimic=ITSELF, longest=LONG_CONTACTS,
    ),
    impulse_dynamics,
    Quantity(
        "impulse_dynamics_derivatives", "of the jump and of impulses by q and v", (Q, V, RESTITUTION),
        (
            Result("djump_dq", VV), Result("djump_dv", VV), Result("dimpulses_dq", ("rows", "v")),
            Result("dimpulses_dv", ("rows", "v")),
        ),
        contact_derivatives.impulse_dynamics_derivatives, options=("contacts",), margins=("contacts", "mass"),
        mimic=ITSELF, longest=LONG_CONTACTS, base=impulse_dynamics, by=("q", "v"), rule=rules.derivatives,
    ),
)  # fmt: skip


def quantity(name: str | Quantity) -> Quantity:
    """The record of that name."""
    if isinstance(name, Quantity):
        return name
    if not isinstance(name, str) or name not in QUANTITIES:
        raise UnknownName("quantity", name, QUANTITIES)
    return QUANTITIES[name]
