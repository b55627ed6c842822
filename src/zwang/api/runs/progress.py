"""A progress bar for simulations that take longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds before the bar appears
COLUMNS = (
    TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
    TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
)  # fmt: skip


@contextmanager
def progress_bar(first: str, then: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A context that yields tick(n), to be called after n more of `total` steps.

    After a second the bar appears on the standard error stream, if that is a terminal or a notebook with
    ipywidgets. Its text is `first` until the first tick, and then `then`.
    """
    console = Console(file=sys.stderr)
    if console.is_jupyter:  # without ipywidgets rich warns, and shows nothing
        shown = shown and find_spec("ipywidgets") is not None
    else:
        shown = shown and console.is_terminal
    bar = Progress(*COLUMNS, console=console, transient=True)
    task = bar.add_task(escape(first), total=total)
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True

    def tick(n: int) -> None:
        bar.update(task, advance=n, description=escape(then))

    if shown:
        timer.start()
    try:
        yield tick
    finally:
        timer.cancel()
        if shown:
            timer.join()
            bar.stop()
