"""What is remembered of a solution to begin the next one with: how every row answered, as one number a group.

From one step to the next most rows that pushed push again, and most that slid slide on. Where these answers hold the problem is linear, and
solved by one step of Newton's. Accelerations say less: which way a stiff row answers hangs on their last digits.

A group's code is 0 where its rows did not act, else one more than the number whose digits are its rows' answers:

    equality        along its slope D: no digit
    limit, contact  without force; along its slope
    friction        along its slope; held at the bound; held at minus the bound
    cone            one digit for all rows: without force; along the slopes. Between, where the cost is curved, nothing is remembered
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from zwang.constraint.rows import Cone, WarmStart, array
from zwang.scalar import MutableArray, equal, floor, where
from zwang.solver.cones import cone_force, cone_status
from zwang.solver.primal_cost import Group, PrimalCost, RowForce, diagonal

PLACES = {
    "equality": 1,
    "limit": 2,
    "contact": 2,
    "friction": 4,
}  # powers of two, so that no digit is lost in rounding


def as_warm_start(start: Any) -> WarmStart | None:
    """What a solver is to begin with, if it is that."""
    return cast(WarmStart, start) if callable(start) else None


def encode_status(primal: PrimalCost, y: MutableArray, codes: MutableArray, before: MutableArray | None = None) -> MutableArray:
    """The codes (groups,) with those of groups that act replaced: by how rows that miss by y answer, or by what is known from before."""

    def note(group: Group, codes: MutableArray) -> MutableArray:
        now = status_code(group, group.read(y))
        known = None if before is None else before[group.number]
        return codes.set(group.number, now if known is None else where(known > 0, known, now))

    return primal.over_acting_groups(note, codes)


def decode_status(codes: MutableArray) -> RowForce:
    """Rows answer as the codes of their groups say; cones of which these say nothing, as they do."""

    def answer(group: Group, y: Any) -> tuple[np.ndarray, np.ndarray]:
        code = codes[group.number]
        if group.cone is not None:
            return _cone_as_before(group.cone, group.D, y, code)
        row_status, rest = [], code - 1
        for kind, *numbers in zip(group.kinds, group.D, y, group.bound, strict=True):
            digit, rest = _split(rest, PLACES[kind])
            row_status.append(_row_as_before(kind, digit, *numbers))
        return array([force for force, _ in row_status]), diagonal([w for _, w in row_status])

    return answer


def status_code(group: Group, y: Any) -> Any:
    """The code of a group whose rows miss by y."""
    return where(group.active, _code(group, y), 0.0)


def _code(group: Group, y: Any) -> Any:
    if group.cone is not None:
        none, free = cone_status(group.cone, y)
        return where(none, 1.0, where(free, 2.0, 0.0))
    code: Any = 0.0
    for kind, *numbers in reversed(list(zip(group.kinds, group.D, y, group.bound, strict=True))):
        code = PLACES[kind] * code + _digit(kind, *numbers)
    return code + 1.0


def _digit(kind: str, D: Any, y: Any, bound: Any) -> Any:
    if kind == "equality":
        return 0.0
    if kind == "friction":
        return where(bound <= -D * y, 1.0, where(-D * y <= -bound, 2.0, 0.0))
    return where(y < 0, 1.0, 0.0)


def _row_as_before(kind: str, digit: Any, D: Any, y: Any, bound: Any) -> tuple[Any, Any]:
    """Force and curvature of a row outside cones that answers as this digit says."""
    if kind == "equality":
        return -D * y, D
    if kind == "friction":
        slides = digit > 0
        return where(slides, where(digit > 1, -bound, bound), -D * y), where(slides, 0.0, D)
    return where(digit > 0, -D * y, 0.0), where(digit > 0, D, 0.0)


def _cone_as_before(cone: Cone, D: Any, y: Any, code: Any) -> tuple[np.ndarray, np.ndarray]:
    force, W = cone_force(cone, D, y)
    none, free = equal(code, 1), equal(code, 2)
    force = [where(none, 0.0, where(free, -d * x, f)) for d, x, f in zip(D, y, force, strict=True)]
    both = zip(np.ravel(diagonal(D)), np.ravel(W), strict=True)
    block = [where(none, 0.0, where(free, d, w)) for d, w in both]
    return array(force), np.array(block).reshape(W.shape)


def _split(number: Any, base: int) -> tuple[Any, Any]:
    """The last digit, and the number before it."""
    if base == 1:
        return 0, number
    rest = floor(number / base)
    return number - base * rest, rest
