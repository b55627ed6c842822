"""Symbolic equations of motion by the projection method: from a mechanism to SymPy matrices and a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from zwang.api.arguments import validation
from zwang.constraint.hard import nonideal_forces
from zwang.constraint.independent_velocities import IndependentVelocity
from zwang.deprecation import warn_of_rename
from zwang.errors import DescriptionError, UnknownNameError, ZwangWarning
from zwang.mechanism.constraints import NoSideSlip, PointSpeed
from zwang.mechanism.force_elements import Actuator, Spring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_paths import side_is_inside
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import are_constant, is_zero
from zwang.simulation.applied_forces import activations
from zwang.simulation.constraint_options import with_acting_constraints
from zwang.symbolic import derivation, reactions, typesetting
from zwang.symbolic.cancellation import cancelled_entries, size
from zwang.symbolic.constraint_agreement import check_agreement
from zwang.symbolic.derived_equations import DerivedEquations
from zwang.symbolic.equation_quantities import EquationQuantities, Form
from zwang.symbolic.equation_symbols import EquationSymbols, symbols_for
from zwang.symbolic.expression_forms import CSEForm, Definition, ExpandedForm, map_expressions
from zwang.symbolic.friction_equations import friction_forces
from zwang.symbolic.lagrange import by_lagrange
from zwang.symbolic.numeric_probe import NumericProbe, numeric_probe, value_near, warn_of_branches
from zwang.symbolic.polynomial import Polynomial, TooLargeError
from zwang.symbolic.vanishing_gradients import check_gradients
from zwang.symbolic.velocity_reduction import chosen_velocities, velocity_reduction
from zwang.symbolic.wrenches import generalized_forces

READABLE_ROTATIONS = 5  # with more rotations in the joints, expanded expressions are too long to read
READABLE_SIZE = 2000  # approximate number of symbols and operations
PRODUCT_LIMITS = {"projection": 15_000, "newton_euler": 15_000, "gauss": 60_000, "lagrange": 200_000}
"""By method the number of products of terms above which expressions are too long to read in expanded form."""
METHODS: dict[str, Callable[[derivation.SymbolicState], derivation.ProjectedEquations]] = {
    "projection": derivation.by_projection, "gauss": derivation.by_gauss,
    "newton_euler": derivation.by_newton_euler, "lagrange": by_lagrange,
}  # fmt: skip
IndependentVelocities = Sequence[str | PointSpeed]
FORMS = ("auto", "expanded", "cse")
DIRECTED = (NoSideSlip, PointSpeed)
"""The constraints and velocities along a direction in a body."""


class Equations(DerivedEquations):
    """mass_matrix * u_dot = right_hand_side, all quantities of the derivation, and typesetting."""

    def split_constraint_forces(self, values: Mapping[Any, Any]) -> reactions.SplitForces:
        """The constraint forces on all bodies as numbers, with their ideal and non-ideal parts.

        values: for all symbols, by symbol or by name; the magnitudes N_NAME of the forces of constraints that
        are not given are computed.
        Raises ParameterError for a missing value, such as N_NAME of a joint with Coulomb friction, which is
        that of the force of `zw.joint_reactions`, or of a redundant constraint, and SolveError where the
        magnitudes do not converge.
        """
        return reactions.split_constraint_forces(self, values)

    def steps(self) -> list[typesetting.DerivationStep]:
        """The steps of the derivation, each with a title and a matrix."""
        return typesetting.steps_of(self)

    def cse_steps(self) -> tuple[list[Definition], list[typesetting.DerivationStep]]:
        """Definitions of the common subexpressions of all steps, and the steps in terms of them."""
        return typesetting.cse_steps_of(self)

    def latex(self, *, report: bool = False) -> str:
        """mass_matrix * u_dot = right_hand_side as LaTeX, after definitions if there are any.

        report: whether the steps of the derivation come first.
        """
        return typesetting.latex(self, report=report)

    def html(self) -> str:
        """The equations and their derivation as an HTML fragment; formulas are LaTeX for MathJax or KaTeX."""
        return typesetting.html(self)

    def text(self) -> str:
        """The equations as plain text."""
        return typesetting.text(self)

    def sympy(self) -> str:
        """The equations as Python text for SymPy."""
        return typesetting.python(self)

    def written(self, format: str) -> str:
        """The equations in a format: "latex" (with the report if expanded), "html", "sympy" or "text"."""
        formats = {
            "latex": lambda: self.latex(report=self.form == "expanded"),
            "html": self.html,
            "sympy": self.sympy,
            "text": self.text,
        }
        if format not in formats:
            raise UnknownNameError("format", format, formats)
        return formats[format]()

    def _repr_latex_(self) -> str:
        return "$$" + self.latex() + "$$"

    def _repr_html_(self) -> str:
        return typesetting.html(self, typesetting.LARGEST_PART)

    def __repr__(self) -> str:
        return self.text()


@validated_arguments("speeds")
def equations(
    mechanism: Mechanism,
    speeds: IndependentVelocities | None = None,
    method: str = "projection",
    *,
    form: str = "auto",
) -> Equations:
    """Symbolic equations of motion mass_matrix * u_dot = right_hand_side, by the projection method.

    speeds: the independent velocities u, each the name of a joint velocity or a `PointSpeed`. By default all
    velocities; with constraints, those for which the constraints are best conditioned in the home
    configuration, or near it if it is singular or cannot be closed. method: "projection" (with the velocity
    transformation B, default), "gauss" (minimum of Z), "newton_euler" or "lagrange"; all four give the same
    equations. form: "expanded", "cse" (common subexpressions are named) or "auto" (default): expanded as long
    as it is readable.

    The force that a `NonIdeal` constraint prescribes contains a symbol N_NAME for the magnitude of the force
    of the constraint NAME, which is the norm of `multipliers[NAME]`. The force of `CoulombFriction` is that
    of sliding, -mu N_NAME sign(u) times the radius of a revolute joint, where NAME is the constraint or the
    joint; with a collar_radius N_NAME_axial is the magnitude of the axial force. An input whose name a
    coordinate, a velocity or a parameter has, too, is the symbol u_NAME.
    Gives a ZwangWarning for what the equations omit, and as `zw.classify` for the branch that they are for.
    Raises UnknownNameError for a velocity, DescriptionError for dependent velocities, for a name that two of
    the other quantities have, such as a parameter and a joint, for two symbols of one name, for tendons with
    armature or through wrapping bodies, adhesions, PID controllers with states, for a `Holonomic` formula
    whose gradient vanishes where it holds, such as z**2, and where nothing can move;
    InconsistentConstraintsError where hard constraints without symbols contradict each other. Of dependent
    constraints with symbols the first are kept, as for values of the symbols for which they agree.
    Source: Luchtenburg, Shah, Impelluso, Rykkje, A projection-based derivation of the equations of motion for
    the moving frame method for multi-body dynamics, IMECE 2021-72324, Sec. 3.2.2.
    """
    mechanism = validation.checked_mechanism(mechanism)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if form == "shared":
        warn_of_rename("form='shared'", "form='cse'", stacklevel=4)
        form = "cse"
    if form not in FORMS:
        raise UnknownNameError("form", form, FORMS)
    if not mechanism.nv:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has no joint that moves: there are no equations of motion"
        )
    if mechanism.tree.tendon_inertias:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has a tendon with armature, whose inertia the derivation of "
            "equations does not include; set armature=0, or evaluate mass_matrix and bias_forces on symbols"
        )
    _check_wraps(mechanism)
    _check_actuators(mechanism)
    mechanism = with_acting_constraints(mechanism)
    _warn_of_omissions(mechanism)
    if form == "expanded" and (measuring := _measuring_rotation_vectors(mechanism)):
        raise DescriptionError(
            f"the rotation vector that the spring or actuator {measuring[0]} measures has no expanded form, "
            "as it is computed by cases; use form='cse'"
        )
    probe = numeric_probe(mechanism)
    check_gradients(probe)
    check_agreement(mechanism, probe)
    warn_of_branches(probe)
    chosen = chosen_velocities(mechanism, speeds, probe)
    symbols = symbols_for(mechanism, chosen)
    if form == "expanded" or (form == "auto" and _may_be_readable(mechanism)):
        tree = map_expressions(mechanism, lambda x: x).tree
        summed = {symbols.q[k] for k in derivation.summed_angles(tree)}
        limit = PRODUCT_LIMITS[method] if form == "auto" else float("inf")
        units = _unit_vectors(mechanism, chosen, symbols)
        try:
            expanded = ExpandedForm(summed, symbols.collected, limit, units)
            found = _derived(mechanism, symbols, chosen, method, expanded, probe)
            if form == "expanded" or _is_readable(found):
                return found
        except TooLargeError:
            pass
    return _derived(mechanism, symbols, chosen, method, CSEForm(), probe)


def _warn_of_omissions(mechanism: Mechanism) -> None:
    """Warn of soft constraints, dry friction and states of actuators, which the equations omit."""
    omitted = [
        f"constraint {c.name!r}, which is soft"
        for c in mechanism.constraints
        if getattr(c, "softness", None) is not None
    ]
    omitted += [
        f"dry friction of joint {j.name!r}"
        for j in mechanism.joints
        if not is_zero(getattr(j.joint, "friction", 0))
    ]
    omitted += [f"dry friction of tendon {t.name!r}" for t in mechanism.tendons if not is_zero(t.friction)]
    omitted += [f"the activation {name!r}, which is taken as 0" for name in activations(mechanism)]
    if omitted:
        more = f" and {len(omitted) - 1} more" if len(omitted) > 1 else ""
        is_soft = omitted[0].startswith("constraint")
        remedy = "; give constraints softness=None to include them" if is_soft else ""
        warnings.warn(
            f"the equations of mechanism {mechanism.name!r} omit {omitted[0]}{more}{remedy}",
            ZwangWarning,
            stacklevel=4,
        )


def _check_wraps(mechanism: Mechanism) -> None:
    """Raises DescriptionError for a tendon that may run through a wrapping body: its path is iterated."""
    for tendon in mechanism.tendons:
        for wrap in tendon.wraps:
            frame = str(tendon.path[wrap.at])
            if side_is_inside(mechanism.tree, wrap, frame) is not False:
                raise DescriptionError(
                    f"tendon {tendon.name!r} may run through the wrapping body of {frame!r}: the side frame "
                    f"{wrap.side!r} is inside, or its distance varies or has symbols. That path is found by "
                    "iteration, which expressions cannot contain; fix the side frame to the wrapping body, "
                    "outside of it, give numbers, or use zw.compile"
                )


def _check_actuators(mechanism: Mechanism) -> None:
    """Raises DescriptionError for adhesion, and for a PID controller with states."""
    for force in mechanism.forces:
        if not isinstance(force, Actuator):
            continue
        reason = ""
        if force.body is not None:
            reason = "is an adhesion, whose force depends on contacts"
        elif force.pid is not None and force.pid.states:
            reason = f"has a PID controller with the states {', '.join(force.states)}"
        if reason:
            raise DescriptionError(
                f"actuator {force.name!r} {reason}: equations do not contain them; leave it out, or use "
                "zw.compile"
            )


def _is_readable(e: DerivedEquations) -> bool:
    """Whether the expanded expressions are short, including those inside opaque factors."""
    entries = (*e._quantities.mass_matrix.flat, *e._quantities.right_hand_side)
    return sum(size(x) for x in entries if isinstance(x, Polynomial)) <= READABLE_SIZE


def _may_be_readable(mechanism: Mechanism) -> bool:
    """Whether there are few rotations, and no parts that need case distinctions."""
    has_cases = any(tendon.wraps for tendon in mechanism.tendons) or any(
        isinstance(f, Actuator) and (f.muscle is not None or f.slider is not None) for f in mechanism.forces
    )
    has_cases = has_cases or bool(_measuring_rotation_vectors(mechanism))
    return _rotation_count(mechanism) <= READABLE_ROTATIONS and not has_cases


def _measuring_rotation_vectors(mechanism: Mechanism) -> list[str]:
    """The springs and actuators that measure a rotation vector, which is computed by cases."""
    turning = {j.name for j in mechanism.joints if "qw" in j.joint.coordinates}
    balls = {j.name for j in mechanism.joints if j.joint.kind == "ball"}
    springs = [f for f in mechanism.forces if isinstance(f, Spring)]
    actuators = [f for f in mechanism.forces if isinstance(f, Actuator)]
    found = [f"of joint {f.joint!r}" for f in springs if f.joint in turning]
    return found + [repr(f.name) for f in actuators if f.joint in balls or (f.reference and any(f.gear[3:]))]


def _rotation_count(mechanism: Mechanism) -> int:
    """The number of rotations in the mechanism's joints; a ball joint counts as three."""
    return sum({"prismatic": 0, "ball": 3}.get(link.joint.kind, 1) for link in mechanism.tree.links)


def _unit_vectors(
    mechanism: Mechanism, chosen: Sequence[IndependentVelocity], symbols: EquationSymbols
) -> dict[sp.Expr, tuple[sp.Expr, ...]]:
    """One component of each vector of length 1 whose square is 1 minus those of the others: the scalar parts
    of quaternions among the coordinates, and the last components of symbolic axes and directions that contain
    their norm.
    """
    ends = [j.q.stop for j in mechanism.joints if "qw" in j.joint.coordinates]
    units: dict[sp.Expr, tuple[sp.Expr, ...]] = {symbols.q[end - 4]: symbols.q[end - 3 : end] for end in ends}
    axes = [x for j in mechanism.joints for x in (j.joint.axis, getattr(j.joint, "second_axis", ()))]
    directions = [x.direction for x in (*mechanism.constraints, *chosen) if isinstance(x, DIRECTED)]
    for axis in (*axes, *directions):
        *others, last = [x for x in axis if not are_constant(x)] or [None]
        used = {*units, *(x for rest in units.values() for x in rest)}
        # a component with rules of two axes could be replaced without end
        if others and used.isdisjoint({*others, last}) and any(map(_has_root, others)):
            units[last] = tuple(others)
    return units


def _has_root(expression: sp.Expr) -> bool:
    return any(not power.exp.is_integer for power in expression.atoms(sp.Pow))


def _derived(
    mechanism: Mechanism,
    symbols: EquationSymbols,
    chosen: list[IndependentVelocity],
    method: str,
    form: Form,
    probe: NumericProbe,
) -> Equations:
    """The equations by one method, derived on the scalars of one form."""
    scalars = form.mechanism(mechanism)
    tree = scalars.tree

    def of(xs: Sequence[sp.Symbol]) -> np.ndarray:
        return _array([form.of(x) for x in xs])

    q, u, time = of(symbols.q), of(symbols.u), form.of(symbols.time)
    inputs = {name: form.of(s) for name, s in symbols.inputs.items()}
    # v = V u + v0, from the constraints and the chosen independent velocities
    near = (
        probe.numbers,
        probe.q,
        [s if isinstance(s, str) else map_expressions(s, value_near) for s in chosen],
    )
    velocities = [s if isinstance(s, str) else map_expressions(s, form.of) for s in chosen]
    reduction = velocity_reduction(scalars, near, q, u, time, velocities)
    # generalised forces Q of all applied and non-ideal forces
    magnitudes = {name: form.of(s) for name, s in symbols.force_magnitudes.items()}
    v = reduction.v
    Q = generalized_forces(scalars, q, v, inputs) + nonideal_forces(scalars, q, v, time, magnitudes)
    Q = Q + friction_forces(scalars, q, v, time, magnitudes)
    state = derivation.SymbolicState(tree, q, v, reduction.V, reduction.v_rate, Q)
    # M* u_dot = r
    expanded = isinstance(form, ExpandedForm)
    projected = METHODS[method](state if expanded else replace(state, tree=derivation.lumped(tree)))
    if isinstance(form, ExpandedForm):
        projected = derivation.ProjectedEquations(
            cancelled_entries(projected.mass_matrix), cancelled_entries(projected.right_hand_side)
        )
        form.ring.limit = float("inf")  # quantities that are requested later are derived at any length
    kind = "expanded" if expanded else "cse"
    found = EquationQuantities(mechanism, symbols, form, state, projected, reduction, scalars)
    return Equations(mechanism, symbols, method, kind, found)


def _array(values: Sequence[Any]) -> np.ndarray:
    """An object array of scalars, which NumPy does not look into."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
