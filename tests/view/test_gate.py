"""Who may open the viewer's page: Host, Origin and token are checked before viser answers anything."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import quote, urlsplit

import pytest

import featherjet as fj
from browser import opened
from featherjet.errors import FeatherjetError
from featherjet.view.browser import chromium
from featherjet.view.gate import Gate

viser = pytest.importorskip("viser", reason="viser is not installed: pip install 'featherjet[viewer]'")
from websockets.exceptions import InvalidStatus  # noqa: E402  (of viser)
from websockets.sync.client import connect  # noqa: E402

PROTOCOL = [f"viser-v{viser.__version__}"]


@pytest.fixture(scope="module")
def viewer():
    made = fj.show(fj.load("arm", backend="numpy"), port=18140)
    yield made
    made.stop()


def asked(viewer, path: str, **headers: str) -> int:
    """The status of an HTTP request."""
    where = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def listened(viewer, path: str, origin: str | None = None, name: str | None = None) -> bool:
    """Whether a WebSocket is taken that asks for a host of this name, and sends the scene."""
    where = urlsplit(viewer.url)
    wire = socket.create_connection((where.hostname, where.port))
    address = f"ws://{name or where.netloc}{path}"
    try:
        with connect(address, sock=wire, subprotocols=PROTOCOL, origin=origin, max_size=None) as page:
            return len(page.recv(timeout=60)) > 0
    except InvalidStatus as error:
        return error.response.status_code != 403


def test_the_address_opens_the_page_and_its_websocket(viewer):
    where, token = urlsplit(viewer.url), viewer.url.rpartition("=")[2]
    assert len(token) == 32
    assert asked(viewer, f"/?token={token}") == 302  # to the page below the token
    assert asked(viewer, f"/{token}/") == 200
    assert asked(viewer, f"/{token}/no-such-file") == 404
    own = f"http://{where.netloc}"
    for path in (f"/{token}", f"/{token}/", f"/?token={token}"):
        assert listened(viewer, path)  # a program that knows the token
        assert listened(viewer, path, origin=own)  # the page
    assert listened(viewer, f"/{token}", origin="http://localhost:9000", name="localhost:9000")  # a tunnel's end
    assert token not in repr(viewer)  # which notebooks and logs keep


@pytest.mark.parametrize("token", ["", "{}x", "x{}", "0" * 32, "é" * 8, "{}/.."])
def test_without_the_token_nobody_sees_anything(viewer, token):
    wrong = token.format(viewer.url.rpartition("=")[2])
    for path in ("/", f"/?token={wrong}", f"/{wrong[:30]}/", "/index.html", f"/?token={wrong}&token={wrong}"):
        path = quote(path, safe="/?=&")
        assert asked(viewer, path) == 403
        assert not listened(viewer, path)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:1", "http://127.0.0.1", "http://127.0.0.1:18140.evil.example",
     "http://localhost:{port}", "file://"],
)  # fmt: skip
def test_pages_elsewhere_are_refused_even_with_the_token(viewer, origin):
    where, token = urlsplit(viewer.url), viewer.url.rpartition("=")[2]
    origin = origin.format(port=where.port)
    assert not listened(viewer, f"/{token}", origin=origin)
    assert asked(viewer, f"/{token}/", Origin=origin) == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:18140", "127.0.0.1.evil.example", "[::1", "", "[::2]"])
def test_other_names_of_this_host_are_refused(viewer, host):
    """As a page has that rebinds its domain: then its own Origin is the Host."""
    token = viewer.url.rpartition("=")[2]
    assert asked(viewer, f"/{token}/", Host=host) == 403
    if host not in ("", "[::1"):
        assert not listened(viewer, f"/{token}", origin=f"http://{host}", name=host)


@pytest.mark.parametrize(
    "host, taken, refused",
    [
        ("127.0.0.1", ["127.0.0.1", "localhost", "::1"], ["192.168.1.2", "robot.lan", "0.0.0.0"]),
        ("localhost", ["127.0.0.1", "localhost"], ["robot.lan"]),
        ("0.0.0.0", ["192.168.1.2", "localhost", "::1"], ["robot.evil.example"]),
        ("::", ["fe80::1", "10.0.0.1"], ["evil.example"]),
        ("192.168.1.2", ["192.168.1.2"], ["localhost", "evil.example", "192.168.1.3"]),
        ("Robot.lan", ["robot.lan"], ["evil.example"]),
    ],
)
def test_hosts_that_are_ours(host, taken, refused):
    gate = Gate(host)
    assert all(gate._is_ours(name) for name in taken)
    assert not any(gate._is_ours(name) for name in refused)


def test_a_ticket_counts_once(viewer):
    for address in (viewer._once(), viewer._once()):
        path = f"/?{urlsplit(address).query}"
        assert asked(viewer, path) == 302
        assert asked(viewer, path) == 403


def test_other_servers_of_the_process_stay_as_they_are(viewer):
    other = viser.ViserServer("127.0.0.1", 18150, verbose=False)
    try:
        with connect(f"ws://127.0.0.1:{other.get_port()}", subprotocols=PROTOCOL, max_size=None) as page:
            assert page.recv(timeout=60)
    finally:
        other.stop()


def test_a_viser_that_cannot_be_guarded_is_refused(monkeypatch):
    from viser import infra

    def unlike(self, ready):  # a worker that serves by other means
        self._broadcast_buffer = None
        ready.release()

    monkeypatch.setattr(infra.WebsockServer, "_background_worker", unlike)
    with pytest.raises(FeatherjetError, match="cannot guard"):
        fj.show(fj.load("arm", backend="numpy"), port=18145)


@pytest.mark.skipif(chromium() is None, reason="no chromium here: apt-get install chromium")
def test_another_page_in_the_same_browser_is_refused(viewer, tmp_path):
    token = viewer.url.rpartition("=")[2]
    page = tmp_path / "evil.html"
    page.write_text(f"""<script>
      const socket = new WebSocket("ws://127.0.0.1:{urlsplit(viewer.url).port}/{token}", ["{PROTOCOL[0]}"]);
      socket.onopen = () => document.title = "open";
      socket.onerror = () => document.title = "refused";
    </script>""")
    with opened(page.as_uri()) as browser:
        browser.wait("document.title == 'refused' || document.title == 'open'")
        assert browser.script("document.title") == "refused"


@pytest.mark.parametrize(
    "works, root, boxed, warns", [(True, False, True, 0), (False, False, False, 1), (True, True, False, 0)]
)
def test_the_browser_keeps_its_sandbox_where_it_can(tmp_path, monkeypatch, works, root, boxed, warns, recwarn):
    from featherjet.view import browser

    said = tmp_path / "options"
    program = tmp_path / "chromium"
    program.write_text(f"""#!/bin/sh
case "$*" in *--no-sandbox*) ;; *) {"true" if works else "exit 1"} ;; esac
echo "$*" >> {said}
""")
    program.chmod(0o755)
    monkeypatch.setenv("FEATHERJET_CHROMIUM", str(program))
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(browser, "setting", lambda name: str(program))
    browser._sandbox_options.cache_clear()
    with browser.headless("about:blank", 10, 10) as (process, _):
        process.wait(60)
    browser._sandbox_options.cache_clear()
    assert ("--no-sandbox" not in said.read_text().splitlines()[-1]) == boxed
    assert sum("sandbox" in str(w.message) for w in recwarn) == warns
