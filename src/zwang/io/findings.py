"""What a reader finds while it reads: notes for the report, warnings, and repairs, which `strict` turns into errors."""

from __future__ import annotations

import warnings

from zwang.errors import LoadWarning, ZwangWarning
from zwang.io.xml import Element
from zwang.mechanism.report import Note


class Findings:
    """Gathers notes. With `strict`, what would have to be repaired is an error at its line instead."""

    def __init__(self, strict: bool):
        self.strict = strict
        self.notes: list[Note] = []
        self._ignored: dict[str, list[int]] = {}

    def note(self, kind: str, what: str, element: Element | None = None) -> None:
        """A remark in the report only."""
        where = f"line {element.line}, column {element.column}" if element is not None else ""
        self.notes.append(Note(kind, what, where))

    def ignore(self, element: Element, what: str) -> None:
        """Something without effect; those of one kind make one note."""
        self._ignored.setdefault(what, []).append(element.line)

    def warn(
        self,
        element: Element,
        message: str,
        kind: str = "ignored",
        category: type[ZwangWarning] = LoadWarning,
    ) -> None:
        """A remark in the report and a Python warning with file, line and column."""
        self.note(kind, message, element)
        warnings.warn(f"{element.location}: {message}", category, stacklevel=2)

    def repair(self, element: Element, fault: str, mend: str) -> None:
        """A fault that has a mend. Raises LoadError if strict; else the mend is noted, and the caller does it."""
        if self.strict:
            raise element.error(f"{fault} (with strict=False: {mend})")
        self.warn(element, f"{fault}: {mend}", kind="repaired")

    def report(self) -> tuple[Note, ...]:
        """All notes, those of ignored elements last."""
        ignored = []
        for what, lines in self._ignored.items():
            shown = ", ".join(str(line) for line in lines[:5]) + (", ..." if len(lines) > 5 else "")
            ignored.append(Note("ignored", f"{len(lines)} x {what}", f"line {shown}"))
        return (*self.notes, *ignored)
