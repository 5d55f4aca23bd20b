"""Checks of what users give to quantities: shapes, finite numbers, quaternions of norm one, batches that broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import arrays
from ..algorithms.quantities import FEXT, SETTINGS, Input, Quantity, shape, sizes
from ..model import configuration
from ..model.configuration import Space
from ..model.model import Array
from ..model.tree import Tree


class InputChecks:
    """Checks inputs of the quantities of one robot, whose q and v are those of `space`."""

    def __init__(self, space: Space, tree: Tree) -> None:
        self.space, self._tree = space, tree
        self._sizes = sizes(tree) | {"q": space.nq}

    def sizes(self, contacts: Any = None) -> dict[str, int]:
        """The lengths of named axes, with contacts (or None) as options of quantities have them."""
        return self._sizes if contacts is None else self._sizes | sizes(self._tree, contacts) | {"q": self.space.nq}

    def configuration(self, name: str, q: Any) -> Array:
        """Configurations (..., nq), finite, with quaternions of norm one."""
        q = arrays.finite(name, q, (self.space.nq,), f"nq = {self.space.nq}")
        return configuration.unit_parts(self.space, name, q)

    def vector(self, name: str, v: Any) -> Array:
        """Vectors (..., nv) over degrees of freedom, finite."""
        return arrays.finite(name, v, (self.space.nv,), f"nv = {self.space.nv}")

    def all(
        self, record: Quantity, given: Sequence[Any], fext: Any = None, settings: Any = None, contacts: Any = None
    ) -> dict[str, Array]:
        """A quantity's inputs by name, as valid arrays whose batches broadcast."""
        size, inputs = self.sizes(contacts), dict[str, Array]()
        pairs = self.pairs(record, given, fext, settings)
        for i, x in pairs:
            checked = arrays.finite(i.name, x, *self.core(i, size))
            inputs[i.name] = configuration.unit_parts(self.space, i.name, checked) if i.axes == ("q",) else checked
        arrays.common_batch({i.name: (inputs[i.name], len(i.axes)) for i, _ in pairs})
        return inputs

    @staticmethod
    def pairs(record: Quantity, given: Sequence[Any], fext: Any, settings: Any) -> list[tuple[Input, Any]]:
        """Each input that is given, and its value."""
        optional = ((FEXT, fext), (SETTINGS, settings))
        return [*zip(record.inputs, given, strict=True), *((i, x) for i, x in optional if x is not None)]

    @staticmethod
    def core(given: Input, size: Mapping[str, int]) -> tuple[tuple[int, ...], str]:
        """The shape of one sample of an input, and what an error calls it."""
        core = shape(given.axes, size)
        if given.axes in (("q",), ("v",)):
            return core, f"n{given.axes[0]} = {core[0]}"
        if core == (1,):
            return core, "one number"
        if given is FEXT:
            return core, f"njoints = {core[0]}, then force and moment"
        return core, f"{given.axes[0]} = {core[0]}"
