"""LLVM IR that is constant but for types, widths and field numbers: the template files of the folder
`templates`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import Template


@cache
def _template(name: str) -> Template:
    text = (
        resources.files("zwang.compiler.backends.llvm")
        .joinpath("templates", f"{name}.ll")
        .read_text(encoding="utf-8")
    )
    return Template(text.rstrip("\n"))


def fill_template(name: str, /, **values: object) -> str:
    """The text of `templates/<name>.ll` with each placeholder $key replaced by its value.

    Raises KeyError if the template has a placeholder that is not among the values.
    """
    return _template(name).substitute({key: str(value) for key, value in values.items()})
