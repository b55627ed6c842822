"""A page that is served to this machine only: `zw.view`. Python can go on showing configurations on it.

The server listens on the loopback address alone, on a port that the system chooses; its address holds a random token; a request
must name this server as its Host and, if it says where it comes from, as its Origin. There is no sharing.
"""

from __future__ import annotations

import atexit
import html
import json
import queue
import secrets
import sys
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import xarray as xr

from zwang import door
from zwang.errors import ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.record import mechanism_of
from zwang.view.page import page_of

LOOPBACK = "127.0.0.1"
PATIENCE = 15.0  # seconds: for a browser at a script's end, and between signs of life
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip


def view(
    mechanism_or_run: Mechanism | xr.Dataset,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
    browser: bool | None = None,
) -> View:
    """Show a mechanism, with a slider for each joint, or play a recording, on a page in the browser.

    Of a recording the first `worlds` worlds are shown; traces: names of bodies or frames whose paths are drawn. browser: open it
    there (by default, unless in a notebook, which shows the page itself). The page stays while the View does; `show(q)` puts a
    configuration on it. Raises ParameterError for symbols without values, UnknownNameError, or ShapeError for another dataset.
    """
    shown = View(mechanism_or_run, worlds=worlds, traces=traces)
    if browser if browser is not None else "ipykernel" not in sys.modules:
        atexit.register(shown.wait_until_seen)
        webbrowser.open(shown.url)
    return shown


class View:
    """A page on this machine's loopback address, at `url`, until `close()`."""

    def __init__(self, what: Mechanism | xr.Dataset, *, worlds: int = 16, traces: Sequence[str] = ()):
        self._offline = partial(page_of, what, worlds=worlds, traces=tuple(traces))
        page = self._offline(live=True)
        self._mechanism = what if isinstance(what, Mechanism) else mechanism_of(what)
        self._worlds = 1 if isinstance(what, Mechanism) else min(worlds, what.sizes["world"])
        self._server = _Server(page.encode("ascii"))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="zwang view", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is; whoever has the address and is on this machine may see it."""
        return f"http://{LOOPBACK}:{self._server.server_port}/{self._server.token}/"

    def show(self, q: Any, world: int = 0) -> None:
        """Put a configuration (nq,) on the page, for one of its worlds. Raises ShapeError or StateError."""
        if not 0 <= world < self._worlds:
            raise ShapeError(f"world is {world!r}; the page shows the worlds 0 to {self._worlds - 1}")
        q = door.configuration(self._mechanism, q)
        self._server.tell(world, json.dumps({"q": np.asarray(q).tolist(), "world": int(world)}))

    def wait_until_seen(self) -> None:
        """Wait a while for a browser to fetch the page, so that a script may end after `zw.view`."""
        self._server.seen.wait(PATIENCE)

    def wait(self) -> None:
        """Serve the page until Ctrl-C, or until `close()` in another thread."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving. A page that is open goes on playing."""
        atexit.unregister(self.wait_until_seen)
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<View {self.url}>"

    def _repr_html_(self) -> str:
        """The page itself, in a notebook."""
        return framed(self._offline())


def framed(page: str, height: int = 560) -> str:
    """A page inside another one, which it cannot reach."""
    style = f"width:100%;height:{height}px;border:1px solid #dde1e6;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


class _Server(ThreadingHTTPServer):
    """Serves one page, and the events that it listens for."""

    daemon_threads = True

    def __init__(self, page: bytes):
        super().__init__((LOOPBACK, 0), _Handler)
        self.page, self.token, self.seen = page, secrets.token_urlsafe(24), threading.Event()
        self._listeners: set[queue.Queue[str | None]] = set()
        self._latest: dict[int, str] = {}
        self._lock = threading.Lock()
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    def tell(self, world: int, message: str) -> None:
        """Send a message to every page that listens; one that comes later gets the latest of each world."""
        with self._lock:
            self._latest[world] = message
            for listener in self._listeners:
                listener.put(message)

    def listen(self) -> queue.Queue[str | None]:
        with self._lock:
            found: queue.Queue[str | None] = queue.Queue()
            for message in self._latest.values():
                found.put(message)
            self._listeners.add(found)
            return found

    def leave(self, listener: queue.Queue[str | None]) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def stop(self) -> None:
        with self._lock:
            for listener in self._listeners:
                listener.put(None)
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the page and its events; refuses everything else."""

    server: _Server
    server_version, sys_version = "zwang", ""

    def do_GET(self) -> None:
        name = self._allowed()
        if name is None:
            self._answer(404, b"not found", "text/plain")
        elif name == "events":
            self._events()
        else:
            self._answer(200, self.server.page, "text/html; charset=us-ascii")
            self.server.seen.set()

    def _allowed(self) -> str | None:
        """What is asked for, "" or "events", if the request is from a page of this server or typed by its owner."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts or origin not in (None, f"http://{host}"):
            return None
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return None
        token, slash, name = self.path.removeprefix("/").partition("/")
        known = secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        return name if known and slash and name in ("", "events") else None

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for header, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def _events(self) -> None:
        """Messages as server-sent events, until the page leaves."""
        self.send_response(200)
        for header, value in {**HEADERS, "Content-Type": "text/event-stream"}.items():
            self.send_header(header, value)
        self.end_headers()
        messages = self.server.listen()
        try:
            while True:
                try:
                    message = messages.get(timeout=PATIENCE)
                except queue.Empty:
                    self._send(": still here\n\n")
                    continue
                if message is None:
                    return
                self._send(f"data: {message}\n\n")
        except OSError:
            return  # the page was closed
        finally:
            self.server.leave(messages)

    def _send(self, text: str) -> None:
        self.wfile.write(text.encode("ascii"))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address holds the token."""
