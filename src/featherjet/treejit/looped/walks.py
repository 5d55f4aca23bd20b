"""LLVM for walks with inner loops: what does not depend on the inner loop's index is computed before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import llvmlite.ir as ir

from ...jit.emit.lanes import I64, PTR, Value
from ...jit.graph import Expr
from ...jit.number import DOUBLE
from ..emit.lanes import TreeLanes
from ..emit.walks import Walks
from ..program import Key, Ref, Store, Variant
from ..walks import MemoryLayout
from .program import MEMBER, Entry, Group, LoopedProgram, SetWalk, WideWalk, matrix_key

CHUNK = 64  # columns that go through all walks together: enough to hide latency, few enough for a near cache


class Carried(NamedTuple):
    """Memory for what is carried along: numbers of one field, in space "S", "WJ" or "WD".

    shared: each dof has them once; otherwise it has them in the set of every joint.
    """

    space: str
    field: int
    shared: bool


@dataclass
class At:
    """Where a walk is: its joint, the first dof of it, pointers to its memory; and where an inner loop is."""

    joint: Value
    first: Value
    parent: Value | None
    env: dict
    member: Value | None = None  # dof
    column: Value | None = None
    vector: Value | None = None  # number of the column's vector within the chunk


class LoopedWalks(Walks):
    """Code of walks on one sample, with `lanes` columns at a time where walks are wide.

    Their functions take (data, J, D, inputs..., arrays..., matrices..., first and end of the chunk's column vectors).
    """

    program: LoopedProgram

    def __init__(self, module: ir.Module, program: LoopedProgram, lanes: int) -> None:
        super().__init__(module, MemoryLayout(program, self.spaces), 1, DOUBLE)
        self.wide = TreeLanes(module, program.graph, lanes, DOUBLE, whole=False)
        wanted = sorted(program.wanted(), key=lambda k: (k.space, k.field, k.path))
        self.matrices = [k.field for k in wanted if k.space == "M"]
        self.arrays: dict[Carried, list[Key]] = {}
        for key in wanted:
            if key.space in ("S", "WJ", "WD"):
                self.arrays.setdefault(Carried(key.space, key.field, key in program.shared), []).append(key)
        self.array_of = {key: array for array, keys in self.arrays.items() for key in keys}
        self.single = all(v.nv == 1 for v in program.variants)  # then dofs and joints have the same numbers

    @property
    def vectors(self) -> int:
        """Vectors of columns in a chunk."""
        return max(1, CHUNK // self.wide.L)

    def size(self, array: Carried, joints: int, nv: int) -> int:
        """How many doubles an array holds."""
        owners = nv if array.shared else {"S": joints * nv, "WJ": joints, "WD": nv}[array.space]
        return owners * len(self.arrays[array]) * (1 if array.space == "S" else self.vectors * self.wide.L)

    def emit(self, number: int, loop: SetWalk | WideWalk) -> ir.Function:  # type: ignore[override]
        inputs, arrays, matrices = len(self.program.inputs), len(self.arrays), len(self.matrices)
        f = self.function(f"walk{number}", [PTR] * (3 + inputs + arrays + matrices) + [I64] * 2)
        data, *rest = f.args
        self.memory = dict(zip(self.arrays, rest[2 + inputs :], strict=False))
        self.pointer_of = dict(zip(self.matrices, rest[2 + inputs + arrays :], strict=False))
        self.chunk = f.args[-2:]
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        joints, self.nv = self.slot(b, data, "joints"), self.slot(b, data, "nv")
        self.parents, self.v_start, self.ends = (self.slot(b, data, s) for s in ("parent", "v_start", "ends"))
        variants = self.slot(b, data, "variant")
        outward = loop.direction == "outward"
        start, stop = (I64(0), joints) if outward else (b.sub(joints, I64(1)), I64(0))
        with self.loop(b, start, stop, 1 if outward else -1) as i:

            def case(v: Variant) -> tuple[int, Callable[[], None]]:
                def body() -> None:
                    parent = None if v.is_root else self.integer(b, self.parents, i)
                    env = self.environment(b, f.args[: 3 + inputs], i, parent)
                    at = At(i, self.start(i), parent, env)
                    self.columns(at, loop, v) if isinstance(loop, WideWalk) else self.members(at, loop, v)

                return self.program.variants.index(v), body

            self.switch(b, self.integer(b, variants, i), [case(v) for v in self.program.variants])
        b.ret_void()
        return f

    # Sets

    def members(self, at: At, loop: SetWalk, v: Variant) -> None:
        """What the joint has once, then a loop over each group of dofs."""
        entries = [e for e in loop.entries.get(v, ()) if e.matrix in self.pointer_of]
        groups: dict[Group, list[Store | Entry]] = {
            g: [*self.live(loop.members[v].get(g, ())), *(e for e in entries if e.group == g)] for g in Group
        }
        once = [*self.live(loop.stores[v]), *(e for e in entries if e.group is None)]
        everything = [x for of in (once, *groups.values()) for x in of]
        varying = self.varying([x.value for x in everything], lambda ref: ref.space == "S" and ref.k == MEMBER)
        values: dict[int, Value] = {}
        self.compute(self, values, everything, at, lambda i: i not in varying)
        for x in once:
            self.put(self, x, values[x.value.index], at)
        for group, of in groups.items():
            if of:
                with self.over(group, at) as m:
                    there = At(at.joint, at.first, at.parent, at.env, m)
                    found = dict(values)
                    self.compute(self, found, of, there, lambda i: i in varying)
                    for x in of:
                        self.put(self, x, found[x.value.index], there)

    @contextmanager
    def over(self, group: Group, at: At) -> Iterator[Value]:
        """A loop over the dofs of a group."""
        b = self.b
        if group == Group.BELOW:
            with self.loop(b, self.start(b.add(at.joint, I64(1))), self.integer(b, self.ends, at.joint)) as m:
                yield m
            return
        with self.path(at) as (child, p):
            if group == Group.BESIDE:
                with self.loop(b, I64(0), I64(2)) as after, self.loop(b, *self.beside(after, child, p)) as m:
                    yield m
            elif self.single:
                yield p
            else:
                with self.loop(b, self.start(p), self.start(b.add(p, I64(1)))) as m:
                    yield m

    @contextmanager
    def path(self, at: At) -> Iterator[tuple[Value, Value]]:
        """A loop over a joint and its ancestors, nearest first: each but the last, with its parent."""
        b = self.b
        assert at.parent is not None
        before, head, end = b.block, b.append_basic_block("ancestor"), b.append_basic_block("top")
        b.branch(head)
        b.position_at_end(head)
        child, p = b.phi(I64), b.phi(I64)
        child.add_incoming(at.joint, before)
        p.add_incoming(at.parent, before)
        yield child, p
        following = self.integer(b, self.parents, p)
        child.add_incoming(p, b.block)
        p.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed(">=", following, I64(0)), head, end)
        b.position_at_end(end)

    def beside(self, after: Value, child: Value, p: Value) -> tuple[Value, Value]:
        """First and end of the dofs below p that come before or after the subtree of its child."""
        b = self.b
        before = self.start(b.add(p, I64(1))), self.start(child)
        behind = self.integer(b, self.ends, child), self.integer(b, self.ends, p)
        first = b.icmp_signed("==", after, I64(0))
        return b.select(first, before[0], behind[0]), b.select(first, before[1], behind[1])

    def start(self, joint: Value) -> Value:
        """The number of a joint's first dof."""
        return self.integer(self.b, self.v_start, joint)

    # Columns

    def columns(self, at: At, loop: WideWalk, v: Variant) -> None:
        """A loop over the vectors of columns of a chunk; the last of all overlaps the one before if it must."""
        b, w = self.b, self.wide
        stores = self.live(loop.stores[v])
        varying = self.varying([s.value for s in stores], lambda ref: ref.space in ("WJ", "WD", "M"))
        scalars: dict[int, Value] = {}
        self.compute(self, scalars, stores, at, lambda i: i not in varying)
        splats = {i: w.splat(b, x) for i, x in scalars.items() if i >= 0}
        start, end = self.chunk
        with self.loop(b, start, end) as g:
            first, last = b.mul(g, I64(w.L)), b.sub(self.nv, I64(w.L))
            column = b.select(b.icmp_signed("<", first, last), first, last)
            there = At(at.joint, at.first, at.parent, at.env, column=column, vector=b.sub(g, start))
            found = dict(splats)
            self.compute(w, found, stores, there, lambda i: i in varying)
            for s in stores:
                self.put(w, s, found[s.value.index], there)

    # Both

    def live(self, stores: Sequence[Store]) -> list[Store]:
        """Stores of numbers that are needed."""
        kept = {*self.offset, *self.array_of, *map(matrix_key, self.matrices)}
        return [s for s in stores if s.ref.key in kept]

    def varying(self, values: Sequence[Expr], changes: Callable[[Ref], bool]) -> set[int]:
        """The operations that depend on a load which changes in the inner loop."""
        found: set[int] = set()
        for i in self.graph.reachable(x.index for x in values):
            op = self.graph.ops[i]
            if (op.name == "load" and changes(op.data)) or any(a in found for a in op.args):  # type: ignore[arg-type]
                found.add(i)
        return found

    def compute(
        self, w: TreeLanes, values: dict[int, Value], of: Sequence[Store | Entry], at: At, which: Callable[[int], bool]
    ) -> None:
        """Emit those operations behind some stores that are chosen, in order."""
        for i in self.graph.reachable(x.value.index for x in of):
            if which(i):
                values[i] = w.operation(self.b, i, values, lambda ref: self.get(w, ref, at))

    def get(self, w: TreeLanes, ref: Ref, at: At) -> Value:
        if ref.space in ("S", "WJ", "WD", "M"):
            return w.load(self.b, self.address(ref, at))
        return self.fetch(self.b, at.env, ref)

    def put(self, w: TreeLanes, x: Store | Entry, value: Value, at: At) -> None:
        b = self.b
        if isinstance(x, Entry):
            row, column = (at.member if k < 0 else b.add(at.first, I64(k)) for k in (x.row, x.column))
            w.store(b, value, self.number(b, self.pointer_of[x.matrix], b.add(b.mul(row, self.nv), column)))
            return
        if x.ref.space in ("J", "D"):
            self.sink(b, at.env, x)(value)
            return
        place = self.address(x.ref, at)
        if x.add:
            value = b.fadd(w.load(b, place), value)
        if x.ref.space == "M" and x.ref.key.field in self.program.negative:  # type: ignore[union-attr]
            value = b.fneg(value)
        w.store(b, value, place)

    def address(self, ref: Ref, at: At) -> Value:
        """Where a number of a set, of a column or of a matrix is."""
        b, key = self.b, ref.key
        assert key is not None
        dof = b.add(at.first, I64(ref.k)) if ref.k >= 0 else at.member
        if ref.space == "M":
            return self.number(b, self.pointer_of[key.field], b.add(b.mul(dof, self.nv), at.column))
        array = self.array_of[key]
        keys = self.arrays[array]
        joint = at.parent if ref.role == "parent" else at.joint
        width = 1
        if ref.space == "S":
            record = dof if array.shared else b.add(b.mul(joint, self.nv), dof)
        else:
            owner = joint if ref.space == "WJ" else dof
            record, width = b.add(b.mul(owner, I64(self.vectors)), at.vector), self.wide.L
        number = b.add(b.mul(record, I64(len(keys))), I64(keys.index(key)))
        return self.number(b, self.memory[array], b.mul(number, I64(width)))
