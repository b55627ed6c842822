"""Programs that run in processes of their own, because their faults may end them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(program: str, *arguments: object, seconds: float = 100) -> str:
    """The output of a Python program, which must end in time with status 0; a signal gives another status."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout
