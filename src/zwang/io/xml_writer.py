"""Writing of XML documents: elements, numbers without loss, and names that XML can contain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

# the complement of the production Char of XML 1.0, section 2.2
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class XmlElement:
    """An element of a document to be written: its name, its attributes and its children.

    An attribute is a text, a truth value, a number or a sequence of numbers; one that is None is omitted.
    """

    __slots__ = ("attributes", "children", "name")

    def __init__(
        self, name: str, attributes: Mapping[str, Any] | None = None, children: Iterable[XmlElement] = ()
    ):
        self.name, self.attributes = name, dict(attributes or {})
        self.children = list(children)

    def add(self, tag: str, /, **attributes: Any) -> XmlElement:
        """Append a child with this name and these attributes, and return it."""
        child = XmlElement(tag, attributes)
        self.children.append(child)
        return child

    def lines(self, indent: int = 0) -> list[str]:
        """The lines of the text of this element."""
        given = {name: attribute_text(value) for name, value in self.attributes.items() if value is not None}
        head = "".join(f" {name}={quoteattr(text)}" for name, text in given.items())
        space = "  " * indent
        if not self.children:
            return [f"{space}<{self.name}{head}/>"]
        inner = [line for child in self.children for line in child.lines(indent + 1)]
        return [f"{space}<{self.name}{head}>", *inner, f"{space}</{self.name}>"]


def document(root: XmlElement) -> bytes:
    """The text of a document, in UTF-8."""
    return ('<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(root.lines()) + "\n").encode()


def attribute_text(value: Any) -> str:
    """The text of an attribute; every float is written with as many digits as identify it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "__iter__"):
        return " ".join(number_text(x) for x in value)
    return number_text(value)


def number_text(x: Any) -> str:
    """The shortest decimal text of which x is the nearest float."""
    value = float(x)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def is_xml_text(text: str) -> bool:
    """Whether XML 1.0 can contain the text; it cannot contain most control characters."""
    return not _NOT_XML.search(text)


def as_xml_text(text: str) -> str:
    """The text with the characters that XML cannot contain as escape sequences, such as \\x01."""
    return _NOT_XML.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode(), text)
