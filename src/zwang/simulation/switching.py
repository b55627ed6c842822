"""Whether a constraint row is close to a change of its status, where derivatives are one-sided."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from zwang.collision import (
    PairGroup,
    StoredPlacements,
    bounding_spheres_overlap,
    candidate_pairs,
    pair_groups,
)
from zwang.collision.kinks import SMOOTH, has_kink
from zwang.constraint.context import row_context
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import cond, fori_loop, logical_or, maximum, not_equal, where
from zwang.simulation.constraint_stage import ConstrainedMotion, ConstraintModel
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import max_abs
from zwang.solver.warm_start import status_code

CLOSE = 1e-6  # [m, rad] of a distance, or relative to the accelerations in a row


def is_switching(model: ConstraintModel, motion: ConstrainedMotion) -> Any:
    """Whether a row would start or stop acting if a distance or its residual changed by `CLOSE`, or a contact
    point has a kink within it.
    """
    rows = motion.found.rows
    changes = _status_changes(motion.found.problem, rows, motion.a)
    counts = [_active_count(model, motion, widening) for widening in (CLOSE, -CLOSE)]
    return logical_or(logical_or(changes, not_equal(*counts)), _has_kinks(model, motion))


def _has_kinks(model: ConstraintModel, motion: ConstrainedMotion) -> Any:
    """Whether contact points have other derivatives on the other side of a displacement of `CLOSE`."""
    mechanism = model.mechanism
    if {"contact", "constraint"} & set(mechanism.options.disabled):
        return 0.0 > 1.0
    pairs = [pair for pair in candidate_pairs(mechanism) if pair.kinds not in SMOOTH]
    found: Any = 0.0 > 1.0
    if not pairs:
        return found
    shapes = StoredPlacements(pairs, motion.kinematics.poses)
    for group in pair_groups(pairs, [0] * len(pairs)):

        def visit(number: Any, found: Any, group: PairGroup = group) -> Any:
            pair, (a, b) = group.pair(number), group.placed(number, shapes)
            return cond(
                bounding_spheres_overlap(pair, a, b),
                lambda found: logical_or(found, has_kink(pair, a, b, CLOSE)),
                lambda found: found,
                found,
            )

        found = fori_loop(0, len(group), visit, found, unroll=False)
    return found


def _status_changes(problem: GaussProblem, rows: Rows, a: np.ndarray) -> Any:
    """Whether the status of an active soft row would change with its residual."""
    if rows.any_hard:
        rows = rows.without_groups()
        rows = rows.select([i for i, hard in enumerate(rows.hard) if not hard])
    primal = PrimalCost(problem, rows)
    residual = primal.residual(a)

    def compare(block: RowBlock, found: Any) -> Any:
        y = block.read(residual)
        change = CLOSE * maximum(max_abs(y), max_abs(block.aref))
        return logical_or(found, not_equal(status_code(block, y + change), status_code(block, y - change)))

    return primal.over_active_blocks(compare, 0.0 > 1.0)


def _active_count(model: ConstraintModel, motion: ConstrainedMotion, widening: float) -> Any:
    """The number of active rows and blocks where rows become active at distances larger by `widening`."""
    rows = constraint_rows(
        row_context(
            model.mechanism, motion.kinematics, inverse_weights=model.weights, timestep=model.h,
            settling_time=model.settling_time, widening=widening,
        ),
        warm_start=None,
    )  # fmt: skip
    count = reduce(lambda total, active: total + where(active, 1.0, 0.0), rows.active, 0.0)
    for group in rows.row_groups:
        count = fori_loop(
            0, len(group.names), lambda k, n, g=group: n + where(g.active[k] > 0, 1.0, 0.0), count
        )
    return count
