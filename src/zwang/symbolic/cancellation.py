"""Cancellation of the denominators of polynomials, which are opaque factors.

A `Polynomial` divides by a sum through an opaque generator d with negative exponents, which its arithmetic
does not relate to the sum. Here the terms are brought to a common denominator, and the numerator is divided
by the sums exactly, as a polynomial in all generators: (x^2 - y^2) / (x - y) becomes x + y.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from zwang.symbolic.polynomial import WIDTH, Polynomial, Ring, TooLargeError

PRODUCTS = 50_000  # of terms that the cancellation of one scalar may take
Powers = dict[int, int]
"""The exponents of denominators in the common one, by the number of the generator."""


def cancelled(x: Any) -> Any:
    """A scalar with the denominators of a polynomial cancelled where that makes it shorter."""
    if type(x) is not Polynomial or not (powers := _powers(x)):
        return x
    try:
        with bounded_work(x.ring):
            fraction, powers = _reduced(_numerator(x, powers), powers)
            for number, power in powers.items():
                fraction = _expansion(fraction, number, power)
    except TooLargeError:
        return x
    return min(x, fraction, key=size)


def size(x: Polynomial) -> int:
    """The approximate number of symbols and operations, with those in opaque factors."""
    generators = x.ring.generators
    return sum(1 + sum(_size(generators[n][1]) for n, _ in x.ring.exponents(key)) for key in x.terms)


@cache
def _size(factor: sp.Expr) -> int:
    return int(sp.count_ops(factor)) + 1


def ratio(a: Any, b: Any) -> Any:
    """The ratio of two coefficients, exact unless one is a float."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    value = Fraction(a) / Fraction(b)
    return value.numerator if value.denominator == 1 else value


@contextmanager
def bounded_work(ring: Ring) -> Iterator[None]:
    """Raises TooLargeError after PRODUCTS products of terms, which do not count towards the ring's limit."""
    limit, work = ring.limit, ring.work
    ring.limit = work + PRODUCTS
    try:
        yield
    finally:
        ring.limit, ring.work = limit, work


def cancelled_entries(array: np.ndarray) -> np.ndarray:
    """An array of scalars, each `cancelled`."""
    out = np.empty(array.shape, dtype=object)
    for index, x in np.ndenumerate(array):
        out[index] = cancelled(x)
    return out


def over_common_denominator(x: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The numerator and the common denominator, which is a product of opaque factors."""
    powers = _powers(x)
    monomial = sum(power << (WIDTH * n) for n, power in powers.items())
    return _numerator(x, powers), Polynomial(x.ring, {monomial: 1})


def exact_quotient(x: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """x / divisor, where long division leaves no remainder; None too where it takes too many products."""
    try:
        with bounded_work(x.ring):
            quotient, remainder = _division(x, divisor, exact=True)
    except TooLargeError:
        return None
    return None if remainder.terms else quotient


def _powers(x: Polynomial) -> Powers:
    """The powers in the common denominator of all sums that are opaque factors of terms."""
    used = {n for key in x.terms for n, _ in x.ring.exponents(key)}
    return {n: max(0, -_lowest(x, n)) for n in x.ring.denominators if n in used}


def _numerator(x: Polynomial, powers: Powers) -> Polynomial:
    """x times the common denominator."""
    ring, total = x.ring, x.ring.constant(0)
    groups: dict[tuple[int, ...], dict[int, Any]] = {}
    for key, value in x.terms.items():
        exponents = dict(ring.exponents(key))
        own = tuple(exponents.get(n, 0) for n in powers)
        rest = key - sum(e << (WIDTH * n) for n, e in zip(powers, own, strict=True))
        groups.setdefault(own, {})[rest] = value
    for own, terms in groups.items():
        part = Polynomial(ring, terms)
        for (n, power), exponent in zip(powers.items(), own, strict=True):
            for _ in range(power + exponent):
                part = part * ring.denominators[n]
        total = total + part
    return total


def _reduced(numerator: Polynomial, powers: Powers) -> tuple[Polynomial, Powers]:
    """A fraction without the denominators that divide the numerator."""
    left = dict(powers)
    for number in powers:
        while left[number]:
            quotient = exact_quotient(numerator, numerator.ring.denominators[number])
            if quotient is None:
                break
            numerator, left[number] = quotient, left[number] - 1
    return numerator, {n: p for n, p in left.items() if p}


def _expansion(x: Polynomial, number: int, power: int) -> Polynomial:
    """x over a power of a denominator d as a sum of r_k d^-k, where no d divides a term of r_k.

    It remains one fraction if d contains phase factors, since the r_k would be complex.
    """
    ring, total = x.ring, x.ring.constant(0)
    if not all(ring.divides(n) for key in ring.denominators[number].terms for n, _ in ring.exponents(key)):
        return x * Polynomial(ring, {-power << (WIDTH * number): 1})
    for k in range(power, 0, -1):
        x, remainder = _division(x, ring.denominators[number])
        total = total + remainder * Polynomial(ring, {-k << (WIDTH * number): 1})
    return total + x


def _division(x: Polynomial, divisor: Polynomial, exact: bool = False) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder by the leading term of the divisor, in the order of the packed monomials.

    Both are divided by monomials first, so that no exponent is negative and the terms have a least one: the
    division of cos(a) + cos(b - a) by powers of phase factors would not end. exact: whether the division ends
    with the first term of a remainder. Raises TooLargeError.
    """
    ring = x.ring
    (own, rest), (of_divisor, divisor) = (_without_common_monomial(y) for y in (x, divisor))
    terms, leading = dict(rest.terms), max(divisor.terms)
    needed = ring.exponents(leading)
    quotient: dict[int, Any] = {}
    remainder: dict[int, Any] = {}
    while terms and not (exact and remainder):
        key = max(terms)
        exponents = dict(ring.exponents(key))
        if any(exponents.get(n, 0) < e for n, e in needed):
            remainder[key] = terms.pop(key)
            continue
        value = ratio(terms[key], divisor.terms[leading])
        quotient[key - leading] = value
        ring.work += len(terms)  # copied by the subtraction
        product = divisor * Polynomial(ring, {key - leading: value})
        terms = (Polynomial(ring, terms) - product).terms
        if terms and max(terms) >= key:  # a rule of reduction has raised the order: nothing is divided
            return ring.constant(0), x
    found = {key + own - of_divisor: value for key, value in quotient.items()}
    return Polynomial(ring, found), Polynomial(ring, {key + own: value for key, value in remainder.items()})


def _without_common_monomial(x: Polynomial) -> tuple[int, Polynomial]:
    """The common monomial of the terms, of the generators that may have negative exponents, and x over it."""
    ring = x.ring

    def may_be_negative(n: int) -> bool:
        return ring.invertible(n) or ring.generators[n][0] == "phase"

    common = ring.common_monomial(x.terms, may_be_negative)
    return common, Polynomial(ring, {key - common: value for key, value in x.terms.items()})


def _lowest(x: Polynomial, number: int) -> int:
    """The lowest exponent of a generator in the terms."""
    return min((dict(x.ring.exponents(key)).get(number, 0) for key in x.terms), default=0)
