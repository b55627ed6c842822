"""A guarded viser server: on the loopback address, behind a random token, with checked Host and Origin
headers.

viser by itself serves every client that reaches its port, including any page in the same browser. Here every
request, for the page and for its websocket, passes through `ServerGuard` before viser handles it. viser has
no interface for this, so the guard replaces the websockets library in viser's module while the server starts.
A request without a token then checks that the guard is active; if it is not, the server is shut down and
nothing is shown.
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
    from viser import _messages, uplot
    from viser.infra import _infra
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response
except ImportError as error:
    raise MissingExtraError(
        f"zw.view needs viser ({error}): pip install 'zwang[view]'; zw.save_html writes a page without it"
    ) from None

__all__ = ["LOOPBACK", "guarded_server", "quietly", "uplot", "viser"]

LOOPBACK = "127.0.0.1"
TIMEOUT = 5.0  # seconds that the request which checks the guard may take
IDLE = (
    2.0  # seconds that a connection may wait for its request; browsers open spare ones, which delay closing
)
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; connect-src 'self' data: blob:; worker-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
}

RequestHandler = Callable[[Any, Request], Response | None]


class ServerGuard:
    """Accepts a request only if its Host, its Origin (if given) and its token are those of this server.

    The token is the first part of the path; viser's page opens its websocket at the same path.
    """

    def __init__(self):
        self.token = secrets.token_urlsafe(24)
        self.was_called = False

    def wrap(self, handler: RequestHandler) -> RequestHandler:
        """viser's request handler, called only for accepted requests; it returns None where the websocket
        continues.
        """

        def guarded(connection: Any, request: Request) -> Response | None:
            self.was_called = True
            if not self.allows(request, connection.local_address[1]):
                return _response(HTTPStatus.NOT_FOUND, b"not found")
            request.path = "/"
            response = handler(connection, request)
            if response is not None:
                for name, value in HEADERS.items():
                    response.headers[name] = value
            return response

        return guarded

    def allows(self, request: Request, port: int) -> bool:
        """Whether a request comes from a page of this server at that port, or was typed into the browser, and
        has the token.
        """
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
    """A viser server behind a `ServerGuard`, and the address of its page, which contains the token.

    Raises SimulationError if the installed version of viser cannot be guarded.
    """
    guard = ServerGuard()
    with _guard_inserted(guard), quietly():
        server = viser.ViserServer(host=LOOPBACK, port=0, label=label, verbose=False)
    try:
        _check_guard(guard, server)
    except SimulationError:
        with quietly():
            server.stop()
        raise
    for message in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(message)  # no page may open a public tunnel
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(47, 109, 179))
    return server, f"http://{LOOPBACK}:{server.get_port()}/{guard.token}/"


@contextlib.contextmanager
def _guard_inserted(guard: ServerGuard) -> Iterator[None]:
    """A context in which servers that viser starts pass every request to the guard first.

    Only the name `websockets` in viser's module is replaced; other users of the library are not affected.
    """

    def serve(handler: Any, host: str, port: int, *, process_request: RequestHandler, **settings: Any) -> Any:
        guarded = guard.wrap(process_request)
        settings["open_timeout"] = IDLE
        return websockets.asyncio.server.serve(handler, host, port, process_request=guarded, **settings)

    original = vars(_infra)["websockets"]
    _infra.websockets = SimpleNamespace(  # type: ignore[attr-defined]
        asyncio=SimpleNamespace(server=SimpleNamespace(serve=serve)),
        datastructures=websockets.datastructures,
        exceptions=websockets.exceptions,
    )
    try:
        yield
    finally:
        _infra.websockets = original  # type: ignore[attr-defined]


def _check_guard(guard: ServerGuard, server: viser.ViserServer) -> None:
    """Check that the server listens on the loopback address only and rejects a request without a token.

    Raises SimulationError otherwise.
    """
    connection = http.client.HTTPConnection(LOOPBACK, server.get_port(), timeout=TIMEOUT)
    try:
        connection.request("GET", "/")
        status = connection.getresponse().status
    except OSError:
        status = None
    finally:
        connection.close()
    if status != HTTPStatus.NOT_FOUND or not guard.was_called or server.get_host() != LOOPBACK:
        raise SimulationError(
            f"zwang cannot guard the server of viser {viser.__version__}, so nothing is shown. "
            "Fix: pip install 'viser==1.1.*', or use zw.save_html"
        )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """A context that suppresses viser's own output, which shows an address without the token."""
    console = rich.get_console()  # in a notebook, rich does not write to the standard output
    previous, console.quiet = console.quiet, True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = previous


def _response(status: HTTPStatus, body: bytes) -> Response:
    headers = Headers(
        {**HEADERS, "Content-Type": "text/plain", "Content-Length": str(len(body)), "Connection": "close"}
    )
    return Response(status.value, status.phrase, headers, body)
