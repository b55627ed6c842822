"""Processors, the thread of LLVM, and the locks that are acquired while programs are compiled.

Python raises KeyboardInterrupt in the main thread only, and only while that thread executes Python code. The
main thread therefore lets another thread compile, and waits.

A process may fork while other threads compile. The child has none of these threads, and a lock that one of
them held would remain locked. A fork therefore waits until no thread compiles.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from typing import Any

COMPILE_LOCK = threading.RLock()  # acquired while a program is compiled
LLVM_LOCK = (
    threading.RLock()
)  # acquired while LLVM works, which an interrupt does not end; after COMPILE_LOCK
POLL_INTERVAL = 0.05  # of a waiting thread, for systems that do not wake it at an interrupt [s]


def cores() -> int:
    """The number of processors that this process may use: those that it may run on, or the number that the
    limit of its control group allows.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, _limit_of_processors())


@cache
def _limit_of_processors() -> int:
    if not sys.platform.startswith("linux"):
        return sys.maxsize
    return control_group_limit(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))


def control_group_limit(membership: Path, root: Path) -> int:
    """The least number of processors, rounded up, that the control groups of a process on Linux allow it.

    membership: the file that names the groups, as "0::/group" (version 2) or "4:cpu,cpuacct:/group"
    (version 1). root: where the groups are mounted, in a container often the own group itself.
    """
    limits = [sys.maxsize]
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return limits[0]
    for _, controllers, group in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / controllers
        own = top / group.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(top):
                limits += _limits_of_group(folder)
    return min(limits)


def _limits_of_group(folder: Path) -> list[int]:
    """The number of processors that one control group allows, if it has a limit."""
    try:
        if (folder / "cpu.max").exists():  # version 2: "quota period", or "max period"
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        processors = -(-int(quota) // int(period))
    except (OSError, ValueError):
        return []
    return [processors] if processors > 0 else []


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
    errors: list[BaseException] = []
    finished = threading.Lock()  # the main thread acquires no lock that the other thread needs
    finished.acquire()

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finished.release()

    _llvm_pool().submit(work)
    while not (results or errors):
        finished.acquire(timeout=POLL_INTERVAL)
    if errors:
        raise errors[0]
    return results[0]


def map_in_threads(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """[function(item) for item in items], in a thread for each. No executor: after the main thread has ended,
    it takes no work from threads that still run.
    """
    results = [Future[Any]() for _ in items]

    def work(result: Future[Any], item: Any) -> None:
        try:
            result.set_result(function(item))
        except BaseException as error:
            result.set_exception(error)

    first, *others = zip(results, items, strict=True)
    threads = [threading.Thread(target=work, args=pair) for pair in others]
    for thread in threads:
        thread.start()
    work(*first)
    for thread in threads:
        thread.join()
    return [result.result() for result in results]


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
    """In a forked child process: discard the thread pool, whose thread does not exist there."""
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
