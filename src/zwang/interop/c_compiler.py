"""The C compiler of the system, or that of the package ziglang."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from zwang.errors import CompileError, MissingExtraError

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")


def c_compiler() -> list[str]:
    """The command of a C compiler for this computer. Raises MissingExtraError if there is none."""
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is not None:
        return [found]
    if find_spec("ziglang") is None:
        raise MissingExtraError(
            f"this export compiles C code, and there is no C compiler ({', '.join(COMPILERS)}): install one, "
            "or pip install 'zwang[export]'"
        )
    return zig()


def zig() -> list[str]:
    """The command of the C compiler in the package ziglang."""
    return [sys.executable, "-m", "ziglang", "cc"]


def shared_library(compiler: Sequence[str], sources: Sequence[Path], library: Path) -> None:
    """Compile C files to a shared library with hidden symbols. Raises CompileError."""
    portable = [] if sys.platform == "win32" else ["-fPIC"]
    options = [*FLAGS, *portable, "-shared", "-fvisibility=hidden", "-o", str(library)]
    run_compiler([*compiler, *options, *map(str, sources), "-lm"])


def run_compiler(command: Sequence[str]) -> None:
    """Run a compiler. Raises CompileError with its first messages."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise CompileError(f"the C compiler {command[0]!r} failed: {done.stderr.strip()[:500]}")
