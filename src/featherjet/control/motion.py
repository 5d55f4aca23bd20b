"""The robot over the knots of a phase: compiled quantities at all knots at once, each computed when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.quantities import FRAME, QUANTITIES
from ..contact import Contacts
from ..errors import InputError
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator
from ..jit.kernel import Kernel
from .signals import Signal, Sizes

Array = np.ndarray
NO_RESTITUTION = np.zeros(1)


class Body:
    """A robot in a phase: its compiled quantities, the dofs that controls drive, and the contacts that hold.

    driven: the dofs of the controls, empty at an impact; hits: whether the contacts are an impact.
    """

    def __init__(self, evaluator: Evaluator, driven: Array, contacts: Contacts | None, hits: bool) -> None:
        self.evaluator, self.contacts, self.hits = evaluator, contacts, hits
        self.driven = np.zeros(0, int) if hits else driven
        held = () if contacts is None else tuple(zip(contacts.names, contacts.slices, strict=True))
        self.size = Sizes(evaluator.places, len(self.driven), held)
        self.mass = evaluator.model.mass
        self._kernels: dict[Any, Kernel] = {}

    def kernel(self, name: str, viewpoint: str = "") -> Kernel:
        """The code of a quantity, with the phase's contacts if it takes any."""
        found = self._kernels.get((name, viewpoint))
        if found is None:
            record = QUANTITIES[name]
            options: dict[str, Any] = {"viewpoint": frames.known(viewpoint)} if "viewpoint" in record.options else {}
            if "contacts" in record.options:
                assert self.contacts is not None
                options["contacts"] = self.contacts.core
            kernel = self.evaluator.kernel(record, [i.name for i in record.inputs], options)
            if kernel is None:
                raise InputError(f"{name} of {self.evaluator.model.name!r} cannot be compiled, and control needs it")
            found = self._kernels[name, viewpoint] = kernel
        return found

    @property
    def dynamics(self) -> str:
        """The quantity that moves the robot on."""
        if self.hits:
            return "impulse_dynamics"
        return "forward_dynamics" if self.contacts is None else "constrained_dynamics"

    @cached_property
    def rows(self) -> int:
        """The number of force components."""
        return 0 if self.contacts is None else self.contacts.rows

    def torques(self, u: Array) -> Array:
        """tau (..., nv) of controls (..., nu)."""
        if len(self.driven) == self.size.nv:
            return u
        tau = np.zeros((*u.shape[:-1], self.size.nv))
        tau[..., self.driven] = u
        return tau


class DynamicsSlopes(NamedTuple):
    """Jacobians of accelerations (..., nv, .), or of a jump, and of forces (..., rows, .), by q, v and u.

    a_tau: by all torques; None at an impact. driven: the dofs of the controls.
    """

    a_q: Array
    a_v: Array
    a_tau: Array | None
    forces: tuple[Array, ...]
    driven: Array

    @property
    def a_u(self) -> Array | None:
        return None if self.a_tau is None else self.a_tau[..., self.driven]


class Motion:
    """The robot at states q (..., nq), v (..., nv) and controls u (..., nu).

    known: accelerations and forces, if they have been computed before.
    """

    def __init__(self, body: Body, x: Array, u: Array, known: tuple[Array, Array] | None = None) -> None:
        self.body, self.size, self.mass = body, body.size, body.mass
        self.x, self.u = x, u
        self.q, self.v = x[..., : body.size.nq], x[..., body.size.nq :]
        self._known = known
        self._found: dict[Any, tuple[Array, ...]] = {}

    @cached_property
    def tau(self) -> Array:
        return self.body.torques(self.u)

    @cached_property
    def dynamics(self) -> tuple[Array, Array]:
        """Accelerations (..., nv), or the jump of velocities, and forces (..., rows)."""
        if self._known is not None:
            return self._known
        body = self.body
        last = NO_RESTITUTION if body.hits else self.tau
        a, *forces = body.kernel(body.dynamics).values(self.q, self.v, last)
        return a, forces[0] if forces else np.zeros((*a.shape[:-1], 0))

    @property
    def a(self) -> Array:
        return self.dynamics[0]

    @property
    def forces(self) -> Array:
        return self.dynamics[1]

    @cached_property
    def slopes(self) -> DynamicsSlopes:
        body, driven = self.body, self.body.driven
        kernel = body.kernel(f"{body.dynamics}_derivatives")
        if body.hits:
            a_q, a_v, f_q, f_v = kernel.values(self.q, self.v, NO_RESTITUTION)
            return DynamicsSlopes(a_q, a_v, None, (f_q, f_v), driven)
        a_q, a_v, a_tau, *forces = kernel.values(self.q, self.v, self.tau)
        if forces:
            forces[2] = forces[2][..., driven]
        return DynamicsSlopes(a_q, a_v, a_tau, tuple(forces), driven)

    def of_robot(self, name: str) -> tuple[Array, ...]:
        """A quantity of the robot; accelerations count as zero."""
        if name not in self._found:
            known = {"q": self.q, "v": self.v, "a": np.zeros(self.size.nv)}
            given = [known[i.name] for i in QUANTITIES[name].inputs]
            self._found[name] = self.body.kernel(name).values(*given)
        return self._found[name]

    def of_frame(self, name: str, signal: Signal) -> tuple[Array, ...]:
        """A quantity of a frame."""
        key = name, signal
        if key not in self._found:
            frame = frames.numbers(self.body.evaluator, signal.of)[0]
            known = {"q": self.q, "v": self.v, FRAME.name: frame}
            given = [known[i.name] for i in QUANTITIES[name].inputs]
            self._found[key] = self.body.kernel(name, signal.viewpoint or "local").values(*given)
        return self._found[key]
