"""The evaluator: computes any quantity of one model, on either backend; checks inputs and explains failures.

`Evaluator.run` tries, in this order: a direct call for one sample, one for a short batch, compiled code for any
batch, the NumPy reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import arrays
from ..algorithms.contacts.scene import ContactSet
from ..algorithms.quantities import FEXT, QUANTITIES, SETTINGS, Quantity, quantity
from ..arrays import Out, copied
from ..conventions.coordinates import STANDARD, Coordinates
from ..conventions.rules import translated
from ..errors import InputError, UnknownName
from ..jit.effort import Effort
from ..jit.graph import TooLong
from ..jit.workers import processors
from ..model import configuration
from ..model.configuration import Places, Space
from ..model.model import Array, Model
from ..model.passive import PassiveJoints
from ..model.tree import Tree
from ..settings import setting
from . import lazy, reference
from .inputs import InputChecks
from .kernels import QuantityKernels
from .margins import refuse_small
from .ready import ReadyCalls, call_key
from .refusals import in_single, refuse_indefinite, refuse_nonfinite
from .running import KernelCall
from .velocities import Function, OwnVelocities

if TYPE_CHECKING:
    from ..jit.kernel import Kernel
    from ..treejit.compiler import TreeCompiler
    from ..treejit.stepping import StepCompiler

BACKENDS = ("compiled", "numpy")
MOST_THREADS = 4096


class HasEvaluator(Protocol):
    """A robot, for layers that need only its evaluator."""

    @property
    def evaluator(self) -> Evaluator: ...


class Evaluator:
    """Computes the quantities of one model.

    backend: "compiled" or "numpy"; threads: for batches; unroll: see TreeCompiler; convention: the coordinates of
    inputs and results; velocities: B(q) of a user's own velocities. `base` is the evaluator of the same model in whose
    coordinates this one computes, and `standard` that in the standard convention.
    """

    def __init__(
        self,
        model: Model,
        backend: str | None = None,
        threads: int | None = None,
        unroll: bool | None = None,
        convention: str = STANDARD,
        velocities: Function | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"expected a Model, got {type(model).__name__}; to load a file use featherjet.load")
        backend = backend or setting("FEATHERJET_BACKEND") or "compiled"
        if backend not in BACKENDS:
            raise UnknownName("backend", backend, BACKENDS)
        self.model, self.backend = model, backend
        self.passive: PassiveJoints | None = None  # the joints' laws that dynamics include; see `LawfulEvaluator`
        self.base, self.coordinates = self, None
        if velocities is not None:
            self.base = Evaluator(model, backend, threads, unroll, convention)
            self.coordinates = OwnVelocities(self.base.space, velocities, self.base.run_any)
        elif convention != STANDARD:
            self.coordinates = Coordinates(model, convention)
            self.base = Evaluator(model, backend, threads, unroll)
        self.space: Space = self.coordinates or model
        self.frames: dict[str, tuple[Array, Array]] = {}  # by name: frames as numbers, in double and single precision
        self.derived: dict[tuple[str, str, str], Quantity] = {}  # derivatives by autodiff: of, by, mode
        if self.coordinates is not None:
            self.standard = self.base.standard
            self.tree, self.unroll = self.standard.tree, self.standard.unroll
        else:
            self.standard, self.tree = self, Tree(model)
            default = {"0": False, "1": True}.get(setting("FEATHERJET_UNROLL") or "")
            self.unroll = default if unroll is None else unroll
            self._threads = processors() if threads is None else checked_threads(threads)
        self.places = Places(self.space)
        self.definite = all(joint.body.definite for joint in model.joints)
        self.inputs = InputChecks(self.space, self.tree)
        self.ready = ReadyCalls()
        self.kernels = QuantityKernels(model, self.tree, self.inputs, backend, self.unroll, self.ready)

    def with_model(self, model: Model) -> Evaluator:
        """An evaluator of another model with the same settings."""
        return Evaluator(**{**self.__getstate__(), "model": model})

    def with_convention(self, convention: str) -> Evaluator:
        for known in (self, self.base, self.standard):
            if convention == known.convention:
                return known
        return Evaluator(self.model, self.backend, self.threads, self.unroll, convention)

    def with_velocities(self, velocities: Function) -> Evaluator:
        self.refuse_laws("with_velocities")
        if isinstance(self.coordinates, OwnVelocities):
            raise InputError("with_velocities: this robot has its own velocities already; start from the plain robot")
        if self.tree.coupling is not None:
            raise InputError(
                "with_velocities: joints of this robot mimic others; load it with mimic=False, or lock them"
            )
        return Evaluator(**{**self.__getstate__(), "velocities": velocities})

    def __getstate__(self) -> dict[str, Any]:
        settings = {"backend": self.backend, "threads": self.threads, "unroll": self.unroll}
        if isinstance(self.coordinates, OwnVelocities):
            settings["velocities"] = self.coordinates.function
        return {
            "model": self.model,
            **settings,
            "convention": (self.base if "velocities" in settings else self).convention,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    @property
    def convention(self) -> str:
        return STANDARD if self.coordinates is None else self.coordinates.convention

    @property
    def threads(self) -> int:
        """The most threads a batch may use; results do not depend on it."""
        return self._threads if self.standard is self else self.standard.threads

    @threads.setter
    def threads(self, count: int) -> None:
        if self.standard is self:
            self._threads = checked_threads(count)
        else:
            self.standard.threads = count

    # Coordinates

    def to_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """q and, if given, v, a (only with v) and tau in standard coordinates; other inputs as they are."""
        return (
            dict(given) if self.coordinates is None else self.base.to_standard(self.coordinates.to_standard(given)[0])
        )

    def from_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inverse of `to_standard`."""
        return (
            dict(given) if self.coordinates is None else self.coordinates.from_standard(self.base.from_standard(given))
        )

    def moved(self, q: Array, dv: Array) -> Array:
        """q moved along the tangent vector dv, (..., nq); both may be complex."""
        if isinstance(self.coordinates, OwnVelocities):
            dv = self.coordinates.velocity_map(q).to_standard(dv)
        return configuration.integrate(self.space, q, dv)

    def translates(self, record: Quantity) -> bool:
        """Whether a quantity is computed in the coordinates of `base`; each convention's q has its own `integrate`."""
        return self.coordinates is not None and (isinstance(self.coordinates, OwnVelocities) or not record.of_space)

    # Checks of inputs

    def checked_q(self, name: str, q: Any) -> Array:
        """Configurations (..., nq), finite, with quaternions of norm one."""
        return self.inputs.configuration(name, q)

    def checked_v(self, name: str, v: Any) -> Array:
        """Vectors (..., nv) over degrees of freedom, finite."""
        return self.inputs.vector(name, v)

    # Evaluation

    def run(
        self, name: str | Quantity, given: Sequence[Any], fext: Any = None, out: Out = None, settings: Any = None,
        **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        """A quantity's results from its inputs in order; `options` may hold `method` and the options of its record."""
        # The hot path: one sample, by code that has run before. Every line here costs each call.
        key: Any = name
        inputs = given
        if options or fext is not None or settings is not None:  # tell these calls apart, too
            key = call_key(name, options, fext, settings)
            inputs = given if fext is None else (*given, fext)
            if settings is not None:
                inputs = (*inputs, settings)
        try:
            call = self.ready.calls.get(key)
        except TypeError:  # an option to refuse
            call = None
        if call is not None:
            results = call(*inputs) if out is None else call(*inputs, out=out)
            if results is not None:
                return results
        # Everything else: long batches, other conventions, first calls, and inputs to refuse.
        record = quantity(name)
        if any(type(x) is not np.ndarray and arrays.is_lazy(x) for x in inputs):
            return self._lazy(name, given, fext, out, settings, options)
        check = partial(self.inputs.all, record, given, fext, settings, options.get("contacts"))
        ready = self.ready
        if "contacts" in options:
            ready, key = ready.of(options["contacts"]), (name, fext is None)
        remember, kernel = partial(ready.remember, key), ready.kernel_of(key)
        if kernel is not None:
            return KernelCall(self, record, kernel, check, options, remember)(inputs, out)
        self.refuse_massless(record)
        options = self.kernels.with_method(record, options)
        if self.coordinates is not None and self.translates(record):
            found = translated(self.coordinates, self.base.run_named, record, check(), **options)
            return copied(out, found)
        optional = [i.name for i, x in ((FEXT, fext), (SETTINGS, settings)) if x is not None]
        names = [*(i.name for i in record.inputs), *optional]
        kernel = self.kernel(record, names, options)
        if kernel is not None:
            try:
                return KernelCall(self, record, kernel, check, options, remember)(inputs, out)
            except TooLong:
                self.kernels.give_up(record, names, options)
        return self._by_numpy(record, check(), options, out, all(map(is_single, given)))

    def _by_numpy(
        self, record: Quantity, checked: dict[str, Array], options: dict[str, Any], out: Out, single: bool
    ) -> tuple[Array, ...]:
        """The results of the reference, in single precision if the inputs were."""
        if self.may_be_indefinite(record):
            refuse_indefinite(self.model, self("mass_matrix", checked["q"]))
        results = self.by_reference(record, checked, options)
        refuse_nonfinite(record, results)
        found = copied(out, in_single(record, results) if single else results)
        refuse_nonfinite(record, found)  # `out` may have rounded it
        return found

    def _lazy(
        self, name: str | Quantity, given: Sequence[Any], fext: Any, out: Out, settings: Any, options: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The results of Dask arrays, which are Dask arrays; inputs with numbers may be among them."""
        record, size = quantity(name), self.inputs.sizes(options.get("contacts"))
        self.refuse_massless(record)
        pairs = self.inputs.pairs(record, given, fext, settings)
        optional = [i.name for i, _ in pairs[len(record.inputs) :]]
        cores = {i.name: self.inputs.core(i, size) for i, _ in pairs}
        packed = lazy.packed(self, self.kernels.key(record, optional, options), name, options)
        make = partial(lazy.LazyBlock, packed, (self, name, options), optional)
        single = not self.translates(record)
        return lazy.run(make, {i.name: x for i, x in pairs}, cores, record.result_shapes(size), single, out)

    def __call__(self, name: str, *given: Any, fext: Any = None, out: Out = None, **options: Any) -> Any:
        """A quantity in the form users get it: an array, or a named tuple of arrays."""
        return quantity(name).packed(self.run(name, given, fext, out, **options))

    def run_named(self, name: str | Quantity, inputs: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
        """Like `run`, with inputs by name; inputs and options that the quantity does not take are ignored."""
        record = quantity(name)
        known = {k: x for k, x in options.items() if k in record.options or (k == "method" and x in record.methods)}
        optional = {i.name: inputs[i.name] for i in record.optional if i.name in inputs}
        found = record.name if QUANTITIES.get(record.name) is record else record  # names are found in the hot path
        return self.run(found, [inputs[i.name] for i in record.inputs], **optional, **known)

    def refuse_massless(self, record: Quantity) -> None:
        """Raise InputError if a quantity needs a centre of mass that the model does not have."""
        if record.needs_mass and self.model.mass == 0:
            raise InputError(f"robot {self.model.name!r} has no mass, so no centre of mass")

    def refuse_laws(self, what: str) -> None:
        """Raise InputError if dynamics include joint laws, which `what` would leave out."""
        if self.passive is not None:
            raise InputError(
                f"{what} does not know joint laws; use the robot without them, and subtract what dampers and springs "
                "take from its torques"
            )

    # Compiled code

    def may_be_indefinite(self, record: Quantity) -> bool:
        """Whether a quantity needs a positive definite mass matrix that this model may not have."""
        return "mass" in record.margins and not self.definite

    def kernel(
        self, record: Quantity, names: Sequence[str], options: dict[str, Any] | None = None,
        effort: Effort = Effort.FULL,
    ) -> Kernel | None:  # fmt: skip
        """The compiled code of a quantity for these inputs, or None if the reference must compute it.

        effort: what the compiler does for the code.
        """
        return None if self.translates(record) else self.kernels.kernel(record, names, options or {}, effort)

    def bound(
        self, record: Quantity, options: Mapping[str, Any], inputs: Mapping[str, Array], results: Sequence[Array]
    ) -> Callable[[], int] | None:
        """() -> flags: machine code for one state of doubles in these arrays; None if there is none."""
        if self.translates(record) or self.may_be_indefinite(record):
            return None
        return self.kernels.bound(record, options, inputs, results)

    def steps(self, contacts: ContactSet, stops: tuple[int, ...] = (), balanced: bool = False) -> StepCompiler:
        """What makes the kernels of time steps and impacts with these feet; see `treejit.stepping.StepCompiler`."""
        return self.kernels.steps(contacts, stops, balanced)

    def prepare(self, record: Quantity, names: Sequence[str], options: dict[str, Any]) -> None:
        """Compile a quantity's code for one state and for batches of doubles, if it has any."""
        if self.translates(record):
            self.base.prepare(record, names, options)
        else:
            self.kernels.prepare(record, names, options)

    @property
    def compiler(self) -> TreeCompiler:
        return self.kernels.compiler

    # The reference

    def reference(self, name: str | Quantity, inputs: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
        """The results of the reference, then margins, at checked inputs, which may be complex."""

        record = quantity(name)
        if self.coordinates is not None and self.translates(record):
            return translated(self.coordinates, self.base.reference, record, inputs, **options)
        taken = {i.name: inputs[i.name] for i in (*record.inputs, *record.optional) if i.name in inputs}
        return reference.evaluate(self._walked(record), record, taken, **options)

    def run_any(self, record: Quantity, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
        """A quantity at checked inputs that may be complex."""
        run = self.reference if any(np.iscomplexobj(x) for x in inputs.values()) else self.run_named
        return run(record, inputs)

    def _walked(self, record: Quantity) -> Any:
        """What a quantity's algorithm walks: the Tree, or Places."""
        return self.places if record.of_space else self.tree

    def refuse_singular(self, name: str, inputs: Mapping[str, Array]) -> None:
        """Raise SingularMassMatrix if a quantity at checked inputs has no margin."""
        if self.standard is not self:
            self.standard.refuse_singular(name, self.to_standard(inputs))
        else:
            self.by_reference(quantity(name), inputs, {})

    def by_reference(
        self, record: Quantity, inputs: Mapping[str, Array], options: Mapping[str, Any]
    ) -> tuple[Array, ...]:
        """The results at checked inputs in standard coordinates, chunk by chunk; raises where a margin is zero."""
        results, margins, batch = reference.evaluate_in_chunks(self._walked(record), record, inputs, options)
        for kind, found in reversed(margins.items()):
            refuse_small(self.model, kind, found, batch)
        return results


def is_single(x: Any) -> bool:
    """Whether x is an array of single precision."""
    return isinstance(x, np.ndarray) and x.dtype == np.float32


def checked_threads(count: Any) -> int:
    """A number of threads as users give it; raises if it is none, or too large."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InputError(f"threads: expected a positive whole number, got {arrays.shortened(count)}")
    if count > MOST_THREADS:
        raise InputError(f"threads: {arrays.shortened(count)} are too many; the limit is {MOST_THREADS}")
    return int(count)
