"""Entries of matrices that are zero for all values of their symbols.

Cancellations such as v - (v / r) r stay in a graph, which simplifies single operations only. Such an entry is
found by its value at two random points in arithmetic of 60 digits (a probabilistic identity test: Schwartz,
J. ACM 27 (1980) 701).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

from zwang.compiler.ir.graph import Node
from zwang.symbolic.expression_forms import CSEForm, nodes_of

DIGITS, ZERO, POINTS = 60, 1e-45, 2

_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "abs": abs, "sqrt": mpmath.sqrt, "sin": mpmath.sin,
    "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos, "exp": mpmath.exp,
    "log": mpmath.log, "atan2": mpmath.atan2, "pow": mpmath.power,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "sech": mpmath.sech,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
}  # fmt: skip


def identical_zeros(form: CSEForm, array: np.ndarray) -> np.ndarray:
    """Whether each entry of an array of scalars is zero for all values of the symbols.

    An entry with a case distinction counts as nonzero, unless it is the number 0.
    """
    nodes = nodes_of(list(array.flat))
    zero = np.ones(array.shape, dtype=bool)
    random = np.random.default_rng(0)
    with mpmath.workdps(DIGITS):
        for _ in range(POINTS):
            point = [
                mpmath.mpf(int(x)) / 10**9 for x in random.integers(5 * 10**8, 2 * 10**9, len(form.inputs))
            ]
            values = _values(nodes, point)
            for k, x in np.ndenumerate(array):
                value = values.get(x.number) if isinstance(x, Node) else x
                zero[k] &= value is not None and bool(abs(value) < ZERO)
    return zero


def _values(nodes: list[Node], point: list[Any]) -> dict[int, Any]:
    """The values of the nodes, by number, where they have one without a case distinction."""
    known: dict[int, Any] = {}
    for node in nodes:
        if node.op == "const":
            known[node.number] = mpmath.mpf(node.data)
        elif node.op == "input":
            known[node.number] = point[node.data[1]]
        elif node.op in _OPERATIONS and all(a.number in known for a in node.args):
            try:
                known[node.number] = _OPERATIONS[node.op](*(known[a.number] for a in node.args))
            except (ArithmeticError, ValueError, TypeError):
                continue  # a pole, or a complex number in atan2
    return known
