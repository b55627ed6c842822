"""Findings of a reader: notes for the report, warnings, and repairs, which are errors in strict mode."""

from __future__ import annotations

import warnings

from zwang.errors import LoadWarning, ZwangWarning
from zwang.io.xml import Element
from zwang.mechanism.report import Note


class Findings:
    """Collects the notes of a reader. In strict mode, a problem that needs a repair is an error."""

    def __init__(self, strict: bool):
        self.strict = strict
        self.notes: list[Note] = []
        self._ignored: dict[str, list[int]] = {}

    def note(self, kind: str, what: str, element: Element | None = None) -> None:
        """Add a note to the report."""
        where = f"line {element.line}, column {element.column}" if element is not None else ""
        self.notes.append(Note(kind, what, where))

    def ignore(self, element: Element, what: str) -> None:
        """Note an element without effect; elements with equal `what` are combined into one note."""
        self._ignored.setdefault(what, []).append(element.line)

    def warn(
        self,
        element: Element,
        message: str,
        kind: str = "ignored",
        category: type[ZwangWarning] = LoadWarning,
    ) -> None:
        """Add a note to the report and issue a Python warning with file, line and column."""
        self.note(kind, message, element)
        warnings.warn(f"{element.location}: {message}", category, stacklevel=2)

    def repair(self, element: Element, problem: str, remedy: str) -> None:
        """Report a problem with the remedy that the caller then applies. Raises LoadError in strict mode."""
        if self.strict:
            raise element.error(f"{problem} (with strict=False: {remedy})")
        self.warn(element, f"{problem}: {remedy}", kind="repaired")

    def report(self) -> tuple[Note, ...]:
        """All notes; those on ignored elements come last."""
        ignored = []
        for what, lines in self._ignored.items():
            numbers = ", ".join(str(line) for line in lines[:5]) + (", ..." if len(lines) > 5 else "")
            ignored.append(Note("ignored", f"{len(lines)} x {what}", f"line {numbers}"))
        return (*self.notes, *ignored)
