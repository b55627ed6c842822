"""Exact constraints to first order: A(q, t) v + a(q, t) = 0 and, differentiated, A v_dot = b; with positions where they are holonomic.

Loops bring their own derivatives; runners, rolling and formulas are differentiated along the motion by duals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang import scalar
from zwang.algebra.dual import SecondOrder, derivative_along
from zwang.algebra.rotations import perpendicular_axes
from zwang.constraint.context import RowContext
from zwang.constraint.equality import LOOPS, violation_of
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.rows import Rows, hard_rows
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.constraints import FORMULAS, Holonomic, NonIdeal, NoSideSlip, Pfaffian, Rolling
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import divide, maximum, sqrt

VELOCITY_LEVEL = (NoSideSlip, Rolling, Holonomic, Pfaffian)
SMALLEST_WEIGHT = 1e-12
_NO_WEIGHTS = InverseWeights(defaultdict(lambda: (0, 0)), (), {}, {})


class VelocityLevelRows(NamedTuple):
    """k rows by name: A (k, nv), a (k,), b (k,); position (k,): g(q, t) of holonomic rows, None of others."""

    names: tuple[str, ...]
    A: np.ndarray
    a: np.ndarray
    b: np.ndarray
    position: tuple[Any, ...]


def is_hard_constraint(constraint: Any) -> bool:
    """Is it a constraint that holds exactly?"""
    return isinstance(constraint, VELOCITY_LEVEL) or (isinstance(constraint, LOOPS) and constraint.softness is None)


def all_velocity_level_rows(mechanism: Mechanism, q: Any, v: Any, t: Any = 0) -> VelocityLevelRows:
    """The rows of all exact constraints of a mechanism, in order."""
    parts = [velocity_level_rows(mechanism, c, q, v, t) for c in mechanism.constraints if is_hard_constraint(c)]
    if not parts:
        nothing = np.zeros(0, int)
        return VelocityLevelRows((), np.zeros((0, mechanism.nv), int), nothing, nothing, ())
    return VelocityLevelRows(
        tuple(name for p in parts for name in p.names), np.concatenate([p.A for p in parts]),
        np.concatenate([p.a for p in parts]), np.concatenate([p.b for p in parts]),
        tuple(x for p in parts for x in p.position),
    )  # fmt: skip


def velocity_level_rows_at(mechanism: Mechanism, q: Any, t: Any = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (k, nv), a (k,) and the gaps g(q, t) (k,) of all exact constraints at q and t; rows without a position have the gap 0."""
    parts: list[Parts] = []
    for c in mechanism.constraints:
        if isinstance(c, VELOCITY_LEVEL):
            parts.append(_parts(mechanism, c, q, t))
        elif is_hard_constraint(c):
            row = _of_loop(mechanism, c, q, np.zeros(mechanism.nv, int))
            parts.append((row.A, row.a, row.position))
    gaps = [0 if r is None else r for _, _, position in parts for r in position]
    return np.concatenate([A for A, _, _ in parts]), np.concatenate([a for _, a, _ in parts]), np.array(gaps)


def velocity_level_rows(mechanism: Mechanism, constraint: Any, q: Any, v: Any, t: Any = 0) -> VelocityLevelRows:
    """The rows of one constraint at q, v and the time t."""
    if isinstance(constraint, LOOPS):
        return _of_loop(mechanism, constraint, q, v)
    A, a, position = _parts(mechanism, constraint, q, t)

    def residual(state: Any) -> np.ndarray:
        """A v + a, with v held."""
        A, a, _ = _parts(mechanism, constraint, state[:-1], state[-1])
        return A @ np.asarray(v) + a

    rates = np.array([*configuration_rate(mechanism.tree, q, v), 1], dtype=object)
    _, rate = derivative_along(residual, [*q, t], rates)
    return VelocityLevelRows((constraint.name,) * len(A), A, np.asarray(a), -rate, tuple(position))


def _parts(mechanism: Mechanism, constraint: Any, q: Any, t: Any) -> Parts:
    """A, a and the positions of one constraint."""
    match constraint:
        case NoSideSlip():
            return _no_side_slip(mechanism, constraint, q)
        case Rolling():
            return _rolling(mechanism, constraint, q)
        case Holonomic():
            return _holonomic(mechanism, constraint, q, t)
        case Pfaffian():
            return _pfaffian(mechanism, constraint, q, t)
    raise DescriptionError(f"no exact rows are known for a constraint of type {type(constraint).__name__}")


def _of_loop(mechanism: Mechanism, constraint: Any, q: Any, v: Any) -> VelocityLevelRows:
    instant = RowContext(
        mechanism, np.asarray(q), np.asarray(v), link_poses(mechanism.tree, q), _loop_weights(mechanism), 0
    )
    violation = violation_of(instant, constraint)
    n = len(violation.J)
    return VelocityLevelRows(
        (constraint.name,) * n,
        np.asarray(violation.J),
        np.zeros(n, int),
        -np.asarray(violation.bias),
        tuple(violation.r),
    )


def _loop_weights(mechanism: Mechanism) -> InverseWeights:
    """Weights play no part in exact rows."""
    return _NO_WEIGHTS._replace(speeds=(0,) * mechanism.nv)


def hard_constraint_rows(instant: RowContext, constraint: Any) -> Rows:
    """The rows of a runner, of rolling or of a formula, A v_dot = b; with settling_time T stabilised.

    Velocities decay as exp(-2 t / T), positions critically damped, as those of exact loops.
    """
    A, a, b, position = velocity_level_rows(instant.mechanism, constraint, instant.q, instant.v, instant.time)[1:]
    velocity = A @ np.asarray(instant.v) + a
    if instant.settling_time is not None:
        rate = 1 / instant.settling_time
        b = (
            b
            - 2 * rate * velocity
            - rate * rate * np.array([0 if r is None else r for r in position], dtype=object)
        )
    weights = [
        sum((x * x * w for x, w in zip(row, instant.weights.speeds, strict=True)), start=0) for row in A
    ]
    return hard_rows(
        [constraint.name] * len(A), A, b, position=[0 if r is None else r for r in position], velocity=velocity,
        weight=[maximum(w, SMALLEST_WEIGHT) for w in weights],
    )  # fmt: skip


def depends_on_time(constraint: Any) -> bool:
    """Does a formula of the constraint have the time t in it?"""
    if not isinstance(constraint, FORMULAS):
        return False
    pairs = (*getattr(constraint, "coefficients", ()), *getattr(constraint, "forces", ()))
    parts = [*getattr(constraint, "expressions", ()), getattr(constraint, "rate", 0), *(x for _, x in pairs)]
    return any(str(s) == "t" for part in parts for s in scalar.symbols_of(part))


def rheonomic_constraints(mechanism: Mechanism) -> list[str]:
    """The names of the constraints that act and have the time t in a formula."""
    if {"constraint", "equality"} & set(mechanism.options.disabled):
        return []
    kinds = (*VELOCITY_LEVEL, NonIdeal)
    return [c.name for c in mechanism.constraints if isinstance(c, kinds) and depends_on_time(c)]


Parts = tuple[np.ndarray, np.ndarray, Sequence[Any]]


def _point_jacobian(tree: Tree, poses: list[Pose], body: str, point: np.ndarray) -> np.ndarray:
    """J (3, nv) of the point of a body that is at `point` in the world."""
    base = tree.place(body)
    if base.link == WORLD:
        return np.zeros((3, tree.nv), int)
    R, p = poses[base.link]
    return placement_jacobian(tree, poses, Placement(base.link, base.R, R.T @ (point - p)))[:3]


def _no_side_slip(mechanism: Mechanism, c: NoSideSlip, q: Any) -> Parts:
    """d . (v_body - v_on) = 0 at the point."""
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    R, p = placement_pose(poses, tree.place(c.body))
    d, at = R @ np.array(c.direction), p + R @ np.array(c.point)
    J = _point_jacobian(tree, poses, c.body, at) - _point_jacobian(tree, poses, c.on, at)
    return (d @ J).reshape(1, -1), np.array([0]), [None]


def _rolling(mechanism: Mechanism, c: Rolling, q: Any) -> Parts:
    """The contact point's velocity against the plane is zero: along two axes of the plane and along its normal."""
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    contact, axes = rolling_contact(tree, poses, c)
    R_on, p_on = placement_pose(poses, tree.place(c.on))
    J = _point_jacobian(tree, poses, c.body, contact) - _point_jacobian(tree, poses, c.on, contact)
    height = axes[2] @ (contact - p_on - R_on @ np.array(c.plane_point))
    return axes @ J, np.array([0, 0, 0]), [None, None, height]


def rolling_contact(tree: Tree, poses: list[Pose], c: Rolling) -> tuple[np.ndarray, np.ndarray]:
    """Where a ball or disc touches its plane, and the axes (3, 3) of its rows: two in the plane and the normal; world axes."""
    R, p = placement_pose(poses, tree.place(c.body))
    R_on, _ = placement_pose(poses, tree.place(c.on))
    n = R_on @ np.array(c.normal)
    down = -n
    if c.axis is not None:
        a = R @ np.array(c.axis)
        inward = n - (n @ a) * a
        length = sqrt(inward @ inward)
        down = -np.array([divide(x, length) for x in inward])
    contact = p + R @ np.array(c.centre) + c.radius * down
    return contact, np.array([*perpendicular_axes(c.normal), c.normal]) @ R_on.T


def formula(
    mechanism: Mechanism, expression: Any, q: Any, t: Any, more: Mapping[str, Any] | None = None
) -> Any:
    """The value of a constraint's expression at q and t."""
    values = {**dict(zip(mechanism.coordinate_names, q, strict=True)), "t": t, **(more or {})}
    mapping = {s: values[str(s)] for s in scalar.symbols_of(expression) if str(s) in values}
    return scalar.substitute(expression, mapping) if mapping else expression


def _holonomic(mechanism: Mechanism, c: Holonomic, q: Any, t: Any) -> Parts:
    """dg/dq G(q) v + dg/dt = 0."""
    tree, nv = mechanism.tree, mechanism.nv

    def g(state: Any) -> list[Any]:
        return [formula(mechanism, x, state[:-1], state[-1]) for x in c.expressions]

    def slopes(unit: Any, time: int) -> np.ndarray:
        rates = [*configuration_rate(tree, q, np.array(unit)), time]
        return derivative_along(g, [*q, t], rates, SecondOrder)[1]

    A = np.stack([slopes([1 if i == k else 0 for i in range(nv)], 0) for k in range(nv)], axis=1)
    return A, slopes([0] * nv, 1), g([*q, t])


def _pfaffian(mechanism: Mechanism, c: Pfaffian, q: Any, t: Any) -> Parts:
    row: list[Any] = [0] * mechanism.nv
    for name, coefficient in c.coefficients:
        row[mechanism.speed_names.index(name)] = formula(mechanism, coefficient, q, t)
    return np.array([row], dtype=object), np.array([formula(mechanism, c.rate, q, t)], dtype=object), [None]


def nonideal_forces(mechanism: Mechanism, q: Any, v: Any, t: Any, sizes: Mapping[str, Any]) -> np.ndarray:
    """The prescribed parts (nv,) of all non-ideal constraints, for the sizes N of the constraints' forces by name."""
    total = np.array([0] * mechanism.nv, dtype=object)
    speeds = {f"{name}_dot": x for name, x in zip(mechanism.speed_names, v, strict=True)}
    for c in mechanism.constraints:
        if isinstance(c, NonIdeal):
            for name, expression in c.forces:
                k = mechanism.speed_names.index(name)
                total[k] = total[k] + formula(
                    mechanism, expression, q, t, {**speeds, "N": sizes[c.constraint]}
                )
    return total
