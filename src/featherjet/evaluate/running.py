"""One call of compiled code: its inputs checked where they must be, its flags explained, its results in shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import arrays
from ..algorithms.quantities import Quantity
from ..arrays import Out, copied, outputs
from ..errors import InputError
from ..jit.flags import Flag
from ..model.model import Array, Model
from .refusals import in_single, refuse_indefinite, refuse_nonfinite

if TYPE_CHECKING:
    from ..jit.kernel import Kernel

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


class CallingEvaluator(Protocol):
    """The evaluator of a call, which computes by the reference what code leaves to it."""

    model: Model

    @property
    def threads(self) -> int: ...
    def may_be_indefinite(self, record: Quantity) -> bool: ...
    def by_reference(
        self, record: Quantity, inputs: Mapping[str, Array], options: Mapping[str, Any]
    ) -> tuple[Array, ...]: ...
    def __call__(self, name: str, *given: Any) -> Any: ...


@dataclass(eq=False)
class KernelCall:
    """A call of a kernel that computes a quantity.

    check() gives the inputs by name as valid arrays, or raises. options: of the quantity, for the reference, which
    computes where margins are small. remember(kernel): told of a call without flags, which may go straight to machine
    code the next time.
    """

    evaluator: CallingEvaluator
    record: Quantity
    kernel: Kernel
    check: Callable[[], dict[str, Array]]
    options: Mapping[str, Any]
    remember: Callable[[Kernel], None]

    def __call__(self, inputs: Sequence[Any], out: Out) -> tuple[Array, ...]:
        """The results."""
        record, kernel, check = self.record, self.kernel, self.check
        if not all(type(x) is np.ndarray and (x.dtype == FLOAT64 or x.dtype == FLOAT32) for x in inputs):
            inputs = list(check().values())
        elif not kernel.made:
            check()  # a mistake is reported before anything is compiled
        try:
            outs = None if out is None else self._outputs(inputs, outputs(out))
            overlap = outs and record.margins and any(np.may_share_memory(o, x) for o in outs for x in inputs)
            kept = {name: x.copy() for name, x in check().items()} if overlap else None  # where a margin is small
            results, flags = kernel(inputs, outs, self.evaluator.threads)
        except (TypeError, ValueError):
            check()
            raise
        single = all(x.dtype == FLOAT32 for x in inputs)
        if flags or not results[0].size:  # an empty batch runs no code, so nothing was checked
            results = self._explained(kept or check(), results, flags, outs, single)
        if outs is None and single and kernel.in_double:
            results = in_single(record, results)
        elif outs and (not single or kernel.in_double) and any(o.dtype != FLOAT64 for o in outs):
            refuse_nonfinite(record, outs)  # they were rounded
        if self.evaluator.may_be_indefinite(record):
            refuse_indefinite(self.evaluator.model, self.evaluator("mass_matrix", (kept or check())["q"]))
        elif not flags and results[0].size:
            self.remember(kernel)
        return results

    def _explained(
        self,
        checked: dict[str, Array],
        results: tuple[Array, ...],
        flags: int,
        outs: tuple[Array, ...] | None,
        single: bool,
    ) -> tuple[Array, ...]:
        """The results of a call with flags, by the reference where margins are small; raises for what is wrong."""
        if flags & Flag.SMALL_MARGIN and single:
            double, flags = self.kernel(list(checked.values()), None, self.evaluator.threads)
            results = copied(outs, double) if outs else tuple(x.astype(FLOAT32) for x in double)
        if flags & Flag.SMALL_MARGIN:
            exact = self.evaluator.by_reference(self.record, checked, self.options)  # raises if it is really zero
            if "contacts" in self.record.margins:  # code for one robot leaves redundant contacts to it
                dtypes = (x.dtype for x in results)
                results = copied(outs, exact) if outs else tuple(map(np.ndarray.astype, exact, dtypes))
        refuse_nonfinite(self.record, results)
        return results

    def _outputs(self, inputs: Sequence[Array], outs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return `outs` if they have the shapes of the results, else raise."""
        cores = zip(inputs, self.kernel.cores, strict=True)
        batch = arrays.common_batch({str(k): (np.asarray(x), core) for k, (x, core) in enumerate(cores)})
        want = [(*batch, *shape) for shape in self.kernel.shapes]
        if [o.shape for o in outs] != want:
            expected, got = (", ".join(map(str, shapes)) for shapes in (want, [o.shape for o in outs]))
            raise InputError(f"out: expected shapes {expected}; got {got or 'none'}")
        return outs
