"""Object code kept between runs, in a folder of the user's.

A file is believed only if nobody else could have written it (owner and mode of the file and of every folder above
it), if it was written for the key that is asked for, and if the digest inside is that of key and content; else the code
is made anew. What is looked at is what is read: one open file. Files are written beside and then renamed, so that none
is ever seen half. The oldest go when there are too many.

The environment's `ZWANG_CACHE` is `off`, or the folder to use instead of the usual one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_
from pathlib import Path

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Program, While

LIMIT = 256 * 2**20  # bytes in all
HEAD = b"zwang object 2\n"
DIGEST = 32  # bytes: first that of the key, then that of key and content
SETTING = "ZWANG_CACHE"


def folder() -> Path | None:
    """Where objects are kept; None if the setting says `off`."""
    setting = os.environ.get(SETTING, "")
    if setting.lower() in ("off", "0", "no", "false"):
        return None
    if setting and setting.lower() not in ("on", "1", "yes", "true"):
        return Path(setting)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "zwang" / "cache" if base else None
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "zwang"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "zwang"


def fetch(key: str, make: Callable[[], bytes]) -> bytes:
    """The content kept under this key (a digest), or else made now and kept."""
    place = folder()
    if place is None:
        return make()
    path = place / f"{key}.o"
    found = _read(path, key)
    if found is None:
        found = make()
        _write(path, key, found)
    return found


def _read(path: Path, key: str) -> bytes | None:
    flags = (getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    try:
        if not _is_private(path.parent):
            return None
        with open(os.open(path, reduce(or_, flags, os.O_RDONLY)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or not _is_mine_alone(about):
                return None
            text = file.read()
            if os.utime in os.supports_fd:
                os.utime(file.fileno())  # the most recently used stay
    except OSError:
        return None
    content = text[len(HEAD) + 2 * DIGEST :]
    return content if text[: len(HEAD) + 2 * DIGEST] == _head(key, content) else None


def _head(key: str, content: bytes) -> bytes:
    """What stands before a content that was made for a key."""
    own = hashlib.sha256(key.encode()).digest()
    return HEAD + own + hashlib.sha256(own + content).digest()


def _write(path: Path, key: str, content: bytes) -> None:
    """Keeps the content if that is possible and safe; a cache that fails is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path.parent):
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_head(key, content) + content)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        _discard_oldest(path.parent)


def _is_private(path: Path) -> bool:
    """Whether only the user (or the system's administrator) can change this file or folder, or swap one above it."""
    if os.name == "nt":
        return True  # the folder is in the user's profile, whose access list keeps others out
    real = Path(os.path.realpath(path))
    for place in (real, *real.parents):
        about = os.stat(place, follow_symlinks=False)
        kept_apart = place != real and stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
        if not _is_mine_alone(about, but_shared=bool(kept_apart)):
            return False
    return True


def _is_mine_alone(about: os.stat_result, but_shared: bool = False) -> bool:
    """Whether a file or folder is the user's or the administrator's, and nobody else may write to it."""
    if os.name == "nt":
        return True
    shared = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return about.st_uid in (os.getuid(), 0) and (but_shared or not shared)


def _discard_oldest(place: Path) -> None:
    with os.scandir(place) as entries:
        files = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in entries]
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
    """A digest of the program, of the compiler's own text, and of whatever else the code depends on."""
    digest = hashlib.sha256(own_text())
    digest.update(repr(settings).encode())
    if program is None:
        return digest.hexdigest()
    ports = [[port.size for port in side] for side in (program.inputs, program.outputs)]
    digest.update(repr(ports).encode())
    for row in _rows(program.body):
        digest.update(row.encode())
    return digest.hexdigest()


def _rows(block: Block) -> Iterator[str]:
    """The block as text, without anything that depends on names."""
    yield f"({block.parameters}"
    plain: list[str] = []
    for instruction in block.instructions:
        blocks, data = _parts(instruction)
        plain.append(f"{instruction.op}{instruction.args}{instruction.out}{data!r}")
        if blocks:
            yield "\n".join(plain)
            plain = []
            for nested in blocks:
                yield from _rows(nested)
    yield "\n".join(plain)
    yield f"{block.results})"


def _parts(instruction: Instruction) -> tuple[tuple[Block, ...], object]:
    data = instruction.data
    if isinstance(data, Cond):
        return (data.then, data.otherwise), data.rare
    if isinstance(data, While):
        return (data.condition, data.body), data.carried
    if isinstance(data, For):
        return (data.body,), (data.count, data.carried, data.chosen, data.spans, data.backwards)
    return (), data


@cache
def own_text() -> bytes:
    """A digest of the compiler's source, so that what an older one made is not taken for this one's."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
