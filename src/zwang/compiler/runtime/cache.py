"""Disk cache of object code, in a folder of the user.

A file is used only if nobody else could have written it (by owner and mode of the file and of every folder
above it), if it was written for the requested key, and if its digest is that of key and content; otherwise
the code is compiled again. All checks apply to the open file that is then read. Files are written under a
temporary name and renamed, so no process reads an incomplete file. When the cache exceeds its limit by more
than a little, its least recently used files are deleted.

The environment variable `ZWANG_CACHE` is `off`, or the folder to use instead of the default one. Other files
in that folder are neither counted nor deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_
from pathlib import Path

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While

LIMIT = 256 * 2**20  # total size [bytes]
MEASURED_PARTS = 64  # of the limit: the size is measured each time that about one part has been written
HEADER = b"zwang object 2\n"
DIGEST = 32  # size of a digest [bytes]; the header has that of the key, then that of key and content
SETTING = "ZWANG_CACHE"
OWN_FILE = re.compile(r"[0-9a-f]{64}\.(o|[a-z0-9_]{8}\.new)")
"""The names of the files of the cache: objects by their keys, and those that are being written."""


def folder() -> Path | None:
    """The folder of the cache, or None if the cache is switched off or the user has no home."""
    setting = os.environ.get(SETTING, "")
    if setting.lower() in ("off", "0", "no", "false"):
        return None
    if setting and setting.lower() not in ("on", "1", "yes", "true"):
        return Path(setting)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "zwang" / "cache" if base else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "zwang"
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "zwang"
    except RuntimeError:  # no HOME, and a user whom the system does not know, as in a container
        return None


def fetch(key: str, make: Callable[[], bytes]) -> bytes:
    """The content cached under this key (a digest); if there is none, the result of `make`, which is then
    cached.
    """
    location = folder()
    if location is None:
        return make()
    path = location / f"{key}.o"
    content = _read(path, key)
    if content is None:
        content = make()
        _write(path, key, content)
    return content


def _read(path: Path, key: str) -> bytes | None:
    """The content of a file, or None if the file is missing, invalid or not private."""
    flags = (getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    try:
        if not _is_private(path.parent):
            return None
        with open(os.open(path, reduce(or_, flags, os.O_RDONLY)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_writable_by_user_only(status):
                return None
            text = file.read()
            if os.utime in os.supports_fd:
                os.utime(file.fileno())  # marks the file as recently used
    except OSError:
        return None
    content = text[len(HEADER) + 2 * DIGEST :]
    return content if text[: len(HEADER) + 2 * DIGEST] == _header(key, content) else None


def _header(key: str, content: bytes) -> bytes:
    """The header of a file with this key and content."""
    key_digest = hashlib.sha256(key.encode()).digest()
    return HEADER + key_digest + hashlib.sha256(key_digest + content).digest()


def _write(path: Path, key: str, content: bytes) -> None:
    """Write the content to the cache if that is possible and safe; a failure is not an error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path.parent):
            return
        text = _header(key, content) + content
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{key}.", suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        if _is_measured(key, len(text)):
            _discard_oldest(path.parent)


def _is_measured(key: str, size: int) -> bool:
    """Whether to measure the cache after this file: in proportion to its size [bytes], by the digits of its
    key, which are random. The state of thousands of files takes a tenth of a second to read.
    """
    return int(key[:8], 16) < size * MEASURED_PARTS / LIMIT * 16**8


def _is_private(path: Path) -> bool:
    """Whether only the user or the administrator can change this file or folder, or replace a folder above
    it.
    """
    if os.name == "nt":
        return True  # the access list of the user's profile excludes other users
    real = Path(os.path.realpath(path))
    for folder_above in (real, *real.parents):
        status = os.stat(folder_above, follow_symlinks=False)
        is_sticky = folder_above != real and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if not _is_writable_by_user_only(status, allow_shared=bool(is_sticky)):
            return False
    return True


def _is_writable_by_user_only(status: os.stat_result, allow_shared: bool = False) -> bool:
    """Whether a file or folder belongs to the user or the administrator, and nobody else may write to it.

    allow_shared: accept write permission for others, as for a folder with the sticky bit.
    """
    if os.name == "nt":
        return True
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid in (os.getuid(), 0) and (allow_shared or not shared)


def _discard_oldest(location: Path) -> None:
    """Delete the least recently used files if those of the cache are larger than `LIMIT`."""
    with os.scandir(location) as entries:
        own = [entry for entry in entries if OWN_FILE.fullmatch(entry.name)]
    files = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in own]
    total = sum(size for _, size, _ in files)
    if total <= LIMIT:
        return
    for _, size, path in sorted(files):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= LIMIT * 3 // 4:
            return


# -------------------------------------------------------------------------------------------- keys


def key(program: Program | None, *settings: object) -> str:
    """The cache key: a digest of the program, of the compiler's source, and of all other settings of the
    code.
    """
    digest = hashlib.sha256(compiler_digest())
    digest.update(repr(settings).encode())
    if program is None:
        return digest.hexdigest()
    ports = [[port.size for port in side] for side in (program.inputs, program.outputs)]
    digest.update(repr(ports).encode())
    for line in _lines(program.body):
        digest.update(line.encode())
    return digest.hexdigest()


def _lines(block: Block) -> Iterator[str]:
    """The block as text, independent of the names of ports."""
    yield f"({block.parameters}"
    simple: list[str] = []
    for instruction in block.instructions:
        blocks, data = _parts(instruction)
        simple.append(f"{instruction.op}{instruction.args}{instruction.out}{data!r}")
        if blocks:
            yield "\n".join(simple)
            simple = []
            for nested in blocks:
                yield from _lines(nested)
    yield "\n".join(simple)
    yield f"{block.results})"


def _parts(instruction: Instruction) -> tuple[tuple[Block, ...], object]:
    """The blocks of an instruction, and the rest of its data, a digest for a table."""
    data = instruction.data
    if instruction.op in ("table", "index_table"):
        return (), data.digest
    if isinstance(data, Cond):
        return (data.then, data.otherwise), data.rare
    if isinstance(data, While):
        return (data.condition, data.body), data.carried
    if isinstance(data, For):
        return (data.body,), (data.count, data.carried, data.over_active, data.dynamic, data.reverse)
    return (), data


@cache
def compiler_digest() -> bytes:
    """A digest of the compiler's source and templates, so that code of another version is not used."""
    digest = hashlib.sha256()
    compiler = Path(__file__).parents[1]
    for path in sorted([*compiler.rglob("*.py"), *compiler.rglob("*.ll")]):
        digest.update(path.read_bytes())
    return digest.digest()
