"""`zw.view`: a page in the browser, served to this machine only, on which Python can go on showing configurations."""

from __future__ import annotations

import atexit
import importlib
import sys
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from typing import Any

import xarray as xr

from zwang.api import validation
from zwang.errors import ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.view.html_page import embedded_page, page_html
from zwang.view.scene import scene_content

PATIENCE, GRACE = (
    15.0,
    3.0,
)  # seconds at a script's end: for a browser to come, and for one that loads the page again


@validated_arguments()
def view(
    mechanism_or_run: Mechanism | xr.Dataset,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
    browser: bool | None = None,
) -> View:
    """Show a mechanism, with a slider for each joint, or play a recording, on a page in the browser.

    Of a recording the first `worlds` worlds are shown; traces: names of bodies or frames whose paths are drawn, and whose
    manipulability can be. browser: open it there (by default, unless in a notebook, which shows an offline page itself). The page stays
    while the View does, and at a script's end until its browser leaves, or Ctrl-C; `show(q)` puts a configuration on it. Forces are
    drawn of recordings that have them: record={"forces": True}, or zw.examine(run, "forces").
    Raises MissingExtraError without viser, ParameterError for symbols without values, UnknownNameError, or ShapeError for another dataset.
    """
    found = View(mechanism_or_run, worlds=worlds, traces=traces)
    if browser if browser is not None else "ipykernel" not in sys.modules:
        if not hasattr(sys, "ps1"):  # a script: where one types, the session keeps the page
            atexit.register(found.wait_while_seen)
        webbrowser.open(found.url)
    return found


class View:
    """A page on this machine's loopback address, at `url`, until `close()`."""

    def __init__(self, what: Mechanism | xr.Dataset, *, worlds: int = 16, traces: Sequence[str] = ()):
        self._offline = partial(page_html, what, worlds=worlds, traces=tuple(traces))
        self._shown = scene_content(what, worlds, traces)
        self._page = importlib.import_module("zwang.view.viser_page").ViserPage(self._shown)
        self._closed = threading.Event()
        atexit.register(self.close)

    @property
    def url(self) -> str:
        """Where the page is; whoever has the address and is on this machine may see it."""
        return self._page.url

    def show(self, q: Any, world: int = 0) -> None:
        """Put a configuration (nq,) on the page, for one of its worlds. Raises ShapeError or StateError."""
        worlds = len(self._shown.mechanisms)
        if not 0 <= world < worlds:
            raise ShapeError(f"world is {world!r}; the page shows the worlds 0 to {worlds - 1}")
        self._page.set_by_hand(int(world), validation.configuration(self._shown.mechanisms[world], q))

    def wait_while_seen(self) -> None:
        """Wait a while for a browser to open the page, and until it has left, or for Ctrl-C: so that a script may end after `zw.view`."""
        if not self._closed.is_set() and self._page.seen.wait(PATIENCE):
            print(f"{self.url}\nshown until its page is closed; Ctrl-C ends it, too", flush=True)
            while not self._closed.is_set() and self._page.is_seen(GRACE):
                self._closed.wait(0.5)

    def wait(self) -> None:
        """Serve the page until Ctrl-C, or until `close()` in another thread."""
        while not self._closed.wait(0.5):
            pass

    def close(self) -> None:
        """Stop serving. A page that is open stands still."""
        atexit.unregister(self.wait_while_seen)
        atexit.unregister(self.close)
        if not self._closed.is_set():
            self._closed.set()
            self._page.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<View {self.url}>"

    def _repr_html_(self) -> str:
        """The offline page, in a notebook."""
        return embedded_page(self._offline())
