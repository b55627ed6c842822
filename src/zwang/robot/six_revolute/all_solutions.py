"""All joint angles of an arm with six revolute joints that bring a frame to a pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.errors import DescriptionError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.independent_coordinates import joint_limits
from zwang.robot.inverse_kinematics.targets import TargetLike, read_target
from zwang.robot.six_revolute.general_chain import candidates
from zwang.robot.six_revolute.revolute_chain import RevoluteChain, homogeneous, revolute_chain
from zwang.robot.six_revolute.spherical_wrist import spherical_wrist_candidates, wrist_heights

RESIDUAL = 1e-10  # [rad, length of the chain] of a solution
SAME = (
    1e-5  # [rad] solutions nearer to each other are one; double solutions are known to about its square root
)
SINGULAR = 1e-5  # smallest singular value of J, relative to the largest, of a singular solution
LIMIT_ROUNDING = 1e-9  # [rad] allowed beyond a limit


@dataclass(frozen=True)
class AllIKSolutions:
    """The result of `all_ik_solutions`.

    q (n, nq): the configurations, sorted. within_limits (n,): whether the joint limits hold; angles are
    shifted by whole revolutions where that brings them within. singular (n,): whether the Jacobian is
    singular there; such a solution is double, or one of a continuum, of which a few are given. residual (n,):
    the error of the pose by forward kinematics [m, rad]. method: "spherical wrist" or "elimination".
    """

    q: np.ndarray
    within_limits: np.ndarray
    singular: np.ndarray
    residual: np.ndarray
    method: str

    def __len__(self) -> int:
        return len(self.q)

    def __str__(self) -> str:
        return f"{len(self)} solutions, {int(self.within_limits.sum())} within the limits, by {self.method}"


@validated_arguments("target")
def all_ik_solutions(
    mechanism: Mechanism, frame: str, target: TargetLike, *, q0: ArrayLike | None = None
) -> AllIKSolutions:
    """All configurations of an arm with six revolute joints whose frame has a given pose.

    frame: a body or frame that six revolute joints carry. target: one pose, (R, p) or a 4x4 matrix. q0 (nq,):
    the coordinates of the other joints of the mechanism, default the neutral configuration.

    A general arm has up to 16 solutions, found by elimination to a generalised eigenvalue problem, from each
    joint of the closed chain in turn; an arm whose last three axes meet in a point up to 8, found in closed
    form. All are refined by Newton's method, and those whose residual by forward kinematics is below 1e-10
    rad and 1e-10 of the length of the chain are returned, for a target out of reach none. Joint limits are
    reported, not applied.
    Raises UnknownNameError for an unknown frame, DescriptionError for another kind of arm, ShapeError and
    StateError for the target.
    Source: Raghavan, Roth (1993), Manocha, Canny (1994), Pieper (1968); see `zwang.robot.six_revolute`.
    """
    m = validation.numeric_mechanism(mechanism)
    chain = revolute_chain(m, frame)
    read = read_target(target, "pose")
    if read.batch or read.R is None or read.p is None:
        raise DescriptionError("target of all_ik_solutions must be one pose; call it for each of several")
    start = validation.configuration(m, m.neutral if q0 is None else q0)
    unit = chain.length or 1.0
    scaled = chain.scaled(1 / unit)
    T = homogeneous(read.R[0], read.p[0] / unit)
    heights = wrist_heights(scaled)
    t = candidates(scaled.B, T) if heights is None else spherical_wrist_candidates(scaled, T, heights)
    t = _distinct(scaled, t, T)
    singular = _is_singular(scaled, t)
    q = np.tile(start, (len(t), 1))
    columns = list(chain.coordinates)
    q[:, columns] = _wrapped(t + chain.reference)
    q, within = _shifted(m, q, columns)
    residual = _residuals(chain, q[:, columns] - chain.reference, read.R[0], read.p[0])
    order = np.lexsort(np.round(q[:, columns], 6).T[::-1]) if len(q) else []
    return AllIKSolutions(
        q[order], within[order], singular[order], residual[order],
        "elimination" if heights is None else "spherical wrist",
    )  # fmt: skip


def _distinct(chain: RevoluteChain, t: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The solutions (n, 6) among the candidates, each once, refined."""
    if not len(t):
        return t
    t, residual = chain.refined(t, T)
    found: list[np.ndarray] = []
    for x, _ in sorted(
        ((x, r) for x, r in zip(t, residual, strict=True) if r < RESIDUAL), key=lambda pair: pair[1]
    ):
        if all(np.abs(_wrapped(x - other)).max() > SAME for other in found):
            found.append(x)
    return np.array(found).reshape(-1, t.shape[1])


def _is_singular(chain: RevoluteChain, t: np.ndarray) -> np.ndarray:
    """Whether the Jacobian is singular at each of the angles t (n, 6)."""
    if not len(t):
        return np.zeros(0, bool)
    s = np.linalg.svd(chain.jacobian(t), compute_uv=False)
    return s[:, -1] < SINGULAR * s[:, 0]


def _residuals(chain: RevoluteChain, t: np.ndarray, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The errors (n,) of the pose: the larger of the distance [m] and of the largest element of R - R_d."""
    T = chain.pose(t)
    position = np.linalg.norm(T[..., :3, 3] - p, axis=-1)
    return np.maximum(position, np.abs(T[..., :3, :3] - R).max(axis=(-2, -1)))


def _wrapped(t: np.ndarray) -> np.ndarray:
    """Angles shifted by whole revolutions into [-pi, pi)."""
    return (t + np.pi) % (2 * np.pi) - np.pi


def _shifted(m: Mechanism, q: np.ndarray, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """q with angles shifted by whole revolutions within their limits where there is such an angle, and
    whether all are within.
    """
    lower, upper = (limit[columns] for limit in joint_limits(m))
    x = q[:, columns]
    below = np.where(np.isfinite(lower), np.ceil((lower - LIMIT_ROUNDING - x) / (2 * np.pi)), 0.0)
    x = x + 2 * np.pi * np.maximum(below, 0)
    above = np.where(np.isfinite(upper), np.ceil((x - upper - LIMIT_ROUNDING) / (2 * np.pi)), 0.0)
    x = x - 2 * np.pi * np.maximum(above, 0)
    q = q.copy()
    q[:, columns] = x
    inside = (x >= lower - LIMIT_ROUNDING) & (x <= upper + LIMIT_ROUNDING)
    return q, np.asarray(inside.all(axis=1))
