"""Serial arms from Denavit-Hartenberg tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

import numpy as np

from zwang.algebra.rotations import from_axis_angle
from zwang.errors import DescriptionError
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.joints import Joint, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY, Numbers, number, vector
from zwang.mechanism.type_validation import validated_arguments

X, Z = (1, 0, 0), (0, 0, 1)
ROUNDING = (
    1e-15  # a sine or cosine this near to an integer is rounded: tables give alpha as multiples of pi / 2
)

LinkFrame = tuple[Any, np.ndarray, np.ndarray, np.ndarray]


@validated_arguments("convention")
def from_dh(
    *,
    d: Numbers,
    a: Numbers,
    alpha: Numbers,
    theta: Numbers | None = None,
    joints: str | None = None,
    limits: Sequence[tuple[Any, Any] | None] | None = None,
    convention: Literal["standard", "modified"] = "standard",
    name: str = "arm",
    tool: tuple[Any, Any] | None = None,
) -> Mechanism:
    """A serial arm from its Denavit-Hartenberg table, with one table entry for each joint.

    The bodies are named "link1", ..., the joints "q1", ..., and the frame at the end "tip".

    d, a [m], alpha, theta [rad]: the columns of the table, numbers or symbols. theta (default 0) is added to
    the angle of a revolute joint, d to the displacement of a prismatic joint.
    joints: one letter for each joint, "R" (revolute) or "P" (prismatic), such as "RRP"; by default all
    revolute. limits: (lower, upper) [rad or m] for each joint, or None.
    convention: "standard", T = Rz(theta) Tz(d) Tx(a) Rx(alpha), or "modified", T = Rx(alpha) Tx(a) Rz(theta)
    Tz(d). name: the name of the mechanism. tool: pose (R, p) of "tip" in the frame of the last link.

    A table contains no masses. Every joint has a rotor inertia of 1 kg m^2 (or 1 kg), so that the mass matrix
    is regular; replace the bodies to give an arm its masses.
    Raises DescriptionError for columns of different lengths.
    Source: Denavit, Hartenberg (1955); Craig, Introduction to Robotics (modified convention).
    """
    n = len(d)
    kinds = joints if joints is not None else "R" * n
    angles = theta if theta is not None else [0] * n
    bounds = limits if limits is not None else [None] * n
    _check_columns(
        n, {"a": a, "alpha": alpha, "theta": angles, "joints": kinds, "limits": bounds}, kinds, convention
    )
    bodies, parent = [], "world"
    for i in range(n):
        entries = {"theta": angles[i], "d": d[i], "a": a[i], "alpha": alpha[i]}
        row = [number(x, f"{column} of joint {i + 1}") for column, x in entries.items()]
        transform = _standard if convention == "standard" else _modified
        R, p, axis, point = transform(*row)
        joint = _joint(kinds[i], f"q{i + 1}", axis, point, bounds[i])
        bodies.append(Body(f"link{i + 1}", joint, parent, tuple(p), R))
        parent = bodies[-1].name
    R, p = tool if tool is not None else (IDENTITY, (0, 0, 0))
    tip = Frame("tip", parent, vector(p, 3, "position of the tool"), R)
    return Mechanism(name=name, bodies=tuple(bodies), frames=(tip,))


def _standard(theta: Any, d: Any, a: Any, alpha: Any) -> LinkFrame:
    """Pose (R, p) of the link in the previous link at q = 0, and its joint's axis and a point on the axis.

    Axis and point are in the link's own frame. In the standard convention the joint axis is the z axis of the
    previous link.
    """
    Rz, Rx = _rotation(Z, theta), _rotation(X, alpha)
    R, p = Rz @ Rx, Rz @ np.array([a, 0, d])
    return R, p, R.T @ np.array(Z), -(R.T @ p)


def _modified(theta: Any, d: Any, a: Any, alpha: Any) -> LinkFrame:
    """The same in the modified convention, where the joint axis is the link's own z axis."""
    Rx = _rotation(X, alpha)
    p = np.array([a, 0, 0]) + Rx @ np.array([0, 0, d])
    return Rx @ _rotation(Z, theta), p, np.array(Z), np.zeros(3, int)


def _rotation(axis: tuple[int, int, int], angle: Any) -> np.ndarray:
    """Rotation about a coordinate axis; entries within rounding of an integer are that integer."""
    R = from_axis_angle(axis, angle)
    return np.array([[_without_rounding(x) for x in row] for row in R], dtype=object)


def _without_rounding(x: Any) -> Any:
    if isinstance(x, float) and math.isfinite(x) and abs(x - round(x)) < ROUNDING:
        return round(x)
    return x


def _joint(
    kind: str, name: str, axis: np.ndarray, point: np.ndarray, limits: tuple[Any, Any] | None
) -> Joint:
    bounds: Any = tuple(limits) if limits is not None else None
    if kind == "P":
        return Prismatic(name, axis=tuple(axis), armature=1, limits=bounds)
    return Revolute(name, axis=tuple(axis), position=tuple(point), armature=1, limits=bounds)


def _check_columns(n: int, columns: dict[str, Numbers], kinds: str, convention: str) -> None:
    for column, values in columns.items():
        if isinstance(values, Mapping | Set):
            raise DescriptionError(f"column {column} of the table is {values!r}; give a sequence")
        if len(values) != n:
            raise DescriptionError(f"column {column} of the table has {len(values)} entries; d has {n}")
    if n == 0:
        raise DescriptionError("the table is empty; an arm has at least one joint")
    if set(kinds) - {"R", "P"}:
        raise DescriptionError(
            f"joints is {kinds!r}; give one letter for each joint, 'R' (revolute) or 'P' (prismatic)"
        )
    if not isinstance(convention, str) or convention not in ("standard", "modified"):
        raise DescriptionError(f"convention is {convention!r}; it must be 'standard' or 'modified'")
