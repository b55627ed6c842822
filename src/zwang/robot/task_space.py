"""Task spaces: the directions of a frame's motion that a task includes, and their Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.dynamics.crba import crba
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import orientation_of
from zwang.robot.batch_functions import BatchFunction, compiled_over_batch, floats_over_batch
from zwang.robot.inverse_kinematics.tasks import COMPONENTS, PARTS
from zwang.robot.jacobian_derivative import jacobian_derivative
from zwang.robot.velocity_transformation import VelocityTransformation, samples, velocity_transformation

SAMPLES = 8
RANK = 1e-9  # singular values below this fraction of the largest count as zero
COMPILE_FROM = 16  # number of configurations from which compilation is faster

Axes = str | tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TaskSpace:
    """The task directions of a frame, and the velocities that move it.

    rows: the d components of a spatial vector (6,) that count. basis (d, m): the directions, one in each
    column. axes: "world", "body", or the rows of a rotation whose columns are the axes. length [m]: the
    characteristic length. transformation: v = B u of the joints considered. full_transformation: v = B u of
    all joints that may move.
    """

    frame: str
    part: str
    rows: tuple[int, ...]
    axes: Axes
    length: float
    basis: np.ndarray
    transformation: VelocityTransformation = field(repr=False)
    full_transformation: VelocityTransformation = field(repr=False)
    compiled: bool

    def jacobian(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """J (..., m, n) of the directions, by the independent velocities of the joints considered."""
        J, R = self._function(m, "jacobian", q)
        return self._directions(J @ self.transformation.basis(q), R)

    def full_jacobian(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """J (..., m, n) of the directions, by the independent velocities of all joints."""
        J, R = self._function(m, "jacobian", q)
        return self._directions(J @ self.full_transformation.basis(q), R)

    def mass_matrix(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """B^T M B (..., n, n) by the independent velocities of all joints."""
        (M,) = self._function(m, "mass_matrix", q)
        B = self.full_transformation.basis(q)
        return B.swapaxes(-1, -2) @ M @ B

    def jacobian_derivative(self, m: Mechanism, q: np.ndarray) -> np.ndarray:
        """dJ (..., m, n, n): the derivative of J along each independent velocity.

        Raises DescriptionError where a closed loop carries the frame.
        """
        if self.transformation.has_loops:
            raise DescriptionError(
                f"frame {self.frame!r} is carried by a closed loop; its gradient is not supported"
            )
        B, dB = self.transformation.basis(q), self.transformation.basis_derivative(q)
        J, R, dJ = self._function(m, "derivative", q)
        dJ = np.einsum("...mji,...jk,...il->...mkl", dJ, B, B) + np.einsum("...mj,...jkl->...mkl", J, dB)
        J = J @ B
        if isinstance(self.axes, str) and self.axes == "body":  # the axes rotate with the frame
            vectors = J.reshape(*J.shape[:-2], 2, 3, J.shape[-1])
            rotated = np.cross(vectors[..., 1:, :, None, :], vectors[..., None], axis=-3)
            dJ = dJ - rotated.reshape(dJ.shape)
        return np.stack([self._directions(dJ[..., i], R) for i in range(dJ.shape[-1])], axis=-1)

    def in_components(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (..., m, k) in the directions as vectors (..., d, k) in the components."""
        return self.basis @ vectors

    def _function(self, m: Mechanism, kind: str, q: np.ndarray) -> tuple[np.ndarray, ...]:
        empty = not q.size  # the compiled function knows the shapes of an empty batch
        compiled = empty or (self.compiled and q.size > COMPILE_FROM * m.nq)
        return _function(IdentityKey(m), self.frame, kind, compiled)(q)

    def _directions(self, J: np.ndarray, R: np.ndarray) -> np.ndarray:
        return self.basis.T @ scaled_rows(J, R, self.axes, self.rows, self.length)


def scaled_rows(J: np.ndarray, R: np.ndarray, axes: Axes, rows: Sequence[int], length: float) -> np.ndarray:
    """Some rows of J (..., 6, n) in other axes, from J in world axes.

    Rows of positions are divided by the length if there are also rows of angles.
    """
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
    q: ArrayLike,
    frame: str,
    part: str | None,
    axes: str | ArrayLike,
    components: str | Sequence[str] | None,
    joints: Sequence[str] | None,
    length: float,
    compiled: bool,
) -> tuple[TaskSpace, np.ndarray]:
    """The task space for the arguments of `manipulability`, and q as an array.

    Raises DescriptionError, UnknownNameError, ShapeError, StateError.
    """
    m = validation.numeric_mechanism(mechanism)
    m.tree.placement(frame)
    if part is not None and part not in PARTS:
        raise DescriptionError(f"part is {part!r}; it must be one of {', '.join(map(repr, PARTS))}")
    if not length > 0:
        raise DescriptionError(f"characteristic_length is {length!r}; it must be a positive number of metres")
    if isinstance(components, str) and components in COMPONENTS:  # otherwise "xy" are letters
        components = (components,)
    chosen = tuple(components) if components is not None else None
    if chosen is not None and (not chosen or set(chosen) - set(COMPONENTS) or len(set(chosen)) < len(chosen)):
        raise DescriptionError(
            f"components is {components!r}; give some of {', '.join(COMPONENTS)}, each once"
        )
    key: Axes = (
        axes
        if isinstance(axes, str)
        else tuple(tuple(float(x) for x in row) for row in orientation_of(axes, "axes"))
    )
    if isinstance(axes, str) and axes not in ("world", "body"):
        raise DescriptionError(f"axes is {axes!r}; it must be 'world', 'body' or a rotation matrix (3, 3)")
    names = (joints,) if isinstance(joints, str) else tuple(joints) if joints is not None else None
    space = _space(IdentityKey(m), frame, part, key, chosen, names, float(length), compiled)
    return space, configurations(m, q)


def configurations(m: Mechanism, q: Any) -> np.ndarray:
    """q (nq,) or (..., nq), also by name, as an array with unit quaternions.

    Raises ShapeError, StateError or UnknownNameError.
    """
    given = validation.real_values(validation.coordinates(m, q, "q"), "q")
    if given.ndim <= 1:
        return validation.configuration(m, given)
    array = np.array(given)
    if array.shape[-1] != m.nq:
        raise ShapeError(f"q must have the shape (..., {m.nq}); its shape is {array.shape}")
    if not (finite := np.isfinite(array).all(axis=-1)).all():
        validation.configuration(m, array.reshape(-1, m.nq)[np.argmin(finite.reshape(-1))])
    validation.normalise_quaternions(m, array)
    return array


@lru_cache(maxsize=64)
def _space(
    same: IdentityKey,
    frame: str,
    part: str | None,
    axes: Axes,
    components: tuple[str, ...] | None,
    joints: tuple[str, ...] | None,
    length: float,
    compiled: bool,
) -> TaskSpace:
    """The task space, cached; its directions are found from the Jacobian at random configurations."""
    m = same.mechanism
    transformation = velocity_transformation(m, (frame,), joints)
    full_transformation = velocity_transformation(m, [body.name for body in m.bodies], joints)
    if not transformation.coordinates.free:
        raise DescriptionError(f"no joint that may move affects the frame {frame!r}")
    q = samples(m, transformation, SAMPLES)
    J, R = _function(IdentityKey(m), frame, "jacobian", False)(q)
    bases = [transformation.basis(row) for row in q]
    # singular configurations of the loops, which have more degrees of freedom, tell nothing of the others
    regular = [k for k, B in enumerate(bases) if B.shape[1] == min(B.shape[1] for B in bases)]
    sampled, R = J[regular] @ np.array([bases[k] for k in regular]), R[regular]

    def basis(rows: Sequence[int]) -> np.ndarray:
        if components is not None:
            return np.eye(len(rows))
        return _span(np.concatenate(list(scaled_rows(sampled, R, axes, rows, length)), axis=1))

    if components is not None:
        rows = tuple(sorted(COMPONENTS.index(c) for c in components))
        part = "pose" if rows[0] < 3 <= rows[-1] else "position" if rows[0] < 3 else "orientation"
    else:
        part = part or _part(basis, sampled.shape[-1])
        rows = tuple(COMPONENTS.index(c) for c in PARTS[part])
    directions = basis(rows)
    if not directions.shape[1]:
        raise DescriptionError(f"no joint changes the {part} of frame {frame!r}")
    return TaskSpace(
        frame, part, rows, axes, length, directions, transformation, full_transformation, compiled
    )


def _part(basis: Callable[[Sequence[int]], np.ndarray], joints: int) -> str:
    """The default part: the pose if there are enough joints for it, else position, else orientation."""
    if basis(range(6)).shape[1] <= joints:
        return "pose"
    return "position" if basis(range(3)).shape[1] else "orientation"


def _span(columns: np.ndarray) -> np.ndarray:
    """An orthonormal basis (d, m) of the span of the columns; coordinate axes where they span the same."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    U = U[:, s > RANK * max(s[0], 1e-300)]
    inside = np.linalg.norm(U, axis=1)
    aligned = inside > 1 - RANK
    if aligned.sum() == U.shape[1]:
        return np.eye(len(U))[:, aligned]
    return U


@lru_cache(maxsize=128)
def _function(same: IdentityKey, frame: str, kind: str, compiled: bool) -> BatchFunction:
    """A function of q (..., nq), cached.

    kind: "jacobian" gives J in world axes and R of the frame, "derivative" J, R and dJ, "mass_matrix" M.
    """
    m = same.mechanism
    placement = m.tree.placement(frame)

    def function(q: Any) -> Any:
        if kind == "mass_matrix":
            return (crba(m.tree, q),)
        poses = link_poses(m.tree, q)
        J, R = placement_jacobian(m.tree, poses, placement), placement_pose(poses, placement).R
        return (J, R, jacobian_derivative(m.tree, poses, placement)) if kind == "derivative" else (J, R)

    return (compiled_over_batch if compiled else floats_over_batch)(function, {"q": (m.nq,)})


def describe(direction: np.ndarray, part: str) -> str:
    """A direction (3 or 6,) in words."""
    if part == "position":
        return f"move along {_named(direction)}"
    if part == "orientation":
        return f"rotate about {_named(direction)}"
    linear, angular = np.linalg.norm(direction[:3]), np.linalg.norm(direction[3:])
    if angular < 1e-6:
        return f"move along {_named(direction[:3])}"
    if linear < 1e-6:
        return f"rotate about {_named(direction[3:])}"
    return f"move by {_numbers(direction[:3])} while it rotates by {_numbers(direction[3:])}"


def _named(direction: np.ndarray) -> str:
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if abs(abs(direction @ axis) - np.linalg.norm(direction)) < 1e-6:
            return name
    return _numbers(direction)


def _numbers(direction: np.ndarray) -> str:
    return "(" + ", ".join(f"{x + 0:.3g}" for x in np.round(direction, 6)) + ")"
