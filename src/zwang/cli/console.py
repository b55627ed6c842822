"""The console on which the commands print, and how errors and warnings appear on it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.segment import Segment

from zwang.cli.remedies import in_options
from zwang.errors import visible


class Terminal(Console):
    """A console that prints control characters in names instead of obeying them; see
    `zwang.errors.visible`.
    """

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


_is_terminal = sys.stdout is not None and sys.stdout.isatty()  # None where standard output is closed
out = Terminal(highlight=False, soft_wrap=True, width=None if _is_terminal else 160)


def prepare_stdout() -> None:
    """Let standard output take every text: characters that it cannot encode become \\xe4 or \\u2264, as on
    standard error. One that is closed is replaced by the null device.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def library_text(text: str) -> str:
    """A text of the library for `out.print`: its remedies are options, and its brackets are no markup."""
    return escape(in_options(text))


def print_to_stderr(label: str, style: str, text: str) -> None:
    """Print one message to standard error, after a label in a colour."""
    Terminal(stderr=True, highlight=False).print(f"[{style}]{label}:[/] {library_text(text)}", soft_wrap=True)


def show_warning(message: Any, category: type, *_: Any, **__: Any) -> None:
    """A replacement for `warnings.showwarning`: one line on standard error."""
    print_to_stderr("warning", "yellow", str(message))
