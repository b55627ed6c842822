"""Meaning of a softness in physical units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.constraint.softness import clamped, impedance, reference
from zwang.errors import DescriptionError
from zwang.mechanism.joints import Softness
from zwang.mechanism.type_validation import validated_arguments

BISECTIONS = 200  # which end at neighbouring floats


@dataclass(frozen=True)
class SoftnessReport:
    """Motion of a body of `mass` [kg] on a soft constraint.

    time_constant [s], damping_ratio: of the return to the constraint, at full impedance. stiffness [N/m],
    damping [N s/m]: of the spring and damper with that motion. penetration [m]: in equilibrium under `load`
    [N]. holding_stiffness [N/m]: load over penetration; it is much larger than `stiffness`, because the
    constraint supports the share d of the load directly. impedance: d at that penetration. notes: parameters
    that were replaced. slip_time_constant [s]: of the decay of the residual velocity of a velocity-level
    constraint (no side slip, rolling, Pfaffian), which has no stiffness. creep [m/s]: its residual velocity
    in equilibrium under `load`.
    """

    time_constant: float
    damping_ratio: float
    stiffness: float
    damping: float
    load: float
    mass: float
    penetration: float
    holding_stiffness: float
    impedance: float
    notes: tuple[str, ...] = ()
    slip_time_constant: float = float("nan")
    creep: float = float("nan")

    def __str__(self) -> str:
        lines = [
            f"returns with the time constant {self.time_constant:.3g} s and the damping ratio "
            f"{self.damping_ratio:.3g}",
            f"like {self.mass:.3g} kg on a spring of {self.stiffness:.3g} N/m and a damper of "
            f"{self.damping:.3g} N s/m",
            f"penetrates {self.penetration:.3g} m under {self.load:.3g} N, at the impedance "
            f"{self.impedance:.4g} "
            f"({self.holding_stiffness:.3g} N/m)",
            f"at velocity level slips with the time constant {self.slip_time_constant:.3g} s and creeps with "
            f"{self.creep:.3g} m/s under {self.load:.3g} N",
        ]
        return "\n".join([*lines, *self.notes])


@validated_arguments()
def softness(
    choice: Softness | None = None, *, mass: float = 1.0, load: float | None = None, timestep: float = 0.0
) -> SoftnessReport:
    """Report on a softness, such as zw.Softness(solref, solimp), for a body of `mass` [kg] under `load` [N].

    choice: by default zw.Softness(). load: by default the weight of the body, 9.81 N/kg. timestep [s]: time
    constants are at least twice this, as in MuJoCo. Raises DescriptionError unless mass and load are
    positive and timestep is not negative.
    """
    parameters = Softness() if choice is None else choice
    load = 9.81 * mass if load is None else load
    if not (mass > 0 and load > 0 and timestep >= 0):
        raise DescriptionError(
            f"mass {mass}, load {load} and timestep {timestep} must be positive (a timestep may be 0)"
        )
    K, B = reference(parameters.solref, parameters.solimp, 2 * timestep)
    d_full = clamped(parameters.solimp)[1]
    d_zero = float(impedance(parameters.solimp, 0))
    natural_frequency = d_full * K**0.5
    r = _resting_penetration(parameters.solimp, K, load / mass)
    return SoftnessReport(
        time_constant=2 / (B * d_full) if B > 0 else float("inf"),
        damping_ratio=B * d_full / (2 * natural_frequency) if K > 0 else float("inf"),
        stiffness=mass * natural_frequency**2,
        damping=mass * d_full * B,
        load=load,
        mass=mass,
        penetration=r,
        holding_stiffness=load / r if r > 0 else float("inf"),
        impedance=float(impedance(parameters.solimp, r)),
        notes=_notes(parameters, timestep),
        # a1 + d B u = (1 - d) a0 at the impedance d(0)
        slip_time_constant=1 / (d_zero * B) if B > 0 else float("inf"),
        creep=(1 - d_zero) * load / (mass * d_zero * B) if B > 0 else float("inf"),
    )


def _resting_penetration(solimp: Any, K: float, specific_load: float) -> float:
    """r with K d(r)^2 r = (1 - d(r)) specific_load, by bisection: the left side increases with r, the right
    side does not.
    """
    if K <= 0:
        return float("inf")
    low, high = 0.0, specific_load / (K * min(clamped(solimp)[:2]) ** 2)
    for _ in range(BISECTIONS):
        r = (low + high) / 2
        d = impedance(solimp, r)
        low, high = (r, high) if K * d * d * r < (1 - d) * specific_load else (low, r)
    return (low + high) / 2


def _notes(parameters: Softness, timestep: float) -> tuple[str, ...]:
    """The parameters that MuJoCo's rules replace."""
    first, second = parameters.solref
    notes = []
    if (first > 0) != (second > 0):
        notes.append(
            f"solref {parameters.solref} mixes the two formats and is replaced by {Softness().solref}, as in "
            "MuJoCo"
        )
    elif 0 < first < 2 * timestep:
        notes.append(
            f"the time constant {first} s is raised to two time steps, {2 * timestep} s, as in MuJoCo"
        )
    if tuple(parameters.solimp) != tuple(clamped(parameters.solimp)):
        notes.append(
            f"solimp {parameters.solimp} is clamped to {clamped(parameters.solimp)}: impedances lie within "
            "[0.0001, 0.9999]"
        )
    return tuple(notes)
