"""The active rows of each world, contiguous, so that all worlds loop over their own rows together.

A contact that is near in some world of a vector register is evaluated in all of them, but each world counts
only its own active rows, and reads them from the arrays of all rows by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import Pair
from zwang.constraint.contact import is_hard_contact
from zwang.constraint.row_arrays import WRENCH, RowArrays, WorldRows
from zwang.constraint.rows import JointScrews, Rows
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, cond, empty, equal, is_zero
from zwang.scalar.compact_loop import Appender, compact, pack_signs

MOST_DENSE_ENTRIES = 64  # of rows on several velocities, whose number is compared with all of a world
FEWEST_VELOCITIES = 20  # of a tree on average, from which on worlds have their own rows
MOST_PATH_LINKS = 3000  # from all links to the world, up to which the code is small enough for own rows
MOST_ROWS = 1000  # up to which the Delassus matrix, which grows with their square, is small enough
FORCE_BOUNDS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "equality": lambda bound: (-np.inf, np.inf),
    "friction": lambda bound: (-bound, bound),
}
"""The bounds of a row's force where they are not 0 and inf."""


class Gathering(NamedTuple):
    """The rows of `WorldRows` while they are stored: to be carried through loops and branches."""

    arrays: RowArrays
    appender: Appender
    signs: MutableArray
    bounds: MutableArray | None

    def stored(self, number: Any, rows: Rows, words: Sequence[Any], status: MutableArray) -> Gathering:
        """These and further active rows, from a number on, whose J are wrenches; words: their packed signs.

        Rows that were inactive (status 1) are placed last, so that those with a force are contiguous.
        """
        arrays = self.arrays.stored(number, WRENCH * number, rows.J, rows.stored_values)
        appender, signs = self.appender, self.signs
        for i in range(len(rows)):
            for c, word in enumerate(words):
                signs = signs.set((number + i, c), word)
            appender = appender.append(number + i, equal(status[number + i], 1.0))
        return Gathering(arrays, appender, signs, self.bounds)

    def with_bounds(self, number: int, bounds: tuple[Any, Any]) -> Gathering:
        """The same rows with these bounds of a force."""
        both = self.bounds
        for c, x in enumerate(bounds):
            both = None if both is None else both.set((number, c), x)
        return self._replace(bounds=both)


def world_rows(
    others: Rows,
    screws: JointScrews,
    count: int,
    status: MutableArray,
    fill: Callable[[Gathering], Gathering],
) -> WorldRows:
    """The active rows of each world: the others, and after them those that `fill` stores.

    count: the number of all rows. status (count,): of the rows in a similar problem, 0 where it is not known.
    """
    S, nv = np.concatenate(screws.columns, axis=1), others.J.shape[1]
    velocities = [_velocities(J) for J in others.J]

    def gathered(appender: Appender) -> tuple[Appender, Gathering]:
        has_bounds = any(kind in FORCE_BOUNDS for kind in others.kinds)
        found = Gathering(
            RowArrays.of_size(count, WRENCH * count), appender, empty((count, len(pack_signs([0] * nv)))),
            empty((len(others), 2)) if has_bounds else None,
        )  # fmt: skip
        for i, own in enumerate(velocities):
            if own:  # not a row between bodies that do not move
                found = _with_row(found, others, i, own, S, status)
        found = fill(found)
        return found.appender, found

    items, found = compact(count, gathered)
    couplings = {i: others.J[i] for i, own in enumerate(velocities) if len(own) > 1}
    return WorldRows(items, found.arrays, status, found.signs, found.bounds, S, couplings)


def _with_row(
    found: Gathering, rows: Rows, i: int, velocities: Sequence[int], S: np.ndarray, status: MutableArray
) -> Gathering:
    """The rows with row i outside groups, where it is active. A row on one velocity with the motion subspace
    s has the wrench J s / s^2.
    """
    j, *more = velocities
    signs = [float(k == j and not more) for k in range(S.shape[1])]
    bounds = FORCE_BOUNDS.get(rows.kinds[i], lambda bound: (0.0, np.inf))(rows.bound[i])

    def append(found: Gathering) -> Gathering:
        s = S[:, j]
        row = rows.select([i]).replaced(J=np.array([s * (rows.J[i, j] / (s @ s))]))
        return found.stored(i, row, pack_signs(signs), status).with_bounds(i, bounds)

    return cond(rows.active[i], append, lambda found: found, found)


def have_own_rows(mechanism: Mechanism, others: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether worlds have their own rows: all rows, those of contacts between pairs and these others, are
    soft, outside cones and on few velocities, and the dual form is the faster one for the mechanism.
    """
    if any(others.hard) or others.cones or not is_worth_gathering(mechanism.tree, pairs):
        return False
    cones = mechanism.options.cone != "pyramidal"
    if any(is_hard_contact(pair) or (cones and pair.condim > 1) for pair in pairs):
        return False
    return sum(len(J) for J in map(_velocities, others.J) if len(J) > 1) <= MOST_DENSE_ENTRIES


def is_worth_gathering(tree: Tree, pairs: Sequence[Pair]) -> bool:
    """Whether the dual form with the rows of each world is the faster one for this mechanism.

    It is for few trees of many velocities each, unless the paths or the rows are too many for code size or
    memory. Many small bodies have more active rows than velocities, so that the primal form is faster.
    """
    trees = sum(link.parent == WORLD for link in tree.links)
    path_links = sum(len(tree.path(i)) for i in range(len(tree.links)))
    edges = [1 if pair.condim == 1 else 2 * (pair.condim - 1) for pair in pairs]
    most_rows = sum(pair.count * n for pair, n in zip(pairs, edges, strict=True)) + 4 * tree.nv
    return tree.nv >= FEWEST_VELOCITIES * trees and path_links <= MOST_PATH_LINKS and most_rows <= MOST_ROWS


def _velocities(J: np.ndarray) -> list[int]:
    """The velocities that a row depends on by structure; on floats, those with a nonzero entry now."""
    return [k for k, x in enumerate(J) if not is_zero(x)]
