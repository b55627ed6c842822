"""Equations of a mechanism as text in a format by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zwang.errors import UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.equations import Equations, equations

FORMATS: dict[str, Callable[[Equations], str]] = {
    "latex": lambda e: e.latex(report=e.form == "expanded"),
    "html": lambda e: e.html(),
    "sympy": lambda e: e.sympy(),
    "text": lambda e: e.text(),
}


def written_equations(
    mechanism: Mechanism,
    format: str = "text",
    speeds: Sequence[str] | None = None,
    method: str = "projection",
) -> str:
    """The equations of motion as "latex", "html", "sympy" (Python text) or "text". Raises UnknownNameError."""
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    return FORMATS[format](equations(mechanism, speeds, method))
