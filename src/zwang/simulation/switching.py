"""Whether a constraint row is close to a change of its status, where derivatives are one-sided."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from zwang.algebra.norms import max_abs
from zwang.collision import (
    PairGroup,
    StoredPlacements,
    candidate_pairs,
    contact_points_between,
    if_volumes_overlap,
    over_near_pairs,
    pair_groups,
)
from zwang.collision.convex.kinks import SMOOTH, has_kink
from zwang.collision.penetration import with_search_margin
from zwang.constraint.contact import is_hard_contact
from zwang.constraint.context import RowContext, resting_speed, row_context
from zwang.constraint.coulomb_friction import FrictionState, coulomb_frictions
from zwang.constraint.impact import any_acting, closes_by_impact, hard_contact_pairs, touching_count
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.constraint.softness import LARGEST_CORRECTION_SPEED, PENETRATION_CORRECTION
from zwang.dynamics.adhesion import adhesive_pairs
from zwang.dynamics.ranges import clipped
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.spatial_tendons import least_span
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    absolute,
    clip,
    cond,
    equal,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    not_equal,
    where,
)
from zwang.simulation.applied_forces import activations, by_name, controls_by_name
from zwang.simulation.constrained import ConstrainedSolution
from zwang.simulation.constraint_stage import ConstrainedMotion, ConstraintModel
from zwang.solver.hard_rows import solve_hard_rows
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import Solution
from zwang.solver.warm_start import status_code

CLOSE = 1e-6  # [m, rad] of a distance, or relative to the accelerations in a row
NEAR = 1e3 * CLOSE  # [m] within which a displacement by `CLOSE` may close a contact
HARD_CLOSE = 1e-7  # [m, rad] of the distance of a hard row, or [m/s, rad/s] of its speed, within one step


def is_switching(model: ConstraintModel, motion: ConstrainedMotion, corrects: Any = True) -> Any:
    """Whether a row would become active or inactive if a distance or its residual changed by `CLOSE`, or a
    contact point has a kink within it.

    corrects: whether the distances of active hard contacts may have either sign. Only a penetration is
    corrected, so that the derivative by a distance of 0 is one-sided.
    """
    changes = stage_is_switching(model, motion, corrects)
    if motion.friction is not None:
        changes = logical_or(changes, _breakaway_changes(model, motion.friction))
    return changes


def muscle_is_switching(mechanism: Mechanism, z: Any, control: Any) -> Any:
    """Whether the activation of a muscle is close to its control, where the time constant changes from that
    of activation to that of deactivation without a smooth transition.
    """
    found: Any = 0.0 > 1.0
    named, states = controls_by_name(mechanism, control), by_name(activations(mechanism), z)
    for force in mechanism.forces:
        if isinstance(force, Actuator) and force.activation is not None and force.activation[0] == "muscle":
            rise, fall, width = force.activation[1]
            if is_zero(width) and not is_zero(rise - fall):
                u = clipped(named.get(force.name, 0), force.control_range)
                found = logical_or(found, absolute(clip(u, 0, 1) - states[force.states[-1]]) < CLOSE)
    return found


def tendon_is_switching(mechanism: Mechanism, q: Any) -> Any:
    """Whether neighbouring points of the path of a spatial tendon are so close that its direction changes
    with a displacement by `CLOSE`; where they coincide it has none.
    """
    paths, tree = mechanism.tendon_paths, mechanism.tree
    if not paths.segments:
        return 0.0 > 1.0
    displacements = np.random.default_rng(0).normal(size=(2, mechanism.nv))
    others = [integrate_configuration(tree, np.array(mechanism.neutral), dq) for dq in displacements]
    span = least_span(tree, paths, Kinematics(tree, q).poses, [Kinematics(tree, x).poses for x in others])
    return span < CLOSE


def stage_is_switching(model: ConstraintModel, motion: ConstrainedMotion, corrects: Any) -> Any:
    """`is_switching`, but for laws of Coulomb friction that start to slide."""
    rows = motion.found.rows
    changes = _status_changes(motion.found, model.step.size)
    counts = [_active_count(model, motion, widening) for widening in (CLOSE, -CLOSE)]
    changes = logical_or(changes, not_equal(*counts))
    changes = logical_or(changes, _contacts_change(model, motion))
    if motion.friction is not None:
        changes = logical_or(changes, _lacks_load(motion.friction))
    if _has_hard_inequality(rows):
        changes = logical_or(changes, logical_and(corrects, _correction_changes(model, motion)))
    return changes


def divided_is_switching(of_stages: Any, friction: FrictionState, signs: Any, at_start: Any) -> Any:
    """Whether the derivatives of a part of a step are one-sided, where laws of Coulomb friction have these
    signs (m,) of their sliding speeds.

    of_stages: whether one of its stages is switching, see `stage_is_switching`. friction: at the beginning of
    the part. at_start: whether the step begins there. A law at rest then slides for a moment if its speed
    changes; it must come back to rest.
    """
    rests, leaves = [equal(s, 0) for s in signs], 0.0 > 1.0
    for rest, u, force, bound in zip(rests, *friction[:3], strict=True):
        stays = logical_and(rest, absolute(force) < (1 - CLOSE) * bound)
        leaves = logical_or(leaves, logical_and(absolute(u) < CLOSE, logical_not(stays)))
    # where another law slides, its load depends on the side from which this one comes to rest
    mixed = logical_and(reduce(logical_or, rests), logical_not(reduce(logical_and, rests)))
    return logical_or(of_stages, logical_and(at_start, logical_or(leaves, mixed)))


def _breakaway_changes(model: ConstraintModel, friction: FrictionState) -> Any:
    """Whether a law of Coulomb friction close to rest is held by its coefficient of rest only."""
    found: Any = 0.0 > 1.0
    laws = zip(coulomb_frictions(model.mechanism), *friction[:3], strict=True)
    for law, u, force, bound in laws:
        if law.static_coefficient is not None:
            is_held = absolute(force) < (1 - CLOSE) * bound
            found = logical_or(found, logical_and(absolute(u) < CLOSE, logical_not(is_held)))
    return found


def _lacks_load(friction: FrictionState) -> Any:
    """Whether a law of Coulomb friction is without load."""
    return reduce(logical_or, [absolute(bound) < CLOSE for bound in friction.static_bound])


def _correction_changes(model: ConstraintModel, motion: ConstrainedMotion) -> Any:
    """Whether a hard contact or limit acts at a distance close to 0, or to the penetration from which its
    correction is limited.
    """
    rows, deepest = motion.found.rows, LARGEST_CORRECTION_SPEED * model.step.size / PENETRATION_CORRECTION

    def at_kink(_: Any, distance: Any, aref: Any) -> Any:
        return logical_or(absolute(distance) < CLOSE, absolute(distance + deepest) < CLOSE)

    chosen = {cone.start for cone in rows.cones} | set(rows.indices("contact", "limit"))
    return any_acting(rows, chosen, motion.found.solution.force_of, at_kink)


def closing_is_switching(model: ConstraintModel, motion: ConstrainedMotion) -> Any:
    """Whether a hard contact acts on an approach close to the resting speed, above which it closes by an
    impact.
    """
    found, h = motion.found, model.step.size
    speed = resting_speed(model.mechanism, h, motion.kinematics.v, found.problem.a_free)
    change = CLOSE * maximum(speed, 1.0)
    both = [
        closes_by_impact(found.rows, found.solution.force_of, speed + s * change, model.step)
        for s in (1.0, -1.0)
    ]
    return not_equal(*(where(closes, 1.0, 0.0) for closes in both))


def is_at_an_end(share: Any, at_beginning: Any, at_end: Any, size: Any) -> Any:
    """Whether an impact is close to the beginning or the end of a part of a step.

    share: of the part, after which a contact closes, or 1. at_beginning, at_end [s]: the time until the next
    contact closes, from there on. size [s]: of the part.
    """
    ends = where(share < 1, share > 1 - CLOSE, absolute(at_end) < CLOSE * size)
    return logical_or(absolute(at_beginning) < CLOSE * size, ends)


def impact_is_switching(context: RowContext, rows: Rows, solution: Solution, size: Any) -> Any:
    """Whether the status of a contact in an impact would change with its velocity, or other contacts or
    limits than the one that closes are closed so closely that a displacement could separate them.

    size [s]: of the part of the step before the impact; 0 where the contact was closed at its beginning.
    """
    pairs = hard_contact_pairs(candidate_pairs(context.mechanism))
    closed = touching_count(context, pairs, CLOSE)
    for i in rows.indices("limit"):
        closed = closed + where(absolute(rows.position[i]) < CLOSE, 1.0, 0.0)
    several = closed > where(size > 0, 1.0, 0.0)
    assert solution.near_change is not None
    return logical_or(several, solution.near_change(CLOSE))


def _contacts_change(model: ConstraintModel, motion: ConstrainedMotion) -> Any:
    """Whether a soft contact becomes active or inactive at a distance changed by `CLOSE`, or contact points
    have other derivatives on the other side of a displacement of `CLOSE`.
    """
    mechanism = model.mechanism
    found: Any = 0.0 > 1.0
    if {"contact", "constraint"} & set(mechanism.options.disabled):
        return found
    pairs = [
        with_search_margin(pair) if is_hard_contact(pair) else pair
        for pair in candidate_pairs(mechanism)
        if not is_hard_contact(pair) or pair.kinds not in SMOOTH
    ]
    # adhesion acts from the gap on
    adhesive = {f.body for f in mechanism.forces if isinstance(f, Actuator) and f.body is not None}
    pairs += [pair for pair in adhesive_pairs(mechanism, adhesive) if not is_hard_contact(pair)]
    shapes = StoredPlacements(pairs, motion.kinematics.poses)
    for group in pair_groups(pairs, [is_hard_contact(pair) for pair in pairs]):
        soft, smooth = not is_hard_contact(group.first), group.first.kinds in SMOOTH

        def visit(
            number: Any, found: Any, group: PairGroup = group, soft: bool = soft, smooth: bool = smooth
        ) -> Any:
            pair, (a, b) = group.pair(number), group.placed(number, shapes)

            def changes(found: Any) -> Any:
                points = contact_points_between(pair, a, b)
                beyond = [point.distance - pair.margin for point in points]
                for x in beyond if soft else ():
                    found = logical_or(found, absolute(x) < CLOSE)
                if smooth:
                    return found
                near = reduce(logical_or, [x < NEAR for x in beyond])
                kinks = cond(near, lambda: has_kink(pair, a, b, points, CLOSE), lambda: 0.0 > 1.0)
                return logical_or(found, kinks)

            return if_volumes_overlap(pair, a, b, changes, found)

        found = over_near_pairs(group, shapes, visit, found, beyond_margin=not soft)
    return found


def _status_changes(found: ConstrainedSolution, h: Any) -> Any:
    """Whether the status of an active row would change with its residual; h [s]: the size of the step."""
    problem, rows = found.problem, found.rows
    if _has_hard_inequality(rows):
        # a coordinate reduction has solved another problem
        near_change = found.solution.near_change or solve_hard_rows(problem, rows).near_change
        assert near_change is not None
        return near_change(CLOSE, HARD_CLOSE, h)
    if rows.any_hard:
        rows = rows.without_groups()
        rows = rows.select([i for i, hard in enumerate(rows.hard) if not hard])
    primal = PrimalCost(problem, rows)
    residual = primal.residual(found.solution.acceleration)

    def compare(block: RowBlock, found: Any) -> Any:
        y = block.read(residual)
        change = CLOSE * maximum(max_abs(y), max_abs(block.aref))
        return logical_or(found, not_equal(status_code(block, y + change), status_code(block, y - change)))

    return primal.over_active_blocks(compare, 0.0 > 1.0)


def _has_hard_inequality(rows: Rows) -> bool:
    """Whether a row other than an equality is hard by structure."""
    own = any(hard and kind != "equality" for hard, kind in zip(rows.hard, rows.kinds, strict=True))
    return own or any(group.hard for group in rows.row_groups)


def _active_count(model: ConstraintModel, motion: ConstrainedMotion, widening: float) -> Any:
    """The number of active rows, but for contacts, where rows become active at distances larger by
    `widening`.
    """
    options = model.mechanism.options
    without_contacts = replace(options, disabled=tuple({*options.disabled, "contact"}))
    rows = constraint_rows(
        row_context(
            model.mechanism.replace(options=without_contacts), motion.kinematics,
            inverse_weights=model.weights, step=model.step, widening=widening,
        )
    )  # fmt: skip
    return reduce(lambda total, active: total + where(active, 1.0, 0.0), rows.active, 0.0)
