"""Whether there is memory for so many worlds, told before it is asked for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from zwang.errors import SimulationError

UNKNOWN = 2**46  # bytes, taken where the machine does not tell its memory
FLOAT = 8  # bytes
COPIES = 2  # of what is recorded, while the recording is put together
GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """The memory of this machine, or of the container that this process runs in [bytes]."""
    found = [UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):  # Windows does not tell
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in GROUPS:
        with suppress(OSError, ValueError):  # there is no such group, or it has no limit
            found.append(int(path.read_text()))
    return min(size for size in found if size > 0)


def check_memory(worlds: int, samples: int, numbers: int) -> None:
    """There is memory for so many numbers of each of so many samples and worlds. Raises SimulationError with what is needed and what there is."""
    needed, there = COPIES * FLOAT * worlds * samples * numbers, machine_memory()
    if needed > there:
        fitting = max(1, there // (2 * COPIES * FLOAT * samples * numbers))
        raise SimulationError(
            f"{worlds:,} worlds need about {shown(needed)} of memory ({samples:,} samples of {numbers:,} numbers each), and this machine has "
            f"{shown(there)}: simulate at most about {fitting:,} worlds at a time, or record less, with record=k for every k-th step"
        )


def shown(size: int) -> str:
    """Bytes in the unit that suits them, as "16 GB"."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size // 1000**power:,} {units[power]}"
