"""The differentiable functions of one robot: their shapes, and their machine code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import arrays
from ..algorithms.quantities import FEXT, FRAME, QUANTITIES, RESTITUTION, SETTINGS, Quantity, shape, sizes
from ..contact import Contacts
from ..contact import dynamics as contact
from ..contact.bilateral import evaluator_of
from ..errors import InputError
from ..evaluate import frames
from ..evaluate.differentiation import differentiated
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..evaluate.frames import FrameName
from ..jit.fingerprint import fingerprint
from ..jit.kernel import Kernel
from ..jit.number import DOUBLE
from ..simulation.timestep import TimeStep
from . import steps
from .ambient import Ambient, CompiledAmbient
from .lifted import replayed
from .rules import Arrays, Point, Shape
from .table import FunctionRecord, Role, smooth


class Selection(NamedTuple):
    """The choices that a function is made for: a frame and its viewpoint, contacts, a time step."""

    frame: FrameName | None = None
    viewpoint: str = "local"
    contacts: Contacts | None = None
    restitution: float = 0.0
    step: TimeStep | None = None


class RobotFunction:
    """A differentiable function of one robot, in one selection. Two are equal only if they are the same object.

    inputs, results: the core shapes of one sample; input_tangents, result_tangents: those of their tangent vectors.
    """

    def __init__(self, robot: RobotFunctions, record: FunctionRecord, selection: Selection) -> None:
        self.robot, self.record, self.selection = robot, record, selection
        if record.quantity is not None and "contacts" in self.quantity.options and selection.contacts is None:
            raise InputError(f"{record.name}: needs contacts")
        size = robot.sizes(selection)
        self.inputs: list[Shape] = [shape(p.axes, size) for p in record.inputs]
        self.results: list[Shape] = [shape(p.axes, size) for p in record.results]
        self.input_tangents: list[Shape] = [shape(p.tangent, size) for p in record.inputs]
        self.result_tangents: list[Shape] = [shape(p.tangent, size) for p in record.results]
        self.curved = any(p.role is not Role.VECTOR for p in record.results)  # tangents depend on where results are

    def __repr__(self) -> str:
        return f"{self.record.name} of {self.robot.evaluator.model.name}"

    @property
    def name(self) -> str:
        return self.record.name

    def another(self, name: str) -> RobotFunction:
        """Another function of the same robot in the same selection."""
        return self.robot.function(name, self.selection)

    @cached_property
    def quantity(self) -> Quantity:
        """The record of the quantity whose code computes the function."""
        assert self.record.quantity is not None
        found = QUANTITIES[self.record.quantity]
        by = self.record.by
        return found if by is None else differentiated(self.robot.evaluator.model, found, by, "auto")

    @cached_property
    def constants(self) -> dict[str, np.ndarray]:
        """Inputs of the code that the selection fixes, by name, in doubles."""
        found: dict[str, np.ndarray] = {}
        names = [i.name for i in self.quantity.inputs]
        if FRAME.name in names:
            if self.selection.frame is None:
                raise InputError(f"{self.name}: needs a frame")
            found[FRAME.name] = frames.numbers(self.robot.evaluator, self.selection.frame)[0]
        if RESTITUTION.name in names:
            found[RESTITUTION.name] = np.array([self.selection.restitution])
        if "contacts" in self.quantity.options:
            settings = contact.options_of(self.robot.evaluator, self.selection.contacts)[1]
            found |= {} if settings is None else {SETTINGS.name: settings}
        return found

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options of the quantity."""
        options: dict[str, Any] = {}
        if "viewpoint" in self.quantity.options:
            options["viewpoint"] = frames.checked_viewpoint(self.record.viewpoint or self.selection.viewpoint)
        if "contacts" in self.quantity.options:
            options |= contact.options_of(self.robot.evaluator, self.selection.contacts)[0]
        return options

    @cached_property
    def order(self) -> list[int | str]:
        """The inputs of the code: the number of an input of the function, or the name of a constant."""
        own = {p.name: k for k, p in enumerate(self.record.inputs)}
        names = [i.name for i in self.quantity.inputs]
        names += [FEXT.name] if FEXT.name in own else []
        names += [SETTINGS.name] if SETTINGS.name in self.constants else []
        return [own.get(name, name) for name in names]

    @cached_property
    def _as_given(self) -> bool:
        """Whether the code takes the function's inputs, in their order, and nothing else."""
        return self.order == list(range(len(self.inputs)))

    @cached_property
    def kernel(self) -> Kernel:
        """The machine code; its inputs are in the order of `order`."""
        evaluator = self.robot.evaluator
        evaluator.refuse_massless(self.quantity)
        own = [p.name for p in self.record.inputs]
        names = [own[k] if isinstance(k, int) else k for k in self.order]
        found = evaluator.kernel(self.quantity, names, self.options)
        if found is None:
            raise InputError(f"{self.name} of robot {evaluator.model.name!r} has no compiled code, which bridges need")
        return found

    @cached_property
    def digest(self) -> str:
        """A hash of the function and the robot, which is the same in every process."""
        evaluator, selection = self.robot.evaluator, self.selection
        held = None if selection.contacts is None else fingerprint(selection.contacts.core)
        constants = None if self.record.quantity is None else fingerprint(self.constants)
        step = None if selection.step is None else fingerprint(selection.step.facts)
        chosen = selection.viewpoint, selection.restitution, held, step
        parts = (self.name, evaluator.compiler.tables(DOUBLE).digest, chosen, constants)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def values(self, *given: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results at NumPy arrays (..., *core), whose batches broadcast; NaN in gives NaN out, nothing is refused.

        All in single precision gives single precision. Quaternions need not be of norm one.
        """
        if self.record.value is not None:
            return tuple(self.record.value(self.point(np, given)))
        inputs: Sequence[np.ndarray] = given
        if not self._as_given:
            kind = np.float32 if all(x.dtype == np.float32 for x in given) else np.float64
            inputs = [given[k] if isinstance(k, int) else self.constants[k].astype(kind) for k in self.order]
        kernel = self.kernel
        if [x.ndim for x in inputs] == kernel.cores:  # one sample
            results = kernel.direct(*inputs)
            if results is not None:
                return results
        return kernel(inputs, None, self.robot.evaluator.threads)[0]

    def point(self, xp: Any, x: Sequence[Any], call: Callable[..., Arrays] | None = None) -> Point:
        """Where rules differentiate. call(name, *inputs): another function, as the framework sees it."""
        if call is None:
            call = lambda name, *given: self.another(name).values(*given)  # noqa: E731
        return Point(
            xp, call, x, self.input_tangents, self.result_tangents, self.robot.ambient.nv,
            self.robot.evaluator.model.mass,
        )  # fmt: skip

    def replay(self, xp: Any, *given: Any) -> list[Any]:
        """The results by the algorithm itself, on arrays of a framework, whose batches are equal."""
        evaluator = self.robot.evaluator
        ports = self.record.inputs
        inputs = {
            p.name: self.robot.ambient.normalised(xp, x) if p.role is Role.CONFIGURATION else x
            for p, x in zip(ports, given, strict=True)
        }
        for name, value in self.constants.items():
            batch = given[0].shape[: given[0].ndim - len(self.inputs[0])]
            inputs[name] = xp.zeros_like(given[0][..., :1]).reshape(*batch, 1) + xp.asarray(value, dtype=given[0].dtype)
        walked = evaluator.places if self.quantity.of_space else evaluator.tree
        return replayed(xp, walked, self.quantity, inputs, **self.options)


class RobotFunctions:
    """The differentiable functions of one robot; bridges ask for them by name."""

    def __init__(self, robot: HasEvaluator, bridge: str) -> None:
        evaluator = evaluator_of(robot, bridge)
        if evaluator.coordinates is not None:
            raise InputError(
                f"{bridge} is not available in the convention {evaluator.convention!r}; "
                "use robot.with_convention('pinocchio')"
            )
        evaluator.refuse_laws(bridge)
        if evaluator.backend != "compiled":
            raise InputError(f"{bridge} needs compiled code, and this robot's backend is {evaluator.backend!r}")
        self.evaluator: Evaluator = evaluator
        self.ambient = Ambient(evaluator.places)
        self.compiled_ambient = CompiledAmbient(self.ambient)
        self._known: dict[Any, RobotFunction] = {}

    def sizes(self, selection: Selection) -> dict[str, int]:
        """The lengths of named axes."""
        core = None if selection.contacts is None else selection.contacts.core
        return sizes(self.evaluator.tree, core) | {"q": self.ambient.nq}

    def function(self, name: str, selection: Selection | None = None) -> RobotFunction:
        """The function of that name in a selection; the same object each time."""
        selection = selection or Selection()
        key = name, self._key(selection)
        found = self._known.get(key)
        return found or self._known.setdefault(key, RobotFunction(self, self._record(name, selection), selection))

    @staticmethod
    def _record(name: str, selection: Selection) -> FunctionRecord:
        return smooth(name) if selection.step is None else steps.records(selection.step)[name]

    def _key(self, selection: Selection) -> Any:
        frame = selection.frame
        if isinstance(frame, tuple):  # a point may be an array, which is no key
            frame = (frame[0], *arrays.finite("point", frame[1], (3,), "x y z").ravel().tolist())
        return (
            frame,
            selection.viewpoint,
            id(selection.contacts),
            selection.restitution,
            id(selection.step),
        )  # `_known` keeps contacts and steps alive
