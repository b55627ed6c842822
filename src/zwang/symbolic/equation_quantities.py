"""The quantities of a derivation in the scalars of its form, from which they are shown and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from zwang.algebra.dual import derivative_along
from zwang.constraint.hard import hard_constraints, nonideal_forces
from zwang.dynamics.crba import armature
from zwang.dynamics.free_body_diagram import check_loads_on_bodies
from zwang.dynamics.generalised_forces import spring_energy
from zwang.errors import SolveError
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.constraints import CoulombFriction, NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero
from zwang.symbolic import derivation
from zwang.symbolic.equation_symbols import EquationSymbols
from zwang.symbolic.expression_forms import CSEForm, ExpandedForm
from zwang.symbolic.friction_equations import friction_forces
from zwang.symbolic.sympy_types import matrix_entries
from zwang.symbolic.velocity_reduction import VelocityReduction
from zwang.symbolic.wrenches import (
    applied_wrenches,
    generalized_forces,
    joint_reactions,
    part_of_generalized_forces,
    wrenches_on_bodies,
)

Form = ExpandedForm | CSEForm
Pair = tuple[np.ndarray, np.ndarray]
QUANTITIES = (
    "mass_matrix", "right_hand_side", "accelerations", "frames", "B", "velocity_offset", "B_dot", "X_dot",
    "body_velocities", "M_blocks", "D", "Gamma", "joint_space_forces", "kinetic_energy", "potential_energy",
    "generalized_forces", "constraint_forces", "multipliers", "joint_reactions", "velocities",
    "coordinate_rates",
)  # fmt: skip


def converted(quantity: Any, convert: Callable[[np.ndarray], Any]) -> Any:
    """A quantity, which is an array or a dictionary or tuple of quantities, with each array converted."""
    if isinstance(quantity, dict):
        return {name: converted(x, convert) for name, x in quantity.items()}
    if isinstance(quantity, tuple):
        return tuple(converted(x, convert) for x in quantity)
    return convert(quantity)


def as_matrix(array: np.ndarray) -> Any:
    """An array of SymPy expressions as a matrix, of one dimension as a column, and of none as itself."""
    if array.ndim == 0:
        return array.item()
    rows, cols = array.shape if array.ndim == 2 else (len(array), 1)
    return sp.Matrix(rows, cols, list(array.flat))


@dataclass(frozen=True, eq=False)
class EquationQuantities:
    """The quantities of `DerivedEquations`, which describes them, as arrays of scalars of the form.

    Each is derived at its first use. mechanism: with SymPy expressions. scalar_mechanism: with scalars of the
    form.
    """

    mechanism: Mechanism
    symbols: EquationSymbols
    form: Form
    state: derivation.SymbolicState
    projected: derivation.ProjectedEquations
    reduction: VelocityReduction
    scalar_mechanism: Mechanism

    def scalars(self, name: str) -> Any:
        """A quantity in arrays of scalars."""
        return converted(getattr(self, name), lambda array: np.asarray(array, dtype=object))

    def shown(self, name: str) -> Any:
        """A quantity written out, in SymPy matrices."""
        return converted(self.scalars(name), self._shown)

    def _shown(self, array: np.ndarray) -> Any:
        return as_matrix(_array([self.form.show(x) for x in array.flat], array.shape))

    # -------------------------------------------------------------------- the equations of motion

    @property
    def mass_matrix(self) -> np.ndarray:
        """M* (n, n)."""
        return self.projected.mass_matrix

    @property
    def right_hand_side(self) -> np.ndarray:
        """The right-hand side (n,)."""
        return self.projected.right_hand_side

    @cached_property
    def accelerations(self) -> np.ndarray:
        """u_dot (n,) by elimination; raises SolveError if M* is singular."""
        try:
            if isinstance(self.form, ExpandedForm):
                solved = self.shown("mass_matrix").LUsolve(self.shown("right_hand_side"))
                return _array([sp.together(x) for x in matrix_entries(solved)], (len(solved),))
            return _solved(self.mass_matrix, self.right_hand_side)
        except (sp.matrices.exceptions.NonInvertibleMatrixError, ZeroDivisionError):
            raise SolveError(
                f"the accelerations of mechanism {self.mechanism.name!r} are not determined, as its mass "
                "matrix is singular: give each body that can turn about its centre of mass an inertia, or "
                "its joint an armature"
            ) from None

    # -------------------------------------------------------------------- motion

    @property
    def frames(self) -> dict[str, Pair]:
        """By body its rotation (3, 3) and the position of its centre of mass (3,)."""
        m = self.motion
        return {name: (pose.R, pose.p) for name, pose in zip(m.names, m.poses, strict=True)}

    @cached_property
    def B(self) -> np.ndarray:
        """The velocity transformation (6 N, n)."""
        return self.J @ self.state.V

    @cached_property
    def velocity_offset(self) -> np.ndarray:
        """X_dot (6 N,) at u = 0."""
        return self.J @ self.reduction.v0

    @cached_property
    def B_dot(self) -> np.ndarray:
        """The time derivative of B (6 N, n)."""
        s = self.state
        rate = configuration_rate(s.tree, s.q, s.v)
        J, J_dot = derivative_along(lambda q: derivation.body_motion(s.tree, q).B, s.q, rate)
        return J_dot @ s.V + J @ self.reduction.V_rate

    @cached_property
    def X_dot(self) -> np.ndarray:
        """The velocities of all bodies (6 N,)."""
        return self.J @ self.state.v

    @property
    def body_velocities(self) -> dict[str, Pair]:
        """By body the velocity of the centre of mass (3,) and the angular velocity (3,)."""
        X = self.X_dot.reshape(-1, 2, 3)
        return {name: (x[0], x[1]) for name, x in zip(self.motion.names, X, strict=True)}

    @property
    def velocities(self) -> np.ndarray:
        """The generalised velocities v (nv,)."""
        return self.state.v

    @cached_property
    def coordinate_rates(self) -> np.ndarray:
        """q_dot (nq,)."""
        s = self.state
        return configuration_rate(s.tree, s.q, s.v)

    @cached_property
    def motion(self) -> derivation.BodyMotion:
        """The poses of the bodies, and J."""
        return derivation.body_motion(self.state.tree, self.state.q)

    @property
    def J(self) -> np.ndarray:
        """X_dot = J v (6 N, nv)."""
        return self.motion.B

    @cached_property
    def bias_accelerations(self) -> np.ndarray:
        """J_dot v: the accelerations of all bodies (6 N,) at constant generalised velocities v."""
        s = self.state
        rate = configuration_rate(s.tree, s.q, s.v)
        return derivative_along(lambda q: derivation.body_motion(s.tree, q).B @ s.v, s.q, rate)[1]

    # -------------------------------------------------------------------- inertia and energies

    @cached_property
    def M_blocks(self) -> np.ndarray:
        """M of all bodies (6 N, 6 N)."""
        return derivation.mass_blocks(self.state.tree)

    @cached_property
    def D(self) -> np.ndarray:
        """D of all bodies (6 N, 6 N)."""
        return derivation.gyroscopic_blocks(self.X_dot)

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """Kinetic energy ()."""
        X, s = self.X_dot, self.state
        rotors = s.v @ (armature(s.tree) * s.v)
        return _array([(X @ derivation._block_product(s.tree, X) + rotors) / 2], ())

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """Potential energy () of gravity and springs."""
        s = self.state
        heights = (
            b.mass * (s.tree.gravity @ p.p)
            for b, p in zip(s.tree.rigid_bodies, self.motion.poses, strict=True)
        )
        return _array([spring_energy(self.scalar_mechanism, s.q) - sum(heights, start=0)], ())

    # -------------------------------------------------------------------- applied forces

    @property
    def Gamma(self) -> np.ndarray:
        """Applied forces and torques on all bodies (6 N,)."""
        return self._applied[0]

    @cached_property
    def joint_space_forces(self) -> np.ndarray:
        """Generalised forces on u (n,) that are not part of Gamma, and the bias force of rotors."""
        s = self.state
        return s.V.T @ (self._applied[1] - armature(s.tree) * s.v_rate)

    @cached_property
    def generalized_forces(self) -> dict[str, np.ndarray]:
        """Generalised forces on u (n,) of each force by its name."""
        s, m = self.state, self.scalar_mechanism.replace(sensors=())
        found = {"weight": self.B.T @ derivation.weights(s.tree)}
        none: dict[str, Any] = {"stiffness": 0, "damping": 0, "higher_stiffness": (), "higher_damping": ()}
        passive = tuple(replace(t, **none) for t in m.tendons)
        for k, force in enumerate(m.forces):
            alone = m.replace(forces=(force,), tendons=passive)
            Q = part_of_generalized_forces(alone, m, s.q, s.v, self.inputs)
            found[_force_name(self.mechanism.forces[k], found)] = s.V.T @ Q
        for k, tendon in enumerate(m.tendons):
            if tendon.has_spring or tendon.has_damper:
                alone = m.replace(forces=(), tendons=(*passive[:k], tendon, *passive[k + 1 :]))
                found[f"Tendon {tendon.name}"] = s.V.T @ generalized_forces(alone, s.q, s.v, self.inputs)
        for kind, law in ((NonIdeal, nonideal_forces), (CoulombFriction, friction_forces)):
            for c in (c for c in m.constraints if isinstance(c, kind)):
                others = tuple(x for x in m.constraints if not isinstance(x, kind) or x is c)
                Q = law(m.replace(constraints=others), s.q, s.v, self.time, self.force_magnitudes)
                found[f"{kind.__name__} {c.name}"] = s.V.T @ Q
        return found

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by name."""
        return {name: self.form.of(x) for name, x in self.symbols.inputs.items()}

    @property
    def force_magnitudes(self) -> dict[str, Any]:
        """The magnitudes N_NAME of constraint forces by NAME."""
        return {name: self.form.of(x) for name, x in self.symbols.force_magnitudes.items()}

    @property
    def time(self) -> Any:
        """The time."""
        return self.form.of(self.symbols.time)

    @cached_property
    def _applied(self) -> Pair:
        """Gamma (6 N,), and the generalised forces (nv,) that are not part of it."""
        s, m = self.state, self.scalar_mechanism
        at = (m, s.q, s.v, self.time, self.force_magnitudes)
        nonideal = nonideal_forces(*at) + friction_forces(*at)
        return applied_wrenches(m, self.motion, s.q, s.v, self.inputs, nonideal)

    # -------------------------------------------------------------------- forces of constraints, in u_dot

    @cached_property
    def constraint_forces(self) -> np.ndarray:
        """Q^c on all bodies (6 N,)."""
        return self._inertial_wrench - self.Gamma

    @cached_property
    def multipliers(self) -> dict[str, np.ndarray]:
        """Multipliers of the independent rows by constraint."""
        found: dict[str, list[Any]] = {c.name: [] for c in hard_constraints(self.mechanism)}
        for name, value in zip(self.reduction.names, self._lam, strict=True):
            found[name].append(value)
        return {name: _array(values, (len(values),)) for name, values in found.items()}

    @cached_property
    def joint_reactions(self) -> dict[str, Pair]:
        """By joint the force (3,) and the torque (3,) on the body that it carries."""
        s, m = self.state, self.scalar_mechanism
        check_loads_on_bodies(m)
        lam: list[Any] = [0] * len(self.reduction.all_names)  # of dependent rows
        for k, value in zip(self.reduction.kept, self._lam, strict=True):
            lam[k] = value
        forces: dict[str, list[Any]] = {}
        for name, value in zip(self.reduction.all_names, lam, strict=True):
            forces.setdefault(name, []).append(value)
        wrench = self._inertial_wrench - wrenches_on_bodies(m, self.motion, s.q, s.v, self.inputs)
        return joint_reactions(m, s, wrench, forces, self.time)

    @property
    def _u_dot(self) -> np.ndarray:
        return np.array([self.form.of(x) for x in self.symbols.u_dot])

    @cached_property
    def _inertial_wrench(self) -> np.ndarray:
        """M X_ddot + D M X_dot (6 N,) in the symbols u_dot."""
        s = self.state
        X_ddot = self.J @ (s.V @ self._u_dot + s.v_rate) + self.bias_accelerations
        return derivation._block_product(s.tree, X_ddot) + derivation.gyroscopic_forces(s.tree, self.X_dot)

    @cached_property
    def _lam(self) -> np.ndarray:
        """The multipliers lambda of the independent rows."""
        s, e = self.state, self.reduction
        if not len(e.A):
            return np.zeros(0, int)
        # M(q) v_dot + h - Q = A^T lambda, with v_dot = V u_dot + v_rate
        unit = np.eye(s.tree.nv, dtype=int)
        unreduced = derivation.SymbolicState(s.tree, s.q, s.v, unit, s.v_rate, s.generalized_forces)
        free = derivation.by_projection(unreduced)
        return e.multipliers(free.mass_matrix @ (s.V @ self._u_dot) - free.right_hand_side)


def _array(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Scalars, into which NumPy does not look, as an array of this shape."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out.reshape(shape)


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
