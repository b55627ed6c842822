"""Derivatives of traced values by traced values, forward and reverse, as further nodes of the same graph.

What does not depend on an input has the derivative 0, an exact integer, and is never worked out; what the values and
their derivatives have in common is shared. The derivative of `where` is that of the value taken; if the one not
taken has an infinite derivative, reverse mode gives nan there, so guard the argument, not the result. At a kink the
derivative is that of one side: abs and copysign as on the side of the argument's sign, minimum and maximum as of the
second argument where both are equal. Values that come out of a loop or branch have no derivative here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from zwang.compiler.ir.graph import RULES, Control, Index, Node, Real, Truth, user_line
from zwang.compiler.ir.node_rules import add, div, mul, neg, select
from zwang.errors import ShapeError, TraceError


def jacobian(outputs: Any, inputs: Any) -> np.ndarray:
    """The derivatives of each output (rows) by each input (columns), an array of scalars of shape (m, n).

    `outputs` holds traced scalars and numbers, `inputs` traced scalars; both are read flat. Forward or reverse mode is
    taken, whichever has fewer derivatives to carry. Raises TraceError for values from loops or branches.
    """
    rows, columns = _flat(outputs), _inputs(inputs)
    order, forward = _dependent(rows, columns)
    backward = _needed(order, rows)
    cost_forward = sum(forward[node].bit_count() for node in order)
    cost_backward = sum(backward.get(node, 0).bit_count() for node in order)
    if cost_forward <= cost_backward:
        return _forward(rows, columns, order)
    result = [
        _pulled(row, 1, columns, order) if isinstance(row, Real) else [0] * len(columns) for row in rows
    ]
    return _array(result, (len(rows), len(columns)))


def jvp(outputs: Any, inputs: Any, tangents: Any) -> np.ndarray:
    """The derivative of the outputs (m,) along `tangents`, one scalar an input: Jacobian times vector, forward."""
    rows, columns, seeds = _flat(outputs), _inputs(inputs), _flat(tangents)
    if len(columns) != len(seeds):
        raise ShapeError(f"jvp() has {len(columns)} inputs and {len(seeds)} tangents; give one for each")
    order, _ = _dependent(rows, columns)
    known: dict[Node, Any] = dict(zip(columns, seeds, strict=True))
    for node in order:
        if node not in known:
            known[node] = _push(node, [known.get(a, 0) for a in node.args])
    return _array([known.get(row, 0) if isinstance(row, Real) else 0 for row in rows], (len(rows),))


def vjp(outputs: Any, inputs: Any, cotangents: Any) -> np.ndarray:
    """The derivative (n,) of the outputs' sum, weighted by `cotangents`: vector times Jacobian, reverse."""
    rows, columns, seeds = _flat(outputs), _inputs(inputs), _flat(cotangents)
    if len(rows) != len(seeds):
        raise ShapeError(f"vjp() has {len(rows)} outputs and {len(seeds)} cotangents; give one for each")
    order, _ = _dependent(rows, columns)
    weights: dict[Node, Any] = {}
    for row, seed in zip(rows, seeds, strict=True):
        if isinstance(row, Real):
            weights[row] = add(weights.get(row, 0), seed)
    return _array(_pull_all(weights, columns, order), (len(columns),))


def jacobian_function(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """The function that gives the Jacobian of `function` at an array of traced scalars."""

    def derived(x: np.ndarray) -> np.ndarray:
        return jacobian(function(x), x)

    return derived


# ---------------------------------------------------------------------------------------------- what depends on what


def _flat(values: Any) -> list[Any]:
    return list(np.asarray(values, dtype=object).flat)


def _inputs(values: Any) -> list[Real]:
    inputs = _flat(values)
    for k, value in enumerate(inputs):
        if not isinstance(value, Real):
            raise TraceError(
                f"{user_line()}: input {k} of a derivative is {value!r}, which is no traced scalar"
            )
    if len(set(inputs)) != len(inputs):
        raise TraceError(f"{user_line()}: the inputs of a derivative have to be different scalars")
    return inputs


def _dependent(outputs: Sequence[Any], inputs: Sequence[Real]) -> tuple[list[Node], dict[Node, int]]:
    """The nodes between inputs and outputs in order, and for each the set of inputs it depends on, as bits."""
    bits: dict[Node, int] = {node: 1 << k for k, node in enumerate(inputs)}
    order = []
    for node in _reachable(outputs, bits):
        if node in bits:
            order.append(node)
        if node in bits or isinstance(node, (Truth, Index)):
            continue
        found = 0
        for a in _sources(node):
            found |= bits.get(a, 0)
        if found:
            _check_smooth(node)
            bits[node] = found
            order.append(node)
    return order, bits


def _reachable(outputs: Iterable[Any], inputs: dict[Node, int]) -> list[Node]:
    seen: set[Node] = set()
    waiting = [node for node in outputs if isinstance(node, Node)]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            if node not in inputs:
                waiting += _sources(node)
    return sorted(seen, key=lambda node: node.number)


def _sources(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads; a loop or branch reads what its bodies read."""
    if not isinstance(node, Control):
        return node.args
    bodies = node.data[1:2] if node.op == "for" else node.data
    return (*node.args, *(result for body in bodies for result in body.results))


def _check_smooth(node: Node) -> None:
    if node.op in ("result", "load", "store", "gather", "scatter") or isinstance(node, Control):
        raise TraceError(
            f"{user_line()}: a value from a loop, branch or scratch array ({node.op}) depends on an input of the "
            "derivative; derivatives are of straight-line text: unroll the loop (for_each(..., unroll=True)), "
            "write where() for when(), or differentiate what the loop solves"
        )


def _needed(order: Sequence[Node], outputs: Sequence[Any]) -> dict[Node, int]:
    """For each node the set of outputs that depend on it, as bits."""
    bits: dict[Node, int] = {}
    for k, node in enumerate(outputs):
        if isinstance(node, Real):
            bits[node] = bits.get(node, 0) | 1 << k
    for node in reversed(order):
        for a in node.args:
            bits[a] = bits.get(a, 0) | bits.get(node, 0)
    return bits


# ---------------------------------------------------------------------------------------------- forward and reverse


def _forward(rows: Sequence[Any], columns: Sequence[Real], order: Sequence[Node]) -> np.ndarray:
    """All columns at once, each node with the derivatives that it has."""
    known: dict[Node, dict[int, Any]] = {node: {k: 1} for k, node in enumerate(columns)}
    for node in order:
        if node in known:
            continue
        own = [known.get(a, {}) for a in node.args]
        touched = sorted(set().union(*own))
        known[node] = {k: _push(node, [tangents.get(k, 0) for tangents in own]) for k in touched}
    result = [
        [known.get(row, {}).get(k, 0) if isinstance(row, Real) else 0 for k in range(len(columns))]
        for row in rows
    ]
    return _array(result, (len(rows), len(columns)))


def _pulled(row: Real, seed: Any, columns: Sequence[Real], order: Sequence[Node]) -> list[Any]:
    return _pull_all({row: seed}, columns, order)


def _pull_all(weights: dict[Node, Any], columns: Sequence[Real], order: Sequence[Node]) -> list[Any]:
    """The weights of the inputs, from those of the outputs, backwards."""
    relevant, inputs = set(order), set(columns)
    for node in reversed(order):
        weight = weights.get(node, 0)
        if node in inputs or _is_zero(weight):
            continue
        for a, part in zip(node.args, _pull(node, weight), strict=True):
            if a in relevant and not _is_zero(part):
                weights[a] = add(weights[a], part) if a in weights else part
    return [weights.get(column, 0) for column in columns]


def _push(node: Node, tangents: list[Any]) -> Any:
    """The derivative of a node along the derivatives of its arguments."""
    if node.op == "select":
        return select(node.args[0], tangents[1], tangents[2])
    total: Any = 0
    for partial, tangent in zip(_partials(node, [not _is_zero(t) for t in tangents]), tangents, strict=True):
        if not _is_zero(tangent):
            total = add(total, mul(partial, tangent))
    return total


def _pull(node: Node, weight: Any) -> list[Any]:
    """What a node's weight gives to each of its arguments."""
    if node.op == "select":
        return [0, select(node.args[0], weight, 0), select(node.args[0], 0, weight)]
    return [mul(partial, weight) for partial in _partials(node, [a.op != "const" for a in node.args])]


def _is_zero(x: Any) -> bool:
    return not isinstance(x, Node) and x == 0


def _array(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(shape, dtype=object)
    for position in np.ndindex(*shape):
        value = values
        for k in position:
            value = value[k]
        out[position] = value
    return out


# ---------------------------------------------------------------------------------------------- the table


def _partials(node: Node, wanted: Sequence[bool]) -> list[Any]:
    """The derivatives of an operation by those of its arguments that are wanted; 0 for the others."""
    args = [a.data if a.op == "const" else a for a in node.args]
    rules = _TABLE[node.op]
    return [rule(node, *args) if asked else 0 for rule, asked in zip(rules, wanted, strict=True)]


def _square(x: Any) -> Any:
    return mul(x, x)


def _rest(x: Any) -> Any:
    """sqrt(1 - x^2)."""
    return RULES["sqrt"](RULES["sub"](1, _square(x)))


def _power_by_base(y: Any, a: Any, b: Any) -> Any:
    return mul(b, RULES["pow"](a, RULES["sub"](b, 1)))


def _sign(a: Any) -> Any:
    return RULES["copysign"](1.0, a)


_TABLE: dict[str, tuple[Callable[..., Any], ...]] = {
    "add": (lambda y, a, b: 1, lambda y, a, b: 1),
    "sub": (lambda y, a, b: 1, lambda y, a, b: -1),
    "mul": (lambda y, a, b: b, lambda y, a, b: a),
    "div": (lambda y, a, b: div(1, b), lambda y, a, b: neg(mul(y, div(1, b)))),
    "neg": (lambda y, a: -1,),
    "abs": (lambda y, a: _sign(a),),
    "sqrt": (lambda y, a: div(0.5, y),),
    "floor": (lambda y, a: 0,),
    "sin": (lambda y, a: RULES["cos"](a),),
    "cos": (lambda y, a: neg(RULES["sin"](a)),),
    "tan": (lambda y, a: add(1, _square(y)),),
    "asin": (lambda y, a: div(1, _rest(a)),),
    "acos": (lambda y, a: neg(div(1, _rest(a))),),
    "exp": (lambda y, a: y,),
    "log": (lambda y, a: div(1, a),),
    "atan2": (
        lambda y, a, b: div(b, add(_square(a), _square(b))),
        lambda y, a, b: neg(div(a, add(_square(a), _square(b)))),
    ),
    "pow": (_power_by_base, lambda y, a, b: mul(y, RULES["log"](a))),
    "copysign": (lambda y, a, b: mul(_sign(a), _sign(b)), lambda y, a, b: 0),
    "min": (lambda y, a, b: select(RULES["lt"](a, b), 1, 0), lambda y, a, b: select(RULES["lt"](a, b), 0, 1)),
    "max": (lambda y, a, b: select(RULES["lt"](b, a), 1, 0), lambda y, a, b: select(RULES["lt"](b, a), 0, 1)),
}
