"""What the documentation must have: every public name in the reference, every error with an example, every page within reach."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import zwang as zw
from zwang import errors

DOCS = Path(__file__).parents[1] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(function|class):: ([\w.]+)", re.MULTILINE)
LISTED = [
    (kind, path)
    for page in DOCS.glob("reference/*.md")
    for kind, path in DIRECTIVE.findall(page.read_text("utf-8"))
]
PUBLIC = [f"zwang.{name}" for name in zw._NAMES] + [f"zwang.robot.{name}" for name in zw.robot.__all__]
ERRORS = [
    name
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__
]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_name_is_in_the_reference_once(path):
    pages = Counter(listed for _, listed in LISTED)[path]
    assert pages == 1, f"list {path} on one page of docs/reference, under its room"


@pytest.mark.parametrize(("kind", "path"), LISTED, ids=lambda x: x)
def test_what_the_reference_lists_is_there_and_says_what_it_is(kind, path):
    room, name = path.rsplit(".", 1)
    found = getattr(importlib.import_module(room), name)
    assert inspect.isclass(found) == (kind == "class")
    assert inspect.getdoc(found)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_a_section_with_an_example_that_raises_it(name):
    page = (DOCS / "errors.md").read_text("utf-8")
    section = re.search(rf"^## {name}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section, f"docs/errors.md has no section {name}"
    cells = "".join(re.findall(r"^```\{code-cell\} python$(.*?)^```$", section[1], re.MULTILINE | re.DOTALL))
    base = name in ("ZwangError", "ZwangWarning")
    how = rf"except \S*errors\.{name}\b" if base else rf"with (raises|warns)\(errors\.{name}\)"
    assert re.search(how, cells), f"no cell of the section {name} raises it"
    assert base or "Fix: " in section[1]
    assert f"[{name}](#{name.lower()})" in page


def test_cells_of_pages_stand_behind_their_front_matter():
    """A page with cells but without front matter would be shown with its code, and not run."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        if "{code-cell}" in text:
            assert text.startswith("---\nfile_format: mystnb\n"), page
        assert "\n```python\n" not in text, f"{page}: a cell is fenced as {{code-cell}} python"
