"""Control flow and stores, passed on to the reading of what is carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    return backend_of(predicate).cond(predicate, then, otherwise, operands)


def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    reverse: bool = False,
    unroll: bool | None = None,
) -> Any:
    """The carry after `carry = body(i, carry)` for i = lower, ..., upper - 1, or in reverse order.

    The bounds are integers or traced indices. When traced, a short loop between integers is unrolled, with plain
    integers for i, so that zeros fold away; `unroll` True or False decides instead of the length.
    """
    if not all(isinstance(end, (int, np.integer)) for end in (lower, upper)):
        return _backend_for(init).dynamic_loop((lower, upper), reverse, body, init)
    begin, end = int(lower), int(upper)
    if begin == 0 and not reverse:
        return _backend_for(init).for_each(end, body, init, unroll)

    def iterate(i: Any, carry: Any) -> Any:
        return body(end - 1 - i if reverse else begin + i, carry)

    return _backend_for(init).for_each(max(end - begin, 0), iterate, init, unroll)


def for_each(items: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: bool | None = None) -> Any:
    """The carry after `carry = body(item, carry)` for every item: a row of a constant table, or an active index.

    `items` is a `Table`, or values that make one, or `ActiveIndices`. `unroll` is as in `fori_loop`.
    """
    if isinstance(items, ActiveIndices):
        return items.each(body, init)
    rows = items if isinstance(items, Table) else table(items)
    return fori_loop(0, rows.shape[0], lambda i, carry: body(rows[i], carry), init, unroll=unroll)


class ActiveIndices:
    """The indices, below `end` if it is given, at which the flags, a scratch array (n,), are above zero in some lane: items for `for_each`."""

    def __init__(self, flags: MutableArray, end: Any = None) -> None:
        self.flags = flags
        self.items = _backend_for(flags).active_indices(flags, flags.shape[0] if end is None else end)

    def __getitem__(self, place: Any) -> Any:
        """The index at this place among them; 0 behind the last."""
        place = flat_position(self.flags.shape, place)
        return _backend_for(self.flags).active_index(self.items, place, self.flags.shape[0])

    @property
    def count(self) -> Any:
        """How many they are."""
        return _backend_for(self.flags).count(self.items, self.flags.shape[0])

    def each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(index, carry)` for each of them. Where some lane wants an index, it is masked in the others."""

        def asked(index: Any, carry: Any) -> Any:
            return cond(self.flags[index] > 0, lambda carry: body(index, carry), lambda carry: carry, carry)

        return _backend_for(self.flags).active_loop(self.items, self.flags.shape[0], asked, init)


def lane_maximum(x: Any, limit: int) -> Any:
    """The highest of the whole numbers x that lanes have, from 0 to the limit, as an index for all of them. NaN counts as 0.

    It may depend on a lane's neighbours: let no lane's result hang on it, but mask the turns of a loop that it does not want.
    """
    return _backend_for(x).lane_maximum(x, limit)


def table(values: Any) -> Table:
    """A constant table, to be read at loop indices."""
    return Table(values)


def zeros(shape: int | tuple[int, ...]) -> MutableArray:
    """An array of zeros that loops may change."""
    return _allocate(shape, uninitialised=False)


def empty(shape: int | tuple[int, ...]) -> MutableArray:
    """An array that loops may change, with elements that mean nothing until they are set (as in NumPy)."""
    return _allocate(shape, uninitialised=True)


def _allocate(shape: int | tuple[int, ...], uninitialised: bool) -> MutableArray:
    backend = current_backend() or FLOATS
    return backend.allocate((shape,) if isinstance(shape, int) else tuple(shape), uninitialised)


def _backend_for(*trees: Any) -> Backend:
    """The reading that runs control flow over these carries."""
    backend = current_backend()
    if backend is not None:
        return backend
    values = [leaf for tree in trees for leaf in leaves_of(tree)]
    return common_backend(*values) if values else FLOATS
