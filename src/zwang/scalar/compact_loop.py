"""Compaction: each world keeps the numbers of the items that it needs, without gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from zwang.scalar.arrays import MutableArray
from zwang.scalar.control_flow import ActiveIndices, cond, empty, fori_loop, lane_maximum
from zwang.scalar.primitives import floor, where

SIGNS_PER_WORD = 12  # 24 bits, which single precision holds


class Appender(NamedTuple):
    """The numbers of items while they are appended: to be carried through loops and branches.

    numbers (size,): those of the items appended so far; count: how many there are.
    """

    numbers: MutableArray
    count: Any

    def append(self, number: Any) -> Appender:
        """These items and item `number`, an index, which has not been appended."""
        return Appender(self.numbers.scatter(self.count, 1.0 * number), self.count + 1.0)


class CompactedItems(NamedTuple):
    """The items that each world has appended, contiguously, by their numbers.

    count: how many this world has. numbers (size,): zero from the count of this world to `lane_count`,
    undefined behind it.
    """

    count: Any
    numbers: MutableArray

    @property
    def size(self) -> int:
        """The largest number of items."""
        return self.numbers.shape[0]

    @property
    def lane_count(self) -> Any:
        """The largest count of the lanes, as the bound of a loop over the items."""
        return lane_maximum(self.count, self.size)

    def has(self, k: Any) -> Any:
        """Whether this world has an item at index k."""
        return 1.0 * k < self.count

    def read(self, array: MutableArray, k: Any, width: int) -> list[Any]:
        """The entries of item k in an array with `width` entries for every number, one item after the other;
        zeros where this world has no such item.
        """
        has, start = self.has(k), self.numbers[k] * width
        return [where(has, array.gather(start + c), 0.0) for c in range(width)]


def compact(size: int, fill: Callable[[Appender], Any]) -> tuple[CompactedItems, Any]:
    """The items, at most `size`, that each world appends in fill(appender) -> (appender, other values); and
    the other values.

    In compiled code a loop over the result runs as often as the world of the lanes with the most items
    needs, whereas a loop over `ActiveIndices` runs over the items that any of them needs.
    """
    appended, others = fill(Appender(empty(size), 0.0))

    def clear(k: Any, numbers: MutableArray) -> MutableArray:
        return numbers.set(k, where(1.0 * k < appended.count, numbers[k], 0.0))

    numbers = fori_loop(0, lane_maximum(appended.count, size), clear, appended.numbers)
    return CompactedItems(appended.count, numbers), others


@dataclass(frozen=True)
class SingleIndex:
    """The active indices of a single flag, as `ActiveIndices`: 0 where it is active."""

    active: Any

    def __getitem__(self, position: Any) -> int:
        """The index at any position."""
        return 0

    def has(self, index: Any) -> Any:
        """Whether the index is active in this world."""
        return self.active

    @property
    def count(self) -> Any:
        """Number of active indices."""
        return lane_maximum(where(self.active, 1.0, 0.0), 1)

    def for_each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(0, carry)` where the index is active."""
        return cond(self.active, lambda carry: body(0, carry), lambda carry: carry, init)


class AppendedIndices(NamedTuple):
    """The active indices of flags, as `ActiveIndices`, where few of many flags are set or read: the indices
    are appended one by one.

    flags: a `MutableArray` (n,), in which the flag of an index is set before this is appended. numbers (n,):
    the indices appended so far, `length` of them, alike in all lanes.
    """

    flags: MutableArray
    numbers: MutableArray
    length: Any

    @staticmethod
    def none(size: int) -> AppendedIndices:
        """No index of this number of flags, which are undefined."""
        return AppendedIndices(empty(size), empty(size), 0.0)

    def set(self, index: Any, flag: Any) -> AppendedIndices:
        """The same indices with one flag replaced."""
        return self._replace(flags=self.flags.set(index, flag))

    def append(self, index: Any) -> AppendedIndices:
        """The indices with one more, if its flag is positive in some lane; to be called outside of conditions
        that differ from lane to lane.
        """

        def with_index(appended: AppendedIndices) -> AppendedIndices:
            flags, numbers, length = appended
            numbers = numbers.set(lane_maximum(length, numbers.shape[0] - 1), 1.0 * index)
            return AppendedIndices(flags, numbers, length + 1)

        is_active = lane_maximum(where(self.flags[index] > 0, 1.0, 0.0), 1)
        return cond(1.0 * is_active > 0, with_index, lambda appended: appended, self)

    def has(self, index: Any) -> Any:
        """Whether an index is active in this world."""
        return self.flags[index] > 0

    def __getitem__(self, position: Any) -> Any:
        """The active index at this position, which is below their number."""
        return lane_maximum(self.numbers[position], self.numbers.shape[0] - 1)

    @property
    def count(self) -> Any:
        """Number of active indices."""
        return lane_maximum(self.length, self.numbers.shape[0])

    def for_each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(index, carry)` for each of them; masked in the lanes where it is not
        active.
        """

        def masked(position: Any, carry: Any) -> Any:
            index = self[position]
            return cond(self.flags[index] > 0, lambda carry: body(index, carry), lambda carry: carry, carry)

        return fori_loop(0, self.count, masked, init)


IndexSet = ActiveIndices | AppendedIndices | SingleIndex
"""The indices at which flags are positive in some lane."""


def pack_signs(signs: Sequence[float]) -> list[int]:
    """Signs 1, 0 and -1 packed into as few whole numbers as single precision holds, 12 in each."""
    digits = [1 + int(sign) for sign in signs]
    words = [digits[k : k + SIGNS_PER_WORD] for k in range(0, len(digits), SIGNS_PER_WORD)]
    return [sum(digit * 4**k for k, digit in enumerate(word)) for word in words]


def unpack_signs(words: Sequence[Any], count: int) -> list[Any]:
    """The signs that `pack_signs` packed; words may be traced, and differ from lane to lane."""
    signs: list[Any] = []
    for word in words:
        number = min(count - len(signs), SIGNS_PER_WORD)
        quotients = [word, *(floor(word * 0.25**k) for k in range(1, number))]
        signs += [x - 4 * y - 1 for x, y in pairwise(quotients)] + [quotients[-1] - 1]
    return signs
