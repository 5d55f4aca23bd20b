"""Pictures in a row as a file: GIF, animated PNG, WebP and MP4."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..atomic import atomic_write
from ..errors import InputError, MissingExtra
from ..model.model import Array

PICTURES = {".gif": "GIF", ".png": "PNG", ".webp": "WEBP"}
FORMATS = (*PICTURES, ".mp4", ".html")
COLOURS, SAMPLES = 256, 8  # of a GIF: colours, and frames that they are chosen from
STEP, WEIGHT = 2, 0.5  # of 256 shades that count as different colours; how much a frequent one counts, as a power


def refuse_other_recordings(path: Path) -> None:
    """Raise an InputError unless the name of a recording ends as one of the formats does."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: recordings are {', '.join(FORMATS)} files; give it a name that ends so")


def save_picture(path: Path, pixels: Array, overwrite: bool = True) -> Path:
    """Write pixels (h, w, 3) of bytes as a PNG."""
    with atomic_write(path, overwrite) as file:
        pillow().fromarray(pixels).save(file, format="PNG")
    return path


def save_film(path: Path, frames: Iterable[Array], fps: float, overwrite: bool = True) -> Path:
    """Write frames (h, w, 3) of bytes, `fps` a second, as a GIF, animated PNG, WebP or MP4 that repeats."""
    with atomic_write(path, overwrite) as file:
        if path.suffix.lower() == ".mp4":
            _write_mp4(file, frames, fps)
        else:
            _write_pictures(file, PICTURES[path.suffix.lower()], list(frames), fps)
    return path


def pillow() -> Any:
    """Pillow's Image, or a MissingExtra."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("writing pictures", "pillow", "viewer") from None
    return Image


def _write_pictures(file: BinaryIO, form: str, frames: Sequence[Array], fps: float) -> None:
    Image = pillow()
    first, *rest = [Image.fromarray(x) for x in frames]
    if form == "GIF":  # one palette for all, so that the ground does not flicker
        sample = np.concatenate(frames[:: max(1, len(frames) // SAMPLES)]).reshape(-1, 3)
        seen, count = np.unique(sample // STEP * STEP, axis=0, return_counts=True)
        weighed = np.repeat(seen, np.ceil(count**WEIGHT).astype(int), axis=0)  # the sky must not take all colours
        palette = Image.fromarray(weighed[None]).quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
        first, *rest = [x.quantize(palette=palette, dither=Image.Dither.NONE) for x in (first, *rest)]
    hundredths = np.diff(np.round(100 / fps * np.arange(len(frames) + 1)))  # GIF knows no less
    times = np.maximum(10 * hundredths, 10).astype(int).tolist()
    first.save(file, format=form, save_all=True, append_images=rest, duration=times, loop=0, optimize=True)


def _write_mp4(file: BinaryIO, frames: Iterable[Array], fps: float) -> None:
    """H.264, which every browser plays; odd sizes lose a row or a column."""
    try:
        import av
    except ImportError:
        raise MissingExtra("writing MP4", "av", "video") from None
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "20", "movflags": "faststart"}
        for pixels in frames:
            pixels = pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
            if not stream.width:
                stream.height, stream.width = pixels.shape[:2]
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
