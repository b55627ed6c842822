"""The validated settings of an export: the mechanism, its step, what is exported, and the initial state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from zwang.api.arguments.default_start import default_start
from zwang.api.arguments.initial_conditions import initial_state
from zwang.api.arguments.settings_validation import simulation_settings
from zwang.api.arguments.validation import control_vector
from zwang.api.compilation.programs import COMPILED_FUNCTIONS
from zwang.constraint.context import StepForm
from zwang.errors import DescriptionError, FormatError, SimulationError, UnknownNameError
from zwang.interop.identifiers import library_name
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import time_dependent_parts
from zwang.simulation.controls import control_names
from zwang.simulation.initial_state import InitialState
from zwang.simulation.settings import SimulationSettings

STEP, STATE_DERIVATIVE, SENSORS = "step", "state_derivative", "sensors"
FUNCTIONS = (
    STEP,
    *(name for name, f in COMPILED_FUNCTIONS.items() if {"frame", "axes"}.issuperset(f.options)),
    STATE_DERIVATIVE,
)
DEFAULT_FUNCTIONS = (
    STEP, "forward_dynamics", "inverse_dynamics", "mass_matrix", "bias_forces", "frame_pose",
    "frame_jacobian", SENSORS,
)  # fmt: skip
"""The functions that are exported by default; sensors where there are any."""


@dataclass(frozen=True)
class ExportSettings:
    """What is exported.

    name: the prefix of all C names. plan: the settings of the step, with the integrator, of fixed step size,
    and the step size h [s]. dtype: "float64" or "float32". functions: some of `FUNCTIONS`, in their order.
    frames: for which functions of frames are exported. initial: the initial state of one world, and the
    values of the symbols. keyframe_control: the control of the keyframe that the initial state is, if any.
    """

    mechanism: Mechanism
    name: str
    plan: SimulationSettings
    dtype: str
    functions: tuple[str, ...]
    frames: tuple[str, ...]
    initial: InitialState
    keyframe_control: tuple[float, ...] | None = None

    @property
    def h(self) -> float:
        """The step size [s]."""
        return self.plan.step

    @property
    def integrator(self) -> str:
        """The name of the integrator."""
        return str(self.plan.integrator)

    @property
    def form(self) -> StepForm:
        """How the steps close hard constraints."""
        return self.plan.wanted.step

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of the elements of the control."""
        return control_names(self.mechanism)

    @property
    def initial_control(self) -> tuple[float, ...]:
        """The control with which the initial state starts: that of a keyframe, or zero."""
        return self.keyframe_control or (0.0,) * len(self.controls)

    @property
    def depends_on_time(self) -> bool:
        """Whether a constraint or an actuator depends on time."""
        return bool(time_dependent_parts(self.mechanism))


def export_settings(
    mechanism: Mechanism,
    *,
    name: str | None = None,
    step: Any = None,
    integrator: Any = None,
    stabilization: str | None = None,
    coordinate_reduction: bool | str | PointSpeed | Sequence[str | PointSpeed] = False,
    dtype: str = "float64",
    functions: Sequence[str] | None = None,
    frames: Sequence[str] | None = None,
    q0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | str | None = None,
    v0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    params: Mapping[Any, Any] | None = None,
) -> ExportSettings:
    """The settings of an export, from the arguments of `export`. Raises what it documents."""
    if not mechanism.nv:
        raise FormatError(
            f"mechanism {mechanism.name!r} has no joint that moves, so there is no motion to export"
        )
    if dtype not in ("float64", "float32"):
        raise DescriptionError(f"dtype is {dtype!r}; it must be 'float64' or 'float32'")
    initial = initial_state(mechanism, q0, v0, worlds=1, params=params)
    control = default_start(mechanism, q0, initial.params).control[0]
    h = mechanism.options.timestep if step is None else step
    plan = simulation_settings(mechanism, 1, h, h, integrator, None, stabilization, coordinate_reduction)
    if plan.adaptive is not None:
        raise SimulationError(
            f"integrator is {plan.adaptive.method!r}, which chooses its steps itself; an exported step has a "
            "fixed size: give integrator='euler', 'implicitfast', 'implicit' or 'rk4'"
        )
    return ExportSettings(
        mechanism,
        library_name(name, mechanism.name),
        plan,
        dtype,
        _functions(mechanism, functions),
        _frames(mechanism, frames),
        initial,
        tuple(control_vector(mechanism, control).tolist()) if control.size else None,
    )


def _functions(mechanism: Mechanism, names: Sequence[str] | None) -> tuple[str, ...]:
    """The functions in the order of the table. Raises UnknownNameError."""
    if names is None:
        return tuple(name for name in DEFAULT_FUNCTIONS if name != SENSORS or mechanism.sensors)
    for name in names:
        if name not in FUNCTIONS:
            raise UnknownNameError("function", name, FUNCTIONS)
    if SENSORS in names and not mechanism.sensors:
        raise DescriptionError(
            f"functions contains 'sensors', and mechanism {mechanism.name!r} has none; omit it"
        )
    return tuple(name for name in FUNCTIONS if name in names)


def _frames(mechanism: Mechanism, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the frames, by default all frames, or without any all bodies. Raises UnknownNameError."""
    if names is None:
        return tuple(part.name for part in mechanism.frames or mechanism.bodies)
    given = tuple(dict.fromkeys(names))
    for name in given:
        mechanism.tree.placement(name)
    return given
