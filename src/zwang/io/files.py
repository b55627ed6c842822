"""Reading of files: regular files of bounded size only, without blocking on pipes or devices."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from zwang.errors import LoadError

LARGEST_FILE = 256 * 2**20  # bytes

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe (fifo)"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_bytes(path: Path, where: str, *, largest: int = LARGEST_FILE) -> bytes:
    """The content of a regular file. Every error message begins with `where`.

    Raises LoadError for a file that is missing, unreadable, not regular, or larger than `largest` bytes.
    """
    try:
        _check_regular(os.stat(path), path, where)
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            _check_regular(
                os.fstat(file.fileno()), path, where
            )  # the file may have been replaced in the meantime
            data = file.read(largest + 1)
    except LoadError:
        raise
    except FileNotFoundError:
        raise LoadError(f"{where}: there is no file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{where}: the file {str(path)!r} cannot be read: {reason}") from None
    if len(data) > largest:
        raise LoadError(f"{where}: the file {str(path)!r} is too large; the limit is {largest} bytes")
    return data


def _check_regular(status: os.stat_result, path: Path, where: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "a special file")
    raise LoadError(f"{where}: {str(path)!r} is {kind}, not a regular file")
