"""Joint limits, evaluated for whole arrays of configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zwang.algebra.rotations import logarithm
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.robot.independent_coordinates import IndependentCoordinates, ball_limits, joint_limits
from zwang.robot.sampling import sampling_bounds

TOLERANCE = 1e-9  # [rad, m] rounding allowed beyond a limit


@dataclass(frozen=True)
class JointLimits:
    """The joint limits of a mechanism.

    lower, upper (nq,): infinite where there is no limit. middle (nq,): the middle between the limits.
    revolving (nq,): coordinates whose limits allow a whole revolution. revolute (nq,): angles of revolute
    joints whose coordinates no constraint compares. balls: for each limited ball joint its coordinates and
    its largest angle [rad].
    """

    lower: np.ndarray
    upper: np.ndarray
    middle: np.ndarray
    revolving: np.ndarray
    revolute: np.ndarray
    balls: tuple[tuple[slice, float], ...]

    @staticmethod
    def of(c: IndependentCoordinates, m: Mechanism) -> JointLimits:
        lower, upper = joint_limits(m)
        low, high = sampling_bounds(m, c)
        middle = c.completed((low + high) / 2).astype(float)
        middle = np.where(np.isfinite(lower) | np.isfinite(upper), middle, np.array(m.neutral, dtype=float))
        revolute = np.zeros(m.nq, bool)
        for link in m.tree.links:
            revolute[link.q] = link.joint.kind == "revolute" and not c.compared[link.q.start]
            if link.joint.kind == "ball":
                middle[link.q] = (1, 0, 0, 0)
        return JointLimits(lower, upper, middle, np.array(c.revolving), revolute, ball_limits(m))

    def wrapped(self, q: np.ndarray, near: np.ndarray, *, all_revolutions: bool) -> np.ndarray:
        """q (N, nq) with angles shifted by whole revolutions, near to `near` and within the limits.

        Shifts only the coordinates whose limits allow a whole revolution, or, with all_revolutions, those of
        all revolute joints.
        """
        columns = np.flatnonzero(self.revolute & (self.revolving | all_revolutions))
        if not len(columns):
            return q
        whole, lower, upper = 2 * math.pi, self.lower[columns], self.upper[columns]
        old = q[:, columns]
        # x = q - 2 pi round((q - near) / (2 pi)), then back between the limits
        x = old - whole * np.round((old - near[..., columns]) / whole)
        x = x - whole * np.maximum(np.ceil((x - upper) / whole), 0)
        x = x + whole * np.maximum(np.ceil((lower - x) / whole), 0)
        fits = (x <= upper) | self.revolving[columns]
        wrapped = q.copy()
        wrapped[:, columns] = np.where(fits, x, old)
        return wrapped

    def contain(self, q: np.ndarray) -> np.ndarray:
        """Whether each configuration of q (N, nq) is within the limits (N,)."""
        inside = (q >= self.lower - TOLERANCE) & (q <= self.upper + TOLERANCE)
        within = np.asarray(inside.all(axis=1))
        for part, largest in self.balls:
            angles = np.array([np.linalg.norm(logarithm(row[part])) for row in q])
            within &= angles <= largest + TOLERANCE
        return within


def reach_bound(tree: Tree, frame: str, limits: JointLimits) -> tuple[np.ndarray, float]:
    """The position (3,) of the first joint and an upper bound [m] of the frame's distance from it.

    The bound is the sum of the link lengths and of the travel of prismatic and screw joints; it is infinite
    for a prismatic joint without limits.
    """
    placement = tree.placement(frame)
    path = [tree.links[i] for i in tree.path(placement.link)]
    if not path:
        return np.asarray(placement.p, dtype=float), 0.0
    reach = float(np.linalg.norm(np.asarray(placement.p, dtype=float)))
    for link in path:
        if link.parent != WORLD:
            reach += float(np.linalg.norm(np.asarray(link.p, dtype=float)))
        if link.joint.kind in ("prismatic", "screw"):
            i = link.q.start
            travel = max(
                abs(limits.lower[i] - float(link.reference)), abs(limits.upper[i] - float(link.reference))
            )
            reach += travel * (1.0 if link.joint.kind == "prismatic" else abs(float(link.joint.pitch)))
    return np.asarray(path[0].p, dtype=float), float(reach)
