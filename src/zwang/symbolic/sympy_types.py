"""Typed views of SymPy objects, whose own annotations are wider than what their functions return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import sympy as sp


def as_expr(x: Any) -> sp.Expr:
    """A SymPy object that is known to be an expression."""
    return cast(sp.Expr, x)


def free_symbols_in(x: sp.Basic | sp.MatrixBase) -> set[sp.Symbol]:
    """The free symbols of an expression or a matrix."""
    return cast("set[sp.Symbol]", x.free_symbols)


def replaced(x: sp.Basic, mapping: Mapping[Any, Any]) -> sp.Expr:
    """The expression with subexpressions replaced exactly (`xreplace`)."""
    return cast(sp.Expr, x.xreplace(mapping))


def matrix_entries(matrix: sp.MatrixBase) -> list[sp.Expr]:
    """The entries of a matrix, row by row."""
    return cast("list[sp.Expr]", list(cast(Any, matrix)))


def rows_of_matrix(matrix: sp.MatrixBase, first: int, last: int) -> sp.Matrix:
    """The rows first to last - 1."""
    return cast(sp.Matrix, matrix[first:last, :])
