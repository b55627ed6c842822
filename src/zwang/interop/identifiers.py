"""C identifiers and comments from the names of a mechanism, which may contain any characters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from zwang.errors import DescriptionError
from zwang.mechanism.type_validation import short_repr

LONGEST_PREFIX = 20  # characters; C99 distinguishes 63 in a name
_C_HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg "
    "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype"
).split()
_SOURCES = ["main", "fmi3", "wasm"]  # of an example, an FMU and a WebAssembly module
_DEVICES = ["con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(10))]
RESERVED = frozenset([*_C_HEADERS, *_SOURCES, *_DEVICES])
"""Names that must not be the stem of a header or source: those of the standard library, of other files of an
export, and of devices of Windows.
"""


def identifier(name: str, longest: int) -> str:
    """Letters, digits and underscores of `name`, beginning with a letter, at most `longest` characters."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name)[:longest].strip("_")
    return word if re.match("[A-Za-z]", word) else f"n{word}"[:longest]


def unique_identifiers(names: Iterable[str], longest: int) -> list[str]:
    """A different identifier for each name, also if case is ignored; in their order."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        word, count = identifier(name, longest), 1
        base = word
        while word.lower() in taken:
            count += 1
            ending = f"_{count}"
            word = base[: longest - len(ending)] + ending
        taken.add(word.lower())
        found.append(word)
    return found


def library_name(name: str | None, mechanism_name: str) -> str:
    """The prefix of all names of an exported library: `name`, or else an identifier of the mechanism's name.

    Raises DescriptionError for a name that C or a file system does not allow.
    """
    if name is None:
        word = identifier(mechanism_name, LONGEST_PREFIX)
        return f"{word[:14]}_model" if word.lower() in RESERVED else word
    if not re.fullmatch(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_PREFIX - 1}}}", name) or name.lower() in RESERVED:
        raise DescriptionError(
            f"name is {short_repr(name)}; it must be a C identifier of at most {LONGEST_PREFIX} letters, "
            "digits and underscores that begins with a letter, and not that of a standard header, of a "
            "device, or of another file of an export (main, fmi3, wasm)"
        )
    return name


def comment_text(text: str) -> str:
    """The text without characters that could end a C comment or continue a line, on one line."""
    return re.sub(r"[^A-Za-z0-9_ .,:;()\[\]+=^|'/-]", "_", text)[:200]
