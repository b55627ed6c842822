"""A and B of a step by the implicit function theorem, with the sparsity of the tree and of each contact.

At the solution a of Gauss's problem the equation of motion holds with the forces f of the rows,

    r = RNEA(q, v, a) - tau - J^T f(q, v, a) = 0,    (M + J^T W J) da = -(dr at fixed a)

and the mean acceleration b of the step follows from (M + h D) b = M a, with implicit damping D. Both are
differentiated at the known a and b, which costs no derivative of a factorisation: RNEA by `rnea_derivatives`,
the other forces and rows in straight-line code with their structural zeros, contacts in loops over the active
ones (`contact_linearisation`). Each column of A and B is then one substitution with each matrix. Source:
Carpentier, Mansard, "Analytical derivatives of rigid body dynamics algorithms", RSS 2018, for the use of
RNEA; Griewank, Walther, Evaluating Derivatives (2008), Section 15.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dense_ldlt import DenseFactors, empty_system
from zwang.algebra.factorization import ancestors, factor
from zwang.algebra.updated_matrix import dense_entries
from zwang.api.derivatives.step_derivatives import settings_of, state_of, time_of
from zwang.api.derivatives.step_equations import (
    MEAN_ACCELERATION,
    NEXT_VELOCITY,
    StepEquations,
    check_equations,
    contact_pairs,
    row_context_of,
    rows_but_contacts,
    step_equations,
)
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.constraint.contact import link_screws_at
from zwang.constraint.context import RowContext
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.dynamics.rnea_derivatives import RneaDerivatives
from zwang.dynamics.tendon_armature import tendon_inertial_force, tendon_mass_matrix
from zwang.errors import TraceError
from zwang.kinematics.configuration import (
    configuration_rate,
    integrate_configuration,
    velocities_of_rate,
)
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, fori_loop, is_zero, where, zeros
from zwang.simulation.applied_forces import activation_rate, next_activation
from zwang.simulation.contact_linearisation import ContactTerms, add_contacts
from zwang.simulation.step_settings import StepSettings
from zwang.solver.primal_cost import PrimalCost, RowBlock

MOST_VELOCITIES = 64
"""Up to this number the matrices are stored and factorised densely."""


class _Equations(NamedTuple):
    """The equations of a step without contacts, see `step_equations`.

    of_links: the derivatives of RNEA. other_force (nv,): of tendons, actuators and rows. matrix: the entries
    (i, j), i >= j, of dr/da. M (nv, nv). own: the equations without rows.
    """

    of_links: RneaDerivatives
    other_force: np.ndarray
    matrix: dict[tuple[int, int], Any]
    M: np.ndarray
    own: StepEquations


def check_sparse(m: Mechanism, integrator: str) -> None:
    """Raises TraceError, with the reason, where a step is not differentiated by this module."""
    check_equations(m, integrator)
    if m.symbols or m.nv > MOST_VELOCITIES:
        many = f"there are more than {MOST_VELOCITIES} velocities"
        raise TraceError(
            f"the derivatives of the step have no sparse form: "
            f"{'the parameters are symbols' if m.symbols else many}"
        )


def step_jacobian(
    m: Mechanism, options: tuple[float, str], values: Mapping[str, Any]
) -> tuple[MutableArray, np.ndarray]:
    """[A B] (n, n + nu) of a step of size h whose result is known, and a number (1,) that is finite only if
    all of it is.

    values: the inputs of a step, and "acceleration" (nv,), the solution of Gauss's problem, empty for an
    unconstrained mechanism; MEAN_ACCELERATION (nv,); NEXT_VELOCITY (nv,). The mechanism is one that
    `check_sparse` accepts. Raises TraceError where a force or row has no derivative in straight-line code.
    """
    s, state, control = settings_of(m, *options), state_of(values), values["control"]
    kinematics = Kinematics(m.tree, state.q, state.v)
    system = _LinearSystem(s, kinematics, state.z, control, values)
    return _derivatives(system, state, values[NEXT_VELOCITY], system.accelerations())


class _LinearSystem:
    """The linear equations for the derivatives of the accelerations, by the columns (dq, dv, dz, du)."""

    def __init__(
        self, s: StepSettings, kinematics: Kinematics, z: Any, control: Any, values: Mapping[str, Any]
    ) -> None:
        m, model = s.mechanism, s.constraint_model
        self.s, self.m, self.kinematics, self.z, self.control = s, m, kinematics, z, control
        self.parents = velocity_parents(m.tree)
        self.b, self.time = values[MEAN_ACCELERATION], time_of(values)
        self.a = self.b if model is None else values["acceleration"]
        self.pairs = () if model is None else contact_pairs(m)
        self.context: RowContext | None = None
        if model is not None:
            self.context = row_context_of(model, kinematics, self.time)
        self.x = [*kinematics.q, *kinematics.v, *z, *control]
        units = np.eye(m.nv, dtype=int)
        rates = [configuration_rate(m.tree, kinematics.q, unit) for unit in units]
        self.G = np.array(rates).reshape(m.nv, m.nq).T
        self.columns = 2 * m.nv + len(z) + len(control)

    def accelerations(self) -> tuple[MutableArray, MutableArray | None]:
        """da/dx in the rows of an array, and (db - da)/dx, None where b = a."""
        equations, terms, nv = self._equations(), self._contacts(), self.m.nv
        by_q, by_v = equations.of_links.by_displacement(), equations.of_links.by_velocity()
        right = self._minus(self.by_columns(equations.other_force), terms.by_state)
        right = equations.of_links.add(by_v, equations.of_links.add(by_q, right, -1), -1, first_row=nv)
        da = DenseFactors.of(self._hessian(equations.matrix, terms.by_a)).solved(right)
        own = equations.own
        if own.h_D is None or not own.is_constrained:
            return da, None
        # (M + h D) (db - da) = d(M (a - b) - h D b) - h D da
        at_rest, difference, D = own.at_rest, own.a - own.b, own.h_D
        of_links = RneaDerivatives(at_rest, difference)
        other = tendon_inertial_force(at_rest, difference) - D @ own.b
        change = self._minus(self.by_columns(-other), zeros((self.columns, nv)))
        change = of_links.add(of_links.by_displacement(), change, 1)
        damped = factor(equations.M + D, self.parents)

        def solve(c: Any, change: MutableArray) -> MutableArray:
            own = np.array([change[c, j] for j in range(self.m.nv)])
            by_a = D @ np.array([da[c, j] for j in range(self.m.nv)])
            for j, x in enumerate(damped.solve(own - by_a)):
                change = change.set((c, j), x * 1.0)
            return change

        return da, fori_loop(0, self.columns, solve, change, unroll=False)

    def _minus(self, by_columns: np.ndarray, array: MutableArray) -> MutableArray:
        """An array with a row for each column, less these derivatives."""
        for (j, c), slope in np.ndenumerate(by_columns):
            if not is_zero(slope):
                array = array.set((c, j), array[c, j] - slope)
        return array

    def by_columns(self, values: np.ndarray) -> np.ndarray:
        """The derivatives (n, columns) of straight-line values by dq, dv, dz and du."""
        J, nq = jacobian(values, self.x), self.m.nq
        return np.concatenate([J[:, :nq] @ self.G, J[:, nq:]], axis=1)

    # ------------------------------------------------------------------------------------ equations

    def _equations(self) -> _Equations:
        """The equations without contacts."""
        m = self.m
        own = step_equations(self.s, self.kinematics, self.z, self.control, (self.a, self.b), self.time)
        of_links = RneaDerivatives(self.kinematics, self.a)
        M = of_links.dense(of_links.by_acceleration()) + tendon_mass_matrix(self.kinematics)
        other = own.other_force + tendon_inertial_force(self.kinematics, self.a)
        tree = [(i, j) for i in range(m.nv) for j in (i, *ancestors(self.parents, i))]
        if not own.is_constrained and own.h_D is not None:
            damped = M + own.h_D  # the damping is implicit in the one equation
            return _Equations(of_links, other, {(i, j): damped[i, j] for i, j in tree}, M, own)
        other, matrix = self._with_rows(other, {(i, j): M[i, j] for i, j in tree}, M)
        return _Equations(of_links, other, matrix, M, own)

    def _with_rows(
        self, force: np.ndarray, matrix: dict[tuple[int, int], Any], M: Any
    ) -> tuple[np.ndarray, dict[tuple[int, int], Any]]:
        """Forces and dr/da with all rows but contacts. Raises TraceError if one is hard."""
        if self.context is None:
            return force, matrix
        problem = GaussProblem(M, np.zeros(self.m.nv), tuple(self.parents))
        primal = PrimalCost(problem, rows_but_contacts(self.context))
        force, matrix = np.array(force, dtype=object), dict(matrix)
        for block in (RowBlock(group, 0) for group in primal.groups):
            J, columns = block.J, block.columns
            y = J @ np.array([self.a[k] for k in columns]) - block.aref
            f, W = block.force_and_curvature(y)
            f, W = (
                [where(block.active, x, 0.0) if not is_zero(x) else 0 for x in np.ravel(v)] for v in (f, W)
            )
            K = J.T @ np.array(W, dtype=object).reshape(len(f), -1) @ J
            for i, (k, x) in enumerate(zip(columns, J.T @ np.array(f, dtype=object), strict=True)):
                force[k] = force[k] - x
                for j, l in enumerate(columns[: i + 1]):
                    matrix[k, l] = matrix.get((k, l), 0) + K[i, j]
        return force, matrix

    # ------------------------------------------------------------------------------------ contacts

    def _contacts(self) -> ContactTerms:
        """The sums over all contacts; zeros without any."""
        by_a, by_state = empty_system(self.m.nv, self.columns)
        terms = ContactTerms(by_state, by_a)
        if self.context is None or not self.pairs:
            return terms
        return add_contacts(self.context, self.pairs, self.a, terms)

    def _hessian(self, matrix: Mapping[tuple[int, int], Any], by_a: MutableArray) -> MutableArray:
        """The array of dr/da, whose lower triangle counts."""
        coupled: set[tuple[int, int]] = set()
        if self.context is not None:
            screws = link_screws_at(self.context)
            own = [screws.signs(pair.links) for pair in self.pairs]
            coupled = {entry for columns in own for entry in dense_entries(list(columns))}
        for i, j in sorted(coupled | set(matrix)):
            by_a = by_a.set((i, j), matrix.get((i, j), 0.0) - by_a[i, j])
        return by_a


def _derivatives(
    system: _LinearSystem,
    state: Any,
    next_velocity: Any,
    accelerations: Sequence[MutableArray | None],
) -> tuple[MutableArray, np.ndarray]:
    """[A B] (n, columns) from the derivatives of the accelerations, parts in the rows of arrays that are
    added, and a number (1,) that is finite only if all elements are.
    """
    s, m, control, nv, nz = system.s, system.m, system.control, system.m.nv, len(state.z)
    found = zeros((2 * nv + nz, 2 * nv + nz + len(control)))
    q = integrate_configuration(m.tree, state.q, next_velocity, s.h)
    by_q, by_v = np.split(jacobian(q, [*state.q, *next_velocity]), [m.nq], axis=1)
    rates = [configuration_rate(m.tree, state.q, unit) for unit in np.eye(nv, dtype=int)]
    by_q, T = (
        np.array([velocities_of_rate(m.tree, q, column) for column in columns]).reshape(nv, nv).T
        for columns in ([by_q @ rate for rate in rates], by_v.T)
    )
    t = 0 if system.time is None else system.time
    z = next_activation(m, state.z, activation_rate(m, system.kinematics, state.z, control, t, s.h), s.h)
    of_z = system.by_columns(z) if nz else np.zeros((0, system.columns), int)
    total: Any = 0.0
    fixed = ((by_q, 0, 0), (np.eye(nv, dtype=int), nv, nv), (of_z, 2 * nv, 0))
    for J, row, column in fixed:
        for (i, c), x in np.ndenumerate(J):
            if not is_zero(x):
                found, total = found.set((row + i, column + c), x * 1.0), total + x
    parts = [array for array in accelerations if array is not None]

    def add_column(c: Any, carry: tuple[MutableArray, Any]) -> tuple[MutableArray, Any]:
        found, total = carry
        change = [
            s.h * sum((x[c, j] for x in parts[1:]), parts[0][c, j]) + found[nv + j, c] for j in range(nv)
        ]
        for i, x in enumerate([*(T @ np.array(change)), *change]):
            found = found.set((i, c), x + found[i, c] if i < nv else x)
        return found, total + sum(change)  # q' is not finite where v' is not

    found, total = fori_loop(0, found.shape[1], add_column, (found, total), unroll=False)
    return found, np.array([total])
