"""A real browser for tests: Debian's chromium without a window, driven by its own debugging protocol."""

from __future__ import annotations

import base64
import io
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from featherjet.view.browser import headless

PATIENCE = 300.0  # seconds after which a wait has failed; a loaded machine may need many
DEBUGGING = ("--remote-debugging-port=0", "--remote-allow-origins=*")


class Page:
    """One page: run JavaScript, press keys, take pictures."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._count = socket, 0

    def send(self, method: str, **parameters: Any) -> dict:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def script(self, text: str) -> Any:
        return self.send("Runtime.evaluate", expression=text, returnByValue=True)["result"].get("value")

    def wait(self, text: str, seconds: float = PATIENCE) -> Any:
        """Until a script's value is true."""
        until = time.monotonic() + seconds
        while not (value := self.script(text)):
            assert time.monotonic() < until, f"never came true: {text}"
            time.sleep(0.2)
        return value

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self) -> bytes:
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def pixels(self) -> np.ndarray:
        from PIL import Image

        return np.asarray(Image.open(io.BytesIO(self.picture())).convert("RGB"), float)


@contextmanager
def opened(url: str) -> Iterator[Page]:
    """A page in a browser of its own."""
    from websockets.sync.client import connect

    page = url.partition("?")[0]  # a viewer's address leads to one below it
    with headless(url, 1280, 800, *DEBUGGING) as (process, profile):
        port = Path(profile) / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE
        while not port.exists() or "\n" not in port.read_text():
            assert time.monotonic() < until, "the browser does not start"
            assert process.poll() is None, "the browser has died"
            time.sleep(0.1)
        listing = f"http://127.0.0.1:{port.read_text().split()[0]}/json"
        pages: list[dict] = []
        while not pages:
            with urllib.request.urlopen(listing, timeout=PATIENCE) as answer:
                pages = [p for p in json.load(answer) if p["type"] == "page" and p["url"].startswith(page)]
            assert time.monotonic() < until, "the browser does not open the page"
        with connect(pages[0]["webSocketDebuggerUrl"], max_size=None) as socket:
            yield Page(socket)


def come_true(condition: Callable[[], object], otherwise: str) -> None:
    """Wait for as long as it takes, within reason."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)


def blue(pixels: np.ndarray) -> np.ndarray:
    """Where limbs are: a blue that nothing else beside the panel has."""
    r, g, b = np.moveaxis(pixels, -1, 0)
    return (b > r + 25) & (b > g + 8) & (b > 60)


def in_the_middle(seen: np.ndarray) -> bool:
    """Whether what is seen (h, w) fills a good part of a picture, lies around its middle, and is not cut off."""
    where = np.argwhere(seen)
    low, high, size = where.min(0), where.max(0), np.array(seen.shape)
    near = np.abs((low + high) / 2 - size / 2) < 0.15 * size
    return bool(near.all() and (low > 2).all() and (high < size - 3).all() and ((high - low) / size).max() > 0.4)
