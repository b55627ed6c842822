"""The equations of motion of a mechanism and all quantities of their derivation, as SymPy matrices.

The matrices are evaluated at their first use. `equations` creates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from zwang.algebra.dual import derivative_along
from zwang.constraint.hard import hard_constraints, nonideal_forces
from zwang.deprecation import renamed_attributes
from zwang.dynamics.crba import armature
from zwang.dynamics.crba import crba as composite_mass_matrix
from zwang.dynamics.generalised_forces import spring_energy
from zwang.errors import DependentVelocitiesError, ParameterError, SolveError, UnknownNameError
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.constraints import CoulombFriction, NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero
from zwang.symbolic import derivation
from zwang.symbolic.equation_symbols import EquationSymbols
from zwang.symbolic.expression_forms import CSEForm, Definition, ExpandedForm
from zwang.symbolic.friction_equations import friction_forces
from zwang.symbolic.sympy_types import matrix_entries, rows_of_matrix
from zwang.symbolic.velocity_reduction import VelocityReduction
from zwang.symbolic.wrenches import applied_wrenches, generalized_forces, part_of_generalized_forces

Form = ExpandedForm | CSEForm
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
    expressions. `form` is "expanded" (written out) or "cse": then `definitions` has names for common
    subexpressions.
    Source: Luchtenburg, Shah, Impelluso, Rykkje, A projection-based derivation of the equations of motion for
    the moving frame method for multi-body dynamics, IMECE 2021-72324, Sec. 3.2.2.
    """

    mechanism: Mechanism
    symbols: EquationSymbols
    method: str
    form: str
    _form: Form = field(repr=False)
    _state: derivation.SymbolicState = field(repr=False)
    _projected: derivation.ProjectedEquations = field(repr=False)
    _reduction: VelocityReduction = field(repr=False)
    _scalar_mechanism: Mechanism = field(repr=False)

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
        return self._matrix(self._projected.mass_matrix)

    @cached_property
    def right_hand_side(self) -> sp.Matrix:
        """The projected right-hand side B^T (Gamma - D M X_dot - M B_dot u) (n, 1)."""
        return self._matrix(self._projected.right_hand_side)

    @cached_property
    def accelerations(self) -> sp.Matrix:
        """u_dot (n, 1) by elimination down the diagonal of M*, which is positive definite.

        Raises SolveError if M* is singular, as of a joint that moves no inertia.
        """
        try:
            if self.form == "expanded":
                return self.mass_matrix.LUsolve(self.right_hand_side).applyfunc(sp.together)
            return self._matrix(_solved(self._projected.mass_matrix, self._projected.right_hand_side))
        except (sp.matrices.exceptions.NonInvertibleMatrixError, ZeroDivisionError):
            raise SolveError(
                f"the accelerations of mechanism {self.mechanism.name!r} are not determined, as its mass "
                "matrix is singular: give each body that can turn about its centre of mass an inertia, or "
                "its joint an armature"
            ) from None

    # -------------------------------------------------------------------- quantities of the derivation

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """The names of the bodies with mass, in the order of X_dot."""
        return tuple(s.body for s in self._state.tree.rigid_bodies)

    @cached_property
    def frames(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """For each body its rotation R(0,k) and the position of its centre of mass in world axes."""
        m = self._motion
        return {
            name: (self._matrix(pose.R), self._matrix(pose.p))
            for name, pose in zip(m.names, m.poses, strict=True)
        }

    @cached_property
    def B(self) -> sp.Matrix:
        """Velocity transformation B (6 N, n), X_dot = B u + velocity_offset (IMECE 2021-72324, Eq. 40)."""
        return self._matrix(self._J @ self._state.V)

    @cached_property
    def velocity_offset(self) -> sp.Matrix:
        """X_dot (6 N, 1) at u = 0; zero unless a constraint depends on time."""
        return self._matrix(self._J @ self._reduction.v0)

    @cached_property
    def B_dot(self) -> sp.Matrix:
        """The time derivative of B (6 N, n)."""
        s = self._state
        rate = configuration_rate(s.tree, s.q, s.v)
        J, J_dot = derivative_along(lambda q: derivation.body_motion(s.tree, q).B, s.q, rate)
        return self._matrix(J_dot @ s.V + J @ self._reduction.V_rate)

    @cached_property
    def X_dot(self) -> sp.Matrix:
        """The velocities of all bodies (6 N, 1) in u: linear in world axes, angular in body axes."""
        return self._matrix(self._J @ self._state.v)

    @cached_property
    def body_velocities(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """By body the velocity of the centre of mass (world axes) and the angular velocity (body axes)."""
        X = self.X_dot
        return {
            name: (rows_of_matrix(X, 6 * k, 6 * k + 3), rows_of_matrix(X, 6 * k + 3, 6 * k + 6))
            for k, name in enumerate(self.bodies)
        }

    @cached_property
    def M_blocks(self) -> sp.Matrix:
        """M = diag(m 1, I) of all bodies (6 N, 6 N) (IMECE 2021-72324, Eq. 39)."""
        return self._matrix(derivation.mass_blocks(self._state.tree))

    @cached_property
    def D(self) -> sp.Matrix:
        """D = diag(0, [omega]x) of all bodies (6 N, 6 N) (IMECE 2021-72324, Eq. 39)."""
        return self._matrix(derivation.gyroscopic_blocks(self._J @ self._state.v))

    @cached_property
    def Gamma(self) -> sp.Matrix:
        """Applied forces and torques on all bodies (6 N, 1): weights, and joint forces with reactions.

        Generalised forces that do not act between two bodies with mass are in `joint_space_forces` instead.
        """
        return self._matrix(self._wrenches[0])

    @cached_property
    def joint_space_forces(self) -> sp.Matrix:
        """Generalised forces on u (n, 1) that are not part of Gamma, and the bias force of rotors."""
        s = self._state
        rotors = armature(s.tree) * s.v_rate
        return self._matrix(s.V.T @ (self._wrenches[1] - rotors))

    @cached_property
    def kinetic_energy(self) -> sp.Expr:
        """Kinetic energy [J]: 1/2 X_dot^T M X_dot, and that of the rotors."""
        X, s = self._J @ self._state.v, self._state
        rotors = s.v @ (armature(s.tree) * s.v)
        return self._form.show((X @ derivation._block_product(s.tree, X) + rotors) / 2)

    @cached_property
    def potential_energy(self) -> sp.Expr:
        """Potential energy [J] of gravity and springs."""
        s = self._state
        height = sum(
            (
                b.mass * (s.tree.gravity @ p.p)
                for b, p in zip(s.tree.rigid_bodies, self._motion.poses, strict=True)
            ),
            start=0,
        )
        return self._form.show(spring_energy(self._scalar_mechanism, s.q) - height)

    @cached_property
    def generalized_forces(self) -> dict[str, sp.Matrix]:
        """Generalised forces on u (n, 1) of the weight and of each force, tendon and non-ideal constraint.

        An `actuator_range` limits each force as if it were the only one on its joint or tendon.
        """
        s, m = self._state, self._scalar_mechanism.replace(sensors=())
        found = {"weight": self._matrix((self._J @ s.V).T @ derivation.weights(s.tree))}
        none: dict[str, Any] = {"stiffness": 0, "damping": 0, "higher_stiffness": (), "higher_damping": ()}
        passive = tuple(replace(t, **none) for t in m.tendons)
        for k, force in enumerate(m.forces):
            alone = m.replace(forces=(force,), tendons=passive)
            Q = part_of_generalized_forces(alone, m, s.q, s.v, self._inputs)
            found[_force_name(self.mechanism.forces[k], found)] = self._matrix(s.V.T @ Q)
        for k, tendon in enumerate(m.tendons):
            if tendon.has_spring or tendon.has_damper:
                alone = m.replace(forces=(), tendons=(*passive[:k], tendon, *passive[k + 1 :]))
                Q = generalized_forces(alone, s.q, s.v, self._inputs)
                found[f"Tendon {tendon.name}"] = self._matrix(s.V.T @ Q)
        for c in (c for c in m.constraints if isinstance(c, NonIdeal)):
            alone = m.replace(
                constraints=tuple(x for x in m.constraints if not isinstance(x, NonIdeal) or x is c)
            )
            Q = nonideal_forces(alone, s.q, s.v, self._form.of(self.symbols.time), self._force_magnitudes)
            found[f"NonIdeal {c.name}"] = self._matrix(s.V.T @ Q)
        for c in (c for c in m.constraints if isinstance(c, CoulombFriction)):
            alone = m.replace(
                constraints=tuple(x for x in m.constraints if not isinstance(x, CoulombFriction) or x is c)
            )
            Q = friction_forces(alone, s.q, s.v, self._form.of(self.symbols.time), self._force_magnitudes)
            found[f"CoulombFriction {c.name}"] = self._matrix(s.V.T @ Q)
        return found

    @cached_property
    def constraint_forces(self) -> sp.Matrix:
        """Q^c = M (B u_dot + B_dot u) + D M X_dot - Gamma on all bodies (6 N, 1), in the symbols u_dot.

        Forces are in world axes, torques about the centre of mass in body axes. They are the forces of all
        joints and constraints together. Source: IMECE 2021-72324, Eq. 50b.
        """
        return self._matrix(self._inertial_wrench - self._wrenches[0])

    @cached_property
    def multipliers(self) -> dict[str, sp.Matrix]:
        """Multipliers of the independent rows by constraint, in u_dot: M(q) v_dot + h - Q = A^T lambda.

        Of dependent rows the first are independent; a constraint all of whose rows depend on those of others
        has an empty matrix (0, 1).
        """
        found: dict[str, list[Any]] = {c.name: [] for c in hard_constraints(self.mechanism)}
        for name, value in zip(self._reduction.names, self._lam, strict=True):
            found[name].append(value)
        return {name: self._matrix(np.array(values, dtype=object)) for name, values in found.items()}

    @cached_property
    def velocities(self) -> sp.Matrix:
        """The generalised velocities v (nv, 1) in the independent velocities u."""
        return self._matrix(self._state.v)

    @cached_property
    def coordinate_rates(self) -> sp.Matrix:
        """q_dot (nq, 1) in the coordinates and the independent velocities u."""
        s = self._state
        return self._matrix(configuration_rate(s.tree, s.q, s.v))

    # -------------------------------------------------------------------- common subexpressions and numbers

    @cached_property
    def definitions(self) -> list[Definition]:
        """Common subexpressions of mass_matrix and right_hand_side, in order; empty if expanded."""
        return self._cse[0]

    @cached_property
    def _cse(self) -> tuple[list[Definition], sp.Matrix, sp.Matrix]:
        """Definitions, and the mass matrix and right-hand side in terms of them."""
        p, m = self._projected, len(self.symbols.u)
        if isinstance(self._form, ExpandedForm):
            return [], self.mass_matrix, self.right_hand_side
        defined, written = self._form.definitions([*p.mass_matrix.flat, *p.right_hand_side])
        return defined, sp.Matrix(m, m, written[: m * m]), sp.Matrix(written[m * m :])

    def mass_matrix_cse(self) -> tuple[list[Definition], sp.Matrix]:
        """Definitions of the common subexpressions of M* alone, and M* in terms of them.

        M* is derived by the composite-rigid-body algorithm, which needs the fewest definitions for large
        robots.
        """
        if isinstance(self._form, ExpandedForm):
            return [], self.mass_matrix
        m, V = len(self.symbols.u), self._state.V
        M = composite_mass_matrix(self._state.tree, self._state.q)
        projected = M if self._reduction.trivial else V.T @ M @ V
        defined, written = self._form.definitions(list(projected.flat))
        return defined, sp.Matrix(m, m, written)

    def count_operations(self) -> int:
        """The number of operations in mass_matrix and right_hand_side.

        Each definition and each pair of symmetric entries is counted once.
        """
        defined, mass, rhs = self._cse
        upper = [mass[i, j] for i in range(mass.rows) for j in range(i, mass.cols)]
        return sum(int(sp.count_ops(e)) for e in [*(e for _, e in defined), *upper, *matrix_entries(rhs)])

    def evaluate(self, values: Mapping[Any, Any], *names: str) -> tuple[np.ndarray, ...]:
        """Float arrays of mass_matrix and right_hand_side, or of those named, at values for the symbols.

        values: by symbol or by its name. names: some of "mass_matrix", "right_hand_side", "B", "velocities",
        "X_dot".
        Raises ParameterError for a symbol without a value, UnknownNameError for another name,
        DependentVelocitiesError where the independent velocities do not determine the others, and SolveError
        where they do but the elimination divides by zero.
        """
        s, p = self._state, self._projected
        arrays = {
            "mass_matrix": p.mass_matrix, "right_hand_side": p.right_hand_side, "B": self._J @ s.V,
            "velocities": s.v, "X_dot": self._J @ s.v,
        }  # fmt: skip
        chosen = names or ("mass_matrix", "right_hand_side")
        for name in chosen:
            if name not in arrays:
                raise UnknownNameError("array", name, arrays)
        known = {str(key): value for key, value in values.items()}
        found = tuple(self._form.values(arrays[name], known) for name in chosen)
        if not self._reduction.trivial:
            self._check_velocities(known)
        return found

    def _check_velocities(self, known: Mapping[str, Any]) -> None:
        """Raises DependentVelocitiesError where A v = 0 and S v = 0 leave a velocity undetermined, relative
        to the largest entry in the rows of each constraint, and SolveError where V is not finite otherwise.
        """
        e = self._reduction
        try:
            K = self._form.values(np.concatenate([e.A, e.S]), known)
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
        if not np.isfinite(self._form.values(e.V, known)).all():
            raise SolveError(
                f"equations of mechanism {self.mechanism.name!r} divide by zero in this state, while its "
                'independent velocities determine the others; derive them with form="expanded", or choose '
                "others by speeds="
            )

    # -------------------------------------------------------------------- scalars of the form

    @cached_property
    def _motion(self) -> derivation.BodyMotion:
        return derivation.body_motion(self._state.tree, self._state.q)

    @property
    def _J(self) -> np.ndarray:
        """X_dot = J v (6 N, nv)."""
        return self._motion.B

    @property
    def _inputs(self) -> dict[str, Any]:
        return {name: self._form.of(x) for name, x in self.symbols.inputs.items()}

    @property
    def _force_magnitudes(self) -> dict[str, Any]:
        return {name: self._form.of(x) for name, x in self.symbols.force_magnitudes.items()}

    @property
    def _u_dot(self) -> np.ndarray:
        return np.array([self._form.of(x) for x in self.symbols.u_dot])

    @cached_property
    def _wrenches(self) -> tuple[np.ndarray, np.ndarray]:
        """Gamma (6 N,), and the generalised forces (nv,) that are not part of it."""
        s = self._state
        at = (self._scalar_mechanism, s.q, s.v, self._form.of(self.symbols.time), self._force_magnitudes)
        nonideal = nonideal_forces(*at) + friction_forces(*at)
        return applied_wrenches(self._scalar_mechanism, self._motion, s.q, s.v, self._inputs, nonideal)

    @property
    def _bias_accelerations(self) -> np.ndarray:
        """J_dot v: the accelerations of all bodies (6 N,) at constant generalised velocities v."""
        s = self._state
        rate = configuration_rate(s.tree, s.q, s.v)
        return derivative_along(lambda q: derivation.body_motion(s.tree, q).B @ s.v, s.q, rate)[1]

    @cached_property
    def _inertial_wrench(self) -> np.ndarray:
        """M X_ddot + D M X_dot (6 N,) in the symbols u_dot."""
        s, u_dot = self._state, self._u_dot
        X_ddot = self._J @ (s.V @ u_dot + s.v_rate) + self._bias_accelerations
        return derivation._block_product(s.tree, X_ddot) + derivation.gyroscopic_forces(s.tree, self._J @ s.v)

    @cached_property
    def _lam(self) -> np.ndarray:
        """The multipliers lambda of the independent rows."""
        s, e = self._state, self._reduction
        if not len(e.A):
            return np.zeros(0, int)
        # M(q) v_dot + h - Q = A^T lambda, with v_dot = V u_dot + v_rate
        u_dot = self._u_dot
        unit = np.eye(s.tree.nv, dtype=int)
        unreduced = derivation.SymbolicState(s.tree, s.q, s.v, unit, s.v_rate, s.generalized_forces)
        free = derivation.by_projection(unreduced)
        return e.multipliers(free.mass_matrix @ (s.V @ u_dot) - free.right_hand_side)

    def _matrix(self, array: Any) -> sp.Matrix:
        """An array of scalars of the form as a SymPy matrix."""
        array = np.asarray(array, dtype=object)
        rows, cols = array.shape if array.ndim == 2 else (len(array), 1)
        return sp.Matrix(rows, cols, [self._form.show(x) for x in array.flat])


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A^-1 b for a symmetric positive definite A, by elimination down the diagonal."""
    n, A, b = len(b), A.copy(), b.copy()
    for k in range(n):
        if is_zero(A[k, k]):
            raise ZeroDivisionError
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] = A[i, k:] - factor * A[k, k:]
            b[i] = b[i] - factor * b[k]
    x: list[Any] = [0] * n
    for k in reversed(range(n)):
        x[k] = (b[k] - sum((A[k, j] * x[j] for j in range(k + 1, n)), start=0)) / A[k, k]
    return np.array(x, dtype=object)


def _force_name(force: Any, taken: Mapping[str, Any]) -> str:
    """A name for a force that is not taken yet, from its type and what it acts on."""
    target = next(
        (
            getattr(force, n)
            for n in ("name", "joint", "body", "input")
            if isinstance(getattr(force, n, None), str)
        ),
        "",
    )
    name = f"{type(force).__name__} {target}".strip()
    k = 2
    while name in taken:
        name = f"{name.split(' #')[0]} #{k}"
        k += 1
    return name
