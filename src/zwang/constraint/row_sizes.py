"""The sizes of the rows of hard constraints, in proportion to which they may be violated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.lengths import (
    SMALLEST_LENGTH,
    displacement_sizes,
    farthest_position,
    largest_length,
    tolerance_factor,
    translations,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, maximum, minimum

LENGTHS = {Connect: 3, Weld: 3, Distance: 1, NoSideSlip: 1, Rolling: 3}  # rows of each kind that are lengths


def row_sizes(mechanism: Mechanism, constraints: Iterable[Any], A: Any) -> list[Any]:
    """The size (k,) of each row of these constraints, on any scalar; A (k, nv): their Jacobian.

    A violation of this size is a large one, whatever the unit of length: 1 rad for angles, times the torque
    scale of a weld; the largest length of the mechanism for lengths; for couplings and formulas the change by
    such displacements, and, where their derivative vanishes, the square of that length, or 1 if it is less.
    """
    return _sizes(mechanism, constraints, A, minimum(1, largest_length(mechanism) ** 2))


def row_changes(mechanism: Mechanism, constraints: Iterable[Any], A: Any) -> list[Any]:
    """The sizes (k,) of these rows as by `row_sizes`, but of couplings and formulas the change by large
    displacements alone: in proportion to a factor of the formula, however small.
    """
    return _sizes(mechanism, constraints, A, 0)


def _sizes(mechanism: Mechanism, constraints: Iterable[Any], A: Any, least: Any) -> list[Any]:
    """The sizes (k,) of rows. least: is added to those of couplings and formulas."""
    largest, displacements = largest_length(mechanism), displacement_sizes(mechanism)
    sizes: list[Any] = []
    for c, rows in _by_constraint(constraints, A):
        if type(c) in LENGTHS:
            sizes += [largest] * LENGTHS[type(c)]
            if isinstance(c, Weld):
                sizes += [maximum(absolute(c.torque_scale), SMALLEST_LENGTH)] * 3
            continue
        for row in rows:
            change = sum((absolute(x) * s for x, s in zip(row, displacements, strict=True)), start=0)
            sizes.append(change + least)
    return sizes


def row_tolerances(mechanism: Mechanism, constraints: Iterable[Any], q: Any, A: Any) -> list[Any]:
    """The factors (k,) of tolerances of the violations of these rows at q (nq,); see `row_sizes` and
    `tolerance_factor`.
    """
    slides = translations(mechanism.tree)
    farthest = farthest_position(mechanism, q)
    positions: list[Any] = []
    for c, rows in _by_constraint(constraints, A):
        if type(c) in LENGTHS:  # differences of positions
            positions += [farthest] * LENGTHS[type(c)] + [0] * (3 if isinstance(c, Weld) else 0)
        else:
            positions += [sum((absolute(row[k] * q[i]) for k, i in slides.items()), start=0) for row in rows]
    sizes = row_sizes(mechanism, constraints, A)
    return [tolerance_factor(size, x) for size, x in zip(sizes, positions, strict=True)]


def _by_constraint(constraints: Iterable[Any], A: Any) -> Iterator[tuple[Any, Any]]:
    """Each constraint with its rows of A."""
    start = 0
    for c in constraints:
        count = LENGTHS.get(type(c)) or len(getattr(c, "expressions", (c,)))
        count += 3 if isinstance(c, Weld) else 0
        yield c, A[start : start + count]
        start += count
