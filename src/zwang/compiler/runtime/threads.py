"""Interruptible execution of work on several threads.

Python raises KeyboardInterrupt in the main thread only, and only while that thread executes Python code. The
main thread therefore does no long work itself: it submits the work to worker threads and waits. When it is
interrupted, it asks the workers to stop, waits until the last one has returned (after at most one step or one
piece of work), and propagates the exception. So no thread writes into memory that has been released.

A process may fork while other threads compile. The child has none of these threads, and a lock that one of
them held would remain locked. A fork therefore waits until no thread compiles.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

COMPILE_LOCK = threading.RLock()  # acquired while a program is compiled
LLVM_LOCK = (
    threading.RLock()
)  # acquired while LLVM works, which an interrupt does not end; after COMPILE_LOCK
POLL_INTERVAL = 0.05  # of a waiting thread, for systems that do not wake it at an interrupt [s]


def cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _WorkQueue:
    """A queue of pieces of work for several threads; it is closed when it is empty, or when a piece fails."""

    def __init__(self, work: Callable[..., None], pieces: Sequence[tuple[int, int]]):
        self.work, self.remaining = work, iter(list(pieces))
        self.error: BaseException | None = None
        self.is_closed = False  # no further piece is started
        self._count_lock, self._working = threading.Lock(), 0
        self._finished = threading.Lock()  # released when the last worker returns
        self._finished.acquire()

    def work_on_worker(self) -> None:
        """Process pieces on a worker thread, which is not interrupted; an exception is stored in `error`."""
        with self._count_lock:
            self._working += 1
        try:
            self.process()
        except BaseException as error:
            self.error = error
        with self._count_lock:
            self.is_closed = True  # the queue is empty, or a piece failed
            self._working -= 1
            if not self._working and self._finished.locked():
                self._finished.release()

    def process(self) -> None:
        """Process pieces until the queue is closed."""
        while not self.is_closed and (piece := next(self.remaining, None)) is not None:
            self.work(*piece)

    def wait(self) -> None:
        """Wait until the queue is closed and no worker is active. It acquires no lock that a worker needs."""
        while self._working or not self.is_closed:
            self._finished.acquire(timeout=POLL_INTERVAL)


def run_pieces(
    work: Callable[..., None],
    pieces: Sequence[tuple[int, int]],
    threads: int,
    *,
    is_short: bool = False,
    stop: Callable[[], None] = lambda: None,
) -> None:
    """Call work(*piece) for every piece, on up to `threads` threads; an exception of a piece is raised here.

    is_short: whether all the work takes some hundredths of a second at most, so that the calling thread can
    take part.
    stop: called when this thread is interrupted; it asks the active pieces to return early. `work` must have
    references to all memory that it writes to.
    """
    participates = is_short or threading.current_thread() is not threading.main_thread()
    workers = min(threads, len(pieces)) - participates
    queue = _WorkQueue(work, pieces)
    try:
        for _ in range(workers):
            _pool(threads).submit(queue.work_on_worker)
        if participates:
            queue.process()
            queue.is_closed = True
        queue.wait()
    except BaseException:
        _stop_and_wait(queue, stop)
        raise
    if queue.error is not None:
        raise queue.error


def _stop_and_wait(queue: _WorkQueue, stop: Callable[[], None]) -> None:
    """Wait until no worker is active, even if this thread is interrupted again meanwhile."""
    while True:
        try:
            queue.is_closed = True
            stop()
            queue.wait()
            return
        except KeyboardInterrupt:
            continue


def is_compiling() -> bool:
    """Whether LLVM is at work, possibly on code whose compilation was interrupted."""
    if LLVM_LOCK.acquire(blocking=False):
        LLVM_LOCK.release()
        return False
    return True


def run_on_llvm_thread(function: Callable[[], Any]) -> Any:
    """The result of function(), evaluated on another thread so that the main thread can be interrupted.

    After an interrupt the function continues to run in the background, so it must not write to shared data.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: list[Any] = []
    queue = _WorkQueue(lambda *_: results.append(function()), [(0, 0)])
    _llvm_pool().submit(queue.work_on_worker)
    queue.wait()
    if queue.error is not None:
        raise queue.error
    return results[0]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="zwang")


@cache
def _llvm_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="zwang-llvm")


# ------------------------------------------------------------------------------------------------ forks


def _before_fork() -> None:
    COMPILE_LOCK.acquire()
    LLVM_LOCK.acquire()


def _after_fork() -> None:
    LLVM_LOCK.release()
    COMPILE_LOCK.release()


def _in_child() -> None:
    """In a forked child process: discard the thread pools, whose threads do not exist there."""
    _pool.cache_clear()
    _llvm_pool.cache_clear()
    _free_cached_properties()
    _after_fork()


def _free_cached_properties() -> None:
    """Replace the locks of cached properties, one of which a thread of the parent may have locked (before
    Python 3.12).
    """
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
