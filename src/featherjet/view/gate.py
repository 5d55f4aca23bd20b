"""Who may open the viewer's page and drive its robots: those who know its token, from pages of the viewer's own.

Every request is judged before viser sees it. Its Host must be an address of ours, or else a page of somebody's domain
could have that domain point here (DNS rebinding); its Origin, if a browser sends one, must be the page itself; and it
must carry a token, which only people who see the printed address know. `/?token=...` leads to `/<token>/`, since the
page asks for its WebSocket below its own path.
"""

from __future__ import annotations

import dataclasses
import http
import ipaddress
import secrets
import socket
from types import FunctionType, MethodType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import FeatherjetError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("", "0.0.0.0", "::")
REFUSED = "featherjet's viewer refuses this request: {}.\n"


class Gate:
    """The judge of requests to a server on `host`; `token` is what they must carry."""

    def __init__(self, host: str) -> None:
        self.host, self.token = host.lower(), secrets.token_hex(16)
        self._tickets: set[str] = set()

    def ticket(self) -> str:
        """A token that opens the page once, for command lines: other users of this computer can read those."""
        self._tickets.add(made := secrets.token_hex(16))
        return made

    def guard(self, answer: Any) -> Any:
        """viser's answer to requests, given to those alone that may have one."""

        def judged(connection: Any, request: Any) -> Any:
            try:
                found = answer(connection, self._judge(request))
            except (_Refused, ValueError) as reason:  # ValueError: of a malformed address
                found = connection.respond(http.HTTPStatus.FORBIDDEN, REFUSED.format(reason))
            except _Elsewhere as place:
                found = connection.respond(http.HTTPStatus.FOUND, "the page is elsewhere\n")
                found.headers["Location"] = str(place)
                found.headers["Cache-Control"] = "no-store"
            if found is not None:
                found.headers["Referrer-Policy"] = "no-referrer"  # the address is a secret
            return found

        return judged

    def _judge(self, request: Any) -> Any:
        """The request with the path that viser knows; raises _Refused or _Elsewhere otherwise."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_ours(urlsplit(f"//{hosts[0]}").hostname or ""):
            raise _Refused(f"its Host {', '.join(hosts)!r} is not where the viewer is")
        if [x for x in origins if x.lower() not in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")]:
            raise _Refused(f"it comes from a page elsewhere ({', '.join(origins)})")
        path, _, query = request.path.partition("?")
        first, _, rest = path.removeprefix("/").partition("/")
        if self._knows(first):
            return dataclasses.replace(request, path=f"/{rest}{'?' if query else ''}{query}")
        given = parse_qs(query).get("token", [""])
        if len(given) != 1 or not (self._knows(given[0]) or self._takes(given[0])):
            raise _Refused("it lacks the token of the address that featherjet has printed (viewer.url)")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return request
        raise _Elsewhere(f"/{self.token}/")

    def _is_ours(self, name: str) -> bool:
        """Whether a Host, without its port, is an address of the server."""
        if name == self.host:
            return True
        if self.host in LOOPBACK:
            return name in LOOPBACK
        if self.host not in EVERYWHERE:
            return name in LOOPBACK and _address(self.host) in LOOPBACK
        own = socket.gethostname().lower()
        return _is_address(name) or name in (*LOOPBACK, own, f"{own}.local")

    def _knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _takes(self, given: str) -> bool:
        found = given in self._tickets
        self._tickets.discard(given)
        return found


class _Refused(Exception):
    """A request is refused; the message says why."""


class _Elsewhere(Exception):
    """A request is led to another address, the message."""


def _is_address(name: str) -> bool:
    """Whether a name is an IP address, which no domain's owner can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _address(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError:
        return ""


class _With:
    """A module, or other thing with attributes, some of which are replaced."""

    def __init__(self, thing: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced, _thing=thing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


def guarded_server(gate: Gate, host: str, port: int, label: str) -> Any:
    """A viser server whose every request passes a gate first.

    viser has no place for that: it calls `websockets.asyncio.server.serve` in its thread. So the function that the
    thread runs is made anew for this server, with a `serve` of ours; other servers of the process stay as they are.
    """
    import viser
    from websockets.asyncio import server as real

    passed = []

    def serve(*args: Any, process_request: Any, **settings: Any) -> Any:
        passed.append(True)
        return real.serve(*args, process_request=gate.guard(process_request), **settings)

    class Guarded(viser.ViserServer):
        @property
        def _websock_server(self) -> Any:
            return self.__dict__["_websock_server"]

        @_websock_server.setter
        def _websock_server(self, server: Any) -> None:  # which viser sets before it starts the server
            try:
                worker = server._background_worker.__func__
                sockets = worker.__globals__["websockets"]
            except (AttributeError, KeyError):
                raise _unguarded(viser.__version__) from None
            replaced = _With(sockets, asyncio=_With(sockets.asyncio, server=_With(real, serve=serve)))
            names = {**worker.__globals__, "websockets": replaced}
            own = FunctionType(worker.__code__, names, worker.__name__, worker.__defaults__, worker.__closure__)
            server._background_worker = MethodType(own, server)
            self.__dict__["_websock_server"] = server

    made = Guarded(host, port, label=label, verbose=False)
    if not passed:
        made.stop()
        raise _unguarded(viser.__version__)
    return made


def _unguarded(version: str) -> FeatherjetError:
    return FeatherjetError(
        f"viser {version} serves in a way that featherjet cannot guard, so that other programs could drive the robot; "
        "install viser 1.1: pip install 'viser==1.1.*'"
    )
