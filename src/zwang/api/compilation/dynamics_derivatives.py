"""The derivatives of the unconstrained inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import Factors, factor
from zwang.api.functions.function_table import MechanicsFunction, Result, inverse_compiled
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.generalised_forces import passive_forces_of
from zwang.dynamics.rnea_derivatives import RneaDerivatives
from zwang.dynamics.tendon_armature import tendon_inertial_force, tendon_mass_matrix
from zwang.errors import TraceError
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, is_zero, zeros

LONG_PATH = 12
"""Velocities between the world and a link, from which on sums over subtrees, in loops, take less time than
differentiated straight-line code with its structural zeros: a UR5 takes 1.7 times as long, a Panda and a
chain of 10 joints the same, and a chain of 20 half.
"""


class _Derivatives(NamedTuple):
    """Derivatives of tau, in arrays with a row for each direction: by dq, by v and by the symbols; and the
    mass matrix M (nv, nv).
    """

    by_q: MutableArray
    by_v: MutableArray
    M: np.ndarray
    by_symbols: MutableArray


def _derivatives_of_forces(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> _Derivatives:
    """The derivatives of the inverse dynamics: where paths are long, those of RNEA by sums over subtrees, all
    else in straight-line code.
    """
    force = inverse_compiled(m, q, v, a)
    if _has_long_path(m):
        kinematics = Kinematics(m.tree, q, v)
        of_links = RneaDerivatives(kinematics, a)
        by_q, by_v = of_links.by_displacement(), of_links.by_velocity()
        M = of_links.dense(of_links.by_acceleration()) + tendon_mass_matrix(kinematics)
        rest = tendon_inertial_force(kinematics, a) - passive_forces_of(m, kinematics)
    else:
        by_q, by_v, rest = zeros((m.nv, m.nv)), zeros((m.nv, m.nv)), force
        M = crba(with_base_parameters(m.tree), q)
    try:
        slopes = jacobian(rest, q), jacobian(rest, v), jacobian(force, parameters)
    except TraceError as error:
        sided = [t.name for t in m.tendons if any(wrap.side is not None for wrap in t.wraps)]
        raise TraceError(
            f"the derivatives of the dynamics of mechanism {m.name!r} are not available: lengths of tendons "
            f"that wrap around a body at a side ({', '.join(map(repr, sided))}) are computed in a loop; use "
            "step_derivatives, or leave out the sides"
        ) from error
    # d tau / dq on the tangent space: (d tau / d coordinates) G(q), with q_dot = G(q) v
    rates = [configuration_rate(m.tree, q, unit) for unit in np.eye(m.nv, dtype=int)]
    of_rest = slopes[0] @ np.stack(rates, axis=1) if rates else np.zeros((0, 0))
    by_symbols = _plus(zeros((len(parameters), m.nv)), slopes[2])
    return _Derivatives(_plus(by_q, of_rest), _plus(by_v, slopes[1]), M, by_symbols)


def _has_long_path(m: Mechanism) -> bool:
    """Whether some link has `LONG_PATH` velocities or more between itself and the world."""
    depths = list[int]()
    for parent in velocity_parents(m.tree):
        depths.append(1 + (depths[parent] if parent >= 0 else 0))
    return max(depths, default=0) >= LONG_PATH


def inverse_derivatives(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Derivatives of tau by dq, v, a and the symbols."""
    found = _derivatives_of_forces(m, parameters, q, v, a)
    return _columns(found.by_q), _columns(found.by_v), found.M, _columns(found.by_symbols)


def forward_derivatives(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Derivatives of the acceleration a by dq, v, tau and the symbols.

    They follow from M da = dtau - (d tau / dx)_a dx.
    """
    found = _derivatives_of_forces(m, parameters, q, v, a)
    factors = factor(found.M, velocity_parents(m.tree))
    by_tau = _plus(zeros((m.nv, m.nv)), -np.eye(m.nv))
    right = (found.by_q, found.by_v, by_tau, found.by_symbols)
    if _has_long_path(m):
        by_q, by_v, by_tau, by_symbols = (-_columns(factors.solve_rows(B)) for B in right)
    else:  # with the structural zeros of each right-hand side
        by_q, by_v, by_tau, by_symbols = (-_solved(factors, _columns(B)) for B in right)
    return by_q, by_v, by_tau, by_symbols


def _solved(factors: Factors, B: np.ndarray) -> np.ndarray:
    """H^-1 B (nv, n), column by column."""
    columns = [factors.solve(column) for column in B.T]
    return np.stack(columns, axis=1) if columns else np.zeros(B.shape)


def _plus(array: MutableArray, by_columns: np.ndarray) -> MutableArray:
    """An array with a row for each direction, and these derivatives (forces, directions) added."""
    for (j, i), slope in np.ndenumerate(by_columns):
        if not is_zero(slope):
            array = array.set((i, j), array[i, j] + slope)
    return array


def _columns(array: MutableArray) -> np.ndarray:
    """The elements of an array in a matrix with a column for each of its rows."""
    rows, columns = array.shape
    found = [array[i, j] for j in range(columns) for i in range(rows)]
    return np.array(found, dtype=object).reshape(columns, rows)


def _derivatives(of: str, by: str, summary: str, text: Callable[..., Any]) -> MechanicsFunction:
    """The table entry of the derivatives of one function."""
    results = (
        Result("dq", "(nv, nv)", "SI", f"derivatives of {of} by displacements of q in the tangent space"),
        Result("dv", "(nv, nv)", "SI", f"derivatives of {of} by v"),
        Result("dtau", "(nv, nv)", "SI", f"derivatives of {of} by {by}"),
        Result("parameters", "(nv, symbols)", "SI", f"derivatives of {of} by the symbols, in their order"),
    )
    name = "forward_dynamics_derivatives" if of == "a" else "inverse_dynamics_derivatives"
    return MechanicsFunction(
        name, ("q", "v", "a"), results, summary, None, text, symbols=True, uses_mass_matrix=True
    )


DERIVATIVES = {
    function.name: function
    for function in (
        _derivatives("tau", "a", "Derivatives of inverse dynamics.", inverse_derivatives),
        _derivatives("a", "tau", "Derivatives of forward dynamics.", forward_derivatives),
    )
}
"""The functions of the table whose results are derivatives."""
