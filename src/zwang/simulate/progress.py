"""A progress bar for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds before the bar appears


@contextmanager
def progress_bar(what: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Gives tick(n), to be told of n more of `total` steps; after a second a bar appears on the standard error stream."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
               TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    task = bar.add_task(what.replace("[", r"\["), total=total)
    began, started = time.perf_counter(), False

    def tick(n: int) -> None:
        nonlocal started
        if shown and not started and time.perf_counter() - began > PATIENCE:
            bar.start()
            started = True
        bar.update(task, advance=n)

    try:
        yield tick
    finally:
        if started:
            bar.stop()
