"""Load robots by path, by name or from text: model files, the built-in robots, and those of other packages."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np

from ...errors import InputError, ModelWarning, UnknownName, warn
from ..model import Model
from . import descriptions
from .documents import Document, Source, document_at, document_in
from .mjcf import load_mjcf, parse_mjcf
from .urdf import parse_urdf
from .xmltree import root_tag

SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")
BUILT_IN = "built-in"
WHEEL = "example-robot-data"
IN_WHEEL = Path("cmeel.prefix", "share", WHEEL, "robots")

# Common names of robots whose files have longer names.
NICKNAMES = {
    "anymal": "anymal_b",
    "g1": "g1_29dof_rev_1_0",
    "solo8": "solo",
    "talos": "talos_reduced",
    "talos_arm": "talos_left_arm",
    "talos_box": "talos_reduced_box",
    "talos_full": "talos_full_v2",
    "talos_full_box": "talos_full_v2_box",
    "ur3_limited": "ur3_joint_limited",
    "ur5_limited": "ur5_joint_limited",
    "ur10_limited": "ur10_joint_limited",
}


def load_model(
    given: Source,
    root: str = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
) -> Model:
    """A robot from a URDF or MJCF file, its text, a file that is open, or by a name that `robots()` lists.

    The format follows from the content of a file, not from its suffix. `root` is the joint between world and base:
    "fixed" (none), "free" or "planar". `mimic` couples a URDF's mimic joints. `strict` turns warnings about the file
    into errors. `gravity` (3,) [m/s^2] replaces the file's, or (0, 0, -9.81) for a URDF.
    """
    document = document_in(given)
    if document is None:
        path = _as_path(given)
        if path is None:
            name = _normalised(str(given))
            if name in _built_in():
                return _built_in_model(name, root, gravity)
            path = _resolve(str(given))
        document = document_at(path)
    model = _read(document, root, mimic, strict, gravity)
    _warn_of_laws(model, document.source)
    return model if document.path is None else replace(model, source=os.path.abspath(document.path))


def _read(document: Document, root: str, mimic: bool, strict: bool, gravity: Sequence[float] | None) -> Model:
    content, source, path = document
    tag = root_tag(content)
    if tag == "mujoco" or (tag is None and path is not None and path.suffix.lower() == ".mjcf"):
        if path is not None:  # MuJoCo looks for the meshes beside it
            return load_mjcf(path, root, strict=strict, gravity=gravity)
        text = content if isinstance(content, str) else content.decode(errors="replace")
        return parse_mjcf(text, root, strict=strict, gravity=gravity, source=source)
    return parse_urdf(content, root, mimic=mimic, strict=strict, gravity=gravity, source=source)


def _warn_of_laws(model: Model, source: str) -> None:
    """Say in one line that damping, friction and springs are left out of the dynamics."""
    found = {
        what: sum(bool(np.any(getattr(joint, what))) for joint in model.joints)
        for what in ("damping", "friction", "stiffness")
    }
    if any(found.values()):
        listed = ", ".join(f"{what} ({n} joint{'s' * (n > 1)})" for what, n in found.items() if n)
        where = "act in simulate(), and in the dynamics only of robot.with_joint_laws()"
        warn(ModelWarning(f"{os.path.basename(source)}: joints' laws {where}: {listed}"))


def robots() -> dict[str, str]:
    """All robots that can be loaded by name, and their origin: "built-in", the path of the file, or a package."""
    found = dict.fromkeys(descriptions.names(), descriptions.PACKAGE)
    found |= {names[0]: str(_wheel_robots()[robot]) for robot, names in sorted(_names_of_wheel_robots().items())}
    return dict.fromkeys(_built_in(), BUILT_IN) | found


def nicknames() -> dict[str, tuple[str, ...]]:
    """The other names that mean a robot that `robots` lists, shortest first."""
    return {first: tuple(sorted(rest, key=lambda x: (len(x), x))) for first, *rest in _names_of_wheel_robots().values()}


def _names_of_wheel_robots() -> dict[str, list[str]]:
    """For each robot of the wheel all names that mean it alone, its own first unless a built-in robot has it."""
    found: dict[str, list[str]] = {}
    for alias, (name, *others) in sorted(_known_names().items(), key=lambda x: x[0] not in x[1]):
        if not others and alias not in _built_in():
            found.setdefault(name, []).append(alias)
    return found


def _as_path(given: object) -> Path | None:
    """The path, or None if `given` is a robot's name; a name takes precedence over a file without suffix."""
    if isinstance(given, bytes):
        raise InputError("expected a path of type str, or XML; got bytes that are neither")
    if isinstance(given, Model):
        raise InputError("a Model is loaded already; fj.Robot(model) makes a robot of it")
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"expected a path or the name of a robot, XML or an open file, got {type(given).__name__}")
    text = os.fspath(given)
    if not isinstance(text, str):
        raise InputError("expected a path of type str, not bytes")
    path = Path(os.path.expanduser(text))
    if isinstance(given, os.PathLike) or path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        return path
    if os.path.isfile(path) and _normalised(text) not in {*_built_in(), *_known_names()}:
        return path
    return None


def _built_in() -> Mapping[str, Callable[[], Model]]:
    from ..builtin import BUILTIN

    return BUILTIN


def _built_in_model(name: str, root: str, gravity: Sequence[float] | None) -> Model:
    if root != "fixed":
        raise InputError(f"root={root!r}: the built-in robot {name!r} has its own root; omit `root`")
    model = _built_in()[name]()
    return model if gravity is None else model.with_gravity(gravity)


def _resolve(name: str) -> Path:
    """The file of the robot with that name."""
    matches = _known_names().get(_normalised(name), ())
    if len(matches) == 1:
        return _wheel_robots()[matches[0]]
    if matches:
        raise InputError(f"{name!r} is ambiguous: choose one of {', '.join(sorted(matches))}")
    if (file := descriptions.find(name.strip())) is not None:
        return file
    hint = "" if _wheel_robots() else f"More robots come with {WHEEL}: pip install 'featherjet[robots]'"
    hint = hint or "A path needs a suffix (.urdf, .xml) or a folder"
    raise UnknownName("robot", name, [*_built_in(), *sorted({*robots(), *_known_names()} - {*_built_in()})], hint)


def _normalised(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _known_names() -> dict[str, tuple[str, ...]]:
    """Every name that is accepted, with the robots of the wheel that it may mean."""
    return _aliases(_folders())


def _wheel_robots() -> dict[str, Path]:
    """The robots of the wheel: name -> file."""
    return _catalogued(_folders())


@lru_cache(maxsize=4)
def _catalogued(folders: tuple[Path, ...]) -> dict[str, Path]:
    """A robot is named after its file, without "_robot"; files of the same name after their folders, or in full."""
    files = [file for folder in folders for file in sorted(folder.rglob("*.urdf")) if _has_links(file)]
    candidates = []
    for file in files:
        folder_name = _folder_names(file, folders)[1]
        candidates.append((_short_name(file), folder_name, _normalised("_".join(file.parts[-4:]))))
    stems = Counter(stem for stem, _, _ in candidates)
    shorts = Counter(short for stem, short, _ in candidates if stems[stem] > 1)
    names = [
        stem if stems[stem] == 1 else short if shorts[short] == 1 and short not in stems else full
        for stem, short, full in candidates
    ]
    return dict(zip(names, files, strict=True))


@lru_cache(maxsize=4)
def _aliases(folders: tuple[Path, ...]) -> dict[str, tuple[str, ...]]:
    """Accepted names by rules, in order of precedence: own name, nickname, name of the file, name of its folder."""
    library = _catalogued(folders)
    rules: list[Iterable[tuple[str, str]]] = [
        [(name, name) for name in library],
        [(nickname, name) for nickname, name in NICKNAMES.items() if name in library],
        [(stem, name) for name, file in library.items() for stem in {file.stem, _short_name(file)}],
        [(alias, name) for name, file in library.items() for alias in _folder_names(file, folders)],
    ]
    found: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        matches = defaultdict(list)
        for alias, name in rule:
            matches[_normalised(alias)].append(name)
        found = {alias: tuple(dict.fromkeys(names)) for alias, names in matches.items()} | found
    return found


def _short_name(file: Path) -> str:
    return _normalised(file.stem.removesuffix("_robot"))


def _folder_names(file: Path, folders: tuple[Path, ...]) -> tuple[str, str]:
    """The name of the robot's folder in the wheel, in full and without the usual suffixes."""
    base = next(folder for folder in folders if folder in file.parents)
    full = file.relative_to(base).parts[0]
    short = full
    for suffix in ("_data", "_description", "_simple"):
        short = short.removesuffix(suffix)
    return _normalised(full), _normalised(short)


def _has_links(file: Path) -> bool:
    """Whether the file contains a robot; one file of the wheel only wraps a macro."""
    try:
        return b"<link" in file.read_bytes()
    except OSError:
        return False


def _folders() -> tuple[Path, ...]:
    """The folder of the wheel's robots, in a site directory or a prefix such as conda's; empty if not installed."""
    bases = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    bases += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    places = [Path(base) / IN_WHEEL for base in bases if base]
    try:
        places.append(Path(str(metadata.distribution(WHEEL).locate_file(str(IN_WHEEL)))))
    except metadata.PackageNotFoundError:
        pass
    places.append(Path(sys.prefix, "share", WHEEL, "robots"))
    return tuple(dict.fromkeys(place.resolve() for place in places if place.is_dir()))[:1]
