"""The evaluator: computes any quantity of one model, on either backend; checks inputs and explains failures.

`Evaluator.run` tries, in this order: a direct call for one sample, one for a short batch, compiled code for any
batch, the NumPy reference.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from .. import arrays
from ..algorithms.derivatives import methods
from ..algorithms.quantities import FEXT, QUANTITIES, SETTINGS, Input, Quantity, quantity, shape, sizes
from ..arrays import Out, copied, outputs
from ..conventions.coordinates import STANDARD, Coordinates
from ..conventions.rules import translated
from ..errors import InputError, UnknownName
from ..forks import unforked
from ..jit.effort import Effort
from ..jit.fingerprint import Fingerprints
from ..jit.flags import Flag
from ..jit.graph import TooLong
from ..jit.workers import processors
from ..model import configuration
from ..model.configuration import Places, Space
from ..model.model import Array, Model
from ..model.passive import PassiveJoints
from ..model.tree import Tree
from . import lazy, reference
from .crossover import aza_from
from .margins import refuse_small
from .refusals import in_single, refuse_indefinite, refuse_nonfinite
from .velocities import Function, OwnVelocities

if TYPE_CHECKING:
    from ..jit.kernel import Kernel
    from ..treejit.compiler import TreeCompiler

BACKENDS = ("compiled", "numpy")
MOST_ENTRIES = 1_000_000  # of the results of a quantity of configurations that is compiled
MOST_THREADS = 4096
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


_log = logging.getLogger("featherjet")


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
        backend = backend or os.environ.get("FEATHERJET_BACKEND") or "compiled"
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
        self._direct: dict[Any, Any] = {}  # by call (see `run`): code for one sample, in the precision that ran last
        self._direct_batch: dict[Any, Any] = {}  # likewise, for short batches
        self._ready: dict[Any, Kernel] = {}  # by the same: kernels that have run
        self._kernels: dict[tuple, Kernel | None] = {}
        self._held: WeakKeyDictionary[Any, dict[tuple, Kernel]] = WeakKeyDictionary()  # by contacts, which are data
        self._compiler: TreeCompiler | None = None
        self._fingerprint = Fingerprints()
        self.frames: dict[str, tuple[Array, Array]] = {}  # by name: frames as numbers, in double and single precision
        self._slow: set[str] = set()  # quantities that the reference computes, as the log has said
        # by quantity, frame and viewpoint: code for one sample, and the frame as it reads it (see `frames.run`)
        self.sights: dict[Any, tuple[Callable[..., Any], Array]] = {}
        self.derived: dict[tuple[str, str, str], Quantity] = {}  # derivatives by autodiff: of, by, mode
        self._threads = 1
        if self.coordinates is not None:
            self.standard = self.base.standard
            self.tree, self.unroll = self.standard.tree, self.standard.unroll
        else:
            self.standard, self.tree = self, Tree(model)
            default = {"0": False, "1": True}.get(os.environ.get("FEATHERJET_UNROLL", ""))
            self.unroll = default if unroll is None else unroll
            self.threads = processors() if threads is None else threads
        self.places = Places(self.space)
        self.definite = all(joint.body.definite for joint in model.joints)
        self._sizes = sizes(self.tree) | {"q": self.space.nq}

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
        return self.standard._threads

    @threads.setter
    def threads(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"threads: expected a positive whole number, got {arrays.shortened(count)}")
        if count > MOST_THREADS:
            raise InputError(f"threads: {arrays.shortened(count)} are too many; the limit is {MOST_THREADS}")
        self.standard._threads = int(count)

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
        q = arrays.finite(name, q, (self.space.nq,), f"nq = {self.space.nq}")
        return configuration.unit_parts(self.space, name, q)

    def checked_v(self, name: str, v: Any) -> Array:
        """Vectors (..., nv) over degrees of freedom, finite."""
        return arrays.finite(name, v, (self.space.nv,), f"nv = {self.space.nv}")

    def checked(
        self, record: Quantity, given: Sequence[Any], fext: Any = None, settings: Any = None, contacts: Any = None
    ) -> dict[str, Array]:
        """A quantity's inputs by name, as valid arrays whose batches broadcast."""
        size = self.sizes_with(contacts)
        pairs = self._pairs(record, given, fext, settings)
        inputs = {i.name: self._checked_input(i, x, size) for i, x in pairs}
        arrays.common_batch({i.name: (inputs[i.name], len(i.axes)) for i, _ in pairs})
        return inputs

    def sizes_with(self, contacts: Any) -> dict[str, int]:
        """The lengths of named axes, with contacts (or None) as options of quantities have them."""
        return self._sizes if contacts is None else self._sizes | sizes(self.tree, contacts) | {"q": self.space.nq}

    @staticmethod
    def _pairs(record: Quantity, given: Sequence[Any], fext: Any, settings: Any) -> list[tuple[Input, Any]]:
        optional = ((FEXT, fext), (SETTINGS, settings))
        return [*zip(record.inputs, given, strict=True), *((i, x) for i, x in optional if x is not None)]

    def _checked_input(self, given: Input, x: Any, size: Mapping[str, int]) -> Array:
        checked = arrays.finite(given.name, x, *self._core(given, size))
        return configuration.unit_parts(self.space, given.name, checked) if given.axes == ("q",) else checked

    @staticmethod
    def _core(given: Input, size: Mapping[str, int]) -> tuple[tuple[int, ...], str]:
        """The shape of one sample of an input, and what an error calls it."""
        core = shape(given.axes, size)
        if given.axes in (("q",), ("v",)):
            return core, f"n{given.axes[0]} = {core[0]}"
        if core == (1,):
            return core, "one number"
        if given is FEXT:
            return core, f"njoints = {core[0]}, then force and moment"
        return core, f"{given.axes[0]} = {core[0]}"

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
            key = (name, fext is None, settings is None, *options.values())
            inputs = given if fext is None else (*given, fext)
            if settings is not None:
                inputs = (*inputs, settings)
        try:
            direct, batch = self._direct.get(key), self._direct_batch.get(key)
        except TypeError:  # an option to refuse
            key = direct = batch = None
        if direct is not None:
            results = direct(*inputs) if out is None else direct(*inputs, out=out)
            if results is not None:
                return results
        if batch is not None:
            results = batch(*inputs) if out is None else batch(*inputs, out=out)
            if results is not None:
                return results
        # Everything else: batches, other conventions, first calls, and inputs to refuse.
        record = quantity(name)
        if any(type(x) is not np.ndarray and arrays.is_lazy(x) for x in inputs):
            return self._lazy(name, given, fext, out, settings, options)
        check = partial(self.checked, record, given, fext, settings, options.get("contacts"))
        if "contacts" in options:  # they remember their own code
            key = None
        kernel = self._ready.get(key)
        if kernel is not None:
            return self._by_kernel(record, kernel, inputs, out, check, options, key)
        self.refuse_massless(record)
        options = self._with_method(record, options)
        if self.coordinates is not None and self.translates(record):
            found = translated(self.coordinates, self.base.run_named, record, check(), **options)
            return copied(out, found)
        optional = [i.name for i, x in ((FEXT, fext), (SETTINGS, settings)) if x is not None]
        names = [*(i.name for i in record.inputs), *optional]
        kernel = self.kernel(record, names, options)
        if kernel is not None:
            try:
                return self._by_kernel(record, kernel, inputs, out, check, options, key)
            except TooLong:
                self._kernels[self._key(record, names, options)] = None
                self._warn_slow(record, f"{record.longest} operations")
        checked = check()
        if self.doubts(record):
            refuse_indefinite(self.model, self.run("mass_matrix", [checked["q"]])[0])
        results = self._by_reference(record, checked, options)
        refuse_nonfinite(record, results)
        if all(isinstance(x, np.ndarray) and x.dtype == FLOAT32 for x in given):
            results = in_single(record, results)
        found = copied(out, results)
        refuse_nonfinite(record, found)  # `out` may have rounded it
        return found

    def _lazy(
        self, name: str | Quantity, given: Sequence[Any], fext: Any, out: Out, settings: Any, options: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The results of Dask arrays, which are Dask arrays; inputs with numbers may be among them."""
        record, size = quantity(name), self.sizes_with(options.get("contacts"))
        self.refuse_massless(record)
        pairs = self._pairs(record, given, fext, settings)
        optional = [i.name for i, _ in pairs[len(record.inputs) :]]
        cores = {i.name: self._core(i, size) for i, _ in pairs}
        packed = lazy.packed(self, self._key(record, optional, options), name, options)
        make = partial(lazy.LazyBlock, packed, (self, name, options), optional)
        single = not self.translates(record)
        return lazy.run(make, {i.name: x for i, x in pairs}, cores, record.result_shapes(size), single, out)

    def direct_call(self, name: str, **options: Any) -> Callable[..., tuple[Array, ...] | None] | None:
        """The code that `run` has found for one sample without forces: (*inputs, out=None) -> results, or None.

        It takes one sample in the precision that ran last, and gives None for anything else.
        """
        return self._direct.get((name, True, True, *options.values()) if options else name)

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

    def _warn_slow(self, record: Quantity, much: str) -> None:
        """Log, once for each quantity, that the reference computes it because compiling would take too long."""
        if record.name not in self._slow:
            self._slow.add(record.name)
            text = "%s of robot %r has more than %s, too many to compile: NumPy computes it, slowly"
            _log.warning(text, record.name, self.model.name, much)

    def _with_method(self, record: Quantity, options: dict[str, Any]) -> dict[str, Any]:
        """Options without a method that is the default anyway, or with the one that suits the robot's size."""
        if "method" not in options:
            return options
        method = options["method"]
        found = methods.find(record.name, method, self.tree.coupling is not None)
        if found.sized:
            method = found.sized[self.tree.nv >= aza_from(self.backend)]
            found = record.methods[method]
        rest = {k: x for k, x in options.items() if k != "method"}
        default = method == "auto" or (self.backend == "compiled" and self.compiler.takes(record, found.function))
        return rest if default else {**rest, "method": method}

    # Compiled code

    def _by_kernel(
        self,
        record: Quantity,
        kernel: Kernel,
        inputs: Sequence[Any],
        out: Out,
        check: Callable[[], dict[str, Array]],
        options: dict[str, Any],
        key: Any,
    ) -> tuple[Array, ...]:
        """The results of compiled code; `check` raises if something is wrong with the inputs.

        key: under which `run` finds the code again; None for code that it need not find.
        """
        if not all(type(x) is np.ndarray and (x.dtype == FLOAT64 or x.dtype == FLOAT32) for x in inputs):
            inputs = list(check().values())
        elif not kernel.made:
            check()  # a mistake is reported before anything is compiled
        try:
            outs = None if out is None else self._outputs(kernel, inputs, outputs(out))
            overlap = outs and record.margins and any(np.may_share_memory(o, x) for o in outs for x in inputs)
            kept = {name: x.copy() for name, x in check().items()} if overlap else None  # where a margin is small
            results, flags = kernel(inputs, outs, self._threads)
        except (TypeError, ValueError):
            check()
            raise
        if flags or not results[0].size:  # an empty batch runs no code, so nothing was checked
            checked = kept or check()
            if flags & Flag.SMALL_MARGIN and all(x.dtype == FLOAT32 for x in inputs):
                double, flags = kernel(list(checked.values()), None, self._threads)
                results = copied(outs, double) if outs else tuple(x.astype(FLOAT32) for x in double)
            if flags & Flag.SMALL_MARGIN:
                exact = self._by_reference(record, checked, options)  # raises if the margin is really zero
                if "contacts" in record.margins:  # code for one robot leaves redundant contacts to it
                    dtypes = (x.dtype for x in results)
                    results = copied(outs, exact) if outs else tuple(map(np.ndarray.astype, exact, dtypes))
            refuse_nonfinite(record, results)
        single = all(x.dtype == FLOAT32 for x in inputs)
        if outs is None and single and kernel.in_double:
            results = in_single(record, results)
        elif outs and (not single or kernel.in_double) and any(o.dtype != FLOAT64 for o in outs):
            refuse_nonfinite(record, outs)  # they were rounded
        if self.doubts(record):
            refuse_indefinite(self.model, self.run("mass_matrix", [(kept or check())["q"]])[0])
        elif key is not None and not flags and results[0].size:
            self._ready[key] = kernel
            if results[0].ndim == len(kernel.shapes[0]):
                self._direct[key] = kernel.direct_call(inputs)
            elif results[0].ndim == len(kernel.shapes[0]) + 1:
                self._direct_batch[key] = kernel.direct_batch_call(inputs)
        return results

    def doubts(self, record: Quantity) -> bool:
        """Whether a quantity needs a positive definite mass matrix that this model may not have."""
        return "mass" in record.margins and not self.definite

    def _outputs(self, kernel: Kernel, inputs: Sequence[Array], outs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return `outs` if they have the shapes of the results, else raise."""
        named = {str(k): (np.asarray(x), core) for k, (x, core) in enumerate(zip(inputs, kernel.cores, strict=True))}
        batch = arrays.common_batch(named)
        want = [(*batch, *shape) for shape in kernel.shapes]
        if [o.shape for o in outs] != want:
            expected, got = (", ".join(map(str, shapes)) for shapes in (want, [o.shape for o in outs]))
            raise InputError(f"out: expected shapes {expected}; got {got or 'none'}")
        return outs

    def kernel(
        self,
        record: Quantity,
        names: Sequence[str],
        options: dict[str, Any] | None = None,
        effort: Effort = Effort.FULL,
    ) -> Kernel | None:
        """The compiled code of a quantity for these inputs, or None if the reference must compute it.

        None on the numpy backend, in other conventions, for methods that are not compiled, and for quantities that
        have more operations than their record allows, or too many entries, and would take too long to compile.
        effort: what the compiler does for the code.
        """
        options = options or {}
        if self.backend != "compiled" or self.translates(record):
            return None
        if record.of_space and sum(map(prod, record.result_shapes(self._sizes))) > MOST_ENTRIES:
            self._warn_slow(record, f"{MOST_ENTRIES} entries")
            return None
        if "contacts" in options and self.compiler.holds(record):
            found = self._held.setdefault(options["contacts"], {})
            key = (record, *names, effort)
            return found.get(key) or found.setdefault(key, self._made(record, names, options, effort))
        key = self._key(record, names, options)
        key = key if effort is Effort.FULL else (key, effort)
        try:
            return self._kernels[key]
        except KeyError:
            pass
        method = options.get("method")
        kernel = None if method and not record.methods[method].traced else self._made(record, names, options, effort)
        return self._kernels.setdefault(key, kernel)  # the first of several threads wins

    def _made(self, record: Quantity, names: Sequence[str], options: dict[str, Any], effort: Effort) -> Kernel:
        kernel = self.compiler.kernel(record, names, options, effort)
        kernel.in_double = not self.model.modest
        return kernel

    def code_for_one(
        self, record: Quantity, names: Sequence[str], options: Mapping[str, Any]
    ) -> Callable[..., int] | None:
        """Machine code (inputs..., results...) -> flags for one state in doubles; None if there is none."""
        options = self._with_method(record, dict(options))
        kernel = self.kernel(record, names, options)
        try:
            return None if kernel is None else kernel.direct_code()
        except TooLong:
            self._kernels[self._key(record, names, options)] = None
            return None

    def prepare(self, record: Quantity, names: Sequence[str], options: dict[str, Any]) -> None:
        """Compile a quantity's code for one state and for batches of doubles, if it has any."""
        if self.translates(record):
            self.base.prepare(record, names, options)
            return
        kernel = self.kernel(record, names, options)
        try:
            if kernel is not None:
                _ = kernel.batch, kernel.single  # loads them
        except TooLong:
            self._kernels[self._key(record, names, options)] = None

    def _key(self, record: Quantity, names: Sequence[str], options: Mapping[str, Any]) -> tuple:
        return (record, *names, *((k, self._fingerprint(x)) for k, x in sorted(options.items())))

    @property
    def compiler(self) -> TreeCompiler:
        if self._compiler is None:
            with unforked:
                from ..treejit.compiler import TreeCompiler

            self._compiler = TreeCompiler(self.tree, self.unroll, self.places, self.model.name)
        return self._compiler

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
        self.standard._by_reference(quantity(name), self.to_standard(inputs), {})

    def _by_reference(
        self, record: Quantity, inputs: Mapping[str, Array], options: Mapping[str, Any]
    ) -> tuple[Array, ...]:
        """The results at checked inputs in standard coordinates, chunk by chunk; raises where a margin is zero."""
        results, margins, batch = reference.evaluate_in_chunks(self._walked(record), record, inputs, options)
        for kind, found in reversed(margins.items()):
            refuse_small(self.model, kind, found, batch)
        return results
