"""The console on which the commands print, and how errors and warnings appear on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.segment import Segment

from zwang.errors import visible


class Terminal(Console):
    """A console that prints control characters in names instead of obeying them; see
    `zwang.errors.visible`.
    """

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = Terminal(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def print_to_stderr(label: str, style: str, text: str) -> None:
    """Print one message to standard error, after a label in a colour."""
    Terminal(stderr=True, highlight=False).print(f"[{style}]{label}:[/] {escape(text)}", soft_wrap=True)


def show_warning(message: Any, category: type, *_: Any, **__: Any) -> None:
    """A replacement for `warnings.showwarning`: one line on standard error."""
    print_to_stderr("warning", "yellow", str(message))
