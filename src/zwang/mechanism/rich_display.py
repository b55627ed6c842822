"""Rich display of mechanisms in notebooks, by a function that another package registers here.

The layer of the mechanism does not import the packages that draw pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WRITERS: list[Callable[[Any], str]] = []


def register_html_writer(write_html: Callable[[Any], str]) -> None:
    """Register the function that returns a mechanism as HTML; it replaces an earlier one."""
    _WRITERS[:] = [write_html]


def as_html(mechanism: Any) -> str | None:
    """The mechanism as HTML, or None if no function is registered."""
    return _WRITERS[0](mechanism) if _WRITERS else None
