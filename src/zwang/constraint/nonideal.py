"""Non-ideal constraints: the working part of a constraint's force, prescribed, and dependent on the size N of the whole.

The prescribed force is a law C(N), with N = |lambda| the size of the constraint's force as it is with C acting. Newton's method: with the law
taken as C_k + S (N - N_k), lambda = l_k + d (N - N_k) is affine in N, and the size follows from N = |lambda|: one positive root where
|d| < 1, and none, or two, where friction acts back on the constraint too strongly (Painleve). Laws affine in N, such as Coulomb's, take one
round; several laws, which may act on each other, are solved in turn until none changes. Source: seed 003, Eqs. 47-50; Udwadia, Kalaba (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.constraint.hard import nonideal_forces
from zwang.errors import WorkingForceError
from zwang.mechanism.constraints import NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    absolute,
    cond,
    divide,
    logical_and,
    logical_not,
    maximum,
    sqrt,
    value_is_constant,
    where,
    while_loop,
)

ROUNDS = 60
STEADY = 1e-12  # of sizes, or of the law against its tangent, relative
LARGEST = 1e50  # [N] a search that leads here has gone astray
FIRST = 1.0  # [N] where the search begins: a law may have no slope at N = 0

Forces = Callable[[Any], Any]


class _State(NamedTuple):
    """The sizes by law; how strongly each force acts back on itself, squared; rounds so far, done."""

    sizes: np.ndarray
    feedback: np.ndarray
    rounds: Any
    done: Any


class _Laws:
    """The laws of a mechanism in one state, and the rows' forces (of these names) under given working forces."""

    def __init__(
        self, mechanism: Mechanism, state: tuple[Any, Any, Any], names: Sequence[str], forces: Forces
    ) -> None:
        self.mechanism, self.state, self.forces = mechanism, state, forces
        laws = [c for c in mechanism.constraints if isinstance(c, NonIdeal)]
        self.constraints = list(dict.fromkeys(c.constraint for c in laws))
        self.rows = [[i for i, row in enumerate(names) if row == name] for name in self.constraints]

    def efforts(self, sizes: Any) -> np.ndarray:
        """C (nv,) at the sizes N of all constraints with a law."""
        q, v, t = self.state
        return nonideal_forces(self.mechanism, q, v, t, dict(zip(self.constraints, sizes, strict=True)))

    def tangent(self, sizes: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """C and its slope by the size k."""
        return derivative_along(self.efforts, sizes, [1 if i == k else 0 for i in range(len(sizes))])

    def next_size(self, sizes: Any, k: int) -> tuple[Any, Any, Any]:
        """A better size k, its feedback |d|^2, and by how much the law differs there from its tangent, relative."""
        C, S = self.tangent(sizes, k)
        l = np.asarray(self.forces(C))[self.rows[k]]
        d = np.asarray(self.forces(C + S))[self.rows[k]] - l
        l0, feedback = l - d * sizes[k], d @ d
        rest = where(feedback < 1, 1 - feedback, 1)
        along = l0 @ d
        root = divide(along + sqrt(along * along + rest * (l0 @ l0)), rest)
        size = where(feedback < 1, root, sqrt(l @ l))
        there = self.efforts(_replaced(sizes, k, size))
        bent = _largest(there - C - S * (size - sizes[k]))
        return size, feedback, divide(bent, maximum(_largest(there), 1e-300))


def solve_nonideal_forces(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    names: Sequence[str],
    forces_under: Forces,
    t: Any = 0,
    affine: bool = False,
) -> np.ndarray:
    """C (nv,) of all non-ideal constraints [N m or N]. `forces_under` gives all rows' forces, of these names, for a C.

    affine: whether those are affine in C, as those of exact equalities alone are. Raises WorkingForceError, naming the constraint, where no
    size of its force fits, or more than one (on floats; traced, the result is nan).
    """
    laws = _Laws(mechanism, (q, v, t), names, forces_under)
    count = len(laws.constraints)
    straight = affine and count == 1

    def wanted(s: _State) -> Any:
        sane = _largest(s.sizes) < LARGEST
        return logical_and(logical_and(logical_not(s.done), sane), s.rounds < ROUNDS)

    def improve(s: _State) -> _State:
        sizes, feedback, off = s.sizes, s.feedback, 0.0
        for k in range(count):
            size, back, bent = laws.next_size(sizes, k)
            changed = divide(absolute(size - sizes[k]), maximum(absolute(size), 1e-300))
            off = maximum(off, where(size > 0, bent if straight else changed, 0.0))
            sizes, feedback = _replaced(sizes, k, size), _replaced(feedback, k, back)
        return _State(sizes, feedback, s.rounds + 1, off <= STEADY)

    begin = _State(FIRST * np.ones(count), np.zeros(count), 0.0, 0.0 > 1.0)
    last = while_loop(wanted, improve, begin)
    return _checked(laws, last)


def _checked(laws: _Laws, last: _State) -> np.ndarray:
    """The working forces of what was found, nan where that is no solution."""
    fits = last.done
    for name, feedback in zip(laws.constraints, last.feedback, strict=True):
        if value_is_constant(feedback) and feedback >= 1:
            raise WorkingForceError(
                f"the non-ideal force of constraint {name!r} has no solution, or more than one, in this state: a unit of the constraint's force "
                f"brings back {float(np.sqrt(feedback)):.3g} of itself (Painleve); lower the friction, or give the constraint a softness"
            )
        fits = logical_and(fits, feedback < 1)
    if value_is_constant(fits) and not fits:
        raise WorkingForceError(
            f"no size of the forces of {', '.join(map(repr, laws.constraints))} was found that fits the laws of their non-ideal forces "
            f"in {ROUNDS} rounds; check that these laws are smooth in N, and that the friction is not too large (Painleve)"
        )
    C = laws.efforts(last.sizes)
    return cond(fits, lambda: C, lambda: np.full(len(C), np.nan)) if not value_is_constant(fits) else C


def _replaced(values: Any, k: int, value: Any) -> np.ndarray:
    return np.array([value if i == k else x for i, x in enumerate(values)])


def _largest(values: Any) -> Any:
    return reduce(maximum, [absolute(x) for x in values], 0.0)
