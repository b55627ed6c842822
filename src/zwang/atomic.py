"""Atomic writing of files and folders: completely or not at all.

The new content is written beside the old file, flushed to the disk, and renamed in one operation of the
file system. So a full disk, an error, or the end of the process at any time leaves the old file unchanged.
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
    """Replace a file by new content, atomically. Raises WriteError, after which the old file is unchanged.

    Links are followed, the mode of an old file is kept, and pipes and devices are written to directly.
    """
    with _write_error(path):
        target = Path(os.path.realpath(path))
        old = _status(target)
        if old is not None and not stat.S_ISREG(old.st_mode):
            with open(target, "wb") as file:  # for a folder the error says so
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
    """Replace a folder by a new one that fill(folder) writes, atomically.

    Raises WriteError, after which the old folder is unchanged.
    """
    with _write_error(path):
        target = Path(os.path.realpath(path))
        beside = _beside(target)
        os.mkdir(beside)
        try:
            fill(beside)
            for place, _, files in os.walk(beside, topdown=False):
                for name in files:
                    _sync_file(Path(place, name))
                _sync_folder(Path(place))
            _rename_over(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)  # the new folder after a failure, otherwise the old one
        _sync_folder(target.parent)


@contextlib.contextmanager
def _write_error(path: str | Path) -> Iterator[None]:
    """A context in which errors become a WriteError that names the file."""
    try:
        yield
    except WriteError:
        raise
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            check_folder_of(path)
        why = getattr(error, "strerror", None) or str(error)
        raise WriteError(
            f"{str(path)!r} cannot be written: {why}; its previous content is unchanged. "
            "Give a path that can be written to, on a disk with enough space"
        ) from error


def check_folder_of(path: str | Path) -> None:
    """Raises WriteError if the folder of a file that is to be written does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise WriteError(
            f"{str(path)!r} cannot be written: there is no folder {str(folder)!r}; create it, or give a path "
            "in another one"
        )


def _beside(target: Path) -> Path:
    """A name for the incomplete file, in the same folder, and so on the same disk."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _rename_over(new: Path, target: Path) -> None:
    """Rename `new` to `target`; an old `target` gets the name of `new`."""
    try:
        os.rename(new, target)  # if there is no target, or (on POSIX) an empty folder
        return
    except OSError as error:
        if not target.exists() or (error.errno == errno.EACCES and os.name != "nt"):
            raise
    if _exchange(new, target):
        return
    aside = _beside(
        target
    )  # between the renames there is no folder of this name, but a complete one beside it
    os.rename(target, aside)
    os.rename(new, target)
    shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one operation; False if the system has no such operation (only Linux has)."""
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
    """Flush the names in a folder to the disk, if the system can."""
    with contextlib.suppress(OSError):  # Windows cannot open folders; some file systems cannot sync them
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
