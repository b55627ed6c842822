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

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.constraint.rows import Cone, array
from zwang.scalar import Scratch, equal, floor, scratch, where
from zwang.solve.cones import cone_answer, cone_regions, row_answer
from zwang.solve.primal import Answer, Group, Primal, diagonal

PLACES = {
    "equality": 1,
    "limit": 2,
    "contact": 2,
    "friction": 4,
}  # powers of two, so that no digit is lost in rounding

Recall = Callable[[int], Scratch]
"""The function from the number of groups to their codes."""


def remembered(primal: Primal, y: Scratch) -> Scratch:
    """The codes (groups,) of the answers of rows that miss by y."""

    def note(group: Group, codes: Scratch) -> Scratch:
        code = where(group.active, _code(group, group.read(y)), 0.0)
        return codes.set(group.number, code)

    return primal.over_acting_groups(note, scratch(primal.group_count))


def recalled(codes: Scratch, believed: Any = True) -> Answer:
    """Rows answer as the codes say where these are believed, or else, and where they say nothing, as they do."""

    def answer(group: Group, y: Any) -> tuple[np.ndarray, np.ndarray]:
        code = where(believed, codes[group.number], 0.0)
        if group.cone is not None:
            return _cone_as_before(group.cone, group.D, y, code)
        answers, rest = [], code - 1
        for kind, *numbers in zip(group.kinds, group.D, y, group.bound, strict=True):
            digit, rest = _split(rest, PLACES[kind])
            now, before = row_answer(kind, *numbers), _row_as_before(kind, digit, *numbers)
            answers.append([where(code > 0, old, new) for old, new in zip(before, now, strict=True)])
        return array([force for force, _ in answers]), diagonal([w for _, w in answers])

    return answer


def _code(group: Group, y: Any) -> Any:
    if group.cone is not None:
        none, free = cone_regions(group.cone, y)
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
    force, W = cone_answer(cone, D, y)
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
