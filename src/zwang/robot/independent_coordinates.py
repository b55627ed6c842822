"""The coordinates that may be chosen: without those that a couple (a mimic joint) ties to others, or that do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.errors import DescriptionError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import clip

FULL_TURN = 2 * math.pi - 0.1  # with less than 0.1 rad missing; an answer in what is missing counts as none


class CoordinateCoupling(NamedTuple):
    """Coordinate q[this] = reference + polynomial of (q[other] - other_reference); other is None if it is held."""

    this: int
    other: int | None
    reference: Any
    other_reference: Any
    coefficients: tuple[Any, ...]
    speed: int
    other_speed: int | None


@dataclass(frozen=True)
class IndependentCoordinates:
    """Which speeds are free, what ties the others to them, and the limits of q (nq,), infinite where there are none.

    turning: coordinates that can turn a whole turn within their limits, so that limits do not hinder them; of those that
    ties bind, none.
    """

    tree: Tree
    free: tuple[int, ...]
    ties: tuple[CoordinateCoupling, ...]
    lower: np.ndarray
    upper: np.ndarray
    turning: tuple[bool, ...]
    coordinate_of_speed: dict[int, int]

    def completed(self, q: Any) -> np.ndarray:
        """q with the tied coordinates where they belong; q may hold an array of worlds for each coordinate."""
        values = list(q)
        for tie in self.ties:
            x = 0 * values[tie.this] if tie.other is None else values[tie.other] - tie.other_reference
            values[tie.this] = tie.reference + _polynomial(tie.coefficients, x)
        return np.array(values)

    def columns(self, J: np.ndarray, q: Any) -> np.ndarray:
        """J (m, free) of the free speeds, from J (m, nv) of all: a tied speed is its polynomial's slope times the other."""
        columns = list(J.T)
        for tie in reversed(self.ties):
            if tie.other is not None and tie.other_speed is not None:
                slope = _slope(tie.coefficients, q[tie.other] - tie.other_reference)
                columns[tie.other_speed] = columns[tie.other_speed] + slope * columns[tie.speed]
        return np.stack([columns[k] for k in self.free], axis=1)

    def stepped(self, q: Any, step: Any, *, bounded: bool) -> np.ndarray:
        """q after a step along the free speeds, with the tied ones following; within the limits if bounded."""
        v: list[Any] = [0] * self.tree.nv
        for k, x in zip(self.free, step, strict=True):
            v[k] = x
        values = list(integrate_configuration(self.tree, q, np.array(v)))
        if bounded:
            for k in self.free:
                i = self.coordinate_of_speed.get(k)
                if i is not None and self.limited(i):
                    values[i] = clip(values[i], float(self.lower[i]), float(self.upper[i]))
        return self.completed(values)

    def limited(self, i: int) -> bool:
        """Whether the limits of coordinate i can hinder it."""
        return not self.turning[i] and bool(np.isfinite(self.lower[i]) or np.isfinite(self.upper[i]))


def coordinates_for(
    mechanism: Mechanism, bodies: Iterable[str], joints: Iterable[str] | None = None
) -> IndependentCoordinates:
    """The coordinates that move these bodies and frames, of the joints named or of all."""
    tree = mechanism.tree
    ties = _ties(mechanism)
    tied = {tie.speed for tie in ties}
    moving = {k for body in bodies for i in tree.path(tree.place(body).link) for k in _range(tree.links[i].v)}
    for tie in reversed(ties):
        if tie.speed in moving and tie.other_speed is not None:
            moving.add(tie.other_speed)
    if joints is not None:
        moving &= {k for name in joints for k in _range(mechanism.joint(name).v)}
    free = tuple(sorted(moving - tied))
    lower, upper = joint_limits(mechanism)
    _carry_over(ties, lower, upper)
    bound = {i for tie in ties for i in (tie.this, tie.other)}
    turns = {link.q.start for link in tree.links if link.move.kind == "turn"} - bound
    turning = tuple(i in turns and bool(upper[i] - lower[i] >= FULL_TURN) for i in range(tree.nq))
    of_speed = {link.v.start: link.q.start for link in tree.links if link.move.kind != "ball"}
    return IndependentCoordinates(tree, free, ties, lower, upper, turning, of_speed)


def joint_limits(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of q (nq,), infinite where there are none; a ball's limit is no limit of coordinates.

    Raises DescriptionError for limits of a joint of several coordinates: one pair does not say which it means.
    """
    lower, upper = np.full(mechanism.nq, -np.inf), np.full(mechanism.nq, np.inf)
    for index in mechanism.joints:
        limits = getattr(index.joint, "limits", None)
        if limits is None or index.kind == "ball":
            continue
        if index.joint.nq > 1:
            raise DescriptionError(
                f"limits of joint {index.name!r}: a {index.kind} joint has several coordinates; split it into single joints"
            )
        lower[index.q.start], upper[index.q.start] = (float(x) for x in limits)
    return lower, upper


def _ties(mechanism: Mechanism) -> tuple[CoordinateCoupling, ...]:
    """The couples, in an order in which each finds the other coordinate known. Raises DescriptionError for a ring."""
    couples = {c.joint: c for c in mechanism.constraints if isinstance(c, JointCoupling)}
    ordered: list[JointCoupling] = []
    waiting = list(couples.values())
    while waiting:
        ready = [c for c in waiting if c.to is None or c.to not in {w.joint for w in waiting}]
        if not ready:
            raise DescriptionError(
                f"the couples on joints {sorted(c.joint for c in waiting)} tie each other in a ring"
            )
        ordered += ready
        waiting = [c for c in waiting if c not in ready]
    return tuple(_tie(mechanism, c) for c in ordered)


def _tie(mechanism: Mechanism, couple: JointCoupling) -> CoordinateCoupling:
    this = mechanism.joint(couple.joint)
    coefficients = tuple(couple.coefficients)
    if couple.to is None:
        return CoordinateCoupling(this.q.start, None, this.joint.reference, 0, coefficients[:1], this.v.start, None)
    other = mechanism.joint(couple.to)
    return CoordinateCoupling(this.q.start, other.q.start, this.joint.reference, other.joint.reference, coefficients,
               this.v.start, other.v.start)  # fmt: skip


def _carry_over(ties: tuple[CoordinateCoupling, ...], lower: np.ndarray, upper: np.ndarray) -> None:
    """Limits of a coordinate that follows another one linearly become limits of that other one."""
    for tie in reversed(ties):
        c = [float(x) for x in tie.coefficients] + [0.0]
        if tie.other is None or c[1] == 0 or any(c[2:]):
            continue
        ends = [
            (x - float(tie.reference) - c[0]) / c[1] + float(tie.other_reference)
            for x in (lower[tie.this], upper[tie.this])
        ]
        lower[tie.other] = max(lower[tie.other], min(ends))
        upper[tie.other] = min(upper[tie.other], max(ends))


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 ... by Horner's rule."""
    value: Any = 0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _slope(coefficients: tuple[Any, ...], x: Any) -> Any:
    return _polynomial(tuple(k * c for k, c in enumerate(coefficients))[1:], x)
