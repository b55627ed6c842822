"""Trigonometric polynomials: a scalar with a canonical form, in which equal expressions are identical.

A polynomial maps packed monomials to coefficients (integers, fractions, floats). Its generators are atoms
(parameters, velocities and opaque expressions); for a separate angle its cosine c and sine s with s^2 = 1 -
c^2; and for an angle that is added to others (parallel axes) the phase factor z = c + i s with i^2 = -1.
Since z_1 z_2 is the phase factor of the sum, cos(a) cos(b) - sin(a) sin(b) is identical to cos(a + b), and
sin^2 + cos^2 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy as sp

from zwang import scalar
from zwang.errors import ZwangError
from zwang.scalar.backend import common_backend
from zwang.symbolic.exact_coefficients import added, exact_coefficient, normalised, number_of
from zwang.symbolic.sympy_backend import SymbolicBackend
from zwang.symbolic.sympy_types import as_expr

WIDTH = 16
HALF = 1 << (WIDTH - 1)
# The terms of sin(n x) in powers of cos(x), and those of a power of a sum, cancel by up to about 2^n.
LARGEST_MULTIPLE = 2  # of a separate angle whose functions are expanded, as sin(2 x) = 2 sin(x) cos(x)
LARGEST_PHASE = 63  # multiple of an angle with a phase factor, whose powers are single terms
LARGEST_POWER = 4  # of a sum, of a sine or of a root that is expanded


class TooLargeError(ZwangError):
    """A derivation whose expanded expressions are too long to read."""


class Ring:
    """The generators of polynomials and their rules of reduction.

    summed: angles that are added to others. limit: on the total number of products of terms. units: of
    vectors of length 1 one component and the others, such as the scalar part w and the vector part (x, y, z)
    of a unit quaternion, so that w^2 = 1 - x^2 - y^2 - z^2.
    """

    def __init__(
        self,
        summed: Iterable[sp.Expr] = (),
        limit: float = float("inf"),
        units: Mapping[sp.Expr, Sequence[sp.Expr]] | None = None,
    ) -> None:
        self.generators: list[tuple[str, sp.Expr]] = []
        self.numbers: dict[tuple[str, sp.Expr], int] = {}
        self.summed = frozenset(summed)
        self.units = dict(units or {})
        self.roots: dict[int, Polynomial] = {}  # the radicand of each generator that is a square root
        self.denominators: dict[int, Polynomial] = {}  # the polynomial of each generator that is a sum
        self.limit = limit
        self.work = 0
        self.bias = 0
        self.squares = 0  # the bit set in exponents 2 and 3 of generators with a rule of reduction
        self.i = self._generator("i", sp.I)

    def _generator(self, kind: str, expression: sp.Expr) -> int:
        """The packed monomial of a generator, which is added if it is new."""
        number = self.numbers.get((kind, expression))
        if number is None:
            number = self.numbers[kind, expression] = len(self.generators)
            self.generators.append((kind, expression))
            self.bias |= HALF << (WIDTH * number)
            if kind in ("i", "sin") or expression in self.units:
                self.squares |= 2 << (WIDTH * number)
        return 1 << (WIDTH * number)

    def atom(self, expression: sp.Expr) -> Polynomial:
        """A polynomial of one generator for an opaque expression, or a constant for a number."""
        if expression.is_Number and expression.is_finite:
            return self.constant(exact_coefficient(expression))
        return Polynomial(self, {self._generator("atom", expression): 1})

    def invertible(self, number: int) -> bool:
        """Whether a generator may have negative exponents, which needs that it has no rule of reduction."""
        kind, expression = self.generators[number]
        return kind == "cos" or (kind == "atom" and expression not in self.units and number not in self.roots)

    def is_atom(self, number: int) -> bool:
        """Whether a generator is an opaque expression without a rule of reduction."""
        return self.generators[number][0] == "atom" and self.invertible(number)

    def divides(self, number: int) -> bool:
        """Whether a generator may be cancelled: all but i and the phase factors, of which a real polynomial
        contains the conjugates, too.
        """
        return self.generators[number][0] not in ("i", "phase")

    def common_monomial(self, keys: Collection[int], allowed: Callable[[int], bool]) -> int:
        """The greatest common monomial of these, of the generators that are allowed."""
        exponents = [dict(self.exponents(key)) for key in keys]
        numbers = {n for found in exponents for n in found if allowed(n)}
        return sum(min(found.get(n, 0) for found in exponents) << (WIDTH * n) for n in numbers)

    def root(self, radicand: Polynomial) -> Polynomial:
        """The square root, with root^2 = radicand; squares of positive atoms are factored out."""
        outside, rest = self.constant(1), radicand
        if len(radicand.terms) == 1:
            ((key, value),) = radicand.terms.items()
            whole = 0
            for number, exponent in self.exponents(key):
                if exponent % 2 == 0 and self.is_atom(number) and self.generators[number][1].is_positive:
                    whole += exponent << (WIDTH * number)
            factor = sp.sqrt(number_of(value)) if type(value) is not float and value > 0 else sp.Integer(0)
            exact = exact_coefficient(factor) if factor.is_Rational and factor != 0 else 1
            outside = Polynomial(self, {whole // 2: exact})
            rest = Polynomial(
                self, {key - whole: normalised(Fraction(value) / exact**2) if exact != 1 else value}
            )
        if list(rest.terms) == [0]:
            return outside * self.atom(sp.sqrt(number_of(rest.terms[0])))
        expression = sp.sqrt(readable(rest))
        number = (
            len(self.generators)
            if ("atom", expression) not in self.numbers
            else self.numbers["atom", expression]
        )
        monomial = self._generator("atom", expression)
        if number not in self.roots:
            self.roots[number] = rest
            self.squares |= 2 << (WIDTH * number)
        return outside * Polynomial(self, {monomial: 1})

    def constant(self, value: Any) -> Polynomial:
        return Polynomial(self, {0: value} if value != 0 else {})

    def exponents(self, key: int) -> list[tuple[int, int]]:
        """The pairs (number of the generator, exponent) of a monomial."""
        found, number = [], 0
        biased = key + self.bias
        while biased:
            exponent = (biased & 0xFFFF) - HALF
            if exponent:
                found.append((number, exponent))
            biased >>= WIDTH
            number += 1
        return [pair for pair in found if pair[0] < len(self.generators)]

    def reduced(self, terms: dict[int, Any]) -> dict[int, Any]:
        """The terms reduced by i^2 = -1, s^2 = 1 - c^2 and the other rules, without zero coefficients."""
        bias, squares = self.bias, self.squares
        pending = [key for key in terms if (key + bias) & squares]
        while pending:
            for key in pending:  # a replacement may change or remove the terms of the keys after it
                if key in terms:
                    self._replace_square(terms, key, terms.pop(key))
            pending = [key for key in terms if (key + bias) & squares]
        return {key: value for key, value in terms.items() if value != 0}

    def _replace_square(self, terms: dict[int, Any], key: int, value: Any) -> None:
        """Add to `terms` a monomial whose lowest reducible square is replaced by its rule."""
        bit = (key + self.bias) & self.squares
        number = (bit & -bit).bit_length() // WIDTH
        kind, expression = self.generators[number]
        key -= 2 << (WIDTH * number)
        if kind == "i":
            _put(terms, key, -value)
            return
        if number in self.roots:
            for other, factor in self.roots[number].terms.items():
                _put(terms, key + other, value * factor)
            return
        _put(terms, key, value)
        others = [("cos", expression)] if kind == "sin" else [("atom", x) for x in self.units[expression]]
        for other in others:
            _put(terms, key + 2 * self._generator(*other), -value)

    def phase(self, angle: Polynomial) -> Polynomial:
        """e^(i angle): a product over small integer multiples of atoms and constants, else of an opaque
        angle.
        """
        result = self.constant(1)
        for key, value in angle.terms.items():
            exponents = self.exponents(key)
            if not exponents:
                result = result * self._constant_phase(value)
            elif self._is_right_angle(exponents, value):
                result = result * Polynomial(self, self.reduced({(int(2 * value) % 4) * self.i: 1}))
            elif (atom := self._expanded_angle(exponents, value)) is not None:
                result = result * self._of_atom(atom, value)
            else:
                return self._of_opaque(angle.expression())
        return result

    def _expanded_angle(self, exponents: list[tuple[int, int]], multiple: Any) -> sp.Expr | None:
        """The atom of a term whose phase is expanded in that of the atom; None for other terms."""
        if type(multiple) is not int or [exponent for _, exponent in exponents] != [1]:
            return None
        kind, expression = self.generators[exponents[0][0]]
        largest = LARGEST_PHASE if expression in self.summed else LARGEST_MULTIPLE
        return expression if kind == "atom" and abs(multiple) <= largest else None

    def _is_right_angle(self, exponents: list[tuple[int, int]], value: Any) -> bool:
        """Whether value times the monomial is a multiple of pi / 2."""
        return (
            exponents == [(self.numbers.get(("atom", sp.pi)), 1)]
            and type(value) is not float
            and (2 * value) % 1 == 0
        )

    def _constant_phase(self, value: Any) -> Polynomial:
        return self.constant(scalar.cos(float(value))) + self.constant(scalar.sin(float(value))) * Polynomial(
            self, {self.i: 1}
        )

    def _of_atom(self, expression: sp.Expr, multiple: int) -> Polynomial:
        """e^(i multiple expression)."""
        if expression in self.summed:
            return Polynomial(self, {multiple * self._generator("phase", expression): 1})
        return self._of_separate(expression, multiple)

    def _of_opaque(self, angle: sp.Expr) -> Polynomial:
        """e^(i angle) of a separate angle, which an angle and its negative have in common."""
        sign = -1 if angle.could_extract_minus_sign() else 1
        return self._of_separate(sign * angle, sign)

    def _of_separate(self, expression: sp.Expr, multiple: int) -> Polynomial:
        """e^(i multiple expression) in the cosine and the sine of a separate angle."""
        cosine, sine = self._generator("cos", expression), self._generator("sin", expression)
        once = Polynomial(self, {cosine: 1, sine + self.i: 1 if multiple > 0 else -1})
        result = once
        for _ in range(abs(multiple) - 1):
            result = result * once
        return result

    def real_part(self, e: Polynomial) -> Polynomial:
        return (e + self._conjugate(e)) * Fraction(1, 2)

    def imaginary_part(self, e: Polynomial) -> Polynomial:
        return (e - self._conjugate(e)) * Polynomial(self, {self.i: Fraction(-1, 2)})

    def _conjugate(self, e: Polynomial) -> Polynomial:
        terms = {}
        for key, value in e.terms.items():
            for number, exponent in self.exponents(key):
                kind, _ = self.generators[number]
                if kind == "phase":
                    key -= 2 * exponent * (1 << (WIDTH * number))
                elif kind == "i":
                    value = -value
            terms[key] = value
        return Polynomial(self, terms)


def _put(terms: dict[int, Any], key: int, value: Any) -> None:
    """Add a coefficient to a term."""
    old = terms.get(key)
    terms[key] = value if old is None else added(old, value)


class Polynomial:
    """A polynomial over a ring's generators; immutable."""

    __slots__ = ("ring", "terms")
    exact = True

    def __init__(self, ring: Ring, terms: dict[int, Any]) -> None:
        self.ring = ring
        self.terms = terms

    def __repr__(self) -> str:
        return f"Polynomial({self.expression()})"

    def expression(self) -> sp.Expr:
        """The SymPy expression, term by term; `readable` groups and simplifies it."""
        return sp.Add(*[c * m for m, c in real_terms(self).items()])

    def __eq__(self, other: Any) -> bool:
        return type(other) is Polynomial and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def _other(self, other: Any) -> Polynomial | None:
        """An operand as a polynomial; None for an unknown type."""
        if type(other) is Polynomial:
            return other
        if isinstance(other, int | float | Fraction):
            return self.ring.constant(normalised(other))
        if isinstance(other, sp.Expr) and not other.free_symbols:
            return self.ring.atom(other)
        return None

    def __add__(self, other: Any) -> Any:
        other = self._other(other)
        if other is None:
            return NotImplemented
        small, large = sorted((self.terms, other.terms), key=len)
        terms = dict(large)
        for key, value in small.items():
            old = terms.get(key)
            new = value if old is None else added(old, value)
            if new == 0:
                del terms[key]
            else:
                terms[key] = new
        return Polynomial(self.ring, terms)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial(self.ring, {key: -value for key, value in self.terms.items()})

    def __pos__(self) -> Polynomial:
        return self

    def __sub__(self, other: Any) -> Any:
        other = self._other(other)
        return NotImplemented if other is None else self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        if type(other) is not Polynomial:
            other = self._other(other)
            if other is None:
                return NotImplemented
        ring = self.ring
        ring.work += len(self.terms) * len(other.terms)
        if ring.work > ring.limit:
            raise TooLargeError("the expanded expressions are too long to read; derive them with form='cse'")
        terms: dict[int, Any] = {}
        for ka, a in self.terms.items():
            for kb, b in other.terms.items():
                key, value = ka + kb, a * b
                old = terms.get(key)
                terms[key] = value if old is None else added(old, value)
        return Polynomial(ring, ring.reduced(terms))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        other = self._other(other)
        if other is None:
            return NotImplemented
        common = self.ring.common_monomial([*self.terms, *other.terms], self.ring.divides)
        return self._over(common) * other._over(common).reciprocal()

    def _over(self, monomial: int) -> Polynomial:
        return Polynomial(self.ring, {key - monomial: value for key, value in self.terms.items()})

    def __rtruediv__(self, other: Any) -> Any:
        return self.reciprocal() * other

    def reciprocal(self) -> Polynomial:
        """1 / self: exact for a product of atoms, an opaque power for anything else."""
        if not self.terms:
            raise ZeroDivisionError("an expression is divided by zero")
        ring = self.ring
        if len(self.terms) == 1:
            ((key, value),) = self.terms.items()
            exponents = ring.exponents(key)
            if all(ring.invertible(n) for n, _ in exponents):
                return Polynomial(ring, {-key: normalised(Fraction(1, 1) / value)})
            roots = [n for n, _ in exponents if n in ring.roots]
            if roots:  # 1 / (x root) = root / (x radicand)
                generator = 1 << (WIDTH * roots[0])
                rest = Polynomial(ring, {key - generator: value}) * ring.roots[roots[0]]
                return Polynomial(ring, {generator: 1}) * rest.reciprocal()
        common = ring.common_monomial(self.terms, ring.invertible)
        factor = normalised(Fraction(1, 1) / self.terms[max(self.terms)])
        scaled = self._over(common) * factor
        generator = ring._generator("atom", readable(scaled))
        ring.denominators.setdefault(generator.bit_length() // WIDTH, scaled)
        return Polynomial(ring, {-common - generator: factor})

    def __pow__(self, exponent: Any) -> Any:
        return scalar.power(self, exponent)

    def __abs__(self) -> Any:
        return scalar.absolute(self)


class PolynomialBackend(scalar.Backend):
    """The primitives on polynomials; results that are not polynomials become opaque atoms."""

    def sin(self, x: Polynomial) -> Any:
        return x.ring.imaginary_part(x.ring.phase(x))

    def cos(self, x: Polynomial) -> Any:
        return x.ring.real_part(x.ring.phase(x))

    def sqrt(self, x: Polynomial) -> Any:
        return x.ring.root(x) if x.terms else 0

    def largest_product(self, x: Polynomial) -> int:
        """Higher powers are opaque atoms, but for those of a product of generators without rules."""
        generators = {n for key in x.terms for n, _ in x.ring.exponents(key)}
        is_product = len(x.terms) == 1 and all(x.ring.invertible(n) for n in generators)
        return super().largest_product(x) if is_product else LARGEST_POWER

    def is_zero(self, x: Any) -> bool:
        return not x.terms

    def divide(self, x: Any, y: Any) -> Any:
        return x / y

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        raise TypeError("a selection between polynomials is evaluated by the backend of its condition")


def _opaque(name: str) -> Callable[..., Any]:
    """A primitive evaluated by SymPy, whose result is an opaque atom or a condition."""
    operation = getattr(SymbolicBackend, name)
    operation = getattr(operation, "__func__", operation)

    def primitive(self: Any, *args: Any) -> Any:
        ring = next(a.ring for a in args if type(a) is Polynomial)
        plain_args = [readable(a) if type(a) is Polynomial else a for a in args]
        result = operation(*plain_args)
        return ring.atom(result) if isinstance(result, sp.Expr) else Condition(ring, result)

    return primitive


class Condition:
    """A SymPy relation between polynomials, for `where`."""

    __slots__ = ("relation", "ring")

    def __init__(self, ring: Ring, relation: Any) -> None:
        self.ring = ring
        self.relation = relation


class ConditionBackend(scalar.Backend):
    """Selections by relations between polynomials, and logical operations on them."""

    def where(self, condition: Condition, x: Any, y: Any) -> Any:
        backend = common_backend(x, y)
        if backend.rank > self.rank:  # of dual numbers of polynomials
            return backend.where(condition, x, y)
        pair = [readable(a) if type(a) is Polynomial else a for a in (x, y)]
        return condition.ring.atom(sp.sympify(SymbolicBackend.where(condition.relation, *pair), strict=True))

    @staticmethod
    def _joined(operation: Any, *conditions: Any) -> Condition:
        ring = next(c.ring for c in conditions if isinstance(c, Condition))
        return Condition(
            ring, operation(*(c.relation if isinstance(c, Condition) else c for c in conditions))
        )

    def logical_and(self, p: Any, q: Any) -> Any:
        return self._joined(sp.And, p, q)

    def logical_or(self, p: Any, q: Any) -> Any:
        return self._joined(sp.Or, p, q)

    def logical_not(self, p: Any) -> Any:
        return self._joined(sp.Not, p)


for _name in ("tan", "asin", "acos", "atan2", "exp", "log", "sinh", "cosh", "tanh", "sech", "asinh", "acosh",
              "atanh", "sinc", "absolute", "floor", "minimum", "maximum", "power", "copysign", "sign",
              "heaviside", "less", "less_equal", "equal", "not_equal"):  # fmt: skip
    setattr(PolynomialBackend, _name, _opaque(_name))
scalar.register(Polynomial, PolynomialBackend())
scalar.register(Condition, ConditionBackend())


# ---------------------------------------------------------------------------------------------- back to SymPy


def real_terms(polynomial: Polynomial) -> dict[sp.Expr, Any]:
    """SymPy monomials and their coefficients, with phase factors as cosines and sines of sums of angles."""
    found: dict[sp.Expr, Any] = {}
    for factors, coefficient in _real_monomials(polynomial).items():
        monomial = sp.Mul(*[base**exponent for base, exponent in factors])
        found[monomial] = found.get(monomial, 0) + number_of(coefficient)
    return found


Factor = tuple[sp.Expr, int]


def _real_monomials(polynomial: Polynomial) -> dict[tuple[Factor, ...], Any]:
    """Monomials as sorted tuples of (SymPy factor, exponent), with real trigonometric functions."""
    ring = polynomial.ring
    found: dict[Any, Any] = {}
    for key, value in polynomial.terms.items():
        factors, angle, imaginary = [], [], 0
        for number, exponent in ring.exponents(key):
            kind, expression = ring.generators[number]
            if kind == "i":
                imaginary = exponent
            elif kind == "phase":
                angle.append((expression, exponent))
            else:
                factors.append((_FUNCTION[kind](expression), exponent))
        for extra, weight in _real(angle, imaginary, value):
            monomial = (*factors, *extra)
            total = added(found.get(monomial, 0), weight)
            found[monomial] = total
    return {monomial: value for monomial, value in found.items() if value != 0}


_FUNCTION = {"atom": lambda x: x, "cos": sp.cos, "sin": sp.sin}


def _real(
    angle: list[tuple[sp.Expr, int]], imaginary: int, value: Any
) -> list[tuple[tuple[Factor, ...], Any]]:
    """The real part of value * i^imaginary * e^(i angle); imaginary parts cancel."""
    if not angle:
        return [] if imaginary else [((), value)]
    total = sp.Add(*[k * a for a, k in angle])
    if imaginary:  # i (cos + i sin)
        value, function = -value, sp.sin
    else:
        function = sp.cos
    factor = function(total)
    if factor.could_extract_minus_sign():
        factor, value = -factor, -value
    return [(((factor, 1),), value)]


def readable(polynomial: Polynomial, collected: frozenset[sp.Expr] = frozenset()) -> sp.Expr:
    """A short SymPy expression: 1 - cos^2 as sin^2, sin cos as sin(2 a) / 2, and terms collected.

    collected: symbols (velocities, accelerations, inputs) by which terms are collected, besides functions of
    angles.
    """
    monomials = {frozenset(m): c for m, c in _real_monomials(polynomial).items()}
    monomials = _with_double_angles(_with_squares(monomials))
    groups: dict[frozenset[Factor], list[sp.Expr]] = {}
    for factors, coefficient in monomials.items():
        head = frozenset(f for f in factors if f[0] in collected or isinstance(f[0], sp.sin | sp.cos))
        body = sp.Mul(number_of(coefficient), *[base**e for base, e in factors - head])
        groups.setdefault(head, []).append(body)
    return sp.Add(*[_grouped(bodies, head) for head, bodies in groups.items()])


def _grouped(bodies: list[sp.Expr], head: frozenset[Factor]) -> sp.Expr:
    """The terms with a common head as one product."""
    total = sp.Add(*bodies)
    if not head:
        return total
    factor = sp.Mul(*[base**e for base, e in head])
    if len(bodies) == 1 or not total.is_Add:
        return total * factor
    common = sp.gcd_terms(total)
    if common.is_Mul and len(common.args) == 2 and common.args[0].is_Rational:
        common = total
    return common * factor


def _with_squares(monomials: dict[frozenset[Factor], Any]) -> dict[frozenset[Factor], Any]:
    """k - k cos^2 replaced by k sin^2, for each k."""
    result = dict(monomials)
    for factors in list(monomials):
        for base, exponent in factors:
            if not isinstance(base, sp.cos) or exponent != 2 or factors not in result:
                continue
            rest = factors - {(base, exponent)}
            if rest in result and result[rest] == -result[factors]:
                result[rest | {(sp.sin(*base.args), 2)}] = result.pop(rest)
                del result[factors]
    return result


def _with_double_angles(monomials: dict[frozenset[Factor], Any]) -> dict[frozenset[Factor], Any]:
    """sin(a) cos(a) replaced by sin(2 a) / 2."""
    result: dict[frozenset[Factor], Any] = {}
    for factors, coefficient in monomials.items():
        for base, exponent in list(factors):
            if not isinstance(base, sp.sin) or exponent != 1:
                continue
            angle = as_expr(base.args[0])
            cosine = (sp.cos(angle), 1)
            if cosine in factors:
                factors = (factors - {(base, 1), cosine}) | {(sp.sin(2 * angle), 1)}
                coefficient = normalised(coefficient * Fraction(1, 2))
        result[factors] = added(result.get(factors, 0), coefficient)
    return result
