"""Equality rows of loops and couplings: connect, weld, distance, joint and tendon couplings; soft as
MuJoCo's, or hard.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, max_abs, norm
from zwang.algebra.rotations import cross, skew, to_quaternion_generic
from zwang.constraint.context import RowContext
from zwang.constraint.inverse_weights import SMALLEST_SQUARE, smallest_R
from zwang.constraint.rows import Rows
from zwang.constraint.softness import hard_softness_rows, soft_rows
from zwang.errors import DescriptionError
from zwang.kinematics.poses import Pose
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.constraints import Connect, Distance, JointCoupling, Weld
from zwang.mechanism.mechanism import JointIndex
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.mechanism.tree import Placement
from zwang.scalar import divide, is_zero, less, logical_and, maximum, sqrt

LOOPS = (Connect, Weld, Distance, JointCoupling, TendonCoupling)


class LoopEnd(NamedTuple):
    """One end of a loop: its pose, Jacobian (6, nv), velocity (6,) and acceleration (6,) at zero generalised
    acceleration; linear before angular, world axes.
    """

    pose: Pose
    J: np.ndarray
    velocity: np.ndarray
    bias: np.ndarray


class Violation(NamedTuple):
    """Violation of one constraint: r (n,), its Jacobian J (n, nv), bias acceleration Jdot v (n,), and of a
    soft constraint the inverse weight (n,) and the smallest R, one for each row or one for all.
    """

    r: Any
    J: np.ndarray
    bias: Any
    inverse_weight: Any
    smallest_R: Any = TINY


def equality_rows(context: RowContext, constraint: Any) -> Rows:
    """Rows of one loop or coupling, soft or hard as its softness says."""
    found = violation_of(context, constraint)
    violation = _switched(found, constraint.active)
    name = constraint.name or type(constraint).__name__.lower()
    if constraint.softness is None:
        return hard_softness_rows(
            name,
            "equality",
            violation.J,
            context.v,
            violation.r,
            inverse_weight=context.hard_inverse_weights(found.J, _mean_squares(context, constraint)),
            bias=violation.bias,
            settling_time=context.step.settling_time,
        )
    # MuJoCo's couplings omit the bias Jdot v
    bias = 0 if isinstance(constraint, JointCoupling | TendonCoupling) else violation.bias
    size = norm(violation.r) if len(violation.r) > 1 else violation.r[0]
    active = constraint.active > 0
    if isinstance(constraint, TendonCoupling):  # tendons may have no moment arm, as for limits
        active = logical_and(active, less(0, max_abs(violation.J[0])))
    return soft_rows(
        name,
        "equality",
        violation.J,
        context.v,
        violation.r,
        constraint.softness,
        inverse_weight=violation.inverse_weight,
        violation=size,
        bias=bias,
        shortest_time=context.shortest_time,
        active=active,
        smallest_R=violation.smallest_R,
    )


def _switched(violation: Violation, active: Any) -> Violation:
    """The violation if `active` is 1; zeros, which constrain nothing, if it is 0."""
    r, bias = (np.array([active * x for x in values]) for values in (violation.r, violation.bias))
    return violation._replace(r=r, J=active * violation.J, bias=bias)


def _mean_squares(context: RowContext, constraint: Any) -> list[list[Any]] | None:
    """The squares (n, nv) of typical entries of the rows of a loop, None for a coupling: the mean squares of
    the relative velocity of its ends over three axes.
    """
    match constraint:
        case Weld():
            ends = (constraint.a, constraint.position), (constraint.b, constraint.anchor)
        case Connect() | Distance():
            ends = constraint.a, constraint.b
        case _:
            return None
    a, b = (_loop_end(context, *end) for end in ends)
    squares = (a.J - b.J) ** 2
    points, rotations = squares[:3].sum(axis=0) / 3, squares[3:].sum(axis=0) / 3
    if isinstance(constraint, Weld):
        scale = divide(constraint.torque_scale, 2)
        rows = [points] * 3 + [scale * scale * rotations] * 3
    else:
        rows = [points] * (3 if isinstance(constraint, Connect) else 1)
    return [[0 if is_zero(x) else x + SMALLEST_SQUARE for x in row] for row in rows]


def violation_of(context: RowContext, constraint: Any) -> Violation:
    """Violation of a constraint, with its derivatives."""
    match constraint:
        case Connect():
            return _connect(context, constraint)
        case Weld():
            return _weld(context, constraint)
        case Distance():
            return _distance(context, constraint)
        case JointCoupling():
            return _joint_coupling(context, constraint)
        case TendonCoupling():
            return _tendon_coupling(context, constraint)
    raise DescriptionError(f"there are no equality rows for a constraint of type {type(constraint).__name__}")


def _loop_end(context: RowContext, body: str, point: Any) -> LoopEnd:
    """The end of a loop at a point of a body."""
    tree = context.mechanism.tree
    base = tree.placement(body)
    place = Placement(base.link, base.R, base.p + base.R @ np.array(point))
    kinematics = context.kinematics
    return LoopEnd(
        kinematics.placement_pose(place),
        kinematics.placement_jacobian(place),
        kinematics.placement_velocity(place),
        kinematics.placement_bias_acceleration(place),
    )


def _body_inverse_weight(context: RowContext, a: str, b: str, *, rotation: bool) -> Any:
    """Sum of the inverse weights of two bodies, of translation or of rotation."""
    first, second = (context.inverse_weights.bodies[name] for name in (a, b))
    return first[rotation] + second[rotation]


def _smallest_R(context: RowContext, a: tuple[str, Any], b: tuple[str, Any]) -> Any:
    """The smallest R of rows that constrain a point of each of two bodies."""
    inverse_weight = _body_inverse_weight(context, a[0], b[0], rotation=False)
    return smallest_R(
        inverse_weight, sum((context.inverse_weights.at_point(*end) for end in (a, b)), start=0)
    )


def _connect(context: RowContext, c: Connect) -> Violation:
    """r = p_a - p_b."""
    a, b = _loop_end(context, *c.a), _loop_end(context, *c.b)
    inverse_weight = _body_inverse_weight(context, c.a[0], c.b[0], rotation=False)
    return Violation(
        a.pose.p - b.pose.p, a.J[:3] - b.J[:3], (a.bias - b.bias)[:3], [inverse_weight] * 3,
        _smallest_R(context, c.a, c.b),
    )  # fmt: skip


def _distance(context: RowContext, c: Distance) -> Violation:
    """r = |d| - length with d = p_a - p_b;  r' = n . d',  r'' = n . d'' + (|d'|^2 - (n . d')^2) / |d|."""
    a, b = _loop_end(context, *c.a), _loop_end(context, *c.b)
    d, d_dot = a.pose.p - b.pose.p, (a.velocity - b.velocity)[:3]
    length = sqrt(d @ d)
    n = np.array([divide(x, length) for x in d])
    along = n @ d_dot
    bias = n @ (a.bias - b.bias)[:3] + divide(d_dot @ d_dot - along * along, length)
    inverse_weight = _body_inverse_weight(context, c.a[0], c.b[0], rotation=False)
    return Violation(
        np.array([length - c.length]), (n @ (a.J[:3] - b.J[:3])).reshape(1, -1), [bias], [inverse_weight],
        _smallest_R(context, c.a, c.b),
    )  # fmt: skip


def _weld(context: RowContext, c: Weld) -> Violation:
    """Position rows p_a + R_a position - p_b - R_b anchor; rotation rows torque_scale e, where (s, e) is the
    quaternion of R_b^T R_a R.

    With the angular velocity w of a relative to b in b's axes, s' = -1/2 w . e and e' = 1/2 (s w + w x e).
    Source: MuJoCo documentation, XML reference, equality/weld.
    """
    a, b = _loop_end(context, c.a, c.position), _loop_end(context, c.b, c.anchor)
    Rb = b.pose.R.T
    s, *e = to_quaternion_generic(Rb @ a.pose.R @ np.array(c.orientation))
    e = np.array(e)
    quaternion_rate = (s * np.eye(3, dtype=int) - skew(e)) / 2
    w, w_dot = _relative_rotation(a, b)
    s_dot, e_dot = -(w @ e) / 2, quaternion_rate @ w
    bias = quaternion_rate @ w_dot + (s_dot * w + cross(w, e_dot)) / 2
    J = np.concatenate([a.J[:3] - b.J[:3], c.torque_scale * (quaternion_rate @ Rb @ (a.J[3:] - b.J[3:]))])
    r = np.concatenate([a.pose.p - b.pose.p, c.torque_scale * e])
    inverse_weight = [
        _body_inverse_weight(context, c.a, c.b, rotation=rotation)
        for rotation in (False, True)
        for _ in range(3)
    ]
    least = _smallest_R(context, (c.a, c.position), (c.b, c.anchor))
    return Violation(
        r, J, np.concatenate([(a.bias - b.bias)[:3], c.torque_scale * bias]), inverse_weight,
        [least] * 3 + [TINY] * 3,
    )  # fmt: skip


def closed_weld(context: RowContext, c: Weld, scale: Any) -> tuple[np.ndarray, np.ndarray]:
    """J (6, nv) and bias acceleration Jdot v (6,) of a weld that is closed, without case distinctions: where
    its violation is zero, s = 1 and e = 0, so that the rotation rows are torque_scale w / 2.

    scale: torque_scale / 2, as a scalar of the backend.
    """
    a, b = _loop_end(context, c.a, c.position), _loop_end(context, c.b, c.anchor)
    J = np.concatenate([a.J[:3] - b.J[:3], scale * (b.pose.R.T @ (a.J[3:] - b.J[3:]))])
    return J, np.concatenate([(a.bias - b.bias)[:3], scale * _relative_rotation(a, b)[1]])


def _relative_rotation(a: LoopEnd, b: LoopEnd) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocity w (3,) of a relative to b and its derivative at zero generalised acceleration, in b's
    axes.
    """
    Rb = b.pose.R.T
    w_b = Rb @ b.velocity[3:]
    w = Rb @ (a.velocity - b.velocity)[3:]
    return w, Rb @ (a.bias - b.bias)[3:] - cross(w_b, w)


def _joint_coupling(context: RowContext, c: JointCoupling) -> Violation:
    """r = x - poly(y), where x and y are the coordinates relative to their references."""
    x, Jx, wx = _coordinate(context, c.name, c.joint)
    y, Jy, wy = _coordinate(context, c.name, c.to) if c.to is not None else (0, 0 * Jx, 0)
    return _coupling(
        context, c.coefficients if c.to is not None else c.coefficients[:1], (x, Jx, wx), (y, Jy, wy)
    )


def _tendon_coupling(context: RowContext, c: TendonCoupling) -> Violation:
    """r = x - poly(y), where x and y are the tendon lengths relative to those in the home configuration."""
    tendons = {tendon.name: tendon for tendon in context.mechanism.tendons}
    names = [c.tendon] if c.to is None else [c.tendon, c.to]
    if c.softness is None and any(tendons[name].path for name in names):
        raise DescriptionError(
            f"coupling {c.name!r} of spatial tendons cannot be hard; give it a softness, such as "
            "zw.Softness()"
        )
    found = []
    for name in names:
        length, moment = tendon_length(context.mechanism, tendons[name], context.kinematics)
        found.append(
            (length - context.inverse_weights.lengths[name], moment, context.inverse_weights.tendons[name])
        )
    other = found[1] if c.to is not None else (0, 0 * found[0][1], 0)
    coupling = _coupling(context, c.coefficients if c.to is not None else c.coefficients[:1], found[0], other)
    least = reduce(maximum, [context.inverse_weights.tendon_R[name] for name in names])
    return coupling._replace(smallest_R=least)


def _coupling(context: RowContext, coefficients: Any, first: Any, second: Any) -> Violation:
    """r = x - poly(y) of two quantities given by (value, Jacobian, inverse weight)."""
    (x, Jx, wx), (y, Jy, wy) = first, second
    value, slope, curvature = _polynomial(coefficients, y)
    speed = Jy @ np.array(context.v)
    return Violation(
        np.array([x - value]), (Jx - slope * Jy).reshape(1, -1), [-curvature * speed * speed], [wx + wy]
    )


def _polynomial(coefficients: Any, y: Any) -> tuple[Any, Any, Any]:
    """Value and first two derivatives of a polynomial, by Horner's scheme."""
    value, slope, curvature = 0, 0, 0
    for c in reversed(coefficients):
        curvature = curvature * y + 2 * slope
        slope = slope * y + value
        value = value * y + c
    return value, slope, curvature


def _coordinate(context: RowContext, name: str, joint: str) -> tuple[Any, np.ndarray, Any]:
    """Coordinate of a joint relative to its reference, its Jacobian, and its inverse weight."""
    index: JointIndex = context.mechanism.joint(joint)
    if index.joint.nq != 1:
        raise DescriptionError(
            f"coupling {name!r} has joint {joint!r} with {index.joint.nq} coordinates; a coupling needs "
            "joints of one coordinate"
        )
    J = [0] * context.mechanism.nv
    J[index.v.start] = 1
    return (
        context.q[index.q.start] - index.joint.reference,
        np.array(J),
        context.inverse_weights.speeds[index.v.start],
    )  # type: ignore[attr-defined]
