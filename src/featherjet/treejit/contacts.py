"""Contacts for rolled programs: the walks of `algorithms.contacts.grips`, recorded.

Which frames are held, where, and how, are numbers in `contact_tables`: one piece of code serves all contacts of all
robots with the same kinds of joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..algorithms.contacts.grips import POINT, PUSH, TWIST, Grip, Side, ground
from ..algorithms.contacts.percussion import FootBlock, Stop
from ..jit.graph import Expr
from ..math.spatial import Transform
from ..math.vec3 import Mat3, Sym3, Vec3
from .program import (
    ENTRY,
    GRIP,
    Climb,
    ContactSolve,
    GripLoop,
    Hold,
    Key,
    Meet,
    Output,
    Program,
    Ref,
    Store,
    Variant,
)
from .pytree import leaves, mapped, split
from .rolled import Field, RolledScan, Source, Vector, dof_key, output_of

CASES = (POINT, PUSH, TWIST)


class GripField:
    """One value for each grip ("T") or each entry of its rows ("E"), traced for each case."""

    def __init__(self, space: Any, number: int, loop: Any, values: dict[int, Any]) -> None:
        self.space, self.number, self.loop, self.values = space, number, loop, values


class GripRows:
    """Numbers of grips or entries as a result."""

    def __init__(self, kind: Any, keys: tuple[Key, ...] = ()) -> None:
        self.kind, self.keys = kind, keys


class RolledContactScan(RolledScan):
    """Records walks over bodies and over contacts. closed: whether bodies hold bodies, not only the world bodies."""

    def __init__(self, variants: Sequence[Variant], closed: bool) -> None:
        super().__init__(variants)
        self.closed = closed

    # Inputs

    def per_grip(self, name: str, count: int) -> Source:
        """A vector of so many numbers for each grip."""
        self.program.inputs[name] = count
        return Source(lambda _: tuple(self._load(Ref(name, "self", k)) for k in range(count)))

    def number(self, name: str) -> Expr:
        """A vector of one number."""
        self.program.inputs[name] = "whole"
        return self._load(Ref(name, "self", 0))

    # Walks

    def touches(self, step: Callable[..., Any], bodies: Field, places: Field, *inputs: Any) -> GripField:
        """Every grip with its two bodies: step(grip, first, its root's place, second, its root's place, *inputs)."""
        loop = GripLoop("grips", {case: [] for case in CASES})
        self.program.loops.append(loop)
        at = [self._joint(f, role) for f, role in ((bodies, "first"), (places, "root1"))]
        if self.closed:
            at += [self._joint(f, role) for f, role in ((bodies, "second"), (places, "root2"))]
            for field, value in zip((bodies, places), ground(self.tree.gravity), strict=True):
                keys = [(Key("J", field.number, path), x) for path, x in leaves(self._lifted(value))]
                loop.world += [Store(Ref("J", "world", 0, key), x) for key, x in keys]
        else:
            at += [None, None]
        return self._grip_field("T", loop, lambda case: step(self._grip(case), *at, *self._each_at(inputs, case, loop)))

    def grips(self, step: Callable[..., Any], *inputs: Any) -> GripField:
        """Every grip by itself."""
        loop = self.program.loops[-1]
        if not isinstance(loop, GripLoop) or loop.over != "grips":
            loop = GripLoop("grips", {case: [] for case in CASES})
            self.program.loops.append(loop)
        return self._grip_field("T", loop, lambda case: step(self._grip(case), *self._each_at(inputs, case, loop)))

    def sides(self, step: Callable[..., tuple], dofs: Field, *inputs: Any) -> GripField:
        """Every grip with every dof that moves its bodies: step(grip, side, the dof's record, *inputs)."""
        loop = GripLoop("entries", {case: [] for case in range(2 * len(CASES) if self.closed else len(CASES))})
        self.program.loops.append(loop)
        dof = self._dof(dofs, "dof")

        def value(case: int) -> tuple:
            kind, beyond = case % len(CASES), case >= len(CASES)
            side = Side(*(self._load(Ref("entry", "self", k)) for k in range(len(ENTRY))), beyond=beyond)
            return step(self._grip(kind), side, dof, *self._each_at(inputs, kind, loop))

        return self._grip_field("E", loop, value)

    def gather(self, step: Callable[..., tuple], *inputs: Any) -> Field:
        """The sum, for each joint, of the forces that grips hand to their two bodies: step(grip, *inputs)."""
        host, number = self._last_walk() or self._begin("outward"), self._number()
        loop = GripLoop("grips", {case: [] for case in CASES})
        self.program.loops.append(loop)
        shape: Any = None
        for case in CASES:
            handed = step(self._grip(case), *self._each_at(inputs, case, loop))
            for role, f in zip(("first", "second"), handed, strict=True):
                shape = handed[0]
                for path, x in leaves(self._lifted(f)):
                    loop.stores[case].append(Store(Ref("J", role, 0, Key("J", number, path)), x, add=True))
        for v in self.program.variants:
            zero = self.graph.const(0.0)
            host.stores[v] += [Store(Ref("J", "self", 0, Key("J", number, path)), zero) for path, _ in leaves(shape)]
        total = self._loads(shape, lambda path: Ref("J", "self", 0, Key("J", number, path)))
        return Field(number, loop, {v: total for v in self.program.variants})

    def hold(
        self, dofs: Field, left: Any, grips: GripField, drift: GripField, redundant: bool = False
    ) -> tuple[Field, GripField, GripRows]:
        """Forces for which `drift` and the accelerations due to `left` vanish, and what they add to `left`.

        dofs: the pivots of all joints (`aba.Pivot`); grips: `grips.Touched`. Once held, the same grips need no factors
        of their own. redundant: solve also for redundant grips, and leave no factors.
        """
        before = next((loop for loop in self.program.loops if isinstance(loop, Hold)), None)
        n, keys = self._number(), [str(k) for k in range(3)]
        loop = Hold(
            before.climb if before else self._climb(n, dofs, grips),
            rest=self.graph.const(0.0) if isinstance(left, Source) else self._dof(left, "dof"),
            drift=[x for _, x in leaves(self._loaded(drift, CASES[0]))],
            left=Key("D", n, ()),
            forces=[Key("T", n, (k,)) for k in keys],
            again=before is not None,
            redundant=redundant,
        )
        self.program.loops.append(loop)
        after = {v: [self._load(Ref("D", "self", k, loop.left)) for k in range(v.nv)] for v in self.program.variants}
        forces = tuple(self._load(Ref("T", "self", 0, key)) for key in loop.forces)
        return Field(n, loop, after), GripField("T", n, loop, {c: forces for c in CASES}), GripRows("factor")

    def strike(
        self, law: Callable[..., Any], dofs: Field, left: Field | Source, grips: GripField, feet: Sequence[Source],
        inputs: tuple[str, ...] = (),
    ) -> tuple[Field, GripField, GripRows, list[Expr]]:  # fmt: skip
        """Percussions that obey the laws that law(*feet) makes for each foot, and what they add to `left`.

        dofs: the pivots of all joints; grips: `feet.FootRows`; inputs: rates, stops, and a guess of their percussions,
        or none if there are no stops.
        Also gives the stops' percussions and a report: the residual, 1 if nothing lands else 0, the sweeps,
        and 1 if no foot lands else 0.
        """
        dof, t = self._dof(dofs, "dof"), self._loaded(grips, CASES[0])
        laws = law(*(self._at_any(f) for f in feet))
        n, keys = self._number(), [str(k) for k in range(3)]
        x = [self._load(Ref("H", "law", k)) for k in range(19)]
        block = FootBlock(Sym3(*x[:6]), Sym3(*x[6:12]), x[12])
        for name in inputs:
            self.program.inputs.setdefault(name, "whole")
        vector = [Vec3(*x[k : k + 3]) for k in (0, 3, 6, 13, 16)]
        loop = ContactSolve(
            self._climb(n, dofs, grips),
            rest=self.graph.const(0.0) if isinstance(left, Source) else self._dof(left, "dof"),
            before=self._listed(laws.velocity(t.gamma)),
            left=Key("D", n, ()),
            forces=[Key("T", n, (k,)) for k in keys],
            start=self._listed(laws.start),
            percussion=self._listed(laws.percussion(block, vector[3], vector[4])),
            sticks=self._listed(laws.sticks(vector[0])),
            lands=self._listed((laws.lands(*vector[:3]),)),
            world=self._listed(laws.world(vector[0])),
            pass_K=self._listed(dof.K),
            stop=self._listed(laws.stops(x[0], x[1], x[2:5], Stop(x[5], x[6]))),
            report=[Key("G", n, (str(k),)) for k in range(4)],
            inputs=inputs,
        )
        self.program.loops.append(loop)
        after = {v: [self._load(Ref("D", "self", k, loop.left)) for k in range(v.nv)] for v in self.program.variants}
        forces = tuple(self._load(Ref("T", "self", 0, key)) for key in loop.forces)
        report = [self._load(Ref("G", "self", 0, key)) for key in loop.report]
        return Field(n, loop, after), GripField("T", n, loop, {c: forces for c in CASES}), GripRows("stops"), report

    def system(self, dofs: Field, grips: GripField) -> GripRows:
        """Y^T D^-1 Y (rows, rows): how the rows of all grips accelerate under forces of one."""
        self.program.loops.append(Meet(self._climb(self._number(), dofs, grips)))
        return GripRows("system")

    def _climb(self, number: int, dofs: Field, grips: GripField) -> Climb:
        """How grips' rows go up the tree."""
        dof, t = self._dof(dofs, "dof"), self._loaded(grips, CASES[0])
        places = {path: k for k, (path, _) in enumerate(leaves(t.rows))}
        handed = self._loads(t.rows, lambda path: Ref("H", "climb", places[path]))
        felt = [dof.S.dot(p) for p in handed]
        passed = [p + x * dof.K for p, x in zip(handed, felt, strict=True)]
        return Climb(
            first=self._listed(t.rows),
            second=self._listed(getattr(t, "others", None)),
            felt=felt,
            handed=self._listed(passed),
            dinv=dof.dinv,
            Y=[Key("E", number, (part, str(k))) for part in ("Y", "Z") for k in range(3)],
        )

    def _listed(self, value: Any) -> list[Expr]:
        """All scalars of a value."""
        return [y for _, y in leaves(self._lifted(value))]

    # Results

    def column(self, field: GripField, k: int) -> GripRows:
        """Number k of each grip, as a vector (grips,)."""
        return GripRows("grips", (Key(field.space, field.number, (str(k),)),))

    def rows(self, field: GripField) -> GripRows:
        """Three numbers of each grip, as a vector (rows,)."""
        return self._result("grips", field)

    def entries(self, field: GripField) -> GripRows:
        """The numbers of each entry, (entries, count)."""
        return self._result("entries", field)

    def dense(self, field: GripField) -> GripRows:
        """Three numbers of each entry, as a matrix (rows, nv)."""
        return self._result("rows", field)

    def _result(self, kind: str, field: GripField) -> GripRows:
        count = len(field.values[CASES[0]])
        return GripRows(kind, tuple(Key(field.space, field.number, (str(k),)) for k in range(count)))

    # Inside

    def _grip_field(self, space: Any, loop: GripLoop, value: Callable[[int], Any]) -> GripField:
        field = GripField(space, self._number(), loop, {case: self._lifted(value(case)) for case in loop.stores})
        for case, found in field.values.items():
            keys = [(Key(space, field.number, path), x) for path, x in leaves(found)]
            loop.stores[case] += [Store(Ref(space, "self", 0, key), x) for key, x in keys]
        return field

    def _each_at(self, inputs: Sequence[Any], case: int, loop: Any) -> list[Any]:
        """The values of grips' fields at the current grip."""
        found = []
        for f in inputs:
            own = isinstance(f, GripField) and f.loop is loop
            if isinstance(f, Source):
                found.append(self._at_any(f))
            else:
                found.append(f.values[case] if own else self._loaded(f, case))
        return found

    def _at_any(self, source: Source) -> Any:
        """The value of an input of grips, which is the same for all kinds of joints."""
        return source.at(self.program.variants[0])

    def _loaded(self, field: GripField, case: int) -> Any:
        """A grip's value: loaded, except constants that are the same in all cases."""
        others = [dict(leaves(value)) for value in field.values.values()]

        def leaf(path: tuple, x: Any) -> Any:
            if x.value is not None and all(other[path].value == x.value for other in others):
                return x
            return self._load(Ref("T", "self", 0, Key("T", field.number, path)))

        return mapped(field.values[case], leaf)

    def _joint(self, field: Field, role: str) -> Any:
        """The value of any joint, all loaded, since its variant is unknown; lists become None."""
        shape = next(value for value in field.values.values() if value is not None)

        def leaf(path: tuple, _: Any) -> Any:
            rest, k = split(path)
            return None if k is not None else self._load(Ref("J", role, 0, Key("J", field.number, rest)))

        return mapped(shape, leaf)

    def _grip(self, case: int) -> Grip:
        """A grip whose constants are loads from the table."""
        x = [self._load(Ref("grip", "self", k)) for k in range(sum(GRIP.values()))]

        def placement(k: int) -> Transform:
            a, b, c, p = (Vec3(*x[k + 3 * j : k + 3 * j + 3]) for j in range(4))
            return Transform(Mat3(a, b, c), p)

        return Grip(case, placement(0), placement(12), *x[24:])


def trace_contacts(
    algorithm: Callable[..., Any], inputs: Sequence[str], variants: Sequence[Variant], closed: bool, margins: bool
) -> Program:
    """The program of an algorithm of `grips`, for all robots with these joint variants; "fext" is an input or not."""
    scan = RolledContactScan(variants, closed)
    options = {"fext": scan.forces("fext")} if "fext" in inputs else {}
    found = algorithm(scan, *(x for x in inputs if x != "fext"), **options)
    results = list(found) if isinstance(found, tuple) else [found]
    if margins:
        scan.program.watched = dof_key(results.pop())
    scan.program.outputs = [contact_output(r) for r in results]
    scan.program.inputs = {x: scan.program.inputs[x] for x in inputs if x in scan.program.inputs}
    return scan.program


def contact_output(result: int | Vector | Output | GripRows) -> Output:
    return Output(result.kind, keys=result.keys) if isinstance(result, GripRows) else output_of(result)
