"""Equations of motion on paper: the projection method, from a mechanism to SymPy matrices and a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from zwang.algebra.dual import derivative_along
from zwang.api import validation
from zwang.constraint.hard import nonideal_forces
from zwang.dynamics.crba import armature
from zwang.dynamics.crba import crba as composite_mass_matrix
from zwang.dynamics.generalised_forces import spring_energy
from zwang.errors import DescriptionError, UnknownNameError, ZwangWarning
from zwang.kinematics.configuration import configuration_rate
from zwang.mechanism.constraints import NonIdeal, PointSpeed
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.forces import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero
from zwang.symbolic import derivation, reactions, typesetting
from zwang.symbolic.expression_forms import CSEForm, ExpandedForm, map_expressions
from zwang.symbolic.lagrange import by_lagrange
from zwang.symbolic.numeric_probe import NumericProbe, numeric_probe, value_near
from zwang.symbolic.polynomial import Polynomial, TooLargeError
from zwang.symbolic.velocity_reduction import VelocityReduction, speed_rows, velocity_reduction
from zwang.symbolic.wrenches import applied_wrenches, generalized_forces

READABLE_TURNS = 5  # more turning joints than this give no expanded expressions that are worth reading
READABLE_SIZE = 4000  # symbols and operations, about
LIMITS = {"projection": 15_000, "newton_euler": 15_000, "gauss": 60_000, "lagrange": 200_000}
"""Products of terms by method: more is no reading matter, and the graph is faster."""
METHODS: dict[str, Callable[[derivation.SymbolicState], derivation.ProjectedEquations]] = {
    "projection": derivation.by_projection, "gauss": derivation.by_gauss, "newton_euler": derivation.by_newton_euler, "lagrange": by_lagrange,
}  # fmt: skip
Speeds = Sequence[str | PointSpeed] | None
Form = ExpandedForm | CSEForm


@dataclass(frozen=True)
class Symbols:
    """The symbols of a mechanism's equations; time is there for constraints that depend on it."""

    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    u: tuple[sp.Symbol, ...]
    u_dot: tuple[sp.Symbol, ...]
    inputs: Mapping[str, sp.Symbol]
    time: sp.Symbol
    sizes: Mapping[str, sp.Symbol]  # of the forces of constraints that work: N of each
    latex: Mapping[sp.Symbol, str]

    @property
    def outer(self) -> set[sp.Symbol]:
        """What terms are collected by."""
        return {*self.v, *self.u, *self.u_dot, *self.inputs.values(), *self.sizes.values()}


def symbols_for(mechanism: Mechanism, speeds: Sequence[str | PointSpeed]) -> Symbols:
    """Coordinates named as their joints; speeds x_dot; a point's speed by its own name; inputs by theirs."""
    real = {"real": True}
    q = tuple(sp.Symbol(name, **real) for name in mechanism.coordinate_names)
    v = tuple(sp.Symbol(f"{name}_dot", **real) for name in mechanism.speed_names)
    by_name = dict(zip(mechanism.speed_names, v, strict=True))
    u, u_dot, latex = [], [], {s: typesetting.symbol(s.name) for s in q}
    latex |= {s: rf"\dot{{{typesetting.symbol(n)}}}" for n, s in by_name.items()}
    for speed in speeds:
        name = speed if isinstance(speed, str) else speed.name
        own = by_name[name] if isinstance(speed, str) else sp.Symbol(name, **real)
        rate = sp.Symbol(f"{name}_ddot" if isinstance(speed, str) else f"{name}_dot", **real)
        dots = r"\ddot" if isinstance(speed, str) else r"\dot"
        u.append(own)
        u_dot.append(rate)
        latex[rate] = rf"{dots}{{{typesetting.symbol(name)}}}"
        latex.setdefault(own, typesetting.symbol(name))
    inputs = {name: _input_symbol(mechanism, name) for name in mechanism.inputs}
    working = {
        c.constraint: sp.Symbol(f"N_{c.constraint}", nonnegative=True)
        for c in mechanism.constraints
        if isinstance(c, NonIdeal)
    }
    return Symbols(q, v, tuple(u), tuple(u_dot), inputs, sp.Symbol("t", **real), working, latex)


def _input_symbol(mechanism: Mechanism, name: str) -> sp.Symbol:
    return sp.Symbol(name, real=True)


@dataclass(frozen=True, eq=False)
class Equations:
    """mass_matrix * u_dot = right_hand_side, and all that leads there (seed 003, Sec. 3.2.2). All entries are SymPy's.

    q, speeds (u), accelerations' symbols u_dot: column matrices of symbols. `form` is "expanded" (written out) or "shared" (large: the
    matrices are the same, and `definitions` names what is shared in them).
    """

    mechanism: Mechanism
    symbols: Symbols
    method: str
    form: str
    _form: Form = field(repr=False)
    _state: derivation.SymbolicState = field(repr=False)
    _projected: derivation.ProjectedEquations = field(repr=False)
    _embedding: VelocityReduction = field(repr=False)
    _scalar_mechanism: Mechanism = field(repr=False)

    # -------------------------------------------------------------------- the result

    @property
    def q(self) -> sp.Matrix:
        """The coordinates."""
        return sp.Matrix(self.symbols.q)

    @property
    def speeds(self) -> sp.Matrix:
        """The essential speeds u."""
        return sp.Matrix(self.symbols.u)

    @property
    def u_dot(self) -> sp.Matrix:
        """The symbols of the accelerations."""
        return sp.Matrix(self.symbols.u_dot)

    @cached_property
    def mass_matrix(self) -> sp.Matrix:
        """M* = B^T M B."""
        return self._matrix(self._projected.mass_matrix)

    @cached_property
    def right_hand_side(self) -> sp.Matrix:
        """B^T (Gamma - D M X_dot - M B_dot u): what the accelerations are driven by."""
        return self._matrix(self._projected.right_hand_side)

    @cached_property
    def accelerations(self) -> sp.Matrix:
        """u_dot, solved for. Without pivots that could vanish: M* is positive definite."""
        if self.form == "expanded":
            return self.mass_matrix.LUsolve(self.right_hand_side).applyfunc(sp.together)
        return self._matrix(_solved(self._projected.mass_matrix, self._projected.right_hand_side))

    # -------------------------------------------------------------------- the way there

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """The bodies with mass, in the order of X_dot."""
        return tuple(s.body for s in self._state.tree.rigid_bodies)

    @cached_property
    def frames(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """For each body its rotation R(0,k) and the position of its mass centre in world axes."""
        m = self._motion
        return {
            name: (self._matrix(pose.R), self._matrix(pose.p))
            for name, pose in zip(m.names, m.poses, strict=True)
        }

    @cached_property
    def B(self) -> sp.Matrix:
        """The constraint matrix: X_dot = B u (seed 003, Eq. 40), plus `drift` where constraints move by themselves."""
        return self._matrix(self._J @ self._state.V)

    @cached_property
    def drift(self) -> sp.Matrix:
        """X_dot at u = 0: zero unless a constraint depends on time."""
        return self._matrix(self._J @ self._embedding.v0)

    @cached_property
    def B_dot(self) -> sp.Matrix:
        """The rate of B."""
        s = self._state
        rate = configuration_rate(s.tree, s.q, s.v)
        J, J_dot = derivative_along(lambda q: derivation.body_motion(s.tree, q).B, s.q, rate)
        return self._matrix(J_dot @ s.V + J @ self._embedding.V_rate)

    @cached_property
    def X_dot(self) -> sp.Matrix:
        """The velocities of all bodies in the essential speeds: linear in world axes, angular in body axes."""
        return self._matrix(self._J @ self._state.v)

    @cached_property
    def motions(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """For each body the velocity of its mass centre in world axes, and its angular velocity in its own."""
        X = self.X_dot
        return {
            name: (X[6 * k : 6 * k + 3, :], X[6 * k + 3 : 6 * k + 6, :]) for k, name in enumerate(self.bodies)
        }

    @cached_property
    def M_blocks(self) -> sp.Matrix:
        """M = diag(m 1, I) of all bodies (seed 003, Eq. 39)."""
        return self._matrix(derivation.mass_blocks(self._state.tree))

    @cached_property
    def D(self) -> sp.Matrix:
        """diag(0, [omega]x) of all bodies (seed 003, Eq. 39)."""
        return self._matrix(derivation.gyroscopic_blocks(self._J @ self._state.v))

    @cached_property
    def Gamma(self) -> sp.Matrix:
        """The applied forces and torques on all bodies: weights, and joints' efforts with their reactions.

        Efforts that do not act between two bodies with mass are not in it but in `speed_forces`.
        """
        return self._matrix(self._wrenches[0])

    @cached_property
    def speed_forces(self) -> sp.Matrix:
        """Generalised forces beside Gamma's, on the speeds u; rotors' inertia counts here too."""
        s = self._state
        rotors = armature(s.tree) * s.v_rate
        return self._matrix(s.V.T @ (self._wrenches[1] - rotors))

    @cached_property
    def kinetic_energy(self) -> sp.Expr:
        """1/2 X_dot^T M X_dot and the rotors'."""
        X, s = self._J @ self._state.v, self._state
        rotors = s.v @ (armature(s.tree) * s.v)
        return self._form.show((X @ derivation._block_product(s.tree, X) + rotors) / 2)

    @cached_property
    def potential_energy(self) -> sp.Expr:
        """Of weight and springs."""
        s = self._state
        height = sum(
            (b.mass * (s.tree.gravity @ p.p) for b, p in zip(s.tree.rigid_bodies, self._motion.poses, strict=True)),
            start=0,
        )
        return self._form.show(spring_energy(self._scalar_mechanism, s.q) - height)

    @cached_property
    def generalized_forces(self) -> dict[str, sp.Matrix]:
        """The generalised force of each applied force on the speeds u, and of weight."""
        s, m = self._state, self._scalar_mechanism
        found = {"weight": self._matrix((self._J @ s.V).T @ derivation.weights(s.tree))}
        slack = tuple(replace(t, stiffness=0, damping=0) for t in m.tendons)
        for k, force in enumerate(m.forces):
            alone = m.replace(forces=(force,), tendons=slack)
            effort = generalized_forces(alone, s.q, s.v, self._inputs)
            found[_force_name(self.mechanism.forces[k], found)] = self._matrix(s.V.T @ effort)
        for k, tendon in enumerate(m.tendons):
            if not (is_zero(tendon.stiffness) and is_zero(tendon.damping)):
                alone = m.replace(forces=(), tendons=(*slack[:k], tendon, *slack[k + 1 :]))
                found[f"Tendon {tendon.name}"] = self._matrix(s.V.T @ generalized_forces(alone, s.q, s.v, self._inputs))
        sizes = {name: self._form.of(x) for name, x in self.symbols.sizes.items()}
        for c in (c for c in m.constraints if isinstance(c, NonIdeal)):
            alone = m.replace(
                constraints=tuple(x for x in m.constraints if not isinstance(x, NonIdeal) or x is c)
            )
            effort = nonideal_forces(alone, s.q, s.v, self._form.of(self.symbols.time), sizes)
            found[f"NonIdeal {c.name}"] = self._matrix(s.V.T @ effort)
        return found

    @cached_property
    def constraint_forces(self) -> sp.Matrix:
        """Q^c = M (B u_dot + B_dot u) + D M X_dot - Gamma on all bodies (seed 003, Eq. 50b), in the symbols u_dot.

        Forces in world axes, torques about the mass centre in body axes; of joints and constraints together.
        """
        return self._matrix(reactions.inertial_wrench(self) - self._wrenches[0])

    @cached_property
    def multipliers(self) -> dict[str, sp.Matrix]:
        """The constraints' forces, row by row, in the symbols u_dot: H v_dot + h - Q = A^T lambda."""
        e, found = self._embedding, {}
        for name, value in zip(e.names, self._lam, strict=True):
            found.setdefault(name, []).append(value)
        return {name: self._matrix(np.array(values, dtype=object)) for name, values in found.items()}

    @cached_property
    def _lam(self) -> np.ndarray:
        """lambda of the rows kept, as scalars of the form."""
        s, e = self._state, self._embedding
        if not len(e.A):
            return np.zeros(0, int)
        u_dot = np.array([self._form.of(x) for x in self.symbols.u_dot])
        everything = derivation.SymbolicState(s.tree, s.q, s.v, np.eye(s.tree.nv, dtype=int), s.v_rate, s.efforts)
        free = derivation.by_projection(everything)
        return e.multipliers(free.mass_matrix @ (s.V @ u_dot) - free.right_hand_side)

    @cached_property
    def velocities(self) -> sp.Matrix:
        """The mechanism's speeds v in the essential speeds u."""
        return self._matrix(self._state.v)

    @cached_property
    def coordinate_rates(self) -> sp.Matrix:
        """q_dot in the coordinates and the essential speeds u."""
        s = self._state
        return self._matrix(configuration_rate(s.tree, s.q, s.v))

    # -------------------------------------------------------------------- large ones

    @cached_property
    def definitions(self) -> list[tuple[sp.Symbol, sp.Expr]]:
        """Names for what is shared in mass_matrix and right_hand_side, ordered by body; empty where all is written out."""
        return self._shared_form[0]

    @cached_property
    def _shared_form(self) -> tuple[list[tuple[sp.Symbol, sp.Expr]], sp.Matrix, sp.Matrix]:
        p, m = self._projected, len(self.symbols.u)
        if isinstance(self._form, ExpandedForm):
            return [], self.mass_matrix, self.right_hand_side
        defined, written = self._form.definitions([*p.mass_matrix.flat, *p.right_hand_side])
        return defined, sp.Matrix(m, m, written[: m * m]), sp.Matrix(written[m * m :])

    def mass_matrix_cse(self) -> tuple[list[tuple[sp.Symbol, sp.Expr]], sp.Matrix]:
        """Definitions and M* in them, of M* alone: by composite inertias, with the fewest definitions for large robots."""
        if isinstance(self._form, ExpandedForm):
            return [], self.mass_matrix
        m, V = len(self.symbols.u), self._state.V
        H = composite_mass_matrix(self._state.tree, self._state.q)
        projected = H if self._embedding.trivial else V.T @ H @ V
        defined, written = self._form.definitions(list(projected.flat))
        return defined, sp.Matrix(m, m, written)

    def count_operations(self) -> int:
        """Operations in mass_matrix and right_hand_side, each definition counted once and symmetric entries once."""
        defined, mass, rhs = self._shared_form
        upper = [mass[i, j] for i in range(mass.rows) for j in range(i, mass.cols)]
        return sum(int(sp.count_ops(e)) for e in [*(e for _, e in defined), *upper, *rhs])

    def evaluate(self, values: Mapping[Any, Any], *names: str) -> tuple[np.ndarray, ...]:
        """Float arrays at values for the symbols (by symbol or by name): mass_matrix and right_hand_side, or those named.

        names: of "mass_matrix", "right_hand_side", "B", "velocities", "X_dot". Raises ParameterError for a symbol without a value.
        """
        s, p = self._state, self._projected
        arrays = {
            "mass_matrix": p.mass_matrix, "right_hand_side": p.right_hand_side, "B": self._J @ s.V, "velocities": s.v,
            "X_dot": self._J @ s.v,
        }  # fmt: skip
        chosen = names or ("mass_matrix", "right_hand_side")
        for name in chosen:
            if name not in arrays:
                raise UnknownNameError("array", name, arrays)
        known = {str(key): value for key, value in values.items()}
        return tuple(self._form.values(arrays[name], known) for name in chosen)

    def split_constraint_forces(self, values: Mapping[Any, Any]) -> reactions.SplitForces:
        """The constraint forces on all bodies as numbers, and their ideal and working parts; see `reactions`."""
        return reactions.split_constraint_forces(self, values)

    @cached_property
    def joint_reactions(self) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
        """By joint the force and torque on what it carries, in the symbols u_dot; see `reactions`."""
        return reactions.joint_reactions(self)

    # -------------------------------------------------------------------- on paper

    def steps(self) -> list[typesetting.DerivationStep]:
        """The report: the paper's steps with their matrices."""
        return typesetting.steps_of(self)

    def cse_steps(self) -> tuple[list[tuple[sp.Symbol, sp.Expr]], list[typesetting.DerivationStep]]:
        """The report of large ones: definitions of what its matrices share, and the steps in these names."""
        steps = self.steps()
        if isinstance(self._form, ExpandedForm):
            return [], steps
        entries = [x for step in steps for x in typesetting.entries_of(step.value)]
        defined, written = self._form.definitions_of(entries)
        return defined, typesetting.rewritten(steps, iter(written))

    def latex(self, *, report: bool = False) -> str:
        """mass_matrix * u_dot = right_hand_side as LaTeX (with definitions if large); with `report`, all steps before it."""
        return typesetting.latex(self, report=report)

    def html(self) -> str:
        """The report as an HTML page fragment; formulas are LaTeX for MathJax or KaTeX."""
        return typesetting.html(self)

    def text(self) -> str:
        """The equations as plain text."""
        return typesetting.text(self)

    def sympy(self) -> str:
        """The equations as Python text for SymPy."""
        return typesetting.python(self)

    def written(self, format: str) -> str:
        """The equations in a format by name: "latex" (with the report where it is readable), "html", "sympy" or "text"."""
        formats = {
            "latex": lambda: self.latex(report=self.form == "expanded"), "html": self.html, "sympy": self.sympy, "text": self.text,
        }  # fmt: skip
        if format not in formats:
            raise UnknownNameError("format", format, formats)
        return formats[format]()

    def _repr_latex_(self) -> str:
        return "$$" + self.latex() + "$$"

    def _repr_html_(self) -> str:
        return typesetting.html(self, typesetting.MOST)

    def __repr__(self) -> str:
        return self.text()

    # -------------------------------------------------------------------- inside

    @cached_property
    def _motion(self) -> derivation.BodyMotion:
        return derivation.body_motion(self._state.tree, self._state.q)

    @property
    def _J(self) -> np.ndarray:
        return self._motion.B

    @property
    def _inputs(self) -> dict[str, Any]:
        return {name: self._form.of(x) for name, x in self.symbols.inputs.items()}

    @cached_property
    def _wrenches(self) -> tuple[np.ndarray, np.ndarray]:
        s = self._state
        sizes = {name: self._form.of(x) for name, x in self.symbols.sizes.items()}
        working = nonideal_forces(self._scalar_mechanism, s.q, s.v, self._form.of(self.symbols.time), sizes)
        return applied_wrenches(self._scalar_mechanism, self._motion, s.q, s.v, self._inputs, working)

    def _matrix(self, array: Any) -> sp.Matrix:
        array = np.asarray(array, dtype=object)
        rows, cols = array.shape if array.ndim == 2 else (len(array), 1)
        return sp.Matrix(rows, cols, [self._form.show(x) for x in array.flat])


def _solved(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """H^-1 b for a symmetric positive definite H, by elimination down the diagonal."""
    n, H, b = len(b), H.copy(), b.copy()
    for k in range(n):
        for i in range(k + 1, n):
            factor = H[i, k] / H[k, k]
            H[i, k:] = H[i, k:] - factor * H[k, k:]
            b[i] = b[i] - factor * b[k]
    x: list[Any] = [0] * n
    for k in reversed(range(n)):
        x[k] = (b[k] - sum((H[k, j] * x[j] for j in range(k + 1, n)), start=0)) / H[k, k]
    return np.array(x, dtype=object)


def _force_name(force: Any, taken: Mapping[str, Any]) -> str:
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


# ---------------------------------------------------------------------------------------------- the front door


@checked_arguments()
def equations(
    mechanism: Mechanism, speeds: Speeds = None, method: str = "projection", *, form: str = "auto"
) -> Equations:
    """The equations of motion of a mechanism, symbolically: mass_matrix * u_dot = right_hand_side.

    speeds: the essential speeds u, each a joint's speed by name or a `PointSpeed`; by default all speeds, or, with constraints, those that
    leave the constraints well conditioned at home. method: "projection" (B), "gauss" (least Z), "newton_euler" or "lagrange", which must
    and do agree. form: "expanded", "shared" (subexpressions named) or "auto": expanded as long as it is readable.
    The prescribed force of a `NonIdeal` constraint is there with a symbol N_NAME for the size of the constraint's own force, which is that of
    `multipliers[NAME]`. Raises UnknownNameError for a speed, DescriptionError for dependent speeds and where nothing moves.
    Source: seed 003, Sec. 3.2.2.
    """
    mechanism = validation.checked_mechanism(mechanism)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if form not in ("auto", "expanded", "shared"):
        raise UnknownNameError("form", form, ("auto", "expanded", "shared"))
    if not mechanism.nv:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no joint that moves: there are no equations of motion"
        )
    _warn_of_what_is_left_out(mechanism)
    twin = numeric_probe(mechanism)
    chosen = speed_rows(mechanism, speeds, twin)
    symbols = symbols_for(mechanism, chosen)
    if form == "expanded" or (form == "auto" and _may_be_readable(mechanism)):
        together = {symbols.q[k] for k in derivation.summed_angles(_numbers(mechanism).tree)}
        limit = LIMITS[method] if form == "auto" else float("inf")
        try:
            expanded = ExpandedForm(together, symbols.outer, limit, _units(mechanism, symbols))
            found = _derived(mechanism, symbols, chosen, method, expanded, twin)
            if form == "expanded" or _is_readable(found):
                return found
        except TooLargeError:
            pass
    return _derived(mechanism, symbols, chosen, method, CSEForm(), twin)


def _warn_of_what_is_left_out(mechanism: Mechanism) -> None:
    """Soft constraints and dry friction of joints are no part of smooth equations; limits and contacts never are."""
    left = [
        f"constraint {c.name!r}, which is soft"
        for c in mechanism.constraints
        if getattr(c, "softness", None) is not None
    ]
    left += [
        f"dry friction of joint {j.name!r}"
        for j in mechanism.joints
        if not is_zero(getattr(j.joint, "friction", 0))
    ]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        warnings.warn(
            f"the equations of mechanism {mechanism.name!r} leave out {left[0]}{more}; give constraints softness=None to have them",
            ZwangWarning, stacklevel=3,
        )  # fmt: skip


def _numbers(mechanism: Mechanism) -> Mechanism:
    """The mechanism with rounding cleaned from its rotations, symbols kept."""
    return map_expressions(mechanism, lambda x: x)


def _is_readable(e: Equations) -> bool:
    """Few terms, and no long expressions hidden in opaque factors."""
    polynomials = [
        x
        for x in (*e._projected.mass_matrix.flat, *e._projected.right_hand_side)
        if isinstance(x, Polynomial)
    ]
    if not polynomials:
        return True
    ring = polynomials[0].ring
    sizes = [int(sp.count_ops(x)) + 1 for _, x in ring.generators]
    return (
        sum(1 + sum(sizes[n] for n, _ in ring.exponents(key)) for x in polynomials for key in x.terms)
        <= READABLE_SIZE
    )


def _may_be_readable(mechanism: Mechanism) -> bool:
    """Few turns, and no muscle, rod or wrapped tendon, which choose between formulas."""
    chooses = any(tendon.wraps for tendon in mechanism.tendons) or any(
        isinstance(f, Actuator) and (f.muscle is not None or f.slider is not None) for f in mechanism.forces
    )
    return _turns(mechanism) <= READABLE_TURNS and not chooses


def _turns(mechanism: Mechanism) -> int:
    """The number of turns in the mechanism's joints; a ball counts as three."""
    return sum({"slide": 0, "ball": 3}.get(link.move.kind, 1) for link in mechanism.tree.links)


def _units(mechanism: Mechanism, symbols: Symbols) -> dict[sp.Symbol, tuple[sp.Symbol, ...]]:
    """The unit quaternions among the coordinates: scalar part to vector part."""
    ends = [j.q.stop for j in mechanism.joints if "qw" in j.joint.coordinates]
    return {symbols.q[end - 4]: symbols.q[end - 3 : end] for end in ends}


def _derived(
    mechanism: Mechanism, symbols: Symbols, chosen: Any, method: str, form: Form, twin: NumericProbe
) -> Equations:
    scalars = form.mechanism(mechanism)
    tree = scalars.tree

    def of(xs: Any) -> np.ndarray:
        return _array([form.of(x) for x in xs])

    q, u, time = of(symbols.q), of(symbols.u), form.of(symbols.time)
    inputs = {name: form.of(s) for name, s in symbols.inputs.items()}
    near = (*twin, [s if isinstance(s, str) else map_expressions(s, value_near) for s in chosen])
    e = velocity_reduction(scalars, near, q, u, time, [_point(s, form) for s in chosen])
    sizes = {name: form.of(s) for name, s in symbols.sizes.items()}
    applied = generalized_forces(scalars, q, e.v, inputs) + nonideal_forces(scalars, q, e.v, time, sizes)
    state = derivation.SymbolicState(tree, q, e.v, e.V, e.v_rate, applied)
    lumped = state if isinstance(form, ExpandedForm) else replace(state, tree=derivation.lumped(tree))
    projected = METHODS[method](lumped)
    kind = "expanded" if isinstance(form, ExpandedForm) else "shared"
    if isinstance(form, ExpandedForm):
        form.ring.limit = float("inf")  # what is asked for now is wanted
    return Equations(mechanism, symbols, method, kind, form, state, projected, e, scalars)


def _point(speed: Any, form: Form) -> Any:
    return speed if isinstance(speed, str) else map_expressions(speed, form.of)


def _array(values: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
