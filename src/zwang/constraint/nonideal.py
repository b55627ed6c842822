"""Non-ideal constraints: a prescribed constraint force that does work, and may depend on the magnitude N of
the whole constraint force.

The prescribed force is a law C(N), with N = |lambda| the magnitude of the constraint force while C acts.
Newton's method replaces the law by C_k + S (N - N_k), for which lambda = l_k + d (N - N_k) is affine in N;
the magnitude then follows from N = |lambda|, which has one positive root where |d| < 1. Where friction feeds
back on the constraint force too strongly there is no root or there are two (Painleve paradox). Laws affine
in N, such as Coulomb's, take one iteration; several laws, which may depend on each other, are solved in turn
until none changes. Source: Luchtenburg, Shah, Impelluso, "A projection-based derivation of the equations of
motion for the moving frame method for multi-body dynamics" (IMECE 2021-72324), Eqs. 47-50; Udwadia, Kalaba,
J. Appl. Mech. 69 (2002) 335.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.algebra.norms import by_precision, max_abs, norm, root_of_square
from zwang.constraint.hard import nonideal_forces
from zwang.errors import NonIdealForceError
from zwang.mechanism.constraints import NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    absolute,
    cond,
    divide,
    logical_and,
    logical_not,
    maximum,
    raise_if,
    where,
    while_loop,
)

ITERATIONS = 60  # of all sizes in turn; many are needed near a paradox only
TOLERANCE = 1e-12  # relative, of the sizes, or of an affine law against its tangent
SINGLE_TOLERANCE = 1e-4  # the same in single precision
LARGEST_FORCE = 1e50  # [N] above this the iteration has diverged
SMALLEST_FORCE = 1e-37  # [N], which single precision represents, too
INITIAL_FORCE = 1.0  # [N]; a law may have no derivative at N = 0

Forces = Callable[[Any], Any]


class _NonIdealState(NamedTuple):
    """The magnitudes N by law; the squared feedback |d|^2 of each force on itself; iterations; whether the
    method has converged.
    """

    sizes: np.ndarray
    feedback: np.ndarray
    iterations: Any
    done: Any


class _Laws:
    """The laws of a mechanism in one state, and the forces of the rows (of these names) under given
    non-ideal forces.
    """

    def __init__(
        self, mechanism: Mechanism, state: tuple[Any, Any, Any], names: Sequence[str], forces: Forces
    ) -> None:
        self.mechanism, self.state, self.forces = mechanism, state, forces
        laws = [c for c in mechanism.constraints if isinstance(c, NonIdeal)]
        self.constraints = list(dict.fromkeys(c.constraint for c in laws))
        self.rows = [[i for i, row in enumerate(names) if row == name] for name in self.constraints]

    def force(self, sizes: Any) -> np.ndarray:
        """C (nv,) for the magnitudes N of all constraints with a law."""
        q, v, t = self.state
        return nonideal_forces(self.mechanism, q, v, t, dict(zip(self.constraints, sizes, strict=True)))

    def tangent(self, sizes: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """C and its derivative with respect to the magnitude k."""
        return derivative_along(self.force, sizes, [1 if i == k else 0 for i in range(len(sizes))])

    def next_size(self, sizes: Any, k: int) -> tuple[Any, Any, Any]:
        """Newton iterate of the magnitude k, its feedback |d|^2, and the relative difference of the law from
        its tangent there.
        """
        C, S = self.tangent(sizes, k)
        l = np.asarray(self.forces(C))[self.rows[k]]
        d = np.asarray(self.forces(C + S))[self.rows[k]] - l
        l0, feedback = l - d * sizes[k], d @ d
        rest = where(feedback < 1, 1 - feedback, 1)
        along = l0 @ d
        root = divide(along + root_of_square(along * along + rest * (l0 @ l0)), rest)
        size = where(feedback < 1, root, norm(l))
        law = self.force(_with_entry(sizes, k, size))
        nonlinearity = max_abs(law - C - S * (size - sizes[k]))
        return size, feedback, divide(nonlinearity, maximum(max_abs(law), SMALLEST_FORCE))


def solve_nonideal_forces(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    names: Sequence[str],
    forces_given: Forces,
    t: Any = 0,
    affine: bool = False,
) -> np.ndarray:
    """C (nv,) of all non-ideal constraints [N m or N]. `forces_given` gives all rows' forces, of these
    names, for a C.

    affine: whether those are affine in C, as those of exact equalities alone are. Raises WorkingForceError,
    naming the constraint, where no size of its force is_solution, or more than one (on floats; traced, the
    result is nan).
    """
    laws = _Laws(mechanism, (q, v, t), names, forces_given)
    count = len(laws.constraints)
    is_single_affine = affine and count == 1

    def unfinished(s: _NonIdealState) -> Any:
        bounded_sizes = max_abs(s.sizes) < LARGEST_FORCE
        return logical_and(logical_and(logical_not(s.done), bounded_sizes), s.iterations < ITERATIONS)

    def iterate(s: _NonIdealState) -> _NonIdealState:
        sizes, feedback, error = s.sizes, s.feedback, 0.0
        for k in range(count):
            size, own_feedback, nonlinearity = laws.next_size(sizes, k)
            relative_change = divide(absolute(size - sizes[k]), maximum(absolute(size), SMALLEST_FORCE))
            own_error = where(size > 0, nonlinearity if is_single_affine else relative_change, 0.0)
            tolerance = by_precision(size, TOLERANCE, SINGLE_TOLERANCE)
            error = maximum(error, own_error / tolerance)
            sizes, feedback = _with_entry(sizes, k, size), _with_entry(feedback, k, own_feedback)
        return _NonIdealState(sizes, feedback, s.iterations + 1, error <= 1)

    initial = _NonIdealState(INITIAL_FORCE * np.ones(count), np.zeros(count), 0.0, 0.0 > 1.0)
    last = while_loop(unfinished, iterate, initial)
    return _checked(laws, last)


def _checked(laws: _Laws, last: _NonIdealState) -> np.ndarray:
    """The non-ideal forces found, nan where they are no solution. On floats it raises NonIdealForceError
    instead: for a law that is not a number in this state, as mu N v / |v| is not at rest, for a law whose
    feedback is one or more, and where the iteration has not converged.
    """
    names = ", ".join(map(repr, laws.constraints))
    raise_if(
        logical_not(max_abs(laws.force(INITIAL_FORCE * np.ones(len(laws.constraints)))) < np.inf),
        lambda: NonIdealForceError(
            f"the non-ideal force of {names} is not a number in this state: a friction law such as "
            "-mu N v/|v| has no value at rest; give zw.CoulombFriction in its place, which sticks there"
        ),
    )
    worst = reduce(maximum, last.feedback)
    raise_if(
        worst >= 1,
        lambda: NonIdealForceError(
            f"the non-ideal force of constraint {laws.constraints[int(np.argmax(last.feedback))]!r} has no "
            "solution, or more than one, in this state: the feedback of the constraint force on itself is "
            f"{float(np.sqrt(worst)):.3g} (Painleve paradox); lower the friction, or give the constraint a "
            "softness"
        ),
    )
    is_solution = logical_and(last.done, worst < 1)
    raise_if(
        logical_not(is_solution),
        lambda: NonIdealForceError(
            f"the non-ideal forces of {names} were not found in {ITERATIONS} iterations; check that their "
            "laws are smooth in N, and that the friction is not too large (Painleve paradox)"
        ),
    )
    C = laws.force(last.sizes)
    return cond(is_solution, lambda: C, lambda: np.full(len(C), np.nan))


def _with_entry(values: Any, k: int, value: Any) -> np.ndarray:
    """The values with entry k replaced."""
    return np.array([value if i == k else x for i, x in enumerate(values)])
