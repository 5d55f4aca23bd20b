"""Files are written whole or not at all."""

from __future__ import annotations

import pytest

from featherjet.errors import InputError
from featherjet.files.atomic import atomic_write


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_goes_wrong_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with atomic_write(path) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_where_it_cannot_be_written_is_told(tmp_path):
    path = tmp_path / "nowhere" / "a.txt"
    with (
        pytest.raises(InputError, match=r"a\.txt: cannot be written \(No such file or directory\)"),
        atomic_write(path) as to,
    ):
        to.write_text("new")
