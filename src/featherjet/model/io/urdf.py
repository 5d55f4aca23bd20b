"""Read URDF files with the conventions of Pinocchio's reader, to the same numbers.

- Joints are in depth-first order, those below one link sorted by name. Joint frames are the file's.
- Fixed joints are welded: their inertias are added to the joint above, and links and fixed joints remain as frames.
  Bodies welded to the world do not move, so that their inertias are dropped.
- A continuous joint has two coordinates (cosine, sine), with limits of 1.01 that never bind; the quaternion of a
  floating joint has such limits too. A planar joint moves in the xy plane of its frame, whatever its axis says.
- With mimic=False, joints that mimic others are independent. With mimic=True they follow; a chain of mimic joints
  follows its first joint, and a continuous joint that leads or follows becomes a revolute joint without limits, since
  q = multiplier * q_leader + offset needs an angle.
- If a link has the name of a joint elsewhere, the joint's frame keeps the name and the link's is named `<name>_link`.

Stricter than Pinocchio: anything that is not clearly a number, a name or a tree is an error with file and line.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import ModelError, UnknownName
from ..builder import ModelBuilder, transform
from ..model import GRAVITY, Array, Model
from ..parts import Mimic
from .xmltree import Element, parse, read_bytes

KIND = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "planar": "planar",
    "floating": "free",
    "fixed": None,
}
ONE_AXIS = ("revolute", "continuous", "prismatic")
ROOTS = {"fixed": None, "free": "free", "planar": "planar"}
ROOT_JOINT = "root_joint"
UNIT = 1.01  # Pinocchio's limit on coordinates that stay within [-1, 1]


def load_urdf(
    path: str | os.PathLike[str],
    root: str = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
) -> Model:
    """The robot in a URDF file with a fixed, free or planar base; `strict` turns warnings into errors."""
    model = parse_urdf(read_bytes(path), root, mimic=mimic, strict=strict, gravity=gravity, source=os.fspath(path))
    return replace(model, source=os.path.abspath(path))


def parse_urdf(
    document: str | bytes,
    root: str = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
    source: str = "<string>",
) -> Model:
    """The robot in a URDF document; `source` is its name in messages."""
    if root not in ROOTS:
        raise UnknownName("root", root, ROOTS)
    robot = _robot(parse(document, source))
    links = _named(robot.all("link"))
    joints = {name: _joint(name, element) for name, element in _named(robot.all("joint")).items()}
    base, below = _tree(robot, links, joints)
    followers = _followers(joints) if mimic else {}
    builder = ModelBuilder(
        robot.text("name"), gravity=GRAVITY if gravity is None else gravity, strict=strict, source=source
    )
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            _build(builder, ROOTS[root], base, links, below, followers)
            _doubt_left_out(builder, robot, joints.values(), mimic)
            return builder.build()
    except (ModelError, np.linalg.LinAlgError) as error:
        if isinstance(error, ModelError) and str(error).startswith(source):
            raise
        raise ModelError(f"{source}: {error}") from None


@dataclass(frozen=True)
class _Joint:
    name: str
    type: str
    parent: str
    child: str
    element: Element


def _robot(document: Element) -> Element:
    """The <robot> element, after checking that it is one and contains no xacro macros."""
    if document.tag != "robot":
        hint = {"mujoco": "; this is MJCF: use load_mjcf", "sdf": "; this is SDF, which is not supported"}
        raise document.error(f"not a URDF: the root element must be <robot>{hint.get(document.tag, '')}")
    for element in [document, *document.children]:
        for child in element.children:
            if child.tag.startswith("xacro:"):
                raise child.error("a xacro macro; expand the file first: xacro robot.urdf.xacro > robot.urdf")
    document.text("name")
    return document


def _named(elements: list[Element]) -> dict[str, Element]:
    """Elements by name; a name used twice is an error."""
    named: dict[str, Element] = {}
    for element in elements:
        name = element.text("name")
        if name in named:
            raise element.error(f"the name is already used in line {named[name].line}")
        named[name] = element
    return named


def _joint(name: str, element: Element) -> _Joint:
    type_ = element.text("type")
    if type_ not in KIND:
        raise element.error(f"unknown type {type_!r}; there are: {', '.join(KIND)}")
    parent, child = element.child("parent"), element.child("child")
    if parent is None or child is None:
        raise element.error(f"<{'child' if parent else 'parent'} link=...> is missing")
    return _Joint(name, type_, parent.text("link"), child.text("link"), element)


def _tree(robot: Element, links: dict[str, Element], joints: dict[str, _Joint]) -> tuple[str, dict[str, list[_Joint]]]:
    """The root link, and for each link the joints below it, sorted by name; anything but one tree is an error."""
    if not links:
        raise robot.error("there is no <link>")
    above: dict[str, _Joint] = {}
    below: dict[str, list[_Joint]] = {name: [] for name in links}
    for joint in sorted(joints.values(), key=lambda joint: joint.name):
        for end, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise joint.element.error(f"its {end} link {link!r} is not defined")
        if joint.child in above:
            other = above[joint.child]
            raise joint.element.error(
                f"link {joint.child!r} is already the child of joint {other.name!r} "
                f"(line {other.element.line}); closed loops are not supported"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    bases = [name for name in links if name not in above]
    if len(bases) > 1:
        raise links[bases[1]].error(f"no joint connects it to {bases[0]!r}; root links: {', '.join(bases[:8])}")
    reached = list(bases)
    for link in reached:
        reached.extend(joint.child for joint in below[link])
    if len(reached) < len(links):
        lost = set(links).difference(reached)
        first = next(name for name in links if name in lost)
        raise links[first].error("it is part of a cycle: its parent is one of its descendants")
    return bases[0], below


def _build(
    builder: ModelBuilder,
    root_kind: str | None,
    base: str,
    links: dict[str, Element],
    below: dict[str, list[_Joint]],
    followers: dict[str, Mimic],
) -> None:
    """Add everything from the base on, depth first; without recursion, since chains may be long."""
    joint_names = {joint.name for joints in below.values() for joint in joints}
    one_coordinate = set(followers) | {mimic.joint for mimic in followers.values()}
    carrier = None
    if root_kind:
        if ROOT_JOINT in joint_names:
            raise ModelError(
                f"a joint is named {ROOT_JOINT!r}, as is the joint that root={root_kind!r} adds; rename it"
            )
        joint_names.add(ROOT_JOINT)
        carrier = builder.add_joint(ROOT_JOINT, root_kind)
    taken = joint_names | set(links)
    stack: list[tuple[str, _Joint | None, str | None, Array]] = [(base, None, carrier, np.eye(4))]
    while stack:
        link, joint, carrier, T = stack.pop()  # T: the parent link's frame, in the frame of the joint that carries it
        if joint is not None:
            T = T @ origin(joint.element)
            if joint.type == "fixed":
                builder.add_frame(joint.name, carrier, T, kind="fixed_joint")
            else:
                settings = _settings(builder, joint, joint.name in one_coordinate)
                follows = followers.get(joint.name)
                carrier = builder.add_joint(joint.name, parent=carrier, placement=T, mimic=follows, **settings)
                T = np.eye(4)
        frame = link
        if link in joint_names and (joint is None or joint.name != link):
            while frame in taken:
                frame += "_link"
            taken.add(frame)
        _add_body(builder, links[link], carrier, T)
        builder.add_frame(frame, carrier, T, kind="body")
        stack.extend((j.child, j, carrier, T) for j in reversed(below[link]))


def _add_body(builder: ModelBuilder, link: Element, carrier: str | None, T: Array) -> None:
    inertial = link.child("inertial")
    if inertial is None:
        return
    where = origin(inertial)
    mass, inertia = inertial.child("mass"), inertial.child("inertia")
    if mass is None or inertia is None:
        raise link.error("its <inertial> needs both <mass> and <inertia>")
    xx, xy, xz, yy, yz, zz = (inertia.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    builder.add_body(
        carrier,
        mass.number("value"),
        inertia=[[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]],
        placement=T @ where,
        label=f"{link.source}:{link.line}: link {link.attributes['name']!r}",
    )


def _settings(builder: ModelBuilder, joint: _Joint, one_coordinate: bool) -> dict:
    """Kind, axis, limits, damping and friction of a moving joint, as keywords of `add_joint`."""
    element = joint.element
    axis_element, limit, dynamics = element.child("axis"), element.child("limit"), element.child("dynamics")
    axis = [1.0, 0.0, 0.0] if axis_element is None else axis_element.vector("xyz")
    kind = KIND[joint.type]
    if joint.type == "floating":
        return dict(kind=kind, lower=[-math.inf] * 3 + [-UNIT] * 4, upper=[math.inf] * 3 + [UNIT] * 4)
    if joint.type == "planar":
        if any(axis[:2]):
            message = f"a planar joint moves in the xy plane of its frame; its axis {axis} is ignored"
            builder.doubt(str(element.error(message)))
        return dict(kind=kind, lower=[-math.inf] * 2 + [-UNIT] * 2, upper=[math.inf] * 2 + [UNIT] * 2)
    if not any(axis):
        raise element.error("the axis is zero, so it has no direction")
    settings: dict = dict(kind=kind, axis=np.array(axis) / max(map(abs, axis)))
    if limit is not None:
        settings |= dict(effort_limit=limit.number("effort"), velocity_limit=limit.number("velocity"))
        if min(settings["effort_limit"], settings["velocity_limit"]) < 0:
            raise limit.error("an effort or velocity limit is negative")
    if joint.type == "continuous":
        settings |= dict(kind="revolute") if one_coordinate else dict(lower=-UNIT, upper=UNIT)
    elif limit is None:
        raise element.error(f"a {joint.type} joint needs a <limit>; without bounds its type is 'continuous'")
    else:
        settings |= dict(lower=limit.number("lower", 0.0), upper=limit.number("upper", 0.0))
        if settings["lower"] > settings["upper"]:
            message = f"lower limit {settings['lower']:g} above upper {settings['upper']:g}"
            builder.doubt(str(element.error(message)))
    if dynamics is not None:
        settings |= {name: dynamics.number(name, 0.0) for name in ("damping", "friction")}
    return settings


def _doubt_left_out(builder: ModelBuilder, robot: Element, joints: Iterable[_Joint], mimic: bool) -> None:
    """Warn of what other programs let act: mimic joints, limits of velocities, transmissions, sensors."""

    def doubt(kind: str, element: Element, reason: str) -> None:
        builder.doubt(str(element.error(reason)), kind)

    for joint in joints:
        follows, limit, element = joint.element.child("mimic"), joint.element.child("limit"), joint.element
        if follows is not None and not mimic and KIND[joint.type]:
            doubt(
                "joints that mimic",
                element,
                f"moves alone; mimic=True couples it to {follows.attributes.get('joint', '')!r}",
            )
        if limit is not None and joint.type in ONE_AXIS and limit.number("velocity") > 0:
            doubt("velocity limits", element, "its velocity limit does not act in simulate()")
    for kind in ("transmission", "sensor"):
        for element in robot.all(kind):
            doubt(f"{kind}s", element, "does not act here")


def _followers(joints: dict[str, _Joint]) -> dict[str, Mimic]:
    """For each moving joint that mimics another, the first joint of its chain, with composed multiplier and offset."""
    followers: dict[str, Mimic] = {}

    def steps(name: str) -> dict[str, Mimic]:
        """The joints from `name` on that are not known yet, and what each says it mimics."""
        path: dict[str, Mimic] = {}
        while name not in followers and (mimic := joints[name].element.child("mimic")) is not None:
            if name in path:
                ring = [*path][[*path].index(name) :]
                raise joints[ring[-1]].element.error(f"mimics itself: {' -> '.join([*ring, name])}")
            path[name] = _mimic(joints, name, mimic)
            name = path[name].joint
        return path

    for first, joint in joints.items():
        for name, own in reversed(list(steps(first).items()) if joint.type != "fixed" else []):
            further = followers.get(own.joint) or Mimic(own.joint)
            composed = own.multiplier * further.multiplier, own.multiplier * further.offset + own.offset
            followers[name] = _checked(joints[name].element, further.joint, *composed)
    return followers


def _mimic(joints: dict[str, _Joint], name: str, mimic: Element) -> Mimic:
    """What a joint says it mimics."""
    leader, element = mimic.text("joint"), joints[name].element
    found = _checked(element, leader, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
    if leader not in joints:
        raise element.error(f"mimics joint {leader!r}, which does not exist")
    for end in (name, leader):
        if joints[end].type not in ONE_AXIS:
            raise element.error(f"cannot mimic {leader!r}: {end!r} is {joints[end].type}, not a one-axis joint")
    return found


def _checked(element: Element, leader: str, multiplier: float, offset: float) -> Mimic:
    try:
        return Mimic(leader, multiplier, offset)
    except ModelError as error:
        raise element.error(str(error)) from None


def origin(element: Element) -> Array:
    """The transform (4, 4) of an element's <origin>; the identity if it has none."""
    given = element.child("origin")
    if given is None:
        return np.eye(4)
    roll, pitch, yaw = given.vector("rpy", [0.0] * 3)
    (sr, cr), (sp, cp), (sy, cy) = ((math.sin(x), math.cos(x)) for x in (roll, pitch, yaw))
    R = [  # rotations about the fixed axes x, y, z, in this order
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return transform(R, given.vector("xyz", [0.0] * 3))
