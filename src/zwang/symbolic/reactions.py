"""Constraint forces with their ideal and non-ideal parts, and joint reactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from zwang.constraint.body_loads import constraint_loads
from zwang.deprecation import renamed_attributes
from zwang.dynamics.free_body_diagram import Load, check_actuator_ranges, free_body_diagram, subtree_loads
from zwang.errors import DescriptionError, ParameterError, SolveError
from zwang.mechanism.tendon_elements import Tendon
from zwang.symbolic import derivation
from zwang.symbolic.derived_equations import DerivedEquations
from zwang.symbolic.expression_forms import float_value
from zwang.symbolic.sympy_types import matrix_entries
from zwang.symbolic.wrenches import applied_wrenches, is_wrapped, wrenches_on_bodies

MAGNITUDE_ITERATIONS = 200


@renamed_attributes(working="nonideal", working_power="nonideal_power")
@dataclass(frozen=True)
class SplitForces:
    """Constraint forces (6 N,) on all bodies [N, N m]: total = ideal + nonideal.

    Forces are in world axes, torques in body axes. The ideal part does no work along any velocity that the
    constraints allow. ideal_power, nonideal_power [W]: along the actual velocity, along which the ideal part
    does work where a constraint depends on time.
    """

    total: np.ndarray
    ideal: np.ndarray
    nonideal: np.ndarray
    ideal_power: float
    nonideal_power: float


def split_constraint_forces(e: DerivedEquations, values: Mapping[Any, Any]) -> SplitForces:
    """The constraint forces on all bodies as numbers, and their ideal and non-ideal parts.

    values: for all symbols, by symbol or by name; the magnitudes N_NAME of the forces of constraints that are
    not given are computed, those of joints with friction and of redundant constraints must be given. The
    non-ideal part is M B (B^T M B)^-1 B^T Q^c, the projector P_Bs without its square roots.
    Source: Luchtenburg, Shah, Impelluso, Rykkje, IMECE 2021-72324, Eqs. 43-50.
    Raises ParameterError for a missing value, and SolveError where the magnitudes do not converge.
    """
    known = {str(key): float(value) for key, value in values.items()}
    s, form = e._state, e._form
    known |= _force_magnitudes(e, known)
    applied = applied_wrenches(e._scalar_mechanism, e._motion, s.q, s.v, e._inputs)[0]
    mass, rhs = e.evaluate(known)
    X_dot = e._J @ s.v
    bias = e._bias_accelerations + e._J @ s.v_rate
    arrays = (
        e._J @ s.V,
        X_dot,
        bias,
        derivation.mass_blocks(s.tree),
        derivation.gyroscopic_forces(s.tree, X_dot),
        applied,
    )
    B, X_dot, bias, M, gyroscopic, Gamma = (form.values(x, known) for x in arrays)
    # Q^c = M X_ddot + D M X_dot - Gamma, and its projection
    total = M @ (B @ np.linalg.solve(mass, rhs) + bias) + gyroscopic - Gamma
    nonideal = M @ B @ np.linalg.solve(mass, B.T @ total)
    ideal = total - nonideal
    return SplitForces(total, ideal, nonideal, float(X_dot @ ideal), float(X_dot @ nonideal))


def _force_magnitudes(e: DerivedEquations, known: Mapping[str, float]) -> dict[str, float]:
    """The magnitudes N_NAME of constraint forces that are not given, all by one fixed-point iteration, since
    the non-ideal force of one constraint may load another.

    Raises ParameterError for that of a joint or of a redundant constraint, and SolveError if the iteration
    does not converge.
    """
    unknown = [name for name in e.symbols.force_magnitudes if f"N_{name}" not in known]
    for name in unknown:
        if name not in e.multipliers:
            raise ParameterError(
                f"values has no N_{name}, the magnitude of the force of joint {name!r}, which is computed "
                "for constraints only; give it, such as that of the force of zw.joint_reactions"
            )
        if not len(e.multipliers[name]):
            raise ParameterError(
                f"values has no N_{name}, the magnitude of the force of constraint {name!r}, whose rows are "
                "all redundant, so that the equations do not determine it; give it, such as the norm of "
                f"zw.constrained_dynamics(...).forces[{name!r}]"
            )
    if not unknown:
        return {}
    sizes = np.zeros(len(unknown))
    for _ in range(MAGNITUDE_ITERATIONS):
        trial = dict(known) | {f"N_{name}": x for name, x in zip(unknown, sizes, strict=True)}
        mass, rhs = e.evaluate(trial)
        trial |= {x.name: a for x, a in zip(e.symbols.u_dot, np.linalg.solve(mass, rhs), strict=True)}
        rows = [matrix_entries(e.multipliers[name]) for name in unknown]
        found = np.array([np.linalg.norm([float_value(x, trial) for x in row]) for row in rows])
        if (np.abs(found - sizes) <= 1e-14 * (1 + found)).all():
            return {f"N_{name}": float(x) for name, x in zip(unknown, found, strict=True)}
        sizes = found
    raise SolveError(
        f"the magnitude of the force of {', '.join(f'constraint {name!r}' for name in unknown)} did not "
        "converge: the non-ideal force that depends on it increases it too strongly; reduce its friction "
        "coefficient"
    )


def joint_reactions(e: DerivedEquations) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
    """By joint the force [N] and the torque [N m] on what it carries, in world axes, in the symbols u_dot.

    They follow from Euler's laws of the bodies that the joint carries, with weights, wrenches, springs
    between points, and the multipliers of constraints between bodies. The torque is about the origin of the
    joint's moving frame.
    Raises DescriptionError for tendons that wrap around bodies, for which `zw.joint_reactions` computes
    numbers, and for actuators on bodies that the `actuator_range` of a joint limits.
    """
    s, m = e._state, e._scalar_mechanism
    check_actuator_ranges(m)
    if wrapped := [_name(x) for x in (*m.tendons, *m.forces) if is_wrapped(m, x)]:
        raise DescriptionError(
            f"tendon or actuator {wrapped[0]!r} wraps around a body, and its forces on bodies are too long "
            "for symbolic expressions; zw.joint_reactions computes numbers"
        )
    motion = e._motion
    forces: dict[str, list[Any]] = {}
    for name, value in zip(e._reduction.all_names, _multipliers_of_all_rows(e), strict=True):
        forces.setdefault(name, []).append(value)
    # what each body needs beyond the applied wrenches, as loads on its link
    wrench = e._inertial_wrench - wrenches_on_bodies(e._scalar_mechanism, motion, s.q, s.v, e._inputs)
    loads = []
    for k, (body, (R, x)) in enumerate(zip(s.tree.rigid_bodies, motion.poses, strict=True)):
        f, t = wrench[6 * k : 6 * k + 3], R @ wrench[6 * k + 3 : 6 * k + 6]
        loads.append(Load(body.placement.link, x, f, t))
    poses, _ = derivation.poses_with_summed_angles(s.tree, s.q)
    if forces:
        free = free_body_diagram(e._scalar_mechanism, poses, s.v)
        for by_body in constraint_loads(free, forces, e._form.of(e.symbols.time)).values():
            loads += [load.reversed() for load in by_body.values()]
    # the sum over the subtree of each joint
    carried = subtree_loads(s.tree, poses, loads)
    last = {link.name: i for i, link in enumerate(s.tree.links)}
    found = {}
    for joint in e.mechanism.joints:
        force, torque = carried[last[joint.name]]
        found[joint.name] = (e._matrix(force), e._matrix(torque))
    return found


def _name(part: Any) -> str:
    """The name of a tendon, or of an actuator on one."""
    return part.name if isinstance(part, Tendon) else str(getattr(part, "name", ""))


def _multipliers_of_all_rows(e: DerivedEquations) -> list[Any]:
    """The multipliers of all constraint rows; 0 for dependent rows."""
    lam: list[Any] = [0] * len(e._reduction.all_names)
    for k, value in zip(e._reduction.kept, e._lam, strict=True):
        lam[k] = value
    return lam
