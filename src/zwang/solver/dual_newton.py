"""Newton's method on rows that are listed as they act: the same iterates as `newton`, written in the rows' own numbers.

With A = J M^-1 J^T and y0 = J a_free - aref, all that Newton's method comes by is a = a_free + M^-1 J^T f with y = y0 + A f. Rows that answer along
their slope, f = -D y, are found from (A + 1/D) f = -y0 of these rows alone: M + J^T D J by Woodbury's identity. So a world's work grows with
the rows that act in it, not with those that might. Source: seed 002's reduced primal; Todorov (ICRA 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.factorization import ltdl, solve_transposed_unit_lower, solve_unit_lower
from zwang.constraint.compacted_rows import CompactedRows, decode_signs
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    ActiveIndices,
    MutableArray,
    absolute,
    clip,
    cond,
    empty,
    equal,
    fori_loop,
    is_zero,
    lane_maximum,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    table,
    where,
    while_loop,
    zeros,
)
from zwang.solver.line_search import exact_step
from zwang.solver.solution import Solution, is_single_precision

TOLERANCE = 1e-11
ITERATIONS = 100
LINE_SEARCH = 0.01
ROUNDING = 1e-13  # what sums may be off by, relative to their parts
STANDSTILL = 1e-13  # a change of the forces this small, relative to the largest, is rounding
COARSE, STALLS = 1e-5, 3  # and so is, in single precision, one this small for so many times
SETTLED = 1e-3  # forces that still change by more when the iterations are over are not to be used
LOW, SLOPE, HIGH = 1.0, 2.0, 3.0  # how a row answers: by its lower bound, along its slope, by its upper bound


class _Problem(NamedTuple):
    """What does not change, of each world's own rows: how many are gone through, also by blocks of them; X = L^-T J^T (size, nv) of
    M = L^T D L; A = J M^-1 J^T; y0 (size,), slope D and the bounds."""

    n: Any
    blocks: Any
    X: MutableArray
    A: MutableArray
    y0: MutableArray
    D: MutableArray
    low: MutableArray | None
    high: MutableArray | None

    @property
    def size(self) -> int:
        """Rows for which there is room, a multiple of a block."""
        return self.D.shape[0]

    def answer(self, k: Any, y: Any) -> Any:
        """How row k answers where it misses by y."""
        return _answer(self.D[k], y, *self.bounds(k))

    def force(self, k: Any, y: Any) -> Any:
        """The force of row k where it misses by y."""
        return clip(-self.D[k] * y, *self.bounds(k))

    def bounds(self, k: Any) -> tuple[Any, Any]:
        """Between which the force of row k is."""
        return (0.0, np.inf) if self.low is None or self.high is None else (self.low[k], self.high[k])

    def held(self, k: Any, answer: Any) -> Any:
        """The force of row k where it does not answer along its slope."""
        low, high = self.bounds(k)
        return low if self.low is None else where(equal(answer, LOW), low, high)

    def each(self, body: Any, init: Any) -> Any:
        """The carry after body(k, carry) of all rows."""
        return fori_loop(0, self.n, body, init)


class _State(NamedTuple):
    """Forces f, y = y0 + A f, how rows answer (size,), iterations, by how much the forces are wrong, stalls so far, whether there is nothing left to do, or little."""

    f: MutableArray
    y: MutableArray
    answer: MutableArray
    iterations: Any
    left: Any
    stalls: Any
    done: Any
    settled: Any


def dual_newton(problem: GaussProblem, listed: CompactedRows) -> Solution:
    """The accelerations that make Z(a) + sum s_i(J_i a - aref_i) least, and how all rows answer.

    The forces of the solution are not told.
    """
    factors = ltdl(problem.M, problem.parents)
    p, answer = _prepared(problem, listed, factors)
    f = p.each(lambda k, f: f.set(k, 0.0), empty(p.size))
    y = p.each(lambda k, y: y.set(k, p.y0[k]), empty(p.size))
    idle = listed.count < 1

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    last = while_loop(wanted, lambda s: _improved(p, s), _State(f, y, answer, 0.0, 0.0, 0.0, idle, idle))

    def pull(k: Any, g: np.ndarray) -> np.ndarray:
        return g + last.f[k] * _row(p.X, k)

    L, reciprocals = factors
    pulled = p.each(pull, np.zeros(len(problem.a_free)))
    a = problem.a_free + solve_unit_lower(L, problem.parents, pulled * np.array(reciprocals))

    def note(k: Any, codes: MutableArray) -> MutableArray:
        inside = 1.0 * k < listed.count
        return cond(inside, lambda c: c.scatter(listed.numbers[k], last.answer[k]), lambda c: c, codes)

    codes = p.each(note, zeros(listed.size))
    unsettled = logical_not(logical_or(last.done, last.settled))
    return Solution(a, np.zeros(0), last.iterations, last.done, unsettled=unsettled, row_status=codes)


def _prepared(problem: GaussProblem, listed: CompactedRows, factors: Any) -> tuple[_Problem, MutableArray]:
    """The problem in the rows' own numbers, and how rows answer at first."""
    n = lane_maximum(listed.count, listed.size)
    blocks, pairs = (table([-(-k // of) for k in range(listed.size + 1)])[n] for of in (SIDE, 2))
    X, numbers, answer = _entered(problem, listed, factors[0], n)
    A = _products(X, np.array(factors[1]), pairs)
    low, high = numbers.get("low"), numbers.get("high")
    return _Problem(n, blocks, X, A, numbers["y0"], numbers["D"], low, high), answer


def _entered(
    problem: GaussProblem, listed: CompactedRows, L: Any, n: Any
) -> tuple[MutableArray, dict[str, MutableArray], MutableArray]:
    """X, y0, D and bounds of all rows; and how they answer: as the codes say, or, where they say nothing, at the free accelerations."""
    room, nv = -(-listed.size // SIDE) * SIDE, len(problem.a_free)
    names = ["y0", "D", *(("low", "high") if listed.bounded else ())]

    def enter(k: Any, carry: Any) -> Any:
        X, numbers, answer = carry
        row = listed.row(k)
        J = np.array(decode_signs(row.words, nv)) * (row.w @ listed.S)
        for i, other in listed.others.items():
            mine = logical_and(1.0 * k < listed.count, equal(listed.numbers[k], i))
            J = np.array([x if is_zero(o) else where(mine, o, x) for x, o in zip(J, other, strict=True)])
        for j, x in enumerate(solve_transposed_unit_lower(L, problem.parents, J)):
            X = X.set((k, j), x)
        y0, code = J @ problem.a_free - row.aref, listed.codes[k]
        values = {"y0": y0, "D": row.D, "low": row.low, "high": row.high}
        numbers = {name: numbers[name].set(k, values[name]) for name in names}
        return X, numbers, answer.set(k, where(code > 0, code, _answer(row.D, y0, row.low, row.high)))

    blank = {name: empty(room) for name in names}
    return fori_loop(0, n, enter, (empty((room, nv)), blank, empty(room)))


def _products(X: MutableArray, reciprocals: np.ndarray, pairs: Any) -> MutableArray:
    """A = X D^-1 X^T, by so many pairs of rows, so that what two are multiplied with is read once."""
    room = X.shape[0]

    def products(pair: Any, A: MutableArray) -> MutableArray:
        rows = [2 * pair, 2 * pair + 1]
        both = [_row(X, k) * reciprocals for k in rows]

        def product(l: Any, A: MutableArray) -> MutableArray:
            other = _row(X, l)
            for k, x in zip(rows, both, strict=True):
                a = sum(x[c::3] @ other[c::3] for c in range(3))  # three sums side by side
                A = A.set((k, l), a).set((l, k), a)
            return A

        return fori_loop(0, 2 * pair + 2, product, A)

    return fori_loop(0, pairs, products, empty((room, room)))


def _answer(D: Any, y: Any, low: Any, high: Any) -> Any:
    """How a row answers that misses by y."""
    return where(-D * y <= low, LOW, where(-D * y < high, SLOPE, HIGH))


def _row(X: MutableArray, k: Any) -> np.ndarray:
    return np.array([X[k, j] for j in range(X.shape[1])])


def _improved(p: _Problem, s: _State) -> _State:
    """One iteration: the forces if rows go on answering so, a step towards them, and how rows answer there."""
    f, y = _step(p, s.answer)

    def compare(k: Any, same: Any) -> Any:
        return logical_and(same, equal(p.answer(k, y[k]), s.answer[k]))

    same = p.each(compare, 1.0 * p.n >= 0.0)
    full = logical_or(same, s.iterations < 1)
    t = cond(full, lambda: 1.0, lambda: _searched(p, s, f, y))

    def advance(k: Any, carry: Any) -> Any:
        f_now, y_now, answer, size, left, top = carry
        change, turn = t * (f[k] - f_now[k]), t * (y[k] - y_now[k])
        force, miss = where(full, f[k], f_now[k] + change), where(full, y[k], y_now[k] + turn)
        wrong = absolute(force - p.force(k, miss))
        f_now, y_now = f_now.set(k, force), y_now.set(k, miss)
        answer = answer.set(k, p.answer(k, miss))
        return (
            f_now,
            y_now,
            answer,
            maximum(size, absolute(change)),
            maximum(left, wrong),
            maximum(top, absolute(force)),
        )

    f_now, y_now, answer, size, left, top = p.each(advance, (s.f, s.y, s.answer, 0.0, 0.0, 0.0))
    later = s.iterations >= 1  # the first change is from no force to what was remembered, and tells nothing
    stuck = logical_and(later, logical_and(is_single_precision(top), left > s.left / 2))
    stalls = s.stalls + where(logical_and(stuck, size <= COARSE * top), 1.0, 0.0)
    still = logical_and(later, logical_or(size <= STANDSTILL * top, stalls >= STALLS))
    small = logical_or(left <= TOLERANCE * top, still)
    return _State(
        f_now, y_now, answer, s.iterations + 1, left, stalls, logical_or(same, small), size <= SETTLED * top
    )


def _step(p: _Problem, answer: MutableArray) -> tuple[MutableArray, MutableArray]:
    """f and y = y0 + A f (size,) of rows that answer so: (A + 1/D) f = -y0 - A f_held among those along their slope.

    Gone through are the rows that do so in some world; in the others a row stands alone.
    """
    size = p.size

    def split(k: Any, carry: Any) -> Any:
        free, f = carry
        on = equal(answer[k], SLOPE)
        return free.set(k, where(on, 1.0, 0.0)), f.set(k, where(on, 0.0, p.held(k, answer[k])))

    free, f = p.each(split, (empty(size), empty(size)))
    residual = p.y0 if p.low is None else _added(p, p.y0, p.n, lambda k: (k, f[k]))
    chosen = ActiveIndices(free, p.n)
    tiles = table([-(-k // SIDE) for k in range(size + 1)])[chosen.count]
    on = fori_loop(0, chosen.count, lambda i, on: on.set(i, free[chosen[i]]), empty(size))
    on = fori_loop(chosen.count, SIDE * tiles, lambda i, on: on.set(i, 0.0), on)

    def entry(i: Any, j: Any) -> Any:
        if i is j:
            k = chosen[i]
            return where(on[i] > 0, p.A[k, k] + 1 / where(on[i] > 0, p.D[k], 1.0), 1.0)
        return where(logical_and(on[i] > 0, on[j] > 0), p.A[chosen[i], chosen[j]], 0.0)

    def right(i: Any) -> Any:
        return where(on[i] > 0, -residual[chosen[i]], 0.0)

    x = solve_dynamic_ldlt(tiles, size // SIDE, entry, right)
    y = _added(p, residual, SIDE * tiles, lambda i: (chosen[i], x[i]))

    def spread(i: Any, f: MutableArray) -> MutableArray:
        k = chosen[i]
        return f.set(k, where(on[i] > 0, x[i], f[k]))

    return fori_loop(0, chosen.count, spread, f), y


def _added(p: _Problem, y: MutableArray, number: Any, part: Callable[[Any], tuple[Any, Any]]) -> MutableArray:
    """y + A f (size,) for f with so many parts (row, value)."""

    def block(b: Any, total: MutableArray) -> MutableArray:
        rows = [SIDE * b + c for c in range(SIDE)]

        def add(i: Any, sums: Any) -> Any:
            column, value = part(i)
            return [x + p.A[k, column] * value for x, k in zip(sums, rows, strict=True)]

        for k, x in zip(rows, fori_loop(0, number, add, [y[k] for k in rows]), strict=True):
            total = total.set(k, x)
        return total

    return fori_loop(0, p.blocks, block, empty(p.size))


def _searched(p: _Problem, s: _State, f: MutableArray, y: MutableArray) -> Any:
    """How far to go from s towards forces f and y to where the cost is least."""

    def slope_at(t: Any) -> tuple[Any, Any]:
        def add(k: Any, sums: Any) -> Any:
            rate, turn = f[k] - s.f[k], y[k] - s.y[k]
            miss = s.y[k] + t * turn
            stiff = where(equal(p.answer(k, miss), SLOPE), p.D[k] * turn * turn, 0.0)
            return sums[0] + (s.f[k] + t * rate - p.force(k, miss)) * turn, sums[1] + rate * turn + stiff

        return p.each(add, (0.0, 0.0))

    def parts(k: Any, sums: Any) -> Any:
        turn = y[k] - s.y[k]
        return sums[0] + (s.f[k] - p.force(k, s.y[k])) * turn, sums[1] + absolute(s.f[k] * turn)

    downhill, size = p.each(parts, (0.0, 0.0))
    return exact_step(slope_at, downhill, 1.0, LINE_SEARCH, ROUNDING * size)
