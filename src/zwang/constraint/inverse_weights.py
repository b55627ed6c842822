"""Inverse weights: the approximate diagonal of A = J M^-1 J^T from which R is computed, one number for each
body, velocity and tendon.

Those of soft rows are computed in the home configuration and so are constants of the mechanism. A body that
cannot translate, or rotate, has the inverse weight 0 there. Source: MuJoCo, `mj_setConst`, which computes
`body_invweight0`, `dof_invweight0` and `tendon_invweight0`.

A wheel with its centre of mass on a fixed axle has the inverse weight 0 of translation, but points of its rim
move. Forces (aref - J a) / R of a row there would consist of the rounding errors of J a if R were close to 0;
its least value is therefore a small part of A at that point, see `smallest_R`.

Those of hard equalities, which scale the iteration of the method of multipliers, are the diagonal of A at the
actual configuration, see `hard_inverse_weights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import Factors, factor
from zwang.algebra.norms import TINY
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.kinematics.jacobians import path_columns
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, placement_pose
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.mechanism import JointIndex, Mechanism
from zwang.mechanism.mocap import with_home_poses
from zwang.mechanism.numbers import exact_array
from zwang.mechanism.simple_bodies import simple_bodies
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import WORLD, Placement
from zwang.scalar import divide, is_zero, maximum, minimum, where

LARGEST_IMPEDANCE = 0.9999  # MuJoCo's mjMAXIMP
SINGULAR_PIVOT = 1e-6  # of a mass matrix, relative to its diagonal entry
RESOLVED_R = 1e-9  # R relative to A: forces then have seven correct digits, and accelerations change by 1e-9
SMALLEST_SQUARE = 1e-12  # the square of a typical entry of rows of which nothing else is known


class InverseWeights(NamedTuple):
    """bodies: (of translation [1/kg], of rotation [1/(kg m^2)]) by name; speeds: of the generalised
    velocities (nv,); tendons by name; lengths: of the tendons in the home configuration [m], by name. points:
    of bodies that move, by name, the matrix P (4, 4) from which `at_point` computes that of their points.
    tendon_R: the smallest R of the rows of tendons, by name.
    """

    bodies: dict[str, tuple[Any, Any]]
    speeds: tuple[Any, ...]
    tendons: dict[str, Any]
    lengths: dict[str, Any]
    points: dict[str, np.ndarray]
    tendon_R: dict[str, Any]

    def at_point(self, body: str, point: Any, edges: Any = ()) -> Any:
        """The mean of the diagonal of J M^-1 J^T [1/kg] over three axes at a point (3,) [m] of a body, in its
        axes, in the home configuration; 0 for the world.

        edges: three vectors (3,) [m], half the edges of a box about the point; the mean is then also one over
        its corners.
        """
        if body not in self.points:
            return 0
        P, p = self.points[body], np.array([*point, 1])
        # corners p + sum_i (+-) e_i: the mean of the quadratic form is that at p plus those of the e_i
        return sum((e @ P[:3, :3] @ e for e in edges), start=p @ P @ p) / 3

    def of_rows(self, A: Any) -> list[Any]:
        """The approximate diagonal of A M^-1 A^T for rows A (k, nv): sum_k A_ik^2 w_k over the velocities."""
        return [sum((x * x * w for x, w in zip(row, self.speeds, strict=True)), start=0) for row in A]


def inverse_weights(mechanism: Mechanism) -> InverseWeights:
    """Inverse weights of a mechanism's bodies, generalised velocities and tendons in its home
    configuration.
    """
    mechanism = with_home_poses(mechanism)
    tree, q = mechanism.tree, exact_array(mechanism.home or mechanism.neutral)
    kinematics, inverse = Kinematics(tree, q), inverse_mass_matrix(mechanism, q)
    bodies: dict[str, tuple[Any, Any]] = {"world": (0, 0)}
    simple = {name: 1 / maximum(TINY, mechanism.body(name).mass) for name in simple_bodies(mechanism.bodies)}
    for body in mechanism.bodies:
        base = tree.placement(body.name)
        bodies[body.name] = (
            (simple[body.name], 0)
            if body.name in simple
            else _of_body(mechanism, kinematics.poses, inverse, base, body.com)
        )
    speeds: list[Any] = []
    for joint in mechanism.joints:
        diagonal = np.diag(inverse)[joint.v]
        speeds += [simple[joint.body]] if joint.body in simple else _of_joint(joint, diagonal)
    found = _tendons(mechanism, kinematics)
    tendons = {name: moment @ inverse @ moment for name, (_, moment) in found.items()}
    matrices = _of_links(mechanism, kinematics.poses, inverse)
    points = {
        body.name: _in_frame(matrices, tree.placement(body.name))
        for body in mechanism.bodies
        if tree.placement(body.name).link != WORLD
    }
    tendon_R = {
        tendon.name: smallest_R(tendons[tendon.name], _along_path(matrices, mechanism, tendon))
        for tendon in mechanism.tendons
    }
    return InverseWeights(bodies, tuple(speeds), tendons, _lengths(found), points, tendon_R)


def smallest_R(inverse_weight: Any, A: Any) -> Any:
    """The least R of rows with this inverse weight, where the diagonal of J M^-1 J^T is about A.

    It is `TINY`, MuJoCo's, where the inverse weight makes every R larger than that; otherwise `RESOLVED_R` A.
    """
    resolved = inverse_weight * (1 - LARGEST_IMPEDANCE) >= TINY
    return where(resolved, TINY, maximum(TINY, RESOLVED_R * A))


def zero_inverse_weights(mechanism: Mechanism) -> InverseWeights:
    """Inverse weights of zero, for hard rows, which do not depend on them, and the lengths of the tendons."""
    bodies = {"world": (0, 0)} | {body.name: (0, 0) for body in mechanism.bodies}
    found = {}
    if mechanism.tendons:
        mechanism = with_home_poses(mechanism)
        found = _tendons(
            mechanism, Kinematics(mechanism.tree, exact_array(mechanism.home or mechanism.neutral))
        )
    return InverseWeights(
        bodies, (0,) * mechanism.nv, dict.fromkeys(found, 0), _lengths(found), {}, dict.fromkeys(found, TINY)
    )


def _tendons(mechanism: Mechanism, kinematics: Kinematics) -> dict[str, tuple[Any, Any]]:
    """Length [m] and moment arms (nv,) [m, -] of the tendons, by name."""
    return {tendon.name: tendon_length(mechanism, tendon, kinematics) for tendon in mechanism.tendons}


def _lengths(tendons: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    return {name: length for name, (length, _) in tendons.items()}


def inverse_mass_matrix(mechanism: Mechanism, q: Any) -> np.ndarray:
    """M^-1 (nv, nv), by the LTDL factorisation of the mass matrix of each kinematic tree.

    Where M is singular, its pivots are at least `TINY`, as in MuJoCo's `mj_factorM`; at most `SINGULAR_PIVOT`
    of the diagonal entry, of inertias that are as small.
    """
    M, parents = crba(mechanism.tree, q), velocity_parents(mechanism.tree)
    inverse = np.zeros(M.shape, int).astype(object)
    trees = np.array(mechanism.tree.kinematic_trees, int)
    for tree in (np.flatnonzero(trees == t).tolist() for t in dict.fromkeys(trees.tolist())):
        number = {-1: -1} | {k: n for n, k in enumerate(tree)}
        own_parents = [number[parents[k]] for k in tree]
        own = M[np.ix_(tree, tree)]
        smallest = [where(x > 0, minimum(TINY, SINGULAR_PIVOT * x), TINY) for x in np.diag(own)]
        factors = factor(own, own_parents, smallest)
        for k, unit in zip(tree, np.eye(len(tree), dtype=int), strict=True):
            inverse[tree, k] = factors.solve(unit)
    return np.array(inverse.tolist()).reshape(M.shape)  # of floats, if all entries are


def hard_inverse_weights(factors: Factors, A: Any, squares: Any = None) -> list[Any]:
    """The inverse weights (k,) of hard rows A (k, nv): the diagonal of A M^-1 A^T at the actual
    configuration, at least sum_k squares_ik / M_kk.

    factors: of M there. squares (k, nv): the squares of typical entries of the rows, by default
    `SMALLEST_SQUARE` for each entry that is not zero by structure. The lower bound is for rows that vanish
    but for rounding, as that of a linkage at a dead centre: with a scale of their own they would be satisfied
    to their rounding errors.
    """
    weights = factors.inverse_diagonal(A)
    if squares is None:
        squares = [[0 if is_zero(x) else SMALLEST_SQUARE for x in row] for row in A]
    bounds = [
        sum((divide(x, factors.H[k][k]) for k, x in enumerate(row) if not is_zero(x)), start=0)
        for row in squares
    ]
    return [maximum(x, y) for x, y in zip(weights, bounds, strict=True)]


def _of_links(mechanism: Mechanism, poses: list[Pose], inverse: np.ndarray) -> dict[int, np.ndarray]:
    """By link the matrix P (4, 4) with (p, 1)^T P (p, 1) = tr(J M^-1 J^T) at its point p (3,), of links with
    bodies or frames.

    With W = J M^-1 J^T (6, 6) at the origin of the link, as the covariance of (v, w):
    |v + w x p|^2 = v . v + 2 p . (v x w) + p^T (w . w - w w^T) p.
    """
    found = dict[int, np.ndarray]()
    for i in {place.link for place in mechanism.tree.placements.values()} - {WORLD}:
        R, p = poses[i]
        J, own_inverse = _moving_jacobian(mechanism, poses, inverse, i, p)
        J = np.concatenate([R.T @ J[:3], R.T @ J[3:]])
        W = J @ own_inverse @ J.T
        vw, ww = W[:3, 3:], W[3:, 3:]
        moment = np.array([vw[1, 2] - vw[2, 1], vw[2, 0] - vw[0, 2], vw[0, 1] - vw[1, 0]]).reshape(3, 1)
        square = np.array([[np.trace(W[:3, :3])]])
        found[i] = np.block([[np.trace(ww) * np.eye(3, dtype=int) - ww, moment], [moment.T, square]])
    return found


def _moving_jacobian(
    mechanism: Mechanism, poses: list[Pose], inverse: np.ndarray, link: int, p: Any
) -> tuple[np.ndarray, np.ndarray]:
    """J (6, n) of a point of a link by the n velocities that move it, and their part of M^-1."""
    columns = path_columns(mechanism.tree, poses, link, p)
    return np.array(list(columns.values())).reshape(-1, 6).T, inverse[np.ix_(list(columns), list(columns))]


def _in_frame(matrices: Mapping[int, np.ndarray], placement: Placement) -> np.ndarray:
    """The matrix P of a link (see `_of_links`) for points in the axes of a frame that is fixed to it."""
    R, p = placement.R, np.array(placement.p).reshape(3, 1)
    T = np.block([[R, p], [np.zeros((1, 3), int), np.ones((1, 1), int)]])
    return T.T @ matrices[placement.link] @ T


def _along_path(matrices: Mapping[int, np.ndarray], mechanism: Mechanism, tendon: Tendon) -> Any:
    """The largest inverse weight of the points on a spatial tendon's path; 0 for a fixed tendon, of which the
    moments are constant.
    """
    places = [mechanism.tree.placement(name) for name in tendon.path or () if name is not None]
    moving = [place for place in places if place.link != WORLD]
    return reduce(maximum, [_in_frame(matrices, place)[3, 3] / 3 for place in moving], 0)


def _of_body(
    mechanism: Mechanism, poses: list[Pose], inverse: np.ndarray, base: Placement, com: Any
) -> tuple[Any, Any]:
    """Means of the diagonal of J M^-1 J^T over the axes of translation and of rotation, at the centre of
    mass.
    """
    if base.link == WORLD:
        return 0, 0
    place = Placement(base.link, base.R, base.p + base.R @ np.array(com))
    J, own_inverse = _moving_jacobian(mechanism, poses, inverse, base.link, placement_pose(poses, place).p)
    diagonal = [row @ own_inverse @ row for row in J]
    return sum(diagonal[:3]) / 3, sum(diagonal[3:]) / 3


def _of_joint(joint: JointIndex, diagonal: Any) -> list[Any]:
    """Inverse weights of a joint's velocities; those of free and ball joints are the means over
    three axes.
    """
    if joint.kind not in ("free", "ball"):
        return list(diagonal)
    triples = [diagonal[k : k + 3] for k in range(0, len(diagonal), 3)]
    return [sum(triple) / 3 for triple in triples for _ in range(3)]
