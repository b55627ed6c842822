"""Checks at the door: what comes in from users is looked at once, here, and named in the error."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.errors import ParameterError, ShapeError, StateError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import real_array


def checked_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism, if it is one; its numbers may be symbols. Raises TypeError."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"the first argument is a {type(mechanism).__name__}; give a zw.Mechanism, as zw.load(path) returns"
        )
    return mechanism


def numeric_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism, if it is one and all its numbers are known. Raises TypeError or ParameterError."""
    mechanism = checked_mechanism(mechanism)
    if mechanism.symbols:
        raise ParameterError(
            f"mechanism {mechanism.name!r} has symbols without values: {', '.join(mechanism.symbols)}; "
            "give them with mechanism.subs({...})"
        )
    return mechanism


def vector(value: Any, size: int, name: str, what: str) -> np.ndarray:
    """`value` as `size` finite floats. Raises ShapeError or StateError, naming the argument."""
    try:
        array = real_array(value)
    except (TypeError, ValueError):
        raise StateError(f"{name} must be {size} real numbers ({what}); it is {_shown(value)}") from None
    if array.shape != (size,):
        raise ShapeError(f"{name} must have the shape ({size},) ({what}); its shape is {array.shape}")
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array))[0])
        raise StateError(f"{name}[{first}] is {array[first]}; every element of {name} must be finite")
    return array


def array(value: Any, name: str) -> np.ndarray:
    """`value` as floats of any shape. Raises StateError for what are no real numbers, naming the argument."""
    try:
        return real_array(value)
    except (TypeError, ValueError):
        raise StateError(f"{name} must hold real numbers; it is {_shown(value)}") from None


def real(value: Any, name: str, what: str) -> float:
    """`value` as one finite float. Raises StateError, naming the argument."""
    try:
        number = real_array(value)
    except (TypeError, ValueError):
        number = np.zeros(0)
    if number.shape != () or not np.isfinite(number):
        raise StateError(f"{name} is {_shown(value)}; it must be {what}, one finite real number")
    return float(number)


def configuration(mechanism: Mechanism, q: Any) -> np.ndarray:
    """q (nq,) with its quaternions at unit length. Raises ShapeError, and StateError for NaN and zero quaternions."""
    q = vector(q, mechanism.nq, "q", f"nq of mechanism {mechanism.name!r}")
    for joint in mechanism.joints:
        if joint.kind in ("ball", "free"):
            part = slice(joint.q.stop - 4, joint.q.stop)
            length = np.linalg.norm(q[part])
            if not length > 1e-9:
                raise StateError(
                    f"the quaternion of joint {joint.name!r}, q[{part.start}:{part.stop}], is zero; "
                    "give a unit quaternion (w, x, y, z), such as (1, 0, 0, 0)"
                )
            if abs(length - 1) > 1e-15:
                q[part] /= length
    return q


def speeds(mechanism: Mechanism, value: Any, name: str) -> np.ndarray:
    """v, tau or a (nv,), finite. Raises ShapeError or StateError."""
    return vector(value, mechanism.nv, name, f"nv of mechanism {mechanism.name!r}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
