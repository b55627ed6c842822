"""Distances and penetration depths of convex shapes over thousands of random poses and sizes, against bounds
that need no iteration, and a search over all directions.
"""

from functools import cache

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from tests.collision.test_convex_contacts import support
from zwang.collision.convex.nearest_points import nearest_points
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.convex.support_functions import convex_shape_of
from zwang.collision.shapes import PlacedShape
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction

KINDS = [
    ("ellipsoid", "box"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "cylinder"),
    ("cylinder", "cylinder"),
]
SIZES = {"ellipsoid": 3, "box": 3, "cylinder": 2}
SPREADS = ((0.0, 0.6), (0.5, 0.6), (1.0, 0.8))  # of the logarithm of the sizes, and of the positions


@cache
def compiled_nearest_points(kinds):
    """Of sizes, orientation and position of both shapes: the distance, the normal and the nearest points."""

    def values(*x):
        shapes = [PlacedShape(tuple(x[k]), x[k + 1].reshape(3, 3), x[k + 2]) for k in (0, 3)]
        found = nearest_points(*map(convex_shape_of, kinds, shapes))
        return np.array([found.distance, *found.normal, *found.first, *found.second])

    sizes = [size for kind in kinds for size in (SIZES[kind], 9, 3)]
    inputs = {f"x{k}": size for k, size in enumerate(sizes)}
    return CompiledFunction(trace_and_optimise(values, inputs), threads=1)


class Poses:
    """Random shapes of two kinds, with their signed distance, normal and nearest points, compiled."""

    def __init__(self, kinds, spread, distance, count, seed):
        rng = np.random.default_rng(seed)
        self.kinds = kinds
        self.sizes = [0.3 * np.exp(spread * rng.normal(size=(count, SIZES[kind]))) for kind in kinds]
        self.R = [Rotation.random(count, random_state=rng).as_matrix() for _ in kinds]
        self.p = [np.zeros((count, 3)), distance * rng.normal(size=(count, 3))]
        self.scale = self.sizes[0].sum(axis=1) + self.sizes[1].sum(axis=1)

    def found(self):
        """Distance (count,), normal and nearest points (count, 3)."""
        arrays = [x for k in (0, 1) for x in (self.sizes[k], self.R[k].reshape(-1, 9), self.p[k])]
        out = np.asarray(compiled_nearest_points(self.kinds)(*arrays))
        return out[:, 0], out[:, 1:4], out[:, 4:7], out[:, 7:10]

    def overlap(self, D, chosen):
        """The overlap along the unit vectors D (n, 3) of the chosen poses (n,)."""
        out = 0
        for k, sign in ((0, 1), (1, -1)):
            local = np.einsum("nij,ni->nj", self.R[k][chosen], sign * D)
            sizes = self.sizes[k][chosen]
            zero = PlacedShape(np.ones(3), np.eye(3), np.zeros(3))
            if self.kinds[k] == "ellipsoid":  # of a unit ball, and of a unit cube
                out = out + support("ellipsoid", zero, local * sizes)
            elif self.kinds[k] == "box":
                out = out + support("box", zero, local * sizes)
            else:
                out = out + sizes[:, 0] * np.hypot(*local[:, :2].T) + sizes[:, 1] * abs(local[:, 2])
            out = out + sign * np.sum(D * self.p[k][chosen], axis=1)
        return out

    def inside(self, k, X):
        """The points X (n, 3), or points of the shape k near them where they are outside."""
        x, s = np.einsum("nij,ni->nj", self.R[k], X - self.p[k]), self.sizes[k]
        if self.kinds[k] == "box":
            x = np.clip(x, -s, s)
        elif self.kinds[k] == "ellipsoid":
            x = x / np.maximum(np.linalg.norm(x / s, axis=1), 1)[:, None]
        else:
            radial = np.minimum(s[:, 0] / np.hypot(x[:, 0], x[:, 1]), 1)
            x = np.column_stack([x[:, 0] * radial, x[:, 1] * radial, np.clip(x[:, 2], -s[:, 1], s[:, 1])])
        return self.p[k] + np.einsum("nij,nj->ni", self.R[k], x)

    def searched(self, D, chosen, widths, rng):
        """The least overlap (n,) at and around D (n, 3), by random steps of the widths."""
        D, least = D.copy(), self.overlap(D, chosen)
        for width in widths:
            new = D + width * rng.normal(size=D.shape)
            new /= np.linalg.norm(new, axis=1)[:, None]
            overlap = self.overlap(new, chosen)
            better = overlap < least
            D[better], least = new[better], np.minimum(least, overlap)
        return least


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_distances_are_between_bounds_that_meet(kinds):
    """Two points of the shapes are at least as far apart as the shapes, and the separation along a direction
    is at most their distance; here the bounds meet. An overlap along the normal is the depth.
    """
    for spread, distance in SPREADS:
        poses = Poses(kinds, spread, distance, 10_000, 1)
        signed, n, first, second = poses.found()
        scale, everything = poses.scale, np.arange(10_000)
        apart, off = signed > 0, np.abs((signed + poses.overlap(n, everything)) / scale)
        assert off[apart].max() < 1e-9 and off.max() < 1e-7
        assert apart.sum() > 2_500
        first, second = poses.inside(0, first), poses.inside(1, second)
        between = np.linalg.norm(second - first, axis=1)
        # where Newton's method fails, as at some rims, the points are those of the search, whose tolerance is
        # 1e-10 of the size along the normal
        errors = np.abs((between - signed) / scale)[apart]
        assert np.quantile(errors, 0.999) < 1e-12 and errors.max() < 5e-10


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_depths_are_least_among_the_directions_around_the_normal(kinds):
    """Also where the curvature of the shapes nearly equals the depth, so that the least depth is flat, and
    from a direction at which the overlap is stationary but not least.
    """
    rng, compared = np.random.default_rng(2), 0
    for spread, distance in (*SPREADS, (0.0, 0.3)):
        poses = Poses(kinds, spread, distance, 10_000, 3)
        signed, n, _, _ = poses.found()
        chosen = np.flatnonzero(signed < 0)
        least = poses.searched(n[chosen], chosen, np.repeat(10.0 ** np.arange(-2, -6, -1), 25), rng)
        assert ((-signed[chosen] - least) / poses.scale[chosen]).max() < 1e-10
        compared += len(chosen)
    assert compared > 10_000


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_depths_are_least_among_all_directions(kinds):
    """Shallow ones and deep ones, where there are other local minima."""
    for spread, distance in SPREADS:
        poses = Poses(kinds, spread, distance, 6_000, 5)
        least, excess = excess_of_depths(poses)
        assert np.sum(least < 0.02) > 20
        assert excess.max() < 1e-8


def excess_of_depths(poses):
    """The least overlaps (n,) by a search from the best of many directions, and by how much the depths are
    larger, relative to the size.
    """
    rng = np.random.default_rng(4)
    z = 1 - (2 * np.arange(150) + 1) / 150
    sphere = Rotation.from_rotvec(np.outer(np.arange(150) * np.pi * (3 - 5**0.5), [0, 0, 1])).apply(
        np.stack([np.sqrt(1 - z * z), 0 * z, z], axis=1)
    )
    signed, *_ = poses.found()
    chosen = np.flatnonzero(signed < 0)
    tried = [np.broadcast_to(d, (len(chosen), 3)) for d in sphere]
    tried += [s * poses.R[k][chosen][:, :, j] for k in (0, 1) for j in range(3) for s in (1, -1)]
    values = np.array([poses.overlap(d, chosen) for d in tried])
    order, least = np.argsort(values, axis=0), np.inf
    widths = np.repeat(10.0 ** np.linspace(-0.7, -5, 8), 10)
    for pick in (0, 2, 8):
        start = np.array([tried[o][i] for i, o in enumerate(order[pick])])
        least = np.minimum(least, poses.searched(start, chosen, widths, rng))
    return least / poses.scale[chosen], (-signed[chosen] - least) / poses.scale[chosen]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_depths_are_least_where_the_centres_nearly_coincide(kinds):
    """The overlaps along opposite directions are nearly equal; the few others are in the documentation."""
    _, excess = excess_of_depths(Poses(kinds, 0.5, 1e-3, 2_000, 7))
    assert len(excess) == 2_000 and np.sum(excess > 1e-5) <= 2 and excess.max() < 3e-3


def test_the_depth_of_boxes_with_one_centre_is_by_the_separating_axis_theorem():
    poses = Poses(("box", "box"), 0.5, 0.0, 500, 8)
    signed, n, first, second = poses.found()
    everything = np.arange(500)
    axes = [poses.R[k][:, :, j] for k in (0, 1) for j in range(3)]
    axes += [np.cross(x, y) for x in axes[:3] for y in axes[3:]]
    least = [poses.overlap(x / np.linalg.norm(x, axis=1)[:, None], everything) for x in axes]
    np.testing.assert_allclose(-signed, np.min(least, axis=0), atol=1e-12)
    np.testing.assert_allclose(second - first, signed[:, None] * n, atol=1e-9)


def test_depths_of_meshes_are_the_distance_of_the_nearest_face_of_their_difference():
    """The difference of two polyhedra is the convex hull of the differences of their vertices."""
    rng, excess = np.random.default_rng(6), []
    for most, poses in ((40, 450), (40, 450), (400, 30)):
        hulls = []
        for _ in range(2):
            x = rng.normal(size=(rng.integers(most // 5, most), 3))
            x *= 0.1 * np.exp(0.5 * rng.normal(size=3)) / np.linalg.norm(x, axis=1)[:, None]
            hulls.append(x[ConvexHull(x).vertices])

        def values(*x, hulls=hulls):
            shapes = [PlacedShape(polyhedron_of(hulls[k]), x[k].reshape(3, 3), x[k + 2]) for k in (0, 1)]
            found = nearest_points(*(convex_shape_of("mesh", shape) for shape in shapes))
            return np.array([found.distance])

        R = [Rotation.random(poses, random_state=rng).as_matrix() for _ in hulls]
        p = [np.zeros((poses, 3)), 0.08 * rng.normal(size=(poses, 3))]
        program = trace_and_optimise(values, {"x0": 9, "x1": 9, "x2": 3, "x3": 3})
        compiled = CompiledFunction(program, threads=1)
        signed = np.asarray(compiled(R[0].reshape(-1, 9), R[1].reshape(-1, 9), *p))[:, 0]
        alone = [compiled(R[0][k].ravel(), R[1][k].ravel(), p[0][k], p[1][k])[0] for k in range(25)]
        np.testing.assert_array_equal(alone, signed[:25])  # whatever the worlds beside it
        for k in np.flatnonzero(signed < 0):
            first, second = (x @ rotation[k].T + at[k] for x, rotation, at in zip(hulls, R, p, strict=True))
            difference = ConvexHull((first[:, None] - second).reshape(-1, 3))
            size = np.ptp(first, axis=0).max() + np.ptp(second, axis=0).max()
            excess.append((-signed[k] + difference.equations[:, 3].max()) / size)
    excess = np.array(excess)
    assert len(excess) > 500 and excess.min() > -1e-9
    assert excess.max() < 1e-9
