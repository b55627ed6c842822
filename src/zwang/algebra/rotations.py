"""Rotations: matrices R_AB (columns: axes of B in A), unit quaternions (w, x, y, z), rotation vectors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from zwang.errors import DescriptionError
from zwang.scalar import (
    are_constant,
    atan2,
    cos,
    exact_value,
    maximum,
    number_of_constant,
    sin,
    sqrt,
    where,
)
from zwang.scalar import unit_vector as scalar_unit_vector

PARALLEL = 1e-12  # largest entry of the cross product of parallel unit vectors
LEAST_LENGTH = 1e-9  # shortest vector that has a direction
ROTATION_TOLERANCE = 1e-6  # of R R^T = 1, for rotations with few digits


def elements(value: Any) -> list[Any]:
    """The elements of a vector, or the rows of a matrix (3, 3), also of one of SymPy; none of a scalar."""
    if getattr(value, "shape", None) == (3, 3):
        return list(value.tolist())
    return list(value) if np.iterable(value) and not isinstance(value, str) else []


def skew(a: Any) -> np.ndarray:
    """The matrix [a]x with [a]x b = a x b."""
    x, y, z = a
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def cross(a: Any, b: Any) -> np.ndarray:
    """The cross product a x b (3,) of two vectors (3,) of any scalar."""
    (a1, a2, a3), (b1, b2, b3) = a, b
    return np.array([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1])


def from_axis_angle(axis: Any, angle: Any) -> np.ndarray:
    """Rotation matrix for the angle [rad] about a unit vector, by Rodrigues' formula.

    R = cos 1 + sin [a]x + (1 - cos) a a^T, which has exact zeros and ones for coordinate axes.
    """
    a = np.array(axis)
    s, c = sin(angle), cos(angle)
    aa = np.outer(a, a)
    return c * (np.eye(3, dtype=int) - aa) + s * skew(a) + aa


def from_quaternion(q: Any) -> np.ndarray:
    """Rotation matrix (3, 3) of the unit quaternion (w, x, y, z)."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def to_quaternion(R: Any) -> np.ndarray:
    """Unit quaternion (w, x, y, z), w >= 0, of a numeric rotation matrix, by Shepperd's method.

    The largest of the four components is computed first, which is accurate everywhere. Source: Shepperd,
    "Quaternion from rotation matrix", Journal of Guidance and Control 1 (1978) 223.
    """
    R = np.asarray(R, dtype=float)
    traces = np.array([np.trace(R), *np.diag(R)])
    k = int(np.argmax(traces))
    if k == 0:
        w = np.sqrt(1 + traces[0]) / 2
        q = np.array([w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))])
    else:
        i = k - 1
        j, l = (i + 1) % 3, (i + 2) % 3
        u = np.sqrt(1 + R[i, i] - R[j, j] - R[l, l]) / 2
        q = np.zeros(4)
        q[0] = (R[l, j] - R[j, l]) / (4 * u)
        q[1 + i], q[1 + j], q[1 + l] = u, (R[j, i] + R[i, j]) / (4 * u), (R[l, i] + R[i, l]) / (4 * u)
    return q if q[0] >= 0 else -q


def to_quaternion_generic(R: Any) -> np.ndarray:
    """Unit quaternion (w, x, y, z), w >= 0, of a rotation matrix of any scalar, by Shepperd's method without
    branches.

    It is the row of 4 q q^T with the largest diagonal entry, normalised. Source: Shepperd, "Quaternion from
    rotation matrix", Journal of Guidance and Control 1 (1978) 223.
    """
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    rows = (
        (1 + a + b + c, x, y, z),
        (x, 1 + a - b - c, xy, xz),
        (y, xy, 1 - a + b - c, yz),
        (z, xz, yz, 1 - a - b + c),
    )
    best, largest = rows[0], rows[0][0]
    for k in (1, 2, 3):
        larger = largest < rows[k][k]
        best = [where(larger, new, old) for new, old in zip(rows[k], best, strict=True)]
        largest = where(larger, rows[k][k], largest)
    scale = where(best[0] < 0, -0.5, 0.5) / sqrt(largest)
    return np.array([scale * component for component in best])


def multiply(p: Any, q: Any) -> np.ndarray:
    """The quaternion product p q: the rotation q followed by p."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return np.array(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ]
    )


def exponential(phi: Any) -> np.ndarray:
    """Unit quaternion (w, x, y, z) of the rotation vector phi (3,) [rad].

    Below 1e-4 rad the quotient sin(a/2)/a is its series of fourth order, with a relative error below 1e-18.
    """
    x, y, z = phi
    square = x * x + y * y + z * z
    small = square < 1e-8
    angle = sqrt(where(small, 1.0, square))
    quotient = where(small, 0.5 - square / 48 + square * square / 3840, sin(angle / 2) / angle)
    w = where(small, 1 - square / 8 + square * square / 384, cos(angle / 2))
    return np.array([w, quotient * x, quotient * y, quotient * z])


def exponential_rate(phi: Any, w: Any) -> np.ndarray:
    """phi_dot (3,) [rad/s] for which exponential(phi) has the angular velocity w (3,), in the rotated axes;
    of several, in columns, (3, ...).

    phi_dot = w + phi x w / 2 + c phi x (phi x w) with c = (1 - (a/2) cot(a/2)) / a^2 and a = |phi| < 2 pi.
    Below a = 1e-3 rad, c is its series 1/12 + a^2/720, with a relative error below 1e-14. Source: Iserles et
    al., "Lie-group methods", Acta Numerica 9 (2000) 215, Eq. 2.46.
    """
    phi, w = np.array(phi), np.array(w)
    square = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    small = square < 1e-6
    safe = where(small, 1.0, square)
    half = sqrt(safe) / 2
    c = where(small, 1 / 12 + square / 720, (1 - half * cos(half) / sin(half)) / safe)
    product = cross(phi, w)
    return w + product / 2 + c * cross(phi, product)


def logarithm(q: Any) -> np.ndarray:
    """Rotation vector (3,) [rad], of length at most pi, of the unit quaternion q.

    Where the vector part is shorter than 1e-8, the quotient angle/sine is its limit 2, with a relative error
    below 1e-16.
    """
    w, x, y, z = q
    flip = where(w < 0, -1.0, 1.0)
    w, x, y, z = flip * w, flip * x, flip * y, flip * z
    square = x * x + y * y + z * z
    small = square < 1e-16
    length = sqrt(where(small, 1.0, square))
    quotient = where(small, 2.0, 2 * atan2(length, w) / length)
    return np.array([quotient * x, quotient * y, quotient * z])


def from_rpy(roll: Any, pitch: Any, yaw: Any) -> np.ndarray:
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll) of the angles [rad], as in URDF."""
    return (
        from_axis_angle((0, 0, 1), yaw) @ from_axis_angle((0, 1, 0), pitch) @ from_axis_angle((1, 0, 0), roll)
    )


def unit_vector(a: Any, name: str) -> tuple[Any, ...]:
    """Unit vector along a (3,), exact along coordinate axes; see `scalar.unit_vector` for expressions.

    Raises DescriptionError for a zero vector.
    """
    length = math.hypot(*a) if are_constant(*a) else 1.0
    if not length > LEAST_LENGTH:
        raise DescriptionError(f"{name} is {tuple(a)}, which has no direction; give a vector of length 1")
    if not are_constant(*map(exact_value, a)):
        return tuple(number_of_constant(x) for x in scalar_unit_vector([exact_value(x) for x in a]))
    if sum(1 for x in a if x != 0) == 1:
        return tuple(int(np.sign(x)) for x in a)
    return tuple(a) if abs(length - 1) < 1e-15 else tuple(float(x) / length for x in a)


def unit_quaternion(q: Any, name: str) -> tuple[Any, ...]:
    """The quaternion q at unit length. Raises DescriptionError for a zero quaternion."""
    if not are_constant(*q):
        return tuple(q)
    if sum(1 for x in q if x != 0) == 1:
        return tuple(int(np.sign(x)) for x in q)
    length = float(np.linalg.norm(np.asarray(q, dtype=float)))
    if not length > 1e-9:
        raise DescriptionError(
            f"{name} is the quaternion {tuple(q)}, which has no direction; give (1, 0, 0, 0)"
        )
    return tuple(q) if abs(length - 1) < 1e-15 else tuple(float(x) / length for x in q)


def check_rotation(R: Any, name: str) -> None:
    """Raise DescriptionError unless the numeric matrix R (3, 3) is a proper rotation."""
    if not are_constant(*(x for row in R for x in row)):
        return
    matrix = np.array(R)
    error = functools.reduce(maximum, [abs(x) for x in (matrix @ matrix.T - np.eye(3)).flat])
    determinant = matrix[0] @ cross(matrix[1], matrix[2])
    if error > ROTATION_TOLERANCE or determinant < 0:
        raise DescriptionError(
            f"{name} is not a rotation: R R^T differs from 1 by {error:.2g}, det R = "
            f"{determinant:.3g}; give a unit quaternion (w, x, y, z) or a rotation matrix"
        )


def are_parallel(a: Any, b: Any) -> bool:
    """Whether two numeric unit vectors are parallel or antiparallel."""
    return bool(np.abs(np.cross(np.asarray(a, float), np.asarray(b, float))).max() < PARALLEL)


def perpendicular_axes(axis: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Two unit vectors that form a right-handed frame (first, second, axis) with a numeric unit vector.

    They are exact for coordinate axes. Raises DescriptionError for a symbolic axis.
    """
    x, y, z = axis
    exact = {
        (0, 0, 1): ((1, 0, 0), (0, 1, 0)),
        (1, 0, 0): ((0, 1, 0), (0, 0, 1)),
        (0, 1, 0): ((0, 0, 1), (1, 0, 0)),
        (0, 0, -1): ((0, 1, 0), (1, 0, 0)),
        (-1, 0, 0): ((0, 0, 1), (0, 1, 0)),
        (0, -1, 0): ((1, 0, 0), (0, 0, 1)),
    }
    if are_constant(x, y, z) and (x, y, z) in exact:
        return exact[(x, y, z)]
    if not are_constant(x, y, z):
        raise DescriptionError(
            f"the axis {axis} is symbolic; the perpendicular axes are computed for numeric axes only"
        )
    a = np.asarray(axis, float)
    first = np.cross(np.eye(3)[int(np.argmin(np.abs(a)))], a)
    first /= np.linalg.norm(first)
    return tuple(first.tolist()), tuple(np.cross(a, first).tolist())
