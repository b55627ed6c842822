"""Run inputs in a separate process: `python -m tests.io.child FILE ...` prints each outcome as JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from tests.io.badinputs import try_file


def most_megabytes() -> float:
    """The peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage includes the memory of the process before exec
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


for name in sys.argv[1:]:
    outcome = try_file(Path(name))
    outcome.megabytes = most_megabytes()
    print(json.dumps(vars(outcome)), flush=True)
