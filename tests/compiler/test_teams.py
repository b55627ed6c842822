"""Teams of threads: every world is computed once, whatever the number of threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from zwang.compiler.runtime.teams import CHUNK_FUNCTION, Job, run_job
from zwang.compiler.runtime.threads import control_group_limit

SHORT, LONG, IN_BACKGROUND = 5e-5, 1e-3, 1.0  # expected seconds of jobs that are shared in different ways


class Count:
    """A job of so many worlds, in blocks of eight, that counts how often each is computed."""

    def __init__(self, worlds: int, fails_at: int = -1):
        self.times, self.threads = np.zeros(worlds, int), set[int]()
        self.fails_at = fails_at
        self._function = CHUNK_FUNCTION(self._compute)
        address = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        self.job = Job(self._function, address, 17, 19, worlds, 8)

    def _compute(self, context: int, begin: int, count: int, kernel: int) -> bool:
        assert (context, kernel) == (17, 19) and begin % 8 == 0
        self.times[begin : begin + count] += 1
        self.threads.add(threading.get_ident())
        return not begin <= self.fails_at < begin + count


def never() -> None:
    raise AssertionError("nothing was interrupted")


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_world_is_computed_once(threads: int) -> None:
    """In calls that follow one another at once, and in calls after a pause."""
    for seconds in (SHORT, LONG, IN_BACKGROUND):
        for worlds in (1, 8, 9, 63, 1024):
            count = Count(worlds)
            for repeat in range(1, 21):
                succeeded, shared = run_job(count.job, seconds, threads, never)
                assert succeeded and 1 <= shared <= threads
                assert (count.times == repeat).all()
                if repeat in (5, 6):
                    time.sleep(1e-3)


def test_a_failure_of_any_thread_is_reported() -> None:
    for world in (0, 500, 999):
        for seconds in (SHORT, LONG, IN_BACKGROUND):
            for _ in range(3):
                assert run_job(Count(1000, fails_at=world).job, seconds, 3, never)[0] is False
                assert run_job(Count(1000).job, seconds, 3, never)[0] is True


def test_calls_of_many_threads_at_once() -> None:
    """Each in machine code on memory of its own, as often as they can."""
    wrong: list[int] = []

    def work(k: int) -> None:
        count = Count(100 + 8 * k)
        for repeat in range(1, 200):
            succeeded, _ = run_job(count.job, (SHORT, LONG)[repeat % 2], (2, 5)[k % 2], never)
            if not succeeded or (count.times != repeat).any():
                wrong.append(k)

    callers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_long_job_of_the_main_thread_leaves_it_free() -> None:
    count = Count(64)
    run_job(count.job, IN_BACKGROUND, 1, never)
    assert threading.get_ident() not in count.threads


def test_a_job_is_done_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for seconds in (LONG, IN_BACKGROUND):
        count = Count(100)
        assert run_job(count.job, seconds, 7, never) == (True, 1)  # no test before has a team of seven
        assert (count.times == 1).all()


def test_idle_workers_use_no_processor() -> None:
    count = Count(1024)
    for _ in range(50):
        run_job(count.job, SHORT, 2, never)
    time.sleep(0.01)
    used = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - used < 0.2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX only")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_makes_teams_of_its_own() -> None:
    count = Count(1024)
    run_job(count.job, LONG, 2, never)
    child = os.fork()
    if not child:
        done = all(run_job(count.job, seconds, 2, never)[0] for seconds in (LONG, IN_BACKGROUND))
        os._exit(0 if done and (count.times == 3).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    run_job(count.job, LONG, 2, never)
    assert (count.times == 2).all()


def test_a_process_ends_while_its_workers_are_awake() -> None:
    program = (
        "from tests.compiler.test_teams import *\n"
        "count = Count(1024)\n"
        "for _ in range(50): run_job(count.job, SHORT, 3, never)\n"
        "threading.Thread(target=run_job, args=(count.job, LONG, 3, never)).start()\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, timeout=60)
    assert done.returncode == 0


def test_the_limit_of_a_control_group_is_read(tmp_path: Path) -> None:
    """The least of a group and of those above it, in both versions; half a processor counts as one."""
    membership = tmp_path / "cgroup"
    membership.write_text("3:cpu,cpuacct:/work/job\n2:memory:/work\n0::/user/session\n")
    assert control_group_limit(membership, tmp_path) == sys.maxsize
    assert control_group_limit(tmp_path / "missing", tmp_path) == sys.maxsize
    (tmp_path / "user/session").mkdir(parents=True)
    (tmp_path / "user/session/cpu.max").write_text("max 100000\n")
    assert control_group_limit(membership, tmp_path) == sys.maxsize
    (tmp_path / "user/cpu.max").write_text("350000 100000\n")
    assert control_group_limit(membership, tmp_path) == 4
    (tmp_path / "cpu,cpuacct/work").mkdir(parents=True)
    (tmp_path / "cpu,cpuacct/work/cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu,cpuacct/work/cpu.cfs_period_us").write_text("100000\n")
    assert control_group_limit(membership, tmp_path) == 1
    (tmp_path / "cpu,cpuacct/work/cpu.cfs_quota_us").write_text("-1\n")
    assert control_group_limit(membership, tmp_path) == 4
