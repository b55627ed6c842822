"""The limits of the joints, for whole arrays of configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zwang.algebra.rotations import logarithm
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Tree
from zwang.robot.independent_coordinates import IndependentCoordinates, joint_limits
from zwang.robot.sampling import sampling_bounds

WITHIN = 1e-9  # beyond a limit [rad, m]: rounding


@dataclass(frozen=True)
class Limits:
    """The limits of the joints, as whole arrays of configurations are held against them."""

    lower: np.ndarray
    upper: np.ndarray
    middle: np.ndarray
    turning: np.ndarray
    turns: np.ndarray
    balls: tuple[tuple[slice, float], ...]

    @staticmethod
    def of(c: IndependentCoordinates, m: Mechanism) -> Limits:
        lower, upper = joint_limits(m)
        low, high = sampling_bounds(m, c)
        middle = c.completed((low + high) / 2).astype(float)
        middle = np.where(np.isfinite(lower) | np.isfinite(upper), middle, np.array(m.neutral, dtype=float))
        bound = {i for tie in c.ties for i in (tie.this, tie.other)}
        turns = np.zeros(m.nq, bool)
        for link in m.tree.links:
            turns[link.q] = link.move.kind == "turn" and link.q.start not in bound
            if link.move.kind == "ball":
                middle[link.q] = (1, 0, 0, 0)
        balls = tuple(
            (j.q, float(j.joint.limits[1]))
            for j in m.joints
            if j.kind == "ball" and j.joint.limits is not None
        )
        return Limits(lower, upper, middle, np.array(c.turning), turns, balls)

    def wrapped(self, q: np.ndarray, near: np.ndarray, *, all_turns: bool) -> np.ndarray:
        """q (N, nq) with turns moved by whole turns, near to `near` and within the limits; or only those limits do not hinder."""
        columns = np.flatnonzero(self.turns & (self.turning | all_turns))
        if not len(columns):
            return q
        whole, lower, upper = 2 * math.pi, self.lower[columns], self.upper[columns]
        old = q[:, columns]
        x = old - whole * np.round((old - near[..., columns]) / whole)
        x = x - whole * np.maximum(np.ceil((x - upper) / whole), 0)
        x = x + whole * np.maximum(np.ceil((lower - x) / whole), 0)
        fits = (x <= upper) | self.turning[columns]
        wrapped = q.copy()
        wrapped[:, columns] = np.where(fits, x, old)
        return wrapped

    def hold(self, q: np.ndarray) -> np.ndarray:
        """Whether each of q (N, nq) is within the limits."""
        inside = (q >= self.lower - WITHIN) & (q <= self.upper + WITHIN)
        good = np.asarray(inside.all(axis=1))
        for part, largest in self.balls:
            angles = np.array([np.linalg.norm(logarithm(row[part])) for row in q])
            good &= angles <= largest + WITHIN
        return good


def reach_of(tree: Tree, frame: str, limits: Limits) -> tuple[np.ndarray, float]:
    """The first joint's place (3,) and a distance from it [m] that the frame's origin never exceeds; infinite for free slides."""
    place = tree.place(frame)
    path = [tree.links[i] for i in tree.path(place.link)]
    if not path:
        return np.asarray(place.p, dtype=float), 0.0
    reach = float(np.linalg.norm(np.asarray(place.p, dtype=float)))
    for link in path:
        if link.parent != WORLD:
            reach += float(np.linalg.norm(np.asarray(link.p, dtype=float)))
        if link.move.kind in ("slide", "screw"):
            i = link.q.start
            travel = max(
                abs(limits.lower[i] - float(link.reference)), abs(limits.upper[i] - float(link.reference))
            )
            reach += travel * (1.0 if link.move.kind == "slide" else abs(float(link.move.pitch)))
    return np.asarray(path[0].p, dtype=float), float(reach)
