"""LLVM for XLA's calls: `handler`, which XLA calls with a frame of buffers, runs a kernel's `entry` on them.

The handler is the same for every kernel. What it runs stands in `job`, words that whoever loads the code writes
(`jit.xla`). It does what XLA's C API asks of a handler (xla/ffi/api/c_api.h, whose structs have the offsets below):
answers the question for its version, reads the buffers, and returns null or an error. Large batches become tasks on
XLA's own pool of threads, cut between whole vectors of samples; the last of them fulfils a promise to XLA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..batches import GRAIN
from ..objects import ModuleText
from .border import ENTRY
from .foreign import at, field, function_at, plain_lanes
from .lanes import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Constant,
    Function,
    FunctionType,
    Lanes,
    Value,
    begun,
    external,
)
from .platform import Platform, integers, letters, variable

# The words of `job`: addresses of code and data; of the byte strides as NumPy has them; of a pair for each operand,
# where it is (an argument of XLA's, a result, a constant) and its number or address; the number of operands; XLA's code
# for their type; the axes of one sample of the first result; which flags raise; samples in a task, or zero for none;
# addresses of a message for each flag.
JOB = ("entry", "data", "steps", "sources", "operands", "dtype", "core", "raising", "task", "messages")
ARGUMENT, RESULT, CONSTANT = range(3)
VERSION = (0, 1)  # of XLA's API: XLA accepts those from 0.1 up to its own
INVALID_ARGUMENT = 3  # XLA's code for errors
FRAME = {"extension": 8, "api": 16, "context": 24, "arguments": 72, "results": 112, "future": 168}
BUFFER = {"dtype": 16, "data": 24, "rank": 32, "dims": 40}
# Of XLA's functions: where they are, and the bytes of what they take.
API = {
    "error": (48, 28), "schedule": (136, 40), "threads": (144, 32), "promise": (152, 24), "fulfil": (160, 24),
    "fail": (168, 32),
}  # fmt: skip
METADATA, ABOUT = {"kind": 8, "answer": 24}, {"major": 24, "minor": 28, "traits": 32}
SHARES = 2  # tasks for each thread, so that a late one does not keep the others waiting for long
CREW = ("left", "flags", "api", "future")  # the first words of what tasks share; the operands' addresses follow
TASK = ("crew", "start", "count")
NULL, FOREIGN = Constant(PTR, None), FunctionType(PTR, [PTR])
MISTYPED = "featherjet: an array has another precision than the code was made for"


def emit_handler(platform: Platform) -> Iterator[ModuleText]:
    """The module with `handler` and `job`."""
    w = plain_lanes(platform, "xla")
    HandlerCode(w).emit()
    yield ModuleText("\n".join(map(str, w.module.global_values)))


class HandlerCode:
    """Emits the handler and the functions that it calls."""

    def __init__(self, w: Lanes) -> None:
        self.w = w
        self.job = variable(w.module, "job", integers([0] * len(JOB)), fixed=False)
        self.mistyped = variable(w.module, "mistyped", letters(MISTYPED), private=True)

    def emit(self) -> None:
        self.stretch, self.verdict = self.emit_stretch(), self.emit_verdict()
        self.task = self.emit_task()
        share = self.emit_share()
        f = Function(self.w.module, FOREIGN, "handler")
        (frame,) = f.args
        b = begun(f)
        self.answer(b, field(b, frame, FRAME["extension"], PTR))
        api, arguments, results = (field(b, frame, FRAME[x], PTR) for x in ("api", "arguments", "results"))
        bases = b.alloca(PTR, self.word(b, "operands"))
        self.find(b, api, arguments, results, bases)
        first = b.load(results, typ=PTR, align=8)
        dims, axes = field(b, first, BUFFER["dims"], PTR), field(b, first, BUFFER["rank"], I64)
        total = b.alloca(I64)
        b.store(I64(1), total)
        with self.w.loop(b, I64(0), b.sub(axes, self.word(b, "core"))) as k:
            b.store(b.mul(b.load(total, typ=I64), self.w.integer(b, dims, k)), total)
        count = b.load(total, typ=I64)
        with b.if_then(b.call(share, [frame, api, bases, count])):
            b.ret(NULL)
        b.ret(b.call(self.verdict, [api, b.call(self.stretch, [bases, I64(0), count])]))

    def answer(self, b: Builder, extension: Value) -> None:
        """Say which version of the API this is, if that is asked."""
        with b.if_then(is_there(b, extension)):
            kind = field(b, extension, METADATA["kind"], I32)
            with b.if_then(b.icmp_unsigned("==", kind, I32(1))):
                about = field(b, extension, METADATA["answer"], PTR)
                for name, x in zip(("major", "minor", "traits"), (*VERSION, 0), strict=True):
                    b.store(I32(x), b.gep(about, [I64(ABOUT[name])], source_etype=I8))
                b.ret(NULL)

    def find(self, b: Builder, api: Value, arguments: Value, results: Value, bases: Value) -> None:
        """Store where operands are; return an error if one has another type than the code."""
        w, sources = self.w, self.address(b, "sources")
        with w.loop(b, I64(0), self.word(b, "operands")) as k:
            where, which = (w.integer(b, sources, b.add(b.mul(k, I64(2)), I64(j))) for j in range(2))
            place = at(b, bases, k, PTR)
            with b.if_else(b.icmp_unsigned("==", where, I64(CONSTANT))) as (yes, no):
                with yes:
                    b.store(b.inttoptr(which, PTR), place)
                with no:
                    listed = b.select(b.icmp_unsigned("==", where, I64(ARGUMENT)), arguments, results)
                    buffer = b.load(at(b, listed, which, PTR), typ=PTR, align=8)
                    dtype = b.zext(field(b, buffer, BUFFER["dtype"], I32), I64)
                    with b.if_then(b.icmp_unsigned("!=", dtype, self.word(b, "dtype"))):
                        b.ret(self.error(b, api, b.ptrtoint(self.mistyped, I64)))
                    b.store(field(b, buffer, BUFFER["data"], PTR), place)

    def emit_stretch(self) -> Function:
        """(bases, start, count) -> flags: samples from `start` on of the operands at `bases`."""
        w = self.w
        f = w.function("stretch", [PTR, I64, I64], I64)
        bases, start, count = f.args
        b = begun(f)
        n, steps = self.word(b, "operands"), self.address(b, "steps")
        args, report, address, dims = b.alloca(PTR, b.add(n, I64(1))), *(b.alloca(I64) for _ in range(3))
        for x, place in ((I64(0), report), (b.ptrtoint(report, I64), address), (count, dims), (address, args)):
            b.store(x, place)
        with w.loop(b, I64(0), n) as k:
            after = b.add(k, I64(1))
            base = b.load(at(b, bases, k, PTR), typ=PTR, align=8)
            shift = b.mul(start, w.integer(b, steps, after))
            b.store(b.gep(base, [shift], source_etype=I8), at(b, args, after, PTR))
        b.call(function_at(self.address(b, "entry"), ENTRY), [args, dims, steps, self.address(b, "data")])
        b.ret(b.load(report, typ=I64))
        return f

    def emit_verdict(self) -> Function:
        """(api, flags) -> an error of XLA's if flags are set that raise, or null."""
        f = self.w.function("verdict", [PTR, I64], PTR)
        b = begun(f)
        bad = b.and_(f.args[1], self.word(b, "raising"))
        with b.if_then(b.icmp_unsigned("==", bad, I64(0))):
            b.ret(NULL)
        first = b.cttz(bad, I1(1))
        b.ret(self.error(b, f.args[0], self.w.integer(b, self.address(b, "messages"), first)))
        return f

    def emit_task(self) -> Function:
        """(task): computes it; the last of a crew fulfils the promise, and frees what they share."""
        w = self.w
        f = w.function("task", [PTR])
        b = begun(f)
        crew, start, count = (field(b, f.args[0], 8 * k, PTR if x == "crew" else I64) for k, x in enumerate(TASK))
        own = b.call(self.stretch, [at(b, crew, I64(len(CREW))), start, count])
        flags = at(b, crew, I64(CREW.index("flags")))
        b.atomic_rmw("or", flags, own, "acq_rel")
        left = b.atomic_rmw("sub", at(b, crew, I64(CREW.index("left"))), I64(1), "acq_rel")
        with b.if_then(b.icmp_unsigned("==", left, I64(1))):
            every, api, future = b.load(flags, typ=I64), *(field(b, crew, 8 * k, t) for k, t in ((2, PTR), (3, I64)))
            b.call(external(w.module, "free", VOID, PTR), [crew])
            error = b.call(self.verdict, [api, every])
            with b.if_else(is_there(b, error)) as (failed, fine):
                with failed:
                    self.ask(b, api, "fail", [future, b.ptrtoint(error, I64)])
                with fine:
                    self.ask(b, api, "fulfil", [future])
        b.ret_void()
        return f

    def emit_share(self) -> Function:
        """(frame, api, bases, total) -> whether all samples went to XLA's threads, in tasks.

        They do not if there are too few threads or samples.
        """
        w = self.w
        f = w.function("share", [PTR, PTR, PTR, I64], I1)
        frame, api, bases, total = f.args
        b = begun(f)

        def refuse(condition: Value) -> None:
            with b.if_then(condition):
                b.ret(I1(0))

        least = self.word(b, "task")
        refuse(b.icmp_unsigned("==", least, I64(0)))
        refuse(b.icmp_unsigned("<", total, b.mul(least, I64(2))))
        context, number = field(b, frame, FRAME["context"], I64), b.alloca(I64)
        b.store(I64(1), number)
        self.ask(b, api, "threads", [context, b.ptrtoint(number, I64)])
        threads = b.load(number, typ=I64)
        refuse(b.icmp_unsigned("<", threads, I64(2)))
        wanted = smaller(b, b.mul(threads, I64(SHARES)), b.udiv(total, least))
        grains = b.udiv(b.add(b.udiv(total, wanted), I64(GRAIN)), I64(GRAIN))
        size = b.mul(grains, I64(GRAIN))
        tasks = b.udiv(b.sub(b.add(total, size), I64(1)), size)
        n = self.word(b, "operands")
        shared = b.add(n, I64(len(CREW)))
        words = b.add(b.mul(tasks, I64(len(TASK))), shared)
        crew = b.call(external(w.module, "malloc", PTR, I64), [b.mul(words, I64(8))])
        refuse(b.not_(is_there(b, crew)))
        promise = self.ask(b, api, "promise", [I64(0)])
        future = w.integer(b, promise, I64(2))
        b.store(future, b.gep(frame, [I64(FRAME["future"])], source_etype=I8))
        put(b, crew, [tasks, I64(0), b.ptrtoint(api, I64), future])
        with w.loop(b, I64(0), n) as k:
            b.store(w.integer(b, bases, k), at(b, crew, b.add(k, I64(len(CREW)))))
        first, last = at(b, crew, shared), b.sub(tasks, I64(1))
        with w.loop(b, I64(0), tasks) as k:
            task, start = at(b, first, b.mul(k, I64(len(TASK)))), b.mul(k, size)
            put(b, task, [b.ptrtoint(crew, I64), start, smaller(b, b.sub(total, start), size)])
            with b.if_else(b.icmp_unsigned("==", k, last)) as (own, others):
                with own:
                    b.call(self.task, [task])
                with others:
                    words = [context, b.ptrtoint(self.task, I64), b.ptrtoint(task, I64)]
                    refused = self.ask(b, api, "schedule", words, result=True)
                    with b.if_then(is_there(b, refused)):
                        b.call(self.task, [task])
        b.ret(I1(1))
        return f

    def word(self, b: Builder, name: str) -> Value:
        """A word of the job."""
        return self.w.integer(b, self.job, I64(JOB.index(name)))

    def address(self, b: Builder, name: str) -> Value:
        return b.inttoptr(self.word(b, name), PTR)

    def ask(self, b: Builder, api: Value, name: str, words: Sequence[Value], result: bool = False) -> Value:
        """Call a function of XLA's with words after a header; what it has written there, or its result."""
        offset, size = API[name]
        with b.goto_entry_block():
            given = b.alloca(I64, I32(2 + len(words)))
        put(b, given, [I64(size), I64(0), *words])
        found = b.call(function_at(field(b, api, offset, PTR), FOREIGN), [given])
        return found if result else given

    def error(self, b: Builder, api: Value, message: Value) -> Value:
        """An error of XLA's."""
        return self.ask(b, api, "error", [message, I64(INVALID_ARGUMENT)], result=True)


def put(b: Builder, base: Value, words: Sequence[Value]) -> None:
    """Store words one after the other."""
    for k, x in enumerate(words):
        b.store(x, at(b, base, I64(k)), align=8)


def smaller(b: Builder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_unsigned("<", x, y), x, y)


def is_there(b: Builder, pointer: Value) -> Value:
    """Whether a pointer is not null."""
    return b.icmp_unsigned("!=", pointer, NULL)
