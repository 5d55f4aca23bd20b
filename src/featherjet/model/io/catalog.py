"""Load robots by path or by name: model files, the built-in robots, and those of `example-robot-data`."""

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
    path_or_name: str | os.PathLike[str],
    root: str = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
) -> Model:
    """A robot from a URDF or MJCF file, or by a name that `robots()` lists.

    The format follows from the content of a file, not from its suffix. `root` is the joint between world and base:
    "fixed" (none), "free" or "planar". `mimic` couples a URDF's mimic joints. `strict` turns warnings about the file
    into errors. `gravity` (3,) [m/s^2] replaces the file's, or (0, 0, -9.81) for a URDF.
    """
    path = _as_path(path_or_name)
    if path is None:
        name = _normalised(str(path_or_name))
        if name in _built_in():
            return _built_in_model(name, root, gravity)
        path = _resolve(str(path_or_name))
    tag = root_tag(read_bytes(path))
    if tag == "mujoco" or (tag is None and path.suffix.lower() == ".mjcf"):
        return load_mjcf(path, root, strict=strict, gravity=gravity)
    return load_urdf(path, root, mimic=mimic, strict=strict, gravity=gravity)


def robots() -> dict[str, str]:
    """All robots that can be loaded by name, and their origin: "built-in" or the path of the file."""
    found = {name: str(path) for name, path in sorted(_wheel_robots().items())}
    return dict.fromkeys(_built_in(), BUILT_IN) | {k: v for k, v in found.items() if k not in _built_in()}


def _as_path(given: object) -> Path | None:
    """The path, or None if `given` is a robot's name; a name takes precedence over a file without suffix."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"expected a path or the name of a robot, got {type(given).__name__}")
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
    hint = "" if _wheel_robots() else f"More robots come with {WHEEL}: pip install 'featherjet[robots]'"
    hint = hint or "A path needs a suffix (.urdf, .xml) or a folder"
    raise UnknownName("robot", name, [*_built_in(), *sorted({*_wheel_robots(), *_known_names()})], hint)


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
