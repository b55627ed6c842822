"""What a softness means in physical units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zwang.constraint.softness import clamped, impedance, reference
from zwang.errors import DescriptionError
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.joints import Softness

BISECTIONS = 200


@dataclass(frozen=True)
class SoftnessReport:
    """How a body of `mass` [kg] moves on a constraint of some softness.

    time_constant [s], damping_ratio: of the return, at full impedance. stiffness [N/m], damping [N s/m]: of that motion, about
    the wanted position. penetration [m]: where the body rests under `load` [N]. holding_stiffness [N/m]: load over penetration, much
    more than `stiffness`, as the constraint takes the share d of the load by itself. impedance: d there. notes: what was replaced.
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

    def __str__(self) -> str:
        lines = [
            f"returns with the time constant {self.time_constant:.3g} s and the damping ratio {self.damping_ratio:.3g}",
            f"as a spring of {self.stiffness:.3g} N/m and a damper of {self.damping:.3g} N s/m hold {self.mass:.3g} kg",
            f"under {self.load:.3g} N it rests {self.penetration:.3g} m inside, at the impedance {self.impedance:.4g} "
            f"({self.holding_stiffness:.3g} N/m)",
        ]
        return "\n".join([*lines, *self.notes])


@checked_arguments()
def softness(
    choice: Softness | None = None, *, mass: float = 1.0, load: float | None = None, timestep: float = 0.0
) -> SoftnessReport:
    """A softness, such as zw.Softness(solref, solimp), explained for a body of `mass` [kg] under `load` [N].

    load: by default the body's weight, 9.81 N/kg. timestep [s]: time constants are not taken below twice this, as in MuJoCo.
    Raises DescriptionError for a mass, load or timestep that is not a positive number (a time step may be zero).
    """
    choice = Softness() if choice is None else choice
    load = 9.81 * mass if load is None else load
    if not (mass > 0 and load > 0 and timestep >= 0):
        raise DescriptionError(
            f"mass {mass}, load {load} and timestep {timestep} must be positive (a timestep may be 0)"
        )
    K, B = reference(choice.solref, choice.solimp, 2 * timestep)
    d_full = clamped(choice.solimp)[1]
    frequency = d_full * K**0.5
    r = _rest(choice.solimp, K, load / mass)
    return SoftnessReport(
        time_constant=2 / (B * d_full) if B > 0 else float("inf"),
        damping_ratio=B * d_full / (2 * frequency) if K > 0 else float("inf"),
        stiffness=mass * frequency**2,
        damping=mass * d_full * B,
        load=load,
        mass=mass,
        penetration=r,
        holding_stiffness=load / r if r > 0 else float("inf"),
        impedance=float(impedance(choice.solimp, r)),
        notes=_notes(choice, timestep),
    )


def _rest(solimp: Any, K: float, pull: float) -> float:
    """r with K d(r)^2 r = (1 - d(r)) pull, by bisection: the left side rises with r, the right one does not."""
    if K <= 0:
        return float("inf")
    low, high = 0.0, pull / (K * min(clamped(solimp)[:2]) ** 2)
    for _ in range(BISECTIONS):
        r = (low + high) / 2
        d = impedance(solimp, r)
        low, high = (r, high) if K * d * d * r < (1 - d) * pull else (low, r)
    return (low + high) / 2


def _notes(choice: Softness, timestep: float) -> tuple[str, ...]:
    first, second = choice.solref
    notes = []
    if (first > 0) != (second > 0):
        notes.append(
            f"solref {choice.solref} mixes the two formats and is replaced by {Softness().solref}, as in MuJoCo"
        )
    elif 0 < first < 2 * timestep:
        notes.append(
            f"the time constant {first} s is raised to two time steps, {2 * timestep} s, as in MuJoCo"
        )
    if tuple(choice.solimp) != tuple(clamped(choice.solimp)):
        notes.append(
            f"solimp {choice.solimp} is taken as {clamped(choice.solimp)}: impedances stay within [0.0001, 0.9999]"
        )
    return tuple(notes)
