"""From a Program to LLVM: one function for each loop, and around them the loop over samples, L at a time.

A scalar of the program is a vector of L lanes, one for each sample. J, D and the inputs are arrays of such vectors;
tables are plain numbers, spread over the lanes as they are read. What is called is `entry`, an inner loop of a NumPy
gufunc: (char **args, intp *dims, intp *steps, void *data).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.ir as ir

from .graph import Expr
from .program import Key, Pairs, Program, Ref, Responses, Store, Variant, Walk
from .rolled import TABLE
from .sincos import sincos_function

PTR, I32, I64, DOUBLE, VOID = ir.PointerType(), ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.VoidType()
CONTRACT = ("contract",)
NT = sum(TABLE.values())
BUFFER = 20000  # bytes of matrix entries gathered before they are turned into the user's layout

# The slots of `data`, eight bytes each: counts and pointers to tables of 64-bit integers and doubles.
SLOTS = (
    "joints", "nq", "nv", "parent", "variant", "q_start", "v_start", "joint_end", "root",
    "joint_of", "table", "dofs", "param", "run_start", "runs", "units", "n_units", "flags", "least",
)  # fmt: skip
SLOT = {name: k for k, name in enumerate(SLOTS)}
NONFINITE, NOT_UNIT, SINGULAR = 1, 2, 4


@dataclass(frozen=True)
class Operand:
    """An operand of the gufunc: an input's name, or an output; `core` are its core dimensions."""

    name: str
    core: tuple[str, ...]


class Emitter:
    """Emits one program for L lanes of float64."""

    def __init__(self, module: ir.Module, program: Program, lanes: int, operands: Sequence[Operand]) -> None:
        self.module, self.program, self.L, self.operands = module, program, lanes, operands
        self.V = ir.VectorType(DOUBLE, lanes) if lanes > 1 else DOUBLE
        self.bytes = 8 * lanes
        wanted = program.wanted()
        self.offset: dict[Key, int] = {}
        sizes = {"J": 0, "D": 0}
        for key in sorted(wanted, key=lambda k: (k.space, k.field, k.path)):
            self.offset[key] = sizes[key.space]
            sizes[key.space] += 1
        self.NJ, self.ND = max(sizes["J"], 1), max(sizes["D"], 1)
        self.held: dict[Key, int] = {}
        for loop in program.loops:
            if isinstance(loop, Responses):
                for stores in loop.bodies:
                    for store in stores:
                        if store.ref.space == "H" and store.ref.key not in self.held:
                            self.held[store.ref.key] = len(self.held)  # type: ignore[index]

    # Small helpers

    def function(self, name: str, args: Sequence[ir.Type], internal: bool = True) -> ir.Function:
        f = ir.Function(self.module, ir.FunctionType(VOID, list(args)), f"{name}_{self.L}")
        f.attributes.add("nounwind")
        if internal:
            f.linkage = "internal"
            f.attributes.add("noinline")
            for a in f.args:
                if isinstance(a.type, ir.PointerType):
                    a.add_attribute("noalias")
        return f

    def spread(self, b: ir.IRBuilder, x: ir.Value) -> ir.Value:
        if self.L == 1:
            return x
        undef = ir.Constant(self.V, ir.Undefined)
        first = b.insert_element(undef, x, I32(0))
        return b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, self.L), [0] * self.L))

    def const(self, c: float) -> ir.Constant:
        return ir.Constant(self.V, [c] * self.L) if self.L > 1 else ir.Constant(DOUBLE, c)

    def slot(self, b: ir.IRBuilder, data: ir.Value, name: str) -> ir.Value:
        """A count or a pointer out of `data`."""
        typ = I64 if name in ("joints", "nq", "nv", "n_units") else PTR
        return b.load(b.gep(data, [I64(SLOT[name])], source_etype=I64), typ=typ, align=8)

    def at(self, b: ir.IRBuilder, base: ir.Value, index: ir.Value) -> ir.Value:
        """Integer number `index` of a table."""
        return b.load(b.gep(base, [index], source_etype=I64), typ=I64, align=8)

    def vector_at(self, b: ir.IRBuilder, base: ir.Value, index: ir.Value) -> ir.Value:
        return b.gep(base, [index], source_etype=self.V)

    def load(self, b: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
        return b.load(pointer, typ=self.V, align=self.bytes)

    def store(self, b: ir.IRBuilder, x: ir.Value, pointer: ir.Value) -> None:
        b.store(x, pointer, align=self.bytes)

    def cell(self, b: ir.IRBuilder) -> ir.Value:
        """Room for one vector on the stack."""
        with b.goto_entry_block():
            cell = b.alloca(self.V)
        cell.align = self.bytes  # type: ignore[attr-defined]
        return cell

    @contextmanager
    def loop(self, b: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """for (i = start; i < stop; i += step), or downwards from start to stop (included) for step -1."""
        with self.loop_by(b, start, stop, I64(step), ">=" if step < 0 else "<") as i:
            yield i

    @contextmanager
    def loop_by(
        self, b: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: ir.Value, go: str = "<"
    ) -> Iterator[ir.Value]:
        before, head, end = b.block, b.append_basic_block("head"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed(go, start, stop), head, end)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(start, before)
        yield i
        following = b.add(i, step)
        i.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed(go, following, stop), head, end)
        b.position_at_end(end)

    def switch(self, b: ir.IRBuilder, value: ir.Value, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Run the case of that number."""
        end = b.append_basic_block("join")
        if len(cases) == 1:
            cases[0][1]()
            b.branch(end)
        else:
            other = b.append_basic_block("other")
            choice = b.switch(value, other)
            for number, body in cases:
                block = b.append_basic_block("case")
                choice.add_case(I64(number), block)
                b.position_at_end(block)
                body()
                b.branch(end)
            b.position_at_end(other)
            b.unreachable()
        b.position_at_end(end)

    # Straight-line code

    def straight(
        self, b: ir.IRBuilder, stores: Sequence[tuple[Expr, Callable[[ir.Value], None]]], env: Callable[[Ref], tuple]
    ) -> None:
        """Compute values in the order they were traced, and hand each to its sinks as soon as it is there.

        env(ref) -> (pointer, is a plain number to be spread).
        """
        graph = self.program.graph
        sinks: dict[int, list[Callable[[ir.Value], None]]] = {}
        for value, sink in stores:
            sinks.setdefault(value.index, []).append(sink)
        values: dict[int, ir.Value] = {}
        trig: dict[int, tuple[ir.Value, ir.Value]] = {}
        for i in graph.reachable(sinks):
            op = graph.ops[i]
            if op.name == "const":
                x: ir.Value = self.const(op.data[0])  # type: ignore[index]
            elif op.name == "load":
                pointer, plain = env(op.data)  # type: ignore[arg-type]
                x = self.spread(b, b.load(pointer, typ=DOUBLE, align=8)) if plain else self.load(b, pointer)
            elif op.name in ("sin", "cos"):
                if op.args[0] not in trig:
                    trig[op.args[0]] = self.sincos(b, values[op.args[0]])
                x = trig[op.args[0]][op.name == "cos"]
            elif op.name == "neg":
                x = b.fneg(values[op.args[0]], flags=CONTRACT)
            elif op.name == "sqrt":
                x = self.sqrt(b, values[op.args[0]])
            else:
                x = getattr(b, "f" + op.name)(*(values[a] for a in op.args), flags=CONTRACT)
            values[i] = x
            for sink in sinks.get(i, ()):
                sink(x)

    def sincos(self, b: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        cells = [self.cell(b) for _ in range(2)]
        b.call(sincos_function(self.module, self.L), [x, *cells])
        return tuple(b.load(cell, typ=self.V, align=8) for cell in cells)  # type: ignore[return-value]

    def sqrt(self, b: ir.IRBuilder, x: ir.Value) -> ir.Value:
        name = f"llvm.sqrt.v{self.L}f64" if self.L > 1 else "llvm.sqrt.f64"
        f = self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(self.V, [self.V]), name)
        return b.call(f, [x])

    # Loops

    @property
    def signature(self) -> list[ir.Type]:
        """data, J, D, and one pointer for each input."""
        return [PTR] * (3 + len(self.program.inputs))

    def body_env(
        self, b: ir.IRBuilder, memory: Sequence[ir.Value], i: ir.Value, parent: ir.Value | None
    ) -> dict:
        """Pointers to all that belongs to joint i; `memory` is data, J, D and the inputs, as far as needed."""
        data, J, D, *inputs = memory
        row = {"J": b.mul(i, I64(self.NJ))}
        first = self.at(b, self.slot(b, data, "v_start"), i)
        env: dict = {
            ("J", "self"): self.vector_at(b, J, row["J"]),
            ("D", "self"): self.vector_at(b, D, b.mul(first, I64(self.ND))),
            "table": b.gep(self.slot(b, data, "table"), [b.mul(i, I64(NT))], source_etype=DOUBLE),
            "dofs": b.gep(self.slot(b, data, "dofs"), [first], source_etype=DOUBLE),
            "param": self.slot(b, data, "param"),
            "first": first,
        }
        if parent is not None:
            env["J", "parent"] = self.vector_at(b, J, b.mul(parent, I64(self.NJ)))
        for name, pointer in zip(self.program.inputs, inputs, strict=False):
            if name == "q":
                start = self.at(b, self.slot(b, data, "q_start"), i)
            elif name == "fext":
                start = b.mul(i, I64(6))
            else:
                start = first
            env[name] = self.vector_at(b, pointer, start)
        return env

    def pointer(self, b: ir.IRBuilder, env: dict, ref: Ref) -> tuple[ir.Value, bool]:
        """Where a reference points, and whether a plain number is there."""
        if ref.space == "J":
            return self.vector_at(b, env["J", ref.role], I64(self.offset[ref.key])), False  # type: ignore[index]
        if ref.space == "D":
            at = ref.k * self.ND + self.offset[ref.key]  # type: ignore[index]
            return self.vector_at(b, env["D", ref.role], I64(at)), False
        if ref.space == "H":
            return self.vector_at(b, env["H"], I64(self.held[ref.key])), False  # type: ignore[index]
        if ref.space in ("table", "dofs", "param"):
            return b.gep(env[ref.space], [I64(ref.k)], source_etype=DOUBLE), True
        return self.vector_at(b, env[ref.space], I64(ref.k)), False

    def live(self, stores: Sequence[Store]) -> list[Store]:
        return [s for s in stores if s.ref.space == "H" or s.ref.key in self.offset]

    def sink(self, b: ir.IRBuilder, env: dict, store: Store) -> Callable[[ir.Value], None]:
        def put(x: ir.Value) -> None:
            pointer, _ = self.pointer(b, env, store.ref)
            if store.add:
                x = b.fadd(self.load(b, pointer), x)
            self.store(b, x, pointer)

        return put

    def walk(self, number: int, loop: Walk) -> ir.Function:
        f = self.function(f"walk{number}", self.signature)
        data = f.args[0]
        b = ir.IRBuilder(f.append_basic_block("entry"))
        joints = self.slot(b, data, "joints")
        parents, variants = self.slot(b, data, "parent"), self.slot(b, data, "variant")
        outward = loop.direction == "outward"
        start, stop = (I64(0), joints) if outward else (b.sub(joints, I64(1)), I64(0))
        with self.loop(b, start, stop, 1 if outward else -1) as i:

            def case(v: Variant, stores: list[Store]) -> tuple[int, Callable[[], None]]:
                def body() -> None:
                    env = self.body_env(b, f.args, i, None if v.is_root else self.at(b, parents, i))
                    sinks = [(s.value, self.sink(b, env, s)) for s in self.live(stores)]
                    self.straight(b, sinks, lambda ref: self.pointer(b, env, ref))

                return self.program.variants.index(v), body

            self.switch(b, self.at(b, variants, i), [case(v, stores) for v, stores in loop.stores.items()])
        b.ret_void()
        return f

    def pairs(self, number: int, loop: Pairs) -> ir.Function:
        """Rows first to last of the matrices, into a buffer [matrix][row][column]."""
        f = self.function(f"pairs{number}", [PTR, PTR, PTR, I64, I64, I64])
        data, D, buffer, first, last, plane = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        n = self.slot(b, data, "nv")
        starts, runs = self.slot(b, data, "run_start"), self.slot(b, data, "runs")
        with self.loop(b, first, last) as r:
            row = self.vector_at(b, D, b.mul(r, I64(self.ND)))
            base = b.mul(b.sub(r, first), n)
            begin, end = self.at(b, starts, r), self.at(b, starts, b.add(r, I64(1)))
            with self.loop(b, begin, end) as k:
                run = b.gep(runs, [b.mul(k, I64(3))], source_etype=I64)
                lo, hi, code = (self.at(b, run, I64(j)) for j in range(3))

                def case(values: Sequence[Expr] | None, lo=lo, hi=hi, row=row, base=base) -> Callable[[], None]:
                    def body() -> None:
                        with self.loop(b, lo, hi) as c:
                            env = {("D", "row"): row, ("D", "col"): self.vector_at(b, D, b.mul(c, I64(self.ND)))}
                            cell = b.add(base, c)

                            def put(m: int) -> Callable[[ir.Value], None]:
                                at = b.add(b.mul(plane, I64(m)), cell)
                                return lambda x: self.store(b, x, self.vector_at(b, buffer, at))

                            if values is None:
                                for m in range(len(loop.matrices)):
                                    put(m)(self.const(0.0))
                            else:
                                sinks = [(x, put(m)) for m, x in enumerate(values)]
                                self.straight(b, sinks, lambda ref: self.pointer(b, env, ref))

                    return body

                bodies = (None, loop.within, loop.across, loop.diagonal)
                self.switch(b, code, [(code, case(values)) for code, values in enumerate(bodies)])
        b.ret_void()
        return f
