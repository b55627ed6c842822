"""Run many mutants or misuses in separate processes: `python -m tests.fuzz --count 20000 --jobs 2`.

Each case has a number, from which it is made anew: `--first N --count 1` tries one again. A case that ends
its process or exceeds its time is a failure, as is every exception that is none of zwang's. Exit status 1 if
there was a failure.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.fuzz import calls
from tests.fuzz.corpus import bases
from tests.fuzz.mutate import mutant
from tests.fuzz.trial import try_file

SECONDS, BEGINNING, MEMORY = 60.0, 600.0, 6 * 2**30
FAULTS = ("foreign", "crash", "hang")


def tried(kind: str, number: int, folder: Path) -> dict[str, tuple[str, str]]:
    """The outcomes of one case."""
    if kind == "calls":
        misuse = calls.misuse(number)
        return {misuse.title: calls.outcome(misuse, folder)}
    base = mutant(number)
    return {f"{base.name}, {how}": found for how, found in try_file(base, folder).items()}


def work(kind: str) -> None:
    """The worker process: reads case numbers and writes outcomes, one for each line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the outcomes
    _ = calls.argument_names() if kind == "calls" else bases()  # slow on the first call
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print("ready", file=output, flush=True)
        for line in sys.stdin:
            print(json.dumps(tried(kind, int(line), Path(folder))), file=output, flush=True)


class Worker:
    """A worker process; it is restarted after a case that terminates it."""

    def __init__(self, kind: str, seconds: float):
        self.kind, self.seconds = kind, seconds
        self.process: subprocess.Popen[str] | None = None

    def ask(self, number: int) -> dict[str, Any]:
        """The outcomes of a case."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz", "--worker", "--kind", self.kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                bufsize=1,
            )
            self._read_line(BEGINNING)
        process = self.process
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        line = self._read_line(self.seconds)
        if line:
            return json.loads(line)
        self.end()
        message = (
            f"no response within {self.seconds:g} s"
            if line is None
            else f"ended with status {process.wait()}"
        )
        return {"process": ("hang" if line is None else "crash", message)}

    def _read_line(self, seconds: float) -> str | None:
        """The next line of output; empty if the process has ended, None on timeout."""
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run(kind: str, first: int, count: int, jobs: int, seconds: float) -> int:
    """Run the cases, print every failure and a summary. Returns the number of failures."""
    numbers = iter(range(first, first + count))
    lock, counts, failures = threading.Lock(), collections.Counter(), collections.Counter()
    start = time.monotonic()

    def go() -> None:
        worker = Worker(kind, seconds)
        try:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                found = worker.ask(number)
                with lock:
                    for where, (what, message) in found.items():
                        counts[what] += 1
                        if what in FAULTS:
                            failures[message] += 1
                            print(f"{number} {what} ({where}): {message}", flush=True)
        finally:
            worker.end()

    threads = [threading.Thread(target=go) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(
        f"{count} {kind} in {time.monotonic() - start:.0f} s: {dict(counts)}; "
        f"{sum(failures.values())} failures of {len(failures)} kinds"
    )
    return sum(failures.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("files", "calls"), default="files")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.kind)
        return 0
    return 1 if run(given.kind, given.first, given.count, given.jobs, given.seconds) else 0


if __name__ == "__main__":
    sys.exit(main())
