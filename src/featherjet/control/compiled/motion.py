"""The robot over the knots of a phase: compiled quantities at all knots at once, each computed when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms.frames.curvature import DofOrder
from ...algorithms.quantities import FRAME, QUANTITIES
from ...contact import Contacts
from ...errors import InputError
from ...evaluate import frames
from ...evaluate.evaluator import Evaluator
from ...jit.effort import Effort
from ...jit.kernel import Kernel
from ..residuals.signals import DynamicsSlopes, Signal, SignalSlopes, Sizes
from .pickled import DropsCode
from .replay import DIRECT, Direct

Array = np.ndarray
NO_RESTITUTION = np.zeros(1)
STATIC_QUANTITIES = ("gravity", "contact_jacobian")  # what controls hold a robot still depends on


class PhaseRobot(DropsCode):
    """A robot in a phase: its compiled quantities, the dofs that controls drive, and the contacts that hold.

    driven: the dofs of the controls, empty at an impact; hits: whether the contacts are an impact; integrator: its
    name.
    """

    def __init__(
        self, evaluator: Evaluator, driven: Array, contacts: Contacts | None, hits: bool, integrator: str = "euler"
    ) -> None:
        self.evaluator, self.contacts, self.hits, self.integrator = evaluator, contacts, hits, integrator
        self.driven = np.zeros(0, int) if hits else driven
        held = () if contacts is None else tuple(zip(contacts.names, contacts.slices, strict=True))
        self.size = Sizes(evaluator.places, len(self.driven), held)
        self.mass = evaluator.model.mass
        self._kernels: dict[Any, Kernel] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kernels": {}}

    def kernel(self, name: str, viewpoint: str = "") -> Kernel:
        """The code of a quantity, with the phase's contacts if it takes any."""
        found = self._kernels.get((name, viewpoint))
        if found is None:
            record = QUANTITIES[name]
            options: dict[str, Any] = {"viewpoint": frames.known(viewpoint)} if "viewpoint" in record.options else {}
            if "contacts" in record.options:
                assert self.contacts is not None
                options["contacts"] = self.contacts.core
            kernel = self.evaluator.kernel(record, [i.name for i in record.inputs], options, self._effort(name))
            if kernel is None:
                raise InputError(f"{name} of {self.evaluator.model.name!r} cannot be compiled, and control needs it")
            found = self._kernels[name, viewpoint] = kernel
        return found

    def _effort(self, name: str) -> Effort:
        """What the compiler does for a quantity's code.

        Rollouts take knots one by one, impacts are alone, phases are short batches; what holds a robot still is
        computed once.
        """
        if self.hits or name in STATIC_QUANTITIES:
            return Effort.ONE
        return Effort.BOTH if name == self.dynamics else Effort.BATCHES

    def code(self, key: Hashable, make: Callable[[], Kernel]) -> Kernel:
        """Other code of the phase, made when first asked for."""
        if key not in self._kernels:
            self._kernels[key] = make()
        return self._kernels[key]

    @property
    def dynamics(self) -> str:
        """The quantity that moves the robot on."""
        if self.hits:
            return "impulse_dynamics"
        return "forward_dynamics" if self.contacts is None else "constrained_dynamics"

    @property
    def rows(self) -> int:
        """The number of force components."""
        return self.size.rows

    @cached_property
    def in_order(self) -> bool:
        """Whether the dofs of the controls are consecutive, from the first on if they are all."""
        return bool((np.diff(self.driven) == 1).all())

    @cached_property
    def driven_slice(self) -> Any:
        """The dofs of the controls, as a slice if they are consecutive."""
        return slice(self.driven[0], self.driven[-1] + 1) if len(self.driven) and self.in_order else self.driven

    @cached_property
    def order(self) -> DofOrder:
        """Which dofs are above others."""
        return DofOrder.of(self.evaluator.tree)

    @cached_property
    def zero_acceleration(self) -> Array:
        """Joint accelerations (nv,) of zero."""
        return np.zeros(self.size.nv)


class PhaseMotion:
    """The robot at states x (..., nx) and controls u (..., nu).

    Each quantity is computed when first asked for, as a step of `track`.
    known: accelerations and forces, if they have been computed before.
    """

    def __init__(
        self, body: PhaseRobot, x: Array, u: Array, known: tuple[Array, Array] | None = None, track: Direct = DIRECT
    ) -> None:
        self.body, self.size, self.mass, self.track = body, body.size, body.mass, track
        nq = self.size.nq
        self.x, self.u = x, u[..., : self.size.nu]
        self.q, self.v = x[..., :nq], x[..., nq:]
        self._found: dict[Any, tuple[Array, ...]] = {} if known is None else {"dynamics": known}

    def followed_by(self, track: Direct) -> PhaseMotion:
        """The same motion with all that it has found; what else is asked for is a step of another track."""
        other = PhaseMotion(self.body, self.x, self.u, None, track)
        other._found |= self._found
        return other

    def _run(self, key: Any, kernel: Kernel, *given: Array) -> tuple[Array, ...]:
        found = self._found[key] = self.track.run(kernel, *given)
        return found

    def _driven(self, key: str, x: Array) -> Array:
        """Columns of the driven dofs."""
        at = self.body.driven_slice
        if isinstance(at, slice):
            return x[..., at]
        return self._do(key, (*x.shape[:-1], len(at)), lambda out: np.take(x, at, -1, out))

    def _do(self, key: Any, shape: tuple[int, ...], step: Callable[[Array], object]) -> Array:
        """An array of zeros after a step that writes into it."""
        found = self._found.get(key)
        if found is None:
            out = np.zeros(shape)
            self.track.do(lambda: step(out))
            found = self._found[key] = (out,)
        return found[0]

    @property
    def tau(self) -> Array:
        """All torques (..., nv)."""
        body = self.body
        if len(body.driven) == self.size.nv and body.in_order:
            return self.u
        shape = (*self.u.shape[:-1], self.size.nv)
        return self._do("tau", shape, lambda tau: tau.__setitem__((..., body.driven_slice), self.u))

    @property
    def dynamics(self) -> tuple[Array, ...]:
        """Accelerations (..., nv), or the jump of velocities, and forces (..., rows), if there are contacts."""
        found = self._found.get("dynamics")
        if found is not None:
            return found
        body = self.body
        last = NO_RESTITUTION if body.hits else self.tau
        return self._run("dynamics", body.kernel(body.dynamics), self.q, self.v, last)

    @property
    def a(self) -> Array:
        return self.dynamics[0]

    @property
    def forces(self) -> Array:
        return self.dynamics[1]

    @property
    def slopes(self) -> DynamicsSlopes:
        body = self.body
        found = self._found.get("slopes")
        if found is None:
            last = NO_RESTITUTION if body.hits else self.tau
            found = self._run("slopes", body.kernel(f"{body.dynamics}_derivatives"), self.q, self.v, last)
        if body.hits:
            return DynamicsSlopes(found[0], found[1], None, found[2:])
        a_q, a_v, a_tau, *forces = found
        return DynamicsSlopes(a_q, a_v, a_tau, tuple(forces))

    @property
    def a_slopes(self) -> SignalSlopes:
        """The Jacobian of accelerations, or of a jump."""
        s = self.slopes
        return SignalSlopes(s.a_q, s.a_v, None if s.a_tau is None else self._driven("a_u", s.a_tau))

    @property
    def force_slopes(self) -> SignalSlopes:
        """The Jacobian of forces, or of impulses."""
        q, v, *tau = self.slopes.forces
        return SignalSlopes(q, v, *(self._driven("forces_u", x) for x in tau))

    @property
    def com_slopes(self) -> SignalSlopes:
        """The Jacobian of the centre of mass."""
        momentum = self.of_robot("centroidal_map")[0][..., :3, :]
        return SignalSlopes(self._do("com_q", momentum.shape, lambda out: np.divide(momentum, self.mass, out)))

    def of_robot(self, name: str) -> tuple[Array, ...]:
        """A quantity of the robot; accelerations count as zero."""
        found = self._found.get(name)
        if found is not None:
            return found
        known = {"q": self.q, "v": self.v, "a": self.body.zero_acceleration}
        given = [known[i.name] for i in QUANTITIES[name].inputs]
        return self._run(name, self.body.kernel(name), *given)

    def of_frame(self, name: str, signal: Signal) -> tuple[Array, ...]:
        """A quantity of a frame."""
        key = name, signal
        found = self._found.get(key)
        if found is not None:
            return found
        frame = frames.numbers(self.body.evaluator, signal.of)[0]
        known = {"q": self.q, "v": self.v, FRAME.name: frame}
        given = [known[i.name] for i in QUANTITIES[name].inputs]
        return self._run(key, self.body.kernel(name, signal.viewpoint or "local"), *given)
