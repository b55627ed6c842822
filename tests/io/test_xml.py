"""The XML parser: locations of elements, numbers, and rejected documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zwang.errors import LoadError
from zwang.io.xml import DEEPEST, Element, parse

TEXT = (
    b'<?xml version="1.0"?>\n<!-- a -- b -->\n<robot name="r">\n  <link name="arm">\n    <mass '
    b'value="1"/></link></robot>'
)


def test_elements_have_locations_and_owners() -> None:
    root = parse(TEXT, "f.xml")
    (link,) = root.all("link")
    mass = link.one("mass")
    assert mass is not None
    assert (link.line, link.column, mass.line, mass.column) == (4, 3, 5, 5)
    assert mass.title == "<mass> of link 'arm'"
    assert str(mass.error("no")) == "f.xml, line 5, column 5: no"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(encoding: str) -> None:
    stated = {"latin-1": "iso-8859-1", "utf-16": "utf-16"}.get(encoding, "utf-8")
    text = f'<?xml version="1.0" encoding="{stated}"?><a b="\u00e9"/>'
    assert parse(text.encode(encoding), "f").attributes == {"b": "\u00e9"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1: the file is empty"),
        (b"   \n", "empty"),
        (b"<!-- only -->", "no element"),
        (b"<a>", "line 1"),
        (b"<a></b>", "mismatched tag"),
        (b"<a/><b/>", "junk after document element"),
        (b"\n<a b='\0'/>", "line 2"),
        (b"\n<a b='\xff'/>", "line 2, column 7: .*invalid token"),
        (b'<a b="1" b="2"/>', "duplicate attribute"),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "DTD"),
        (b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd"><a/>', "DTD"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "encoding"),
        (b"<a>" * (DEEPEST + 1), "too deep"),
        (b"\x89PNG\r\n\x1a\n", "line 1"),
    ],
)
def test_invalid_xml_raises(data: bytes, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(data, "f.xml")


def _element(text: str) -> Element:
    return Element("mass", {"value": text}, "f.xml", 3, 7, "link 'arm'")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_exactly(x: float) -> None:
    assert _element(repr(x)).number("value") == x


@pytest.mark.parametrize(
    "text",
    ["nan", "inf", "-Infinity", "0x10", "1,5", "1 2", "", " ", "1e999", "1_0", "\u0661", "1.", ".5", "+1"],
)
def test_numbers_are_plain_decimals(text: str) -> None:
    if text in ("1.", ".5", "+1"):
        assert _element(text).number("value") == float(text)
        return
    with pytest.raises(LoadError, match=r"f.xml, line 3, column 7: .*value.*<mass> of link 'arm'"):
        _element(text).number("value")


def test_zeros_are_structural() -> None:
    assert all(type(x) is int for x in _element("0 -0.0 0e9").numbers("value", 3))
