"""The report of a reader or a writer on a file: what it read or wrote, repaired and omitted."""

from __future__ import annotations

from dataclasses import dataclass

from zwang.mechanism.type_validation import validated


@validated
@dataclass(frozen=True)
class Note:
    """One remark on a file or a mechanism.

    kind: "read"; "repaired"; "ignored" (omitted, without effect on the motion); "unsupported" (omitted, with
    an effect on the motion); "implausible" (possible, but probably a mistake); and, of a writer, "written",
    "kept" (not written, as it would have replaced a file of the user), or "changed" (said in other words,
    with the same motion). what: the remark. where: the location in the file, or the part of the mechanism.
    """

    kind: str
    what: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" + (f" ({self.where})" if self.where else "")


@validated
@dataclass(frozen=True)
class Report:
    """The file, its format and the notes of the reader or the writer."""

    source: str = ""
    format: str = "python"
    notes: tuple[Note, ...] = ()

    def of_kind(self, kind: str) -> tuple[Note, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if note.kind == kind)

    def __str__(self) -> str:
        head = f"{self.format} {self.source}".strip()
        return "\n".join([head, *(f"  {note}" for note in self.notes)])
