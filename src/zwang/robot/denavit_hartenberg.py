"""Arms from tables of Denavit and Hartenberg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from zwang.algebra.rotations import from_axis_angle
from zwang.errors import DescriptionError
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.joints import Joint, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY, number, vector

X, Z = (1, 0, 0), (0, 0, 1)
EXACT = (
    1e-15  # a sine or cosine this near to 0 or 1 is meant to be it: tables give alpha as multiples of pi / 2
)


@checked_arguments("convention")
def from_dh(
    *,
    d: Sequence[Any],
    a: Sequence[Any],
    alpha: Sequence[Any],
    theta: Sequence[Any] | None = None,
    joints: str | None = None,
    limits: Sequence[tuple[Any, Any] | None] | None = None,
    convention: Literal["standard", "modified"] = "standard",
    name: str = "arm",
    tool: tuple[Any, Any] | None = None,
) -> Mechanism:
    """A serial arm from its Denavit-Hartenberg table, one entry a joint: links "link1" ..., joints "q1" ..., frame "tip".

    d, a [m], alpha, theta [rad]: the table; theta is added to the angle of a revolute joint, d to the slide of a prismatic one.
    joints: "R" or "P" for each, such as "RRP". limits: (lower, upper) for each, or None. convention: "standard", T = Rz(theta)
    Tz(d) Tx(a) Rx(alpha), or "modified", T = Rx(alpha) Tx(a) Rz(theta) Tz(d). tool: (R, p) of "tip" in the last link's frame.
    A table says nothing of masses: the joints get rotors of 1 kg m^2 (or 1 kg), so that it is a mechanism; `replace` the bodies for real ones.
    Raises DescriptionError for columns of different lengths. Source: Denavit, Hartenberg (1955); Craig, Introduction to Robotics (modified).
    """
    n = len(d)
    kinds = joints if joints is not None else "R" * n
    turns = theta if theta is not None else [0] * n
    bounds = limits if limits is not None else [None] * n
    _check_columns(
        n, {"a": a, "alpha": alpha, "theta": turns, "joints": kinds, "limits": bounds}, kinds, convention
    )
    bodies, parent = [], "world"
    for i in range(n):
        entries = {"theta": turns[i], "d": d[i], "a": a[i], "alpha": alpha[i]}
        at = [number(x, f"{column} of joint {i + 1}") for column, x in entries.items()]
        T = _standard if convention == "standard" else _modified
        R, p, axis, point = T(*at)
        joint = _joint(kinds[i], f"q{i + 1}", axis, point, bounds[i])
        bodies.append(Body(f"link{i + 1}", joint, parent, position=tuple(p), orientation=R))
        parent = bodies[-1].name
    R, p = tool if tool is not None else (IDENTITY, (0, 0, 0))
    tip = Frame("tip", parent, vector(p, 3, "position of the tool"), R)
    return Mechanism(name=name, bodies=tuple(bodies), frames=(tip,))


def _standard(theta: Any, d: Any, a: Any, alpha: Any) -> tuple[Any, Any, Any, Any]:
    """The link's pose in the last one at rest, and its axis (the last one's z) and a point on it, in its own frame."""
    Rz, Rx = _turn(Z, theta), _turn(X, alpha)
    R, p = Rz @ Rx, Rz @ np.array([a, 0, d])
    return R, p, R.T @ np.array(Z), -(R.T @ p)


def _modified(theta: Any, d: Any, a: Any, alpha: Any) -> tuple[Any, Any, Any, Any]:
    Rx = _turn(X, alpha)
    return Rx @ _turn(Z, theta), np.array([a, 0, 0]) + Rx @ np.array([0, 0, d]), np.array(Z), np.zeros(3, int)


def _turn(axis: Any, angle: Any) -> np.ndarray:
    R = from_axis_angle(axis, angle)
    return np.array([[_exact(x) for x in row] for row in R], dtype=object)


def _exact(x: Any) -> Any:
    if isinstance(x, float) and math.isfinite(x) and abs(x - round(x)) < EXACT:
        return round(x)
    return x


def _joint(kind: str, name: str, axis: Any, point: Any, limits: Any) -> Joint:
    ends = tuple(limits) if limits is not None else None
    if kind == "P":
        return Prismatic(name, axis=tuple(axis), armature=1, limits=ends)
    return Revolute(name, axis=tuple(axis), position=tuple(point), armature=1, limits=ends)


def _check_columns(n: int, columns: dict[str, Any], kinds: str, convention: str) -> None:
    for column, values in columns.items():
        if len(values) != n:
            raise DescriptionError(f"column {column} of the table has {len(values)} entries; d has {n}")
    if n == 0:
        raise DescriptionError("the table is empty; an arm has one joint at least")
    if set(kinds) - {"R", "P"}:
        raise DescriptionError(f"joints is {kinds!r}; it is made of 'R' (revolute) and 'P' (prismatic)")
    if not isinstance(convention, str) or convention not in ("standard", "modified"):
        raise DescriptionError(f"convention is {convention!r}; it must be 'standard' or 'modified'")
