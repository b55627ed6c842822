"""Warm start: the status of the rows in one solution, from which the next solution starts.

From one step to the next most rows keep their status. Where all do, the cost is quadratic and one Newton
step solves the problem. Accelerations are a worse warm start: the status of a stiff row depends on their
last digits.

The status of a block of rows is stored as one number. It is 0 where the block was inactive, and otherwise
one more than the number whose digits are the status of its rows:

    equality        no digit: the force is always linear
    limit, contact  0: inactive (no force); 1: linear
    friction        0: linear; 1: upper (at the bound); 2: lower (at minus the bound)
    cone            one digit for all rows, 0: inactive; 1: linear. In the middle region, where the cost
                    is not quadratic, no status is stored (code 0)

From step to step a world keeps one number for each block, or, where most blocks are inactive, as with many
bodies, a list: for each block with a status its number plus one, ascending, and the status. A list is ended
by a zero; blocks beyond its length start without a status.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np

from zwang.constraint.rows import Cone, WarmStart, scalar_array
from zwang.scalar import MutableArray, cond, empty, equal, floor, logical_and, where, while_loop, zeros
from zwang.solver.cones import cone_force, cone_status
from zwang.solver.primal_cost import ForceLaw, PrimalCost, RowBlock, diagonal

BASES = {  # the base of each kind's digit: powers of two, so that no digit is lost to rounding
    "equality": 1,
    "limit": 2,
    "contact": 2,
    "friction": 4,
}
LISTED_PER_VELOCITY = 2  # length of the list of a world; a sphere on others has one block per velocity
FEWEST_LISTED = 500  # blocks; the numbers of fewer are copied in less time than a list is searched


def as_warm_start(start: Any) -> WarmStart | None:
    """`start` if it is a warm start, else None."""
    return cast(WarmStart, start) if callable(start) else None


class StatusStorage(NamedTuple):
    """How the status of this number of blocks is kept for the next step: a list of `capacity`, or all of
    them. largest_status: the largest number of a block.
    """

    blocks: int
    capacity: int
    largest_status: int

    @staticmethod
    def of(primal: PrimalCost) -> StatusStorage:
        """The storage for the blocks of a problem."""
        largest = max((_largest_status(group.rows.kinds) for group in primal.groups), default=0)
        return StatusStorage(primal.block_count, LISTED_PER_VELOCITY * primal.nv, largest)

    @property
    def is_list(self) -> bool:
        """Whether the status is kept in a list."""
        return self.blocks >= FEWEST_LISTED and 2 * self.capacity < self.blocks

    @property
    def size(self) -> int:
        """The number of numbers that are kept."""
        return 2 * self.capacity if self.is_list else self.blocks

    @property
    def largest(self) -> int:
        """The largest of the numbers that are kept."""
        return max(self.largest_status, self.blocks) if self.is_list else self.largest_status

    def known(self, primal: PrimalCost, kept: MutableArray) -> MutableArray:
        """The status (blocks,) that was kept, defined for active blocks."""
        if not self.is_list:
            return kept

        def read(block: RowBlock, carry: tuple[MutableArray, Any]) -> tuple[MutableArray, Any]:
            status, place = carry
            own = block.number + 1

            def is_before(place: Any) -> Any:
                number = kept.gather(place)
                return logical_and(place < self.capacity, logical_and(number > 0, number < own))

            place = while_loop(is_before, lambda place: place + 1, place)
            found = logical_and(place < self.capacity, equal(kept.gather(place), own))
            code = where(found, kept.gather(self.capacity + place), 0.0)
            return block.with_value_in(status, code), place

        return primal.over_active_blocks(read, (empty(self.blocks), 0.0))[0]

    def kept(self, primal: PrimalCost, status: MutableArray) -> MutableArray:
        """The numbers to be kept for the status (blocks,) of the active blocks."""
        if not self.is_list:
            return status

        def append(block: RowBlock, carry: tuple[MutableArray, Any]) -> tuple[MutableArray, Any]:
            code, own = block.value_in(status), block.number + 1

            def with_block(kept: MutableArray, count: Any) -> tuple[MutableArray, Any]:
                kept = kept.scatter(count, own).scatter(self.capacity + count, code)
                return kept, count + 1

            is_kept = logical_and(code > 0, carry[1] < self.capacity)
            return cond(is_kept, with_block, lambda *carry: carry, *carry)

        return primal.over_active_blocks(append, (zeros(2 * self.capacity), 0.0))[0]

    def unknown(self) -> MutableArray:
        """The status (blocks,) before that of the active blocks is stored."""
        return (empty if self.is_list else zeros)(self.blocks)


def _largest_status(kinds: tuple[str, ...]) -> int:
    """The largest status of a block of rows of these kinds: the number of combinations of their digits."""
    return 2 if "cone" in kinds else math.prod(BASES[kind] for kind in kinds)


def encode_status(
    primal: PrimalCost, y: MutableArray, status: MutableArray, before: MutableArray | None = None
) -> MutableArray:
    """Status codes (blocks,) in which those of active blocks are replaced by the status at the residual y.

    before: status codes of a previous solution, which take precedence where they are known (not 0).
    """

    def store(block: RowBlock, status: MutableArray) -> MutableArray:
        now = status_code(block, block.read(y))
        known = None if before is None else block.value_in(before)
        return block.with_value_in(status, now if known is None else where(known > 0, known, now))

    return primal.over_active_blocks(store, status)


def decode_status(status: MutableArray) -> ForceLaw:
    """Force law of rows with a given status; cones without a stored status follow their own law."""

    def force_law(block: RowBlock, y: Any) -> tuple[np.ndarray, np.ndarray]:
        code = block.value_in(status)
        if block.cone is not None:
            return _cone_force_by_status(block.cone, block.D, y, code)
        forces, rest = [], code - 1
        for kind, *numbers in zip(block.kinds, block.D, y, block.bound, strict=True):
            digit, rest = _last_digit(rest, BASES[kind])
            forces.append(_row_force_by_status(kind, digit, *numbers))
        return scalar_array([force for force, _ in forces]), diagonal([w for _, w in forces])

    return force_law


def status_code(block: RowBlock, y: Any) -> Any:
    """Status code of a block whose rows have the residual y; 0 where the block is inactive."""
    return where(block.active, _active_code(block, y), 0.0)


def _active_code(block: RowBlock, y: Any) -> Any:
    """Status code of an active block: one more than the number with the digits of its rows."""
    if block.cone is not None:
        inactive, linear = cone_status(block.cone, y)
        return where(inactive, 1.0, where(linear, 2.0, 0.0))
    code: Any = 0.0
    for kind, *numbers in reversed(list(zip(block.kinds, block.D, y, block.bound, strict=True))):
        code = BASES[kind] * code + _digit(kind, *numbers)
    return code + 1.0


def _digit(kind: str, D: Any, y: Any, bound: Any) -> Any:
    """The digit of one row's status."""
    if kind == "equality":
        return 0.0
    if kind == "friction":
        return where(bound <= -D * y, 1.0, where(-D * y <= -bound, 2.0, 0.0))
    return where(y < 0, 1.0, 0.0)


def _row_force_by_status(kind: str, digit: Any, D: Any, y: Any, bound: Any) -> tuple[Any, Any]:
    """Force and curvature of a row outside cones whose status has this digit."""
    if kind == "equality":
        return -D * y, D
    if kind == "friction":
        at_bound = digit > 0
        return where(at_bound, where(digit > 1, -bound, bound), -D * y), where(at_bound, 0.0, D)
    return where(digit > 0, -D * y, 0.0), where(digit > 0, D, 0.0)


def _cone_force_by_status(cone: Cone, D: Any, y: Any, code: Any) -> tuple[np.ndarray, np.ndarray]:
    """Forces and curvature of a cone by its status code, or by its own law where the code is 0."""
    force, W = cone_force(cone, D, y)
    inactive, linear = equal(code, 1), equal(code, 2)
    force = [where(inactive, 0.0, where(linear, -d * x, f)) for d, x, f in zip(D, y, force, strict=True)]
    both = zip(np.ravel(diagonal(D)), np.ravel(W), strict=True)
    curvature = [where(inactive, 0.0, where(linear, d, w)) for d, w in both]
    return scalar_array(force), np.array(curvature).reshape(W.shape)


def _last_digit(number: Any, base: int) -> tuple[Any, Any]:
    """The last digit of a number, and the number without it."""
    if base == 1:
        return 0, number
    rest = floor(number / base)
    return number - base * rest, rest
