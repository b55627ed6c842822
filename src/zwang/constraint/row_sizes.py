"""The sizes of the rows of hard constraints, in proportion to which they may be violated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.lengths import SMALLEST_LENGTH, displacement_sizes, largest_length, tolerance_factors
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, maximum, minimum

LENGTHS = {Connect: 3, Weld: 3, Distance: 1, NoSideSlip: 1, Rolling: 3}  # rows of each kind that are lengths


def row_sizes(
    mechanism: Mechanism, constraints: Iterable[Any], q: Any, A: Any, default: float = 1.0
) -> list[Any]:
    """The size (k,) of each row of these constraints, on any scalar; A (k, nv): their Jacobian at q.

    A violation of this size is a large one, whatever the unit of length: 1 rad for angles, times the torque
    scale of a weld; the largest length of the mechanism for lengths; for couplings and formulas the change by
    such displacements, and, where their derivative vanishes, the square of that length, or 1 if it is less.
    default [m]: the length of a mechanism whose description has none.
    """
    largest = largest_length(mechanism, default)
    displacements = displacement_sizes(mechanism, q, default)
    sizes: list[Any] = []
    for c in constraints:
        if type(c) in LENGTHS:
            sizes += [largest] * LENGTHS[type(c)]
            if isinstance(c, Weld):
                sizes += [maximum(absolute(c.torque_scale), SMALLEST_LENGTH)] * 3
            continue
        for row in A[len(sizes) : len(sizes) + len(getattr(c, "expressions", (c,)))]:
            change = sum((absolute(x) * s for x, s in zip(row, displacements, strict=True)), start=0)
            sizes.append(change + minimum(1, largest * largest))
    return sizes


def row_tolerances(mechanism: Mechanism, constraints: Iterable[Any], q: Any, A: Any) -> list[Any]:
    """The factors (k,) of tolerances of the violations of these rows; see `row_sizes`."""
    return tolerance_factors(row_sizes(mechanism, constraints, q, A, SMALLEST_LENGTH))
