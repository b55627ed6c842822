"""Constraints at velocity level, A(q, t) v + a(q, t) = 0, and at acceleration level, A v_dot = b; holonomic
ones with their violation. They are hard, or soft with MuJoCo's parameters.

Loops have closed-form derivatives. Knife-edge constraints, rolling and formulas are differentiated along the
motion by dual numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang import scalar
from zwang.algebra.dual import SecondOrder, derivative_along
from zwang.algebra.norms import norm
from zwang.algebra.rotations import perpendicular_axes
from zwang.constraint.context import RowContext, StepForm
from zwang.constraint.equality import LOOPS, Violation, equality_rows, violation_of
from zwang.constraint.inverse_weights import zero_inverse_weights
from zwang.constraint.rows import Rows, rows_of_kind
from zwang.constraint.softness import soft_rows
from zwang.errors import DescriptionError
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.constraints import (
    EXPRESSION_CONSTRAINTS,
    CoulombFriction,
    Holonomic,
    NonIdeal,
    NoSideSlip,
    Pfaffian,
    Rolling,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import divide, is_zero, maximum, sqrt

VELOCITY_LEVEL = (NoSideSlip, Rolling, Holonomic, Pfaffian)
SMALLEST_INVERSE_WEIGHT = 1e-12  # of a row that moves almost nothing


class VelocityLevelRows(NamedTuple):
    """k rows by name: A (k, nv), a (k,), b (k,); position (k,): the violation g(q, t) of holonomic rows,
    None for others.
    """

    names: tuple[str, ...]
    A: np.ndarray
    a: np.ndarray
    b: np.ndarray
    position: tuple[Any, ...]


def is_hard_constraint(constraint: Any) -> bool:
    """Whether a constraint is hard."""
    return isinstance(constraint, (*VELOCITY_LEVEL, *LOOPS)) and constraint.softness is None


def equality_enabled(mechanism: Mechanism) -> bool:
    """Whether the options enable equality constraints."""
    return not {"constraint", "equality"} & set(mechanism.options.disabled)


def hard_constraints(mechanism: Mechanism) -> list[Any]:
    """The hard equality constraints that the options enable."""
    return [c for c in mechanism.constraints if is_hard_constraint(c)] if equality_enabled(mechanism) else []


def acting_constraints(mechanism: Mechanism) -> tuple[Any, ...]:
    """The loops, couplings, formulas, and no-slip constraints of a mechanism that act.

    Those that the options disable, and those whose `active` is 0, have no effect. A symbol as `active` counts
    as 1. Force laws of constraints, `NonIdeal` and `CoulombFriction`, are not included.
    """
    if not equality_enabled(mechanism):
        return ()
    equalities = [c for c in mechanism.constraints if isinstance(c, (*VELOCITY_LEVEL, *LOOPS))]
    return tuple(c for c in equalities if not is_zero(getattr(c, "active", 1)))


def holonomic_violation(context: RowContext, constraint: Any) -> Violation:
    """Violation of a loop, a coupling or a `Holonomic` constraint, with its derivatives, at zero velocity."""
    if not isinstance(constraint, Holonomic):
        return violation_of(context, constraint)
    A, _, r = _holonomic(context.mechanism, constraint, context.q, context.time)
    return Violation(np.array(r), A, np.zeros(len(A), int), row_inverse_weights(context, A))


def all_velocity_level_rows(mechanism: Mechanism, q: Any, v: Any, t: Any = 0) -> VelocityLevelRows:
    """Rows of all hard constraints of a mechanism that the options enable, in order."""
    forms = [velocity_level_rows(mechanism, c, q, v, t) for c in hard_constraints(mechanism)]
    if not forms:
        nothing = np.zeros(0, int)
        return VelocityLevelRows((), np.zeros((0, mechanism.nv), int), nothing, nothing, ())
    return VelocityLevelRows(
        tuple(name for p in forms for name in p.names),
        np.concatenate([p.A for p in forms]),
        np.concatenate([p.a for p in forms]),
        np.concatenate([p.b for p in forms]),
        tuple(x for p in forms for x in p.position),
    )


def velocity_level_rows_at(
    mechanism: Mechanism, q: Any, t: Any = 0, constraints: Sequence[Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (k, nv), a (k,) and the violations g(q, t) (k,) of constraints at q and t, by default of all hard
    ones that the options enable; velocity-level rows have the violation 0.
    """
    nothing = np.zeros(0, int)
    forms: list[PfaffianForm] = [(np.zeros((0, mechanism.nv), int), nothing, [])]
    for c in hard_constraints(mechanism) if constraints is None else constraints:
        if isinstance(c, VELOCITY_LEVEL):
            forms.append(_pfaffian_form(mechanism, c, q, t))
        else:
            row = _loop_rows(mechanism, c, q, np.zeros(mechanism.nv, int))
            forms.append((row.A, row.a, row.position))
    violations = [0 if r is None else r for _, _, position in forms for r in position]
    return (
        np.concatenate([A for A, _, _ in forms]),
        np.concatenate([a for _, a, _ in forms]),
        np.array(violations),
    )


def velocity_level_rows(
    mechanism: Mechanism, constraint: Any, q: Any, v: Any, t: Any = 0
) -> VelocityLevelRows:
    """Rows of one constraint at q, v and the time t [s], regardless of its softness."""
    if isinstance(constraint, LOOPS):
        return _loop_rows(mechanism, constraint, q, v)
    A, a, position = _pfaffian_form(mechanism, constraint, q, t)

    def residual(state: Any) -> np.ndarray:
        """A v + a as a function of (q, t), with v fixed."""
        A, a, _ = _pfaffian_form(mechanism, constraint, state[:-1], state[-1])
        return A @ np.asarray(v) + a

    rates = np.array([*configuration_rate(mechanism.tree, q, v), 1], dtype=object)
    _, rate = derivative_along(residual, [*q, t], rates)
    return VelocityLevelRows((constraint.name,) * len(A), A, np.asarray(a), -rate, tuple(position))


def _pfaffian_form(mechanism: Mechanism, constraint: Any, q: Any, t: Any) -> PfaffianForm:
    """A, a and the violations of one constraint."""
    match constraint:
        case NoSideSlip():
            return _no_side_slip(mechanism, constraint, q)
        case Rolling():
            return _rolling(mechanism, constraint, q)
        case Holonomic():
            return _holonomic(mechanism, constraint, q, t)
        case Pfaffian():
            return _pfaffian(mechanism, constraint, q, t)
    raise DescriptionError(f"there are no hard rows for a constraint of type {type(constraint).__name__}")


def _loop_rows(mechanism: Mechanism, constraint: Any, q: Any, v: Any) -> VelocityLevelRows:
    """Rows of a loop or coupling, from its violation."""
    context = RowContext(
        mechanism,
        np.asarray(q),
        np.asarray(v),
        Kinematics(mechanism.tree, q, v),
        zero_inverse_weights(mechanism),
        StepForm(0),
    )
    violation = violation_of(context, constraint)
    n = len(violation.J)
    return VelocityLevelRows(
        (constraint.name,) * n,
        np.asarray(violation.J),
        np.zeros(n, int),
        -np.asarray(violation.bias),
        tuple(violation.r),
    )


def rows_of_constraint(context: RowContext, constraint: Any) -> Rows:
    """Rows of a constraint other than limits, friction and contact, soft or hard as its softness says."""
    rows = equality_rows if isinstance(constraint, LOOPS) else hard_constraint_rows
    return rows(context, constraint)


def hard_constraint_rows(context: RowContext, constraint: Any) -> Rows:
    """Rows A v_dot = b of a knife-edge constraint, of rolling or of a formula, with Baumgarte stabilisation;
    or those of its softness.

    With the settling time T, velocity residuals decay as exp(-2 t / T) and violations are critically damped,
    as those of hard loops.
    """
    A, a, b, position = velocity_level_rows(
        context.mechanism, constraint, context.q, context.v, context.time
    )[1:]
    if constraint.softness is not None:
        return _soft_constraint_rows(context, constraint, VelocityLevelRows((), A, a, b, position))
    velocity, violations = A @ np.asarray(context.v) + a, [0 if r is None else r for r in position]
    if context.step.settling_time is not None:
        rate = 1 / context.step.settling_time
        b = b - 2 * rate * velocity - rate * rate * np.array(violations, dtype=object)
    return rows_of_kind(
        constraint.name, "equality", A, b, position=violations, velocity=velocity,
        inverse_weight=context.hard_inverse_weights(A),
    )  # fmt: skip


def _soft_constraint_rows(context: RowContext, constraint: Any, rows: VelocityLevelRows) -> Rows:
    """Soft rows with aref = -B (A v + a) - K d r + b.

    Rows without a violation, of velocity-level constraints, have r = 0 and so no stiffness; their impedance
    is that of the violations of the same constraint, or d(0).
    """
    violations = [r for r in rows.position if r is not None]
    size = norm(violations) if len(violations) > 1 else [*violations, 0][0]
    return soft_rows(
        constraint.name,
        "equality",
        rows.A,
        context.v,
        [0 if r is None else r for r in rows.position],
        constraint.softness,
        inverse_weight=row_inverse_weights(context, rows.A),
        violation=size,
        bias=list(-rows.b),
        drift=list(rows.a),
        shortest_time=context.shortest_time,
    )


def row_inverse_weights(context: RowContext, A: Any) -> list[Any]:
    """The inverse weights of rows A (k, nv) that two bodies do not determine, at least a positive one."""
    return [maximum(w, SMALLEST_INVERSE_WEIGHT) for w in context.inverse_weights.of_rows(A)]


def depends_on_time(constraint: Any) -> bool:
    """Whether a formula of the constraint contains the time t (the constraint is rheonomic)."""
    if not isinstance(constraint, EXPRESSION_CONSTRAINTS):
        return False
    pairs = (
        x for name in ("coefficients", "forces", "sliding") for x in getattr(constraint, name, None) or ()
    )
    named = (getattr(constraint, name, None) for name in ("rate", "coefficient", "static_coefficient"))
    numbers = (x for x in named if x is not None)
    forms = [*getattr(constraint, "expressions", ()), *numbers, *(x for _, x in pairs)]
    return any(str(s) == "t" for part in forms for s in scalar.symbols_of(part))


def rheonomic_constraints(mechanism: Mechanism) -> list[str]:
    """Names of the constraints that are enabled and depend on the time t."""
    if not equality_enabled(mechanism):
        return []
    kinds = (*VELOCITY_LEVEL, NonIdeal, CoulombFriction)
    return [c.name for c in mechanism.constraints if isinstance(c, kinds) and depends_on_time(c)]


PfaffianForm = tuple[np.ndarray, np.ndarray, Sequence[Any]]


def _point_jacobian(tree: Tree, poses: list[Pose], body: str, point: np.ndarray) -> np.ndarray:
    """J (3, nv) of the point of a body that is at `point` in the world."""
    base = tree.placement(body)
    if base.link == WORLD:
        return np.zeros((3, tree.nv), int)
    R, p = poses[base.link]
    return placement_jacobian(tree, poses, Placement(base.link, base.R, R.T @ (point - p)))[:3]


def _no_side_slip(mechanism: Mechanism, c: NoSideSlip, q: Any) -> PfaffianForm:
    """Knife edge: d . (v_body - v_on) = 0 at the point."""
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    R, p = placement_pose(poses, tree.placement(c.body))
    d, at = R @ np.array(c.direction), p + R @ np.array(c.point)
    J = _point_jacobian(tree, poses, c.body, at) - _point_jacobian(tree, poses, c.on, at)
    return (d @ J).reshape(1, -1), np.array([0]), [None]


def _rolling(mechanism: Mechanism, c: Rolling, q: Any) -> PfaffianForm:
    """Rolling: the velocity of the contact point relative to the plane is zero, along two axes of the plane
    and the normal.
    """
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    contact, axes = rolling_contact(tree, poses, c)
    R_on, p_on = placement_pose(poses, tree.placement(c.on))
    J = _point_jacobian(tree, poses, c.body, contact) - _point_jacobian(tree, poses, c.on, contact)
    height = axes[2] @ (contact - p_on - R_on @ np.array(c.plane_point))
    return axes @ J, np.array([0, 0, 0]), [None, None, height]


def rolling_contact(tree: Tree, poses: list[Pose], c: Rolling) -> tuple[np.ndarray, np.ndarray]:
    """Contact point (3,) of a ball or disc with its plane, and the axes (3, 3) of its rows: two in the
    plane, then the normal; world axes.
    """
    R, p = placement_pose(poses, tree.placement(c.body))
    R_on, _ = placement_pose(poses, tree.placement(c.on))
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
    mechanism: Mechanism, expression: Any, q: Any, t: Any, extra_values: Mapping[str, Any] | None = None
) -> Any:
    """Value of a constraint's expression at q and t."""
    values = {**dict(zip(mechanism.coordinate_names, q, strict=True)), "t": t, **(extra_values or {})}
    mapping = {s: values[str(s)] for s in scalar.symbols_of(expression) if str(s) in values}
    return scalar.substitute(expression, mapping) if mapping else expression


def _holonomic(mechanism: Mechanism, c: Holonomic, q: Any, t: Any) -> PfaffianForm:
    """dg/dq G(q) v + dg/dt = 0."""
    tree, nv = mechanism.tree, mechanism.nv

    def g(state: Any) -> list[Any]:
        return [formula(mechanism, x, state[:-1], state[-1]) for x in c.expressions]

    def derivatives(unit: Any, time: int) -> np.ndarray:
        rates = [*configuration_rate(tree, q, np.array(unit)), time]
        return derivative_along(g, [*q, t], rates, SecondOrder)[1]

    A = np.stack([derivatives([1 if i == k else 0 for i in range(nv)], 0) for k in range(nv)], axis=1)
    return A, derivatives([0] * nv, 1), g([*q, t])


def _pfaffian(mechanism: Mechanism, c: Pfaffian, q: Any, t: Any) -> PfaffianForm:
    """sum coefficient_k(q, t) v_k + rate(q, t) = 0."""
    row: list[Any] = [0] * mechanism.nv
    for name, coefficient in c.coefficients:
        row[mechanism.speed_names.index(name)] = formula(mechanism, coefficient, q, t)
    return np.array([row], dtype=object), np.array([formula(mechanism, c.rate, q, t)], dtype=object), [None]


def nonideal_forces(
    mechanism: Mechanism, q: Any, v: Any, t: Any, force_sizes: Mapping[str, Any]
) -> np.ndarray:
    """Prescribed generalised forces (nv,) of all non-ideal constraints, for the magnitudes N of the
    constraint forces by name.
    """
    total = np.array([0] * mechanism.nv, dtype=object)
    speeds = {f"{name}_dot": x for name, x in zip(mechanism.speed_names, v, strict=True)}
    for c in mechanism.constraints:
        if isinstance(c, NonIdeal):
            for name, expression in c.forces:
                k = mechanism.speed_names.index(name)
                total[k] = total[k] + formula(
                    mechanism, expression, q, t, {**speeds, "N": force_sizes[c.constraint]}
                )
    return total
