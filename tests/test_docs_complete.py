"""Completeness of the documentation: public names in the reference, errors with examples, renamed names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import zwang as zw
from zwang import errors
from zwang.scalar.deprecated import RENAMED

DOCS = Path(__file__).parents[1] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(function|class):: ([\w.]+)", re.MULTILINE)
LISTED = [
    (kind, path)
    for page in DOCS.glob("reference/*.md")
    for kind, path in DIRECTIVE.findall(page.read_text("utf-8"))
]
PUBLIC = [f"zwang.{name}" for name in zw._NAMES] + [
    f"{module.__name__}.{name}" for module in (zw.robot, zw.identify) for name in module.__all__
]
RENAMING = re.compile(
    r"(?:@renamed_(?:arguments|attributes)|__getattr__ = (?:deprecation\.)?module_getattr)\((.*?)\)\n",
    re.DOTALL,
)
PAIR = re.compile(r'"?(\w+)"?(?:=|: )"(\w+)"')
INTERNAL = {
    ("point", "state"),
    ("efforts", "constraint_force"),
    ("working", "nonideal_force"),
    ("works", "nonideal_force_is_finite"),
}
"""Renamed attributes of classes that no public function returns."""

ERRORS = [
    name
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__
]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_name_is_in_the_reference_once(path):
    pages = Counter(listed for _, listed in LISTED)[path]
    assert pages == 1, f"list {path} on exactly one page of docs/reference"


@pytest.mark.parametrize(("kind", "path"), LISTED, ids=lambda x: x)
def test_a_name_in_the_reference_exists_and_has_a_docstring(kind, path):
    module, name = path.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name)
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


def test_pages_with_code_cells_begin_with_front_matter():
    """Without front matter the cells of a page are shown, but not executed."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        if "{code-cell}" in text:
            assert text.startswith("---\nfile_format: mystnb\n"), page
        assert "\n```python\n" not in text, f"{page}: a cell is fenced as {{code-cell}} python"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("JAX", "use_jax"), ("PyTorch", "use_pytorch"), ("CasADi Ipopt", "use_casadi"),
        ("FMI FMU", "export_fmu"), ("WebAssembly", "export_wasm"), ("C C99", "export_c"),
        ("NVIDIA GPU CUDA PTX", "run_on_a_gpu"),
        ("URDF MJCF", "convert_formats"), ("MCAP Foxglove", "save_and_reload_runs"),
        ("Gymnasium", "learning_environments"),
    ],
)  # fmt: skip
def test_the_search_of_the_site_finds_the_page_of_a_program(words, page):
    """It ranks pages that have a word in a heading before all others."""
    text = (DOCS / "howto" / f"{page}.md").read_text("utf-8")
    headings = re.sub(r"\W", " ", " ".join(re.findall(r"^#+ (.*)$", text, re.MULTILINE))).split()
    assert set(words.split()) <= set(headings)


def test_the_change_log_lists_every_renamed_name():
    """The table of renamed names has every old spelling that gives a DeprecationWarning, with the new one."""
    table = "\n".join(
        line
        for line in (DOCS.parent / "CHANGELOG.md").read_text("utf-8").splitlines()
        if line.startswith("  |")
    )
    missing = [
        f"{old} -> {new}" for old, new in _renamed_names() if not _has(table, old) or not _has(table, new)
    ]
    assert not missing


def _renamed_names() -> list[tuple[str, str]]:
    """(old, new) of public names, arguments and attributes."""
    pairs = [(old, place.rpartition(":")[2]) for old, place in zw._RENAMED.items()] + list(RENAMED.items())
    for page in sorted(Path(zw.__file__).parent.rglob("*.py")):
        for call in RENAMING.findall(page.read_text("utf-8")):
            pairs += PAIR.findall(call)
    return [pair for pair in pairs if pair not in INTERNAL]


def _has(table: str, name: str) -> bool:
    return re.search(rf"[`.( ]{name}[`=.(]", table) is not None
