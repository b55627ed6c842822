"""Work shared by threads: it can be interrupted at any time, and no thread writes into memory that is gone.

Python raises KeyboardInterrupt in the main thread only, and only while that thread runs Python. So the main thread
does no long work itself: it hands it to others and waits. When it is interrupted, it asks them to stop, waits until
the last one has, which takes them one step or one piece, and goes on with the exception.

A process may fork while other threads compile. The child has none of these threads, and a lock that one of them held
would stay locked for ever. So a fork waits until nothing is being compiled.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

LOCK = threading.RLock()  # held while the code of a program is made
LLVM_LOCK = threading.RLock()  # held while LLVM works, which an interrupt does not end; taken after LOCK
GLANCE = (
    0.05  # seconds between two looks of a waiting thread, where the system does not wake it for an interrupt
)


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pieces:
    """Pieces of work that threads take one after the other, until there are none, one fails, or they are withdrawn."""

    def __init__(self, work: Callable[..., None], pieces: Sequence[tuple[int, int]]):
        self.work, self.left = work, iter(list(pieces))
        self.error: BaseException | None = None
        self.is_closed = False  # nobody begins another piece
        self._counting, self._working = threading.Lock(), 0
        self._bell = threading.Lock()  # free when it has rung
        self._bell.acquire()

    def take(self) -> None:
        """Do pieces while there are any, on a thread that is not interrupted."""
        with self._counting:
            self._working += 1
        try:
            self.do()
        except BaseException as error:
            self.error = error
        with self._counting:
            self.is_closed = True  # who is here found no more, or failed
            self._working -= 1
            if not self._working and self._bell.locked():
                self._bell.release()

    def do(self) -> None:
        """Do pieces while there are any, on any thread."""
        while not self.is_closed and (piece := next(self.left, None)) is not None:
            self.work(*piece)

    def wait(self) -> None:
        """Return when there are no pieces any more, and nobody works on one. It takes no lock that a thread needs."""
        while self._working or not self.is_closed:
            self._bell.acquire(timeout=GLANCE)


def share(
    work: Callable[..., None],
    pieces: Sequence[tuple[int, int]],
    threads: int,
    *,
    is_short: bool = False,
    stop: Callable[[], None] = lambda: None,
) -> None:
    """work(*piece) for every piece, on so many threads. What a piece raises is raised here.

    is_short: all takes some hundredths of a second at most, so that this thread, too, can take part. stop(): asks the
    pieces that are being worked on to end early; it is called when this thread is interrupted. `work` must hold
    references to all memory that it writes to.
    """
    takes_part = is_short or threading.current_thread() is not threading.main_thread()
    others = min(threads, len(pieces)) - takes_part
    shared = _Pieces(work, pieces)
    try:
        for _ in range(others):
            _pool(threads).submit(shared.take)
        if takes_part:
            shared.do()
            shared.is_closed = True
        shared.wait()
    except BaseException:
        _end(shared, stop)
        raise
    if shared.error is not None:
        raise shared.error


def _end(shared: _Pieces, stop: Callable[[], None]) -> None:
    """Return when no thread works any more, however often this one is interrupted meanwhile."""
    while True:
        try:
            shared.is_closed = True
            stop()
            shared.wait()
            return
        except KeyboardInterrupt:
            continue


def is_compiling() -> bool:
    """Whether LLVM works on something, which may be what an interrupt left alone."""
    if LLVM_LOCK.acquire(blocking=False):
        LLVM_LOCK.release()
        return False
    return True


def apart(function: Callable[[], Any]) -> Any:
    """function(), which no interrupt can end, on another thread: this one can be interrupted, and then leaves it alone.

    The function must not write to anything that others use.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    found: list[Any] = []
    alone = _Pieces(lambda *_: found.append(function()), [(0, 0)])
    _apart_pool().submit(alone.take)
    alone.wait()
    if alone.error is not None:
        raise alone.error
    return found[0]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="zwang")


@cache
def _apart_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="zwang-llvm")


# ------------------------------------------------------------------------------------------------ forks


def _before_fork() -> None:
    LOCK.acquire()
    LLVM_LOCK.acquire()


def _after_fork() -> None:
    LLVM_LOCK.release()
    LOCK.release()


def _in_child() -> None:
    """A forked process has none of its parent's threads."""
    _pool.cache_clear()
    _apart_pool.cache_clear()
    _free_cached_properties()
    _after_fork()


def _free_cached_properties() -> None:
    """Before Python 3.12 a cached property has a lock for all objects, which a thread that is gone may have held."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "zwang":
            continue
        for kind in list(vars(module).values()):
            for value in list(vars(kind).values()) if isinstance(kind, type) else ():
                if isinstance(value, cached_property):
                    value.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
