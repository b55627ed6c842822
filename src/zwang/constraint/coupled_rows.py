"""The active contact rows of each world that couple branches of the tree, without gaps, so that all worlds
loop over their own rows together.

A contact that is near in some world of a vector register is evaluated in all of them, but each world counts
only its own active rows, and reads them from the arrays of all rows by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import Pair
from zwang.constraint.contact import is_hard_contact
from zwang.constraint.row_arrays import WRENCH, ContactForm, CoupledRows, RowArrays
from zwang.constraint.rows import JointScrews, Rows
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, empty, fori_loop, lane_maximum
from zwang.scalar.compact_loop import Appender, compact, pack_signs, unpack_signs

FEWEST_VELOCITIES = 8  # of a tree on average: trees of more than a free body
MOST_PATH_LINKS = 3000  # from all links to the world, up to which the code is small enough for them
MOST_ROWS = 2048  # of a world that are active at once: the memory of its rows, of which few are used


class Gathering(NamedTuple):
    """The rows of contacts of one form while they are stored: to be carried through loops and branches.

    arrays: of all contacts, whose J are wrenches. signs (count, words): which velocities move link b (1),
    link a (-1) or neither (0), packed. friction (count, m - 1).
    """

    arrays: RowArrays
    appender: Appender
    signs: MutableArray
    friction: MutableArray

    def with_contact(
        self, number: Any, arrays: RowArrays, words: Sequence[Any], friction: Sequence[Any]
    ) -> Gathering:
        """These and a further active contact, with the arrays that have its rows; words: its packed signs."""
        signs, own = self.signs, self.friction
        for c, word in enumerate(words):
            signs = signs.set((number, c), word)
        for c, mu in enumerate(friction):
            own = own.set((number, c), mu)
        return Gathering(arrays, self.appender.append(number), signs, own)


def coupled_rows(
    form: ContactForm, screws: JointScrews, nv: int, count: int, fill: Callable[[Gathering], Gathering]
) -> tuple[CoupledRows, RowArrays]:
    """The rows that each world has among those of `count` contacts that `fill` stores, and the arrays of
    all.
    """
    S, n, m = np.concatenate(screws.columns, axis=1), len(form.kinds), form.axis_count
    words = len(pack_signs([0] * nv))

    def gathered(appender: Appender) -> tuple[Appender, Gathering]:
        arrays = RowArrays.of_size(count * n, count * m * WRENCH)
        start = Gathering(arrays, appender, empty((count, words)), empty((count, max(m - 1, 1))))
        found = fill(start)
        return found.appender, found

    items, found = compact(count, gathered)
    most = min(count, MOST_ROWS // m)
    blocks = lane_maximum(items.count, most)
    of_values = {"aref": n, "D": 1 if form.has_edges else n}  # numbers of a block

    def enter(k: Any, carry: Any) -> Any:
        """The rows of block k: J = w (B_b - B_a) with the wrenches w and the Jacobians B of both links."""
        J, values, friction = carry
        w = np.array(items.read(found.arrays.J, k, m * WRENCH)).reshape(m, WRENCH)
        signs = np.array(unpack_signs(items.read(found.signs, k, words), nv))
        for (i, j), x in np.ndenumerate(signs * (w @ S)):
            J = J.set((k * m + i, j), x)
        for name, width in of_values.items():
            first = items.read(found.arrays.values[name], k, n)[:width]
            for i, x in enumerate(first):
                values[name] = values[name].set(k * width + i, x)
        for i, x in enumerate(items.read(found.friction, k, m - 1)):
            friction = friction.set(k * (m - 1) + i, x)
        return J, values, friction

    empty_values = {name: empty(most * width) for name, width in of_values.items()}
    start = empty((most * m, nv)), empty_values, empty(most * max(m - 1, 1))
    J, values, friction = fori_loop(0, blocks, enter, start)
    return CoupledRows(form, items, blocks, J, values, friction, items.count > most), found.arrays


def are_kept_by_world(mechanism: Mechanism, others: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether the rows of contacts between moving links are kept by world: all rows, those of contacts of
    pairs and these others, are soft, and this is the faster way for the mechanism.
    """
    hard = any(others.hard) or any(map(is_hard_contact, pairs))
    return not hard and is_worth_gathering(mechanism.tree)


def is_worth_gathering(tree: Tree) -> bool:
    """Whether it is faster to keep the rows by world that contacts between moving links have.

    It is for few trees of many velocities each, unless the paths are too long for code size. Many small
    bodies have more such rows than velocities, so that they are better in the Hessian.
    """
    trees = sum(link.parent == WORLD for link in tree.links)
    path_links = sum(len(tree.path(i)) for i in range(len(tree.links)))
    return tree.nv >= FEWEST_VELOCITIES * trees and path_links <= MOST_PATH_LINKS
