"""The vertex of a polyhedron that is farthest along a direction: NumPy's maximum over all vertices."""

import numpy as np
import pytest

from zwang.algebra.convex_hull import convex_hull
from zwang.api.compilation.compiled import compile_function
from zwang.collision.convex.polyhedra import FEWEST, Polyhedron, polyhedron_of, polyhedron_tables
from zwang.scalar import empty, fori_loop


def polyhedron(count):
    """Vertices of a convex hull: on an ellipsoid, denser at one end, and the corners of a small box."""
    rng = np.random.default_rng(count)
    points = rng.normal(size=(count, 3)) + np.array([0.0, 0.0, 0.5])
    points = points / np.linalg.norm(points, axis=1)[:, None] * [0.1, 0.2, 0.15]
    box = 0.11 * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    points = np.concatenate([points, box])
    return points[convex_hull(points).corners]


def directions(vertices):
    """At random, along axes and diagonals, and along the normals of faces, where vertices tie."""
    rng = np.random.default_rng(3)
    found = [
        rng.normal(size=(60, 3)),
        rng.integers(-1, 2, (20, 3)) * 2.0,
        convex_hull(vertices).planes[:40, :3],
    ]
    return np.concatenate(found)


@pytest.mark.parametrize("count", [FEWEST // 2, 2 * FEWEST, 900, 4000])
def test_no_vertex_is_farther(count):
    vertices = polyhedron(count)
    for d in directions(vertices):
        assert polyhedron_of(vertices).farthest(d) @ d == pytest.approx((vertices @ d).max(), abs=1e-15)


def test_compiled_it_is_the_same_vertex_in_every_world():
    vertices = polyhedron(900)
    D = np.random.default_rng(4).normal(size=(21, 3))
    compiled = compile_function(lambda d: polyhedron_of(vertices).farthest(d), {"d": 3}, threads=1)
    np.testing.assert_array_equal(compiled(D), [polyhedron_of(vertices).farthest(d) for d in D])
    np.testing.assert_array_equal(compiled(D), vertices[np.argmax(D @ vertices.T, axis=1)])
    D[3] = np.nan  # a world that failed does not stop the others
    np.testing.assert_array_equal(compiled(D)[4:], vertices[np.argmax(D[4:] @ vertices.T, axis=1)])


def test_one_of_several_polyhedra_is_chosen_by_an_index():
    """In a loop over polyhedra of very different sizes, as that over the pairs of a group."""
    polyhedra = [polyhedron(n) for n in (4, 900, 70)]
    tables = polyhedron_tables(tuple(polyhedron_of(vertices).tables for vertices in polyhedra))
    D = np.random.default_rng(5).normal(size=(11, 3))

    def farthest(d):
        def visit(k, found):
            for c, x in enumerate(Polyhedron(tables, k).farthest(d)):
                found = found.set((k, c), x)
            return found

        found = fori_loop(0, len(polyhedra), visit, empty((len(polyhedra), 3)), unroll=False)
        return [found[k, c] for k in range(len(polyhedra)) for c in range(3)]

    compiled = compile_function(lambda d: np.array(farthest(d)), {"d": 3}, threads=1)(D)
    expected = [np.concatenate([vertices[np.argmax(vertices @ d)] for vertices in polyhedra]) for d in D]
    np.testing.assert_array_equal(compiled, expected)
    np.testing.assert_array_equal([farthest(d) for d in D], expected)
