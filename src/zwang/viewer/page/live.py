"""`zw.view`: a live page in the browser, served to this computer only, on which Python can show further
configurations.
"""

from __future__ import annotations

import atexit
import sys
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from typing import Any

import xarray as xr

from zwang.api.arguments import validation
from zwang.deprecation import renamed_attributes
from zwang.errors import ShapeError
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.viewer.html_page import embedded_page, page_html
from zwang.viewer.scene import scene_content

OPEN_TIMEOUT, RELOAD_TIMEOUT = (
    15.0,
    3.0,
)  # seconds that an ending script waits: for a browser to open the page, and for it to reload the page


@validated_arguments()
def view(
    mechanism_or_run: Mechanism | xr.Dataset,
    *,
    worlds: int = 16,
    traces: Sequence[str] = (),
    browser: bool | None = None,
) -> View:
    """Show a mechanism with a slider for each joint, or play a recording, on a page in the browser.

    mechanism_or_run: a mechanism without free symbols, or a recording of `zw.simulate`. Forces are drawn if
        the recording contains them, by record={"forces": True} or zw.derived_quantities(run, "forces").
    worlds: the number of worlds of a recording to show; 16 by default.
    traces: the name of a body or frame whose path and velocity ellipsoid can be drawn, or several names.
    browser: whether to open the page in the browser; by default yes, except in a notebook, which displays an
        offline page instead.

    Returns the View, whose method `show(q)` displays a configuration. The page is served as long as the View
    exists. When a script ends, it waits until the browser closes the page, or for Ctrl-C.

    Raises MissingExtraError if viser is not installed, ParameterError for symbols without values,
    UnknownNameError for an unknown frame, and ShapeError for a dataset that is not a recording.
    """
    found = View(mechanism_or_run, worlds=worlds, traces=traces)
    if browser if browser is not None else "ipykernel" not in sys.modules:
        if not hasattr(sys, "ps1"):  # in a script; an interactive session keeps the page alive by itself
            atexit.register(found.wait_while_open)
        webbrowser.open(found.url)
    return found


@renamed_attributes(wait_while_seen="wait_while_open")
class View:
    """A page at `url`, served on the loopback address of this computer until `close()` is called."""

    def __init__(self, what: Mechanism | xr.Dataset, *, worlds: int = 16, traces: Sequence[str] = ()):
        self._offline = partial(page_html, what, worlds=worlds, traces=tuple(traces))
        self._shown = scene_content(what, worlds, traces)
        self._page = import_module("zwang.viewer.page.viser_page").ViserPage(self._shown)
        self._closed = threading.Event()
        atexit.register(self.close)

    @property
    def url(self) -> str:
        """The address of the page; it contains a secret token, and only this computer can open it."""
        return self._page.url

    def show(self, q: Any, world: int = 0) -> None:
        """Show the configuration q (nq,) for one of the page's worlds.

        Raises ShapeError for a wrong shape or world, and StateError for values that are not finite.
        """
        worlds = len(self._shown.mechanisms)
        if not 0 <= world < worlds:
            raise ShapeError(f"world is {world!r}; the page shows the worlds 0 to {worlds - 1}")
        self._page.set_configuration(int(world), validation.configuration(self._shown.mechanisms[world], q))

    def wait_while_open(self) -> None:
        """Wait up to 15 s for a browser to open the page, and then until it closes the page, or for Ctrl-C.

        `zw.view` calls this method when a script ends.
        """
        if not self._closed.is_set() and self._page.opened.wait(OPEN_TIMEOUT):
            print(f"{self.url}\nThe page is served until you close it or press Ctrl-C.", flush=True)
            while not self._closed.is_set() and self._page.is_open(RELOAD_TIMEOUT):
                self._closed.wait(0.5)

    def wait(self) -> None:
        """Serve the page until Ctrl-C, or until another thread calls `close()`."""
        while not self._closed.wait(0.5):
            pass

    def close(self) -> None:
        """Stop serving. A page that is still open no longer changes."""
        atexit.unregister(self.wait_while_open)
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
        """The offline page, as a notebook displays it."""
        return embedded_page(self._offline())
