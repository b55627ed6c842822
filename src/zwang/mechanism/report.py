"""What a reader says of a file: what it read, what it repaired, what it left out."""

from __future__ import annotations

from dataclasses import dataclass

from zwang.mechanism.type_validation import validated


@validated
@dataclass(frozen=True)
class Note:
    """One remark: `kind` is "read", "repaired", "ignored" (no effect on the motion), "unsupported" (it would have) or
    "implausible" (possible, hardly meant)."""

    kind: str
    what: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" + (f" ({self.where})" if self.where else "")


@validated
@dataclass(frozen=True)
class Report:
    """Where a mechanism came from and everything that its reader has to say about it."""

    source: str = ""
    format: str = "python"
    notes: tuple[Note, ...] = ()

    def of_kind(self, kind: str) -> tuple[Note, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if note.kind == kind)

    def __str__(self) -> str:
        head = f"{self.format} {self.source}".strip()
        return "\n".join([head, *(f"  {note}" for note in self.notes)])
