"""Both backends: what runs the quantities of a model, with inputs checked and flags explained."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.derivatives import methods
from ..algorithms.quantities import DIVIDING, INPUTS, UNCOMPILED
from ..arrays import Out, into, outputs
from ..errors import InputError, SingularMassMatrix, UnknownName
from ..model import configuration
from ..model.model import Array, Model
from .reference import Reference

if TYPE_CHECKING:
    from .compiled import Compiled, Specialised

BACKENDS = ("compiled", "numpy")
CHUNK = 4096  # samples the reference treats at a time, so that a large batch does not fill the memory
SINGULAR = 1e-13  # a margin of the mass matrix this small is rounding error

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
SUSPECT = 4  # the flag a kernel raises for pivots that may be zero


def processors() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Backends:
    """Part of `Robot`, which tells what the arguments mean: `_run` computes any quantity."""

    def __init__(
        self, model: Model, backend: str | None = None, threads: int | None = None, unroll: bool | None = None
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"Robot takes a Model, got {type(model).__name__}; to load a file use featherjet.load")
        backend = backend or os.environ.get("FEATHERJET_BACKEND") or "compiled"
        if backend not in BACKENDS:
            raise UnknownName("backend", backend, BACKENDS)
        self.model, self.backend = model, backend
        self._space: configuration.Space = model
        self._reference = Reference(model)
        self._compiled: Compiled | None = None
        self._specialised: dict[type, Specialised] = {}
        self._quick: dict[str, Any] = {}  # the shortest way to each quantity of one state
        self.unroll = {"0": False, "1": True}.get(os.environ.get("FEATHERJET_UNROLL", "")) if unroll is None else unroll
        self.threads = processors() if threads is None else threads

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "backend": self.backend, "threads": self.threads, "unroll": self.unroll}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    @property
    def threads(self) -> int:
        """How many threads a batch may use; results do not depend on it."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"threads: expected a positive whole number, got {count!r}")
        self._threads = int(count)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return self._space.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.model.nv

    @property
    def njoints(self) -> int:
        return self.model.njoints

    def _q(self, name: str, q: ArrayLike) -> Array:
        q = arrays.numbers(name, q, (self.nq,), f"nq = {self.nq}")
        return arrays.unit_parts(self._space, name, q)

    def _v(self, name: str, v: ArrayLike) -> Array:
        return arrays.numbers(name, v, (self.nv,), f"nv = {self.nv}")

    def _pair(self, **given: Array) -> tuple[Array, ...]:
        """Arrays whose batches broadcast."""
        arrays.common_batch({name: (x, 1) for name, x in given.items()})
        return tuple(given.values())

    def _run(
        self, quantity: str, given: Sequence[Any], fext: Any = None, out: Out = None, **static: Any
    ) -> tuple[Array, ...]:
        """A quantity by the backend: inputs checked, flags explained."""
        quick = self._quick.get(quantity)
        if quick is not None and fext is None and not static:
            results = quick(*given) if out is None else quick(*given, out=out)
            if results is not None:
                return results
        if self.backend != "compiled" or static or quantity in UNCOMPILED:
            results = self._run_reference(quantity, self._checked(quantity, given, fext), **static)
            single = all(isinstance(x, np.ndarray) and x.dtype == FLOAT32 for x in given)
            return into(out, tuple(r.astype(FLOAT32) for r in results) if single else results)
        compiled = self._compiled or self._compile()
        inputs = given if fext is None else (*given, fext)
        if not all(type(x) is np.ndarray and (x.dtype == FLOAT64 or x.dtype == FLOAT32) for x in inputs):
            inputs = tuple(self._checked(quantity, given, fext).values())
        outs = None if out is None else self._outputs(quantity, inputs, outputs(out))
        try:
            kernel = compiled.kernel(quantity, fext is not None)
            results, flags = kernel(inputs, outs, self._threads)
        except (TypeError, ValueError):
            self._checked(quantity, given, fext)  # says what is wrong, and where
            raise
        if flags or not results[0].size:  # an empty batch runs no kernel, so nothing has been looked at
            checked = self._checked(quantity, given, fext)
            if flags & SUSPECT:
                self._run_reference(quantity, checked)  # raises if the mass matrix is singular indeed
        elif quick is None and fext is None and results[0].ndim == len(kernel.shapes[0]):
            self._quick[quantity] = kernel.quick
        return results

    def _outputs(self, quantity: str, inputs: Sequence[Array], outs: tuple[Array, ...]) -> tuple[Array, ...]:
        """`out`, if it has the shapes of the results."""
        kernel = (self._compiled or self._compile()).kernel(quantity, len(inputs) > len(INPUTS[quantity]))
        named = {str(k): (x, core) for k, (x, core) in enumerate(zip(inputs, kernel.cores, strict=True))}
        batch = arrays.common_batch(named)
        want = [(*batch, *shape) for shape in kernel.shapes]
        if [o.shape for o in outs] != want:
            expected, got = (", ".join(map(str, shapes)) for shapes in (want, [o.shape for o in outs]))
            raise InputError(f"out: expected arrays of shape {expected}; got {got or 'none'}")
        return outs

    def _bindable(self, quantity: str) -> tuple[tuple[str, ...], bool]:
        """A quantity's inputs, and whether it takes external forces."""
        inputs = INPUTS[quantity]
        return inputs, "a" in inputs or "tau" in inputs

    def _kernel(self, quantity: str, fext: bool):
        """Compiled code for a quantity, or None where there is none."""
        if self.backend != "compiled":
            return None
        return (self._compiled or self._compile()).kernel(quantity, fext)

    def _compile(self) -> Compiled:
        from .compiled import Compiled

        self._compiled = Compiled(self._reference.tree, self.unroll)
        return self._compiled

    def _checked(self, quantity: str, given: Sequence[Any], fext: Any) -> dict[str, Array]:
        """The inputs by name, as arrays that may be trusted."""
        inputs: dict[str, Array] = {}
        for name, value in zip(INPUTS[quantity], given, strict=True):
            inputs[name] = self._q(name, value) if name == "q" else self._v(name, value)
        if fext is not None:
            letters = f"njoints = {self.njoints}, then force and moment"
            inputs["fext"] = arrays.numbers("fext", fext, (self.njoints, 6), letters)
        arrays.common_batch({name: (x, 2 if name == "fext" else 1) for name, x in inputs.items()})
        return inputs

    def _by_reference(self, quantity: str, **static: Any) -> Callable[..., tuple[Array, ...]]:
        """What runs an algorithm: as it is written, or as machine code, if it has no kernel of its own."""
        kernel = quantity not in UNCOMPILED and not static
        traced = "method" not in static or methods.find(quantity, static["method"]).traced
        return self._reference.run if kernel or not traced else self._specialise(self._reference)

    def _specialise(self, reference: Reference) -> Callable[..., tuple[Array, ...]]:
        """`reference.run`, or on the compiled backend the same as machine code for this robot."""
        if self.backend != "compiled":
            return reference.run
        found = self._specialised.get(type(reference))
        if found is None:
            from .compiled import Specialised

            found = Specialised(reference, (self._compiled or self._compile()).tables)
            self._specialised[type(reference)] = found
        return partial(found.run, threads=self._threads)

    def _run_reference(
        self, quantity: str, inputs: dict[str, Array], run: Callable | None = None, **static: Any
    ) -> tuple[Array, ...]:
        """By the reference, or whatever runs in its place, chunk by chunk."""
        chunk = max(1, CHUNK // self.nv) if "method" in static else CHUNK  # methods may keep nv numbers for each entry
        cores = {name: 2 if name == "fext" else 1 for name in inputs}
        batch = arrays.common_batch({name: (x, cores[name]) for name, x in inputs.items()})
        flat = {
            name: np.broadcast_to(x, (*batch, *x.shape[x.ndim - cores[name] :])).reshape(
                -1, *x.shape[x.ndim - cores[name] :]
            )
            for name, x in inputs.items()
        }
        total = int(np.prod(batch))
        run = run or self._by_reference(quantity, **static)
        pieces = []
        for start in range(0, max(total, 1), chunk):
            part = {name: x[start : start + chunk] for name, x in flat.items()}
            results = run(quantity, part, **static)
            if quantity in DIVIDING:
                self._refuse_singular(results[-1], start, batch)
                results = results[:-1]
            pieces.append(results)
        return tuple(np.concatenate(r).reshape((*batch, *r[0].shape[1:])) for r in zip(*pieces, strict=True))

    def _refuse_singular(self, margins: Array, start: int, batch: tuple[int, ...]) -> None:
        bad = ~(margins > SINGULAR)
        if bad.any():
            sample = int(np.argwhere(bad)[0, 0])
            # a margin of zero spoils those of all joints nearer the root: the outermost bad one is to blame
            dof = int(np.flatnonzero(bad[sample])[-1])
            joint = next(
                j.name for j, i in zip(self.model.joints, self.model.v_starts, strict=True) if i <= dof < i + j.nv
            )
            where = f" at sample {tuple(map(int, np.unravel_index(start + sample, batch)))}" if batch else ""
            raise SingularMassMatrix(
                f"robot {self.name!r}: the mass matrix is singular{where}: joint {joint!r} can move without moving any "
                "inertia. Give the links beyond it a mass and inertia, give the joint an armature, or lock it."
            )
