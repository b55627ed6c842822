"""Loops and couplings: connect, weld, distance, couple, and coupled tendons; soft as MuJoCo's, or exact."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew, to_quaternion_generic
from zwang.constraint.context import RowContext
from zwang.constraint.rows import Rows
from zwang.constraint.softness import hard_softness_rows, soft_rows
from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian, placement_motion
from zwang.kinematics.poses import Pose, placement_pose
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.constraints import Connect, Distance, JointCoupling, TendonCoupling, Weld
from zwang.mechanism.mechanism import JointIndex
from zwang.mechanism.tree import Placement
from zwang.scalar import divide, sqrt

LOOPS = (Connect, Weld, Distance, JointCoupling, TendonCoupling)


class End(NamedTuple):
    """One end of a loop: its pose, Jacobian (6, nv), velocity and acceleration at a = 0 (6 each, linear first, world axes)."""

    pose: Pose
    J: np.ndarray
    velocity: np.ndarray
    bias: np.ndarray


class Violation(NamedTuple):
    """Of one constraint: r (n,), its derivative J (n, nv), and bias (n,) = Jdot v; weight (n,)."""

    r: Any
    J: np.ndarray
    bias: Any
    weight: Any


def equality_rows(instant: RowContext, constraint: Any) -> Rows:
    """The rows of one loop or coupling, as its softness says."""
    violation = violation_of(instant, constraint)
    name = constraint.name or type(constraint).__name__.lower()
    if constraint.softness is None:
        return hard_softness_rows(
            name, "equality", violation.J, instant.v, violation.r, weight=violation.weight, bias=violation.bias,
            settling_time=instant.settling_time,
        )  # fmt: skip
    bias = (
        0 if isinstance(constraint, JointCoupling | TendonCoupling) else violation.bias
    )  # MuJoCo's couplings leave it out
    size = sqrt(sum(x * x for x in violation.r)) if len(violation.r) > 1 else violation.r[0]
    return soft_rows(
        name, "equality", violation.J, instant.v, violation.r, constraint.softness, weight=violation.weight,
        violation=size, bias=bias, shortest_time=instant.shortest_time,
    )  # fmt: skip


def violation_of(instant: RowContext, constraint: Any) -> Violation:
    """How far a constraint is from holding, with its derivative."""
    match constraint:
        case Connect():
            return _connect(instant, constraint)
        case Weld():
            return _weld(instant, constraint)
        case Distance():
            return _distance(instant, constraint)
        case JointCoupling():
            return _couple(instant, constraint)
        case TendonCoupling():
            return _couple_tendons(instant, constraint)
    raise DescriptionError(f"no rows are known for a constraint of type {type(constraint).__name__}")


def _end(instant: RowContext, body: str, point: Any) -> End:
    tree = instant.mechanism.tree
    base = tree.place(body)
    place = Placement(base.link, base.R, base.p + base.R @ np.array(point))
    velocity, bias = placement_motion(tree, instant.q, instant.v, np.zeros(tree.nv, int), place)
    return End(placement_pose(instant.poses, place), placement_jacobian(tree, instant.poses, place), velocity, bias)


def _body_weights(instant: RowContext, a: str, b: str, *, rotation: bool) -> Any:
    first, second = (instant.weights.bodies[name] for name in (a, b))
    return first[rotation] + second[rotation]


def _connect(instant: RowContext, c: Connect) -> Violation:
    """r = p_a - p_b."""
    a, b = _end(instant, *c.a), _end(instant, *c.b)
    weight = _body_weights(instant, c.a[0], c.b[0], rotation=False)
    return Violation(a.pose.p - b.pose.p, a.J[:3] - b.J[:3], (a.bias - b.bias)[:3], [weight] * 3)


def _distance(instant: RowContext, c: Distance) -> Violation:
    """r = |p_a - p_b| - length; r' = n . d',  r'' = n . d'' + (|d'|^2 - (n . d')^2) / |d|."""
    a, b = _end(instant, *c.a), _end(instant, *c.b)
    d, rate = a.pose.p - b.pose.p, (a.velocity - b.velocity)[:3]
    length = sqrt(d @ d)
    n = np.array([divide(x, length) for x in d])
    along = n @ rate
    bias = n @ (a.bias - b.bias)[:3] + divide(rate @ rate - along * along, length)
    weight = _body_weights(instant, c.a[0], c.b[0], rotation=False)
    return Violation(
        np.array([length - c.length]), (n @ (a.J[:3] - b.J[:3])).reshape(1, -1), [bias], [weight]
    )


def _weld(instant: RowContext, c: Weld) -> Violation:
    """Position rows p_a + R_a position - p_b - R_b anchor; rotation rows torque_scale * vector part of the quaternion (s, e) of R_b^T R_a R.

    With w the velocity of a against b in b's axes: s' = -1/2 w . e,  e' = 1/2 (s w + w x e). Source: MuJoCo's weld.
    """
    a, b = _end(instant, c.a, c.position), _end(instant, c.b, c.anchor)
    Rb = b.pose.R.T
    s, *e = to_quaternion_generic(Rb @ a.pose.R @ np.array(c.orientation))
    e = np.array(e)
    turning = (s * np.eye(3, dtype=int) - skew(e)) / 2
    w_b = Rb @ b.velocity[3:]
    w = Rb @ (a.velocity - b.velocity)[3:]
    w_rate = Rb @ (a.bias - b.bias)[3:] - cross(w_b, w)
    s_rate, e_rate = -(w @ e) / 2, turning @ w
    bias = turning @ w_rate + (s_rate * w + cross(w, e_rate)) / 2
    J = np.concatenate([a.J[:3] - b.J[:3], c.torque_scale * (turning @ Rb @ (a.J[3:] - b.J[3:]))])
    r = np.concatenate([a.pose.p - b.pose.p, c.torque_scale * e])
    weight = [
        _body_weights(instant, c.a, c.b, rotation=rotation) for rotation in (False, True) for _ in range(3)
    ]
    return Violation(r, J, np.concatenate([(a.bias - b.bias)[:3], c.torque_scale * bias]), weight)


def _couple(instant: RowContext, c: JointCoupling) -> Violation:
    """r = x - poly(y), x and y the coordinates less their references."""
    x, Jx, wx = _coordinate(instant, c.name, c.joint)
    y, Jy, wy = _coordinate(instant, c.name, c.to) if c.to is not None else (0, 0 * Jx, 0)
    return _coupling(
        instant, c.coefficients if c.to is not None else c.coefficients[:1], (x, Jx, wx), (y, Jy, wy)
    )


def _couple_tendons(instant: RowContext, c: TendonCoupling) -> Violation:
    """r = x - poly(y), x and y the tendons' lengths less those at home."""
    tendons = {tendon.name: tendon for tendon in instant.mechanism.tendons}
    names = [c.tendon] if c.to is None else [c.tendon, c.to]
    if c.softness is None and any(tendons[name].path for name in names):
        raise DescriptionError(
            f"couple {c.name!r} of spatial tendons cannot be hard: give it a softness, such as zw.Softness()"
        )
    found = []
    for name in names:
        length, moment = tendon_length(instant.mechanism, tendons[name], instant.q)
        found.append((length - instant.weights.lengths[name], moment, instant.weights.tendons[name]))
    other = found[1] if c.to is not None else (0, 0 * found[0][1], 0)
    return _coupling(instant, c.coefficients if c.to is not None else c.coefficients[:1], found[0], other)


def _coupling(instant: RowContext, coefficients: Any, first: Any, second: Any) -> Violation:
    (x, Jx, wx), (y, Jy, wy) = first, second
    value, slope, curvature = _polynomial(coefficients, y)
    speed = Jy @ np.array(instant.v)
    return Violation(
        np.array([x - value]), (Jx - slope * Jy).reshape(1, -1), [-curvature * speed * speed], [wx + wy]
    )


def _polynomial(coefficients: Any, y: Any) -> tuple[Any, Any, Any]:
    """Value and first two derivatives, by Horner's scheme."""
    value, slope, curvature = 0, 0, 0
    for c in reversed(coefficients):
        curvature = curvature * y + 2 * slope
        slope = slope * y + value
        value = value * y + c
    return value, slope, curvature


def _coordinate(instant: RowContext, name: str, joint: str) -> tuple[Any, np.ndarray, Any]:
    index: JointIndex = instant.mechanism.joint(joint)
    if index.joint.nq != 1:
        raise DescriptionError(
            f"couple {name!r} ties joint {joint!r}, which has {index.joint.nq} coordinates; it takes joints of one"
        )
    J = [0] * instant.mechanism.nv
    J[index.v.start] = 1
    return (
        instant.q[index.q.start] - index.joint.reference,
        np.array(J),
        instant.weights.speeds[index.v.start],
    )  # type: ignore[attr-defined]
