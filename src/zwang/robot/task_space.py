"""The directions of a task: which motions of a frame count, in which axes, and the Jacobian of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.dynamics.crba import crba
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import orientation_of
from zwang.robot.cache_key import IdentityKey
from zwang.robot.ik_functions import looped, shaped
from zwang.robot.jacobian_derivative import jacobian_derivative
from zwang.robot.tasks import COMPONENTS, PARTS
from zwang.robot.velocity_transformation import VelocityTransformation, samples, velocity_transformation

SAMPLES = 8
RANK = 1e-9  # a direction in which no sample moves more than this part of the most is never moved in
MANY = 16  # configurations from which on compiling pays


@dataclass(frozen=True)
class TaskSpace:
    """Directions of a frame: `basis` (d, m), one a column, of the components `rows` (d of the 6), and the motions that count.

    axes: "world", "body", or a rotation whose columns are the axes. length [m]: what rows of position are counted per.
    motions: of the speeds that count; `every`: of all that may move.
    """

    frame: str
    part: str
    rows: tuple[int, ...]
    axes: Any
    length: float
    basis: np.ndarray
    motions: VelocityTransformation
    every: VelocityTransformation
    compiled: bool

    def jacobian(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """J (..., m, n) of the directions by the motions that count."""
        J, R = self._function(m, "jacobian", q)
        return self._directions(J @ self.motions.basis(q), R)

    def dynamic_jacobian(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """J (..., m, n) by all motions that are possible."""
        J, R = self._function(m, "jacobian", q)
        return self._directions(J @ self.every.basis(q), R)

    def mass_matrix(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """B^T H B (..., n, n) of all motions that are possible."""
        (H,) = self._function(m, "mass_matrix", q)
        B = self.every.basis(q)
        return B.swapaxes(-1, -2) @ H @ B

    def jacobian_derivative(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """dJ (..., m, n, n): how J changes along each motion that counts. Raises DescriptionError where loops restrict these."""
        if self.motions.has_loops:
            raise DescriptionError(
                f"frame {self.frame!r} is carried by a closed loop: there is no gradient for it yet"
            )
        B = self.motions.basis(q)
        J, R, dJ = self._function(m, "derivative", q)
        J, dJ = J @ B, np.einsum("...mji,jk,il->...mkl", dJ, B, B)
        if isinstance(self.axes, str) and self.axes == "body":  # the axes turn, too
            turned = np.cross(J[..., 3:, None, :], J.reshape(*J.shape[:-2], 2, 3, -1)[..., :, None], axis=-3)
            dJ = dJ - turned.reshape(dJ.shape)
        return np.stack([self._directions(dJ[..., i], R) for i in range(dJ.shape[-1])], axis=-1)

    def embedded(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors of the directions (..., m, k) as vectors of the components (..., d, k)."""
        return self.basis @ vectors

    def _function(self, m: Mechanism, kind: str, q: np.ndarray) -> tuple[np.ndarray, ...]:
        none = not q.size  # of no configuration the compiled function knows the shapes
        return _function(IdentityKey(m), self.frame, kind, none or (self.compiled and q.size > MANY * m.nq))(q)

    def _directions(self, J: np.ndarray, R: np.ndarray) -> np.ndarray:
        return self.basis.T @ scaled_rows(J, R, self.axes, self.rows, self.length)


def scaled_rows(J: np.ndarray, R: np.ndarray, axes: Any, rows: Sequence[int], length: float) -> np.ndarray:
    """The rows that count of J (..., 6, n) of world axes, in other axes, and positions per length where angles count, too."""
    if not isinstance(axes, str):
        R = np.asarray(axes, dtype=float)
    if not isinstance(axes, str) or axes == "body":
        A = R.swapaxes(-1, -2)
        J = np.concatenate([A @ J[..., :3, :], A @ J[..., 3:, :]], axis=-2)
    mixed = min(rows) < 3 <= max(rows)
    scale = np.array([1 / length if mixed and row < 3 else 1.0 for row in rows])
    return J[..., list(rows), :] * scale[:, None]


def task_space(
    mechanism: Mechanism,
    q: Any,
    frame: str,
    part: str | None,
    axes: Any,
    components: Sequence[str] | None,
    joints: Sequence[str] | None,
    length: float,
    compiled: bool,
) -> tuple[TaskSpace, np.ndarray]:
    """The directions asked for, and q as an array. Raises DescriptionError, UnknownNameError, ShapeError, StateError."""
    m = validation.numeric_mechanism(mechanism)
    m.tree.place(frame)
    if part is not None and part not in PARTS:
        raise DescriptionError(f"part is {part!r}; it must be one of {', '.join(map(repr, PARTS))}")
    if not length > 0:
        raise DescriptionError(f"length is {length!r}; it must be a positive number of metres")
    named = tuple(components) if components is not None else None
    if named is not None and (not named or set(named) - set(COMPONENTS)):
        raise DescriptionError(f"components is {components!r}; give some of {', '.join(COMPONENTS)}")
    key = (
        axes
        if isinstance(axes, str)
        else tuple(tuple(float(x) for x in row) for row in orientation_of(axes, "axes"))
    )
    if isinstance(axes, str) and axes not in ("world", "body"):
        raise DescriptionError(f"axes is {axes!r}; it must be 'world', 'body' or a rotation matrix (3, 3)")
    which = (joints,) if isinstance(joints, str) else tuple(joints) if joints is not None else None
    return _space(IdentityKey(m), frame, part, key, named, which, float(length), compiled), configurations(m, q)


def configurations(m: Mechanism, q: Any) -> np.ndarray:
    """q (nq,) or (..., nq), checked, with unit quaternions."""
    if validation.array(q, "q").ndim <= 1:
        return validation.configuration(m, q)
    array = validation.array(q, "q")
    if array.shape[-1] != m.nq:
        raise ShapeError(f"q must have the shape (..., {m.nq}); its shape is {array.shape}")
    return np.array([validation.configuration(m, row) for row in array.reshape(-1, m.nq)]).reshape(array.shape)


@lru_cache(maxsize=64)
def _space(
    same: IdentityKey,
    frame: str,
    part: str | None,
    axes: Any,
    components: Any,
    joints: Any,
    length: float,
    compiled: bool,
) -> TaskSpace:
    m = same.mechanism
    motions, every = velocity_transformation(m, (frame,), joints), velocity_transformation(m, [body.name for body in m.bodies], joints)
    if not motions.coordinates.free:
        raise DescriptionError(f"no joint that may move carries the frame {frame!r}")
    q = samples(m, motions, SAMPLES)
    J, R = _function(IdentityKey(m), frame, "jacobian", False)(q)
    moved = J @ motions.basis(q)

    def basis(rows: Sequence[int]) -> np.ndarray:
        if components is not None:
            return np.eye(len(rows))
        return _span(np.concatenate(list(scaled_rows(moved, R, axes, rows, length)), axis=1))

    if components is not None:
        rows = tuple(sorted(COMPONENTS.index(c) for c in components))
        part = "pose" if rows[0] < 3 <= rows[-1] else "position" if rows[0] < 3 else "orientation"
    else:
        part = part or _part(basis, moved.shape[-1])
        rows = tuple(COMPONENTS.index(c) for c in PARTS[part])
    directions = basis(rows)
    if not directions.shape[1]:
        raise DescriptionError(f"the joints do not change the {part} of frame {frame!r} at all")
    return TaskSpace(frame, part, rows, axes, length, directions, motions, every, compiled)


def _part(basis: Callable[[Sequence[int]], np.ndarray], joints: int) -> str:
    """The pose where there are joints enough for it, else the position, if the joints change that."""
    if basis(range(6)).shape[1] <= joints:
        return "pose"
    return "position" if basis(range(3)).shape[1] else "orientation"


def _span(columns: np.ndarray) -> np.ndarray:
    """An orthonormal basis (d, m) of the columns' span: coordinate axes where these do."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    U = U[:, s > RANK * max(s[0], 1e-300)]
    inside = np.linalg.norm(U, axis=1)
    aligned = inside > 1 - RANK
    if aligned.sum() == U.shape[1]:
        return np.eye(len(U))[:, aligned]
    return U


@lru_cache(maxsize=128)
def _function(same: IdentityKey, frame: str, kind: str, compiled: bool) -> Callable[..., Any]:
    """Over q (..., nq): the world Jacobian and R of a frame, with "derivative" also dJ; or the mass matrix."""
    m = same.mechanism
    place = m.tree.place(frame)

    def program(q: Any) -> Any:
        if kind == "mass_matrix":
            return (crba(m.tree, q),)
        poses = link_poses(m.tree, q)
        J, R = placement_jacobian(m.tree, poses, place), placement_pose(poses, place).R
        return (J, R, jacobian_derivative(m.tree, poses, place)) if kind == "derivative" else (J, R)

    return shaped(program, {"q": (m.nq,)}) if compiled else looped(program, {"q": (m.nq,)})


def describe(direction: np.ndarray, part: str) -> str:
    """A direction (3 or 6,) in words: what it moves along and turns about."""
    if part == "position":
        return f"move along {_named(direction)}"
    if part == "orientation":
        return f"turn about {_named(direction)}"
    linear, angular = np.linalg.norm(direction[:3]), np.linalg.norm(direction[3:])
    if angular < 1e-6:
        return f"move along {_named(direction[:3])}"
    if linear < 1e-6:
        return f"turn about {_named(direction[3:])}"
    return f"move by {_numbers(direction[:3])} while it turns by {_numbers(direction[3:])}"


def _named(direction: np.ndarray) -> str:
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if abs(abs(direction @ axis) - np.linalg.norm(direction)) < 1e-6:
            return name
    return _numbers(direction)


def _numbers(direction: np.ndarray) -> str:
    return "(" + ", ".join(f"{x + 0:.3g}" for x in np.round(direction, 6)) + ")"
