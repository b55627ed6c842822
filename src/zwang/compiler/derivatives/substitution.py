"""Substitution of values for unknowns in an expression graph.

A derivative at a fixed value of an unknown is taken while the unknown is a placeholder, and the value is
substituted afterwards: rules that simplify an expression could otherwise remove the value from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.compiler.ir.graph import RULES, Control, Node, Real, user_line
from zwang.errors import TraceError

_NO_PORT = -1  # the number of the input that a placeholder reads; no program has it


def placeholders(like: Real, count: int) -> np.ndarray:
    """`count` new unknowns (count,) of the graph of a traced scalar."""
    nodes = np.empty(count, dtype=object)
    nodes[:] = [like.graph.unshared(Real, "input", (), (_NO_PORT, k)) for k in range(count)]
    return nodes


def substitute_nodes(outputs: Any, values: Mapping[Any, Any]) -> np.ndarray:
    """The outputs, an array, with values in place of placeholders.

    Raises TraceError where the body of a loop or branch depends on a placeholder.
    """
    array = np.array(outputs, dtype=object)
    replaced: dict[Node, Any] = dict(values)
    for node in _in_order(array.flat):
        if node in replaced or not any(a in replaced for a in node.args):
            continue
        if isinstance(node, Control) or node.op in ("result", "load", "store", "gather", "scatter"):
            raise TraceError(f"{user_line()}: an unknown cannot be substituted in a loop, branch or array")
        args = [replaced.get(a, a.data if a.op == "const" else a) for a in node.args]
        replaced[node] = RULES[node.op](*args)
    array.flat[:] = [replaced.get(x, x) if isinstance(x, Node) else x for x in array.flat]
    return array


def _in_order(outputs: Any) -> list[Node]:
    """All nodes that the outputs depend on, in order of creation."""
    seen: set[Node] = set()
    waiting = [node for node in outputs if isinstance(node, Node)]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += node.args
    return sorted(seen, key=lambda node: node.number)
