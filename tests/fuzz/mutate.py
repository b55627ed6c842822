"""Mutants of files, one for each seed: mutations of bytes, words, XML trees and JSON trees."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from tests.fuzz.corpus import Base, bases

MOST_CHANGES = 4

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e400", "5e-324", "-0", "0", "-1", "1", "0.5", "2", "1e10",
    "-1e10", "1e-10", "9223372036854775808", "1" + "0" * 400, "4294967296", "2147483648", "0x10", "1,5",
    "1e", "--1", "", " ", "1 2", "0 0 0", "0 0 0 0", "1 2 3", "nan nan nan", "1e200 1e200 1e200", "true",
    "one", "\u0661", "1_0",
)  # fmt: skip
TEXTS = (
    "", " ", "world", "a" * 300, "é" * 200, "../../etc/passwd", "/dev/zero", "\x1b[31mred", "\u202eevil",
    "x\ny", "$x_{1}$", "None", "<b>", "%s%n", "tetra.stl", "part.xml", "package://x/y",
    "file:///etc/passwd", "a\x00b", "\ud7ff", "hip", "arm", "everything",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, 1e308, -1e308, 1e-320, 10**400, 2**63, -(2**64), "", "nan",
    "world", "a" * 300, "\x1b[31m", [], {}, [0], [0, 0, 0], [[0]], [1, [2, [3]]], [1e200, 1e200, 1e200],
    {"number": "nan"}, {"number": "inf"}, {"number": []}, {"kind": "Body"}, {"kind": "Mechanism"},
    {"kind": []}, {"kind": "Note", "what": 1}, {"expression": {}}, {"expression": {"sympy": ["symbol"]}},
    {"expression": {"sympy": 1}}, {"expression": []}, {"block": "", "columns": 3, "of": "<f8"},
    {"block": "AAAA", "columns": 3, "of": "<f8"}, {"block": 1, "columns": 3, "of": "<i8"},
    {"kind": "Sphere", "radius": 1}, {"kind": "Revolute", "name": "arm"},
)  # fmt: skip


def mutant(seed: int) -> Base:
    """The mutant with that seed: a base file with one to four mutations."""
    rng = random.Random(seed)
    kind = rng.choice(("urdf", "mjcf", "json"))
    base = rng.choice([b for b in bases() if b.kind == kind])
    data = base.data
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, MOST_CHANGES))):
        data = rng.choice(_CHANGES[kind])(rng, data)
    return Base(base.name, kind, data)


# -------------------------------------------------------------------------------------------- bytes and words


def _bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip, delete, duplicate or insert bytes."""
    if not data:
        return b"\xff"
    at, length = rng.randrange(len(data)), rng.choice((1, 1, 2, 8, 64, 512))
    part = data[at : at + length]
    new = rng.choice(
        (
            bytes(byte ^ (1 << rng.randrange(8)) for byte in part),
            b"",
            part * 2,
            part * 50,
            bytes(rng.randrange(256) for _ in range(4)) + part,
            b"\x00" + part,
            b"\xef\xbb\xbf" + part,
            b"]]>" + part,
            b"&#27;" + part,
            b"<!--" + part,
        )
    )
    return data[:at] + new + data[at + length :]


def _truncated(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


_NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
_QUOTED = re.compile(rb'"[^"<>]*"')


def _replaced(rng: random.Random, data: bytes, pattern: re.Pattern[bytes], new: Callable[[], bytes]) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + new() + data[match.end() :]


def _number(rng: random.Random, data: bytes) -> bytes:
    return _replaced(rng, data, _NUMBER, lambda: rng.choice(NUMBERS).encode())


def _text(rng: random.Random, data: bytes) -> bytes:
    return _replaced(
        rng, data, _QUOTED, lambda: json.dumps(rng.choice((*TEXTS, *NUMBERS)), ensure_ascii=False).encode()
    )


def _exchanged(rng: random.Random, data: bytes) -> bytes:
    """Exchange two quoted words."""
    found = list(_QUOTED.finditer(data))
    if len(found) < 2:
        return data
    a, b = sorted(rng.sample(found, 2), key=lambda match: match.start())
    return data[: a.start()] + b.group() + data[a.end() : b.start()] + a.group() + data[b.end() :]


# ---------------------------------------------------------------------------------------------- trees


def _element(rng: random.Random, data: bytes) -> bytes:
    """Delete, duplicate, move, rename or empty an element of the XML tree, or change an attribute."""
    try:
        root = ET.fromstring(data)
    except (ET.ParseError, ValueError, LookupError):
        return _bytes(rng, data)
    elements = list(root.iter())
    parents = {child: parent for parent in elements for child in parent}
    element, other = rng.choice(elements), rng.choice(elements)
    parent = parents.get(element)
    change = rng.randrange(8)
    if change == 0 and parent is not None:
        parent.remove(element)
    elif change == 1 and parent is not None:
        parent.insert(0, element)  # a duplicate in its parent
    elif change == 2 and element not in list(other.iter()) and other not in list(element.iter()):
        other.append(element)
    elif change == 3:
        element.tag = other.tag
    elif change == 4 and element.attrib:
        del element.attrib[rng.choice(list(element.attrib))]
    elif change == 5 and element.attrib:
        element.attrib[rng.choice(list(element.attrib))] = rng.choice((*NUMBERS, *TEXTS[:8]))
    elif change == 6 and other.attrib:
        name = rng.choice(list(other.attrib))
        element.attrib[name] = rng.choice((other.attrib[name], *NUMBERS))
    elif parent is not None:
        for child in list(element):
            element.remove(child)
    return ET.tostring(root)


def _member(rng: random.Random, data: bytes) -> bytes:
    """Delete, exchange, rename, duplicate or replace a member of the JSON tree."""
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(rng, data)
    places: list[tuple[Any, Any]] = []
    waiting = [root]
    while waiting:
        here = waiting.pop()
        inside = (
            list(here.items())
            if isinstance(here, dict)
            else list(enumerate(here))
            if isinstance(here, list)
            else []
        )
        places += [(here, key) for key, _ in inside]
        waiting += [value for _, value in inside]
    if not places:
        return _bytes(rng, data)
    (holder, key), (other, name) = rng.choice(places), rng.choice(places)
    change = rng.randrange(6)
    if change == 0:
        del holder[key]
    elif change == 1:
        holder[key] = json.loads(json.dumps(other[name]))
    elif change == 2 and isinstance(holder, dict):
        holder[rng.choice(("kind", "name", "joint", "x", "", "__class__"))] = holder.pop(key)
    elif change == 3 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(other[name])))
    else:
        holder[key] = rng.choice(VALUES)
    return json.dumps(root).encode()


_WORDS = (_bytes, _truncated, _number, _number, _number, _text, _text, _exchanged)
_CHANGES: dict[str, tuple[Callable[[random.Random, bytes], bytes], ...]] = {
    "urdf": (*_WORDS, *[_element] * 6),
    "mjcf": (*_WORDS, *[_element] * 6),
    "json": (*_WORDS, *[_member] * 8),
}
