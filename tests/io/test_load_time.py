"""The work of loading grows linearly with the number of parts, as that of MuJoCo's compiler does."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

import zwang as zw

PARTS = {
    "motor": ('<actuator><motor joint="j{i}"/></actuator>', ""),
    "joint coupling": ('<equality><joint joint1="j{i}" joint2="j{k}"/></equality>', ""),
    "connect": ('<equality><connect body1="b{i}" body2="b{k}" anchor="0 0 0"/></equality>', ""),
    "weld": ('<equality><weld body1="b{i}" body2="b{k}"/></equality>', ""),
    "range sensor": ('<sensor><rangefinder site="s{i}"/></sensor>', '<site name="s{i}"/>'),
    "actuator sensor": (
        '<actuator><motor name="a{i}" joint="j{i}"/></actuator>'
        '<sensor><actuatorfrc actuator="a{i}"/></sensor>',
        "",
    ),
}
"""For each kind of part: the elements beside the bodies, and those inside of each body."""


def model(kind: str, count: int) -> str:
    """The MJCF text of `count` bodies on hinges, with as many parts of this kind."""
    beside, inside = PARTS[kind]
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 0"><joint name="j{i}" axis="0 1 0"/>{inside.format(i=i)}'
        '<geom size=".1" contype="0" conaffinity="0"/></body>'
        for i in range(count + 1)
    )
    parts = "".join(beside.format(i=i, k=i + 1) for i in range(count))
    return f"<mujoco><worldbody>{bodies}</worldbody>{parts}</mujoco>"


def lines_of_loading(text: str) -> int:
    """The number of lines that Python executes while it loads the model, each pass of a loop counted."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        zw.load("model.xml", text=text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("kind", PARTS)
def test_twice_the_parts_take_twice_the_work(kind: str) -> None:
    """Of a linear function f(n), f(4 n) - f(2 n) is twice f(2 n) - f(n); of a quadratic one, four times."""
    lines_of_loading(model(kind, 5))  # what is imported or cached at first
    first, second, third = (lines_of_loading(model(kind, count)) for count in (30, 60, 120))
    assert (third - second) / (second - first) == pytest.approx(2, abs=0.02)
