"""What of an MJCF file acts in MuJoCo and not here, element by element, with the lines where they stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...errors import ModelError
from ..model import Array
from .xmltree import Element, parse

FREE, BALL = 0, 1  # mjtJoint
IN_JOINTS = (0, 1)  # mjtTrn: JOINT, JOINTINPARENT
TENDON = 3  # mjtTrn
SECTIONS = ("actuator", "sensor", "equality", "tendon", "keyframe")  # whose children MuJoCo keeps in the file's order
NAMED = (*SECTIONS, "body", "geom", "joint")
COUNTED = {"keyframe": "key", "equality": "eq", "joint": "jnt"}  # in the names of MuJoCo's counts
FLAGS = ("constraint", "limit", "frictionloss", "passive", "spring", "damper")  # without them, less acts than here


class LeftOut(NamedTuple):
    """Elements that act in MuJoCo alone.

    kind: what they are, in the plural. element: "joint", "geom", ..., as MuJoCo and the file's `Lines` name them.
    which: their numbers among those. reason: what is missing here, or what to do instead.
    """

    kind: str
    element: str
    which: Iterable[int]
    reason: str


def left_out(mj: Any) -> Iterator[LeftOut]:
    """All that acts in a compiled MjModel and not here."""
    disabled = _disabled(mj)
    yield from _of_actuators(mj)
    yield from _of_joints(mj)
    collides = _collides(mj) & (not {"contact", "constraint"} & disabled)
    yield LeftOut(
        "geoms that collide", "geom", np.flatnonzero(collides), "touches nothing here; feet of an fj.Ground do"
    )
    margins = collides & ((mj.geom_margin != 0) | (mj.geom_gap != 0))
    yield LeftOut("margins", "geom", np.flatnonzero(margins), "its margin and gap do not act here")
    yield LeftOut("equality constraints", "equality", range(mj.neq), "does not hold here; fj.Contacts holds points")
    yield LeftOut("tendons", "tendon", range(mj.ntendon), "does not act here")
    yield LeftOut("sensors", "sensor", range(mj.nsensor), "measures nothing here")
    yield LeftOut("keyframes", "keyframe", range(mj.nkey), "is not read here")
    yield LeftOut(
        "mocap bodies", "body", np.flatnonzero(mj.body_mocapid >= 0), "is a mocap body, which stays where it is"
    )
    yield LeftOut(
        "bodies with gravity compensation", "body", np.flatnonzero(mj.body_gravcomp), "its gravcomp does not act here"
    )
    yield LeftOut("flexible bodies", "flex", range(getattr(mj, "nflex", 0)), "does not move here")
    yield LeftOut("plugins", "plugin", range(mj.nplugin), "does not act here")
    fluid = mj.opt.density or mj.opt.viscosity
    yield LeftOut("fluid forces", "option", range(bool(fluid)), "fluid forces do not act here")
    for flag in sorted(disabled & set(FLAGS)):
        yield LeftOut("disabled flags", "flag", range(1), f"{flag}='disable' is not read")


def actuator_armature(mj: Any) -> Array:
    """The armature (nv,) that actuators of joints add to the mass matrix: theirs, times their squared gear."""
    found = np.zeros(mj.nv)
    for a in np.flatnonzero(getattr(mj, "actuator_armature", np.zeros(0))):
        output = mj.actuator_outadr[a]
        if mj.actuator_trntype[a] in IN_JOINTS:
            first = mj.jnt_dofadr[mj.actuator_trnid[output, 0]]
            dofs = mj.dof_jntid == mj.dof_jntid[first]
            found[dofs] += mj.actuator_armature[a] * mj.actuator_gear[output, 0] ** 2
    return found


def _of_actuators(mj: Any) -> Iterator[LeftOut]:
    count = len(mj.actuator_trntype)
    yield LeftOut("actuators", "actuator", range(count), "does not act here; give torques")
    elsewhere = np.flatnonzero(~np.isin(mj.actuator_trntype, (*IN_JOINTS, TENDON)))
    yield LeftOut("transmissions", "actuator", elsewhere, "acts on no joint, but by another transmission")
    by_tendon = getattr(mj, "actuator_armature", np.zeros(count)) * (mj.actuator_trntype == TENDON)
    yield LeftOut("armatures of tendons", "actuator", np.flatnonzero(by_tendon), "its armature is missing in M")
    for element, limited in (("actuator", mj.actuator_forcelimited), ("joint", mj.jnt_actfrclimited)):
        yield LeftOut("force ranges", element, np.flatnonzero(limited), "its force range does not act here")


def _of_joints(mj: Any) -> Iterator[LeftOut]:
    def where(what: Array) -> Array:
        return np.flatnonzero(what if what.ndim == 1 else what.any(-1))

    straight = ~np.isin(mj.jnt_type, (FREE, BALL))
    free = (mj.dof_armature + actuator_armature(mj))[mj.jnt_dofadr] * (mj.jnt_type == FREE)
    curved = where(getattr(mj, "jnt_stiffnesspoly", np.zeros(mj.njnt)))
    bent = mj.dof_jntid[where(getattr(mj, "dof_dampingpoly", np.zeros(mj.nv)))]
    margins = where((mj.jnt_margin != 0) & (mj.jnt_limited != 0))
    for kind, which, reason in (
        ("limits of ball joints", where((mj.jnt_limited != 0) & ~straight), "its range does not act here"),
        ("margins", margins, "its margin does not act here"),
        ("springs of ball and free joints", where((mj.jnt_stiffness != 0) & ~straight), "its spring does not act here"),
        ("springs that are not linear", curved, "of its spring, only the linear part acts"),
        ("dampers that are not linear", np.unique(bent), "of its damping, only the linear part acts"),
        ("springs that yield", where(getattr(mj, "jnt_springyield", np.zeros(mj.njnt))), "its spring never yields"),
        ("armatures of free joints", where(free), "its armature acts in the body's axes, in MuJoCo in the world's"),
    ):
        yield LeftOut(kind, "joint", which, reason)


def _disabled(mj: Any) -> set[str]:
    """The flags that the file disables, by bits that depend on MuJoCo's version."""
    import mujoco

    bits: Any = vars(mujoco)["mjtDisableBit"].__members__
    return {
        name.removeprefix("mjDSBL_").lower()
        for name, bit in bits.items()
        if name.startswith("mjDSBL_") and mj.opt.disableflags & int(bit)
    }


def weightless(mj: Any) -> bool:
    """Whether the file switches gravity off."""
    return "gravity" in _disabled(mj)


def _collides(mj: Any) -> Array:
    """Which geoms (ngeom,) can touch another one: by their masks, and not on the same body or on its parent."""
    weld = mj.body_weldid[mj.geom_bodyid]
    kinds, of = np.unique(np.stack([weld, mj.geom_contype, mj.geom_conaffinity]), axis=1, return_inverse=True)
    body, contype, conaffinity = kinds
    parent = mj.body_weldid[mj.body_parentid[body]]
    found = np.zeros(len(body), bool)
    for k in range(len(body)):
        masks = (contype[k] & conaffinity) | (conaffinity[k] & contype)
        family = (body == body[k]) | ((parent == body[k]) & (body[k] != 0)) | ((body == parent[k]) & (body != 0))
        found[k] = (masks.astype(bool) & ~family).any()
    return found[of.ravel()]


class Lines:
    """Elements of an MJCF document in the order of MuJoCo's arrays, to say where they stand."""

    def __init__(self, document: str | bytes, source: str) -> None:
        self.source = source
        self._elements: dict[str, list[Element]] = defaultdict(list)
        try:
            root = parse(document, source) if document else None
        except ModelError:  # MuJoCo read it all the same, from another file perhaps
            root = None
        for section in root.children if root else ():
            if section.tag in SECTIONS:
                self._elements[section.tag] += section.children
            elif section.tag == "option":
                self._elements["option"].append(section)
                self._elements["flag"] += section.all("flag")
            elif section.tag == "worldbody":
                self._add_bodies(section)
        self._named = {(k, x.attributes.get("name", "")): x for k, some in self._elements.items() for x in some}

    def _add_bodies(self, world: Element) -> None:
        """Bodies depth first, and what is in each of them."""
        stack = [world]
        while stack:
            body = stack.pop()
            self._elements["body"].append(body)
            inside = list(_flat(body))
            self._elements["geom"] += [x for x in inside if x.tag == "geom"]
            self._elements["joint"] += [x for x in inside if x.tag in ("joint", "freejoint")]
            stack += [x for x in reversed(inside) if x.tag == "body"]

    def place(self, mj: Any, element: str, number: int, reason: str) -> str:
        """A sentence that begins with file and line; without the line if other files or macros add such elements."""
        elements, count = self._elements[element], getattr(mj, f"n{COUNTED.get(element, element)}", 1)
        name = getattr(mj, element)(number).name if element in NAMED else ""
        there = self._named.get((element, name)) if name else None
        if not name and len(elements) == count:
            there = elements[number]
        if there is not None:
            return str(there.error(reason))
        return f"{self.source}: {element} {repr(name) if name else number}: {reason}"


def _flat(body: Element) -> Iterator[Element]:
    """What is in a body, frames opened."""
    for child in body.children:
        yield from _flat(child) if child.tag == "frame" else [child]
