"""Compiled code on disk: found again, never trusted unread, and never in the way."""

from __future__ import annotations

import os
import pickle
import re
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet import atomic
from featherjet.cli.output import printed_warnings
from featherjet.errors import InputError
from featherjet.jit import cache, trust
from featherjet.jit import library as libraries
from featherjet.jit.cache import CacheWarning
from featherjet.jit.engine import targets
from featherjet.jit.kernel import direct_call_code
from featherjet.jit.number import DOUBLE
from featherjet.model.builder import transform
from featherjet.model.parts import Mimic
from featherjet.model.tree import Tree
from featherjet.treejit.tables import Tables

MODEL = fj.models.chain(3)
Q = np.array([0.1, -0.4, 0.7])
EXPECTED = fj.Robot(MODEL, backend="numpy").gravity(Q)
COMPILED: dict[str, bytes] = {}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache, in a process that has nothing loaded but direct calls, and has not warned."""
    for name in targets():
        with monkeypatch.context() as chosen:
            chosen.setenv("FEATHERJET_CPU", name)
            direct_call_code(name)
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "code"))
    forget(monkeypatch)
    cache._warned.clear()
    return tmp_path / "code"


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """One entry for each time something is compiled; in truth, once for all tests."""
    seen: list[str] = []
    compiled = libraries.compiled

    def counted(cpu, parts):
        known = tuple(parts)
        seen.append(cpu.name)
        if (cpu, known) not in COMPILED:
            COMPILED[cpu, known] = compiled(cpu, known)
        return COMPILED[cpu, known]

    monkeypatch.setattr(libraries, "compiled", counted)
    return seen


def forget(monkeypatch) -> None:
    """As in a new process: no code in memory."""
    monkeypatch.setattr(libraries, "_loaded", {})


def two_kernels() -> None:
    works()
    fj.Robot(MODEL, backend="compiled").mass_matrix(Q)


def works() -> None:
    np.testing.assert_allclose(fj.Robot(MODEL, backend="compiled").gravity(Q), EXPECTED, rtol=1e-13)


def test_code_is_kept_and_found_again(folder, compilations, monkeypatch):
    assert cache.files() == []
    works()
    (kept,) = cache.files()
    assert kept.suffix == ".fjo"
    assert {p.name for p in folder.iterdir()} == {kept.name, cache.KEY}
    works()
    assert len(compilations) == 1, "code in memory is used again"
    forget(monkeypatch)
    works()
    assert len(compilations) == 1, "code on disk is used again"
    assert kept.read_bytes().startswith(cache.MAGIC)


def test_targets_do_not_share_code(folder, compilations, monkeypatch):
    for _ in range(2):
        for name in targets():
            monkeypatch.setenv("FEATHERJET_CPU", name)
            works()
    assert len(compilations) == len(cache.files()) == len(targets())


def test_robots_of_the_same_joint_kinds_share_code(folder, compilations):
    for n in (2, 5, 30):
        q = np.linspace(-1, 1, n)
        compiled, reference = (fj.Robot(fj.models.chain(n), backend=b).gravity(q) for b in ("compiled", "numpy"))
        np.testing.assert_allclose(compiled, reference, rtol=0, atol=1e-13 * np.abs(reference).max())
    assert len(compilations) == 1
    assert len(cache.files()) == 1


# Code of one robot alone


def arm(
    kind: str = "prismatic",
    mass: float = 2.0,
    com: float = 0.1,
    inertia: float = 0.3,
    armature: float = 0.0,
    axis: tuple = (1, 2, 3),
    pitch: float = 0.0,
    at: float = 0.5,
    below: bool = True,
    gravity: float = -9.81,
    multiplier: float | None = None,
    offset: float = 0.0,
    names: str = "abc",
    limit: float = 1.0,
) -> fj.Model:
    """Three joints, of which the second can be changed in every way there is."""
    a, b, c = names
    m = fj.ModelBuilder("arm", gravity=(0.0, 1.0, gravity))
    m.add_joint(a, "revolute", axis=(0, 1, 0))
    m.add_body(a, 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.15]))
    mimic = None if multiplier is None else Mimic(a, multiplier, offset)
    place = transform(p=(at, 0.0, 0.1))
    m.add_joint(b, kind, a, place, axis=axis, pitch=pitch, armature=armature, mimic=mimic, lower=-limit, upper=limit)
    m.add_body(b, mass, (com, 0.0, 0.0), np.diag([0.3, 0.4, inertia]))
    m.add_joint(c, "revolute", b if below else a)
    m.add_body(c, 0.5, (0.0, 0.1, 0.2), np.diag([0.1, 0.1, 0.1]))
    return m.build()


CHANGES = [
    {}, {"kind": "revolute"}, {"kind": "helical"}, {"kind": "helical", "pitch": 0.1}, {"mass": 2.0 + 1e-15},
    {"com": 0.2}, {"inertia": 0.31}, {"armature": 0.1}, {"axis": (1, 2, 4)}, {"at": 0.6}, {"below": False},
    {"gravity": -1.6}, {"multiplier": 1.0}, {"multiplier": -1.0}, {"multiplier": 1.0, "offset": 0.1},
]  # fmt: skip


def digest(model: fj.Model) -> str:
    return Tables(Tree(model), 4, DOUBLE).digest


def test_robots_that_differ_in_one_number_do_not_share_unrolled_code():
    assert 2.0 + 1e-15 != 2.0
    assert len({digest(arm(**change)) for change in CHANGES}) == len(CHANGES)


def test_what_code_does_not_depend_on_is_not_asked():
    """The same robot, made again, renamed, or with other limits."""
    for change in ({}, {"names": "xyz"}, {"limit": 2.0}):
        assert digest(arm(**change)) == digest(arm())
    assert digest(pickle.loads(pickle.dumps(arm()))) == digest(arm())


def test_unrolled_code_is_found_again_by_the_same_robot_only(folder, compilations, monkeypatch):
    q = np.array([0.1, -0.4, 0.7])

    def right(**change) -> None:
        model = arm(**change)
        expected = fj.Robot(model, backend="numpy").gravity(q[: model.nq])
        found = fj.Robot(model, backend="compiled", unroll=True).gravity(q[: model.nq])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())

    changes = ({}, {"mass": 3.0}, {"multiplier": 2.0}, {"multiplier": 2.0, "offset": 0.3})
    for k, change in enumerate(changes):
        for _ in range(2):
            right(**change)
        assert len(compilations) == k + 1
    forget(monkeypatch)
    for change in changes:
        right(**change)
    assert len(compilations) == len(changes) == len(cache.files()), "all are on disk"


def test_one_state_and_batches_have_their_own_code(folder, compilations):
    robot = fj.Robot(arm(), backend="compiled", unroll=True)
    q = np.zeros((5, 3))
    robot.gravity(q[0])
    assert len(compilations) == 1
    robot.gravity(q)
    robot.gravity(q[:1])
    assert len(compilations) == 2
    robot.gravity(q[0])
    assert len(compilations) == 2
    rolled = fj.Robot(arm(), backend="compiled", unroll=False)
    rolled.gravity(q[0])
    rolled.gravity(q)
    assert len(compilations) == 3, "rolled, one code does both"


def test_kernels_forces_and_kinds_have_their_own_code():
    chain = fj.Robot(MODEL, backend="numpy").evaluator.tree
    from featherjet.treejit.tables import variants

    names = {
        cache.name_of(*what)
        for what in [
            ("gravity", variants(chain), False, 4, "cpu"),
            ("bias", variants(chain), False, 4, "cpu"),
            ("gravity", variants(chain), True, 4, "cpu"),
            ("gravity", variants(chain)[:1], False, 4, "cpu"),
            ("gravity", variants(chain), False, 8, "cpu"),
            ("gravity", variants(chain), False, 4, "another cpu"),
        ]
    }
    assert len(names) == 6
    assert all(len(n) == 44 and n.endswith(".fjo") for n in names)


def test_changed_sources_make_other_names(monkeypatch):
    before = cache.name_of("gravity")
    monkeypatch.setattr(cache, "sources", lambda: "other sources")
    assert cache.name_of("gravity") != before


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "only the beginning": lambda data: data[: len(cache.MAGIC) + 32],
    "one bit": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "bit in the hash": lambda data: data[:20] + bytes([data[20] ^ 128]) + data[21:],
    "longer": lambda data: data + b"\0",
    "garbage": lambda data: os.urandom(len(data)),
    "foreign": lambda data: b"\x7fELF" + data,
    "older format": lambda data: b"featherjet code 1\n" + data[len(cache.MAGIC) :],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_made_anew(folder, compilations, monkeypatch, how):
    works()
    (kept,) = cache.files()
    whole = kept.read_bytes()
    kept.write_bytes(DAMAGE[how](whole))
    forget(monkeypatch)
    works()
    assert len(compilations) == 2
    assert cache.files() == [kept]
    assert kept.read_bytes()[: len(cache.MAGIC)] == cache.MAGIC
    forget(monkeypatch)
    works()
    assert len(compilations) == 2, "and is whole again"


def test_a_folder_in_place_of_a_file(folder, compilations, monkeypatch):
    works()
    (kept,) = cache.files()
    kept.unlink()
    kept.mkdir()
    forget(monkeypatch)
    with pytest.warns(CacheWarning, match="cannot be kept"):
        works()


# No place to write


def test_without_a_place_code_stays_in_memory_after_one_warning(tmp_path, monkeypatch, compilations):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "file" / "code"))
    forget(monkeypatch)
    cache._warned.clear()
    with pytest.warns(CacheWarning, match=r"cannot be kept in .*; every process will compile it again") as said:
        two_kernels()
    assert len(said) == 1
    assert len(compilations) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        works()


def test_control_characters_of_a_path_are_shown(tmp_path, monkeypatch, compilations, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(tmp_path / "file" / "\x1b[2J\u202ecode"))
    forget(monkeypatch)
    cache._warned.clear()
    with pytest.warns(CacheWarning, match="cannot be kept") as said:
        works()
    assert r"\x1b[2J\u202ecode" in str(said[0].message)
    assert str(said[0].message).isprintable()
    forget(monkeypatch)
    cache._warned.clear()
    with printed_warnings():
        works()
    said = capsys.readouterr().err
    assert said.startswith("warning: compiled code cannot be kept")
    assert said.strip().isprintable(), "one line"


def test_a_read_only_folder_warns_once(folder, compilations, monkeypatch):
    def refused(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(atomic.os, "replace", refused)
    with pytest.warns(CacheWarning) as said:
        two_kernels()
    assert len(said) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(folder):
    folder.mkdir()
    folder.chmod(0o500)
    with pytest.warns(CacheWarning):
        works()


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_full_disk_leaves_nothing_behind(folder, compilations, monkeypatch, step):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, step, full)
    with pytest.warns(CacheWarning, match="No space left"):
        works()
    assert {p.name for p in folder.iterdir()} <= {cache.KEY}


def test_an_unreadable_file_is_as_good_as_none(folder, compilations, monkeypatch):
    works()
    forget(monkeypatch)
    monkeypatch.setattr(cache, "read_own", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "no")))
    with pytest.warns(CacheWarning, match="cannot be kept"):  # the key cannot be read either
        works()
    assert len(compilations) == 2


# Whose code it is

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX")
SHARED = {
    "group may write": lambda path: path.chmod(0o770),
    "all may write": lambda path: path.chmod(0o777),
    "a shared temporary folder": lambda path: path.chmod(0o1777),
}


def not_used(compilations: list[str], match: str) -> None:
    """Code on disk is not run, one warning says so, and results are right."""
    before = len(compilations)
    with pytest.warns(CacheWarning, match=match) as said:
        two_kernels()
    assert len(said) == 1
    assert len(compilations) == before + 2


@posix
@pytest.mark.parametrize("how", SHARED)
def test_a_folder_that_others_may_write_is_not_used(folder, compilations, monkeypatch, how):
    two_kernels()
    SHARED[how](folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    forget(monkeypatch)
    not_used(compilations, f"others may write {folder}")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before, "nothing is written either"


@posix
def test_a_folder_below_one_that_others_may_write_is_not_used(folder, compilations, monkeypatch):
    two_kernels()
    folder.parent.chmod(0o775)
    forget(monkeypatch)
    not_used(compilations, f"others may write {folder.parent}; to allow it, chmod go-w")


@posix
def test_a_private_folder_in_a_sticky_one_is_used(folder, compilations, monkeypatch):
    """As `mktemp -d` makes it in /tmp."""
    two_kernels()
    folder.parent.chmod(0o1777)
    forget(monkeypatch)
    two_kernels()
    assert len(compilations) == 2


@posix
def test_the_folder_of_another_user_is_not_used(folder, compilations, monkeypatch):
    two_kernels()
    forget(monkeypatch)
    other = os.geteuid() + 1
    for ids in ("getuid", "geteuid"):
        monkeypatch.setattr(trust.os, ids, lambda: other)
    not_used(compilations, r"belongs to user \d+")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["the code", "the key", "a link on the way"])
def test_what_belongs_to_another_user_is_not_used(folder, compilations, monkeypatch, which):
    two_kernels()
    if which == "a link on the way":
        link = folder.parent / "link"
        link.symlink_to(folder)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        monkeypatch.setenv("FEATHERJET_CACHE_DIR", str(link))
    else:
        for path in [folder / cache.KEY] if which == "the key" else cache.files():
            os.chown(path, 65534, 65534)
    forget(monkeypatch)
    not_used(compilations, "belongs to user 65534")


@posix
def test_code_that_others_may_write_is_made_anew(folder, compilations, monkeypatch):
    two_kernels()
    for path in cache.files():
        path.chmod(0o666)
    forget(monkeypatch)
    not_used(compilations, "others may write")
    forget(monkeypatch)
    two_kernels()
    assert len(compilations) == 4, "and is private again"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620])
def test_a_key_that_others_can_read_signs_nothing(folder, compilations, monkeypatch, mode):
    two_kernels()
    (folder / cache.KEY).chmod(mode)
    forget(monkeypatch)
    not_used(compilations, "others may read or write")


def test_valid_files_that_changed_places_do_not_load(folder, compilations, monkeypatch):
    """They did, and crashed: each has the functions the other's caller expects, with other operands."""
    two_kernels()
    one, other = cache.files()
    aside = folder / "aside"
    for source, target in ((one, aside), (other, one), (aside, other)):
        os.replace(source, target)
    forget(monkeypatch)
    two_kernels()
    assert len(compilations) == 4


def test_the_signature_covers_name_target_and_code(folder):
    cache.write("a.fjo", "cpu", b"code")
    whole = (folder / "a.fjo").read_bytes()
    assert cache.read("a.fjo", "cpu") == b"code"
    assert cache.read("a.fjo", "another cpu") is None
    (folder / "b.fjo").write_bytes(whole)
    assert cache.read("b.fjo", "cpu") is None
    (folder / "a.fjo").write_bytes(whole[:-1] + b"f")
    assert cache.read("a.fjo", "cpu") is None
    (folder / "a.fjo").write_bytes(whole)
    assert cache.read("a.fjo", "cpu") == b"code"
    (folder / cache.KEY).write_bytes(bytes(32))
    assert cache.read("a.fjo", "cpu") is None, "signed by another key"


@posix
def test_links_to_code_and_key_are_not_followed(folder):
    cache.write("a.fjo", "cpu", b"code")
    for name in ("a.fjo", cache.KEY):
        (folder / name).rename(folder / "elsewhere")
        (folder / name).symlink_to(folder / "elsewhere")
        assert cache.read("a.fjo", "cpu") is None
        (folder / "elsewhere").rename(folder / name)
        assert cache.read("a.fjo", "cpu") == b"code"


@pytest.mark.parametrize("key", [b"", b"short", bytes(33)])
def test_a_damaged_key_is_replaced(folder, compilations, monkeypatch, key):
    works()
    (folder / cache.KEY).write_bytes(key)
    for _ in range(2):
        forget(monkeypatch)
        works()
    assert len(compilations) == 2
    assert len((folder / cache.KEY).read_bytes()) == cache.KEY_BYTES


# How much there is


def test_what_was_used_least_recently_makes_room(folder, monkeypatch):
    monkeypatch.setenv("FEATHERJET_CACHE_MB", "100")
    for k in range(6):
        cache.write(f"{k}.fjo", "", bytes(1 << 20))
        os.utime(folder / f"{k}.fjo", (1e9 + k, 1e9 + k))
    assert len(cache.files()) == 6
    (folder / "notes.txt").write_bytes(bytes(1 << 20))
    assert cache.read("0.fjo", "") is not None
    monkeypatch.setenv("FEATHERJET_CACHE_MB", "5")
    cache.write("new.fjo", "", bytes(1000))
    assert {path.stem for path in cache.files()} == {"0", "new", "4", "5"}, "0 was used just now"
    assert (folder / "notes.txt").exists()


def test_a_file_above_the_limit_is_kept_alone(folder, monkeypatch):
    monkeypatch.setenv("FEATHERJET_CACHE_MB", "0")
    for name in ("a.fjo", "b.fjo"):
        cache.write(name, "", b"code")
        assert [p.name for p in cache.files()] == [name]


def test_the_limit_is_a_whole_number(folder, monkeypatch):
    monkeypatch.setenv("FEATHERJET_CACHE_MB", "-1")
    with pytest.raises(InputError, match="FEATHERJET_CACHE_MB"):
        cache.limit()
    with pytest.warns(CacheWarning, match="FEATHERJET_CACHE_MB"):
        cache.write("a.fjo", "", b"code")


# Where it is


def test_an_empty_name_turns_it_off(monkeypatch, compilations):
    monkeypatch.setenv("FEATHERJET_CACHE_DIR", "")
    forget(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        works()
    assert cache.folder() is None
    assert cache.files() == []
    assert cache.clear() == 0
    assert len(compilations) == 1


def test_the_usual_place(monkeypatch, tmp_path):
    monkeypatch.delenv("FEATHERJET_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "featherjet"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache.folder() == Path.home() / ".cache" / "featherjet"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == Path.home() / "Library" / "Caches" / "featherjet"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache.folder() == tmp_path / "featherjet"


def test_clear_takes_only_what_is_ours(folder, compilations, monkeypatch):
    works()
    left = folder / f".featherjet-{'a' * 32}.part"
    left.write_bytes(b"interrupted")
    os.utime(left, (1e9, 1e9))
    (folder / "notes.txt").write_text("mine")
    assert len(cache.files()) == 2
    assert cache.clear() == 1
    assert {p.name for p in folder.iterdir()} == {"notes.txt", cache.KEY}
    assert cache.clear() == 0
    works()  # from memory
    forget(monkeypatch)
    works()
    assert len(compilations) == 2


# Many processes

PROGRAM = f"""
import sys
import numpy as np
import featherjet as fj
from featherjet.jit import library as libraries
count = 0
compiled = libraries.compiled
def counted(cpu, parts):
    global count
    count += 1
    return compiled(cpu, parts)
libraries.compiled = counted
robot = fj.Robot(fj.models.chain(3), backend="compiled")
print(repr(robot.gravity(np.array({Q.tolist()})).tolist()), count)
"""


def start(folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "FEATHERJET_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen) -> tuple[list[float], int]:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    numbers, _, count = out.strip().rpartition(" ")
    return [float(x) for x in numbers.strip("[]").split(",")], int(count)


def test_processes_that_start_at_once_are_all_right(tmp_path):
    folder = tmp_path / "code"
    for process in [start(folder) for _ in range(3)]:
        numbers, _ = finish(process)
        np.testing.assert_allclose(numbers, EXPECTED, rtol=1e-13)
    assert sorted(p.suffix for p in folder.iterdir()) == ["", ".fjo", ".fjo"], "nothing half-written is left"
    numbers, count = finish(start(folder))
    np.testing.assert_allclose(numbers, EXPECTED, rtol=1e-13)
    assert count == 0, "a later process compiles nothing"


# Rights that are borrowed, users without a home, and files that make readers wait


@posix
@pytest.mark.parametrize("ids", ["getuid", "getgid"])
def test_a_program_with_borrowed_rights_reads_no_code_and_no_variable(folder, compilations, monkeypatch, ids):
    two_kernels()
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    forget(monkeypatch)
    real = getattr(os, ids)()
    monkeypatch.setattr(os, ids, lambda: real + 1)
    monkeypatch.setenv("FEATHERJET_CPU", "no such CPU")
    not_used(compilations, "has the rights of another user or group")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert cache.folder() is None
    assert cache.files() == []


def test_variables_are_read_in_one_place():
    """So that none counts in a program with borrowed rights."""
    root = Path(fj.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text()
        if "environ" in text and path.name != "settings.py":
            assert not re.search(r"environ(\.get\(|\[)\s*(\"FEATHERJET_|VARIABLE|\"CC\")", text), path
            assert "getenv" not in text, path


@posix
@pytest.mark.parametrize("given", [{}, {"HOME": ""}, {"HOME": "relative"}, {"XDG_CACHE_HOME": "relative"}])
def test_a_user_without_a_home_computes_without_a_cache(given, tmp_path):
    """As in a container whose user has no entry in /etc/passwd."""
    script = """
import pwd, warnings
def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = unknown
import featherjet as fj
from featherjet.jit import cache
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(fj.load("arm").mass_matrix([0.1] * 7)[0, 0], cache.folder(), len(said))
"""
    environment = {k: x for k, x in os.environ.items() if k in ("PATH", "PYTHONPATH", "FEATHERJET_CPU")}
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment | given
    )
    assert found.returncode == 0, found.stderr
    value, folder, warned = found.stdout.split()
    assert abs(float(value) - fj.load("arm", backend="numpy").mass_matrix([0.1] * 7)[0, 0]) < 1e-12
    assert (folder, warned) == ("None", "1")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_root_makes_no_folder_in_the_home_of_another(tmp_path, compilations, monkeypatch):
    """As `sudo -E` would: it keeps HOME."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 54321, 54321)
    monkeypatch.delenv("FEATHERJET_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    forget(monkeypatch)
    cache._warned.clear()
    not_used(compilations, "belongs to user 54321")
    assert not list(home.iterdir())


@posix
@pytest.mark.parametrize("which", ["key", "code"])
def test_a_pipe_in_the_folder_makes_nobody_wait(folder, compilations, monkeypatch, which):
    two_kernels()
    paths = [folder / cache.KEY] if which == "key" else [p for p in folder.iterdir() if p.suffix == cache.SUFFIX]
    for path in paths:
        path.unlink()
        os.mkfifo(path, 0o600)
    forget(monkeypatch)
    not_used(compilations, "is not a regular file")
