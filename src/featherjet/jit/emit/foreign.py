"""LLVM for code that Python and XLA call by conventions of their own: structs, and addresses of functions."""

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..number import DOUBLE
from .lanes import I8, I64, Builder, FunctionType, Lanes, Type, Value
from .platform import Platform


def plain_lanes(platform: Platform, name: str) -> Lanes:
    """A module for code on integers and addresses."""
    return Lanes(platform.module(name), Graph(), 1, DOUBLE)


def at(b: Builder, base: Value, index: Value, typ: Type = I64) -> Value:
    """Pointer to entry `index` of an array."""
    return b.gep(base, [index], source_etype=typ)


def field(b: Builder, struct: Value, offset: int, typ: Type) -> Value:
    """What a struct has so many bytes after its beginning."""
    return b.load(b.gep(struct, [I64(offset)], source_etype=I8), typ=typ, align=4)


def function_at(address: Any, kind: FunctionType) -> Any:
    """An address of a function, which llvmlite calls only if it says its type."""
    own = type(address)
    address.__class__ = type(own.__name__, (own,), {"function_type": kind})
    return address
