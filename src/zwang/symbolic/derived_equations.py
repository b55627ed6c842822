"""The equations of motion of a mechanism and all quantities of their derivation, as SymPy matrices.

The matrices are evaluated at their first use. `equations` creates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from zwang.deprecation import renamed_attributes
from zwang.dynamics.crba import crba as composite_mass_matrix
from zwang.errors import DependentVelocitiesError, ParameterError, SolveError, UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar.pytree import leaves_of, rebuild
from zwang.symbolic.equation_quantities import QUANTITIES, EquationQuantities, as_matrix, converted
from zwang.symbolic.equation_symbols import EquationSymbols
from zwang.symbolic.expression_forms import Definition
from zwang.symbolic.sympy_types import matrix_entries

SINGULAR = 1e-12  # singular values of rows of size 1, which rounding of a state gives to dependent ones


@renamed_attributes(
    drift="velocity_offset",
    motions="body_velocities",
    speed_forces="joint_space_forces",
    mass_matrix_shared="mass_matrix_cse",
    shared_steps="cse_steps",
)
@dataclass(frozen=True, eq=False)
class DerivedEquations:
    """mass_matrix * u_dot = right_hand_side, with all quantities of the derivation by the projection method.

    q, speeds (u) and u_dot are column matrices of symbols; all entries of other matrices are SymPy
    expressions. `form` is "expanded" (written out) or "cse": then the expressions, in which equal
    subexpressions are one object, may be too long to print or substitute. Use `evaluate` for numbers of any
    quantity, and `cse` for formulas with names for common subexpressions.
    Source: Luchtenburg, Shah, Impelluso, Rykkje, A projection-based derivation of the equations of motion for
    the moving frame method for multi-body dynamics, IMECE 2021-72324, Sec. 3.2.2.
    """

    mechanism: Mechanism
    symbols: EquationSymbols
    method: str
    form: str
    _quantities: EquationQuantities = field(repr=False)

    # -------------------------------------------------------------------- the equations of motion

    @property
    def q(self) -> sp.Matrix:
        """The coordinates."""
        return sp.Matrix(self.symbols.q)

    @property
    def speeds(self) -> sp.Matrix:
        """The independent velocities u."""
        return sp.Matrix(self.symbols.u)

    @property
    def u_dot(self) -> sp.Matrix:
        """The symbols of the accelerations."""
        return sp.Matrix(self.symbols.u_dot)

    @cached_property
    def mass_matrix(self) -> sp.Matrix:
        """The projected mass matrix M* = B^T M B (n, n)."""
        return self._quantities.shown("mass_matrix")

    @cached_property
    def right_hand_side(self) -> sp.Matrix:
        """The projected right-hand side B^T (Gamma - D M X_dot - M B_dot u) (n, 1)."""
        return self._quantities.shown("right_hand_side")

    @cached_property
    def accelerations(self) -> sp.Matrix:
        """u_dot (n, 1) by elimination down the diagonal of M*, which is positive definite.

        Raises SolveError if M* is singular, as of a joint that moves no inertia.
        """
        return self._quantities.shown("accelerations")

    # -------------------------------------------------------------------- quantities of the derivation

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """The names of the bodies with mass, in the order of X_dot."""
        return self._quantities.motion.names

    @cached_property
    def frames(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """For each body its rotation R(0,k) and the position of its centre of mass in world axes."""
        return self._quantities.shown("frames")

    @cached_property
    def B(self) -> sp.Matrix:
        """Velocity transformation B (6 N, n), X_dot = B u + velocity_offset (IMECE 2021-72324, Eq. 40)."""
        return self._quantities.shown("B")

    @cached_property
    def velocity_offset(self) -> sp.Matrix:
        """X_dot (6 N, 1) at u = 0; zero unless a constraint depends on time."""
        return self._quantities.shown("velocity_offset")

    @cached_property
    def B_dot(self) -> sp.Matrix:
        """The time derivative of B (6 N, n)."""
        return self._quantities.shown("B_dot")

    @cached_property
    def X_dot(self) -> sp.Matrix:
        """The velocities of all bodies (6 N, 1) in u: linear in world axes, angular in body axes."""
        return self._quantities.shown("X_dot")

    @cached_property
    def body_velocities(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """By body the velocity of the centre of mass (world axes) and the angular velocity (body axes)."""
        return self._quantities.shown("body_velocities")

    @cached_property
    def M_blocks(self) -> sp.Matrix:
        """M = diag(m 1, I) of all bodies (6 N, 6 N) (IMECE 2021-72324, Eq. 39)."""
        return self._quantities.shown("M_blocks")

    @cached_property
    def D(self) -> sp.Matrix:
        """D = diag(0, [omega]x) of all bodies (6 N, 6 N) (IMECE 2021-72324, Eq. 39)."""
        return self._quantities.shown("D")

    @cached_property
    def Gamma(self) -> sp.Matrix:
        """Applied forces and torques on all bodies (6 N, 1): weights, and joint forces with reactions.

        Generalised forces that do not act between two bodies with mass are in `joint_space_forces` instead.
        """
        return self._quantities.shown("Gamma")

    @cached_property
    def joint_space_forces(self) -> sp.Matrix:
        """Generalised forces on u (n, 1) that are not part of Gamma, and the bias force of rotors."""
        return self._quantities.shown("joint_space_forces")

    @cached_property
    def kinetic_energy(self) -> sp.Expr:
        """Kinetic energy [J]: 1/2 X_dot^T M X_dot, and that of the rotors."""
        return self._quantities.shown("kinetic_energy")

    @cached_property
    def potential_energy(self) -> sp.Expr:
        """Potential energy [J] of gravity and springs."""
        return self._quantities.shown("potential_energy")

    @cached_property
    def generalized_forces(self) -> dict[str, sp.Matrix]:
        """Generalised forces on u (n, 1) of the weight and of each force, tendon and non-ideal constraint.

        An `actuator_range` limits each force as if it were the only one on its joint or tendon.
        """
        return self._quantities.shown("generalized_forces")

    @cached_property
    def constraint_forces(self) -> sp.Matrix:
        """Q^c = M (B u_dot + B_dot u) + D M X_dot - Gamma on all bodies (6 N, 1), in the symbols u_dot.

        Forces are in world axes, torques about the centre of mass in body axes. They are the forces of all
        joints and constraints together. Source: IMECE 2021-72324, Eq. 50b.
        """
        return self._quantities.shown("constraint_forces")

    @cached_property
    def multipliers(self) -> dict[str, sp.Matrix]:
        """Multipliers of the independent rows by constraint, in u_dot: M(q) v_dot + h - Q = A^T lambda.

        Of dependent rows the first are independent; a constraint all of whose rows depend on those of others
        has an empty matrix (0, 1).
        """
        return self._quantities.shown("multipliers")

    @cached_property
    def joint_reactions(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """By joint the force [N] and the torque [N m] on the body that it carries, in the symbols u_dot.

        Both are in world axes, the torque about the origin of the joint's moving frame. Forces of motors,
        springs and dampers of the joint are included, and so are those of constraints by formula on its
        coordinates. Of dependent constraint rows the first carry the force. Raises DescriptionError for
        tendons that wrap around bodies, for which `zw.joint_reactions` computes numbers, and for actuators on
        bodies that the `actuator_range` of a joint limits.
        """
        return self._quantities.shown("joint_reactions")

    @cached_property
    def velocities(self) -> sp.Matrix:
        """The generalised velocities v (nv, 1) in the independent velocities u."""
        return self._quantities.shown("velocities")

    @cached_property
    def coordinate_rates(self) -> sp.Matrix:
        """q_dot (nq, 1) in the coordinates and the independent velocities u."""
        return self._quantities.shown("coordinate_rates")

    # -------------------------------------------------------------------- common subexpressions and numbers

    def cse(self, *names: str) -> tuple[list[Definition], tuple[Any, ...]]:
        """Definitions of common subexpressions, in order, and the quantities named in terms of them.

        names: of properties of the equations that have matrices, such as "multipliers", "constraint_forces"
        and "joint_reactions"; by default "mass_matrix" and "right_hand_side". There are no definitions in the
        expanded form. The definitions are those of these quantities alone. Each quantity is as the property:
        a matrix, an expression, or a dictionary or tuple of them. As of `sympy.cse`, they are what
        `sympy.lambdify` takes: `lambdify(symbols, written, cse=lambda _: (definitions, written))`.
        Raises UnknownNameError for another name.
        """
        chosen = self._chosen(names)
        defined, written = self._quantities.form.definitions(leaves_of(chosen))
        return defined, converted(rebuild(chosen, written), as_matrix)

    def _chosen(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The quantities named in scalars of the form."""
        for name in names:
            if name not in QUANTITIES:
                raise UnknownNameError("quantity", name, QUANTITIES)
        return tuple(self._quantities.scalars(x) for x in names or ("mass_matrix", "right_hand_side"))

    @cached_property
    def definitions(self) -> list[Definition]:
        """Common subexpressions of mass_matrix and right_hand_side, in order; empty if expanded."""
        return self._cse[0]

    @cached_property
    def _cse(self) -> tuple[list[Definition], sp.Matrix, sp.Matrix]:
        """Definitions, and the mass matrix and right-hand side in terms of them."""
        defined, (mass, rhs) = self.cse()
        return defined, mass, rhs

    def mass_matrix_cse(self) -> tuple[list[Definition], sp.Matrix]:
        """Definitions of the common subexpressions of M* alone, and M* in terms of them.

        M* is derived by the composite-rigid-body algorithm, which needs the fewest definitions for large
        robots.
        """
        if self.form == "expanded":
            return [], self.mass_matrix
        d = self._quantities
        M = composite_mass_matrix(d.state.tree, d.state.q)
        projected = M if d.reduction.trivial else d.state.V.T @ M @ d.state.V
        defined, written = d.form.definitions(leaves_of(projected))
        return defined, as_matrix(rebuild(projected, written))

    def count_operations(self) -> int:
        """The number of operations in mass_matrix and right_hand_side.

        Each definition and each pair of symmetric entries is counted once.
        """
        defined, mass, rhs = self._cse
        upper = [mass[i, j] for i in range(mass.rows) for j in range(i, mass.cols)]
        return sum(int(sp.count_ops(e)) for e in [*(e for _, e in defined), *upper, *matrix_entries(rhs)])

    def evaluate(self, values: Mapping[Any, Any], *names: str) -> tuple[Any, ...]:
        """Float arrays of mass_matrix and right_hand_side, or of the quantities named, at values for symbols.

        values: by symbol or by its name; "multipliers", "constraint_forces" and "joint_reactions" contain the
        symbols u_dot. names: of properties of the equations that have matrices. Each quantity is as the
        property, with a float array for each matrix: columns have one dimension, expressions none. Each
        common subexpression is evaluated once.
        Raises ParameterError for a symbol without a value, UnknownNameError for another name,
        DependentVelocitiesError where the independent velocities do not determine the others, and SolveError
        where they do but the elimination divides by zero.
        """
        chosen = self._chosen(names)
        known = {str(key): value for key, value in values.items()}
        found = list(self._quantities.form.values(leaves_of(chosen), known))
        if not self._quantities.reduction.trivial:
            self._check_velocities(known)
        return converted(rebuild(chosen, found), lambda array: array.astype(float))

    def _check_velocities(self, known: Mapping[str, Any]) -> None:
        """Raises DependentVelocitiesError where A v = 0 and S v = 0 leave a velocity undetermined, relative
        to the largest entry in the rows of each constraint, and SolveError where V is not finite otherwise.
        """
        e, form = self._quantities.reduction, self._quantities.form
        try:
            K = form.values(np.concatenate([e.A, e.S]), known)
        except ParameterError:  # some of its symbols cancel in what is evaluated
            return
        names = [*e.names, *range(len(e.S))]
        largest = np.abs(K).max(axis=1)
        sizes = np.array([largest[[x == name for x in names]].max() for name in names])
        if not np.isfinite(K).all():
            return
        if np.linalg.matrix_rank(K / np.where(sizes > 0, sizes, 1)[:, None], tol=SINGULAR) < K.shape[1]:
            raise DependentVelocitiesError(
                f"the independent velocities {', '.join(s.name for s in self.symbols.u)} of mechanism "
                f"{self.mechanism.name!r} depend on each other, or are fixed by the constraints, in this "
                "state; choose others by speeds="
            )
        if not np.isfinite(form.values(e.V, known)).all():
            raise SolveError(
                f"equations of mechanism {self.mechanism.name!r} divide by zero in this state, while its "
                'independent velocities determine the others; derive them with form="expanded", or choose '
                "others by speeds="
            )
