"""Meshes in contact: convex polyhedra, of which one is chosen by an index that a loop may read from a table.

So one loop finds the contacts of pairs with different meshes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from zwang.algebra.convex_hull import convex_hull, hull_polygons
from zwang.collision.convex.direction_cells import DirectionCells, direction_cells, farther, nearer
from zwang.collision.convex.face_tables import Faces, FlatFaces, faces_of_polyhedra
from zwang.errors import DescriptionError
from zwang.mechanism.geometry import Mesh, MeshHull
from zwang.scalar import Table, for_each, fori_loop, table, without_derivatives

FEWEST = 64  # vertices from which on cells of directions are faster than a loop over all vertices
LARGEST_FACE_COUNT = 300  # of a hull; the normals of larger ones are not tried as directions


class VertexHull:
    """A convex polyhedron by its vertices (n, 3) [m], and its faces, which are computed when they are first
    read unless they are given.
    """

    def __init__(self, vertices: np.ndarray, given: Faces | None = None) -> None:
        self.vertices, self._given = vertices, given

    @cached_property
    def faces(self) -> Faces:
        """Its faces; none if it is flat."""
        if self._given is not None:
            return self._given
        normals, polygons = hull_polygons(self.vertices)
        return Faces(normals.reshape(-1, 3), self.vertices, polygons)


class PolyhedronTables:
    """What is known of polyhedra as tables with rows for each of them, computed when they are first read."""

    def __init__(self, hulls: Sequence[VertexHull]) -> None:
        self.hulls = tuple(hulls)
        self.polyhedra = tuple(hull.vertices for hull in hulls)

    @cached_property
    def vertices(self) -> Table | None:
        """The vertices of a single polyhedron that has few."""
        few = len(self.polyhedra) == 1 and len(self.polyhedra[0]) < FEWEST
        return table(self.polyhedra[0]) if few else None

    @cached_property
    def cells(self) -> DirectionCells:
        """The vertices by direction."""
        return direction_cells(self.polyhedra)

    @cached_property
    def sizes(self) -> Table:
        """The largest coordinates."""
        return table([float(np.abs(vertices).max()) for vertices in self.polyhedra])

    @cached_property
    def radii(self) -> Table:
        """The radii of bounding spheres about the origin."""
        return table([float(np.linalg.norm(vertices, axis=-1).max()) for vertices in self.polyhedra])

    @cached_property
    def extents(self) -> Table:
        """The least and the largest coordinates (n, 6)."""
        return table([[*vertices.min(axis=0), *vertices.max(axis=0)] for vertices in self.polyhedra])

    @cached_property
    def half_thicknesses(self) -> Table:
        """Half of the smallest extents along the axes."""
        return table([float(np.ptp(vertices, axis=0).min() / 2) for vertices in self.polyhedra])

    @cached_property
    def normals(self) -> tuple[Table, Table] | None:
        """The outward normals of the faces of all polyhedra, and the number of the first one of each, then
        that of all; None if no polyhedron has any.
        """
        found = [face_normals(vertices) for vertices in self.polyhedra]
        if not any(map(len, found)):
            return None
        return table(np.concatenate(found)), table(np.cumsum([0, *map(len, found)]))

    @cached_property
    def clockwise(self) -> FlatFaces | None:
        """The faces, with their corners clockwise as seen from outside; None if all polyhedra are flat."""
        return faces_of_polyhedra([hull.faces for hull in self.hulls], clockwise=True)

    @cached_property
    def counterclockwise(self) -> FlatFaces | None:
        """The faces, with their corners counterclockwise; None if all polyhedra are flat."""
        return faces_of_polyhedra([hull.faces for hull in self.hulls], clockwise=False)


@dataclass(frozen=True)
class Polyhedron:
    """One of several convex polyhedra; number: its index, which may be traced."""

    tables: PolyhedronTables
    number: Any = 0

    @property
    def corners(self) -> np.ndarray:
        """Its vertices (n, 3) [m]; the number must be a plain one."""
        return self.tables.polyhedra[self.number]

    @property
    def size(self) -> Any:
        """The largest coordinate [m]."""
        return self.tables.sizes[self.number]

    @property
    def radius(self) -> Any:
        """The radius of the bounding sphere about the origin [m]."""
        return self.tables.radii[self.number]

    @property
    def extents(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest coordinates (3,) [m]."""
        row = self.tables.extents[self.number]
        return row[:3], row[3:]

    @property
    def half_thickness(self) -> Any:
        """Half of the smallest extent along an axis [m]."""
        return self.tables.half_thicknesses[self.number]

    @property
    def normals(self) -> tuple[Table, Any, Any] | None:
        """Outward normals of the faces, the number of its first one, and that after its last; or None."""
        found = self.tables.normals
        return None if found is None else (found[0], found[1][self.number], found[1][self.number + 1])

    def farthest(self, d: np.ndarray) -> np.ndarray:
        """The first of the vertices that is farthest along d (3,), in the axes of the polyhedron."""
        vertices = self.tables.vertices
        if vertices is None:
            return self.tables.cells.farthest(self.number, d)
        first = [float(x) for x in self.tables.polyhedra[0][0]]
        best = [np.array(first) @ d, *first]
        return np.array(for_each(vertices, lambda corner, best: farther(corner, d, best), best)[1:])

    def number_at(self, d: np.ndarray, x: np.ndarray) -> Any:
        """The number of the vertex at x (3,), one of those farthest along d (3,), among the vertices of all
        polyhedra.
        """
        return without_derivatives(self._number_at, d, x)

    def _number_at(self, d: np.ndarray, x: np.ndarray) -> Any:
        """`number_at` of plain numbers."""
        vertices = self.tables.vertices
        if vertices is None:
            return self.tables.cells.number_at(self.number, d, x)

        def visit(k: Any, best: Any) -> Any:
            return tuple(nearer(vertices[k], 1.0 * k, x, best))

        return fori_loop(0, len(vertices), visit, (np.inf, 0.0), unroll=False)[1]

    def faces(self, *, clockwise: bool = True) -> FlatFaces | None:
        """Its tables' flat faces, or None. clockwise: the order of their corners, as seen from outside."""
        return self.tables.clockwise if clockwise else self.tables.counterclockwise


def polyhedron_of(sizes: Any) -> Polyhedron:
    """The polyhedron of the `sizes` of a mesh: itself, or that with these vertices (n, 3)."""
    if isinstance(sizes, Polyhedron):
        return sizes
    return _of_vertices(np.ascontiguousarray(sizes, float).tobytes())


@lru_cache(maxsize=256)
def _of_vertices(data: bytes) -> Polyhedron:
    """The polyhedron with these vertices."""
    return Polyhedron(PolyhedronTables([VertexHull(np.frombuffer(data).reshape(-1, 3))]))


def hull_of(mesh: Mesh) -> Polyhedron:
    """The convex hull of a mesh. Raises DescriptionError for a mesh without vertices."""
    if not len(mesh.vertices):
        raise DescriptionError(f"mesh {mesh.name or mesh.file!r} has no vertices; it cannot be in contact")
    return _hull_of(mesh.vertices, mesh.hull)


@lru_cache(maxsize=512)
def _hull_of(vertices: Any, hull: MeshHull | None) -> Polyhedron:
    """`hull_of` the mesh with these vertices and this hull; the vertices are in their order in the mesh."""
    points = np.asarray(vertices)
    if hull is None:
        corners = convex_hull(points).corners
        found = VertexHull(points[corners] if len(corners) else np.unique(points, axis=0))
    else:
        chosen = np.asarray(hull.vertices)
        corners = np.searchsorted(chosen, np.asarray(hull.corners))
        ends = np.cumsum(np.asarray(hull.counts))
        polygons = [polygon[::-1] for polygon in np.split(corners, ends[:-1])]
        found = VertexHull(points[chosen], Faces(np.asarray(hull.normals), points[chosen], polygons))
    return Polyhedron(PolyhedronTables([found]))


@lru_cache(maxsize=256)
def polyhedron_tables(several: tuple[PolyhedronTables, ...]) -> PolyhedronTables:
    """The tables of all polyhedra of several tables, one after the other."""
    return PolyhedronTables([hull for tables in several for hull in tables.hulls])


def face_normals(vertices: np.ndarray) -> np.ndarray:
    """Outward normals (n, 3) of a convex hull's faces; none for a flat hull, or where there are too many."""
    normals = convex_hull(vertices).planes[:, :3]
    distinct = normals[np.sort(np.unique(np.round(normals, 6), axis=0, return_index=True)[1])]
    return distinct if len(distinct) <= LARGEST_FACE_COUNT else np.zeros((0, 3))
