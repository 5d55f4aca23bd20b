"""Robots by path or by name: model files, the built-in robots, and those of `example-robot-data`."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from ...errors import InputError, UnknownName
from ..model import Model
from .mjcf import load_mjcf
from .urdf import load_urdf
from .xmltree import read_bytes, root_tag

SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")
BUILT_IN = "built-in"
WHEEL = "example-robot-data"
IN_WHEEL = Path("cmeel.prefix", "share", WHEEL, "robots")

# What people call robots whose files have longer names.
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
    path_or_name: str | os.PathLike[str],
    root: str = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
) -> Model:
    """A robot from a URDF or MJCF file, or by a name that `robots()` lists.

    The content of a file, not its suffix, tells the format. `root` is the joint between world and base:
    "fixed" (none), "free" or "planar". `mimic` couples a URDF's mimic joints. `strict` refuses what otherwise
    is warned of. `gravity` replaces the file's, or (0, 0, -9.81) for a URDF.
    """
    path = _as_path(path_or_name)
    if path is None:
        name = _normal(str(path_or_name))
        if name in _built_in():
            return _built_in_model(name, root, gravity)
        path = _resolve(str(path_or_name))
    tag = root_tag(read_bytes(path))
    if tag == "mujoco" or (tag is None and path.suffix.lower() == ".mjcf"):
        return load_mjcf(path, root, strict=strict, gravity=gravity)
    return load_urdf(path, root, mimic=mimic, strict=strict, gravity=gravity)


def robots() -> dict[str, str]:
    """Every robot that has a name here, and where it comes from: "built-in" or the path of its file."""
    found = {name: str(path) for name, path in sorted(_library().items())}
    return dict.fromkeys(_built_in(), BUILT_IN) | {k: v for k, v in found.items() if k not in _built_in()}


def _as_path(given: object) -> Path | None:
    """The path that is meant, or None if it is a name; a name wins over a file that has no suffix."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"expected a path or the name of a robot, got {type(given).__name__}")
    text = os.fspath(given)
    if not isinstance(text, str):
        raise InputError("expected a path of type str, not bytes")
    path = Path(os.path.expanduser(text))
    if isinstance(given, os.PathLike) or path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        return path
    if os.path.isfile(path) and _normal(text) not in {*_built_in(), *_names()}:
        return path
    return None


def _built_in() -> Mapping[str, Callable[[], Model]]:
    from ..builtin import BUILTIN

    return BUILTIN


def _built_in_model(name: str, root: str, gravity: Sequence[float] | None) -> Model:
    if root != "fixed":
        raise InputError(f"root={root!r}: the built-in robot {name!r} brings its own root; leave `root` out")
    model = _built_in()[name]()
    return model if gravity is None else model.with_gravity(gravity)


def _resolve(name: str) -> Path:
    """The file of the robot of that name."""
    matches = _names().get(_normal(name), ())
    if len(matches) == 1:
        return _library()[matches[0]]
    if matches:
        raise InputError(f"{name!r} may be any of {', '.join(sorted(matches))}: say which")
    hint = "" if _library() else f"More robots come with {WHEEL}: pip install 'featherjet[robots]'"
    hint = hint or "A path needs a suffix (.urdf, .xml) or a folder"
    raise UnknownName("robot", name, [*_built_in(), *sorted({*_library(), *_names()})], hint)


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _names() -> dict[str, tuple[str, ...]]:
    """Every name that is understood, with the robots of the library it may mean."""
    return _understood(_folders())


def _library() -> dict[str, Path]:
    """The robots of the wheel: name to file."""
    return _catalogued(_folders())


@lru_cache(maxsize=4)
def _catalogued(folders: tuple[Path, ...]) -> dict[str, Path]:
    """A robot is called as its file, less "_robot"; files of one name as their folders, or in full."""
    files = [file for folder in folders for file in sorted(folder.rglob("*.urdf")) if _has_links(file)]
    called = [(_plain(file), _folder_names(file, folders)[1], _normal("_".join(file.parts[-4:]))) for file in files]
    stems = Counter(stem for stem, _, _ in called)
    shorts = Counter(short for stem, short, _ in called if stems[stem] > 1)
    names = [
        stem if stems[stem] == 1 else short if shorts[short] == 1 and short not in stems else full
        for stem, short, full in called
    ]
    return dict(zip(names, files, strict=True))


@lru_cache(maxsize=4)
def _understood(folders: tuple[Path, ...]) -> dict[str, tuple[str, ...]]:
    """Rules in order of precedence: own name, file's name, nickname, then the name of its folder."""
    library = _catalogued(folders)
    rules: list[Iterable[tuple[str, str]]] = [
        [(name, name) for name in library],
        [(nickname, name) for nickname, name in NICKNAMES.items() if name in library],
        [(stem, name) for name, file in library.items() for stem in {file.stem, _plain(file)}],
        [(alias, name) for name, file in library.items() for alias in _folder_names(file, folders)],
    ]
    understood: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        matches = defaultdict(list)
        for alias, name in rule:
            matches[_normal(alias)].append(name)
        understood = {alias: tuple(dict.fromkeys(names)) for alias, names in matches.items()} | understood
    return understood


def _plain(file: Path) -> str:
    return _normal(file.stem.removesuffix("_robot"))


def _folder_names(file: Path, folders: tuple[Path, ...]) -> tuple[str, str]:
    """The robot's folder in the library, in full and without what all folders are called."""
    base = next(folder for folder in folders if folder in file.parents)
    full = file.relative_to(base).parts[0]
    short = full
    for suffix in ("_data", "_description", "_simple"):
        short = short.removesuffix(suffix)
    return _normal(full), _normal(short)


def _has_links(file: Path) -> bool:
    """Whether the file holds a robot; one in the wheel is but the shell of a macro."""
    try:
        return b"<link" in file.read_bytes()
    except OSError:
        return False


def _folders() -> tuple[Path, ...]:
    """Where the wheel may have put its robots: in any site directory, or in a prefix such as conda's."""
    bases = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    bases += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    places = [Path(base) / IN_WHEEL for base in bases if base]
    try:
        places.append(Path(str(metadata.distribution(WHEEL).locate_file(str(IN_WHEEL)))))
    except metadata.PackageNotFoundError:
        pass
    places.append(Path(sys.prefix, "share", WHEEL, "robots"))
    return tuple(dict.fromkeys(place.resolve() for place in places if place.is_dir()))[:1]
