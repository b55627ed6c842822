"""The symbols of a mechanism's equations of motion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from zwang.constraint.hard import depends_on_time
from zwang.deprecation import renamed_attributes
from zwang.errors import DescriptionError
from zwang.mechanism.constraints import CoulombFriction, NonIdeal, PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbols_in
from zwang.symbolic.friction_equations import load_names
from zwang.symbolic.latex_names import latex_symbols


@renamed_attributes(sizes="force_magnitudes")
@dataclass(frozen=True)
class EquationSymbols:
    """The symbols of a mechanism's equations of motion.

    q: coordinates. v: generalised velocities. u, u_dot: independent velocities and their rates. inputs: by
    name. time: for constraints that depend on it. force_magnitudes: N_NAME of each constraint with a
    non-ideal force or Coulomb friction, and of each joint with Coulomb friction. latex: how these symbols and
    the parameters are typeset, which is different for each.
    """

    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    u: tuple[sp.Symbol, ...]
    u_dot: tuple[sp.Symbol, ...]
    inputs: Mapping[str, sp.Symbol]
    time: sp.Symbol
    force_magnitudes: Mapping[str, sp.Symbol]
    latex: Mapping[sp.Symbol, str]

    @property
    def collected(self) -> set[sp.Symbol]:
        """Symbols by which terms are collected: velocities, accelerations, inputs, force magnitudes."""
        return {*self.v, *self.u, *self.u_dot, *self.inputs.values(), *self.force_magnitudes.values()}


def symbols_for(mechanism: Mechanism, speeds: Sequence[str | PointSpeed]) -> EquationSymbols:
    """The symbols of a mechanism with these independent velocities.

    Coordinates have the names of their joints, velocities NAME_dot, accelerations NAME_ddot. The velocity of
    a point and the inputs have their own names; an input whose name another symbol has is u_NAME.
    Raises DescriptionError for two other quantities of one name.
    """
    real = {"real": True}
    q = tuple(sp.Symbol(name, **real) for name in mechanism.coordinate_names)
    v = tuple(sp.Symbol(f"{name}_dot", **real) for name in mechanism.speed_names)
    by_name = dict(zip(mechanism.speed_names, v, strict=True))
    u, u_dot, dotted = [], [], {s: (r"\dot", name) for name, s in by_name.items()}
    for speed in speeds:
        name = speed if isinstance(speed, str) else speed.name
        own = by_name[name] if isinstance(speed, str) else sp.Symbol(name, **real)
        rate = sp.Symbol(f"{name}_ddot" if isinstance(speed, str) else f"{name}_dot", **real)
        u.append(own)
        u_dot.append(rate)
        dotted[rate] = (r"\ddot" if isinstance(speed, str) else r"\dot", name)
    loads = [c.constraint for c in mechanism.constraints if isinstance(c, NonIdeal)] + load_names(mechanism)
    magnitudes = {name: sp.Symbol(f"N_{name}", nonnegative=True) for name in loads}
    time = sp.Symbol("t", **real)
    of_points = [s for s, speed in zip(u, speeds, strict=True) if not isinstance(speed, str)]
    times = [time.name] if any(depends_on_time(c) for c in mechanism.constraints) else []
    taken = [s.name for s in (*q, *v, *of_points, *u_dot, *magnitudes.values())]
    taken += [*mechanism.symbols, *times, *(f"N_{name}" for name in _loads_of_two_kinds(mechanism))]
    _check_different(mechanism, taken)
    inputs = {n: sp.Symbol(own, **real) for n, own in _input_names(mechanism.inputs, taken).items()}
    parameters = [s for s in symbols_in(mechanism) if str(s) in mechanism.symbols]
    plain = [*q, *of_points, *magnitudes.values(), *inputs.values(), time, *parameters]
    shown = latex_symbols([*(s.name for s in plain), *(name for _, name in dotted.values())])
    latex = {s: shown[s.name] for s in plain}
    latex |= {s: rf"{dots}{{{shown[name]}}}" for s, (dots, name) in dotted.items()}
    return EquationSymbols(q, v, tuple(u), tuple(u_dot), inputs, time, magnitudes, latex)


def _loads_of_two_kinds(mechanism: Mechanism) -> set[str]:
    """The names of a constraint and of a joint that both have a load."""
    laws = [c for c in mechanism.constraints if isinstance(c, NonIdeal | CoulombFriction)]
    return {str(c.constraint) for c in laws} & {str(getattr(c, "joint", None)) for c in laws} - {"None"}


def _check_different(mechanism: Mechanism, names: Sequence[str]) -> None:
    """Raises DescriptionError if a name stands for two quantities of the equations."""
    for name in names:
        if names.count(name) > 1:
            raise DescriptionError(
                f"the symbol {name!r} has two meanings in the equations of mechanism {mechanism.name!r}: "
                "coordinates are named after their joints, velocities NAME_dot, accelerations NAME_ddot, "
                "magnitudes of forces N_NAME and the time t; rename the joint, the constraint, the "
                "parameter or the PointSpeed of this name"
            )


def _input_names(inputs: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """The names of the symbols of inputs: their own, preceded by u_ until nothing else has it."""
    found: dict[str, str] = {}
    for name in inputs:
        own, others = name, {*taken, *found.values(), *({*inputs} - {name})}
        while own in others:
            own = f"u_{own}"
        found[name] = own
    return found
