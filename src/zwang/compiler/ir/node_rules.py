"""The rules that create nodes: constant folding, and canonical forms of equivalent expressions.

A rule computes the same number as the operation that it implements, to the last bit, with three exceptions
for finite
numbers: 0*x and 0/x are 0; x + 0 and 0 - x are x and -x even if this changes the sign of a zero; and a - b is
replaced by -(b - a), which may change the sign of a zero. No other rule turns NaN or infinity into a number;
x - x and x/x are not simplified.

Signs move outwards, so a*(-b), (-a)*b and -(a*b) are one node, and a - b and b - a differ by a sign only. A
sign ends in an addition or subtraction, or the pass `fused_multiply_add` absorbs it into the operation that
it negates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from zwang import scalar
from zwang.compiler.ir.graph import RULES, Index, Real, Truth, number_or_real, user_line
from zwang.errors import TraceError
from zwang.scalar.arrays import Entries

MANY_FOR_EACH_VALUE = 4
"""Entries of a table of indices for each of the values that they may have."""

_number = scalar.FloatBackend


def _rule(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES[name] = function
        return function

    return register


# ---------------------------------------------------------------------------------------------- arithmetic


@_rule("add")
def add(a: Any, b: Any) -> Any:
    """a + b."""
    if type(a) is not Real or type(b) is not Real:
        if type(a) is not Real:
            a, b = b, a
        if type(a) is not Real:
            return a + b
        if a.op == "neg":
            return sub(b, a.args[0])
        return a if b == 0 else a.graph.binary("add", a, a.graph.constant(b))
    if b.op == "neg":
        return sub(a, b.args[0])
    if a.op == "neg":
        return sub(b, a.args[0])
    return a.graph.binary("add", a, b) if a.number <= b.number else a.graph.binary("add", b, a)


@_rule("sub")
def sub(a: Any, b: Any) -> Any:
    """a - b."""
    if type(b) is not Real:
        return add(a, -b)
    if type(a) is not Real:
        if a == 0:
            return neg(b)
        if b.op == "neg":
            return add(a, b.args[0])
        return b.graph.binary("sub", b.graph.constant(a), b)
    if b.op == "neg":
        return add(a, b.args[0])
    if a.op == "neg":
        return neg(add(a.args[0], b))
    if a.number > b.number:
        return a.graph.unary("neg", a.graph.binary("sub", b, a))
    return a.graph.binary("sub", a, b)


@_rule("mul")
def mul(a: Any, b: Any) -> Any:
    """a * b."""
    if type(a) is not Real or type(b) is not Real:
        if type(a) is not Real:
            a, b = b, a
        if type(a) is not Real:
            return a * b
        return _scaled(a, b)
    if a.op == "neg":
        return mul(a.args[0], b.args[0]) if b.op == "neg" else neg(mul(a.args[0], b))
    if b.op == "neg":
        return neg(mul(a, b.args[0]))
    return a.graph.binary("mul", a, b) if a.number <= b.number else a.graph.binary("mul", b, a)


def _scaled(a: Real, factor: float) -> Any:
    """a * factor, with the sign of the factor moved outwards."""
    if factor == 0:
        return 0
    if a.op == "neg":
        a, factor = a.args[0], -factor
    if factor < 0:
        return neg(_scaled(a, -factor))
    return a if factor == 1 else a.graph.binary("mul", a, a.graph.constant(factor))


@_rule("div")
def div(a: Any, b: Any) -> Any:
    """a / b; a division by a power of two becomes an exact product."""
    if type(b) is not Real:
        if type(a) is not Real:
            return _number.divide(a, b)
        if b == 0 or not math.isfinite(b):
            return a.graph.binary("div", a, a.graph.constant(b))
        if abs(math.frexp(b)[0]) == 0.5 and abs(math.frexp(b)[1]) < 1000:
            return _scaled(a, 1 / b)
        if b < 0:
            return neg(div(a, -b))
        return neg(div(a.args[0], b)) if a.op == "neg" else a.graph.binary("div", a, a.graph.constant(b))
    if b.op == "neg":
        return neg(div(a, b.args[0]))
    if type(a) is not Real:
        if a == 0:
            return 0
        return neg(div(-a, b)) if a < 0 else b.graph.binary("div", b.graph.constant(a), b)
    return neg(div(a.args[0], b)) if a.op == "neg" else a.graph.binary("div", a, b)


@_rule("neg")
def neg(a: Any) -> Any:
    """-a."""
    if type(a) is not Real:
        return -a
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub" and a.args[0].op == "const":
        return add(a.args[1], -a.args[0].data)
    return a.graph.unary("neg", a)


@_rule("abs")
def absolute(a: Any) -> Any:
    """|a|."""
    if type(a) is not Real:
        return abs(a)
    if a.op == "neg":
        a = a.args[0]
    return a if a.op == "abs" else a.graph.unary("abs", a)


@_rule("pow")
def power(a: Any, b: Any) -> Any:
    """a ** b; small half-integer exponents become products and a square root."""
    if type(b) is not Real and abs(b) <= 64 and 2 * b == int(2 * b):
        return scalar.power(a, b)
    return _two("pow", _number.power, a, b)


def _two(op: str, fold: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """A real operation of two reals whose only rule is constant folding."""
    if type(a) is not Real and type(b) is not Real:
        return fold(a, b)
    graph = a.graph if type(a) is Real else b.graph
    return graph.binary(op, _node(graph, a), _node(graph, b))


def _node(graph: Any, a: Any) -> Real:
    return a if type(a) is Real else graph.constant(a)


@_rule("atan2")
def atan2(y: Any, x: Any) -> Any:
    """The angle of the vector (x, y) from the x axis."""
    return _two("atan2", _number.atan2, y, x)


@_rule("copysign")
def copysign(a: Any, b: Any) -> Any:
    """|a| with the sign of b."""
    return _two("copysign", _number.copysign, a, b)


@_rule("min")
def minimum(a: Any, b: Any) -> Any:
    """The smaller value; of equal values, and so of two zeros, the second."""
    return a if a is b else _two("min", _number.minimum, a, b)


@_rule("max")
def maximum(a: Any, b: Any) -> Any:
    """The larger value; of equal values the second."""
    return a if a is b else _two("max", _number.maximum, a, b)


# ---------------------------------------------------------------------------------------------- functions


def _function(op: str, fold: Callable[[Any], Any], parity: str = "") -> None:
    """Register the rule of a function of one real; `parity` is "odd", "even" or empty."""

    def rule(a: Any) -> Any:
        if type(a) is not Real:
            return fold(a)
        if parity and a.op == "neg":
            inner = a.graph.unary(op, a.args[0])
            return inner if parity == "even" else neg(inner)
        return a.graph.unary(op, a)

    RULES[op] = rule


_function("sqrt", _number.sqrt)
_function("floor", _number.floor)
_function("sin", _number.sin, "odd")
_function("cos", _number.cos, "even")
_function("tan", _number.tan, "odd")
_function("asin", _number.asin, "odd")
_function("acos", _number.acos)
_function("exp", _number.exp)
_function("log", _number.log)
_function("sinh", _number.sinh, "odd")
_function("cosh", _number.cosh, "even")
_function("tanh", _number.tanh, "odd")
_function("sech", _number.sech, "even")
_function("asinh", _number.asinh, "odd")
_function("acosh", _number.acosh)
_function("atanh", _number.atanh, "odd")


# ---------------------------------------------------------------------------------------------- truth


def _comparison(op: str, fold: Callable[[Any, Any], bool], symmetric: bool) -> None:
    def rule(a: Any, b: Any) -> Any:
        if type(a) is not Real and type(b) is not Real:
            return fold(a, b)
        graph = a.graph if type(a) is Real else b.graph
        a, b = _node(graph, a), _node(graph, b)
        if op == "lt" and a is b:
            return False
        if symmetric and a.number > b.number:
            a, b = b, a
        return graph.make(Truth, op, (a, b))

    RULES[op] = rule


_comparison("lt", _number.less, symmetric=False)
_comparison("le", _number.less_equal, symmetric=False)
_comparison("eq", _number.equal, symmetric=True)
_comparison("ne", _number.not_equal, symmetric=True)


def truth(p: Any) -> Any:
    """A truth value as a Python bool or a Truth node. Raises TraceError for anything else."""
    if type(p) is Truth:
        return p
    if isinstance(p, (bool, np.bool_)):
        return bool(p)
    kind = "traced real" if isinstance(p, (Real, Index)) else type(p).__name__
    raise TraceError(f"{user_line()}: a truth value is required, not a {kind}; use a comparison")


@_rule("and")
def logical_and(p: Any, q: Any) -> Any:
    """p and q."""
    p, q = truth(p), truth(q)
    if type(p) is bool or type(q) is bool:
        known, other = (p, q) if type(p) is bool else (q, p)
        return other if known else False
    return p if p is q else _pair("and", p, q)


@_rule("or")
def logical_or(p: Any, q: Any) -> Any:
    """p or q."""
    p, q = truth(p), truth(q)
    if type(p) is bool or type(q) is bool:
        known, other = (p, q) if type(p) is bool else (q, p)
        return True if known else other
    return p if p is q else _pair("or", p, q)


@_rule("xor")
def exclusive_or(p: Any, q: Any) -> Any:
    """Exactly one of p and q."""
    p, q = truth(p), truth(q)
    if type(p) is bool or type(q) is bool:
        known, other = (p, q) if type(p) is bool else (q, p)
        return logical_not(other) if known else other
    return False if p is q else _pair("xor", p, q)


@_rule("not")
def logical_not(p: Any) -> Any:
    """Not p. The negation of eq is ne; that of lt is not a comparison, because of NaN."""
    p = truth(p)
    if type(p) is bool:
        return not p
    if p.op == "not":
        return p.args[0]
    if p.op in ("eq", "ne"):
        return p.graph.make(Truth, "ne" if p.op == "eq" else "eq", p.args)
    return p.graph.make(Truth, "not", (p,))


def _pair(op: str, p: Truth, q: Truth) -> Any:
    return p.graph.make(Truth, op, (p, q) if p.number <= q.number else (q, p))


@_rule("select")
def select(p: Any, a: Any, b: Any) -> Any:
    """a where p, else b."""
    p = truth(p)
    if type(p) is bool or a is b:
        return a if p is True or a is b else b
    if p.op == "not":
        return select(p.args[0], b, a)
    if isinstance(a, (bool, np.bool_, Truth)) and isinstance(b, (bool, np.bool_, Truth)):
        return logical_or(logical_and(p, a), logical_and(logical_not(p), b))
    a, b = number_or_real(a), number_or_real(b)
    if a is NotImplemented or b is NotImplemented:
        raise TraceError(f"{user_line()}: where() selects between two numbers or between two truth values")
    if type(a) is not Real and type(b) is not Real and a == b and math.copysign(1, a) == math.copysign(1, b):
        return a
    return p.graph.make(Real, "select", (p, _node(p.graph, a), _node(p.graph, b)))


# ---------------------------------------------------------------------------------------------- indices


def index_node(graph: Any, i: Any) -> Index:
    """The node of an index or integer."""
    return i if type(i) is Index else graph.make(Index, "index", (), int(i))


def _integer_rule(op: str, fold: Callable[[int, int], int], neutral: int | None) -> None:
    def rule(i: Any, j: Any) -> Any:
        if type(i) is int and type(j) is int:
            return fold(i, j)
        if type(j) is int and j == neutral:
            return i
        if type(i) is int and i == neutral and op != "isub":
            return j
        if op == "imul" and 0 in (i if type(i) is int else 1, j if type(j) is int else 1):
            return 0
        graph = (i if type(i) is Index else j).graph  # type: ignore[union-attr]
        return graph.make(Index, op, (index_node(graph, i), index_node(graph, j)))

    RULES[op] = rule


_integer_rule("iadd", int.__add__, 0)
_integer_rule("isub", int.__sub__, 0)
_integer_rule("imul", int.__mul__, 1)


def bounds(i: Any) -> tuple[int, int]:
    """Lower and upper bound of an index, by interval arithmetic on its expression."""
    if type(i) is int:
        return i, i
    if i.op == "index":
        return i.data, i.data
    if i.op == "index_table":
        return i.data.bounds
    if i.op == "parameter":
        return i.data.start, i.data.stop - 1
    if i.op in ("lane_maximum", "active_index", "active_count"):
        return 0, i.data
    (a, b), (c, d) = map(bounds, i.args)
    if i.op == "imul":
        ends = (a * c, a * d, b * c, b * d)
        return min(ends), max(ends)
    return (a + c, b + d) if i.op == "iadd" else (a - d, b - c)


def check_bounds(i: Any, length: int) -> None:
    """Raise TraceError if an index may lie outside its table or array; compiled code has no bounds check."""
    low, high = bounds(i)
    if low < 0 or high >= length:
        raise TraceError(
            f"{user_line()}: an index that may be {low} ... {high} addresses one of {length} entries, "
            f"0 ... {length - 1}; where() does not restrict it: "
            "change the index itself, by a table of indices"
        )


@_rule("real")
def real_of_index(i: Any) -> Any:
    """The real number equal to an index, read from a constant table: that of the indices, or of their values
    where these are so few that they stay in the cache.
    """
    if type(i) is not Index:
        return i
    if i.op == "index":
        return float(i.data)
    if i.op in ("iadd", "isub", "imul"):
        return RULES[i.op[1:]](*(real_of_index(j) for j in i.args))
    low, high = bounds(i)
    if i.op == "index_table" and (low < 0 or len(i.data) < MANY_FOR_EACH_VALUE * (high + 1)):
        return i.graph.make(Real, "table", i.args, Entries(map(float, i.data)))
    return i.graph.make(Real, "table", (i,), _numbers_below(high + 1))


@lru_cache
def _numbers_below(count: int) -> Entries:
    """0.0, 1.0, ..., count - 1."""
    return Entries(map(float, range(count)))


@_rule("table")
def gather_table(entries: Entries, i: Any) -> Any:
    """An entry of a constant table: a real, or an index if the table has integers."""
    if type(i) is int:
        return entries[i]
    check_bounds(i, len(entries))
    if entries.are_equal:
        return entries[0]
    if entries.are_indices:
        return i.graph.make(Index, "index_table", (i,), entries)
    return i.graph.make(Real, "table", (i,), entries)
