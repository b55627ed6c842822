"""trimesh, imported with interrupts deferred.

Its modules import other libraries inside `except BaseException`, so that a KeyboardInterrupt in these imports
would be lost, and would leave them without the libraries.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """A context that Ctrl-C does not interrupt: it takes effect at the end. Only in the main thread, to which
    Python passes signals.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if received:
            signal.raise_signal(signal.SIGINT)


with deferred_interrupts():
    import trimesh

__all__ = ["trimesh"]
