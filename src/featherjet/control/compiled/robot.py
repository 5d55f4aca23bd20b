"""The robot of a phase: its compiled quantities, the dofs that controls drive, and the contacts that hold."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms.frames.curvature import DofOrder
from ...algorithms.quantities import QUANTITIES
from ...contact import Contacts
from ...errors import InputError
from ...evaluate import frames
from ...evaluate.evaluator import Evaluator
from ...jit.effort import Effort
from ...jit.kernel import Kernel
from ..residuals.signals import Sizes
from .pickled import DropsCode

Array = np.ndarray
STATIC_QUANTITIES = ("gravity", "contact_jacobian")  # what controls hold a robot still depends on


class PhaseRobot(DropsCode):
    """A robot in a phase, with the code of its quantities there.

    driven: the dofs of the controls, empty at an impact; contacts: what holds, or strikes if `hits`; integrator: its
    name.
    """

    def __init__(
        self, evaluator: Evaluator, driven: Array, contacts: Contacts | None, hits: bool, integrator: str = "euler"
    ) -> None:
        self.evaluator, self.contacts, self.hits, self.integrator = evaluator, contacts, hits, integrator
        self.driven = np.zeros(0, int) if hits else driven
        forces = () if contacts is None else tuple(zip(contacts.names, contacts.slices, strict=True))
        self.size = Sizes(evaluator.places, len(self.driven), forces)
        self.mass = evaluator.model.mass
        self._kernels: dict[Any, Kernel] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kernels": {}}

    def kernel(self, name: str, viewpoint: str = "") -> Kernel:
        """The code of a quantity, with the phase's contacts if it takes any."""
        kernel = self._kernels.get((name, viewpoint))
        if kernel is None:
            record = QUANTITIES[name]
            options: dict[str, Any] = {}
            if "viewpoint" in record.options:
                options["viewpoint"] = frames.checked_viewpoint(viewpoint)
            if "contacts" in record.options:
                assert self.contacts is not None
                options["contacts"] = self.contacts.core
            kernel = self.evaluator.kernel(record, [i.name for i in record.inputs], options, self._effort(name))
            if kernel is None:
                raise InputError(f"{name} of {self.evaluator.model.name!r} cannot be compiled, and control needs it")
            self._kernels[name, viewpoint] = kernel
        return kernel

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
