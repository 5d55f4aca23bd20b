"""Bound calls: one quantity of one robot with fixed buffers, for control loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..algorithms.quantities import FEXT, SETTINGS, quantity
from ..arrays import masked
from ..errors import InputError, UnknownName
from ..model import configuration
from .evaluator import Evaluator

Array = np.ndarray


class Bound:
    """A call without allocations: write into the input arrays, call, read the result arrays.

    >>> step = robot.bind("forward_dynamics_derivatives")
    >>> step.q[:], step.v[:], step.tau[:] = q, v, tau
    >>> step()
    >>> step.da_dq

    Inputs of one sample: `q` (nq,) and, depending on the quantity, `v`, `a`, `tau` (nv,), `fext` (njoints, 6).
    `step.results` names the results. The arrays remain the same objects for the life of the bound call.

    options: of the quantity, as `Evaluator.run` takes them. fixed: inputs that the call does not change, by name.
    run(quantity, given, fext, out): computes where a direct call cannot, and explains what is wrong with inputs.
    again: a function and its arguments that make such a call, for copies.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        name: str,
        fext: bool,
        options: Mapping[str, Any],
        fixed: Mapping[str, Array],
        run: Callable[..., Any],
        again: tuple[Any, ...],
    ) -> None:
        record = quantity(name)
        if fext and not record.forces:
            raise InputError(f"fext: {name} takes no external forces")
        self.quantity, self._run, self._again = name, run, again
        inputs = (*record.inputs, *((FEXT,) if fext else ()), *((SETTINGS,) if SETTINGS.name in fixed else ()))
        size = evaluator.inputs.sizes(options.get("contacts"))
        shapes = record.input_shapes([i.name for i in inputs], size)
        self.inputs = tuple(k for k in shapes if k not in fixed)
        self.results = tuple(r.name for r in record.results)
        self._given = {k: np.array(fixed[k]) if k in fixed else np.zeros(shape) for k, shape in shapes.items()}
        for i in inputs:
            if i.axes == ("q",):
                self._given[i.name][:] = configuration.neutral(evaluator.space)
        found = zip(self.results, record.result_shapes(size), strict=True)
        self._found = {k: np.zeros(shape) for k, shape in found}
        self._arrays = {k: self._given[k] for k in self.inputs} | self._found
        self.__dict__.update(self._arrays)
        self._go = evaluator.bound(record, options, self._given, list(self._found.values()))  # None: `run` computes

    def __call__(self) -> None:
        """Compute the results from the current inputs."""
        if self._go is None or self._go():
            given = tuple(x for name, x in self._given.items() if name not in (FEXT.name, SETTINGS.name))
            self._run(self.quantity, given, self._given.get(FEXT.name), tuple(self._found.values()))

    def __repr__(self) -> str:
        inputs, results = (", ".join(f"{k} {self._arrays[k].shape}" for k in x) for x in (self.inputs, self.results))
        return f"<bound {self.quantity}: {inputs} -> {results}>"

    def __setattr__(self, name: str, value: Any) -> None:
        """`step.q = q` writes into the array, which remains the same object."""
        known = self.__dict__.get("_arrays", {})
        if name in known:
            if masked(value):
                raise InputError(f"{name}: some entries are masked; fill them in first")
            try:
                known[name][...] = value
            except (TypeError, ValueError) as error:
                raise InputError(f"{name}: expected shape {known[name].shape}, got {np.shape(value)}") from error
        elif known and not name.startswith("_"):
            raise UnknownName(f"array of a bound {self.quantity}", name, known)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Array:
        """Called for missing attributes only; declares to type checkers that attributes are arrays."""
        raise AttributeError(f"a bound {self.__dict__.get('quantity', 'call')} has no array {name!r}")

    def __reduce__(self) -> tuple:
        return (*self._again, {k: x.copy() for k, x in self._arrays.items()})

    def __setstate__(self, arrays: dict[str, Array]) -> None:
        """Write what the arrays of the original held into those of a copy."""
        for name, x in arrays.items():
            self._arrays[name][...] = x
