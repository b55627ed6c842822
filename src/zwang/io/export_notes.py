"""Notes on what a file format cannot say of a mechanism, and the refusal to write such a file."""

from __future__ import annotations

from dataclasses import fields

from zwang.errors import FormatError, ParameterError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Note, Report
from zwang.mechanism.symbols import values_for_symbols

WRITTEN_FIELDS = (
    "name", "bodies", "gravity", "forces", "constraints", "frames", "geometry", "tendons", "contacts", "home",
    "keyframes", "options", "report",
)  # fmt: skip
"""The fields of a mechanism that the writers write, or note part by part."""


class ExportNotes:
    """Collects the notes of a writer.

    "changed": said in other words, with the same motion. "ignored": omitted, without effect on the motion.
    "unsupported": the format cannot say it, which changes the motion or the value of a sensor.
    """

    def __init__(self, mechanism: Mechanism, format_name: str):
        self.mechanism, self.format = mechanism, format_name
        self.notes: list[Note] = []
        self._refused: list[str] = []  # the lines of the error in strict mode

    def changed(self, what: str, where: str = "") -> None:
        """Note a part that is said in other words."""
        self.notes.append(Note("changed", what, where))

    def ignored(self, what: str, where: str = "") -> None:
        """Note a part that is omitted and has no effect on the motion."""
        self.notes.append(Note("ignored", what, where))

    def unsupported(self, where: str, why: str, instead: str = "it is omitted") -> None:
        """Note a part that the format cannot say.

        where: the part, such as "rolling 'wheel'". why: what cannot be said. instead: what strict=False does.
        """
        self.notes.append(Note("unsupported", f"{why}; {instead}", where))
        self._refused.append(f"  {where}: {why}; with strict=False {instead}")

    def other_parts(self, written: tuple[str, ...] = ()) -> None:
        """Note the parts of the fields that no writer has, such as those of a newer version.

        written: further fields that this writer has.
        """
        for field in fields(self.mechanism):
            value = getattr(self.mechanism, field.name)
            if field.name not in (*WRITTEN_FIELDS, *written) and isinstance(value, tuple):
                for part in value:
                    name = getattr(part, "name", "")
                    self.ignored(f"it is not written to {self.format}", f"{field.name}: {name!r}")

    def check(self, strict: bool) -> None:
        """Raises FormatError, with every part that the format cannot say, if strict."""
        if not strict or not self._refused:
            return
        parts = "\n".join(self._refused)
        count = f"{len(self._refused)} part{'s' * (len(self._refused) > 1)}"
        raise FormatError(
            f"{self.format} cannot describe {count} of mechanism {self.mechanism.name!r}:\n{parts}\n"
            "Replace these parts by ones that the format has, or give strict=False, which writes the file as "
            "stated here and lists the same in the report"
        )

    def report(self, path: str, written: str) -> Report:
        """The report on the file at `path`; `written` counts its elements."""
        head = Note("written", written, path)
        return Report(path, self.format.lower(), (head, *self.notes))


def check_values(mechanism: Mechanism, format_name: str) -> None:
    """Raises ParameterError if the mechanism has symbols, which are no numbers."""
    if mechanism.symbols:
        raise ParameterError(
            f"mechanism {mechanism.name!r} has symbols without values, and {format_name} contains numbers "
            f"only; give them with {values_for_symbols(mechanism)}"
        )
