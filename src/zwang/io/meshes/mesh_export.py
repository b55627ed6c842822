"""Meshes of a mechanism as files beside the model that refers to them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from zwang.algebra.convex_hull import convex_hull, hull_triangles
from zwang.atomic import check_folder_of, write_file
from zwang.errors import WriteError
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.numbers import FrozenArray

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_STEM = 80
# Largest distance of a vertex in front of the hull, relative to the size of the mesh, that single precision
# explains: it is up to 4.2e-8 for the hulls of MuJoCo Menagerie with all vertices, and 7.5e-6 or more for
# those with a limited number.
ROUNDING_OF_HULLS = 1e-6


def contact_hull(mesh: Mesh) -> Mesh | None:
    """The hull of a mesh as a mesh of its own, or None if it is the convex hull of all vertices.

    MuJoCo's hull has fewer vertices where `maxhullvert` limits their number. Which vertices those are depends
    on the axes of the file from which MuJoCo read the mesh, so that the same limit does not give the same
    hull again; the convex hull of the remaining vertices is unique.
    """
    if mesh.hull is None:
        return None
    points = np.asarray(mesh.vertices)
    remaining = points[np.asarray(mesh.hull.vertices)]
    planes = convex_hull(remaining).planes
    extreme = points[convex_hull(points).corners]
    distances = extreme @ planes[:, :3].T + planes[:, 3]
    if distances.max(initial=0.0) <= ROUNDING_OF_HULLS * np.ptp(points, axis=0).max():
        return None
    file = f"{PurePosixPath(mesh.file or mesh.name or 'mesh').stem}_hull"
    vertices: Any = remaining
    faces: Any = hull_triangles(remaining)
    return replace(mesh, vertices=vertices, faces=faces, file=file, hull=None)


class MeshExport:
    """The mesh files of a model at `path`: OBJ files in the folder STEM_meshes beside it.

    A file contains the vertices as the mechanism has them, scaled, in metres and with all digits. Meshes with
    equal triangles share a file.
    """

    def __init__(self, path: Path):
        self.path = path
        self.folder = path.parent / f"{path.stem}_meshes"
        self.files: dict[tuple[FrozenArray, FrozenArray], str] = {}

    def add(self, mesh: Mesh) -> str:
        """The name of the file of a mesh, without its ending; empty if the mesh has no triangles."""
        if not len(mesh.faces):
            return ""
        key = (mesh.vertices, mesh.faces)
        if key not in self.files:
            stem = _UNSAFE.sub("_", PurePosixPath(mesh.file or mesh.name).stem).strip("_")[:LONGEST_STEM]
            self.files[key] = self._new(stem or "mesh")  # type: ignore[index]
        return self.files[key]  # type: ignore[index]

    def _new(self, stem: str) -> str:
        """`stem`, with an ending that makes it unique where the case of letters does not count."""
        taken = {name.lower() for name in self.files.values()}
        unique, count = stem, 1
        while unique.lower() in taken:
            count += 1
            unique = f"{stem}_{count}"
        return unique

    def write(self) -> None:
        """Write the files. Raises WriteError."""
        if not self.files:
            return
        check_folder_of(self.path)
        try:
            self.folder.mkdir(exist_ok=True)
        except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
            why = getattr(error, "strerror", None) or error
            raise WriteError(
                f"the folder {str(self.folder)!r} of the meshes cannot be made: {why}; give the "
                "model another name, or another folder"
            ) from error
        for (vertices, faces), name in self.files.items():
            write_file(self.folder / f"{name}.obj", obj_text(vertices, faces))


def obj_text(vertices: FrozenArray, faces: FrozenArray) -> bytes:
    """The content of an OBJ file with these triangles."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices).tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (np.asarray(faces) + 1).tolist()]
    return ("\n".join(lines) + "\n").encode()
