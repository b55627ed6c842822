"""Symbols in place of numbers of a mechanism, for symbolic equations and parameters of compiled functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from zwang.errors import LoadWarning, ParameterError
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import Damper, FluidDrag
from zwang.mechanism.inertia_box import with_inertia_of
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbol_names
from zwang.scalar import are_constant, symbol

XYZ = ("x", "y", "z")


def with_symbolic_parameters(mechanism: Mechanism, kinds: Sequence[str]) -> Mechanism:
    """The mechanism with symbols for its numbers of these kinds, named after the body or joint.

    "mass": m_BODY; "com": c_BODY_x, _y, _z; "inertia": I_BODY_xx ... _yz; of every body that moves and has
    mass. "damping": d_JOINT of every damper; "friction": f_JOINT of every joint with friction; "gravity": g,
    with the direction unchanged.
    The box of a fluid that has the inertia of a body, as in MJCF files, follows the symbols of the body. Its
    axes do not, of which a LoadWarning warns for "inertia".
    Raises ParameterError for another kind.
    """
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ParameterError(f"symbolic contains {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    changed = mechanism
    for kind in kinds:
        changed = KINDS[kind](changed)
    return _with_inertia_boxes(mechanism, changed)


def values_for_symbols(mechanism: Mechanism) -> str:
    """The call that gives the symbols their values, as remedies of errors have it."""
    values = ", ".join(f"{name!r}: ..." for name in mechanism.symbols)
    return f"mechanism.subs({{{values}}})"


def states_with_symbol(mechanism: Mechanism, name: str) -> list[str]:
    """The states in the description that depend on a symbol: home, references of joints and keyframes."""
    states = [("home", mechanism.home)]
    states += [(f"reference of joint {j.name!r}", j.joint.reference) for j in mechanism.joints]
    states += [(f"keyframe {k.name!r}", k) for k in mechanism.keyframes]
    return [what for what, state in states if name in symbol_names(state)]


def _with_inertia_boxes(before: Mechanism, mechanism: Mechanism) -> Mechanism:
    """The mechanism with the boxes of fluids that have the inertia of the bodies `before` with that of its
    own.
    """
    forces, turned = list(mechanism.forces), []
    for k, drag in enumerate(forces):
        if not isinstance(drag, FluidDrag):
            continue
        old, body = before.body(drag.body), mechanism.body(drag.body)
        forces[k] = with_inertia_of(drag, old, body)
        if forces[k] is not drag and body.inertia != old.inertia:
            turned.append(body.name)
    if turned:
        warnings.warn(
            "symbolic contains 'inertia': the sides of the fluid's boxes around "
            f"{', '.join(map(repr, turned))} follow the symbols, and their axes do not; the drag is that "
            "of inertias that keep their principal axes",
            LoadWarning,
            stacklevel=5,
        )
    return mechanism if forces == list(mechanism.forces) else mechanism.replace(forces=forces)


def _bodies(change: Callable[[Body], dict[str, Any]]) -> Callable[[Mechanism], Mechanism]:
    """A function that replaces the fields `change(body)` of every moving body with mass."""

    def changed(mechanism: Mechanism) -> Mechanism:
        placements = mechanism.tree.placements
        bodies = [
            replace(body, **change(body)) if placements[body.name].link >= 0 and _is_heavy(body) else body
            for body in mechanism.bodies
        ]
        return mechanism.replace(bodies=bodies)

    return changed


def _is_heavy(body: Body) -> bool:
    return not are_constant(body.mass) or body.mass > 0


def _mass(body: Body) -> dict[str, Any]:
    return {"mass": symbol(f"m_{body.name}", positive=True)}


def _com(body: Body) -> dict[str, Any]:
    return {"com": tuple(symbol(f"c_{body.name}_{x}") for x in XYZ)}


def _inertia(body: Body) -> dict[str, Any]:
    pairs = ("xx", "yy", "zz", "xy", "xz", "yz")
    return {"inertia": tuple(symbol(f"I_{body.name}_{pair}", positive=pair[0] == pair[1]) for pair in pairs)}


def _damping(mechanism: Mechanism) -> Mechanism:
    forces = [
        replace(force, coefficient=symbol(f"d_{force.joint}", positive=True))
        if isinstance(force, Damper)
        else force
        for force in mechanism.forces
    ]
    return mechanism.replace(forces=forces)


def _friction(body: Body) -> dict[str, Any]:
    joints = tuple(_with_friction(joint) for joint in body.joints)
    return {"joint": joints} if joints else {}


def _with_friction(joint: Any) -> Any:
    rough = not are_constant(joint.friction) or joint.friction > 0
    return replace(joint, friction=symbol(f"f_{joint.name}", positive=True)) if rough else joint


def _gravity(mechanism: Mechanism) -> Mechanism:
    g = mechanism.gravity
    if not are_constant(*g) or not any(g):
        return mechanism
    length = sum(x * x for x in g) ** 0.5
    directions = (x / length for x in g)
    strength = symbol("g", positive=True)
    return mechanism.replace(
        gravity=tuple(int(d) * strength if d == int(d) else d * strength for d in directions)
    )


KINDS: dict[str, Callable[[Mechanism], Mechanism]] = {
    "mass": _bodies(_mass),
    "com": _bodies(_com),
    "inertia": _bodies(_inertia),
    "damping": _damping,
    "friction": _bodies(_friction),
    "gravity": _gravity,
}
