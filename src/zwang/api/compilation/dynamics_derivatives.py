"""The derivatives of the unconstrained inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import factor
from zwang.api.functions.function_table import MechanicsFunction, Result, inverse_compiled
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.generalised_forces import passive_forces_of
from zwang.dynamics.rnea_derivatives import RneaDerivatives
from zwang.dynamics.tendon_armature import tendon_inertial_force, tendon_mass_matrix
from zwang.errors import TraceError
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, is_zero, zeros


class _Derivatives(NamedTuple):
    """Derivatives of tau, in arrays with a row for each direction: by dq, by v and by the symbols; and the
    mass matrix M (nv, nv).
    """

    by_q: MutableArray
    by_v: MutableArray
    M: np.ndarray
    by_symbols: MutableArray


def _derivatives_of_forces(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> _Derivatives:
    """The derivatives of the inverse dynamics: those of RNEA, and those of the other forces in straight-line
    code.
    """
    kinematics = Kinematics(m.tree, q, v)
    of_links = RneaDerivatives(kinematics, a)
    other = tendon_inertial_force(kinematics, a) - passive_forces_of(m, kinematics)
    force = inverse_compiled(m, q, v, a) if len(parameters) else other
    try:
        by_coordinates, by_v, by_symbols = (
            jacobian(f, x) for f, x in ((other, q), (other, v), (force, parameters))
        )
    except TraceError as error:
        sided = [t.name for t in m.tendons if any(wrap.side is not None for wrap in t.wraps)]
        raise TraceError(
            f"the derivatives of the dynamics of mechanism {m.name!r} are not available: lengths of tendons "
            f"that wrap around a body at a side ({', '.join(map(repr, sided))}) are computed in a loop; use "
            "step_derivatives, or leave out the sides"
        ) from error
    # d tau / dq on the tangent space: (d tau / d coordinates) G(q), with q_dot = G(q) v
    rates = [configuration_rate(m.tree, q, unit) for unit in np.eye(m.nv, dtype=int)]
    by_q = by_coordinates @ np.stack(rates, axis=1) if rates else np.zeros((0, 0))
    return _Derivatives(
        _plus(of_links.by_displacement(), by_q),
        _plus(of_links.by_velocity(), by_v),
        of_links.dense(of_links.by_acceleration()) + tendon_mass_matrix(kinematics),
        _plus(zeros((len(parameters), m.nv)), by_symbols),
    )


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
    by_q, by_v, by_tau, by_symbols = (-_columns(factors.solve_rows(B)) for B in right)
    return by_q, by_v, by_tau, by_symbols


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
