"""LLVM for the border of a kernel: the loop over samples, and inputs checked and transposed into lanes.

NumPy calls `entry`, the inner loop of a gufunc: (char **args, intp *dims, intp *steps, void *data). The first operand
is an integer, the address of the caller's own word for flags. Lanes beyond the last sample repeat it: they write the
same numbers to the same place, so no lane needs a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..flags import Flag
from .lanes import (
    I1,
    I8,
    I32,
    I64,
    LINE,
    PTR,
    VOID,
    Builder,
    Function,
    FunctionType,
    Lanes,
    Module,
    StructType,
    Value,
    begun,
    external,
    transposed,
)
from .platform import runs_alone, variable
from .transfers import FEW, Transfers
from .workspace import forget_exceptions, release, report_of, reserve

ENTRY = FunctionType(VOID, [PTR] * 4)
Axes = Mapping[str, Sequence[int | str]]
AHEAD = 2  # rounds of samples between prefetching the results' memory and writing it


def emit_entry(
    module: Module,
    many: Function,
    few: Function | None = None,
    lanes: int = 1,
    unfit: Callable[[Builder, Value], Value] | None = None,
    apart: bool = False,
) -> None:
    """`entry`: calls `many`, or `few` (if given) for fewer samples than half the lanes, or where `data` is unfit.

    apart: whether the caller needs its inputs again, if a watched result is flagged; results must not overlap them.
    """
    emit_apart(module, apart)
    f = Function(module, ENTRY, "entry")
    f.attributes.add("nounwind")
    b = begun(f)
    samples = b.load(f.args[1], typ=I64, align=8)
    with b.if_then(b.icmp_signed("<", samples, I64(1)), likely=False):
        b.ret_void()
    if few is not None:
        short = b.icmp_signed("<", samples, I64(max(2, lanes // 2)))
        with b.if_then(b.or_(short, unfit(b, f.args[3])) if unfit else short):
            b.call(few, f.args)
            b.ret_void()
    b.call(many, f.args)
    b.ret_void()


def emit_apart(module: Module, apart: bool) -> None:
    """A constant of the code: whether results must lie apart from inputs."""
    if not runs_alone(module):
        variable(module, "apart", I64(int(apart)))


@dataclass(frozen=True)
class Operand:
    """An operand of the gufunc: the name of an input or output, and its core dimensions, as numbers or names."""

    name: str
    core: tuple[int | str, ...]
    output: bool = False


def operands_of(inputs: Axes, results: Axes) -> list[Operand]:
    """The operands of code, the word for flags first."""
    given = [Operand(name, tuple(core)) for name, core in inputs.items()]
    return [Operand("report", ()), *given, *(Operand(name, tuple(core), True) for name, core in results.items())]


class Border:
    """The loop over samples for one number of lanes; subclasses compute.

    lean: whether functions that kernels share are called, not inlined.
    """

    def __init__(self, w: Lanes, operands: Sequence[Operand], inputs: list[str], lean: bool = False) -> None:
        self.w, self.operands, self.names = w, operands, inputs
        self.transfers = Transfers(w, inline=len(operands) <= FEW and not lean)

    def scratch(self, samples: Value) -> Value | None:
        """Allocate memory, which `emit` frees; set `inputs`, where each input goes, and `sizes`, their lengths."""
        raise NotImplementedError

    def together(self, samples: Value) -> Value | int:
        """How many samples go together."""
        return self.w.L

    def begin(self, samples: Value, s: Value) -> None:
        """Bring the inputs of the samples from s on into lanes."""
        self.point(self.args, s, samples)
        self.read_inputs()

    def compute(self, samples: Value, s: Value) -> None:
        """Compute and write the results of the samples from s on; their inputs are in lanes."""
        raise NotImplementedError

    def emit(self, name: str = "samples") -> Function:
        w, L = self.w, self.w.L
        f = w.function(name, [PTR] * 4)
        self.args, dims, steps, self.data = f.args
        args = self.args
        b = self.b = begun(f)
        samples = b.load(dims, typ=I64, align=8)
        self.report = report_of(b, args)
        self.strides = self.core_strides(steps)
        self.steps = [w.integer(b, steps, I64(o)) for o in range(len(self.operands))]
        self.lane_pointers = b.alloca(PTR, I32(L * len(self.operands)))
        self.inputs: list[Value] = []
        self.sizes: list[Value] = []
        self.overflow: Value = I1(0)
        memory = self.scratch(samples)
        with w.loop(b, I64(0), samples, self.together(samples)) as s:
            self.begin(samples, s)
            self.compute(samples, s)
        if memory is not None:
            release(w.module, b, args, memory)
        forget_exceptions(w.module, b)
        b.ret_void()
        return f

    # Memory

    def allocate(self, counts: Sequence[Value], zeroed: bool = False) -> tuple[Value, list[Value]]:
        """Memory for pieces of `counts` numbers, in whole cache lines; and where each piece begins.

        If there is none, or if a size does not fit into 64 bits, the code sets a flag and returns.
        """
        b, w = self.b, self.w
        line = LINE // w.bytes
        rounded = [b.and_(self.checked("sadd", count, I64(line - 1)), I64(-line)) for count in counts]
        total: Value = I64(line)
        for count in rounded:
            total = self.checked("sadd", total, count)
        size = self.checked("smul", total, I64(w.bytes))
        size = b.select(self.overflow, I64(-1), size)  # more than any system has
        memory = reserve(w.module, b, self.args, size, zeroed)
        at = b.inttoptr(b.and_(b.add(b.ptrtoint(memory, I64), I64(LINE - 1)), I64(-LINE)), PTR)
        pieces = []
        for count in rounded:
            pieces.append(at)
            at = w.number(b, at, count)
        return memory, pieces

    def product(self, *factors: Value) -> Value:
        """A size in scratch memory; if it does not fit into 64 bits, `allocate` refuses it."""
        total = factors[0]
        for factor in factors[1:]:
            total = self.checked("smul", total, factor)
        return total

    def checked(self, operation: str, x: Value, y: Value) -> Value:
        """The sum (sadd) or product (smul) of integers; `overflow` remembers whether one did not fit into 64 bits."""
        b, pair = self.b, StructType([I64, I1])
        if runs_alone(self.w.module):  # its sizes are known, and small processors have no instructions to check them
            return (b.add if operation == "sadd" else b.mul)(x, y)
        found = b.call(external(self.w.module, f"llvm.{operation}.with.overflow.i64", pair, I64, I64), [x, y])
        self.overflow = b.or_(self.overflow, b.extract_value(found, 1))
        return b.extract_value(found, 0)

    def core_strides(self, steps: Value) -> list[list[Value]]:
        """Byte strides of each operand's core dimensions, which NumPy lists after the outer ones."""
        found, at = [], len(self.operands)
        for operand in self.operands:
            found.append([self.w.integer(self.b, steps, I64(at + k)) for k in range(len(operand.core))])
            at += len(operand.core)
        return found

    def outputs(self) -> list[int]:
        """The numbers of the operands that are results."""
        return [o for o, x in enumerate(self.operands) if x.output]

    def dimension(self, name: int | str) -> Value:
        """The length of a core dimension: a number, or a count that `data` has."""
        return I64(name) if isinstance(name, int) else self.w.slot(self.b, self.data, name)

    def count(self, core: Sequence[int | str]) -> Value:
        """The entries of an array."""
        return self.product(I64(1), *map(self.dimension, core))

    def sample(self, o: int, s: Value) -> Value:
        """Where sample s of an operand begins."""
        base = self.b.load(self.b.gep(self.args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
        return self.b.gep(base, [self.b.mul(s, self.steps[o])], source_etype=I8)

    def flat(self, o: int) -> Value:
        """Whether an operand's core is contiguous."""
        b = self.b
        contiguous: Value = I1(1)
        size: Value = I64(self.w.bytes)
        for name, stride in zip(reversed(self.operands[o].core), reversed(self.strides[o]), strict=True):
            contiguous = b.and_(contiguous, b.icmp_signed("==", stride, size))
            size = b.mul(size, self.dimension(name))
        return contiguous

    def point(self, args: Value, s: Value, samples: Value) -> None:
        """Store where each lane's sample begins, in each operand."""
        b, w = self.b, self.w
        last = b.sub(samples, I64(1))
        for o in range(len(self.operands)):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR)
            for l in range(w.L):
                sample = b.add(s, I64(l))
                sample = b.select(b.icmp_signed("<", sample, last), sample, last)
                pointer = b.gep(base, [b.mul(sample, self.steps[o])], source_etype=I8)
                b.store(pointer, b.gep(self.lane_pointers, [I64(o * w.L + l)], source_etype=PTR))

    def lanes_of(self, o: int) -> Value:
        """The pointers to each lane's sample of an operand."""
        return self.b.gep(self.lane_pointers, [I64(o * self.w.L)], source_etype=PTR)

    def lane_pointer(self, o: int, lane: Value) -> Value:
        return self.transfers.lane(self.b, self.lanes_of(o), lane)

    def each_lane(self, o: int, shift: Value) -> list[Value]:
        """Pointers into an operand, `shift` bytes after the beginning of each lane's sample."""
        return [self.b.gep(self.lane_pointer(o, I64(l)), [shift], source_etype=I8) for l in range(self.w.L)]

    # Inputs

    def read_inputs(self) -> None:
        """Read all inputs into lanes; flag them if any is not finite or large: then their scaled sum is not finite."""
        b, w = self.b, self.w
        total = w.cell(b)
        w.store(b, w.const(0.0), total)
        for name, target, size in zip(self.names, self.inputs, self.sizes, strict=True):
            o = next(o for o, x in enumerate(self.operands) if x.name == name)
            if w.L == 1:
                self.gather(o, target, total)
                continue
            with b.if_else(self.flat(o), likely=True) as (yes, no):
                with yes:
                    b.call(self.transfers.read(), [self.lanes_of(o), size, target, total])
                with no:
                    self.gather(o, target, total)
        self.flag(b.fcmp_unordered("!=", b.fmul(w.load(b, total), w.const(0.0)), w.const(0.0)), Flag.LARGE)
        self.normalise()

    def gather(self, o: int, target: Value, total: Value) -> None:
        """Read an input of any layout."""
        core = self.operands[o].core
        function = self.transfers.gather(len(core))
        self.b.call(function, [self.lanes_of(o), target, total, *map(self.dimension, core), *self.strides[o]])

    def normalise(self) -> None:
        """Check and normalise the parts of inputs that must have norm one; by default there are none."""

    def normalise_part(self, x: Value, start: Value, end: Value) -> None:
        """Normalise entries start to end of an input; flag them if their norm is not one up to the tolerance."""
        b, w = self.b, self.w
        square = w.cell(b)
        w.store(b, w.const(0.0), square)
        with w.loop(b, start, end) as k:
            y = w.load(b, w.vector(b, x, k))
            w.store(b, b.fadd(w.load(b, square), b.fmul(y, y)), square)
        s = w.load(b, square)
        high = b.fcmp_unordered(">", s, w.const(1 + w.kind.unit))
        self.flag(b.or_(high, b.fcmp_unordered("<", s, w.const(1 - w.kind.unit))), Flag.NOT_UNIT)
        scale = b.fdiv(w.const(1.0), w.sqrt(b, s))
        with w.loop(b, start, end) as k:
            pointer = w.vector(b, x, k)
            w.store(b, b.fmul(w.load(b, pointer), scale), pointer)

    # Results

    def write_lanes(self, source: Value, o: int) -> None:
        """Write one result of all lanes: L contiguous entries of L samples at a time, or else entry by entry.

        The last entries overlap those before them.
        """
        b, w = self.b, self.w
        if w.L == 1:
            self.write_entries(source, o)
            return
        count: Value = I64(1)
        for axis in self.operands[o].core:
            count = b.mul(count, self.dimension(axis))
        fits = b.and_(self.flat(o), b.icmp_signed(">=", count, I64(w.L)))
        with b.if_else(fits, likely=True) as (yes, no):
            with yes:
                lanes, last = [self.lane_pointer(o, I64(l)) for l in range(w.L)], b.sub(count, I64(w.L))
                with w.loop(b, I64(0), count, w.L) as k:
                    first = b.select(b.icmp_signed("<", k, last), k, last)
                    x = [w.load(b, w.vector(b, source, b.add(first, I64(j)))) for j in range(w.L)]
                    for y, lane in zip(transposed(b, x), lanes, strict=True):
                        w.store_unaligned(b, y, w.number(b, lane, first))
            with no:
                self.write_entries(source, o)

    def write_entries(self, source: Value, o: int) -> None:
        """Write one result of all lanes, of any layout."""
        b, w = self.b, self.w

        def entry(index: Value, shift: Value) -> None:
            x = w.load(b, w.vector(b, source, index))
            for l, pointer in enumerate(self.each_lane(o, shift)):
                w.store_unaligned(b, b.extract_element(x, I32(l)) if w.L > 1 else x, pointer)

        w.entries(b, [self.dimension(axis) for axis in self.operands[o].core], self.strides[o], entry)

    # Flags

    def flag(self, bad: Value, flag: Flag) -> None:
        b, w = self.b, self.w
        with b.if_then(w.any_lane(b, bad), likely=False):
            b.store(b.or_(b.load(self.report, typ=I64, align=8), I64(int(flag))), self.report, align=8)

    def watch(self, margin: Value) -> None:
        """Flag samples whose margin is not clearly positive."""
        self.flag(self.b.fcmp_unordered("<=", margin, self.w.const(self.w.kind.margin)), Flag.SMALL_MARGIN)
