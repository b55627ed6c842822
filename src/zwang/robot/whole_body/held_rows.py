"""The rows that the tasks of one priority leave to those of the next: what these have to keep.

A next priority keeps J x = J x_before of the rows so far, with the displacement x_before that they have. So
x_before satisfies all its rows, and with them the problem has a solution.

Where a task presses a joint against its limit, the stationarity of the priority

    J^T W (J x - e) + M (x - x_free) = lambda_k e_k

makes the rows of the task and that of the limit dependent but for the small M. With the task kept, the joint
then stays at the limit, and it is better fixed there: as an equality that has no part in the other rows.
Source: Escande, Mansard, Wieber, Int. J. Robotics Research 33 (2014) 1006, Section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import max_abs
from zwang.constraint.rows import Rows, scalar_array
from zwang.robot.whole_body.step_rows import StepBounds, TaskRows, bounded_ends, plain_rows
from zwang.scalar import logical_or, maximum, minimum, where

PRESSED = 1e4  # force of a limit, relative to M |x|, above which its joint is fixed
SMALLEST_ROW = 1e-10  # |J| of a row, relative to the largest, below which it consists of rounding errors
DEPENDENT = 1e-6  # of a row, the share outside the span of the rows before below which it is dependent
SMALLEST_DISPLACEMENT = 1e-8  # [rad, m] relative to which rows hold where x vanishes but for rounding
SMALLEST_DENOMINATOR = 1e-300  # instead of zero


class HeldRow(NamedTuple):
    """A row J x = b (nv,); whole: with the columns of fixed velocities, which J does not have."""

    J: np.ndarray
    b: Any
    whole: np.ndarray


class HeldRows(NamedTuple):
    """The rows to be kept, and for velocities that may be fixed, by number, whether they are, and their
    displacement.
    """

    rows: list[HeldRow]
    fixed: Mapping[int, tuple[Any, Any]]

    @staticmethod
    def of(rows: Sequence[TaskRows]) -> HeldRows:
        """The rows J x = e, without fixed velocities."""
        every = [(J, e) for part in rows for J, e in zip(part.J, part.e, strict=True)]
        return HeldRows([HeldRow(J, e, J) for J, e in every], {})

    def after(
        self, tasks: Sequence[TaskRows], posture: Sequence[int], pressed: Mapping[int, Any], x: np.ndarray
    ) -> HeldRows:
        """These rows, those of the tasks of a priority, the velocities of its postures, and those that press
        against a limit, kept at the displacement x (nv,).
        """
        is_fixed: dict[int, Any] = {k: known for k, (known, _) in self.fixed.items()}
        for k, known in pressed.items():
            is_fixed[k] = logical_or(is_fixed[k], known) if k in is_fixed else known
        is_fixed |= dict.fromkeys(posture, True)
        free = np.array([where(is_fixed[k], 0, 1) if k in is_fixed else 1 for k in range(len(x))])
        every = [*(row.whole for row in self.rows), *(J for part in tasks for J in part.J)]
        rows = [HeldRow(J, J @ x, whole) for J, whole in ((whole * free, whole) for whole in every)]
        return HeldRows(rows, {k: (is_fixed[k], x[k]) for k in sorted(is_fixed)})

    def as_rows(self, inverse: Sequence[Any]) -> list[Rows]:
        """The fixed velocities, and the rows as independent ones; inverse: see `independent`."""
        nv = len(inverse)
        unit, own = np.eye(nv, dtype=int), independent(self.rows, inverse)
        return [
            *(
                plain_rows(f"fixed {k}", "equality", unit[[k]] * where(known, 1, 0), [where(known, x, 0.0)])
                for k, (known, x) in self.fixed.items()
            ),
            *(plain_rows(f"held {i}", "equality", J.reshape(1, nv), [b]) for i, (J, b) in enumerate(own)),
        ]


def independent(rows: Sequence[HeldRow], inverse: Sequence[Any]) -> list[tuple[np.ndarray, Any]]:
    """(J, b) of rows with the same solutions, orthogonal in the metric diag(inverse) (nv,), by the modified
    Gram-Schmidt process. Rows that depend on those before, or consist of rounding errors, are zero.

    Without it, rows of which only a small part is independent of the others would need a far smaller
    regularisation. Source: Golub, Van Loan, Matrix Computations (2013), Section 5.2.8.
    """
    metric, found = np.array(inverse), list[tuple[np.ndarray, Any, np.ndarray, Any]]()
    sizes = [row.whole @ (metric * row.whole) for row in rows]
    smallest = (
        maximum(SMALLEST_ROW**2 * max_abs(sizes), SMALLEST_DENOMINATOR) if rows else SMALLEST_DENOMINATOR
    )
    for row, size in zip(rows, sizes, strict=True):
        J, b = row.J, row.b
        for before, value, weighted, square in found:
            part = (weighted @ J) / square
            J, b = J - part * before, b - part * value
        weighted = metric * J
        square = J @ weighted
        keeps = square > maximum(DEPENDENT**2 * size, smallest)
        J, weighted = (scalar_array([where(keeps, x, 0.0) for x in part]) for part in (J, weighted))
        found.append((J, where(keeps, b, 0.0), weighted, where(keeps, square, 1.0)))
    return [(J, b) for J, b, _, _ in found]


def pressed_velocities(
    bounds: Sequence[StepBounds], force: np.ndarray, diagonal: Sequence[Any], x: np.ndarray
) -> dict[int, Any]:
    """For each bounded velocity whether its limits exert a force that is large against M x, with the diagonal
    of M; force: of the rows of `bound_rows`, in their order.
    """
    largest, number, found = maximum(max_abs(x), SMALLEST_DISPLACEMENT), 0, dict[int, Any]()
    for k, lower, upper in bounds:
        ends = len(bounded_ends(lower, upper))
        if ends:
            total = sum(force[number : number + ends], start=0.0)
            found[k] = total > PRESSED * diagonal[k] * largest
            number += ends
    return found


def feasible(limits: Sequence[Rows], x: np.ndarray) -> list[Rows]:
    """One-sided rows J x >= b, with b decreased where x (nv,) does not satisfy them."""
    return [
        rows.replaced(aref=scalar_array([minimum(b, y) for b, y in zip(rows.aref, rows.J @ x, strict=True)]))
        for rows in limits
    ]
