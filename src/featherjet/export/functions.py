"""What is exported of a robot: the C functions of some quantities, with their arrays; and the code they call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..algorithms.quantities import FEXT, FRAME, SETTINGS, Quantity, quantity
from ..contact import Contacts
from ..contact import dynamics as contact
from ..errors import InputError
from ..evaluate import frames
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName
from ..jit.graph import TooLong
from ..jit.kernel import Kernel
from ..jit.number import Number
from ..model.model import Model
from ..treejit.compiler import TreeCompiler
from .assembly import EntryPoint, steps_of
from .objects import MANY, KernelCode, ObjectBuilder, WorkspaceQuery
from .targets import Machine

Shape = tuple[int, ...]
LONGEST = 100  # characters of a name
RESERVED = frozenset(
    "alignas alignof and asm auto bool break case catch char class concept const constexpr continue decltype default "
    "delete do double else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new not nullptr operator or private protected public register requires restrict return short signed "
    "sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void "
    "volatile while xor main std".split()
)
TAKEN = frozenset(  # targets of CMake, and names of the C library, with f and l for other precisions
    "all clean depend edit_cache help install package preinstall rebuild_cache test uninstall abort abs atof atoi "
    "bsearch calloc exit fprintf fputs fread free fwrite labs malloc memcmp memcpy memmove memset printf puts qsort "
    "rand realloc remove rename scanf signal sprintf srand strcat strcmp strcpy strlen system time acos acosh asin "
    "asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod "
    "frexp gamma hypot ilogb infinity isfinite isinf isnan isnormal j0 j1 jn ldexp lgamma llrint llround log log10 "
    "log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb "
    "scalbln scalbn signbit signgam significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn".split()
)


@dataclass(frozen=True)
class Argument:
    """An array that a C function takes or fills; fixed: its numbers, where they are part of the object."""

    name: str
    shape: Shape
    fixed: np.ndarray | None = None

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Function:
    """A quantity as a C function.

    options: what the quantity takes besides arrays. workspace: bytes it needs for one sample; batch_workspace: for
    batches, 0 if there is no function for them.
    """

    symbol: str
    record: Quantity
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    options: dict[str, Any]
    workspace: int
    batch_workspace: int

    @property
    def passed(self) -> tuple[Argument, ...]:
        """The inputs that the caller passes."""
        return tuple(x for x in self.inputs if x.fixed is None)


@dataclass(frozen=True)
class Package:
    """Everything that the texts of an export say."""

    name: str
    model: Model
    target: Machine
    kind: Number
    functions: Sequence[Function]

    @property
    def workspace(self) -> int:
        """Bytes that suffice for every function."""
        return max(max(f.workspace, f.batch_workspace) for f in self.functions)


@dataclass(frozen=True)
class Choices:
    """What to export besides the quantities' own inputs: forces, a frame and its viewpoint, contacts."""

    fext: bool = False
    frame: FrameName | None = None
    viewpoint: str = "local"
    contacts: Contacts | None = None


def identifier(text: str, what: str) -> str:
    """A text as a C identifier, in lower case."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    found = f"robot_{found}" if found[:1].isdigit() else found
    if not found or len(found) > LONGEST or found in RESERVED | TAKEN or (found[-1] in "fl" and found[:-1] in TAKEN):
        raise InputError(f"{what}: {text!r} makes no name for C; choose another with --name (in Python: name=...)")
    return found


class Exporter:
    """Compiles quantities of one robot for one target and one kind of number.

    forms: of each function: False for one sample, True for batches.
    """

    def __init__(
        self, evaluator: Evaluator, target: Machine, kind: Number, prefix: str, forms: Sequence[bool] = (False,)
    ) -> None:
        if evaluator.coordinates is not None:
            raise InputError(
                f"export: code computes in the standard convention, not in {evaluator.convention!r}; "
                "export robot.with_convention('pinocchio')"
            )
        evaluator.refuse_laws("export")
        self.evaluator, self.target, self.kind, self.prefix, self.forms = evaluator, target, kind, prefix, forms
        self.compiler = TreeCompiler(
            evaluator.tree, evaluator.unroll, evaluator.places, evaluator.model.name, cpu=target
        )
        self.builder = ObjectBuilder(target)
        self._made: dict[tuple[Kernel, bool], tuple[KernelCode, WorkspaceQuery]] = {}

    def function(self, name: str, choices: Choices) -> Function:
        """Add a quantity to the object."""
        record = quantity(name)
        model = self.evaluator.model
        self.evaluator.refuse_massless(record)
        if self.evaluator.may_be_indefinite(record):
            raise InputError(
                f"export: {name} needs a positive definite mass matrix; robot {model.name!r} may have none"
            )
        options, fixed, names = selected(self.evaluator, record, choices, "export")
        kernel = self.compiler.kernel(record, names, options)
        symbol = f"{self.prefix}_{record.name}"
        try:
            needs = self.add(symbol, kernel, fixed)
        except TooLong as e:
            raise InputError(f"export: {name} of robot {model.name!r} is too long to compile: {e}") from e
        inputs = tuple(Argument(k, shape, fixed.get(k)) for k, shape in kernel.inputs.items())
        results = zip(record.results, kernel.shapes, strict=True)
        outputs = tuple(Argument(r.name + "_out" * (r.name in kernel.inputs), shape) for r, shape in results)
        return Function(symbol, record, inputs, outputs, options, *needs)

    def add(self, symbol: str, kernel: Kernel, fixed: Mapping[str, np.ndarray] | None = None) -> tuple[int, int]:
        """Add a kernel to the object; returns the bytes of workspace for one sample and for batches."""
        given = [(shape, (fixed or {}).get(name)) for name, shape in kernel.inputs.items()]
        operands = [*given, *((shape, None) for shape in kernel.shapes)]
        steps = steps_of(operands, self.kind)
        needs = [0, 0]
        for batch in self.forms:
            code, query = self._code(kernel, not batch)
            needs[batch] = max(query.bytes(n, steps) for n in ((1, MANY) if batch else (1,)))
            end = "_batch" * batch
            self.builder.add(code, partial(EntryPoint, symbol + end, operands, self.kind, batch, needs[batch]))
        return needs[0], needs[1]

    def _code(self, kernel: Kernel, single: bool) -> tuple[KernelCode, WorkspaceQuery]:
        key = kernel, single and kernel.separate_single
        if key not in self._made:
            code = KernelCode(*kernel.load(self.kind, key[1]))
            self._made[key] = code, WorkspaceQuery(code)
        return self._made[key]


def selected(
    evaluator: Evaluator, record: Quantity, choices: Choices, what: str
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[str]]:
    """A quantity's options, the inputs that are fixed, and the names of all inputs; `what` begins messages."""
    options: dict[str, Any] = {}
    fixed: dict[str, np.ndarray] = {}
    names = [i.name for i in record.inputs] + [FEXT.name] * (choices.fext and record.forces)
    if FRAME in record.inputs:
        if choices.frame is None:
            raise InputError(f"{what}: {record.name} needs a frame: frame=... (--frame)")
        fixed[FRAME.name] = frames.numbers(evaluator, choices.frame)[0]
    if "viewpoint" in record.options:
        options["viewpoint"] = frames.checked_viewpoint(choices.viewpoint)
    if "contacts" in record.options:
        if choices.contacts is None:
            raise InputError(f"{what}: {record.name} needs contacts=fj.Contacts(...)")
        held, settings = contact.options_of(evaluator, choices.contacts)
        options |= held
        if settings is not None:
            names.append(SETTINGS.name)
            fixed[SETTINGS.name] = np.asarray(settings)
    return options, fixed, names
