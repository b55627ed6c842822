"""Independent coordinates: those that joint couplings (mimic joints) leave free."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.hard import acting_constraints
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.joints import Joint
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.robot.holonomic_constraints import compared_joints
from zwang.scalar import clip

FULL_REVOLUTION = 2 * math.pi - 0.1  # [rad] limits this far apart do not restrict the search


class CoordinateCoupling(NamedTuple):
    """The coupling q[dependent] = reference + polynomial in (q[independent] - independent_reference).

    dependent, independent: numbers of the coordinates; independent is None for a coordinate that is fixed.
    velocity, independent_velocity: numbers of the velocities that belong to them.
    """

    dependent: int
    independent: int | None
    reference: Any
    independent_reference: Any
    coefficients: tuple[Any, ...]
    velocity: int
    independent_velocity: int | None


@dataclass(frozen=True)
class IndependentCoordinates:
    """The independent velocities, the couplings that determine the others, and the limits of the coordinates.

    free: numbers of the independent velocities. lower, upper (nq,): limits, infinite where there are none.
    revolving: for each coordinate whether its limits allow a whole revolution, so that they do not restrict
    the search; False for coordinates that a constraint compares. compared (nq,): whether a constraint reads
    the coordinate, so that a whole revolution changes its violation. coordinate_of_speed: the coordinate of
    each velocity that is the rate of one.
    """

    tree: Tree
    free: tuple[int, ...]
    couplings: tuple[CoordinateCoupling, ...]
    lower: np.ndarray
    upper: np.ndarray
    revolving: tuple[bool, ...]
    compared: tuple[bool, ...]
    coordinate_of_speed: dict[int, int]

    def completed(self, q: Any) -> np.ndarray:
        """q with the dependent coordinates computed from their couplings.

        q: (nq,), or (nq, N) for N worlds.
        """
        values = list(q)
        for c in self.couplings:
            i, j = c.dependent, c.independent
            x = 0 * values[i] if j is None else values[j] - c.independent_reference
            values[i] = c.reference + _polynomial(c.coefficients, x)
        return np.array(values)

    def columns(self, J: np.ndarray, q: Any) -> np.ndarray:
        """J B (m, free): the columns of the independent velocities, from J (m, nv) of all velocities.

        The velocity of a dependent coordinate is the slope of its polynomial times the independent velocity.
        For N worlds J is (m, nv, N), q (nq, N) and J B (m, free, N).
        """
        columns = list(np.swapaxes(J, 0, 1))
        for c in reversed(self.couplings):
            if c.independent is not None and c.independent_velocity is not None:
                slope = _slope(c.coefficients, q[c.independent] - c.independent_reference)
                columns[c.independent_velocity] = (
                    columns[c.independent_velocity] + slope * columns[c.velocity]
                )
        independent = np.array([columns[k] for k in self.free])
        return np.swapaxes(independent.reshape(len(self.free), len(J), *np.shape(J)[2:]), 0, 1)

    def basis(self, q: Any) -> np.ndarray:
        """B (nv, free) with v = B u; (nv, free, N) for q (nq, N) of N worlds."""
        nv, worlds = self.tree.nv, np.shape(q)[1:]
        unit = np.eye(nv, dtype=int).reshape(nv, nv, *(1 for _ in worlds))
        return self.columns(np.broadcast_to(unit, (nv, nv, *worlds)), q)

    def basis_derivative(self, q: Any) -> np.ndarray:
        """dB (nv, free, free): the derivatives of B along the independent velocities, which are the last axis
        but that of N worlds.
        """
        B = self.basis(q)
        dB = list(np.zeros((len(B), *B.shape[1:2], *B.shape[1:]), int))
        for c in self.couplings:  # v = s u makes the acceleration s du/dt + ds/dx u^2
            if c.independent is not None and c.independent_velocity is not None:
                x, row = q[c.independent] - c.independent_reference, B[c.independent_velocity]
                slope, curvature = _slope(c.coefficients, x), _slope(_derivative(c.coefficients), x)
                dB[c.velocity] = slope * dB[c.independent_velocity] + curvature * row[:, None] * row[None]
        return np.array(dB)

    def stepped(self, q: Any, step: Any, *, bounded: bool) -> np.ndarray:
        """q after a step (free,) along the independent velocities; dependent coordinates follow.

        bounded: whether the result is clipped to the limits.
        """
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
        """Whether the limits of coordinate i restrict the search."""
        return not self.revolving[i] and bool(np.isfinite(self.lower[i]) or np.isfinite(self.upper[i]))


def coordinates_for(
    mechanism: Mechanism, bodies: Iterable[str], joints: Iterable[str] | None = None
) -> IndependentCoordinates:
    """The independent coordinates that move these bodies and frames.

    joints: names of the joints that may move; by default all.
    """
    tree = mechanism.tree
    couplings = tuple(_coordinate_coupling(mechanism, c) for c in determining_couplings(mechanism))
    dependent = {c.velocity for c in couplings}
    moving = {
        k for body in bodies for i in tree.path(tree.placement(body).link) for k in _range(tree.links[i].v)
    }
    for c in reversed(couplings):
        if c.velocity in moving and c.independent_velocity is not None:
            moving.add(c.independent_velocity)
    if joints is not None:
        moving &= {k for name in joints for k in _range(mechanism.joint(name).v)}
    free = tuple(sorted(moving - dependent))
    lower, upper = joint_limits(mechanism)
    _transfer_limits(couplings, lower, upper)
    read = [j.q for c in acting_constraints(mechanism) for j in compared_joints(mechanism, c)]
    compared = tuple(any(part.start <= i < part.stop for part in read) for i in range(tree.nq))
    revolute = {i for link in tree.links if link.joint.kind == "revolute" for i in _range(link.q)}
    revolute = {i for i in revolute if not compared[i]}
    revolving = tuple(i in revolute and bool(upper[i] - lower[i] >= FULL_REVOLUTION) for i in range(tree.nq))
    of_speed = {link.v.start: link.q.start for link in tree.links if link.joint.kind != "ball"}
    return IndependentCoordinates(tree, free, couplings, lower, upper, revolving, compared, of_speed)


def joint_limits(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Limits (lower, upper) of the coordinates, each (nq,) and infinite where there are none.

    The limit of a ball joint is an angle and does not bound single coordinates. Raises DescriptionError for
    limits of a joint with several coordinates, since one pair of limits does not say which it bounds.
    """
    lower, upper = np.full(mechanism.nq, -np.inf), np.full(mechanism.nq, np.inf)
    for index in mechanism.joints:
        limits = getattr(index.joint, "limits", None)
        if limits is None or index.kind == "ball":
            continue
        if index.joint.nq > 1:
            raise DescriptionError(
                f"limits of joint {index.name!r}: a {index.kind} joint has several coordinates; "
                "split it into single joints"
            )
        lower[index.q.start], upper[index.q.start] = (float(x) for x in limits)
    return lower, upper


def ball_limits(mechanism: Mechanism) -> tuple[tuple[slice, float], ...]:
    """For each ball joint with limits its coordinates and the largest angle [rad] of its rotation vector."""
    return tuple(
        (index.q, float(max(index.joint.limits)))
        for index in mechanism.joints
        if index.kind == "ball" and index.joint.limits is not None
    )


def determining_couplings(mechanism: Mechanism) -> tuple[JointCoupling, ...]:
    """The joint couplings that determine dependent coordinates, each after those that determine its `to`.

    They are the first one of each joint, without those that would close a cycle. The others restrict
    independent coordinates, as loop constraints do.
    """
    by_joint: dict[str, JointCoupling] = {}
    for c in acting_constraints(mechanism):
        if isinstance(c, JointCoupling) and c.joint not in _chain(by_joint, c.to):
            by_joint.setdefault(c.joint, c)
    return tuple(sorted(by_joint.values(), key=lambda c: len(_chain(by_joint, c.to))))


def _chain(by_joint: dict[str, JointCoupling], joint: str | None) -> list[str]:
    """A joint, the one that determines it, and so on."""
    chain = []
    while joint is not None:
        chain.append(joint)
        joint = by_joint[joint].to if joint in by_joint else None
    return chain


def _coordinate_coupling(mechanism: Mechanism, coupling: JointCoupling) -> CoordinateCoupling:
    """A joint coupling in terms of coordinate and velocity numbers."""
    this = mechanism.joint(coupling.joint)
    reference = _reference(this.joint)
    coefficients = tuple(coupling.coefficients)
    if coupling.to is None:
        return CoordinateCoupling(this.q.start, None, reference, 0, coefficients[:1], this.v.start, None)
    other = mechanism.joint(coupling.to)
    return CoordinateCoupling(
        this.q.start,
        other.q.start,
        reference,
        _reference(other.joint),
        coefficients,
        this.v.start,
        other.v.start,
    )


def _reference(joint: Joint) -> Any:
    """The reference coordinate of a joint of one coordinate."""
    return getattr(joint, "reference")  # noqa: B009  (declared by the joints of one coordinate alone)


def _transfer_limits(couplings: tuple[CoordinateCoupling, ...], lower: np.ndarray, upper: np.ndarray) -> None:
    """Tighten the limits of an independent coordinate by those of coordinates that depend on it linearly."""
    for coupling in reversed(couplings):
        c = [float(x) for x in coupling.coefficients] + [0.0]
        if coupling.independent is None or c[1] == 0 or any(c[2:]):
            continue
        bounds = [
            (x - float(coupling.reference) - c[0]) / c[1] + float(coupling.independent_reference)
            for x in (lower[coupling.dependent], upper[coupling.dependent])
        ]
        lower[coupling.independent] = max(lower[coupling.independent], min(bounds))
        upper[coupling.independent] = min(upper[coupling.independent], max(bounds))


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 ... by Horner's rule."""
    value: Any = 0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _slope(coefficients: tuple[Any, ...], x: Any) -> Any:
    """The derivative of the polynomial at x."""
    return _polynomial(_derivative(coefficients), x)


def _derivative(coefficients: tuple[Any, ...]) -> tuple[Any, ...]:
    """The coefficients of the derivative of the polynomial."""
    return tuple(k * c for k, c in enumerate(coefficients))[1:]
