"""Validation of the size of a simulation against the memory of this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from zwang.errors import SimulationError

UNKNOWN = 2**46  # bytes, where the size of the memory cannot be determined
FLOAT = 8  # bytes
COPIES = 2  # of the recorded arrays, while the recording is assembled
GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """The memory of this machine, or of the container that this process runs in [bytes]."""
    found = [UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):  # not available on Windows
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in GROUPS:
        with suppress(OSError, ValueError):  # no such control group, or no limit
            found.append(int(path.read_text()))
    return min(size for size in found if size > 0)


def check_memory(worlds: int, samples: int, numbers: int) -> None:
    """Raises SimulationError if `numbers` floats for each sample of each world do not fit into the memory."""
    needed, there = COPIES * FLOAT * worlds * samples * numbers, machine_memory()
    if needed > there:
        fitting = max(1, there // (2 * COPIES * FLOAT * samples * numbers))
        raise SimulationError(
            f"{worlds:,} worlds need about {size_text(needed)} of memory ({samples:,} samples of "
            f"{numbers:,} numbers "
            f"each), and this machine has {size_text(there)}: simulate at most about {fitting:,} worlds "
            f"at a time, "
            "or record less, with record=k for every k-th step"
        )


def size_text(size: int) -> str:
    """A number of bytes in a suitable unit, as "16 GB"."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size // 1000**power:,} {units[power]}"
