"""How a mechanism shows itself in a notebook: by a function that registers here, as pictures belong to a room that this one does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SHOW: list[Callable[[Any], str]] = []


def register(show: Callable[[Any], str]) -> None:
    """Let `show` write mechanisms as HTML; it takes the place of the one before."""
    _SHOW[:] = [show]


def as_html(mechanism: Any) -> str | None:
    """The mechanism as HTML, or None where nobody has registered."""
    return _SHOW[0](mechanism) if _SHOW else None
