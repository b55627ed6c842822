"""viser's server for this machine and one reader only: on the loopback address, behind a random token, Host and Origin checked.

viser by itself answers everyone who reaches its port, and any page in the same browser. Here every request, of the page and of its
websocket, goes through `Guard` before viser sees it. How viser starts its server is its own affair, so that the guard is put in its way
there, and then asked from outside whether it stands: a viser that does otherwise is shut down, and shows nothing.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import secrets
from collections.abc import Callable, Iterator
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import rich

from zwang.errors import MissingExtraError, SimulationError

try:
    import viser
    import websockets
    import websockets.asyncio.server
    from viser import _messages
    from viser.infra import _infra
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response
except ImportError as error:
    raise MissingExtraError(
        f"zw.view needs viser ({error}): pip install 'zwang[view]'; zw.save_html writes a page without it"
    ) from None

__all__ = ["LOOPBACK", "guarded_server", "quietly", "viser"]

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0  # seconds for a request to oneself
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; connect-src 'self' data: blob:; worker-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": POLICY,
}  # fmt: skip

Answer = Callable[[Any, Request], Response | None]


class ServerGuard:
    """Lets a request pass that names this server as its Host and, if it says where it comes from, as its Origin, and has the token.

    The token is the first part of the address; viser's page opens its websocket at the same place.
    """

    def __init__(self):
        self.token = secrets.token_urlsafe(24)
        self.asked = False

    def before(self, answer: Answer) -> Answer:
        """viser's way to answer, asked only where a request may pass; None goes on to the websocket."""

        def guarded(connection: Any, request: Request) -> Response | None:
            self.asked = True
            if not self.allows(request, connection.local_address[1]):
                return _told(HTTPStatus.NOT_FOUND, b"not found")
            request.path = "/"
            found = answer(connection, request)
            if found is not None:
                for name, value in HEADERS.items():
                    found.headers[name] = value
            return found

        return guarded

    def allows(self, request: Request, port: int) -> bool:
        """Whether a request is from a page of this server at that port, or typed by its owner."""
        headers = request.headers
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or hosts[0] not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            return False
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return False
        if any(site not in ("none", "same-origin") for site in headers.get_all("Sec-Fetch-Site")):
            return False
        token = request.path.partition("?")[0].removeprefix("/").removesuffix("/")
        return secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


def guarded_server(label: str) -> tuple[viser.ViserServer, str]:
    """A viser server behind a guard, and the address of its page, with the token.

    Raises SimulationError where this viser cannot be guarded.
    """
    guard = ServerGuard()
    with _put_before_viser(guard), quietly():
        server = viser.ViserServer(host=LOOPBACK, port=0, label=label, verbose=False)
    try:
        _check(guard, server)
    except SimulationError:
        with quietly():
            server.stop()
        raise
    for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(message)  # no share: no one's page may open a tunnel
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(47, 109, 179))
    return server, f"http://{LOOPBACK}:{server.get_port()}/{guard.token}/"


@contextlib.contextmanager
def _put_before_viser(guard: ServerGuard) -> Iterator[None]:
    """While inside, a server that viser starts asks the guard first; other users of the websockets library are not touched."""

    def serve(handler: Any, host: str, port: int, *, process_request: Answer, **settings: Any) -> Any:
        asked_first = guard.before(process_request)
        return websockets.asyncio.server.serve(handler, host, port, process_request=asked_first, **settings)

    before = vars(_infra)["websockets"]
    _infra.websockets = SimpleNamespace(  # type: ignore[attr-defined]
        asyncio=SimpleNamespace(server=SimpleNamespace(serve=serve)),
        datastructures=websockets.datastructures,
        exceptions=websockets.exceptions,
    )
    try:
        yield
    finally:
        _infra.websockets = before  # type: ignore[attr-defined]


def _check(guard: ServerGuard, server: viser.ViserServer) -> None:
    """The server listens here alone, and refuses a request without a token."""
    connection = http.client.HTTPConnection(LOOPBACK, server.get_port(), timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        status = connection.getresponse().status
    except OSError:
        status = None
    finally:
        connection.close()
    if status != HTTPStatus.NOT_FOUND or not guard.asked or server.get_host() != LOOPBACK:
        raise SimulationError(
            f"viser {viser.__version__} starts its server in a way that zwang cannot guard; nothing is shown: "
            "pip install 'viser==1.1.*', or use zw.save_html"
        )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """While inside, what viser prints of itself is not seen: an address without the token."""
    console = rich.get_console()  # in a notebook it does not write to the standard output
    was, console.quiet = console.quiet, True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = was


def _told(status: HTTPStatus, body: bytes) -> Response:
    headers = Headers(
        {**HEADERS, "Content-Type": "text/plain", "Content-Length": str(len(body)), "Connection": "close"}
    )
    return Response(status.value, status.phrase, headers, body)
