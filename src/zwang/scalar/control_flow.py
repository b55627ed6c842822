"""Control flow and stores, passed on to the reading of what is carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar.arrays import MutableArray, Table, flat_position
from zwang.scalar.backend import Backend, backend_of, common_backend, current_backend
from zwang.scalar.float_backend import FLOATS
from zwang.scalar.pytree import leaves_of


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The carry after `carry = body(carry)`, as long as `condition(carry)`; each lane for itself."""
    return _backend_for(init).while_loop(condition, body, init)


def cond(predicate: Any, then: Callable, otherwise: Callable, *operands: Any) -> Any:
    """`then(*operands)` or `otherwise(*operands)`, which give results of the same structure.

    Unlike `where`, a branch that no lane wants is not run.
    """
    if type(predicate) is bool:
        return then(*operands) if predicate else otherwise(*operands)
    return backend_of(predicate).when(predicate, then, otherwise, operands)


def for_each(items: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: bool | None = None) -> Any:
    """The carry after `carry = body(item, carry)` for every item.

    `items` is a count, giving the indices 0, 1, ..., a table of constants, giving its entries or rows, the indices `Chosen` by flags, or a `Span`.
    When traced, a short loop is unrolled, with plain numbers for items, so that zeros in a table fold away;
    `unroll` True or False decides instead of the length.
    """
    if isinstance(items, ActiveIndices):
        return items.each(body, init)
    if isinstance(items, IndexRange):
        return _over_range(items, body, init, unroll)
    if not isinstance(items, (int, np.integer)):
        rows = items if isinstance(items, Table) else table(items)
        return for_each(rows.shape[0], lambda i, carry: body(rows[i], carry), init, unroll=unroll)
    return _backend_for(init).for_each(int(items), body, init, unroll)


class ActiveIndices:
    """The indices, below `end` if it is given, at which the flags, a scratch array (n,), are above zero in some lane: items for `for_each`."""

    def __init__(self, flags: MutableArray, end: Any = None) -> None:
        self.flags = flags
        self.items = _backend_for(flags).choose(flags, flags.shape[0] if end is None else end)

    def __getitem__(self, place: Any) -> Any:
        """The index at this place among them; 0 behind the last."""
        place = flat_position(self.flags.shape, place)
        return _backend_for(self.flags).pick(self.items, place, self.flags.shape[0])

    @property
    def count(self) -> Any:
        """How many they are."""
        return _backend_for(self.flags).count(self.items, self.flags.shape[0])

    def each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(index, carry)` for each of them. Where some lane wants an index, it is masked in the others."""

        def asked(index: Any, carry: Any) -> Any:
            return cond(self.flags[index] > 0, lambda carry: body(index, carry), lambda carry: carry, carry)

        return _backend_for(self.flags).for_chosen(self.items, self.flags.shape[0], asked, init)


class IndexRange(NamedTuple):
    """The indices from `begin` up to, but without, `end`, integers or indices, or, backwards, from the last of these: items for `for_each`."""

    begin: Any
    end: Any
    backwards: bool = False


def _over_range(items: IndexRange, body: Callable[[Any, Any], Any], init: Any, unroll: bool | None) -> Any:
    if not all(isinstance(end, (int, np.integer)) for end in items[:2]):
        return _backend_for(init).for_span(items[:2], items.backwards, body, init)
    begin, end = int(items.begin), int(items.end)

    def turn(i: Any, carry: Any) -> Any:
        return body(end - 1 - i if items.backwards else begin + i, carry)

    return _backend_for(init).for_each(max(end - begin, 0), turn, init, unroll)


def lane_maximum(x: Any, limit: int) -> Any:
    """The highest of the whole numbers x that lanes have, from 0 to the limit, as an index for all of them. NaN counts as 0.

    It may depend on a lane's neighbours: let no lane's result hang on it, but mask the turns of a loop that it does not want.
    """
    return _backend_for(x).highest(x, limit)


def table(values: Any) -> Table:
    """A constant table, to be read at loop indices."""
    return Table(values)


def scratch(shape: int | tuple[int, ...], *, blank: bool = False) -> MutableArray:
    """A scratch array of zeros for use in loops; a blank one holds nothing that means anything until it is set."""
    backend = current_backend() or FLOATS
    return backend.scratch((shape,) if isinstance(shape, int) else tuple(shape), blank)


def _backend_for(*trees: Any) -> Backend:
    """The reading that runs control flow over these carries."""
    backend = current_backend()
    if backend is not None:
        return backend
    values = [leaf for tree in trees for leaf in leaves_of(tree)]
    return common_backend(*values) if values else FLOATS
