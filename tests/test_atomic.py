"""Files are written atomically: complete, or not at all."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from featherjet import atomic
from featherjet.atomic import atomic_write, leftovers, refuse_bad_target, refuse_own_input, write_text
from featherjet.errors import InputError

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOBODY = 65534
posix = pytest.mark.skipif(os.name != "posix", reason="modes, owners and pipes are POSIX")


def test_a_file_is_replaced_when_its_successor_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "nowhere" / "a.txt"
    with (
        pytest.raises(InputError, match=r"a\.txt: cannot be written \(No such file or directory\)"),
        atomic_write(path),
    ):
        pass


def test_text_is_utf8_and_has_the_usual_permissions(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", "µ\n")
    assert path.read_bytes() == "µ\n".encode()
    (tmp_path / "b.txt").write_text("as any other file")
    assert path.stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@posix
@pytest.mark.parametrize("overwrite", [True, False])
def test_what_is_written_survives_a_power_failure(tmp_path: Path, monkeypatch, overwrite: bool) -> None:
    """The file is on disk before it gets its name, and the name before we say that it is written."""
    seen, fsync = [], os.fsync

    def synced(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        seen.append((kind, (tmp_path / "a.txt").exists()))
        fsync(handle)

    monkeypatch.setattr(atomic.os, "fsync", synced)
    write_text(tmp_path / "a.txt", "new", overwrite)
    assert seen == [("file", False), ("folder", True)]


@pytest.mark.parametrize(
    "name, overwrite, says",
    [("", True, "is a directory"), ("nowhere/a", True, "no such directory"), ("a", False, "exists; --overwrite")],
)
def test_bad_targets_are_refused(tmp_path: Path, name: str, overwrite: bool, says: str) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match=says):
        refuse_bad_target(tmp_path / name, overwrite)
    refuse_bad_target(tmp_path / "a", True)
    refuse_bad_target(tmp_path / "b", False)


# What is at the target


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_the_mode_of_what_is_replaced_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"


@posix
def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_write(path):
        (growing,) = leftovers(tmp_path)
        assert stat.S_IMODE(growing.stat().st_mode) == 0o600


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
def test_the_owner_of_what_is_replaced_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    os.chown(path, NOBODY, NOBODY)
    write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@posix
def test_a_file_whose_owner_would_be_lost_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    real = os.fstat

    def of_another(handle: int) -> os.stat_result:
        found = list(real(handle))
        found[4] += 1
        return os.stat_result(found)

    monkeypatch.setattr(atomic.os, "fstat", of_another)
    monkeypatch.setattr(atomic.os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no")))
    with pytest.raises(InputError, match="belongs to another user"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_pipes_and_devices_are_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path, what in ((pipe, "a named pipe"), (link, "a named pipe"), (Path("/dev/null"), "a device")):
        with pytest.raises(InputError, match=f"is {what}; only regular files"):
            write_text(path, "new")
        with pytest.raises(InputError, match=what):
            refuse_bad_target(path, True)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_a_pipe_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def write() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            path.mkdir()

    with pytest.raises(InputError, match="is a directory"):
        write()
    assert path.is_dir()
    assert list(tmp_path.iterdir()) == [path]


def test_without_overwrite_a_file_that_appears_in_the_last_moment_stays(tmp_path, monkeypatch) -> None:
    """Even between the last look and the move."""
    path = tmp_path / "a.txt"
    link = os.link

    def slow(source: Path, target: Path) -> None:
        path.write_text("somebody else's")
        link(source, target)

    monkeypatch.setattr(atomic.os, "link", slow)
    with pytest.raises(InputError, match="exists; --overwrite"):
        write_text(path, "new", overwrite=False)
    assert path.read_text() == "somebody else's"
    assert list(tmp_path.iterdir()) == [path]


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for act in (lambda path: write_text(path, "new"), lambda path: refuse_bad_target(path, True)):
        with pytest.raises(InputError, match="no file can have this name"):
            act(tmp_path / "a\0b")
    with pytest.raises(InputError, match=r"cannot be written \(File name too long"):
        write_text(tmp_path / ("a" * 300), "new")


def test_a_name_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = write_text(tmp_path / ("a" * 255), "new")
    assert path.read_text() == "new"


def test_the_input_is_not_overwritten(tmp_path: Path) -> None:
    path, link, other = tmp_path / "a", tmp_path / "link", tmp_path / "b"
    path.write_text("states")
    link.symlink_to(path)
    for target in (path, link, tmp_path / "." / "a"):
        with pytest.raises(InputError, match="is the input itself"):
            refuse_own_input(target, other, path)
    refuse_own_input(other, path)


# Writers that meet, and writers that die


def test_temporary_names_cannot_be_guessed_and_are_never_reused(tmp_path: Path) -> None:
    seen = set()
    for _ in range(20):
        with atomic_write(tmp_path / "a"):
            (growing,) = leftovers(tmp_path)
            seen.add(growing.name)
    assert len(seen) == 20


def test_what_waits_under_the_temporary_name_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the name guessed, a link there would still not be followed."""
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda n: "0" * 2 * n)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    trap = tmp_path / f".featherjet-{'0' * 32}.part"
    trap.symlink_to(victim)
    with pytest.raises(InputError, match="cannot be written"):
        write_text(tmp_path / "a", "new")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "a").exists()


WRITER = """
import sys
from pathlib import Path
from featherjet.atomic import atomic_write
for k in range(100):
    with atomic_write(Path(sys.argv[1])) as file:
        file.write(sys.argv[2].encode() * 100_000)
"""


def test_two_writers_of_one_name_both_end_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter]) for letter in "xy"]
    seen = set()
    while any(w.poll() is None for w in writers):
        if path.exists():
            seen.add(path.read_bytes())
    assert [w.returncode for w in writers] == [0, 0]
    assert seen | {path.read_bytes()} <= {b"x" * 100_000, b"y" * 100_000}
    assert list(tmp_path.iterdir()) == [path]


VICTIM = """
import os, signal, sys
from pathlib import Path
from featherjet.atomic import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_leftovers_of_killed_writers_are_swept_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    mine = [tmp_path / name for name in ("movie.part", ".a.1234abcd.part", ".featherjet-notes.part")]
    for file in mine:
        file.write_text("the user's own")
    run = subprocess.run([sys.executable, "-c", VICTIM, str(path)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    (left,) = leftovers(tmp_path)
    with atomic_write(tmp_path / "b") as living:
        long_ago = 1e9
        for file in (*leftovers(tmp_path), *mine):
            os.utime(file, (long_ago, long_ago))
        write_text(path, "new")
        assert not left.exists()
        assert len(leftovers(tmp_path)) == 1, "its writer lives"
        living.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, tmp_path / "b", *mine])
    assert (tmp_path / "b").read_text() == "whole"


def test_a_young_leftover_may_have_a_writer(tmp_path: Path) -> None:
    young = tmp_path / f".featherjet-{'a' * 32}.part"
    young.write_text("about to be locked")
    write_text(tmp_path / "a", "new")
    assert young.exists()
    assert re.fullmatch(atomic.LEFTOVER, young.name)
