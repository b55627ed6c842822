"""`linearize`: linear models of mechanisms, in numbers or with symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from zwang.api.analysis.linearize import LinearModel, numeric_linear_model
from zwang.api.arguments.parameter_values import Parameters, with_numbers
from zwang.api.arguments.validation import (
    as_entries,
    checked_mechanism,
    coordinates,
    expressions_by_name,
    or_of_keyframe,
    values_of_elements,
)
from zwang.errors import DescriptionError
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments
from zwang.scalar import is_scalar, symbols_of
from zwang.simulation.controls import control_names

if TYPE_CHECKING:
    from zwang.symbolic.symbolic_linear_model import SymbolicLinearModel


@overload
def linearize(
    mechanism: Mechanism,
    q: npt.ArrayLike | Mapping[str, Any],
    v: npt.ArrayLike | Mapping[str, Any] | None = None,
    control: npt.ArrayLike | Mapping[str, Any] | None = None,
    *,
    step: float | None = None,
    integrator: str | None = None,
    activation: npt.ArrayLike | None = None,
    time: float = 0.0,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    params: Parameters | None = None,
) -> LinearModel: ...
@overload
def linearize(
    mechanism: Mechanism,
    q: Sequence[Any],
    v: Sequence[Any] | Mapping[str, Any] | None = None,
    control: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    step: None = None,
    integrator: None = None,
    activation: Sequence[Any] | None = None,
    time: float = 0.0,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    params: Parameters | None = None,
) -> SymbolicLinearModel: ...
@validated_arguments("q", "v", "control", "activation")
def linearize(
    mechanism: Mechanism,
    q: Any,
    v: Any = None,
    control: Any = None,
    *,
    step: float | None = None,
    integrator: str | None = None,
    activation: Any = None,
    time: float = 0.0,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    params: Parameters | None = None,
) -> LinearModel | SymbolicLinearModel:
    """The linear model of a mechanism about a state, by exact derivatives.

    q (nq,), v (nv,), control (nu,), activation (nz,): the state, and the control; v, control and activation
    are zero by default. q may be the name of a keyframe, whose values are then the defaults, also of what
    dictionaries of v and control by name leave out. The state need
    not be an equilibrium: the model is that of the deviations from the motion through it. The orientation R
    of a ball or free joint deviates to R exp(angle) by a rotation vector in the axes of the moving body, with
    the entries "root.wx_angle", "root.wy_angle" and "root.wz_angle".
    step [s]: of a discrete model, which is that of `integrator` (by default that of the options); None for
    continuous time, without integrator. time [s]: of time-dependent constraints.
    states: names of the independent entries of the state, by default independent coordinates and then
    independent velocities, angles before slides, chosen so that the others follow from them with small
    factors; all entries where there are no hard constraints. An entry is the
    displacement of a coordinate ("crank"), a velocity ("crank_dot", or "root.vx" of a free body) or an
    activation. inputs: names of controls, by default all. outputs: names of entries of the state; of sensors
    ("gyro"), whose elements are then outputs ("gyro.x", ...; "imu.w", ... of a quaternion; "wall.0", ... of
    other sizes); of bodies and frames, whose position is then three outputs ("hand.x", ...); or of one of
    these elements; by default the states. In a discrete model constraints act on sensors as in its step.
    params: values of the mechanism's symbols. Without them a mechanism with symbols has a linear model in
    SymPy expressions, a `SymbolicLinearModel`; q, v and control may then be expressions, too, also in
    dictionaries.

    Constraints, limits, friction and contacts act as in this state: a contact that is closed stays closed. At
    an end of its range a control acts as on the inside, and beyond it not at all. A
    model with symbols is one of continuous time, of a mechanism with hard equality constraints only, and
    without sensors; its state must satisfy the constraints for all values of the symbols.
    Raises UnknownNameError for a name, DescriptionError for states that are not independent, SimulationError
    for a state without accelerations, StateError, also for a state that violates hard constraints by more
    than 1e-6 (rad, m, and their rates), and for a singular mass matrix (of a model with symbols when `at`
    gets their values), and what `CompiledMechanism.step_derivatives` raises.
    """
    m = checked_mechanism(mechanism)
    m = m if params is None else with_numbers(m, params)
    given = (q, v, activation, control)
    if not m.symbols and not any(_has_symbols(x) for x in given):
        if integrator is not None and step is None:
            raise DescriptionError(
                f"integrator is {short_repr(integrator)}, but a linear model of continuous time has no "
                "integrator; give step=... for one of a step, or leave out integrator="
            )
        return numeric_linear_model(
            m, q, v, control, step=step, integrator=integrator, activation=activation, time=time,
            states=states, inputs=inputs, outputs=outputs,
        )  # fmt: skip
    if step is not None or integrator is not None:
        raise DescriptionError(
            "a linear model with symbols is one of continuous time; give values, params=..., for one of a "
            "step, or leave out step= and integrator="
        )
    module = import_module("zwang.symbolic.symbolic_linear_model")
    state = _vectors(m, q, v, activation, control)
    return module.symbolic_linear_model(m, state, time, states, inputs, outputs)


def _vectors(m: Mechanism, q: Any, v: Any, activation: Any, control: Any) -> tuple[Any, ...]:
    """q, v, activation and control as vectors of numbers and expressions, also from dictionaries by name."""
    v = values_of_elements(m, v, "v", "v", as_entries)
    v, activation, control = or_of_keyframe(m, q, v=v, activation=activation, control=control)
    q = coordinates(m, q, "q") if isinstance(q, str) else values_of_elements(m, q, "q", "q", as_entries)
    names = control_names(m)
    return (
        expressions_by_name(q, m.home or m.neutral, m.coordinate_names, "coordinate", "q"),
        expressions_by_name(v, (0,) * m.nv, m.speed_names, "speed", "v"),
        activation,
        expressions_by_name(control, (0,) * len(names), names, "input", "control"),
    )


def _has_symbols(values: Any) -> bool:
    """Whether an entry of a vector, or of a dictionary by name, has symbols."""
    if isinstance(values, Mapping):
        return any(_has_symbols(x) for x in values.values())
    try:
        entries = np.asarray(values, dtype=object).flat
    except ValueError:  # rows of different lengths, which are told as an invalid vector
        return False
    return any(is_scalar(x) and symbols_of(x) for x in entries)
