"""Signals, the quantities of a robot that residuals are functions of, with values and Jacobians at all knots.

A signal has a value, which residuals see as traced scalars, and a tangent: the directions in which it changes. Its
Jacobian (rows of the tangent, columns of q, v and u) comes from the robot; that of a residual by the tangent comes from
the tracer. So only residuals are traced, never the robot.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import UnknownName
from ...jit.graph import Graph
from ...jit.straight import Shape, loads
from ...model.configuration import Places
from ...model.manifolds import side_by_side

Array = np.ndarray


class Signal(NamedTuple):
    """The name of a signal: its kind, and the frame and viewpoint if the kind has them."""

    kind: str
    of: str = ""
    viewpoint: str = ""


FORCES = Signal("forces")


class SignalSlopes(NamedTuple):
    """The Jacobian of a signal by q, v (..., rows, nv) and u (..., rows, nu); None where it is zero."""

    q: Array
    v: Array | None = None
    u: Array | None = None


class SignalKind(NamedTuple):
    """How to compute all signals of a kind, and their Jacobians, from the motion of a phase.

    shape: of a value, which may depend on the robot's sizes; tangent: its directions of change, or None for one for
    each entry; moves(value): the change of the entries (entries, tangent) along the tangent, or None for the identity.
    of_q_alone: whether it depends on q alone; framed: whether it is of a frame.
    """

    shape: Callable[[Sizes, Signal], Shape]
    value: Callable[[SignalSource, Signal], Array]
    slopes: Callable[[SignalSource, Signal], SignalSlopes]
    of_q_alone: bool = False
    framed: bool = False
    tangent: int | None = None
    moves: Callable[[Array], Array] | None = None


class Sizes(NamedTuple):
    """The sizes of a robot in a phase: its configuration space, controls, and the rows of each contact's force.

    Code for residuals and steps depends on these alone, and so serves many robots.
    """

    places: Places
    nu: int
    forces: tuple[tuple[str, slice], ...]

    @property
    def nq(self) -> int:
        return self.places.nq

    @property
    def nv(self) -> int:
        return self.places.nv

    @property
    def rows(self) -> int:
        """The number of force components of all contacts."""
        return max((at.stop for _, at in self.forces), default=0)

    def force(self, name: str) -> slice:
        """Where the force of a contact is among those of all contacts of the phase."""
        forces = dict(self.forces)
        if name not in forces:
            hint = "" if forces else "A phase without contacts has no forces"
            raise UnknownName("contact of this phase", name, forces, hint)
        return forces[name]


class DynamicsSlopes(NamedTuple):
    """Jacobians of accelerations (..., nv, .), or of a jump, and of forces (..., rows, .), by q, v and all torques.

    a_tau: None at an impact; forces: by q and v only, there.
    """

    a_q: Array
    a_v: Array
    a_tau: Array | None
    forces: tuple[Array, ...]


class SignalSource(Protocol):
    """The robot at some states and controls, which signals are computed from; see `compiled.motion.PhaseMotion`."""

    @property
    def a(self) -> Array: ...

    @property
    def forces(self) -> Array: ...

    @property
    def a_slopes(self) -> SignalSlopes: ...

    @property
    def force_slopes(self) -> SignalSlopes: ...

    @property
    def com_slopes(self) -> SignalSlopes: ...

    def of_robot(self, name: str) -> tuple[Array, ...]: ...

    def of_frame(self, name: str, signal: Signal) -> tuple[Array, ...]: ...


def moved_placement(T: Array) -> Array:
    """The change of the entries (16, 6) of a placement (4, 4) along a motion of its own frame, linear then angular."""
    out = np.zeros((4, 4, 6), object)
    out[:3, 3, :3] = T[:3, :3]
    for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):  # turning about x moves y along z, and z against y
        out[:3, y, 3 + x], out[:3, z, 3 + x] = T[:3, z], -T[:3, y]
    return out.reshape(16, 6)


KINDS: dict[str, SignalKind] = {
    "a": SignalKind(
        lambda size, s: (size.nv,),
        lambda m, s: m.a,
        lambda m, s: m.a_slopes,
    ),
    "forces": SignalKind(
        lambda size, s: (size.rows,),
        lambda m, s: m.forces,
        lambda m, s: m.force_slopes,
    ),
    "placement": SignalKind(
        lambda size, s: (4, 4),
        lambda m, s: m.of_frame("frame_placement", s)[0],
        lambda m, s: SignalSlopes(m.of_frame("jacobian", s)[0]),
        of_q_alone=True,
        framed=True,
        tangent=6,
        moves=moved_placement,
    ),
    "velocity": SignalKind(
        lambda size, s: (6,),
        lambda m, s: m.of_frame("frame_velocity", s)[0],
        lambda m, s: SignalSlopes(*m.of_frame("frame_velocity_derivatives", s)),
        framed=True,
    ),
    "com": SignalKind(
        lambda size, s: (3,),
        lambda m, s: m.of_robot("center_of_mass")[0],
        lambda m, s: m.com_slopes,
        of_q_alone=True,
    ),
    "momentum": SignalKind(
        lambda size, s: (6,),
        lambda m, s: m.of_robot("centroidal_momentum")[0],
        lambda m, s: SignalSlopes(m.of_robot("centroidal_derivatives")[0], m.of_robot("centroidal_map")[0]),
    ),
    "kinetic": SignalKind(
        lambda size, s: (1,),
        lambda m, s: m.of_robot("kinetic_energy")[0][..., None],
        lambda m, s: SignalSlopes(*(x[..., None, :] for x in m.of_robot("kinetic_energy_derivatives"))),
    ),
    "potential": SignalKind(
        lambda size, s: (1,),
        lambda m, s: m.of_robot("potential_energy")[0][..., None],
        lambda m, s: SignalSlopes(m.of_robot("gravity")[0][..., None, :]),
        of_q_alone=True,
    ),
}


class SignalInput(NamedTuple):
    """A signal as an input of traced code: its name and shape, and where its tangent starts among all tangents."""

    name: str
    shape: Shape
    start: int
    tangent: int


class TracedKnot:
    """A knot in the code of residuals: arrays of traced scalars. Asking for a signal makes it an input of the code.

    q (nq,), v (nv,), u (nu,): configuration, velocities, controls; a (nv,): accelerations.
    """

    def __init__(self, size: Sizes, graph: Graph, inputs: dict[str, Array]) -> None:
        self.size, self.graph, self.inputs = size, graph, inputs
        self.signals: dict[Signal, SignalInput] = {}
        self.q, self.v = inputs["x"][: size.nq], inputs["x"][size.nq :]
        self.end = size.nv + size.nv + size.nu  # of the tangents so far

    @property
    def u(self) -> Array:
        if "u" not in self.inputs:
            raise ValueError("impacts and the last state have no controls")
        return self.inputs["u"]

    @property
    def a(self) -> Array:
        return self.signal(Signal("a"))

    def signal(self, signal: Signal) -> Array:
        """The traced value of a signal."""
        if signal not in self.signals:
            kind = KINDS[signal.kind]
            shape = kind.shape(self.size, signal)
            tangent = prod(shape) if kind.tangent is None else kind.tangent
            name = f"s{len(self.signals)}"
            self.signals[signal] = SignalInput(name, shape, self.end, tangent)
            self.end += tangent
            if name not in self.inputs:
                self.inputs[name] = loads(self.graph, name, shape)
        return self.inputs[self.signals[signal].name]

    def placement(self, frame: str) -> Array:
        """The placement (4, 4) of a frame in the world."""
        return self.signal(Signal("placement", frame))

    def position(self, frame: str) -> Array:
        """The origin (3,) of a frame in the world [m]."""
        return self.placement(frame)[:3, 3]

    def rotation(self, frame: str) -> Array:
        """The rotation matrix (3, 3) of a frame; its columns are the frame's axes in the world."""
        return self.placement(frame)[:3, :3]

    def velocity(self, frame: str, viewpoint: str = "local") -> Array:
        """The velocity (6,) of a frame, linear then angular; viewpoints as in `Robot.frame_jacobian`."""
        return self.signal(Signal("velocity", frame, viewpoint))

    @property
    def com(self) -> Array:
        """The centre of mass (3,) in the world [m]."""
        return self.signal(Signal("com"))

    @property
    def momentum(self) -> Array:
        """Linear momentum, then angular momentum about the centre of mass (6,), in world axes."""
        return self.signal(Signal("momentum"))

    @property
    def kinetic_energy(self) -> Any:
        return self.signal(Signal("kinetic"))[0]

    @property
    def potential_energy(self) -> Any:
        return self.signal(Signal("potential"))[0]

    def force(self, contact: str) -> Array:
        """The force (3,) of a point contact, or force and moment (6,) of a surface, in the contact's axes.

        At an impact, its impulse.
        """
        at = self.size.force(contact)
        return self.signal(FORCES)[at]

    def directions(self) -> tuple[list[Any], Array]:
        """All inputs that residuals depend on, and how they change along all tangents: (inputs, tangents)."""
        size = self.size
        inputs = [*self.q, *self.v, *(self.inputs["u"] if size.nu else ())]
        parts = [np.array(side_by_side(*(p.manifold.rate_map(self.q[p.q]) for p in size.places.nodes)), object)]
        parts += [np.eye(size.nv + size.nu)]
        for signal, entry in self.signals.items():
            value = self.inputs[entry.name]
            inputs += list(value.flat)
            moves = KINDS[signal.kind].moves
            parts.append(np.eye(entry.tangent) if moves is None else moves(value))
        return inputs, np.array(side_by_side(*parts), object)
