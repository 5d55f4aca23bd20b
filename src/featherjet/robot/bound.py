"""Bound calls: one quantity of one robot with buffers of its own, for control loops."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.quantities import RESULTS
from ..errors import InputError, UnknownName

if TYPE_CHECKING:
    from .robot import Robot

Array = np.ndarray


class Bound:
    """Write into the inputs' arrays, call, read the results' arrays: nothing is allocated.

    >>> step = robot.bind("forward_dynamics_derivatives")
    >>> step.q[:], step.v[:], step.tau[:] = q, v, tau
    >>> step()
    >>> step.da_dq
    Inputs: `q` and, as the quantity needs them, `v`, `a`, `tau` (nv,), `fext` (njoints, 6). Results by their names in
    `step.results`. The arrays stay the same objects for the life of the bound call.
    """

    def __init__(self, robot: Robot, quantity: str, fext: bool = False) -> None:
        if quantity not in RESULTS:
            raise UnknownName("quantity to bind", quantity, RESULTS)
        self._robot, self.quantity = robot, quantity
        inputs, forces = robot._bindable(quantity)
        if fext and not forces:
            raise InputError(f"{quantity} takes no external forces")
        self.inputs = (*inputs, "fext") if fext else inputs
        self.results = RESULTS[quantity]
        nv = robot.nv
        square = quantity.endswith(("derivatives", "matrix"))
        self._arrays: dict[str, Array] = {}
        for name in self.inputs:
            shape = (robot.njoints, 6) if name == "fext" else (robot.nq if name == "q" else nv,)
            self._arrays[name] = np.zeros(shape)
        self._arrays["q"][:] = robot.neutral()
        for name in self.results:
            self._arrays[name] = np.zeros((nv, nv) if square else nv)
        self.__dict__.update(self._arrays)
        self._prepare(fext)

    def _prepare(self, fext: bool) -> None:
        robot = self._robot
        self._kernel = robot._kernel(self.quantity, fext)
        if self._kernel is None or not self._kernel.quickly:  # the general way, or the reference, does it
            self._go = None
            return
        self._code = self._kernel.single  # owns what it calls
        self._go = partial(self._code.plain, *(self._arrays[n] for n in (*self.inputs, *self.results)))

    def __call__(self) -> None:
        """Compute the results from what the inputs hold now."""
        if self._go is None or self._go():
            self._slow()  # says what is wrong; or, if nothing is, computes it by the careful way

    def _slow(self) -> None:
        a = self._arrays
        given = [a[n] for n in self.inputs if n != "fext"]
        out = tuple(a[n] for n in self.results)
        self._robot._run(self.quantity, given, a.get("fext"), out)

    def __setattr__(self, name: str, value: Any) -> None:
        """`step.q = q` writes into the array: it stays the same object."""
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            try:
                arrays[name][...] = value
            except (TypeError, ValueError) as error:
                raise InputError(f"{name}: expected shape {arrays[name].shape}, got {np.shape(value)}") from error
        elif arrays and not name.startswith("_"):
            raise UnknownName(f"array of a bound {self.quantity}", name, arrays)
        else:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple:
        return Bound, (self._robot, self.quantity, "fext" in self.inputs)
