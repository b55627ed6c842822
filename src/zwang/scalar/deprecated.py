"""Old spellings of the public names of `zwang.scalar`. Each works for one release, with a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.deprecation import warn_of_rename

RENAMED = {
    "when": "cond",
    "Chosen": "ActiveIndices",
    "highest": "lane_maximum",
    "Scratch": "MutableArray",
    "Reading": "Backend",
    "reading_of": "backend_of",
    "at_hand": "use_backend",
    "FloatReading": "FloatBackend",
    "ArrayReading": "ArrayBackend",
    "unreal": "reason_not_real",
}
"""Old name to new name, where only the name has changed."""

CALLER = (
    4  # stack level of the user's line: below are warn_of_rename, a function here, and one of zwang.scalar
)


class Span(NamedTuple):
    """Indices from `begin` up to, but without, `end`, or in reverse order, as the items of `for_each`."""

    begin: Any
    end: Any
    backwards: bool = False


def old_name(name: str, namespace: Mapping[str, Any]) -> Any:
    """The object of an old name, found in the namespace of `zwang.scalar`. Raises AttributeError for other
    names.
    """
    if name in RENAMED:
        warn_of_rename(f"zwang.scalar.{name}", f"zwang.scalar.{RENAMED[name]}", stacklevel=CALLER)
        return namespace[RENAMED[name]]
    if name == "Span":
        warn_of_rename("zwang.scalar.Span", "zwang.scalar.fori_loop(lower, upper, ...)", stacklevel=CALLER)
        return Span
    if name == "scratch":
        warn_of_rename("zwang.scalar.scratch", "zwang.scalar.zeros or zwang.scalar.empty", stacklevel=CALLER)
        return _scratch(namespace["zeros"], namespace["empty"])
    raise AttributeError(f"module 'zwang.scalar' has no attribute {name!r}")


def _scratch(zeros: Callable[..., Any], empty: Callable[..., Any]) -> Callable[..., Any]:
    def scratch(shape: int | tuple[int, ...], *, blank: bool = False) -> Any:
        """An array of zeros, or an uninitialised array where `blank` is true."""
        return empty(shape) if blank else zeros(shape)

    return scratch


def loop_bounds(items: Any) -> tuple[Any, Any, bool] | None:
    """(lower, upper, reverse) of a `for_each` loop over a count or a `Span`, with a DeprecationWarning; else
    None.
    """
    if isinstance(items, Span):
        warn_of_rename("for_each over a Span", "fori_loop(lower, upper, body, init)", stacklevel=CALLER)
        return items
    if isinstance(items, (int, np.integer)):
        warn_of_rename("for_each over a count", "fori_loop(0, count, body, init)", stacklevel=CALLER)
        return 0, int(items), False
    return None
