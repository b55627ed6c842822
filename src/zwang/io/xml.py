"""A strict XML parser, on the basis of expat, whose elements have locations and validated attributes.

Document types and entities are rejected, because they permit denial-of-service attacks and the disclosure of
files, and so are documents that are too large or too deeply nested. Every message begins with file, line and
column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from zwang.errors import LoadError
from zwang.io.files import read_bytes

LARGEST_DOCUMENT = 128 * 2**20  # bytes
MOST_ELEMENTS = 1_000_000
DEEPEST = 256

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


class Element:
    """An element of a document: its name, attributes, children, text and location."""

    __slots__ = ("attributes", "children", "column", "line", "name", "owner", "source", "text")

    def __init__(
        self, name: str, attributes: dict[str, str], source: str, line: int, column: int, owner: str
    ):
        self.name, self.attributes, self.source = name, attributes, source
        self.line, self.column = line, column
        self.owner = owner
        self.children: list[Element] = []
        self.text = ""

    @property
    def location(self) -> str:
        """File, line and column."""
        return f"{self.source}, line {self.line}, column {self.column}"

    @property
    def title(self) -> str:
        """`<mass> of link 'arm'`, `<visual> 'v' of link 'arm'`."""
        name = f" {self.attributes['name']!r}" if "name" in self.attributes else ""
        return f"<{self.name}>{name}" + (f" of {self.owner}" if self.owner else "")

    @property
    def inside(self) -> str:
        """The owner of its children in messages: `link 'arm'`, `visual 'v' of link 'arm'`."""
        if "name" not in self.attributes:
            return self.owner
        label = f"{self.name} {self.attributes['name']!r}"
        return f"{label} of {self.owner}" if self.owner and " of " not in self.owner else label

    def error(self, message: str) -> LoadError:
        """The error `message` at the location of this element."""
        return LoadError(f"{self.location}: {message}")

    def all(self, name: str) -> list[Element]:
        """The children of that name."""
        return [child for child in self.children if child.name == name]

    def one(self, name: str) -> Element | None:
        """The only child of that name, or None. Raises LoadError for several."""
        found = self.all(name)
        if len(found) > 1:
            raise found[1].error(f"{self.title} has {len(found)} elements <{name}>; it must have one")
        return found[0] if found else None

    def walk(self) -> Iterator[Element]:
        """This element and its descendants in document order."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def required(self, attribute: str) -> str:
        """The text of an attribute. Raises LoadError if it is missing or empty."""
        text = self.attributes.get(attribute)
        if text is None:
            raise self.error(f"{self.title} lacks the required attribute {attribute!r}")
        if not text.strip():
            raise self.error(f"the attribute {attribute!r} of {self.title} is empty")
        return text

    def numbers(
        self, attribute: str, count: int, default: tuple[float, ...] | None = None
    ) -> tuple[float, ...]:
        """`count` finite numbers, separated by blanks, or `default` if the attribute is missing.

        A zero is returned as the integer 0, so that it remains a structural zero. Raises LoadError for other
        text, and for a missing attribute without default.
        """
        if attribute not in self.attributes and default is not None:
            return default
        text = self.required(attribute)
        words = text.split()
        if len(words) != count:
            expected = "one number" if count == 1 else f"{count} numbers"
            raise self.error(
                f"{attribute} of {self.title} is {text!r}: it must be {expected}, not {len(words)}"
            )
        return tuple(self._number(word, attribute) for word in words)

    def number(self, attribute: str, default: float | None = None) -> float:
        """One finite number, or `default` if the attribute is missing; see `numbers`."""
        return self.numbers(attribute, 1, None if default is None else (default,))[0]

    def _number(self, word: str, attribute: str) -> float:
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not math.isfinite(value):
            hint = "; write a decimal point, not a comma" if "," in word else ""
            shown = word if len(word) < 60 else word[:57] + "..."
            raise self.error(
                f"{attribute} of {self.title} has {shown!r}, which is not a finite decimal number{hint}"
            )
        return value if value else 0


def read_document(path: Path, where: str = "") -> Element:
    """The root element of a file.

    Raises LoadError, with the line, unless it is well-formed XML without a DTD.
    """
    return parse(read_bytes(path, where or str(path), largest=LARGEST_DOCUMENT), str(path))


def parse(data: bytes, source: str, *, encoding: str | None = None) -> Element:
    """The root element of a document, named `source` in messages. encoding: overrides the declared one."""
    if not data.strip():
        raise LoadError(f"{source}, line 1: the file is empty; there is no element in it")
    return _Builder(source, encoding).parse(_COMMENT.sub(_blank, data))


def _blank(comment: re.Match[bytes]) -> bytes:
    """The line ends of a comment; its content, which may be malformed (`--`), is not parsed."""
    return b"\n" * comment.group().count(b"\n")


class _Builder:
    """The handlers that expat calls; they build the tree of elements."""

    def __init__(self, source: str, encoding: str | None):
        self.source = source
        self.root: Element | None = None
        self.open: list[Element] = []
        self.texts: list[list[str]] = []
        self.count = 0
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.buffer_size = 2**20
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype
        self.parser.EntityDeclHandler = self.refuse_doctype

    def parse(self, data: bytes) -> Element:
        try:
            self.parser.Parse(data, True)
        except LoadError:
            raise
        except expat.ExpatError as error:
            inside = (
                f" (inside {self.open[-1].title}, opened in line {self.open[-1].line})" if self.open else ""
            )
            reason = expat.errors.messages.get(error.code, str(error))
            raise self.error(
                f"not well-formed XML: {reason}{inside}", error.lineno, error.offset + 1
            ) from None
        except UnicodeDecodeError as error:
            raise self.error(f"the text is not in its stated encoding: {error.reason}") from None
        except (ValueError, LookupError) as error:  # for example an unknown encoding
            raise self.error(f"not well-formed XML: {error}") from None
        if self.root is None:
            raise self.error("there is no element in the file")
        return self.root

    def error(self, message: str, line: int | None = None, column: int | None = None) -> LoadError:
        line = self.parser.CurrentLineNumber if line is None else line
        column = self.parser.CurrentColumnNumber + 1 if column is None else column
        return LoadError(f"{self.source}, line {line}, column {column}: {message}")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_ELEMENTS:
            raise self.error(f"the document is too large: the limit is {MOST_ELEMENTS} elements")
        if len(self.open) >= DEEPEST:
            raise self.error(f"the elements are nested too deep: the limit is a depth of {DEEPEST}")
        owner = self.open[-1].inside if len(self.open) > 1 else ""
        position = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        element = Element(name, attributes, self.source, *position, owner)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def end(self, name: str) -> None:
        self.open.pop().text = "".join(self.texts.pop()).strip()

    def characters(self, text: str) -> None:
        if self.texts:
            self.texts[-1].append(text)

    def refuse_doctype(self, *_: object) -> None:
        raise self.error(
            "a document type (DTD) or an entity declaration is not permitted; delete <!DOCTYPE ...>"
        )
