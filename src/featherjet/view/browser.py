"""A browser without a window, which draws the viewer's page where nobody has it open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from ..errors import FeatherjetError, FeatherjetWarning, warn
from ..settings import setting

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
OPTIONS = (
    "--headless=new", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage",
    "--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
)  # fmt: skip
UNBOXED = ("--no-sandbox", "--disable-gpu-sandbox")
SANDBOX_TRIAL = 60.0  # seconds within which a browser has drawn an empty page, or has no sandbox here


class NoBrowser(FeatherjetError, RuntimeError):
    """There is no browser to draw a picture with."""


def chromium() -> str | None:
    """The path of a Chromium or Chrome; FEATHERJET_CHROMIUM names another."""
    return setting("FEATHERJET_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def has_screen() -> bool:
    """Whether a window can be opened here; over ssh, for example, it cannot."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(k) for k in ("DISPLAY", "WAYLAND_DISPLAY"))


@cache
def _sandbox_options(path: str) -> tuple[str, ...]:
    """What a browser needs to start here: nothing where its sandbox works; tried once on an empty page."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return UNBOXED  # Chromium refuses to run as root otherwise
    command = [path, *OPTIONS, "--dump-dom", "about:blank"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        try:
            tried = subprocess.run([*command, f"--user-data-dir={profile}"], timeout=SANDBOX_TRIAL, capture_output=True)
        except subprocess.TimeoutExpired:  # it starts, however slowly
            return ()
    if tried.returncode == 0:
        return ()
    warn(FeatherjetWarning(
        "the browser that draws pictures has no sandbox here (containers often forbid user namespaces), so it runs "
        "without one; it opens nothing but featherjet's own page"
    ))  # fmt: skip
    return UNBOXED


@contextmanager
def headless(url: str, width: int, height: int, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A browser of its own with the page open: the process, and the folder of its profile."""
    path = chromium()
    if path is None:
        raise NoBrowser(
            "pictures are drawn by a browser, and none is here: open the page, or install chromium "
            "(FEATHERJET_CHROMIUM names one elsewhere)"
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        size = f"--window-size={width},{height}"
        boxed = _sandbox_options(path)
        command = [path, *OPTIONS, *boxed, *options, size, f"--user-data-dir={profile}", url]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process, profile
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
