"""LLVM for memory to compute in: from this process, or from the caller of code that runs alone.

For code that runs alone, the first operand's address is that of a `FRAME` of words: the address of the word for flags,
where free memory begins and ends, and the farthest end that was asked for.
"""

from __future__ import annotations

from ..flags import Flag
from .lanes import I1, I8, I32, I64, PTR, VOID, Builder, Module, Value, external
from .platform import runs_alone

FRAME = ("report", "start", "end", "most")


def report_of(b: Builder, args: Value) -> Value:
    """The caller's word for flags, whose address the first operand is."""
    return b.inttoptr(b.load(b.load(args, typ=PTR), typ=I64, align=8), PTR)


def reserve(module: Module, b: Builder, args: Value, size: Value, zeroed: bool = False) -> Value:
    """Memory of `size` bytes, zeroed or not; where there is none, the code sets a flag and returns."""
    if runs_alone(module):
        start, end, most = (word(b, args, name) for name in FRAME[1:])
        first = b.load(start, typ=I64, align=8)
        last = b.add(first, size)
        farthest = b.load(most, typ=I64, align=8)
        b.store(b.select(b.icmp_unsigned("<", farthest, last), last, farthest), most, align=8)
        short = b.icmp_unsigned("<", b.load(end, typ=I64, align=8), last)
        return_if(b, b.or_(short, b.icmp_unsigned("<", last, first)), report_of(b, args))
        b.store(last, start, align=8)
        memory = b.inttoptr(first, PTR)
        if zeroed:
            fill = external(module, "llvm.memset.p0.i64", VOID, PTR, I8, I64, I1)
            b.call(fill, [memory, I8(0), size, I1(0)])
        return memory
    if zeroed:
        memory = b.call(external(module, "calloc", PTR, I64, I64), [size, I64(1)])
    else:
        memory = b.call(external(module, "malloc", PTR, I64), [size])
    return_if(b, b.icmp_unsigned("==", b.ptrtoint(memory, I64), I64(0)), report_of(b, args))
    return memory


def release(module: Module, b: Builder, args: Value, memory: Value) -> None:
    """Give back what was reserved last."""
    if runs_alone(module):
        b.store(b.ptrtoint(memory, I64), word(b, args, "start"), align=8)
    else:
        b.call(external(module, "free", VOID, PTR), [memory])


def word(b: Builder, args: Value, name: str) -> Value:
    """Pointer to a word of the frame."""
    return b.gep(b.load(args, typ=PTR), [I64(FRAME.index(name))], source_etype=I64)


def return_if(b: Builder, failed: Value, report: Value) -> None:
    """Set a flag and return if an allocation has failed."""
    with b.if_then(failed, likely=False):
        b.store(b.or_(b.load(report, typ=I64, align=8), I64(int(Flag.NO_MEMORY))), report, align=8)
        b.ret_void()


def forget_exceptions(module: Module, b: Builder) -> None:
    """Clear the CPU's floating-point exceptions: flags report bad input, and NumPy need not warn as well."""
    if "windows" not in module.triple and not runs_alone(module):
        x86 = module.triple.startswith(("x86", "i686", "amd64"))
        b.call(external(module, "feclearexcept", I32, I32), [I32(0x3F if x86 else 0x1F)])
