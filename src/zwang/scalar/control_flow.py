"""Control flow and arrays, in the style of jax.lax: each call goes to the backend of the carried values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.scalar.arrays import MutableArray, Table, flat_position
from zwang.scalar.backend import Backend, backend_of, common_backend, current_backend
from zwang.scalar.deprecated import loop_bounds
from zwang.scalar.float_backend import FLOATS
from zwang.scalar.primitives import equal
from zwang.scalar.pytree import leaves_of

MOST_LANES = 64  # of a vector register


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The carry after repeating `carry = body(carry)` while `condition(carry)` is true.

    init: the first carry, a pytree; `body` returns one of the same structure. When compiled for several
    lanes, each lane leaves the loop by its own condition.
    """
    return _backend_for(init).while_loop(condition, body, init)


def cond(predicate: Any, then: Callable, otherwise: Callable, *operands: Any) -> Any:
    """`then(*operands)` where the predicate is true, else `otherwise(*operands)`; both return the same
    structure.

    Unlike `where`, a branch that no lane takes is not evaluated.
    """
    if type(predicate) in (bool, np.bool_):
        return then(*operands) if predicate else otherwise(*operands)
    current = current_backend()
    backend = current if current is not None and current.transforms else backend_of(predicate)
    return backend.cond(predicate, then, otherwise, operands)


def without_derivatives(function: Callable, *operands: Any) -> Any:
    """`function(*operands)` with the values of dual numbers among the operands in their place; the function
    reads nothing else that may be one.

    An iteration that finds the solution of an equation need not be differentiated: one step of Newton's
    method from the solution has its derivative.
    """
    return _backend_for(operands).without_derivatives(function, operands)


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

    lower, upper: integers or traced indices. init: the first carry, a pytree. When traced, a short loop
    between integers is unrolled, with plain integers for i, so that zeros fold away; `unroll` True or False
    overrides this.
    """
    if not all(isinstance(end, (int, np.integer)) for end in (lower, upper)):
        return _backend_for(init).dynamic_loop((lower, upper), reverse, body, init)
    begin, end = int(lower), int(upper)
    if begin == 0 and not reverse:
        return _backend_for(init).static_loop(end, body, init, unroll)

    def iterate(i: Any, carry: Any) -> Any:
        return body(end - 1 - i if reverse else begin + i, carry)

    return _backend_for(init).static_loop(max(end - begin, 0), iterate, init, unroll)


def for_each(items: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: bool | None = None) -> Any:
    """The carry after `carry = body(item, carry)` for every item: each row of a constant table, or each
    active index.

    items: a `Table`, values from which one is built, or `ActiveIndices`. unroll: as in `fori_loop`, for
    tables.
    """
    if isinstance(items, ActiveIndices):
        return items.for_each(body, init)
    if (bounds := loop_bounds(items)) is not None:
        lower, upper, reverse = bounds
        return fori_loop(lower, upper, body, init, reverse=reverse, unroll=unroll)
    rows = items if isinstance(items, Table) else table(items)
    return fori_loop(0, rows.shape[0], lambda i, carry: body(rows[i], carry), init, unroll=unroll)


class ActiveIndices:
    """The compacted active set: the indices at which flags are positive in some lane, as items of `for_each`.

    flags: a `MutableArray` (n,). end: an upper bound of the indices, n where omitted.
    """

    def __init__(self, flags: MutableArray, end: Any = None) -> None:
        self.flags = flags
        self.items = _backend_for(flags).active_indices(flags, flags.shape[0] if end is None else end)

    def has(self, index: Any) -> Any:
        """Whether an index is active in this world."""
        return self.flags[index] > 0

    def __getitem__(self, position: Any) -> Any:
        """The active index at this position of the compacted array; 0 beyond the last one."""
        position = flat_position(self.flags.shape, position)
        return _backend_for(self.flags).active_index(self.items, position, self.flags.shape[0])

    @property
    def count(self) -> Any:
        """Number of active indices."""
        return _backend_for(self.flags).count(self.items, self.flags.shape[0])

    def for_each(self, body: Callable[[Any, Any], Any], init: Any) -> Any:
        """The carry after `carry = body(index, carry)` for each of them; masked in the lanes where it is not
        active.
        """

        def masked(index: Any, carry: Any) -> Any:
            return cond(self.has(index), lambda carry: body(index, carry), lambda carry: carry, carry)

        return _backend_for(self.flags).active_loop(self.items, self.flags.shape[0], masked, init)


def lane_maximum(x: Any, limit: int) -> Any:
    """Maximum over the lanes of the whole number x, clamped to 0 ... limit, as one index for all lanes; NaN
    counts as 0.

    It depends on the neighbouring lanes. So the result of a lane must not depend on it: use it as the upper
    bound of a loop, and mask the iterations beyond the lane's own x.
    """
    return _backend_for(x).lane_maximum(x, limit)


def lane_by_lane(body: Callable[[Any], Any], init: Any) -> Any:
    """The carry after `carry = body(carry)`, executed for one lane after another, so that `lane_maximum` is
    the number of the lane itself.

    For work whose control flow differs from lane to lane, such as the elimination of a sparse matrix in an
    order of its own.
    """
    number = _backend_for(init).lane_number()

    def of_lane(lane: Any, carry: Any) -> Any:
        return cond(equal(number, 1.0 * lane), body, lambda carry: carry, carry)

    return fori_loop(0, lane_maximum(number, MOST_LANES - 1) + 1, of_lane, init)


def table(values: Any) -> Table:
    """A constant table of numbers, to be read at loop indices."""
    return Table(values)


def zeros(shape: int | tuple[int, ...]) -> MutableArray:
    """A mutable array of zeros of this shape, for use in loops."""
    return _allocate(shape, uninitialised=False)


def empty(shape: int | tuple[int, ...]) -> MutableArray:
    """A mutable array of this shape with uninitialised elements, as in NumPy."""
    return _allocate(shape, uninitialised=True)


def mutable_array(values: Any) -> MutableArray:
    """A mutable array of these values."""
    values = np.asarray(values)
    array = empty(values.shape)
    for index, value in np.ndenumerate(values):
        array = array.set(index, value)
    return array


def _allocate(shape: int | tuple[int, ...], uninitialised: bool) -> MutableArray:
    backend = current_backend() or FLOATS
    return backend.allocate((shape,) if isinstance(shape, int) else tuple(shape), uninitialised)


def _backend_for(*trees: Any) -> Backend:
    """The backend that executes control flow over these pytrees."""
    backend = current_backend()
    if backend is not None:
        return backend
    values = [leaf for tree in trees for leaf in leaves_of(tree)]
    return common_backend(*values) if values else FLOATS
