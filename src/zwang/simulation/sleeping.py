"""Sleep: kinematic trees that have been slow for a while stay where they are until something wakes them.

A tree is slow in a step if all its velocities at the beginning are below the tolerance: |v_k| l_k < tol, with
l_k = 1 for translations, and the size of the body for rotations. An island, the trees that active constraint
rows connect, falls asleep once all its trees have been slow in 10 consecutive steps: in the last of these its
configuration stays, and its velocity becomes 0. It sleeps until a row connects it with a tree that is awake,
or with a mocap body, a force is applied to it from outside, or its velocity is set. Then the whole island
wakes, and has been slow for as long as those that woke it.

From step to step each tree keeps a number:

     0        of a new state
    -1        awake, not slow
     1 to 10  awake, slow in as many consecutive steps
    11 + i    asleep, with all trees of the island i

Sleep changes the motion of slow bodies only; forces, contacts and sensors of a tree that sleeps are those of
its state at rest. Source: MuJoCo documentation, Computation, "Sleeping islands".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.islands import constraint_islands, trees_of
from zwang.constraint.rows import RowGroup, Rows
from zwang.integrator.fixed_step import State
from zwang.scalar import (
    MutableArray,
    absolute,
    equal,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.simulation.sleep_rule import SleepRule

STEPS = 10  # consecutive slow steps after which a tree is ready to sleep: MuJoCo's mjMINAWAKE
NEW, MOVING, ASLEEP = 0.0, -1.0, STEPS + 1.0
AT_HOME = 1e-6  # largest distance [m, rad] from home of a body that sleeps from the beginning, above rounding


class SleepState(NamedTuple):
    """The numbers (count,) of the trees after a step, and whether each sleeps at its end."""

    numbers: np.ndarray
    asleep: tuple[Any, ...]

    def held(self, rule: SleepRule, before: State, after: State) -> State:
        """The state after a step, in which trees that sleep are where they were, at rest."""
        q, v = list(after.q), list(after.v)
        for tree, asleep in enumerate(self.asleep):
            for part in rule.coordinates[tree]:
                for k in range(part.start, part.stop):
                    q[k] = where(asleep, before.q[k], q[k])
            for k in rule.velocities[tree]:
                v[k] = where(asleep, 0.0, v[k])
        return State(np.array(q), np.array(v), after.z)


class _Tree(NamedTuple):
    """A tree at the beginning of a step: its island, whether it is slow, whether it sleeps, its number while
    it is awake, and the island with which it sleeps.
    """

    island: Any
    slow: Any
    asleep: Any
    count: Any
    slept_with: Any


def next_sleep(rule: SleepRule, state: State, control: Any, numbers: Any, rows: Rows | None) -> SleepState:
    """The sleep of all trees after a step.

    state: at the beginning of the step. control: as for `step`. numbers (count,): those that the step before
    left. rows: the constraint rows of the step, if anything may constrain the motion.
    """
    groups = () if rows is None else rows.in_groups()
    labels = constraint_islands(groups, None if rows is None else rows.screws, rule.tree_of)
    touched = _touched(rule, groups, rows)
    trees = [
        _at_beginning(rule, t, labels[t], touched[t], state, control, numbers[t]) for t in range(rule.count)
    ]
    # which islands wake: some tree is awake, or trees that slept in different islands have been connected
    awake = _reduced(trees, maximum, 0.0, lambda tree: where(tree.asleep, 0.0, 1.0))
    least = _reduced(trees, minimum, STEPS, lambda tree: where(tree.asleep, 1.0 * STEPS, tree.count))
    low = _reduced(trees, minimum, rule.count, lambda tree: where(tree.asleep, tree.slept_with, rule.count))
    high = _reduced(trees, maximum, -1.0, lambda tree: where(tree.asleep, tree.slept_with, -1.0))
    stays, counts = [], []
    for tree in trees:
        i = tree.island
        any_awake = awake.gather(i) > 0
        stay = logical_and(tree.asleep, logical_not(logical_or(any_awake, low.gather(i) < high.gather(i))))
        woken = where(any_awake, least.gather(i), MOVING)
        begin = where(tree.asleep, woken, tree.count)
        slow_steps = where(begin < 0, 1.0, minimum(begin + 1.0, STEPS))
        counts.append(where(tree.slow, slow_steps, MOVING))
        stays.append(stay)
    # which islands fall asleep: all their trees are ready
    both = [
        tree._replace(asleep=stay, count=count)
        for tree, stay, count in zip(trees, stays, counts, strict=True)
    ]
    ready = _reduced(
        both, minimum, 1.0, lambda tree: where(tree.count < STEPS, where(tree.asleep, 1.0, 0.0), 1.0)
    )
    after, asleep = [], []
    for tree in both:
        falls = logical_and(logical_not(tree.asleep), ready.gather(tree.island) > 0)
        fallen = where(falls, ASLEEP + tree.island, tree.count)
        after.append(where(tree.asleep, ASLEEP + tree.slept_with, fallen))
        asleep.append(logical_or(tree.asleep, falls))
    return SleepState(np.array(after), tuple(asleep))


def largest_number(trees: int) -> int:
    """The largest number that one of so many trees keeps."""
    return int(ASLEEP) + trees - 1


def all_asleep(rule: SleepRule, state: State, control: Any, numbers: Any) -> Any:
    """Whether all trees sleep at the beginning of a step, and neither a force nor a velocity wakes them;
    arguments as for `next_sleep`.
    """
    if not all(rule.may_sleep):
        return False
    each = (
        logical_and(numbers[t] >= ASLEEP, _is_at_rest(rule, t, state, control)) for t in range(rule.count)
    )
    return reduce(logical_and, each)


def _is_at_rest(rule: SleepRule, tree: int, state: State, control: Any) -> Any:
    """Whether all velocities of a tree are 0, and all forces from outside."""
    moved = reduce(maximum, (absolute(state.v[k]) for k in rule.velocities[tree]))
    return logical_and(equal(moved, 0.0), equal(_applied(rule, tree, control), 0.0))


def _applied(rule: SleepRule, tree: int, control: Any) -> Any:
    """The largest control that is a force from outside on a tree."""
    return reduce(maximum, (absolute(control[k]) for k in rule.inputs[tree]), 0.0)


def _at_beginning(
    rule: SleepRule, tree: int, island: Any, touched: Any, state: State, control: Any, number: Any
) -> _Tree:
    """A tree at the beginning of a step; touched: whether a mocap body wakes it."""
    if not rule.may_sleep[tree]:
        return _Tree(island, False, False, MOVING, island)
    own = rule.velocities[tree]
    speed = reduce(maximum, (rule.lengths[k] * absolute(state.v[k]) for k in own))
    is_new, slept = equal(number, NEW), number >= ASLEEP
    asleep = slept
    if rule.initially[tree]:
        places = [k for part in rule.coordinates[tree] for k in range(part.start, part.stop)]
        away = reduce(maximum, (absolute(state.q[k] - rule.home[k]) for k in places))
        asleep = logical_or(slept, logical_and(is_new, less(away, AT_HOME)))
    asleep = logical_and(asleep, logical_and(_is_at_rest(rule, tree, state, control), logical_not(touched)))
    is_free = equal(_applied(rule, tree, control), 0.0)
    slow = logical_and(is_free, logical_or(less(speed, rule.tolerance), equal(speed, 0.0)))
    # MuJoCo counts a slow step when it puts the others to sleep at the beginning
    first = 1.0 if any(rule.initially) and not rule.initially[tree] else MOVING
    count = where(slept, MOVING, where(is_new, first, number))
    return _Tree(island, slow, asleep, count, where(slept, number - ASLEEP, island))


def _touched(rule: SleepRule, groups: Sequence[RowGroup], rows: Rows | None) -> Sequence[Any]:
    """For each tree whether an active row connects it with a mocap body."""
    found = [group for group in groups if any(name in rule.mocap for name in group.names)]
    if rows is None or not found:
        return [False] * rule.count
    touched = zeros(rule.count)
    for group in found:
        own = [trees_of(velocities, rule.tree_of) for velocities in group.velocities(rows.screws)]
        first = StackedPytree([(trees[:1] or (0,)) for trees in own])
        flags = StackedPytree(
            [(float(bool(t) and n in rule.mocap),) for t, n in zip(own, group.names, strict=True)]
        )

        def mark(k: Any, touched: MutableArray, first: Any = first, flags: Any = flags) -> MutableArray:
            [tree], [flag] = first[k], flags[k]
            return touched.set(tree, maximum(touched[tree], flag))

        touched = group.active_indices.for_each(mark, touched)
    return [touched[t] > 0 for t in range(rule.count)]


def _reduced(trees: Sequence[_Tree], reduction: Any, start: float, value: Any) -> MutableArray:
    """For each island the reduction of value(tree) over its trees, beginning with `start`."""
    found = zeros(len(trees))
    for t in range(len(trees)):
        found = found.set(t, 1.0 * start)
    for tree in trees:
        found = found.scatter(tree.island, reduction(found.gather(tree.island), value(tree)))
    return found
