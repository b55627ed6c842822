"""Constraint forces with their ideal and non-ideal parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.deprecation import renamed_attributes
from zwang.errors import ParameterError, SolveError
from zwang.symbolic import derivation
from zwang.symbolic.derived_equations import DerivedEquations
from zwang.symbolic.wrenches import applied_wrenches

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
    known |= _force_magnitudes(e, known)
    d, s = e._quantities, e._quantities.state
    applied = applied_wrenches(d.scalar_mechanism, d.motion, s.q, s.v, d.inputs)[0]
    arrays = (d.bias_accelerations + d.J @ s.v_rate, derivation.gyroscopic_forces(s.tree, d.X_dot), applied)
    bias, gyroscopic, Gamma = (d.form.values(x, known) for x in arrays)
    mass, rhs, B, X_dot, M = e.evaluate(known, "mass_matrix", "right_hand_side", "B", "X_dot", "M_blocks")
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
    rows = e._quantities.multipliers
    unknown = [name for name in e.symbols.force_magnitudes if f"N_{name}" not in known]
    for name in unknown:
        if name not in rows:
            raise ParameterError(
                f"values has no N_{name}, the magnitude of the force of joint {name!r}, which is computed "
                "for constraints only; give it, such as that of the force of zw.joint_reactions"
            )
        if not len(rows[name]):
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
        (forces,) = e.evaluate(trial, "multipliers")
        found = np.array([np.linalg.norm(forces[name]) for name in unknown])
        if (np.abs(found - sizes) <= 1e-14 * (1 + found)).all():
            return {f"N_{name}": float(x) for name, x in zip(unknown, found, strict=True)}
        sizes = found
    raise SolveError(
        f"the magnitude of the force of {', '.join(f'constraint {name!r}' for name in unknown)} did not "
        "converge: the non-ideal force that depends on it increases it too strongly; reduce its friction "
        "coefficient"
    )
