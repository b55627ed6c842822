"""Equations that are linear combinations of others, judged by their values at random states.

A published equation is correct if the accelerations of the derived equations satisfy it: then it is a linear
combination of the derived rows, with coefficients that depend on the state. These are solved for in numbers
(a probabilistic identity test: Schwartz, J. ACM 27 (1980) 701).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from zwang.symbolic.sympy_types import free_symbols_in

ZERO = 1e-9  # of a coefficient, relative to the terms of the equation
# of the tolerance: relative to all terms, for those that are 0 to rounding; with the others, coefficients of
# accelerations and the remaining terms are compared each by itself, so that large ones do not hide small ones
OF_ALL_TERMS = 1e-3
Combination = tuple[complex, ...]
"""The coefficients of the derived rows in a published equation at one state."""
Evaluation = tuple[list[sp.Symbol], Callable[..., Any]]
"""The symbols of an equation, and its terms as a function of the accelerations and of these."""


@dataclass(frozen=True)
class _EquationValues:
    """An equation in numbers at a state.

    line: (E, s) of E u_dot - s. sizes: for each of these numbers the sum of the magnitudes of its terms.
    value, size: at random accelerations, and the sum of the magnitudes of its terms there.
    """

    line: list[Any]
    sizes: list[Any]
    value: Any
    size: Any


class LinearCombinations:
    """The derived equations in numbers, at several states.

    rows: the equations, each as left side minus right side. u_dot: the symbols of the accelerations. states:
    exact or float values of all other symbols by name. digits: of the arithmetic. tolerance: of an equation,
    relative to its terms.
    """

    def __init__(
        self,
        rows: Sequence[sp.Expr],
        u_dot: Sequence[sp.Symbol],
        states: Sequence[Mapping[str, Any]],
        digits: int,
        tolerance: float,
    ) -> None:
        self._u_dot, self._states = u_dot, states
        self._digits, self._tolerance = digits, tolerance
        self._evaluations = [self._evaluation(row) for row in rows]
        self._known: dict[int, list[_EquationValues]] = {}  # by state, the derived rows
        rng = random.Random(len(rows))
        self._accelerations = [rng.randint(-150, 150) for _ in u_dot]

    def of(self, equation: sp.Expr) -> Combination | None:
        """The coefficients of the rows at the first state; None if the equation is no linear combination of
        them in some state, or without states.
        """
        first, evaluation = None, self._evaluation(equation)
        for k in range(len(self._states)):
            found = self._at(evaluation, k)
            if found is None:
                return None
            first = found if first is None else first
        return first

    def _at(self, equation: Evaluation, k: int) -> Combination | None:
        with mpmath.workdps(self._digits):
            try:
                if k not in self._known:
                    self._known[k] = [self._values(row, self._states[k]) for row in self._evaluations]
                rows, published = self._known[k], self._values(equation, self._states[k])
                # T [M, r] = [E, s] in the least-squares sense
                columns = mpmath.matrix([row.line for row in rows]).T
                T, _ = mpmath.qr_solve(columns, mpmath.matrix(published.line))
            except (ArithmeticError, ValueError, TypeError, NameError):
                return None  # a pole, a function without a value there, or dependent rows
            # accelerations that were not used in T also show whether the equation is linear in them
            parts = [(t * row.value, abs(t) * row.size) for t, row in zip(T, rows, strict=True)]
            if not self._agree(published, rows, list(T)):
                return None
            error = abs(published.value - sum(value for value, _ in parts))
            if not error <= self._tolerance * (published.size + sum(size for _, size in parts)):
                return None
            small = ZERO * published.size
            return tuple(complex(t) if size > small else 0j for t, (_, size) in zip(T, parts, strict=True))

    def _agree(self, published: _EquationValues, rows: list[_EquationValues], T: list[Any]) -> bool:
        """Whether [E, s] = T [M, r] within the tolerance."""
        everything, weights = [published, *rows], [1, *T]
        sizes = [
            sum(abs(t) * x.sizes[j] for t, x in zip(weights, everything, strict=True))
            for j in range(len(published.line))
        ]
        return all(
            abs(number - sum(t * row.line[j] for t, row in zip(T, rows, strict=True)))
            <= self._tolerance * (sizes[j] + OF_ALL_TERMS * sum(sizes))
            for j, number in enumerate(published.line)
        )

    def _values(self, equation: Evaluation, state: Mapping[str, Any]) -> _EquationValues:
        symbols, terms = equation
        known = [_number(state[s.name], self._digits) for s in symbols]
        n = len(self._u_dot)
        at_rest = terms(*[0] * n, *known)
        # the terms of each acceleration, and those without
        parts = [
            [x - y for x, y in zip(terms(*unit, *known), at_rest, strict=True)]
            for unit in np.eye(n, dtype=int).tolist()
        ]
        parts.append([-x for x in at_rest])
        values = terms(*self._accelerations, *known)
        return _EquationValues(
            [sum(x) for x in parts], [sum(map(abs, x)) for x in parts], sum(values), sum(map(abs, values))
        )

    def _evaluation(self, equation: sp.Expr) -> Evaluation:
        symbols = sorted(free_symbols_in(equation).difference(self._u_dot), key=str)
        terms = sp.Add.make_args(equation)
        return symbols, sp.lambdify([*self._u_dot, *symbols], list(terms), modules="mpmath", cse=True)


def _number(value: Any, digits: int) -> Any:
    return mpmath.mpmathify(sp.N(value, digits) if isinstance(value, sp.Expr) else value)


def random_states(
    symbols: Sequence[sp.Symbol], units: Mapping[sp.Expr, Sequence[sp.Expr]], count: int
) -> list[dict[str, Any]]:
    """Random values of symbols by name, of both signs where a symbol may be negative.

    units: of vectors of length 1 one component and the others, as in `Ring`.
    """
    rng, found = random.Random(count), []
    for _ in range(count):
        values: dict[str, Any] = {}
        for s in sorted(symbols, key=str):
            sign = 1 if s.is_positive else rng.choice((1, -1))
            values[s.name] = sp.Rational(sign * rng.randint(50, 150), 101)
        for first, others in units.items():
            names = [s.name for s in (first, *others) if isinstance(s, sp.Symbol)]
            if len(names) == 1 + len(others):
                for name in names[1:]:
                    values[name] = values.get(name, sp.Integer(0)) / 4
                values[names[0]] = sp.sqrt(1 - sum(values[name] ** 2 for name in names[1:]))
        found.append(values)
    return found


def are_independent(combinations: Sequence[Combination]) -> bool:
    """Whether equations that are these combinations of independent rows are independent."""
    T = np.array([np.array(t) / max(map(abs, t), default=1) for t in combinations if any(t)])
    return len(T) == len(combinations) and np.linalg.matrix_rank(T, tol=ZERO) == len(T)
