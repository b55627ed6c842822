"""Sizes and names of the source: short files, lines and functions; one name for each class and each file."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = [
    p for folder in ("src", "tests", "docs", "examples", "benchmarks") for p in (ROOT / folder).rglob("*.py")
]
TEXTS = [
    path
    for path in (ROOT / "src" / "zwang").rglob("*")
    if path.suffix in (".js", ".mjs", ".css", ".html", ".c", ".ll", ".txt")
]
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
SOURCE = [path for path in PYTHON if ROOT / "src" in path.parents]


def name(path: Path) -> str:
    """The path in the checkout."""
    return path.relative_to(ROOT).as_posix()


@cache
def definitions(path: Path) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The classes and functions of a file, also nested ones."""
    found, todo = [], [ast.parse(path.read_text("utf-8"))]
    for node in todo:  # which grows; definitions are statements, in bodies of statements
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node)
        todo += [x for name in BODIES for x in getattr(node, name, ())]
    return found


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines of a function, from its first statement after the docstring."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or first.lineno) - first.lineno + 1


def test_files_have_600_lines_of_110_characters():
    lines = {name(path): path.read_text("utf-8").splitlines() for path in (*PYTHON, *TEXTS)}
    assert not {path: len(found) for path, found in lines.items() if len(found) > 600}
    assert not [
        f"{path}:{k}: {line}"
        for path, found in lines.items()
        for k, line in enumerate(found, 1)
        if len(line) > 110
    ]


def test_functions_have_60_lines():
    assert not {
        f"{name(path)}: {node.name}": code_lines(node)
        for path in PYTHON
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef) and code_lines(node) > 60
    }


def test_no_two_classes_have_one_name():
    names = Counter(n.name for path in SOURCE for n in definitions(path) if isinstance(n, ast.ClassDef))
    assert not [name for name, count in names.items() if count > 1]


def test_no_two_files_have_one_name():
    names = Counter(path.name for path in SOURCE if path.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 1]
