"""The symbolic backend: primitives on SymPy expressions, substitution, and expressions as plain data.

SymPy's parsers are never used on text, since they would execute it. Documents use a fixed list of node kinds,
and names of symbols are never interpreted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean, BooleanFalse, BooleanTrue

from zwang import scalar
from zwang.errors import ParameterError
from zwang.mechanism.numbers import LARGEST_INTEGER
from zwang.symbolic.sympy_functions import FUNCTION_NAMES, PRIMITIVES

LARGEST_BITS = 100_000  # of a number in a document


class SymbolicBackend(scalar.Backend):
    """The primitives on SymPy expressions; constants remain exact."""

    sin, cos, tan, exp, log = (staticmethod(f) for f in (sp.sin, sp.cos, sp.tan, sp.exp, sp.log))
    sinh, cosh, tanh, sech = (staticmethod(f) for f in (sp.sinh, sp.cosh, sp.tanh, sp.sech))
    asinh, acosh, atanh = (staticmethod(f) for f in (sp.asinh, sp.acosh, sp.atanh))
    asin, acos, sqrt = (staticmethod(f) for f in (sp.asin, sp.acos, sp.sqrt))
    absolute, floor, atan2 = staticmethod(sp.Abs), staticmethod(sp.floor), staticmethod(sp.atan2)
    sign, heaviside, sinc = staticmethod(sp.sign), staticmethod(sp.Heaviside), staticmethod(sp.sinc)
    minimum, maximum = staticmethod(sp.Min), staticmethod(sp.Max)
    logical_and, logical_or, logical_not = staticmethod(sp.And), staticmethod(sp.Or), staticmethod(sp.Not)
    less, less_equal, equal, not_equal = (staticmethod(cast(Any, f)) for f in (sp.Lt, sp.Le, sp.Eq, sp.Ne))

    @staticmethod
    def power(x: Any, y: Any) -> Any:
        return sp.Pow(x, y)

    @staticmethod
    def divide(x: Any, y: Any) -> Any:
        return sp.S(x) / y

    @staticmethod
    def copysign(x: Any, y: Any) -> Any:
        return sp.Piecewise((sp.Abs(x), sp.Ge(y, 0)), (-sp.Abs(x), True))

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return sp.Piecewise((x, condition), (y, True))

    def is_zero(self, x: Any) -> bool:
        return bool(x.is_Number and x.is_zero)

    def reason_not_real(self, x: Any) -> str:
        return unreal_part(x)

    def number_of_constant(self, x: Any) -> Any:
        if free_symbols_of(x) or not isinstance(x, sp.Expr):
            return x
        value = int(x) if x.is_Integer else float(x)
        return value if x.is_Integer or x.is_Float else scalar.ExactNumber(value, x)

    def unit_vector(self, a: tuple[Any, ...]) -> tuple[Any, ...]:
        square: Any = sp.trigsimp(sp.cancel(sp.Add(*(x * x for x in a))))
        if square.is_number and abs(square - 1) < 1e-15:
            return a
        length = sp.sqrt(square)
        return tuple(0 if scalar.is_zero(x) else x / length for x in a)

    def symbols_of(self, x: Any) -> frozenset[Any]:
        return frozenset(x.free_symbols)

    def substitute(self, x: Any, mapping: Mapping[Any, Any]) -> Any:
        return substitute_in(x, mapping)

    def to_data(self, x: Any) -> dict[str, Any]:
        return {"sympy": tree_of(x)}


UNREAL = {
    sp.I: "has an imaginary part",
    sp.nan: "is not a number",
    sp.oo: "is infinite",
    -sp.oo: "is infinite",
    sp.zoo: "is infinite",
}
BINDING = ExprWithLimits, sp.Derivative, sp.Limit, sp.Subs, sp.Lambda
"""The expressions whose own variables are no symbols of a formula."""
EVALUATED = frozenset([*PRIMITIVES, sp.Piecewise, ExprCondPair])
"""The operations that are evaluated where they contain symbols."""


def unreal_part(x: sp.Basic) -> str:
    """Why an expression cannot be evaluated as a real finite number; "" if it can. A part without symbols may
    contain any function.

    Repeated parts are inspected once.
    """
    if not isinstance(x, sp.Expr):
        return "is a condition, true or false"
    pending: list[sp.Basic] = [x]
    seen: set[sp.Basic] = set()
    symbols: dict[Any, frozenset[Any]] = {}
    while pending:
        part = pending.pop()
        if part in UNREAL:
            return UNREAL[part]
        if isinstance(part, BINDING):
            return f"contains an unevaluated {part.func.__name__} (evaluate it with .doit())"
        if isinstance(part, AppliedUndef):
            return f"contains the undefined function {part} (use the symbol {part.func.__name__} instead)"
        if part not in seen:
            seen.add(part)
            pending += part.args
            if part.func not in EVALUATED and part.args and free_symbols_of(part, symbols):
                return _unsupported(part)
    return ""


def _unsupported(x: sp.Basic) -> str:
    """The end of a sentence on a function that is not supported."""
    return f"contains the function {x.func.__name__}; supported are {', '.join(FUNCTION_NAMES)}"


def substitute_in(x: sp.Basic, mapping: Mapping[Any, Any]) -> Any:
    """x with scalars of any backend substituted for its symbols, evaluated with the primitives.

    If all scalars are SymPy expressions, so is the result. A constant becomes a Python number, an integer if
    it is one.
    """
    if mapping and all(isinstance(value, sp.Basic) for value in mapping.values()):
        return x.xreplace(dict(mapping))
    symbols: dict[Any, frozenset[Any]] = {}
    if (
        not all(_is_plain(value) for value in mapping.values())
        and free_symbols_of(x, symbols) - mapping.keys()
    ):
        return Deferred(x, mapping)
    return _evaluated(x, mapping, {}, symbols)


def free_symbols_of(x: Any, known: dict[Any, frozenset[Any]] | None = None) -> frozenset[Any]:
    """The free symbols of an expression; unlike `free_symbols` it visits repeated parts once."""
    known = {} if known is None else known
    found = known.get(x)
    if found is None:
        args = x.args
        found = (
            frozenset().union(*(free_symbols_of(a, known) for a in args))
            if args
            else frozenset(x.free_symbols)
        )
        known[x] = found
    return found


class Deferred:
    """An expression with values of another backend for some of its symbols, evaluated later."""

    __slots__ = ("expression", "known")

    def __init__(self, expression: sp.Basic, known: Mapping[Any, Any]) -> None:
        self.expression = expression
        self.known = dict(known)


class DeferredBackend(scalar.Backend):
    """Substitution in deferred expressions."""

    def symbols_of(self, x: Deferred) -> frozenset[Any]:
        return frozenset(x.expression.free_symbols) - x.known.keys()

    def substitute(self, x: Deferred, mapping: Mapping[Any, Any]) -> Any:
        return substitute_in(x.expression, {**x.known, **mapping})


def _is_plain(value: Any) -> bool:
    return isinstance(value, sp.Basic) or scalar.value_is_constant(value)


def _evaluated(
    x: Any, mapping: Mapping[Any, Any], known: dict[Any, Any], symbols: dict[Any, frozenset[Any]]
) -> Any:
    if x in known:
        return known[x]
    if x in mapping:
        result = mapping[x]
    elif isinstance(x, BooleanTrue | BooleanFalse):
        result = bool(x)
    elif not free_symbols_of(x, symbols):
        result = exact(x) if any(getattr(value, "exact", False) for value in mapping.values()) else plain(x)
    elif not any(symbol in mapping for symbol in free_symbols_of(x, symbols)):
        result = x
    elif isinstance(x, sp.Piecewise):
        result = _chosen(
            [tuple(_evaluated(a, mapping, known, symbols) for a in pair.args) for pair in x.args]
        )
    else:
        result = _apply(x, [_evaluated(a, mapping, known, symbols) for a in x.args])
    known[x] = result
    return result


def _apply(x: Any, args: list[Any]) -> Any:
    if x.func not in PRIMITIVES:
        raise ParameterError(f"the expression {x} {_unsupported(x)}")
    return PRIMITIVES[x.func](*args)


def _chosen(pairs: list[tuple[Any, Any]]) -> Any:
    """The value of a Piecewise with these pairs (value, condition)."""
    value: Any = float("nan")
    for x, condition in reversed(pairs):
        value = x if condition is True or condition == sp.true else scalar.where(condition, x, value)
    return value


def plain(x: Any) -> int | float:
    """A constant expression as a Python number, integers exactly as far as floats are."""
    return int(x) if x.is_Integer and abs(x) <= LARGEST_INTEGER else float(x)


def exact(x: Any) -> Any:
    """A constant expression for scalars with exact fractions: an integer, a fraction, a float, or itself."""
    if x.is_Rational:
        return int(x) if x.is_Integer else Fraction(int(x.p), int(x.q))
    return float(x) if x.is_Float else x


_KINDS: dict[str, Any] = {f.__name__: f for f in (*PRIMITIVES, sp.Piecewise)}
_CONSTANTS = {"pi": sp.pi, "E": sp.E, "true": sp.true, "false": sp.false}


def tree_of(x: Any) -> list[Any]:
    """An expression as nested lists [kind, arguments...].

    Raises ParameterError for a kind that documents do not support.
    """
    for name, constant in _CONSTANTS.items():
        if x == constant:
            return [name]
    if isinstance(x, sp.Symbol):
        assumptions = getattr(x, "_assumptions_orig", None) or x.assumptions0
        return [
            "Symbol",
            x.name,
            {key: bool(value) for key, value in sorted(assumptions.items()) if value is not None},
        ]
    if isinstance(x, sp.Rational):
        return ["Rational", int(x.p), int(x.q)]
    if isinstance(x, sp.Float):
        sign, mantissa, exponent, bits = x._mpf_
        return ["Float", [int(sign), int(mantissa), int(exponent), int(bits)], int(x._prec)]
    if isinstance(x, ExprCondPair):
        return ["Pair", *(tree_of(a) for a in x.args)]
    if x.func.__name__ not in _KINDS:
        raise ParameterError(
            f"the expression {x} contains the function {x.func.__name__}, which documents do not support"
        )
    return [x.func.__name__, *(tree_of(a) for a in x.args)]


def expression_of(tree: Sequence[Any]) -> Any:
    """The expression that `tree_of` wrote, without executing text.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        raise TypeError(f"an expression must be a list [kind, arguments...], not {tree!r}")
    kind, *parts = tree
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind == "Symbol":
        return _symbol(*parts)
    if kind == "Rational":
        return sp.Rational(*(_integer(p) for p in parts))
    if kind == "Float":
        return _float(tuple(_integer(p) for p in parts[0]), _integer(parts[1]))
    arguments = [expression_of(part) for part in parts]
    if kind == "Pow":
        _check_power(*arguments)
    return ExprCondPair(*arguments) if kind == "Pair" else _KINDS[kind](*arguments)


def _float(number: tuple[int, ...], precision: int) -> sp.Float:
    """A float of any precision from its sign, mantissa, exponent and bits.

    Raises ValueError where one of them is not admissible.
    """
    if len(number) != 4 or number[1].bit_length() > LARGEST_BITS or not 1 <= precision <= LARGEST_BITS:
        raise ValueError("a float in an expression is invalid")
    if abs(number[2]) > LARGEST_BITS or not 0 <= number[3] <= LARGEST_BITS or number[0] not in (0, 1):
        raise ValueError("a float in an expression is out of bounds")
    return cast(sp.Float, sp.Float._new(number, precision))


def _check_power(base: Any, exponent: Any) -> None:
    """Raise ValueError for a power of numbers that is too large, since SymPy evaluates it at once."""
    if base.is_Rational and exponent.is_Number:
        bits = max(abs(int(base.p)), int(base.q)).bit_length()
        if bits * abs(float(exponent)) > LARGEST_BITS:
            raise ValueError("the power of a number is too large to be evaluated")


def _symbol(name: Any, assumptions: Any) -> sp.Symbol:
    if not isinstance(name, str) or not name or not isinstance(assumptions, dict):
        raise TypeError(f"a symbol needs a name and its assumptions, not {name!r} and {assumptions!r}")
    if not all(value in (True, False) for value in assumptions.values()):
        raise TypeError(f"the assumptions of symbol {name!r} must be true or false")
    return sp.Symbol(name, **assumptions)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"an integer is needed, not {value!r}")
    return value


def symbol(name: str, **assumptions: bool) -> sp.Symbol:
    """A SymPy symbol with exactly this name, real unless the assumptions state otherwise."""
    return sp.Symbol(name, **{"real": True, **assumptions})


def _fresh_symbol(data: Mapping[str, Any]) -> sp.Symbol:
    return symbol(str(data["name"]), **({"positive": True} if data.get("positive") else {}))


_BACKEND = SymbolicBackend()
scalar.register(Deferred, DeferredBackend())
scalar.register(sp.Basic, _BACKEND)
scalar.register(sp.Expr, _BACKEND)
scalar.register(Boolean, _BACKEND)
scalar.register_decoder("sympy", expression_of)
scalar.register_decoder("symbol", _fresh_symbol)
