"""Names of the elements of a file: unique, and made of characters that XML can contain."""

from __future__ import annotations

from collections.abc import Iterable

from zwang.io.xml_writer import as_xml_text


class UniqueNames:
    """The names of the elements of one kind in a file, by the names of the parts of the mechanism.

    reserved: names that are taken.
    """

    def __init__(self, reserved: Iterable[str] = ()):
        self._written: dict[str, str] = {}
        self._taken = set(reserved)

    def assign(self, name: str) -> str:
        """The name in the file for the part `name`: the same one, where XML can contain it."""
        written = self.new(as_xml_text(name))
        self._written[name] = written
        return written

    def new(self, name: str) -> str:
        """`name`, with an ending that makes it unique."""
        unique, count = name, 1
        while unique in self._taken:
            count += 1
            unique = f"{name} {count}"
        self._taken.add(unique)
        return unique

    def free(self, name: str) -> str:
        """`name`, with an ending that differs from the names of all parts and of the file."""
        unique, count = name, 1
        while unique in self._taken or unique in self._written:
            count += 1
            unique = f"{name} {count}"
        return unique

    def assign_as(self, name: str, written: str) -> None:
        """Let `name` denote an element whose name in the file is `written`."""
        self._written[name] = written

    def assign_reserved(self, name: str) -> None:
        """Let a reserved name denote itself."""
        self._written[name] = name

    def __getitem__(self, name: str) -> str:
        return self._written[name]

    def __contains__(self, name: str) -> bool:
        return name in self._written
