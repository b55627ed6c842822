"""Teams of threads, which share the worlds of a call.

The threads of a team run machine code, which also hands the work to them: a call neither needs the
interpreter nor its lock for this (see `team_functions`). To wake a thread takes some 50 microseconds on a
virtual machine, as long as a short call. So a worker that has done its part spins for a while: when calls
follow one another in quick succession, their workers are awake, and calls of 20 microseconds already gain by
them. Otherwise short calls do without workers, and workers sleep: without calls they take no time.

To spin, and to divide a short call, would hurt where other programs use the cores: the caller waits for a
worker that lost its core. So each team keeps account of the time that its workers have saved. When the
balance is negative, short calls do without them for fifty times as long as what was lost.

Python raises KeyboardInterrupt in the main thread only, and only while that thread executes Python code. For
a long call the main thread therefore waits while workers do everything. When it is interrupted, it asks them
to stop, waits until the last one has returned (after at most one step), and propagates the exception. So no
thread writes into memory that has been released.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from weakref import WeakSet

from zwang.compiler.backends.llvm.team_functions import (
    ENDED,
    INSIDE,
    MEMBER,
    OPEN,
    STATE,
    TEAM,
    THREADS,
    WAITING,
    team_functions,
)
from zwang.compiler.runtime import cache as object_cache
from zwang.compiler.runtime.processor import MachineCode, c_functions, host, object_code
from zwang.compiler.runtime.threads import POLL_INTERVAL, cores

LONGEST_PIECE = 0.03  # seconds of a call that need not be interrupted
WORTH_WAKING = 2e-4  # seconds of a call on one thread from which on sleeping workers are woken for it
WORTH_A_WORKER = 1e-5  # seconds of a call for each thread that takes part in it
SPIN = 1e-4  # seconds for which a worker looks for the next call
CHUNK = 2e-6  # seconds of the least work that is claimed at once
CREDIT = 5e-3  # seconds up to which saved time is balanced with lost time
PAUSE = 50  # times the lost time, for which short calls do without workers
LONGEST_PAUSE = 1.0  # seconds
ALIGNMENT = 128
WAIT = 1  # for a lock, in Python's C interface

CHUNK_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_FIELD = {name: number for number, name in enumerate(TEAM)}


@dataclass(frozen=True)
class Job:
    """Calls of a function (context, first world, number of worlds, kernel) for all worlds, in any order.

    function: a CHUNK_FUNCTION at `address`, which returns whether it succeeded. lanes: the number of worlds
    in a block, which is computed as a whole.
    """

    function: Callable[..., bool]
    address: int
    context: int
    kernel: int
    worlds: int
    lanes: int

    @cached_property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.worlds // self.lanes)

    @cached_property
    def run(self) -> Callable[[], bool]:
        """Does the job in this thread; returns whether it succeeded. The arguments are converted once."""
        address, word = ctypes.c_void_p, ctypes.c_int64
        arguments = address(self.context), word(0), word(self.worlds), address(self.kernel)
        return partial(self.function, *arguments)


def run_job(job: Job, seconds: float, threads: int, stop: Callable[[], None] | None) -> tuple[bool, int]:
    """Do a job on up to `threads` threads: whether it succeeded, and the number of threads that it was
    divided among.

    seconds: that it is expected to take on one thread. stop: called when this thread is interrupted; it asks
    the running calls of the function to return early. `stop` must have references to all memory that the
    function uses. Without it the job is completed before this thread is interrupted.
    """
    in_background = stop is not None and can_be_interrupted(seconds)
    if not in_background and (threads == 1 or job.blocks == 1 or seconds < 2 * WORTH_A_WORKER):
        return job.run(), 1
    team = _take(threads)
    if team is None:
        return job.run(), 1
    try:
        if stop is not None and in_background:
            return team.run_in_background(job, seconds, stop)
        return team.run(job, seconds)
    finally:
        _idle.setdefault(threads, []).append(team)


def can_be_interrupted(seconds: float) -> bool:
    """Whether a job that is expected to take so long on one thread may end early, when this thread is
    interrupted; others are completed.
    """
    return seconds > LONGEST_PIECE and threading.current_thread() is threading.main_thread()


class Team:
    """A caller and up to `threads` workers; one call at a time. The workers are started when first needed."""

    def __init__(self, threads: int):
        self.threads = threads
        self._functions = _functions()
        words = THREADS + threads * MEMBER
        self._memory = (ctypes.c_char * (8 * words + ALIGNMENT))()
        start = -ctypes.addressof(self._memory) % ALIGNMENT
        self._address = ctypes.addressof(self._memory) + start
        self._words = memoryview(self._memory).cast("B")[start : start + 8 * words].cast("q")
        for name, address in _c_addresses().items():
            self._words[_FIELD[name]] = address
        self._words[_FIELD["done"]] = _new_lock()
        for number in range(threads):
            self._words[THREADS + number * MEMBER + 1] = _new_lock()
        self._workers: list[threading.Thread] = []
        self._described: tuple[Job, int, int, int] | None = None  # what the words say
        self._ended = 0.0  # time at the end of the last call
        self._credit, self._paused_until = 0.0, 0.0

    def run(self, job: Job, seconds: float) -> tuple[bool, int]:
        """Do a job in this thread, with the workers that it is worth; as `run_job`."""
        begun = time.perf_counter()
        is_paused = begun < self._paused_until
        follows = begun - self._ended < SPIN and not is_paused
        workers = self._worth(seconds, follows)
        members = min(workers + 1, job.blocks)
        if members > 1:
            members = self._start_workers(members - 1) + 1
        if members == 1:
            succeeded = job.run()
            self._ended = time.perf_counter()
            return succeeded, 1
        self._describe(job, seconds, members, 1)
        self._words[_FIELD["spin"]] = int(1e9 * SPIN) if follows else 0
        self._functions.share(self._address)
        self._ended = time.perf_counter()
        if follows:
            self._balance(seconds - (self._ended - begun))
        return not self._words[_FIELD["failed"]], members

    def _worth(self, seconds: float, follows: bool) -> int:
        """The number of workers that a call is worth; whether it `follows` another one at once."""
        if seconds >= WORTH_WAKING:
            return self.threads - 1
        return min(self.threads, int(seconds / WORTH_A_WORKER)) - 1 if follows else 0

    def _balance(self, saved: float) -> None:
        """Enter the time that the workers have saved in a call, and that in which others had their cores."""
        lost = 1e-9 * self._words[_FIELD["disturbed"]]
        self._words[_FIELD["disturbed"]] = 0
        self._credit = min(CREDIT, self._credit + saved - lost)
        if self._credit < 0:
            self._paused_until = self._ended + min(-PAUSE * self._credit, LONGEST_PAUSE)
            self._credit = 0.0

    def run_in_background(self, job: Job, seconds: float, stop: Callable[[], None]) -> tuple[bool, int]:
        """Do a job on workers while this thread waits and can be interrupted; as `run_job`."""
        workers = self._start_workers(min(self.threads, job.blocks))
        if not workers:
            return job.run(), 1
        self._describe(job, seconds, workers, 0)
        self._words[_FIELD["spin"]] = 0
        try:
            self._functions.publish(self._address, WAITING)
            self._wait()
        except BaseException:
            self._stop_and_wait(stop)
            raise
        return not self._words[_FIELD["failed"]], workers

    def _wait(self) -> None:
        """Wait until the job is closed and no worker is in it."""
        while self._words[STATE] & (OPEN | INSIDE):
            self._functions.acquire_timed(self._words[_FIELD["done"]], int(1e6 * POLL_INTERVAL), 1)

    def _stop_and_wait(self, stop: Callable[[], None]) -> None:
        """Wait until no worker is in the job, even if this thread is interrupted again meanwhile."""
        while True:
            try:
                stop()
                self._functions.close(self._address)
                self._wait()
                return
            except KeyboardInterrupt:
                continue

    def _describe(self, job: Job, seconds: float, members: int, first_member: int) -> None:
        """Enter a job for so many members; the first worker is the member `first_member`."""
        words, field = self._words, _FIELD
        words[field["failed"]] = 0
        blocks = job.blocks
        chunk = blocks if members == 1 else _power_of_two(CHUNK * blocks / seconds)
        if self._described == (job, chunk, members, first_member):
            return
        self._described = None  # while the words are written, which an interrupt may end
        words[field["function"]], words[field["context"]] = job.address, job.context
        words[field["kernel"]], words[field["count"]] = job.kernel, job.worlds
        words[field["lanes"]], words[field["chunk"]] = job.lanes, job.lanes * chunk
        words[field["members"]], words[field["workers"]] = members, members - first_member
        words[field["first_member"]] = first_member
        self._described = job, chunk, members, first_member

    def _start_workers(self, wanted: int) -> int:
        """Start workers until there are `wanted`; the number of those of them that there are."""
        while len(self._workers) < wanted:
            arguments = (self._functions.worker, self._memory, self._address, len(self._workers))
            worker = threading.Thread(target=_live, args=arguments, name="zwang", daemon=True)
            try:
                worker.start()
            except RuntimeError:  # the system allows no further thread
                return len(self._workers)
            self._workers.append(worker)
            self._words[_FIELD["capacity"]] = len(self._workers)
        return wanted

    def dismiss(self) -> list[threading.Thread]:
        """Let the workers return; the threads, which end soon."""
        if not self._words[STATE] & ENDED:
            self._functions.dismiss(self._address)
        return self._workers

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            self.dismiss()


def _power_of_two(x: float) -> int:
    """The largest power of two up to x, at least 1: it is mostly the same from call to call."""
    return 1 << max(int(x).bit_length() - 1, 0)


def _live(worker: Callable[[int, int], None], memory: object, address: int, number: int) -> None:
    """What a worker thread does. It keeps a reference to the memory of the team."""
    worker(address, number)


@dataclass(frozen=True)
class _Functions:
    """The functions of `team_functions`, and that of Python for a lock with a time limit."""

    code: MachineCode
    worker: Callable[[int, int], None]
    share: Callable[[int], None]
    publish: Callable[[int, int], None]
    close: Callable[[int], int]
    dismiss: Callable[[int], None]
    acquire_timed: Callable[[int, int, int], int]


@cache
def _functions() -> _Functions:
    key = object_cache.key(None, "team", host().identity)
    content = object_cache.fetch(key, lambda: object_code(team_functions(host().is_x86)))
    code = MachineCode([content], ("worker", "share", "publish", "close_job", "dismiss"))
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    return _Functions(
        code,
        ctypes.CFUNCTYPE(None, pointer, word)(code["worker"]),
        ctypes.CFUNCTYPE(None, pointer)(code["share"]),
        ctypes.CFUNCTYPE(None, pointer, word)(code["publish"]),
        ctypes.CFUNCTYPE(word, pointer)(code["close_job"]),
        ctypes.CFUNCTYPE(None, pointer)(code["dismiss"]),
        ctypes.CFUNCTYPE(ctypes.c_int, pointer, ctypes.c_longlong, ctypes.c_int)(
            _address_of(ctypes.pythonapi.PyThread_acquire_lock_timed)
        ),
    )


@cache
def _c_addresses() -> dict[str, int]:
    """The addresses of the functions of Python and of the C library that the machine code calls, by their
    fields.
    """
    clock = "_timespec64_get" if os.name == "nt" else "timespec_get"
    python = ctypes.pythonapi
    return {
        "clock": c_functions(clock)[clock],
        "acquire": _address_of(python.PyThread_acquire_lock),
        "release": _address_of(python.PyThread_release_lock),
    }


def _address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _new_lock() -> int:
    """A new lock of Python's C interface, which is acquired."""
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p)(_address_of(ctypes.pythonapi.PyThread_allocate_lock))
    acquire = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(_c_addresses()["acquire"])
    lock = allocate()
    if not lock:
        raise MemoryError("there is not enough memory for a lock")
    acquire(lock, WAIT)
    return lock


# --------------------------------------------------------------------------------------- the present teams

_idle: dict[int, list[Team]] = {}  # teams without a call, by their number of threads
_teams: WeakSet[Team] = WeakSet()
_locks = [threading.Lock()]  # acquired while a team is made


def _take(threads: int) -> Team | None:
    """An idle team; a new one if there is none and the cores suffice for it, or for the main thread, whose
    long calls need one; otherwise None.
    """
    try:
        return _idle[threads].pop()
    except (KeyError, IndexError):
        pass
    is_main = threading.current_thread() is threading.main_thread()
    _functions()  # which may be compiled
    with _locks[0]:
        if not is_main and sum(team.threads for team in _teams) + threads > max(cores(), threads):
            return None
        team = Team(threads)
        _teams.add(team)
        return team


@atexit.register
def _dismiss_all() -> None:
    """At the end of the process: wait for the workers, whose machine code is released then."""
    for team in list(_teams):
        for worker in team.dismiss():
            worker.join(timeout=1.0)


def _in_child() -> None:
    """In a forked child process: forget the teams, whose workers do not exist there."""
    _idle.clear()
    _teams.clear()
    _locks[0] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
