"""Meshes of a mechanism as files beside the model that refers to them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import numpy as np

from zwang.atomic import write_file
from zwang.errors import WriteError
from zwang.mechanism.geometry import Mesh
from zwang.mechanism.numbers import FrozenArray

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_STEM = 80


class MeshExport:
    """The mesh files of a model at `path`: OBJ files in the folder STEM_meshes beside it.

    A file contains the vertices as the mechanism has them, scaled, in metres and with all digits. Meshes with
    equal triangles share a file.
    """

    def __init__(self, path: Path):
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
