"""Derivatives of traced values with respect to traced values, in forward and reverse mode.

The derivatives are further nodes of the same graph, so they share subexpressions with the values. A value
that does not depend on an input has the derivative 0, an exact integer, and costs nothing. The derivative of
`where` is that of the selected value; if the other value has an infinite derivative, reverse mode gives NaN
there, so guard the argument and not the result. At a kink the derivative is one-sided: abs and copysign take
the side of the argument's sign, minimum and maximum that of the second argument where both are equal. Results
of loops and branches cannot be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from zwang.compiler.ir.graph import RULES, Control, Index, Node, Real, Truth, user_line
from zwang.compiler.ir.node_rules import add, div, mul, neg, select
from zwang.errors import ShapeError, TraceError


def jacobian(outputs: Any, inputs: Any) -> np.ndarray:
    """The Jacobian, shape (m, n), of m outputs with respect to n inputs, in forward or reverse mode.

    outputs: traced scalars and numbers; inputs: different traced scalars; both are flattened. The mode is the
    one with fewer derivatives to propagate. Raises TraceError for results of loops and branches.
    """
    rows, columns = _flat(outputs), _inputs(inputs)
    order, forward = _dependent(rows, columns)
    reverse = _dependent_outputs(order, rows)
    cost_forward = sum(forward[node].bit_count() for node in order)
    cost_reverse = sum(reverse.get(node, 0).bit_count() for node in order)
    if cost_forward <= cost_reverse:
        return _forward(rows, columns, order)
    result = [
        _gradient(row, 1, columns, order) if isinstance(row, Real) else [0] * len(columns) for row in rows
    ]
    return _array(result, (len(rows), len(columns)))


def jvp(outputs: Any, inputs: Any, tangents: Any) -> np.ndarray:
    """The Jacobian-vector product J t, shape (m,), in forward mode.

    tangents: t, one scalar per input (see `jacobian`). Raises ShapeError for another number of tangents.
    """
    rows, columns, seeds = _flat(outputs), _inputs(inputs), _flat(tangents)
    if len(columns) != len(seeds):
        raise ShapeError(
            f"jvp() has {len(columns)} inputs and {len(seeds)} tangents; give one tangent per input"
        )
    order, _ = _dependent(rows, columns)
    known: dict[Node, Any] = dict(zip(columns, seeds, strict=True))
    for node in order:
        if node not in known:
            known[node] = _tangent(node, [known.get(a, 0) for a in node.args])
    return _array([known.get(row, 0) if isinstance(row, Real) else 0 for row in rows], (len(rows),))


def vjp(outputs: Any, inputs: Any, cotangents: Any) -> np.ndarray:
    """The vector-Jacobian product w^T J, shape (n,), in reverse mode.

    cotangents: w, one scalar per output (see `jacobian`). Raises ShapeError for another number of cotangents.
    """
    rows, columns, seeds = _flat(outputs), _inputs(inputs), _flat(cotangents)
    if len(rows) != len(seeds):
        raise ShapeError(
            f"vjp() has {len(rows)} outputs and {len(seeds)} cotangents; give one cotangent per output"
        )
    order, _ = _dependent(rows, columns)
    adjoints: dict[Node, Any] = {}
    for row, seed in zip(rows, seeds, strict=True):
        if isinstance(row, Real):
            adjoints[row] = add(adjoints.get(row, 0), seed)
    return _array(_reverse(adjoints, columns, order), (len(columns),))


def jacobian_function(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """The function whose value at an array of traced scalars is the Jacobian of `function`."""

    def derived(x: np.ndarray) -> np.ndarray:
        return jacobian(function(x), x)

    return derived


# --------------------------------------------------------------------------------------------- dependencies


def _flat(values: Any) -> list[Any]:
    return list(np.asarray(values, dtype=object).flat)


def _inputs(values: Any) -> list[Real]:
    inputs = _flat(values)
    for k, value in enumerate(inputs):
        if not isinstance(value, Real):
            raise TraceError(
                f"{user_line()}: input {k} of a derivative is {value!r}, which is not a traced scalar"
            )
    if len(set(inputs)) != len(inputs):
        raise TraceError(f"{user_line()}: the inputs of a derivative have to be different scalars")
    return inputs


def _dependent(outputs: Sequence[Any], inputs: Sequence[Real]) -> tuple[list[Node], dict[Node, int]]:
    """The nodes between inputs and outputs in order, and for each a bit set of the inputs it depends on."""
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
    """The nodes that the outputs depend on, in order of creation; the search ends at the inputs."""
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
    """The nodes that a node reads, including those that the bodies of a loop or branch read."""
    if node.op == "input_array":
        number, first, length = node.data
        elements = range(first, first + length)
        return tuple(node.graph.make(Real, "input", (), (number, k)) for k in elements)
    if not isinstance(node, Control):
        return node.args
    bodies = node.data[1:2] if node.op == "for" else node.data
    return (*node.args, *(result for body in bodies for result in body.results))


_NOT_SMOOTH = frozenset({"result", "input_array", "load", "store", "gather", "scatter"})


def _check_smooth(node: Node) -> None:
    if node.op in ("result", "input_array", "load", "store", "gather", "scatter") or isinstance(
        node, Control
    ):
        raise TraceError(
            f"{user_line()}: the result of a loop, branch or array ({node.op}) depends on an input of the "
            "derivative, but only straight-line code can be differentiated: unroll the loop "
            "(for_each(..., unroll=True)), replace cond() by where(), or differentiate the equation that the "
            "loop solves"
        )


def _dependent_outputs(order: Sequence[Node], outputs: Sequence[Any]) -> dict[Node, int]:
    """For each node a bit set of the outputs that depend on it."""
    bits: dict[Node, int] = {}
    for k, node in enumerate(outputs):
        if isinstance(node, Real):
            bits[node] = bits.get(node, 0) | 1 << k
    for node in reversed(order):
        for a in node.args:
            bits[a] = bits.get(a, 0) | bits.get(node, 0)
    return bits


# -------------------------------------------------------------------------------------- forward and reverse


def _forward(rows: Sequence[Any], columns: Sequence[Real], order: Sequence[Node]) -> np.ndarray:
    """The Jacobian in forward mode, all columns at once; each node has its nonzero derivatives only."""
    known: dict[Node, dict[int, Any]] = {node: {k: 1} for k, node in enumerate(columns)}
    for node in order:
        if node in known:
            continue
        own = [known.get(a, {}) for a in node.args]
        touched = sorted(set().union(*own))
        known[node] = {k: _tangent(node, [tangents.get(k, 0) for tangents in own]) for k in touched}
    result = [
        [known.get(row, {}).get(k, 0) if isinstance(row, Real) else 0 for k in range(len(columns))]
        for row in rows
    ]
    return _array(result, (len(rows), len(columns)))


def _gradient(row: Real, seed: Any, columns: Sequence[Real], order: Sequence[Node]) -> list[Any]:
    return _reverse({row: seed}, columns, order)


def _reverse(adjoints: dict[Node, Any], columns: Sequence[Real], order: Sequence[Node]) -> list[Any]:
    """The adjoints of the inputs, from the adjoints `adjoints` of the outputs, by reverse accumulation."""
    relevant, inputs = set(order), set(columns)
    for node in reversed(order):
        adjoint = adjoints.get(node, 0)
        if node in inputs or _is_zero(adjoint):
            continue
        for a, part in zip(node.args, _adjoint_contributions(node, adjoint), strict=True):
            if a in relevant and not _is_zero(part):
                adjoints[a] = add(adjoints[a], part) if a in adjoints else part
    return [adjoints.get(column, 0) for column in columns]


def _tangent(node: Node, tangents: list[Any]) -> Any:
    """The tangent of a node by the chain rule, from the tangents of its arguments."""
    if node.op == "select":
        return select(node.args[0], tangents[1], tangents[2])
    total: Any = 0
    for partial, tangent in zip(_partials(node, [not _is_zero(t) for t in tangents]), tangents, strict=True):
        if not _is_zero(tangent):
            total = add(total, mul(partial, tangent))
    return total


def _adjoint_contributions(node: Node, adjoint: Any) -> list[Any]:
    """The contributions of a node's adjoint to the adjoints of its arguments."""
    if node.op == "select":
        return [0, select(node.args[0], adjoint, 0), select(node.args[0], 0, adjoint)]
    return [mul(partial, adjoint) for partial in _partials(node, [a.op != "const" for a in node.args])]


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


# -------------------------------------------------------------------------------------- partial derivatives


def _partials(node: Node, wanted: Sequence[bool]) -> list[Any]:
    """The partial derivatives of an operation with respect to the arguments with `wanted`; 0 for the
    others.
    """
    args = [a.data if a.op == "const" else a for a in node.args]
    rules = PARTIALS[node.op]
    return [rule(node, *args) if needed else 0 for rule, needed in zip(rules, wanted, strict=True)]


def _square(x: Any) -> Any:
    return mul(x, x)


def _complement_root(x: Any) -> Any:
    """sqrt(1 - x^2)."""
    return RULES["sqrt"](RULES["sub"](1, _square(x)))


def _power_partial_base(y: Any, a: Any, b: Any) -> Any:
    return mul(b, RULES["pow"](a, RULES["sub"](b, 1)))


def _power_partial_exponent(y: Any, a: Any, b: Any) -> Any:
    """y log a; 0 where a = 0, since 0^b = 0 for all b > 0."""
    return mul(y, RULES["log"](select(RULES["eq"](a, 0), 1, a)))


def _sign(a: Any) -> Any:
    return RULES["copysign"](1.0, a)


def _slope_of_absolute(a: Any) -> Any:
    """1, -1, or 0 at the kink, the mean of both sides, as dual numbers and SymPy have it."""
    return select(RULES["eq"](a, 0), 0, _sign(a))


PARTIALS: dict[str, tuple[Callable[..., Any], ...]] = {
    "add": (lambda y, a, b: 1, lambda y, a, b: 1),
    "sub": (lambda y, a, b: 1, lambda y, a, b: -1),
    "mul": (lambda y, a, b: b, lambda y, a, b: a),
    "div": (lambda y, a, b: div(1, b), lambda y, a, b: neg(mul(y, div(1, b)))),
    "neg": (lambda y, a: -1,),
    "abs": (lambda y, a: _slope_of_absolute(a),),
    "sqrt": (lambda y, a: div(0.5, y),),
    "floor": (lambda y, a: 0,),
    "sin": (lambda y, a: RULES["cos"](a),),
    "cos": (lambda y, a: neg(RULES["sin"](a)),),
    "tan": (lambda y, a: add(1, _square(y)),),
    "asin": (lambda y, a: div(1, _complement_root(a)),),
    "acos": (lambda y, a: neg(div(1, _complement_root(a))),),
    "exp": (lambda y, a: y,),
    "log": (lambda y, a: div(1, a),),
    "sinh": (lambda y, a: RULES["cosh"](a),),
    "cosh": (lambda y, a: RULES["sinh"](a),),
    "tanh": (lambda y, a: _square(RULES["sech"](a)),),  # 1 - y^2 would cancel
    "sech": (lambda y, a: neg(mul(y, RULES["tanh"](a))),),
    "asinh": (lambda y, a: div(1, RULES["sqrt"](add(_square(a), 1))),),
    "acosh": (lambda y, a: div(1, RULES["sqrt"](mul(RULES["sub"](a, 1), add(a, 1)))),),
    "atanh": (lambda y, a: div(1, mul(RULES["sub"](1, a), add(1, a))),),
    "atan2": (
        lambda y, a, b: div(b, add(_square(a), _square(b))),
        lambda y, a, b: neg(div(a, add(_square(a), _square(b)))),
    ),
    "pow": (_power_partial_base, _power_partial_exponent),
    "copysign": (lambda y, a, b: mul(_sign(a), _sign(b)), lambda y, a, b: 0),
    "min": (lambda y, a, b: select(RULES["lt"](a, b), 1, 0), lambda y, a, b: select(RULES["lt"](a, b), 0, 1)),
    "max": (lambda y, a, b: select(RULES["lt"](b, a), 1, 0), lambda y, a, b: select(RULES["lt"](b, a), 0, 1)),
}
