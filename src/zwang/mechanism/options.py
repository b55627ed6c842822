"""Simulation options and keyframes of a mechanism, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.numbers import (
    Names,
    Numbers,
    Vector3,
    boolean,
    bounded,
    integer,
    number,
    number_tuple,
    vector,
    with_floats,
)
from zwang.mechanism.type_validation import validated

DISABLED = (
    "constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "gravity", "clampctrl",
    "warmstart", "filterparent", "actuation", "refsafe", "sensor", "midphase", "eulerdamp", "autoreset",
    "nativeccd", "island", "multiccd",
)  # fmt: skip
ENABLED = ("override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact", "ipc", "speculative")
"""The disable and enable flags of MuJoCo, in the order of their bits."""
SOLVERS = ("newton", "cg", "pgs")
FIXED_STEP = ("euler", "implicitfast", "implicit", "rk4")
"""The names of the integrators with fixed step size."""
ERROR_CONTROLLED = ("dop853", "rk45", "radau", "bdf", "lsoda")
"""The names of the integrators with error control."""
INTEGRATORS = FIXED_STEP + ERROR_CONTROLLED


@validated
@dataclass(frozen=True)
class Options:
    """The simulation options of a file (the MJCF element `option`); arguments of `simulate` take precedence.

    timestep: step size [s], positive. integrator, solver: one of `INTEGRATORS`, `SOLVERS`. cone: "pyramidal"
    or "elliptic" friction cones. impratio: ratio of frictional to normal impedance, positive. iterations:
    iteration limit of the solver, at least 1. tolerance: of the solver, not negative. contact: whether
    contacts are detected. noslip_iterations: the largest number of sweeps of MuJoCo's noslip solver, which
    removes the slip of soft friction after the solution; 0 for none. noslip_tolerance: the improvement of
    the cost below which it stops, relative to the mean inertia in the default configuration times nv.
    magnetic_field: in world axes, for magnetometers. sleep_tolerance: the velocity [m/s] below which a body
    may sleep, not negative, see `zwang.simulation.sleeping`; for rotations, times the size of the body.
    disabled, enabled: names of flags in `DISABLED`, `ENABLED`. What the flags spring, damper, gravity and
    clampctrl disable, the reader of MJCF leaves out of the mechanism, and with actuation, its actuators have
    no force; these flags have no effect on springs, dampers, gravity, ranges and forces of actuators that a
    mechanism has. Raises DescriptionError for other values.
    Source: MuJoCo documentation, XML reference, "option".
    """

    timestep: float = 0.002
    integrator: str = "euler"
    cone: str = "pyramidal"
    impratio: float = 1.0
    solver: str = "newton"
    iterations: int = 100
    tolerance: float = 1e-8
    contact: bool = True
    disabled: Names = ()
    enabled: Names = ()
    magnetic_field: Vector3 = (0, -0.5, 0)
    noslip_iterations: int = 0
    noslip_tolerance: float = 1e-6
    sleep_tolerance: float = 1e-3

    def __post_init__(self):
        object.__setattr__(self, "timestep", number(self.timestep, "timestep"))
        if self.cone not in ("pyramidal", "elliptic"):
            raise DescriptionError(f"cone is {self.cone!r}; give 'pyramidal' or 'elliptic' (option element)")
        if not self.timestep > 0:
            raise DescriptionError(f"timestep is {self.timestep}; it must be positive (option element)")
        if not isinstance(self.integrator, str) or self.integrator.lower() not in INTEGRATORS:
            raise DescriptionError(
                f"integrator is {self.integrator!r}; give one of {', '.join(map(repr, INTEGRATORS))} "
                "(option element)"
            )
        put = object.__setattr__
        put(self, "integrator", self.integrator.lower())
        put(self, "impratio", bounded(self.impratio, "impratio (option element)", above=0))
        put(self, "iterations", integer(self.iterations, "iterations (option element)", least=1))
        put(self, "noslip_iterations", integer(self.noslip_iterations, "noslip_iterations", least=0))
        put(self, "noslip_tolerance", bounded(self.noslip_tolerance, "noslip_tolerance", least=0))
        put(self, "sleep_tolerance", bounded(self.sleep_tolerance, "sleep_tolerance", least=0))
        put(self, "tolerance", bounded(self.tolerance, "tolerance (option element)", least=0))
        put(self, "contact", boolean(self.contact, "contact (option element)"))
        if self.solver not in SOLVERS:
            raise DescriptionError(
                f"solver is {self.solver!r}; give one of {', '.join(map(repr, SOLVERS))} (option element)"
            )
        put(self, "magnetic_field", vector(self.magnetic_field, 3, "magnetic_field (option element)"))
        for name, known in (("disabled", DISABLED), ("enabled", ENABLED)):
            object.__setattr__(self, name, _flags(getattr(self, name), name, known))


def _flags(values: Any, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """`values` as names of flags. Raises DescriptionError, with the valid names, for other values."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise DescriptionError(
            f"{name} is {values!r}; give a tuple of names out of {', '.join(known)} (option element)"
        )
    for value in values:
        if value not in known:
            raise DescriptionError(
                f"{name} contains {value!r}; the flags are {', '.join(known)} (option element)"
            )
    return tuple(values)


@validated
@dataclass(frozen=True)
class Keyframe:
    """A named state: coordinates q, generalised velocities v, inputs, activations and time [s].

    The time is kept for files; runs begin at time 0. Empty q, v, control or activation stand for the
    defaults. mocap: the poses of mocap bodies, each as (name of the body, position (3,) [m], quaternion
    (4,)); bodies that are not mentioned are where they are.
    """

    name: str
    q: Numbers = ()
    v: Numbers = ()
    control: Numbers = ()
    activation: Numbers = ()
    time: float = 0.0
    mocap: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = ()

    def __post_init__(self):
        for name in ("q", "v", "control", "activation"):
            values, where = getattr(self, name), f"{name} of keyframe {self.name!r}"
            object.__setattr__(self, name, with_floats(number_tuple(values, where, least=0)))
        where = f"mocap of keyframe {self.name!r}"
        poses = tuple((body, vector(p, 3, where), vector(q, 4, where)) for body, p, q in self.mocap)
        object.__setattr__(self, "mocap", poses)
        object.__setattr__(self, "time", number(self.time, f"time of keyframe {self.name!r}"))
