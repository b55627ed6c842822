"""Constraints that cannot hold together, as far as their numbers alone tell it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from zwang.mechanism.constraints import Connect, Distance, JointCoupling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant

CLOSE = 1e-9  # [m or rad, relative] numbers nearer than this are equal


def contradictions(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """(what contradicts, where): two constraints of the same parts with other numbers, one of one body alone, or one beyond a joint's limits."""
    given = mechanism.constraints
    for one, other in combinations([c for c in given if isinstance(c, JointCoupling)], 2):
        if (one.joint, one.to) == (other.joint, other.to) and _differ(_padded(one), _padded(other)):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: both tie joint {one.joint!r}, with other numbers",
                f"joint {one.joint!r}",
            )
    for one, other in combinations([c for c in given if isinstance(c, Connect | Distance)], 2):
        if _ends(one) == _ends(other) and _differ(_length(one), _length(other)):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: the same two points have two distances",
                f"constraint {other.name!r}",
            )
    for one, other in combinations([c for c in given if isinstance(c, Weld)], 2):
        same = (one.a, one.b, one.anchor) == (other.a, other.b, other.anchor)
        if same and (_differ(one.position, other.position) or _differ(one.orientation, other.orientation)):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: both weld {one.b!r} to {one.a!r}, in other poses",
                f"constraint {other.name!r}",
            )
    yield from _of_one_body(mechanism)
    yield from _beyond_limits(mechanism)


def _of_one_body(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Points of one body keep their distance, whatever a constraint says."""
    for c in mechanism.constraints:
        if not isinstance(c, Connect | Distance) or c.a[0] != c.b[0] or not are_constant(*c.a[1], *c.b[1]):
            continue
        apart = float(np.linalg.norm(np.subtract(c.a[1], c.b[1]).astype(float)))
        if _differ((apart,), _length(c)):
            yield (
                f"{c.name!r} cannot hold: both of its points are on body {c.a[0]!r}, {apart:.4g} m apart",
                f"constraint {c.name!r}",
            )


def _beyond_limits(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """A joint that is held, or follows another one, where its limits do not let it be."""
    joints = {j.name: j.joint for j in mechanism.joints}
    for c in (c for c in mechanism.constraints if isinstance(c, JointCoupling)):
        own = _range(joints[c.joint])
        values = _image(c, _range(joints[c.to]) if c.to is not None else (0.0, 0.0))
        if own is None or values is None:
            continue
        slack = CLOSE * (1 + abs(own[0]) + abs(own[1]))
        if values[1] < own[0] - slack or values[0] > own[1] + slack:
            asked = f"at {values[0]:.4g}" if c.to is None else f"between {values[0]:.4g} and {values[1]:.4g}"
            yield (f"{c.name!r} wants joint {c.joint!r} {asked}, and its limits are {own[0]:.4g} and {own[1]:.4g}, from its reference",
                   f"joint {c.joint!r}")  # fmt: skip


def _range(joint: Any) -> tuple[float, float] | None:
    """The limits, less the reference."""
    limits, reference = joint.limits, joint.reference
    if limits is None or not are_constant(*limits, reference):
        return None
    return float(limits[0] - reference), float(limits[1] - reference)


def _image(couple: JointCoupling, over: tuple[float, float] | None) -> tuple[float, float] | None:
    """The smallest and largest value of a linear couple."""
    c = couple.coefficients
    if over is None or not c or not are_constant(*c) or any(c[2:]) or not np.isfinite(over).all():
        return None
    ends = [float(c[0] + (c[1] if len(c) > 1 and couple.to is not None else 0) * x) for x in over]
    return min(ends), max(ends)


def _padded(couple: JointCoupling) -> tuple[Any, ...]:
    return (*couple.coefficients, *(0,) * 5)[:5] if len(couple.coefficients) <= 5 else couple.coefficients


def _ends(constraint: Connect | Distance) -> Any:
    return sorted((constraint.a, constraint.b), key=repr)


def _length(constraint: Connect | Distance) -> tuple[Any, ...]:
    return (constraint.length if isinstance(constraint, Distance) else 0.0,)


def _differ(one: Any, other: Any) -> bool:
    """Whether numbers differ, as far as they are numbers."""
    a, b = np.ravel(np.array(one, dtype=object)), np.ravel(np.array(other, dtype=object))
    if len(a) != len(b) or not are_constant(*a, *b):
        return False
    return not np.allclose(a.astype(float), b.astype(float), rtol=CLOSE, atol=CLOSE)
