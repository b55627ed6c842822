"""Files that are written whole or not at all.

What is new is written beside the old, brought to the disk, and then takes its name in one step of the file system. So
a full disk, an error, or the end of the process at any moment leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from zwang.errors import WriteError

AT_FDCWD, EXCHANGE = -100, 2  # of Linux's renameat2


def write_file(path: str | Path, content: bytes | bytearray | memoryview) -> None:
    """Write a file whole, in place of what was there. Raises WriteError, after which the old file is as it was.

    A link is followed, the mode of an old file is kept, and what is no regular file (a pipe, a device) is written to.
    """
    with _told(path):
        target = Path(os.path.realpath(path))
        old = _status(target)
        if old is not None and not stat.S_ISREG(old.st_mode):
            with open(target, "wb") as file:  # of a folder this says that it is one
                file.write(content)
            return
        if old is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        beside = _beside(target)
        try:
            with open(beside, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if old is not None:
                os.chmod(beside, stat.S_IMODE(old.st_mode))
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        _sync_folder(target.parent)


def write_folder(path: str | Path, fill: Callable[[Path], None]) -> None:
    """Write a folder whole, in place of what was there: fill(folder) writes into a new one, which then takes the name.

    Raises WriteError, after which the old folder is as it was.
    """
    with _told(path):
        target = Path(os.path.realpath(path))
        beside = _beside(target)
        os.mkdir(beside)
        try:
            fill(beside)
            for place, _, files in os.walk(beside, topdown=False):
                for name in files:
                    _sync_file(Path(place, name))
                _sync_folder(Path(place))
            _take_place(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)  # what is new, where that failed; else what is old
        _sync_folder(target.parent)


@contextlib.contextmanager
def _told(path: str | Path) -> Iterator[None]:
    """What goes wrong as a WriteError that names the file."""
    try:
        yield
    except WriteError:
        raise
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        why = getattr(error, "strerror", None) or str(error)
        raise WriteError(
            f"{str(path)!r} cannot be written: {why}; what it held before is unchanged. "
            "Give a place that can be written to and has room"
        ) from error


def _beside(target: Path) -> Path:
    """A name for what is not yet whole, in the same folder, and so on the same disk."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _take_place(new: Path, target: Path) -> None:
    """Give `new` the name of `target`; what had that name goes to the name of `new`."""
    try:
        os.rename(new, target)  # where there is nothing, or (on POSIX) an empty folder
        return
    except OSError as error:
        if not target.exists() or (error.errno == errno.EACCES and os.name != "nt"):
            raise
    if _exchange(new, target):
        return
    aside = _beside(
        target
    )  # between these two lines there is no folder of this name, but a whole one beside it
    os.rename(target, aside)
    os.rename(new, target)
    shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or the file system has no such step (it is Linux's)."""
    try:
        function = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    return function(AT_FDCWD, first, AT_FDCWD, second, EXCHANGE) == 0


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows opens no folders; some file systems do not sync them
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
