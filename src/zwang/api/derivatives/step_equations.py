"""The equations that hold in a step at its known accelerations, whose derivatives are those of the step.

At the solution a of Gauss's problem the equation of motion holds with the forces f of the rows, and the mean
acceleration b = (v' - v) / h of the step follows from a by implicit damping D:

    r = RNEA(q, v, a) - tau - J^T f(q, v, a) = 0,    M (a - b) - h D b = 0

Differentiated at the known a and b they cost no derivative of a factorisation. Source: Carpentier, Mansard,
"Analytical derivatives of rigid body dynamics algorithms", RSS 2018, for the use of RNEA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.factorization import ancestors
from zwang.collision import Pair, candidate_pairs
from zwang.constraint.contact import is_hard_contact
from zwang.constraint.context import RowContext, row_context
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.bias_force_derivative import standalone_free_bodies
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.rnea import rnea_of
from zwang.errors import TraceError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero
from zwang.simulation.applied_forces import applied_forces
from zwang.simulation.constrained import has_nonideal_constraints
from zwang.simulation.constraint_stage import ConstraintModel
from zwang.simulation.implicit_damping import DAMPING
from zwang.simulation.step_settings import StepSettings

MEAN_ACCELERATION, NEXT_VELOCITY = "mean_acceleration", "next_velocity"
"""The inputs for b = (v' - v) / h and for v', the velocities after the step."""
INTEGRATORS = ("euler", "implicitfast")
"""The integrators of one stage whose implicit terms have the sparsity of the mass matrix."""


class OtherEquationsError(TraceError):
    """A step has other equations than those of this module, and so no sparse form."""


@dataclass(frozen=True, eq=False)
class StepEquations:
    """The equations of a step at its accelerations a and b (nv,), without the forces of constraint rows.

    kinematics: of the state. other_force (nv,): what is added to RNEA(q, v, a): -tau, and h D b for an
    unconstrained mechanism, whose a is b. h_D (nv, nv): h D, or None. is_constrained: of the mechanism.
    """

    kinematics: Kinematics
    a: Any
    b: Any
    other_force: np.ndarray
    h_D: np.ndarray | None
    is_constrained: bool

    @cached_property
    def M(self) -> np.ndarray:
        """The mass matrix (nv, nv)."""
        return crba_of(self.kinematics)

    @property
    def force(self) -> np.ndarray:
        """RNEA(q, v, a) and the other forces (nv,)."""
        return rnea_of(with_base_inertias(self.kinematics), self.a) + self.other_force

    @property
    def implicit(self) -> np.ndarray | None:
        """M (a - b) - h D b (nv,), or None where b = a."""
        if self.h_D is None or not self.is_constrained:
            return None
        return rnea_of(with_base_inertias(self.at_rest), self.a - self.b) - self.h_D @ self.b

    @property
    def at_rest(self) -> Kinematics:
        """The state without velocities and gravity, for which RNEA(a) is M a."""
        tree = replace(self.kinematics.tree, gravity=np.zeros(3, int))
        return self.kinematics.with_velocities(np.zeros(tree.nv, int)).with_inertias_of(tree)


def with_base_inertias(kinematics: Kinematics) -> Kinematics:
    """The state of the tree with base inertial parameters."""
    return kinematics.with_inertias_of(with_base_parameters(kinematics.tree))


def check_equations(m: Mechanism, integrator: str) -> None:
    """Raises OtherEquationsError, with the reason, where a step has other equations."""
    reasons = {
        f"the integrator is {integrator!r}": integrator not in INTEGRATORS,
        "friction depends on the load": bool(coulomb_frictions(m)) or has_nonideal_constraints(m),
        "the noslip solver acts": bool(m.options.noslip_iterations),
        "contacts are hard": any(map(is_hard_contact, contact_pairs(m))),
        "bias forces are implicit": integrator == "implicitfast" and bool(standalone_free_bodies(m)),
    }
    for reason, holds in reasons.items():
        if holds:
            raise OtherEquationsError(f"the derivatives of the step have no sparse form: {reason}")


def contact_pairs(m: Mechanism) -> Sequence[Pair]:
    """The pairs of shapes that may touch, unless the options disable contacts."""
    return () if {"contact", "constraint"} & set(m.options.disabled) else candidate_pairs(m)


def row_context_of(model: ConstraintModel, kinematics: Kinematics, time: Any) -> RowContext:
    """What the rows of a step depend on; time [s]: None if nothing depends on it."""
    return row_context(
        model.mechanism, kinematics, inverse_weights=model.weights, step=model.step,
        time=0 if time is None else time,
    )  # fmt: skip


def rows_but_contacts(context: RowContext) -> Rows:
    """The rows of all constraints but contacts. Raises OtherEquationsError if one is hard."""
    m = context.mechanism
    options = replace(m.options, disabled=tuple({*m.options.disabled, "contact"}))
    rows = constraint_rows(context._replace(mechanism=m.replace(options=options)))
    if rows.any_hard:
        raise OtherEquationsError("the derivatives of the step have no sparse form: constraints are hard")
    return rows


def step_equations(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, accelerations: tuple[Any, Any], t: Any
) -> StepEquations:
    """The equations of a step at its accelerations a and b, each (nv,), and the time t [s]; None for 0."""
    t = 0 if t is None else t
    m, (a, b) = s.mechanism, accelerations
    h_D, is_constrained = implicit_damping(s, kinematics, z, control, t), s.constraint_model is not None
    other = -applied_forces(m, kinematics, z, control, t, s.h)
    if h_D is not None and not is_constrained:
        other = other + h_D @ b
    return StepEquations(kinematics, a, b, other, h_D, is_constrained)


def implicit_damping(
    s: StepSettings, kinematics: Kinematics, z: Any, control: Any, t: Any
) -> np.ndarray | None:
    """h D (nv, nv) where it has the sparsity of M; None without implicit damping."""
    D, nv = DAMPING[s.integrator](s, kinematics, z, control, t), s.mechanism.nv
    if not D.size or is_zero(D):
        return None
    parents, h_D = velocity_parents(s.mechanism.tree), np.zeros((nv, nv), dtype=object)
    h_D[:] = 0
    for i in range(nv):
        for j in (i, *ancestors(parents, i)):
            h_D[i, j] = h_D[j, i] = s.h * D[i][j]
    return h_D
