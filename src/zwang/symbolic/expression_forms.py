"""Two forms of expressions: expanded polynomials, and graphs with common subexpressions (CSE).

A form converts SymPy expressions to scalars, on which the derivation runs, and the resulting scalars to SymPy
expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair

from zwang.compiler.frontend.trace import TraceBackend  # registers traced scalars
from zwang.compiler.ir.graph import RULES, Graph, Node, Real
from zwang.errors import DescriptionError, ParameterError
from zwang.mechanism.constraints import EXPRESSION_CONSTRAINTS
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbols_in
from zwang.scalar import exact_value
from zwang.symbolic.exact_coefficients import number_of
from zwang.symbolic.polynomial import Polynomial, Ring, readable
from zwang.symbolic.sympy_backend import exact, free_symbols_of, substitute_in
from zwang.symbolic.sympy_types import as_expr, free_symbols_in

ROUNDING = 1e-10  # entries of rotations within this of an integer are rounded: files contain a rounded pi / 2
__all__ = ["CSEForm", "ExpandedForm", "TraceBackend", "map_expressions"]

Definition = tuple[sp.Symbol, sp.Expr]
Definitions = tuple[list[Definition], list[sp.Expr]]


def map_expressions(value: Any, convert: Callable[[sp.Expr], Any], *, rotation: bool = False) -> Any:
    """A description with its SymPy expressions converted and its rotations and axes cleaned of rounding."""
    if isinstance(value, EXPRESSION_CONSTRAINTS):
        return value  # their symbols are coordinates; `mechanism_in_scalars` replaces their parameters
    if is_dataclass(value) and not isinstance(value, type):
        made = {}
        for f in fields(value):
            is_rotation = f.name in ("orientation", "axis")
            made[f.name] = map_expressions(getattr(value, f.name), convert, rotation=is_rotation)
        return type(value)(**made)
    if isinstance(value, tuple):
        return tuple(map_expressions(item, convert, rotation=rotation) for item in value)
    value = exact_value(value)
    if isinstance(value, float) and rotation and abs(value - round(value)) < ROUNDING:
        return round(value)
    return convert(as_expr(value)) if isinstance(value, sp.Basic) else value


def mechanism_in_scalars(mechanism: Mechanism, of: Callable[[sp.Expr], Any]) -> Mechanism:
    """The mechanism with scalars for its parameters, including those in formulas.

    Raises DescriptionError for two symbols of one name, which are one parameter of the mechanism.
    """
    _check_one_symbol_a_name(mechanism)
    made = map_expressions(mechanism, of)
    parameters = {name: of for name in mechanism.symbols}
    constraints = tuple(
        _formula(c, parameters) if isinstance(c, EXPRESSION_CONSTRAINTS) else c for c in made.constraints
    )
    return made.replace(constraints=constraints)


def _check_one_symbol_a_name(mechanism: Mechanism) -> None:
    """Raises DescriptionError if two parameters with different assumptions have one name."""
    seen: set[str] = set()
    for name in sorted(str(symbol) for symbol in symbols_in(mechanism) if str(symbol) in mechanism.symbols):
        if name in seen:
            raise DescriptionError(
                f"mechanism {mechanism.name!r} contains two symbols named {name!r}, with different "
                "assumptions (such as positive=True): SymPy treats them as two variables, but they are one "
                "parameter; use the same symbol in all parts"
            )
        seen.add(name)


def _formula(value: Any, parameters: Mapping[str, Callable[[sp.Expr], Any]]) -> Any:
    """A constraint by formula, or a part of it, with its parameters replaced."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{f.name: _formula(getattr(value, f.name), parameters) for f in fields(value)})
    if isinstance(value, tuple):
        return tuple(_formula(item, parameters) for item in value)
    value = exact_value(value)
    if not isinstance(value, sp.Basic):
        return value
    known = {s: parameters[str(s)](s) for s in free_symbols_in(value) if str(s) in parameters}
    return substitute_in(value, known) if known else value


class ExpandedForm:
    """The expanded form: polynomials in sines and cosines.

    summed: angles that are added along parallel axes. collected: symbols by which terms are collected. limit:
    on the number of products of terms. units: of vectors of length 1 one component, and the others. All of
    these components remain as they are.
    """

    def __init__(
        self,
        summed: Iterable[sp.Expr],
        collected: Iterable[sp.Expr],
        limit: float,
        units: Mapping[sp.Expr, Sequence[sp.Expr]],
    ) -> None:
        self.ring = Ring(summed, limit, units)
        self.collected = frozenset(collected)
        self._components = {x for first, others in units.items() for x in (first, *others)}
        self._known: dict[Any, Any] = {}
        self._shown: dict[Polynomial, sp.Expr] = {}

    def of(self, expression: sp.Expr) -> Any:
        """The scalar of an expression; numbers remain exact."""
        if expression not in self._known:
            self._known[expression] = self._polynomial(expression)
        return self._known[expression]

    def _polynomial(self, x: sp.Expr) -> Any:
        if not x.free_symbols:
            return exact(x) if x.is_Number else self.ring.atom(x)
        if x in self._components:
            return self.ring.atom(x)
        return substitute_in(x, {s: self.ring.atom(s) for s in free_symbols_in(x)})

    def mechanism(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism with scalars for its parameters."""
        return mechanism_in_scalars(mechanism, self.of)

    def values(self, array: Any, known: Mapping[str, float]) -> np.ndarray:
        """Float values of an array of scalars, for values of the symbols by name."""
        shown = [self.show(x) for x in np.ravel(array)]
        return np.array([float_value(x, known) for x in shown], dtype=float).reshape(np.shape(array))

    def definitions(self, results: Iterable[Any]) -> Definitions:
        """No definitions, and the results written out."""
        return [], [self.show(x) for x in results]

    def show(self, x: Any) -> sp.Expr:
        """The SymPy expression of a scalar."""
        if type(x) is Polynomial:
            if x not in self._shown:
                self._shown[x] = readable(x, self.collected)
            return self._shown[x]
        return as_expr(x) if isinstance(x, sp.Basic) else number_of(x)


class CSEForm:
    """The CSE form: a graph in which equal expressions are one node."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.inputs: list[sp.Symbol] = []
        self._scalars: dict[sp.Symbol, Any] = {}
        self._shown: dict[int, sp.Expr] = {}

    def of(self, expression: sp.Expr) -> Any:
        """The scalar of an expression."""
        for s in sorted(free_symbols_in(expression) - self._scalars.keys(), key=str):
            self._scalars[s] = self.graph.make(Real, "input", (), (0, len(self.inputs)))
            self.inputs.append(s)
        return substitute_in(expression, self._scalars)

    def mechanism(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism with scalars for its parameters."""
        return mechanism_in_scalars(mechanism, self.of)

    def show(self, x: Any) -> sp.Expr:
        """The SymPy expression of a node; equal nodes are one SymPy object."""
        if not isinstance(x, Node):
            return constant(x)
        order, uses = _uses([x], self._shown)
        self._write(order, uses, self._shown)
        return self._expression(self._shown, x)

    def definitions(self, results: Iterable[Any], name: str = "x") -> Definitions:
        """Definitions of subexpressions that are used more than once, and the results in terms of them.

        Definitions are in the order of the derivation and have the names NAME_1, NAME_2, ..., for a NAME of
        which no input is typeset with an index.
        """
        roots = list(results)
        while any(re.match(rf"{name}[_\d]", s.name) for s in self.inputs):
            name += name[0]
        order, uses = _uses(roots, {})
        written: dict[int, Any] = {}
        defined = self._write(order, uses, written, name)
        return defined, [self._expression(written, r) if isinstance(r, Node) else constant(r) for r in roots]

    def values(self, array: Any, known: Mapping[str, float]) -> np.ndarray:
        """Float values of an array of scalars, for values by name; each node is evaluated once.

        Raises ParameterError for a symbol without a value.
        """
        order, _ = _uses([x for x in np.ravel(array) if isinstance(x, Node)], {})
        needed = {self.inputs[n.data[1]].name for n in order if n.op == "input"}
        if missing := sorted(needed - known.keys()):
            raise ParameterError(f"the symbol {missing[0]!r} has no value; give one for each of {missing}")
        found: dict[int, Any] = {}
        for node in order:
            if node.op == "input":
                found[node.number] = float(known[self.inputs[node.data[1]].name])
            else:
                found[node.number] = _value(node, [found[a.number] for a in node.args])
        flat = [found[x.number] if isinstance(x, Node) else float(x) for x in np.ravel(array)]
        return np.array(flat, dtype=float).reshape(np.shape(array))

    def _write(
        self, order: list[Node], uses: Mapping[int, int], written: dict[int, Any], name: str | None = None
    ) -> list[Definition]:
        """Write the expressions of the nodes into `written`, and return the definitions.

        A sum that is used once remains a list of terms until it is complete. With a name, subexpressions that
        are used more than once and are more than a symbol with a sign are defined as NAME_1, NAME_2, ....
        """
        defined: list[Definition] = []
        for node in order:
            if node.op in ("add", "sub", "neg"):
                value: Any = self._terms(written, node)
                if uses[node.number] > 1:
                    value = sp.Add(*value)
            else:
                value = self._written_node(node, [self._expression(written, a) for a in node.args])
            if name and uses[node.number] > 1 and node.op != "neg" and _deserves_definition(value):
                defined.append((sp.Symbol(f"{name}_{len(defined) + 1}", real=True), value))
                value = defined[-1][0]
            written[node.number] = value
        return defined

    @staticmethod
    def _terms(written: Mapping[int, Any], node: Node) -> list[sp.Expr]:
        """The terms of a sum, difference or negation."""
        parts = [
            written[a.number] if isinstance(written[a.number], list) else [written[a.number]]
            for a in node.args
        ]
        if node.op == "add":
            return parts[0] + parts[1]
        return [*(parts[0] if node.op == "sub" else ()), *(-t for t in parts[-1])]

    @staticmethod
    def _expression(written: dict[int, Any], node: Node) -> sp.Expr:
        value = written[node.number]
        if isinstance(value, list):
            value = written[node.number] = sp.Add(*value)
        return value

    def _written_node(self, node: Node, args: list[sp.Expr]) -> sp.Expr:
        if node.op == "input":
            return self.inputs[node.data[1]]
        if node.op == "const":
            return constant(node.data)
        try:
            return _WRITTEN[node.op](*args)
        except AssertionError:  # of SymPy, for powers of choices within the conditions of others
            raise DescriptionError(
                "SymPy does not write these equations, in which case distinctions depend on others, as those "
                "of a tendon around a body or of an actuator that measures a rotation; zw.compile computes "
                "with them"
            ) from None


def _deserves_definition(x: Any) -> bool:
    """Whether x is more than a symbol with a sign, and not a condition."""
    return isinstance(x, sp.Expr) and not (x.is_Atom or (-x).is_Atom)


def _value(node: Node, args: list[Any]) -> Any:
    if node.op == "const":
        return node.data
    return RULES[node.op](*args)


def _uses(roots: list[Any], known: Mapping[int, Any]) -> tuple[list[Node], dict[int, int]]:
    """The unknown nodes on which the roots depend, in order of creation, and the number of uses of each."""
    uses: dict[int, int] = {}
    found: dict[int, Node] = {}
    stack = [r for r in roots if isinstance(r, Node)]
    for node in stack:
        uses[node.number] = uses.get(node.number, 0) + 1
    while stack:
        node = stack.pop()
        if node.number in found or node.number in known:
            continue
        found[node.number] = node
        for a in node.args:
            uses[a.number] = uses.get(a.number, 0) + 1
            stack.append(a)
    return [found[k] for k in sorted(found)], uses


def nodes_of(roots: Iterable[Any]) -> list[Node]:
    """The nodes on which the roots depend, in order of creation."""
    return _uses([x for x in roots if isinstance(x, Node)], {})[0]


def _unevaluated(kind: Any) -> Callable[..., Any]:
    """A SymPy function without evaluation, which could simplify nested case distinctions for minutes."""
    return lambda *args: kind(*args, evaluate=False)


def _choice(p: Any, a: Any, b: Any) -> Any:
    """a where p is true, else b.

    It avoids SymPy's own constructors, which rewrite nested conditions without end.
    """
    if not isinstance(a, sp.Expr):  # a and b are conditions
        either, both, negation = map(_unevaluated, (sp.Or, sp.And, sp.Not))
        return either(both(p, a), both(negation(p), b))
    pairs = [sp.Basic.__new__(ExprCondPair, *map(sp.sympify, pair)) for pair in ((a, p), (b, sp.true))]
    return sp.Basic.__new__(sp.Piecewise, *pairs)


_WRITTEN: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a, "sqrt": sp.sqrt, "sin": sp.sin, "cos": sp.cos, "tan": sp.tan, "asin": sp.asin,
    "acos": sp.acos, "exp": sp.exp, "log": sp.log, "abs": sp.Abs, "floor": sp.floor, "atan2": sp.atan2,
    "sinh": sp.sinh, "cosh": sp.cosh, "tanh": sp.tanh, "sech": sp.sech, "asinh": sp.asinh, "acosh": sp.acosh,
    "atanh": sp.atanh,
    "pow": sp.Pow, "min": _unevaluated(sp.Min), "max": _unevaluated(sp.Max), "lt": _unevaluated(sp.Lt),
    "le": _unevaluated(sp.Le), "eq": _unevaluated(sp.Eq), "ne": _unevaluated(sp.Ne),
    "and": _unevaluated(sp.And),
    "or": _unevaluated(sp.Or), "not": _unevaluated(sp.Not), "xor": _unevaluated(sp.Xor),
    "true": lambda: sp.true, "false": lambda: sp.false, "select": _choice,
    "copysign": lambda a, b: sp.Piecewise((sp.Abs(a), sp.Ge(b, 0)), (-sp.Abs(a), True)),
}  # fmt: skip


def float_value(expression: Any, known: Mapping[str, Any]) -> float:
    """The float value of an expression, for values of its symbols by name.

    Raises ParameterError for a symbol without a value.
    """
    symbols = free_symbols_of(expression)
    missing = sorted(s.name for s in symbols if s.name not in known)
    if missing:
        raise ParameterError(f"the symbol {missing[0]!r} has no value; give one for each of {missing}")
    return float(substitute_in(expression, {s: float(known[s.name]) for s in symbols}))


def constant(value: Any) -> sp.Expr:
    """A number as a SymPy number.

    Integers and fractions with small denominators (halves, quarters, thirds, ...) become exact; others remain
    floats.
    """
    if isinstance(value, sp.Basic):
        return as_expr(value)
    if isinstance(value, int | np.integer | Fraction):
        if isinstance(value, np.integer):
            return number_of(Fraction(int(value)))
        return number_of(value)
    fraction = Fraction(value).limit_denominator(96) if abs(value) < 1e6 else Fraction(0)
    q = fraction.denominator
    if float(fraction) == value and (q & (q - 1) == 0 or q % 3 == 0):
        return sp.Rational(fraction.numerator, q)
    return sp.Float(value)
