"""Formulas of constraints whose gradient vanishes where they hold, such as z^2 = 0, before a derivation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.constraint.hard import hard_constraints, velocity_level_rows_at
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.constraints import Holonomic
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.numeric_probe import TIME, NumericProbe, assembled, random_configurations, relative_rows

SMALL = 1e-2  # of a gradient relative to those at random configurations, below which it is examined
DISPLACEMENT = 2e-4  # from a root, relative to large ones, where the gradients are compared
VANISHING = 3e-4  # of a gradient relative to that at the displacement; rounding moves a double root by 1e-8
ITERATIONS = 40  # that reduce the distance to a double root by 1e12, and to a fourfold one by 1e5
RANK = 1e-10  # singular values of dependent rows, relative to the largest
IMPLIED = 1e-9  # violation of a formula that others imply, relative to its gradient


def check_gradients(probe: NumericProbe) -> None:
    """The gradients of all formulas are not zero where the hard constraints hold.

    At a multiple root the gradient is zero, and nothing determines the force of the constraint. Newton's
    method converges linearly there, so that the gradient of an approximate root is small. Formulas that the
    other constraints imply may have such roots, since their rows are left out.
    Raises DescriptionError, naming the constraint.
    """
    numbers, q, _ = probe
    formulas = [c for c in hard_constraints(numbers) if isinstance(c, Holonomic)]
    if not formulas:
        return
    sizes = np.fmax.reduce([_gradients(numbers, x, formulas) for x in random_configurations(numbers)])
    if (_gradients(numbers, q, formulas) > SMALL * sizes).all():
        return
    q = _converged(numbers, q)
    beside = [_gradients(numbers, x, formulas) for x in random_configurations(numbers, q, DISPLACEMENT)]
    vanishing = _gradients(numbers, q, formulas) < VANISHING * np.fmax.reduce(beside)
    rows = [(c, k) for c in formulas for k in range(len(c.expressions))]
    for (c, k), size, vanishes in zip(rows, sizes, vanishing, strict=True):
        if vanishes and not _is_implied(numbers, c, k, IMPLIED * size):
            raise DescriptionError(
                f"the gradient of expression {k + 1} of constraint {c.name!r} of mechanism {numbers.name!r} "
                "vanishes where the constraint holds, so that its force is not determined; write it with a "
                "simple root, such as z in place of z**2"
            )


def _gradients(numbers: Mechanism, q: np.ndarray, constraints: Sequence[Any]) -> np.ndarray:
    """The lengths (k,) of the gradients of rows of constraints, for displacements relative to large ones."""
    A = np.asarray(velocity_level_rows_at(numbers, q, TIME, constraints)[0], dtype=float)
    return np.linalg.norm(relative_rows(numbers, A, np.ones(len(A))), axis=1)


def _converged(numbers: Mechanism, q: np.ndarray) -> np.ndarray:
    """q after further Gauss-Newton steps of all hard constraints, whose rows are scaled to unit length."""
    for _ in range(ITERATIONS):
        A, _, violation = (np.asarray(x, dtype=float) for x in velocity_level_rows_at(numbers, q, TIME))
        if not (np.isfinite(A).all() and np.isfinite(violation).all()):
            break
        scale = 1 / np.maximum(np.linalg.norm(A, axis=1), np.finfo(float).tiny)
        step = -np.linalg.pinv(A * scale[:, None], rcond=RANK) @ (violation * scale)
        q = integrate_configuration(numbers.tree, q, step).astype(float)
    return q


def _is_implied(numbers: Mechanism, constraint: Holonomic, k: int, tolerance: float) -> bool:
    """Whether expression k of a constraint is zero, within a tolerance, wherever all other rows hold."""
    rest = [x for i, x in enumerate(constraint.expressions) if i != k]
    others = [c for c in hard_constraints(numbers) if c.name != constraint.name]
    others += [Holonomic(constraint.name, rest)] if rest else []
    without = numbers.replace(constraints=others)
    found = [assembled(without, x, TIME) for x in random_configurations(numbers)]
    values = [velocity_level_rows_at(numbers, q, TIME, [constraint])[2][k] for q in found if q is not None]
    return all(abs(float(value)) <= tolerance for value in values)
