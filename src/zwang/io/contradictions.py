"""Constraints that contradict each other, as far as it follows from their numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from zwang.mechanism.constraints import Connect, Distance, JointCoupling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant

Part = TypeVar("Part")
TOLERANCE = 1e-9  # absolute [m or rad] and relative, within which numbers are equal


def contradictions(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """(contradiction, part) for constraints that cannot be satisfied.

    They are constraints on the same parts with different numbers, constraints between points of one body, and
    couplings that require a coordinate outside its limits.
    """
    given = mechanism.constraints
    for one, other in _of_one_key([c for c in given if isinstance(c, JointCoupling)], _joints):
        if _differ(_padded(one), _padded(other)):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: both couple joint {one.joint!r}, "
                "with different "
                "coefficients",
                f"joint {one.joint!r}",
            )
    for one, other in _of_one_key([c for c in given if isinstance(c, Connect | Distance)], _ends):
        if _differ(_length(one), _length(other)):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: they require two distances of the "
                "same points",
                f"constraint {other.name!r}",
            )
    for one, other in _of_one_key([c for c in given if isinstance(c, Weld)], _welded):
        if _differ(one.position, other.position) or _differ(one.orientation, other.orientation):
            yield (
                f"{one.name!r} and {other.name!r} contradict each other: both weld {one.b!r} to {one.a!r}, "
                "with "
                "different poses",
                f"constraint {other.name!r}",
            )
    yield from _of_one_body(mechanism)
    yield from _beyond_limits(mechanism)


def _of_one_key(constraints: Iterable[Part], key: Callable[[Part], Any]) -> Iterator[tuple[Part, Part]]:
    """The pairs of constraints that have the same key."""
    groups: dict[Any, list[Part]] = {}
    for constraint in constraints:
        groups.setdefault(key(constraint), []).append(constraint)
    return (pair for group in groups.values() for pair in combinations(group, 2))


def _of_one_body(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Constraints that require another distance of two points of one body than the one they have."""
    for c in mechanism.constraints:
        if not isinstance(c, Connect | Distance) or c.a[0] != c.b[0] or not are_constant(*c.a[1], *c.b[1]):
            continue
        distance = float(np.linalg.norm(np.subtract(c.a[1], c.b[1]).astype(float)))
        if _differ((distance,), _length(c)):
            yield (
                f"{c.name!r} cannot be satisfied: both of its points are on body {c.a[0]!r}, {distance:.4g} "
                "m apart",
                f"constraint {c.name!r}",
            )


def _beyond_limits(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Joint couplings that require a coordinate outside the limits of the joint."""
    joints = {j.name: j.joint for j in mechanism.joints}
    for c in (c for c in mechanism.constraints if isinstance(c, JointCoupling)):
        own = _range(joints[c.joint])
        values = _image(c, _range(joints[c.to]) if c.to is not None else (0.0, 0.0))
        if own is None or values is None:
            continue
        slack = TOLERANCE * (1 + abs(own[0]) + abs(own[1]))
        if values[1] < own[0] - slack or values[0] > own[1] + slack:
            required = (
                f"at {values[0]:.4g}" if c.to is None else f"between {values[0]:.4g} and {values[1]:.4g}"
            )
            yield (
                f"{c.name!r} requires joint {c.joint!r} {required}, and its limits are {own[0]:.4g} and "
                f"{own[1]:.4g}, "
                "relative to its reference",
                f"joint {c.joint!r}",
            )


def _range(joint: Any) -> tuple[float, float] | None:
    """The limits relative to the reference; None if there are none, or if they are symbolic."""
    limits, reference = joint.limits, joint.reference
    if limits is None or not are_constant(*limits, reference):
        return None
    return float(limits[0] - reference), float(limits[1] - reference)


def _image(coupling: JointCoupling, over: tuple[float, float] | None) -> tuple[float, float] | None:
    """The range of a linear joint coupling over a range of the other coordinate; None if it is not linear."""
    c = coupling.coefficients
    if over is None or not c or not are_constant(*c) or any(c[2:]) or not np.isfinite(over).all():
        return None
    ends = [float(c[0] + (c[1] if len(c) > 1 and coupling.to is not None else 0) * x) for x in over]
    return min(ends), max(ends)


def _padded(coupling: JointCoupling) -> tuple[Any, ...]:
    return (*coupling.coefficients, *(0,) * 5)[: max(5, len(coupling.coefficients))]


def _joints(coupling: JointCoupling) -> Any:
    return coupling.joint, coupling.to


def _welded(weld: Weld) -> Any:
    return weld.a, weld.b, weld.anchor


def _ends(constraint: Connect | Distance) -> Any:
    return tuple(sorted((constraint.a, constraint.b), key=repr))


def _length(constraint: Connect | Distance) -> tuple[Any, ...]:
    return (constraint.length if isinstance(constraint, Distance) else 0.0,)


def _differ(one: Any, other: Any) -> bool:
    """Whether two arrays of numbers differ; False if they contain symbols."""
    a, b = np.ravel(np.array(one, dtype=object)), np.ravel(np.array(other, dtype=object))
    if len(a) != len(b) or not are_constant(*a, *b):
        return False
    return not np.allclose(a.astype(float), b.astype(float), rtol=TOLERANCE, atol=TOLERANCE)
