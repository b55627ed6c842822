"""Essential speeds: v = V u + v0, from constraints and a choice of speeds; the embedding of seed 003, Eq. 40."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.dual import rated
from zwang.constraint.essential import Speed, speed_row
from zwang.constraint.exact import all_first_order, held_rows, is_exact
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics.configuration import (
    configuration_rate,
    integrate_configuration,
    normalized_configuration,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.restrictions import PointSpeed
from zwang.scalar import are_constant
from zwang.symbolic.forms import mapped, scalars_for
from zwang.symbolic.polynomial import Polynomial
from zwang.symbolic.reading import substituted

RANK = 1e-9
TIME = 0.37  # [s], at which constraints that depend on it are looked at
SIZES = (1.0, 0.6, -1.3)  # of the steps away from home
STEPS, LONGEST, CLOSED = 60, 0.3, 1e-13  # of the assembly: steps, the longest, and gaps that are none


@dataclass(frozen=True, eq=False)
class Embedding:
    """v = V u + v0 (nv,), and v_rate, the rate of v at constant u; A v + a = 0 are the constraints' rows kept, by name.

    all_names: of all rows, those that depend on others among them; kept: the numbers of the rows kept.
    """

    names: tuple[str, ...]
    all_names: tuple[str, ...]
    kept: tuple[int, ...]
    A: np.ndarray
    V: np.ndarray
    v0: np.ndarray
    v: np.ndarray
    v_rate: np.ndarray
    _again: Any

    @cached_property
    def V_rate(self) -> np.ndarray:
        """dV/dt, column by column."""
        return self._again()

    @property
    def trivial(self) -> bool:
        """Are the essential speeds the mechanism's own?"""
        return not self.names and len(self.V) == self.V.shape[1]

    def multipliers(self, excess: np.ndarray) -> np.ndarray:
        """lambda of A^T lambda = excess."""
        gram = self.A @ self.A.T
        order = pivots(np.array([[_sample(x) for x in row] for row in gram]))
        return solve(gram, (self.A @ excess).reshape(-1, 1), order)[:, 0]


def _sample(x: Any) -> float:
    return 0.0 if type(x) is int and x == 0 else 1.0


Twin = tuple[Mechanism, np.ndarray]


def speed_rows(mechanism: Mechanism, speeds: Sequence[Speed] | None, twin: Twin) -> list[Speed]:
    """The chosen speeds, checked: as many as there are degrees of freedom, and independent at its `numeric_twin`.

    Raises UnknownNameError or DescriptionError.
    """
    if speeds is None and not any(_is_restricting(c) for c in mechanism.constraints):
        return list(mechanism.speed_names)
    numbers, q = twin
    A = numeric_rows(numbers, q)
    if _rank(A) == mechanism.nv:
        names = ", ".join(repr(c.name) for c in mechanism.constraints if is_exact(c))
        raise DescriptionError(
            f"nothing of mechanism {mechanism.name!r} can move: its constraints ({names}) have {_rank(A)} independent rows for {mechanism.nv} "
            "speeds near its home; leave one out, or, if it is over-constrained and moves elsewhere, give `home` there"
        )
    if speeds is None:
        return [mechanism.speed_names[k] for k in independent_speeds(A)]
    if isinstance(speeds, str | PointSpeed):
        raise DescriptionError(f"speeds is {speeds!r}; give a list of names of speeds and PointSpeeds")
    chosen = [_checked(mechanism, s) for s in speeds]
    S = np.array([speed_row(numbers, s, q) for s in (_numeric(s) for s in chosen)], dtype=float).reshape(
        -1, mechanism.nv
    )
    rank, both = _rank(A), _rank(np.concatenate([A, S]))
    free = mechanism.nv - rank
    if len(chosen) != free:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {free} degrees of freedom in its speeds ({mechanism.nv} speeds, {rank} independent "
            f"constraint rows) but {len(chosen)} essential speeds were given; give {free}, such as "
            f"{[mechanism.speed_names[k] for k in independent_speeds(A)]}"
        )
    if both < mechanism.nv:
        raise DescriptionError(
            f"the essential speeds {[_name(s) for s in chosen]} are dependent on each other or fixed by the constraints; "
            f"choose others, such as {[mechanism.speed_names[k] for k in independent_speeds(A)]}"
        )
    return chosen


def _is_restricting(c: Any) -> bool:
    return not hasattr(c, "forces") and getattr(c, "softness", None) is None


def _name(speed: Speed) -> str:
    return speed if isinstance(speed, str) else speed.name


def _checked(mechanism: Mechanism, speed: Any) -> Speed:
    if isinstance(speed, PointSpeed):
        mechanism.tree.place(speed.body)
        return speed
    if speed not in mechanism.speed_names:
        raise UnknownNameError("speed", speed, mechanism.speed_names)
    return speed


_VALUES = [0.93, 1.07, 0.98, 1.03, 0.91, 1.01, 1.09, 0.96]


def value_near(expression: Any) -> float:
    """A number for an expression, its symbols at values near 1 so that inertias can be."""
    return float(
        substituted(expression, {s: _VALUES[sum(map(ord, s.name)) % 8] for s in expression.free_symbols})
    )


def _numeric(speed: Speed) -> Speed:
    return speed if isinstance(speed, str) else mapped(speed, value_near)


def numeric_twin(mechanism: Mechanism) -> Twin:
    """The mechanism with numbers for its symbols, and a configuration near home that is nothing special.

    Where the constraints can be assembled there, it is one that they allow, so that loops that are over-constrained are
    seen to move; of several the one with the most independent rows, as positions may be singular.
    """
    massless = tuple(
        replace(body, mass=1, inertia=(1, 1, 1)) for body in mechanism.bodies
    )  # no part in kinematics
    numbers = scalars_for(mechanism.replace(bodies=massless), value_near)
    generic = _near_home(numbers, 1.0)
    if not any(is_exact(c) for c in numbers.constraints):
        return numbers, generic
    assembled = [_assembled(numbers, _near_home(numbers, size)) for size in SIZES]
    allowed = [q for q in assembled if q is not None]
    return numbers, max(allowed, key=lambda q: _rank(numeric_rows(numbers, q)), default=generic)


def _near_home(numbers: Mechanism, size: float) -> np.ndarray:
    q = np.array([float(x) for x in (numbers.home or numbers.neutral)], dtype=float)
    for joint in numbers.joints:
        for k, part in zip(range(joint.q.start, joint.q.stop), joint.joint.coordinates, strict=True):
            q[k] += 0.0 if part == "qw" else size * (0.11 + 0.037 * ((7 * k) % 5))
    return normalized_configuration(numbers.tree, q).astype(float)


def _assembled(numbers: Mechanism, q: np.ndarray) -> np.ndarray | None:
    """The configuration on the constraints that Newton's steps of least size reach from q; None where they reach none."""
    for _ in range(STEPS):
        A, _, gaps = (np.asarray(x, dtype=float) for x in held_rows(numbers, q, TIME))
        if not (np.isfinite(A).all() and np.isfinite(gaps).all()):
            return None
        if np.abs(gaps).max(initial=0.0) < CLOSED:
            return q
        step = -np.linalg.pinv(A, rcond=1e-10) @ gaps
        size = np.abs(step).max()
        q = integrate_configuration(numbers.tree, q, step * min(1.0, LONGEST / max(size, LONGEST))).astype(
            float
        )
    return None


def numeric_rows(numbers: Mechanism, q: np.ndarray) -> np.ndarray:
    """A (k, nv) of all exact constraints, in numbers."""
    if not any(is_exact(c) for c in numbers.constraints):
        return np.zeros((0, numbers.nv))
    return np.array(held_rows(numbers, q, TIME)[0], dtype=float)


def _rank(A: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(A, tol=RANK * max(1.0, np.abs(A).max(initial=0)))) if A.size else 0


def independent_speeds(A: np.ndarray) -> list[int]:
    """The speeds that stay free, in order: those that a pivoted elimination of A leaves."""
    R = A.copy()
    dependent: list[int] = []
    while R.size and np.abs(R).max() > RANK:
        i, j = np.unravel_index(np.argmax(np.abs(R)), R.shape)
        row = R[i] / R[i, j]
        R = np.delete(R - np.outer(R[:, j], row), i, axis=0)
        dependent.append(int(j))
    return [k for k in range(A.shape[1]) if k not in dependent]


def independent_rows(A: np.ndarray) -> list[int]:
    """The rows of A that are independent, the first of those that depend on each other."""
    kept: list[int] = []
    for i in range(len(A)):
        if _rank(A[[*kept, i]]) > len(kept):
            kept.append(i)
    return kept


def embedding(
    mechanism: Mechanism,
    twin: tuple[Mechanism, np.ndarray, list[Speed]],
    q: Any,
    u: Any,
    t: Any,
    speeds: list[Speed],
) -> Embedding:
    """V, v0 and v_rate, from A v + a = 0, S v = u and their derivatives, on scalars of any reading."""
    nv = mechanism.nv
    numbers, q_near, speeds_near = twin
    A_near = numeric_rows(numbers, q_near)
    kept = independent_rows(A_near)
    if not kept and all(isinstance(s, str) for s in speeds):
        unit = np.eye(nv, dtype=int)
        zero = np.zeros(nv, int)
        return Embedding(
            (), (), (), np.zeros((0, nv), int), unit, zero, np.asarray(u), zero, lambda: 0 * unit
        )
    K_near = np.concatenate(
        [A_near[kept], *[speed_row(numbers, s, q_near).reshape(1, -1) for s in speeds_near]]
    ).astype(float)
    order = pivots(K_near)
    known = all_first_order(mechanism, q, np.zeros(nv, int), t)
    k, m = len(kept), len(speeds)

    def stacked(q: Any, t: Any) -> np.ndarray:
        A = all_first_order(mechanism, q, np.zeros(nv, int), t).A[kept] if k else np.zeros((0, nv), int)
        return np.concatenate([A, *[speed_row(mechanism, s, q).reshape(1, -1) for s in speeds]])

    K = np.concatenate([known.A[kept], *[speed_row(mechanism, s, q).reshape(1, -1) for s in speeds]])
    right = np.zeros((k + m, m + 1), int).astype(object)
    right[k:, :m] = np.eye(m, dtype=int)
    right[:k, m] = -known.a[kept]
    solved = solve(K, right, order)
    V, v0 = solved[:, :m], solved[:, m]
    v = V @ np.asarray(u) + v0
    rates = np.array([*configuration_rate(mechanism.tree, q, v), 1], dtype=object)
    b = all_first_order(mechanism, q, v, t).b[kept] if k else np.zeros(0, int)
    _, S_rate = rated(
        lambda x: np.array([speed_row(mechanism, s, x[:-1]) for s in speeds], dtype=object) @ v,
        [*q, t],
        rates,
    )
    v_rate = solve(K, np.concatenate([b, -S_rate]).reshape(-1, 1), order)[:, 0]

    def V_rate() -> np.ndarray:
        """From K V = (0; 1): K V_dot = -K_dot V."""
        _, K_rate = rated(lambda x: stacked(x[:-1], x[-1]), [*q, t], rates)
        return solve(K, -(K_rate @ V), order)

    names = tuple(known.names[i] for i in kept)
    return Embedding(names, known.names, tuple(kept), known.A[kept], V, v0, v, v_rate, V_rate)


def pivots(K: np.ndarray) -> list[tuple[int, int]]:
    """An order of pivots (row, column) of a numeric matrix in which none is small: complete pivoting."""
    R = np.array(K, dtype=float)
    order = []
    for _ in range(len(R)):
        i, j = (int(x) for x in np.unravel_index(np.argmax(np.abs(R)), R.shape))
        if abs(R[i, j]) < RANK:
            break
        order.append((i, j))
        R = R - np.outer(R[:, j], R[i]) / R[i, j]
        R[i], R[:, j] = 0, 0
    return order


def solve(K: np.ndarray, right: np.ndarray, order: list[tuple[int, int]]) -> np.ndarray:
    """X of K X = right on scalars: plain pivots first, what is left by determinants (polynomials) or in the given order."""
    K, X = np.array(K, dtype=object), np.array(right, dtype=object)
    n = len(K)
    rows, columns, placed = set(range(n)), set(range(n)), {}
    while (found := _plain_pivot(K, rows, columns)) is not None:
        _eliminate(K, X, *found, n)
        placed[found[1]] = found[0]
        rows.discard(found[0])
        columns.discard(found[1])
    rest_rows, rest_columns = sorted(rows), sorted(columns)
    if rest_rows and any(type(x) is Polynomial for x in K[np.ix_(rest_rows, rest_columns)].flat):
        return _with_determinants(K, X, placed, rest_rows, rest_columns)
    for i, j in _order_left(order, rows, columns):
        _eliminate(K, X, i, j, n)
        placed[j] = i
    return np.array([X[placed[j]] for j in range(n)], dtype=object)


def _order_left(order: list[tuple[int, int]], rows: set[int], columns: set[int]) -> list[tuple[int, int]]:
    """The given pivots on what is left; where a row or column is gone, the others are paired."""
    left = [(i, j) for i, j in order if i in rows and j in columns]
    free_rows = sorted(rows - {i for i, _ in left})
    free_columns = sorted(columns - {j for _, j in left})
    return left + list(zip(free_rows, free_columns, strict=True))


def _plain_pivot(K: np.ndarray, rows: set[int], columns: set[int]) -> tuple[int, int] | None:
    """A pivot that is a number or a product of parameters: dividing by it makes nothing worse."""
    best = None
    for i in sorted(rows):
        filled = sum(1 for j in columns if not _is_zero(K[i, j]))
        for j in sorted(columns):
            if _is_plain(K[i, j]) and (best is None or filled < best[0]):
                best = (filled, i, j)
    return None if best is None else best[1:]


def _is_zero(x: Any) -> bool:
    if type(x) is Polynomial:
        return not x.terms
    return are_constant(x) and x == 0


def _is_plain(x: Any) -> bool:
    if type(x) is Polynomial:
        ring = x.ring
        return len(x.terms) == 1 and all(
            ring.is_atom(n) and ring.generators[n][1].is_nonzero
            for n, _ in ring.exponents(next(iter(x.terms)))
        )
    return are_constant(x) and abs(x) > RANK


def _eliminate(K: np.ndarray, X: np.ndarray, i: int, j: int, n: int) -> None:
    pivot = K[i, j]
    if not (are_constant(pivot) and pivot == 1):
        K[i] = [0 if _is_zero(x) else x / pivot for x in K[i]]
        X[i] = [0 if _is_zero(x) else x / pivot for x in X[i]]
    for other in range(n):
        factor = K[other, j]
        if other == i or _is_zero(factor):
            continue
        K[other] = [x if _is_zero(y) else x - factor * y for x, y in zip(K[other], K[i], strict=True)]
        K[other, j] = 0
        X[other] = [x if _is_zero(y) else x - factor * y for x, y in zip(X[other], X[i], strict=True)]


def _with_determinants(
    K: np.ndarray, X: np.ndarray, placed: dict[int, int], rows: list[int], columns: list[int]
) -> np.ndarray:
    """The rest by Cramer's rule, then the eliminated ones from it."""
    n, p = len(K), len(rows)
    block = K[np.ix_(rows, columns)]
    determinant = _determinant(block, tuple(range(p)), {})
    if _is_zero(determinant):
        raise DescriptionError("the essential speeds are dependent everywhere; choose others")
    solution: dict[int, np.ndarray] = {}
    for position, j in enumerate(columns):
        values = []
        for c in range(X.shape[1]):
            replaced = block.copy()
            replaced[:, position] = X[rows, c]
            numerator = _determinant(replaced, tuple(range(p)), {})
            values.append(0 if _is_zero(numerator) else numerator / determinant)
        solution[j] = np.array(values, dtype=object)
    for j, i in placed.items():
        x = X[i]
        for other in columns:
            if not _is_zero(K[i, other]):
                x = x - K[i, other] * solution[other]
        solution[j] = x
    return np.array([solution[j] for j in range(n)], dtype=object)


def _determinant(A: np.ndarray, columns: tuple[int, ...], known: dict[tuple[int, ...], Any]) -> Any:
    """By expansion along the first row, minors kept."""
    if not columns:
        return 1
    if columns in known:
        return known[columns]
    row, total = len(A) - len(columns), 0
    for k, j in enumerate(columns):
        if _is_zero(A[row, j]):
            continue
        minor = A[row, j] * _determinant(A, columns[:k] + columns[k + 1 :], known)
        total = total + minor if k % 2 == 0 else total - minor
    known[columns] = total
    return total
