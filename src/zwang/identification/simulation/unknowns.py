"""The unknowns of a fit by simulation: physical parameters p, and the symbols that stand for them.

The inertia of a body is unknown by its ten inertial parameters, in which the equations of motion are linear;
a mechanism contains mass, centre of mass and the inertia about it. The other unknowns (armature, damping,
friction, stiffness, and the mechanism's own symbols) are their own symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.errors import DescriptionError, ParameterError, UnknownNameError
from zwang.identification.consistent_fit import raised, with_parameters
from zwang.identification.parameters import Parameter, body_origins, parameters_of
from zwang.identification.pseudo_inertia import parameters_of_pseudo_inertia, pseudo_inertia
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import Damper, Spring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbols_in
from zwang.scalar import symbol

SIMULATED_KINDS = ("inertia", "armature", "damping", "friction", "stiffness")
"""The kinds of parameters that a fit by simulation can have."""

SYMBOL = "symbol"
"""The kind of an unknown that is a symbol of the mechanism."""

PAIRS = ("xx", "yy", "zz", "xy", "xz", "yz")
INERTIA_ORDER = (0, 2, 5, 1, 3, 4)  # of xx, yy, zz, xy, xz, yz among Ixx, Ixy, Iyy, Ixz, Iyz, Izz


@dataclass(frozen=True)
class Unknowns:
    """The unknowns of a mechanism.

    mechanism: with symbols for all unknowns. model: without. parameters: what is fitted, physically: ten
    inertial parameters of each body of `bodies`, then the scalars. start: their values in the model. least
    (scalars,): 0 for scalars that are not negative, else -inf.
    """

    mechanism: Mechanism
    model: Mechanism
    bodies: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    start: np.ndarray
    least: np.ndarray

    @property
    def inertial(self) -> int:
        """The number of inertial parameters; the scalars follow them."""
        return 10 * len(self.bodies)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The symbols in the order of `values`."""
        of_bodies = (name for body in self.bodies for name in _body_symbols(body))
        return (*of_bodies, *(p.name for p in self.parameters[self.inertial :]))

    def values(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values s (n,) of the symbols, and their Jacobian (n, n) by p: mass, centre of mass, and the
        inertia about it.
        """
        s, J = p.copy(), np.eye(len(p))
        for k in range(len(self.bodies)):
            part = slice(10 * k, 10 * k + 10)
            s[part], J[part, part] = _mass_centre_inertia(p[part])
        return s, J

    def params(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The values (..., n) by symbol."""
        return {name: values[..., k] for k, name in enumerate(self.names)}

    def fitted(self, p: np.ndarray) -> Mechanism:
        """The mechanism with the parameters p."""
        return self.mechanism.subs({n: float(x) for n, x in zip(self.names, self.values(p)[0], strict=True)})


def unknowns_of(
    mechanism: Mechanism,
    kinds: Sequence[str],
    bodies: Sequence[str] | None,
    guess: Mapping[Any, float],
) -> Unknowns:
    """The unknowns of a mechanism: parameters of these kinds, and its own symbols, with their guesses.

    bodies: those whose inertia is unknown, by default all that move. Raises UnknownNameError,
    ParameterError for symbols without a guess, and DescriptionError if there are none, or if a kind and a
    symbol are unknowns of one element.
    """
    for kind in kinds:
        if kind not in SIMULATED_KINDS:
            raise UnknownNameError("kind of parameter of a fit by simulation", kind, SIMULATED_KINDS)
    own = _own_symbols(mechanism, guess)
    model = mechanism.subs({p.name: p.value for p in own}) if own else mechanism
    if own and "inertia" in kinds:
        raise ParameterError(
            f'mechanism {mechanism.name!r} has symbols, which are unknowns, and kinds contains "inertia"; '
            "fit one after the other: give the symbols numbers with mechanism.subs({...}), or leave it out"
        )
    origins = {origin.name: origin for origin in body_origins(model)}
    for name in bodies or ():
        if name not in origins:
            raise UnknownNameError("moving body", name, tuple(origins))
    chosen = tuple(n for n in origins if bodies is None or n in bodies) if "inertia" in kinds else ()
    inertial = parameters_of(model, "inertia")
    pi = np.array([float(p.value) for p in inertial])
    scalars = [p for kind in kinds if kind != "inertia" for p in parameters_of(model, kind)]
    _check_scalars(scalars)
    lumped = mechanism
    if chosen:
        pi = np.concatenate([_consistent(part) for part in pi.reshape(-1, 10)])
        lumped = with_parameters(mechanism, inertial, pi)
    start = [x for x, p in zip(pi, inertial, strict=True) if p.of in chosen]
    start += [float(p.value) for p in (*scalars, *own)]
    symbolic = _with_symbols(lumped, chosen, scalars)
    lost = [p.name for p in (*scalars, *own) if p.name not in symbolic.symbols]
    if lost:
        raise DescriptionError(
            f"kinds and the symbols of mechanism {mechanism.name!r} contain unknowns of one element, such as "
            f"{lost[0]!r}; leave that kind out, and put symbols in the place of its parameters"
        )
    fitted = [p for p in inertial if p.of in chosen] + scalars + own
    if not fitted:
        raise DescriptionError(
            f"nothing is unknown: mechanism {mechanism.name!r} has no symbols and no parameters of the kinds "
            f"{', '.join(kinds) or 'given, which are none'}; give kinds=..., or symbols"
        )
    least = _least(mechanism, (*scalars, *own))
    return Unknowns(symbolic, model, chosen, tuple(fitted), np.array(start), least)


def _own_symbols(m: Mechanism, guess: Mapping[Any, float]) -> list[Parameter]:
    """The symbols of the mechanism with their guesses."""
    given = {str(name): float(value) for name, value in guess.items()}
    for name in given:
        if name not in m.symbols:
            raise UnknownNameError("symbol", name, m.symbols)
    missing = [name for name in m.symbols if name not in given]
    if missing:
        raise ParameterError(
            f"the symbol {missing[0]!r} of mechanism {m.name!r} is unknown and has no guess; give "
            f"guess={{{missing[0]!r}: ...}}"
        )
    return [Parameter(name, SYMBOL, m.name, "SI", given[name]) for name in m.symbols]


def _least(m: Mechanism, scalars: Sequence[Parameter]) -> np.ndarray:
    """The lower bounds (scalars,): 0 for parameters and symbols that are not negative, else -inf."""
    nonnegative = {str(s) for s in symbols_in(m) if s.is_nonnegative}
    are = (p.is_nonnegative or (p.kind == SYMBOL and p.name in nonnegative) for p in scalars)
    return np.array([0.0 if x else -np.inf for x in are])


def _check_scalars(scalars: Sequence[Parameter]) -> None:
    for p in scalars:
        is_plain = p.element is None or isinstance(p.element, Damper | Spring)
        if not is_plain or p.kind == "damping of a power":
            raise DescriptionError(
                f"parameter {p.name!r} is not fitted by simulation; put a symbol in its place in the "
                "mechanism, and give its guess"
            )


def _with_symbols(m: Mechanism, bodies: Sequence[str], scalars: Sequence[Parameter]) -> Mechanism:
    """The mechanism with symbols for the inertia of bodies, and for scalars."""
    m = with_parameters(m, scalars, [symbol(p.name, positive=p.is_nonnegative) for p in scalars])
    return m.replace(bodies=[_with_unknown_inertia(b) if b.name in bodies else b for b in m.bodies])


def _with_unknown_inertia(body: Body) -> Body:
    mass, *rest = (symbol(name) for name in _body_symbols(body.name))
    return replace(body, mass=mass, com=tuple(rest[:3]), inertia=tuple(rest[3:]))


def _body_symbols(body: str) -> list[str]:
    """The names of the symbols of mass, centre of mass and inertia about it."""
    return [f"m_{body}", *(f"c_{body}_{x}" for x in "xyz"), *(f"I_{body}_{pair}" for pair in PAIRS)]


def _consistent(pi: np.ndarray) -> np.ndarray:
    """The inertial parameters (10,) with a positive definite pseudo-inertia."""
    return parameters_of_pseudo_inertia(raised(pseudo_inertia(pi)))


def _mass_centre_inertia(pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """s = (m, c, I about the centre of mass: xx, yy, zz, xy, xz, yz) of pi (10,), and ds/dpi (10, 10)."""
    m, h = pi[0], pi[1:4]
    c = h / m
    J = np.zeros((10, 10))
    J[0, 0] = 1
    J[1:4, 0], J[1:4, 1:4] = -c / m, np.eye(3) / m
    s = np.concatenate([[m], c, pi[4:][list(INERTIA_ORDER)]])
    J[range(4, 10), 4 + np.array(INERTIA_ORDER)] = 1
    for row, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)), start=4):
        # I_c = I - (h.h 1 - h h^T) / m
        delta = float(i == j)
        s[row] -= delta * (c @ h) - c[i] * h[j]
        J[row, 0] += delta * (c @ c) - c[i] * c[j]
        by_h = -2 * delta * c
        by_h[i] += c[j]
        by_h[j] += c[i]
        J[row, 1:4] += by_h
    return s, J
