"""An evaluator whose dynamics include the joints' own laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import arrays
from ..algorithms.joint_laws import PlainCall
from ..algorithms.quantities import Quantity, quantity
from ..arrays import Out, copied
from ..errors import InputError
from ..model.model import Array, Model
from ..model.passive import SLIP, PassiveJoints
from .evaluator import Evaluator

if TYPE_CHECKING:
    from ..jit.kernel import Kernel
from ..jit.effort import Effort


class LawfulEvaluator(Evaluator):
    """Computes the quantities of a model with dampers, springs and smooth dry friction at its joints.

    `standard` computes them without; simulations, where these laws act anyway, use that one.
    """

    def __init__(self, model: Model, slip: float = SLIP, **settings: Any) -> None:
        super().__init__(model, **settings)
        self.slip = arrays.positive_number("slip", slip)
        self.passive = self._joints = PassiveJoints(model, self.slip)
        self.standard = self.base = Evaluator(model, **settings)

    def with_model(self, model: Model) -> Evaluator:
        return LawfulEvaluator(**{**self.__getstate__(), "model": model})

    def with_convention(self, convention: str) -> Evaluator:
        if convention == self.convention:
            return self
        raise InputError("with_convention: a robot with joint laws knows only 'pinocchio'; convert its plain robot")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "slip": self.slip}

    def run(
        self, name: str | Quantity, given: Sequence[Any], fext: Any = None, out: Out = None, settings: Any = None,
        **options: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        record = self._lawful(quantity(name))
        if record.laws is None:
            return self.base.run(name, given, fext, out, settings, **options)
        if any(type(x) is not np.ndarray and arrays.is_lazy(x) for x in (*given, fext)):
            return self._lazy(name, given, fext, out, settings, options)
        inputs = self.inputs.all(record, given, fext, settings, options.get("contacts"))
        single = all(isinstance(x, np.ndarray) and x.dtype == np.float32 for x in given)

        def plain(other: str | None, inputs: Mapping[str, Array]) -> list[Array]:
            return list(self.base.run_named(other or name, inputs, **options))

        found = record.laws(PlainCall(self._joints, inputs, plain))
        return copied(out, tuple(x.astype(np.float32) for x in found) if single else tuple(found))

    def reference(self, name: str | Quantity, inputs: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
        record = self._lawful(quantity(name))

        def plain(other: str | None, inputs: Mapping[str, Array]) -> list[Array]:
            return list(self.base.reference(other or name, inputs, **options))

        return tuple(
            plain(None, inputs) if record.laws is None else record.laws(PlainCall(self._joints, dict(inputs), plain))
        )

    def kernel(
        self,
        record: Quantity,
        names: Sequence[str],
        options: dict[str, Any] | None = None,
        effort: Effort = Effort.FULL,
    ) -> Kernel | None:
        """The code of quantities that joints' laws do not concern."""
        return self.base.kernel(record, names, options, effort) if self._lawful(record).laws is None else None

    def bound(
        self, record: Quantity, options: Mapping[str, Any], inputs: Mapping[str, Array], results: Sequence[Array]
    ) -> Callable[[], int] | None:
        return self.base.bound(record, options, inputs, results) if self._lawful(record).laws is None else None

    def prepare(self, record: Quantity, names: Sequence[str], options: dict[str, Any]) -> None:
        self.base.prepare(self._lawful(record), names, options)

    def _lawful(self, record: Quantity) -> Quantity:
        if record.laws is None and any(i.name == "tau" for i in record.inputs):
            raise InputError(f"{record} does not know joint laws; use the plain robot")
        return record
