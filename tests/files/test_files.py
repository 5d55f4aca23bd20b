"""Files are written atomically: complete, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from featherjet.errors import InputError
from featherjet.files.atomic import atomic_write, refuse_bad_target, write_text
from featherjet.files.npz import NpzWriter, file_format, read_npz, require_format, write_npz
from featherjet.model.names import coordinate_names
from helpers import every_kind


def test_a_file_is_replaced_when_its_successor_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "nowhere" / "a.txt"
    with (
        pytest.raises(InputError, match=r"a\.txt: cannot be written \(No such file or directory\)"),
        atomic_write(path) as to,
    ):
        to.write_text("new")


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
        ({}, "featherjet walk", "2", "not a featherjet walk file: array 'format' is missing"),
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
