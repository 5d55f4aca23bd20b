"""Array files (.npz): read without trusting them, written atomically."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..atomic import atomic_write, named_in_errors, refuse_bad_target
from ..errors import InputError

Array = np.ndarray
COPY_BYTES = 1 << 20  # copied at a time
SMALL_BYTES = 64 << 20  # unpacked; files of this size are read however small they are
MOST_RATIO = 20  # of a larger file's size, unpacked, to that of the file itself


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name; pickled objects are refused, and sizes are checked before memory is taken."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError(f"{path}: is not a regular file, so it cannot be an .npz file")
        with open(path, "rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise InputError(f"{path}: holds a single unnamed array; expected an .npz file of named arrays")
            return _arrays(path, file)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, not an .npz file") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise InputError(f"{str(path)!r}: cannot be read ({error})") from None


def _arrays(path: Path, file: BinaryIO) -> dict[str, Array]:
    try:
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _refuse_bomb(path, sum(m.file_size for m in members), size)
            return {m.filename.removesuffix(".npy"): _array(path, archive, m) for m in members}
    except InputError:
        raise
    except Exception as error:  # whatever zipfile, zlib and NumPy raise at bytes that nobody wrote on purpose
        raise InputError(f"{path}: damaged, or not an .npz file ({error})") from None


def _refuse_bomb(path: Path, unpacked: int, size: int) -> None:
    if unpacked > max(SMALL_BYTES, MOST_RATIO * size):
        raise InputError(
            f"{path}: its {size} bytes would take {unpacked / 1e6:.0f} MB, more than {MOST_RATIO} times as much; "
            "if you trust it, write it again with np.savez"
        )


def _array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """One array, if it is as large as its header and the archive say."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)  # type: ignore[arg-type]
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise InputError(f"{path}: entry {name!r} is not an array")
        shape, fortran, dtype = read(file)  # type: ignore[arg-type]
        if dtype.hasobject:
            raise InputError(f"{path}: not an .npz file of plain arrays; pickled objects are never read")
        count = prod(shape)
        if min(shape, default=0) < 0 or count * dtype.itemsize != member.file_size - file.tell():
            raise InputError(f"{path}: array {name!r} is not as large as its header says")
        found = np.frombuffer(bytearray(file.read()), dtype, count)
        return found.reshape(shape, order="F" if fortran else "C")


def write_npz(path: Path, arrays: Mapping[str, Any], overwrite: bool = True) -> Path:
    """Write named arrays (or text, or numbers) atomically."""
    with atomic_write(path, overwrite) as file:
        np.savez(file, **arrays)
    return path


def file_format(arrays: Mapping[str, Array]) -> str:
    """The format that a featherjet file states in its array `format`; empty if it states none."""
    return str(arrays["format"]) if "format" in arrays else ""


def described(arrays: Mapping[str, Array]) -> str:
    """What a file with these arrays is, in a few words."""
    if found := file_format(arrays):
        return f"its format is {found!r}"
    if {"mass_matrix", "bias"} <= {*arrays}:
        return "it holds results of `featherjet derive`, state by state, and no motion in time"
    if {"q", "v"} <= {*arrays}:
        return "it holds states, as `featherjet sample` writes them, and no motion in time"
    listed = ", ".join([*arrays][:6]) + (", ..." if len(arrays) > 6 else "")
    return f"it holds the arrays {listed}" if arrays else "it holds no arrays"


def require_format(arrays: Mapping[str, Array], kind: str, version: str) -> None:
    """Raise an InputError unless the arrays come from a file of the format f"{kind} {version}"."""
    found, expected = file_format(arrays), f"{kind} {version}"
    if not found.startswith(kind):
        raise InputError(f"not a {kind} file: {described(arrays)}")
    if found != expected:
        raise InputError(f"its format is {found!r}; this version of featherjet reads {expected!r}")


def require_arrays(arrays: Mapping[str, Array], kind: str, names: tuple[str, ...]) -> None:
    """Raise an InputError naming the first array that a file of this kind must have and has not."""
    if missing := [name for name in names if name not in arrays]:
        raise InputError(f"not a {kind} file: array {missing[0]!r} is missing")


class NpzWriter:
    """Collects arrays along their first axis, piece by piece, and writes one .npz file; on any error, none.

    Pieces go straight to nameless files beside the target: memory does not limit the size of the result, and nothing
    is left behind, however the process ends.
    """

    def __init__(self, path: Path, overwrite: bool = False) -> None:
        self.path, self.overwrite = Path(os.path.realpath(path)), overwrite
        self._pieces: dict[str, tuple[BinaryIO, list[int], np.dtype]] = {}

    def __enter__(self) -> NpzWriter:
        refuse_bad_target(self.path, self.overwrite)
        return self

    def append(self, arrays: Mapping[str, Array]) -> None:
        """Add rows to each of the named arrays."""
        with named_in_errors(self.path):
            for name, x in arrays.items():
                x = np.ascontiguousarray(x)
                if name not in self._pieces:
                    piece = tempfile.TemporaryFile(dir=self.path.parent)
                    self._pieces[name] = piece, [0, *x.shape[1:]], x.dtype
                raw, shape, _ = self._pieces[name]
                raw.write(x.data)
                shape[0] += len(x)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for piece in self._pieces.values():
                with suppress(OSError):
                    piece[0].close()

    def _finish(self) -> None:
        with (
            atomic_write(self.path, self.overwrite) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        ):
            for name in self._pieces:
                self._pack(archive, name)

    def _pack(self, archive: zipfile.ZipFile, name: str) -> None:
        """Move one array into the archive; its piece is closed and so freed: disk space is needed only once."""
        piece, shape, dtype = self._pieces[name]
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, header)  # type: ignore[arg-type]
            piece.seek(0)
            shutil.copyfileobj(piece, member, COPY_BYTES)
        piece.close()
