"""What a walk does at one body: values loaded, steps taken, what later loops read stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from types import SimpleNamespace
from typing import Any

from ...jit.graph import Expr
from ...treejit.pytree import Member, leaves, mapped
from .code import LoopCode
from .memory import Group, Key

LANES = "lanes"  # how names of arrays begin whose records lie side by side, so that those of some dofs are vectors
OWN, MEMBER = 0, -1  # keys of sets: the joint's dof, and the dof that an inner loop is at
SEEN = {  # the groups of a parent's set that a body's groups lie in
    Group.OWN: (Group.BELOW,),
    Group.ABOVE: (Group.OWN, Group.ABOVE),
    Group.BELOW: (Group.BELOW,),
    Group.BESIDE: (Group.BELOW, Group.BESIDE),
}


class LoopInput:
    """A number of each joint that is an input, or a value that all joints share: at(body)."""

    def __init__(self, at: Callable[[LoopBody], Any]) -> None:
        self.at = at


class LoopField:
    """One value for each joint. values: as traced, at the root (True) and elsewhere; sets have only the own dof."""

    def __init__(self, number: int, walk: Any) -> None:
        self.number, self.walk = number, walk
        self.values: dict[bool, Any] = {}


@dataclass
class LoopBody:
    """Where a walk is. member: the dof of a group that an inner loop is at."""

    i: Any
    root: bool
    parent: Any
    node: SimpleNamespace
    group: Group = Group.OWN
    member: Any = None
    loaded: dict[Any, Expr] = field(default_factory=dict)  # that inner loops need not load again
    results: dict[int, Any] = field(default_factory=dict)  # by field, of the walk that is under way

    def inside(self, group: Group, member: Any) -> LoopBody:
        return LoopBody(self.i, self.root, self.parent, self.node, group, member, self.loaded)


class LoopPlaces:
    """Loads and stores of the numbers of fields."""

    def __init__(self, code: LoopCode) -> None:
        self.code, self.memory = code, code.memory

    def at(self, name: str, key: Key, *index: Any) -> tuple[Any, tuple]:
        """Where a number of a joint, of a dof, or of both lies in an array of records."""
        length, k = self.memory.length(name), self.memory.offset(name, key)
        if name.startswith(LANES):
            return self.code.array(name, (length, "n")).beyond(0, *index), (k, 0)
        return self.code.array(name, (*("n" for _ in index), length)), (*index, k)

    def of_member(self, key: Key, joint: Any, dof: Any) -> tuple[str, tuple]:
        """The array that a number of a member is in, and its record's place."""
        return ("dofs", (dof,)) if key in self.memory.shared else (f"set{key[0]}", (joint, dof))

    def name_of(self, name: str, key: Key) -> str:
        """The array that a number lies in, by what it would be elsewhere."""
        return name

    def load(self, name: str, key: Key, *index: Any) -> Expr:
        name = self.name_of(name, key)
        array, place = self.at(name, key, *index)
        found = array[place]
        self.memory.loads[found.index] = key, name
        return found

    def store(self, name: str, key: Key, index: tuple, x: Any, add: bool = False) -> None:
        array, place = self.at(self.name_of(name, key), key, *index)
        self.memory.made(key, x)
        array[place] = array[place] + x if add else x

    # Values of fields

    def value(self, f: LoopField | LoopInput, body: LoopBody) -> Any:
        """A field at a body; its sets have the dof that an inner loop is at, or else only the own one."""
        if isinstance(f, LoopInput):
            return f.at(body)
        if f.number in body.results:
            return body.results[f.number]

        def leaf(path: tuple, x: Any) -> Any:
            return number(x) if is_number(x) else self._joint(body, f.number, path, "self")

        def members(of: dict, path: tuple) -> dict:
            found = {}
            if OWN in of:
                found[OWN] = mapped(of[OWN], lambda p, x: number(x) if is_number(x) else
                                    self._member(body, f.number, p, body.i, body.i, True), path)  # fmt: skip
            return found | self._others(body, f.number, path, body.i, (body.group,))

        return rebuilt(f.values[body.root], leaf, members)

    def parent(self, f: LoopField, body: LoopBody) -> Any:
        """The value of the parent, all loaded."""
        if body.root:
            return None

        def members(of: dict, path: tuple) -> dict:
            own = self._seen(body, f.number, path, Group.OWN)
            return (own or {}) | self._others(body, f.number, path, body.parent, SEEN[body.group])

        shape = next(iter(f.values.values()))
        return rebuilt(shape, lambda path, _: self._joint(body, f.number, path, "parent"), members)

    def accumulated(self, number: int, seed: Any, body: LoopBody) -> Any:
        """What a body and its children have added up, whose seed looks like this."""

        def members(of: dict, path: tuple) -> dict:
            found = {}
            if self.memory.has(number, path, Group.OWN):
                shape = self.memory.members[number, path]
                found[OWN] = mapped(shape, lambda p, _: self._member(body, number, p, body.i, body.i, True), path)
            return found | self._others(body, number, path, body.i, (body.group,))

        return rebuilt(seed, lambda path, _: self._joint(body, number, path, "self"), members)

    def record(self, f: LoopField, dof: Any, role: str) -> Any:
        """A field of one record for each dof, at any of them; what is read in a role lies together."""
        root, rest = (dict(leaves(f.values[x])) for x in (True, False))

        def leaf(path: tuple, _: Any) -> Any:
            x, y = root[path], rest[path]
            if is_number(x) and is_number(y) and number(x) == number(y):
                return number(x)
            return self.load(f"{role}{f.number}", (f.number, path), dof)

        return mapped(f.values[False][0], leaf, (0,))

    def _joint(self, body: LoopBody, number: int, path: tuple, role: str) -> Expr:
        key = number, path
        if (role, key) not in body.loaded:
            body.loaded[role, key] = self.load("joints", key, body.parent if role == "parent" else body.i)
        return body.loaded[role, key]

    def _member(self, body: LoopBody, number: int, path: tuple, joint: Any, dof: Any, keep: bool = False) -> Expr:
        key = number, path
        cached = "own", joint is body.i, key
        if keep and cached in body.loaded:
            return body.loaded[cached]
        name, index = self.of_member(key, joint, dof)
        found = self.load(name, key, *index)
        if keep:
            body.loaded[cached] = found
        return found

    def _others(self, body: LoopBody, number: int, path: tuple, joint: Any, groups: tuple[Group, ...]) -> dict:
        """The member that an inner loop is at, if the set has it."""
        m = self.memory
        if body.member is None or not any(m.has(number, path, g) for g in groups):
            return {}
        shape = m.members[number, path]
        return {MEMBER: mapped(shape, lambda p, _: self._member(body, number, p, joint, body.member), path)}

    def _seen(self, body: LoopBody, number: int, path: tuple, group: Group) -> dict | None:
        """A body's own dof in its parent's set."""
        if not any(self.memory.has(number, path, g) for g in SEEN[group]):
            return None
        shape = self.memory.members[number, path]
        return {OWN: mapped(shape, lambda p, _: self._member(body, number, p, body.parent, body.i, True), path)}

    # Stores

    def keep(self, number: int, value: Any, body: LoopBody) -> None:
        """Store a body's value of a field: without an inner loop all but other members, within one only these."""
        m = self.memory
        for x, member, rest in parts(value):
            key = number, rest
            if member is None:
                for name in m.readers(key, "joints") if body.member is None else ():
                    self.store(name, key, (body.i,), x)
            elif (member == OWN) == (body.member is None):
                m.kept.add(key)
                self._put(key, x, body, body.i, body.member if member == MEMBER else body.i, False)
        self._learn(number, value, body, body.group)

    def hand(self, number: int, value: Any, body: LoopBody) -> None:
        """Add what a body hands over to what its parent has; members at or below it are new to the parent."""
        m = self.memory
        for x, member, rest in parts(value):
            key = number, rest
            if member is None:
                if body.member is None and m.readers(key, "joints") and not is_zero(x):
                    self.store("joints", key, (body.parent,), x, add=True)
            elif (member == OWN) == (body.member is None):
                add = member == MEMBER and body.group is Group.ABOVE
                if member == OWN:
                    m.handed.add(key)
                if add:
                    m.kept.add(key)
                if not (add and is_zero(x)):
                    self._put(key, x, body, body.parent, body.member if member == MEMBER else body.i, add)
        if body.group is not Group.ABOVE:
            self._learn(number, value, body, Group.BELOW)

    def _put(self, key: Key, x: Any, body: LoopBody, joint: Any, dof: Any, add: bool) -> None:
        m = self.memory
        copied = isinstance(x, Expr) and m.loads.get(x.index, (None,))[0] == key
        if body.member is not None and (add or not copied):
            m.changed.add(key)
        name, index = self.of_member(key, joint, dof)
        if m.readers(key, name) and not (copied and key in m.shared):
            self.store(name, key, index, x, add)

    def _learn(self, number: int, value: Any, body: LoopBody, group: Group) -> None:
        wanted = OWN if body.member is None else MEMBER

        def members(of: dict, path: tuple) -> dict:
            if wanted in of:
                self.memory.learn(number, path, of[wanted], group)
            return of

        rebuilt(value, lambda path, x: x, members)


def parts(value: Any) -> Iterator[tuple[Any, Any, tuple]]:
    """Every scalar of a value, the member it belongs to or None, and its path without that."""
    for path, x in leaves(value):
        keys = [p.key for p in path if isinstance(p, Member)]
        yield x, keys[0] if keys else None, tuple(p for p in path if not isinstance(p, Member))


def rebuilt(value: Any, leaf: Callable[[tuple, Any], Any], members: Callable[[dict, tuple], dict], path: tuple = ()):
    """The value with leaf(path, scalar) for every scalar outside sets, and members(set, path) for every set."""

    def inside(x: Any, part: Any) -> Any:
        return rebuilt(x, leaf, members, (*path, part))

    if value is None:
        return None
    if isinstance(value, dict):
        return type(value)(members(value, path))
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(inside(getattr(value, f.name), f.name) for f in fields(value)))
    if isinstance(value, tuple):
        found = [inside(x, str(k)) for k, x in enumerate(value)]
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    if isinstance(value, list):
        return [inside(x, k) for k, x in enumerate(value)]
    return leaf(path, value)


def is_number(x: Any) -> bool:
    """Whether a scalar is a constant."""
    return not isinstance(x, Expr) or x.value is not None


def number(x: Any) -> float:
    """A constant, for any graph."""
    return float(x.value) if isinstance(x, Expr) else x  # type: ignore[arg-type]


def is_zero(x: Any) -> bool:
    return x.value == 0 if isinstance(x, Expr) else x == 0
