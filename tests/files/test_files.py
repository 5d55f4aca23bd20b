"""Files of arrays, and the names in them."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from featherjet.cli import main
from featherjet.cli.output import printed_warnings, table
from featherjet.errors import InputError, ModelError, ModelWarning, PhysicsWarning, SimulationWarning, UnknownName
from featherjet.files.npz import NpzWriter, file_format, read_npz, require_format, write_npz
from featherjet.model.builder import ModelBuilder
from featherjet.model.io.xmltree import read_bytes
from featherjet.model.names import coordinate_names
from featherjet.terminal import console
from helpers import every_kind


def test_pieces_become_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x = np.arange(12.0).reshape(6, 2)
    with NpzWriter(path) as out:
        for part in (x[:1], x[1:4], x[4:]):
            out.append({"x": part, "n": np.arange(len(part))})
        assert not path.exists()
    found = read_npz(path)
    np.testing.assert_array_equal(found["x"], x)
    assert found["n"].tolist() == [0, 0, 1, 2, 0, 1]
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes are POSIX")
def test_what_never_ends_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device would fill all memory, and a pipe without a writer would wait for ever."""
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), pipe):
        with pytest.raises(InputError, match="is not a regular file"):
            read_npz(path)
    monkeypatch.setattr("featherjet.model.io.xmltree.MOST_BYTES", 1 << 20)
    with pytest.raises(ModelError, match="/dev/zero: has more than 1 MB"):
        read_bytes("/dev/zero")


def test_odd_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a\\x00b': cannot be read"):
        read_npz(Path("a\0b"))
    with pytest.raises(InputError, match=r"'a{300}': cannot be read \(.*too long"):
        read_npz(Path("a" * 300))


def test_pickled_objects_are_never_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="pickled objects are never read"):
        read_npz(tmp_path / "a.npz")


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"

    def collide() -> None:
        with NpzWriter(path) as out:
            out.append({"x": np.zeros(3)})
            path.write_text("somebody else's")

    with pytest.raises(InputError, match="exists; --overwrite"):
        collide()
    assert path.read_text() == "somebody else's"
    assert os.listdir(tmp_path) == ["a.npz"]


def test_formats(tmp_path: Path) -> None:
    found = read_npz(write_npz(tmp_path / "a.npz", {"format": "featherjet walk 2", "x": 3}))
    assert file_format(found) == "featherjet walk 2"
    assert file_format({}) == ""
    require_format(found, "featherjet walk", "2")
    for arrays, kind, version, says in (
        ({}, "featherjet walk", "2", "not a featherjet walk file: it holds no arrays"),
        (found, "featherjet run", "2", "not a featherjet run file: its format is 'featherjet walk 2'"),
        (found, "featherjet walk", "3", "its format is 'featherjet walk 2'; this version of featherjet reads"),
    ):
        with pytest.raises(InputError, match=says):
            require_format(arrays, kind, version)


def test_every_coordinate_has_a_name_of_its_own() -> None:
    model = every_kind().model
    q_names, v_names = coordinate_names(model)
    assert (len(q_names), len(v_names)) == (model.nq, model.nv)
    assert len(set(q_names)) == model.nq
    assert len(set(v_names)) == model.nv


def test_sizes_are_checked_before_memory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 200 KB that would take 200 MB; and headers that promise more than there is."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, q=np.zeros(25_000_000))
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="would take 200 MB"):
        read_npz(path)
    monkeypatch.undo()
    np.savez(path, q=np.zeros(10))
    whole = path.read_bytes()
    for shape in (b"(99999999999,)", b"(9,)         "):
        with zipfile.ZipFile(path, "w") as archive:
            entry = zipfile.ZipFile(io.BytesIO(whole)).read("q.npy")
            archive.writestr("q.npy", entry.replace(b"(10,), }" + b" " * (len(shape) - 5), shape + b", }"))
        with pytest.raises(InputError, match="not as large as its header says"):
            read_npz(path)


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **{"\x1b[2J": np.array([None], dtype=object)})  # type: ignore[arg-type]
    for error in (InputError("\x1b[31mred\u202e"), UnknownName("joint", "x", ["\x07bell"])):
        assert str(error).isprintable()
    with pytest.raises(InputError) as caught:
        read_npz(path)
    assert str(caught.value).isprintable()
    for name in ("a\x1b[31m", "a\u202eb", "line\nbreak"):
        builder = ModelBuilder("r")
        with pytest.raises(ModelError, match="control characters"):
            builder.add_joint(name, "revolute")
        builder.add_joint("j", "revolute")
        builder.add_frame(name, "j")
        with pytest.raises(ModelError, match="control characters"):
            builder.build()


def test_control_characters_outside_of_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths, warnings and tables: escapes that featherjet did not write are shown, not obeyed."""
    path = tmp_path / "a\x1b[2J\u202e\x9b.npz"
    assert main(["sample", "arm", "--size", "2", "--out", str(path)]) == 0
    with printed_warnings():
        warnings.warn("b\x1b[31m", ModelWarning, stacklevel=1)
    listing = table("c\x1b]0;title\x07")
    listing.add_row("d\x08\x1b[H")
    console().print(listing)
    out, err = capsys.readouterr()
    assert path.exists()
    assert r"a\x1b[2J\u202e\x9b.npz" in out + err
    assert r"b\x1b[31m" in err
    assert r"c\x1b]0;title\x07" in out
    assert r"d\x08\x1b[H" in out
    assert (out + err).replace("\n", "").isprintable()
    for category in (ModelWarning, PhysicsWarning, SimulationWarning):
        assert str(category("e\x1b[31m")) == r"e\x1b[31m"
