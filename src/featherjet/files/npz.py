"""Array files: read without trust, written so that they appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import InputError

Array = np.ndarray
COPY = 1 << 20  # bytes to copy at a time


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, by name; pickled objects are refused."""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise InputError(f"{path}: one bare array; expected an .npz file with named ones")
        with file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, not an .npz file") from None
    except InputError:
        raise
    except (ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error):
            raise InputError(f"{path}: no .npz file of plain arrays; pickled objects are never read") from None
        raise InputError(f"{path}: broken, or not an .npz file ({error})") from None
    if odd := [name for name, x in arrays.items() if not isinstance(x, np.ndarray)]:
        raise InputError(f"{path}: {odd[0]!r} in it is not an array")
    return arrays


class NpzWriter:
    """Collects arrays along their first axis, in pieces, and leaves one .npz file, or nothing on any error.

    Pieces go at once to a folder beside the target, so that memory does not bound the size of the result. At
    the end they become one file, which is moved into place in a single step.
    """

    def __init__(self, path: Path, overwrite: bool = False) -> None:
        self.path, self.overwrite = Path(os.path.realpath(path)), overwrite
        self._pieces: dict[str, tuple[BinaryIO, list[int], np.dtype]] = {}

    def __enter__(self) -> NpzWriter:
        self._refuse_bad_target()
        with self._told():
            self._folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
        return self

    def append(self, arrays: Mapping[str, Array]) -> None:
        """Add rows to each of the named arrays."""
        with self._told():
            for name, x in arrays.items():
                x = np.ascontiguousarray(x)
                if name not in self._pieces:
                    self._pieces[name] = open(self._folder / name, "wb"), [0, *x.shape[1:]], x.dtype
                raw, shape, _ = self._pieces[name]
                raw.write(x.data)
                shape[0] += len(x)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with self._told():
                for piece in self._pieces.values():
                    piece[0].close()
                if kind is None:
                    self._finish()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """The system's refusals (a full disk, no permission) in our words."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from error

    def _refuse_bad_target(self) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.path}: is a directory; name a file in it")
        if not self.path.parent.is_dir():
            raise InputError(f"{self.path.parent}: there is no such directory")
        if self.path.exists() and not self.overwrite:
            raise InputError(f"{self.path}: exists; --overwrite replaces it")

    def _finish(self) -> None:
        whole = self._folder / "whole.npz"
        with open(whole, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, (_, shape, dtype) in self._pieces.items():
                    self._pack(archive, name, shape, dtype)
            file.flush()
            os.fsync(file.fileno())
        self._refuse_bad_target()
        os.replace(whole, self.path)
        sync_folder(self.path.parent)

    def _pack(self, archive: zipfile.ZipFile, name: str, shape: list[int], dtype: np.dtype) -> None:
        """One array into the archive; its raw piece goes, to need the room on the disk only once."""
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        piece = self._folder / name
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, header)  # type: ignore[arg-type]
            with open(piece, "rb") as raw:
                shutil.copyfileobj(raw, member, COPY)
        piece.unlink()


def sync_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where the system lets us."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
