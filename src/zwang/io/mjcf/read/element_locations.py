"""The places in the files of a model to which MuJoCo refers.

MuJoCo keeps the line of each element, from which its document and its line there are known, but for the
elements of included documents, whose line is 0. Those are found by their names, or by their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

from zwang.io.mjcf.read.model_files import Files
from zwang.io.xml import Element

_LINE = re.compile(r"\b(line(?: number)?[ =]+)(\d+)(?=[^']*(?:'[^']*'[^']*)*$)", re.IGNORECASE)
"""A line in a message, which is not in quotes."""
_SECTIONS = ("actuator", "sensor", "equality", "tendon")  # all elements in such a section are of its kind
# Elements that make several others, or whose names have additions in the compiled model.
_GENERATORS = {"attach", "replicate", "composite", "flexcomp"}
_SORTED = ("pair", "exclude")  # kinds that MuJoCo sorts


class ElementLocations:
    """The locations of elements, such as `model.xml, line 7`, in the files of a model."""

    def __init__(self, files: Files):
        self.files = files

    def of_line(self, info: str) -> str | None:
        """The location of the first line to which a text of MuJoCo refers; None if it is unknown."""
        found = _LINE.search(info)
        line = int(found[2]) if found else 0
        return _location(self.files.lines[line - 1]) if 0 < line <= len(self.files.lines) else None

    def of_message(self, message: str) -> tuple[str, str]:
        """(location, text) of a message of MuJoCo: the file, with the line if it is known, and the message in
        one line, in which the numbers of lines are those of the files.
        """
        text = " ".join(message.split()) or "MuJoCo reports no reason"
        location = self.of_line(text) or self._of_words(text)
        return location, _LINE.sub(self._in_file, text)

    def of_compiled(self, kind: str, elements: Sequence[Any]) -> list[str]:
        """The locations of all elements of a kind, which are those of a spec in the order of the model."""
        unnamed = [e for e in elements if _is_included(e) and not e.name]
        places = self._of_unnamed(kind, len(unnamed))
        return [
            (next(places) if not element.name else self._of_named(kind, element.name))
            if _is_included(element)
            else self.of_line(getattr(element, "info", "") or "") or self.files.source
            for element in elements
        ]

    def _of_named(self, kind: str, name: str) -> str:
        """The location of the element of an included document with this name in the compiled model."""
        found = [self._included_by_name.get((kind, given), []) for given in self._given_names(name)]
        return self._common([element for elements in found for element in elements] or self._included)

    def _of_unnamed(self, kind: str, count: int) -> Iterator[str]:
        """The locations of the elements of included documents without a name, of which there are `count`."""
        elements = self._included_by_name.get((kind, ""), [])
        if len(elements) == count and kind not in _SORTED and not self._has_generators:
            return map(_location, elements)
        return repeat(self._common(elements or self._included))

    # ----------------------------------------------------------------------------------------------- messages

    def _in_file(self, line: re.Match[str]) -> str:
        """What the message says of a line, with its number in its file."""
        number = int(line[2])
        if not 0 < number <= len(self.files.lines):
            return line[0]
        element = self.files.lines[number - 1]
        return f"{line[1]}{element.line}" + (
            f" of {element.source}" if element.source != self.files.source else ""
        )

    def _of_words(self, text: str) -> str:
        """The location of an element of which a message tells no line, by its tag and the words in quotes."""
        tag, name = (re.search(rf"\bElement {what}'([^']+)'", text) for what in ("", "name "))
        words = set(re.findall(r"'([^']+)'", text)) - ({tag[1]} if tag else set())
        names = self._given_names(name[1]) if name else set()

        def is_meant(element: Element) -> bool:
            attributes = element.attributes
            if name:
                return attributes.get("name") in names
            is_told = not words.isdisjoint((*attributes, *attributes.values()))
            return (is_told or not words) and (not tag or element.name == tag[1])

        is_included = _LINE.search(text) is not None  # the line 0, as `of_line` has not found it
        if not words and not tag:
            return self._common(self._included) if is_included else self.files.source
        return self._common(filter(is_meant, self._included if is_included else self.files.elements()))

    # ----------------------------------------------------------------------------- elements of included files

    @cached_property
    def _included(self) -> list[Element]:
        return [element for document in self.files.included.values() for element in document.walk()]

    @cached_property
    def _included_by_name(self) -> dict[tuple[str, str], list[Element]]:
        """The elements of included documents by kind and name, in the order of the compiled model."""
        included, found = set(self._included), {}
        by_inclusion = set(self.files.included.values())
        for root in (document for document in self.files.documents if document not in by_inclusion):
            for kind, element in _elements(self.files, root):
                if element in included:
                    found.setdefault((kind, element.attributes.get("name", "")), []).append(element)
        return found

    @cached_property
    def _has_generators(self) -> bool:
        """Whether elements or compiler options change the number or the order of other elements."""
        return any(
            element.name in _GENERATORS or element.attributes.get("fusestatic") == "true"
            for element in self.files.elements()
        )

    @cached_property
    def _additions(self) -> tuple[set[str], set[str]]:
        """The prefixes of attached models, and the separators before the numbers of replicates."""
        elements = list(self.files.elements())
        prefixes = {e.attributes.get("prefix", "") for e in elements if e.name == "attach"} - {""}
        return prefixes, {e.attributes.get("sep", "") for e in elements if e.name == "replicate"}

    def _given_names(self, name: str) -> set[str]:
        """The names in the files that an element with this name in the compiled model may have."""
        prefixes, separators = self._additions
        found, new = set(), {name}
        while new:
            found |= new
            shorter = {n.removeprefix(prefix) for n in new for prefix in prefixes}
            for n in new:
                digits = len(n) - len(n.rstrip("0123456789"))
                stems = [n[: len(n) - k] for k in range(1, digits + 1)]
                shorter |= {s.removesuffix(sep) for s in stems for sep in separators if s.endswith(sep)}
            new = shorter - found - {""}
        return found

    def _common(self, elements: Iterable[Element]) -> str:
        """What the locations of these elements have in common: one location, or the names of their files."""
        locations = {_location(element): element.source for element in elements}
        if len(locations) == 1:
            return next(iter(locations))
        return " or ".join(sorted(set(locations.values()))) or self.files.source


def _is_included(element: Any) -> bool:
    """Whether an element of a spec is from an included document, of which MuJoCo knows no lines."""
    found = _LINE.search(getattr(element, "info", "") or "")
    return found is not None and found[2] == "0"


def _location(element: Element) -> str:
    return f"{element.source}, line {element.line}"


def _elements(files: Files, root: Element) -> Iterator[tuple[str, Element]]:
    """(kind, element) of a model and of the documents that it includes, in the order of MuJoCo: depth first,
    with the elements of a body before those of its children.
    """
    sections = list(files.children(root))
    for section in (x for x in sections if x.name != "worldbody"):
        for child in files.children(section):
            yield (section.name if section.name in _SECTIONS else child.name), child
    stack = [[x for x in sections if x.name == "worldbody"]]
    while stack:
        bodies = stack.pop()  # one body, or all sections of the world
        contents = [element for body in bodies for element in _contents(files, body)]
        yield from ((body.name, body) for body in bodies)
        yield from (("joint" if e.name == "freejoint" else e.name, e) for e in contents if e.name != "body")
        stack.extend([e] for e in reversed(contents) if e.name == "body")


def _contents(files: Files, body: Element) -> Iterator[Element]:
    """The elements of a body, also those in frames and replicates."""
    stack = list(files.children(body))[::-1]
    while stack:
        element = stack.pop()
        if element.name in ("frame", "replicate"):
            stack.extend(list(files.children(element))[::-1])
        else:
            yield element
