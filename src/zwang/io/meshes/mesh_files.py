"""The mesh files of a model: the folders in which they are permitted, and their triangles.

A mesh file must be in one of the roots of the model, which are its own folder and the folders of its
packages. No file outside them is opened, whatever a name, a symbolic link or a mesh file contains, and
nothing is downloaded.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from zwang.errors import LoadError
from zwang.io.files import read_bytes
from zwang.io.meshes.collada import MOST_FACES, read_collada
from zwang.io.meshes.mesh_library import trimesh
from zwang.io.xml import parse

LARGEST_MESH = 64 * 2**20  # bytes
LARGEST_MANIFEST = 2**20  # bytes, of a package.xml
FORMATS = ("stl", "obj", "dae", "gltf", "glb", "ply", "off")
LONGEST_NAME, LONGEST_PATH = 255, 3000  # bytes
FLAT = 1e-9  # relative thickness below which a mesh is flat


class MissingAsset(LoadError):
    """A mesh file that does not exist; a model can be read without it."""


def check_length(name: str, where: str) -> None:
    """Raises LoadError if a file name, or a component of it, is longer than file systems permit."""
    parts = [len(part.encode("utf-8", "replace")) for part in unquote(name).split("/")]
    if max(parts) > LONGEST_NAME or sum(parts) > LONGEST_PATH:
        raise LoadError(
            f"{where}: the file name {name[:40]!r}... is too long: {max(parts)} bytes in one component, "
            f"{sum(parts)} in "
            f"total; the limits are {LONGEST_NAME} and {LONGEST_PATH}"
        )


@dataclass(frozen=True)
class AssetRoots:
    """The folders in which the files of a model may be: its own folder, then the given ones.

    argument: the name under which `zw.load` takes these. target: of a model that is a symbolic link, the
    folder of the file that it refers to, in which what is not beside the link is looked for.
    """

    model: Path
    packages: tuple[Path, ...] = ()
    argument: str = "package_dirs"
    target: Path | None = None

    @staticmethod
    def of(model: Path, package_dirs: Sequence[str | os.PathLike[str]] = ()) -> AssetRoots:
        """The roots of a model file, with further folders that are searched for packages."""
        folder, target = model.parent.resolve(), model.resolve().parent
        packages = tuple(Path(folder).resolve() for folder in package_dirs)
        return AssetRoots(folder, packages, target=None if target == folder else target)

    def find(self, name: str, where: str) -> Path:
        """The path of the file with that name.

        name: relative to the folder of the model, absolute, package://NAME/... or file://..., of which an
        address is read as it is written if that file exists, and with its percent-encoded characters decoded
        otherwise. Raises LoadError if it is outside the roots, and MissingAsset if it does not exist.
        """
        if not name.strip():
            raise LoadError(f"{where}: the file name of the mesh is empty")
        check_length(name, where)
        if "\0" in name:
            raise LoadError(f"{where}: the file name {name!r} has a NUL character")
        scheme, _, rest = name.partition("://")
        if not rest:
            folder = self.model
            if self.target is not None and not os.path.lexists(folder / name):
                folder = self.target if os.path.lexists(self.target / name) else folder
            return self._inside(folder / name, (folder, *self.packages), name, where)
        if scheme == "file":
            written = Path("/" + rest.partition("/")[2])
            path = written if os.path.lexists(written) else Path(unquote(urlsplit(name).path))
            check_length(str(path), where)
            return self._inside(path, (self.model, *self.packages), name, where)
        if scheme in ("package", "model"):
            return self._in_package(name, rest, where)
        raise LoadError(f"{where}: {name!r} is not a file name; {scheme}:// addresses are not supported")

    def _in_package(self, name: str, rest: str, where: str) -> Path:
        package, _, inner = rest.partition("/")
        packages, inners = (tuple(dict.fromkeys((x, unquote(x)))) for x in (package, inner))
        if any(x in ("", ".", "..") or "\\" in x or "/" in x for x in packages):
            raise LoadError(f"{where}: {name!r} does not name a package; write package://PACKAGE/path")
        folders = [folder for x in packages for folder in self._folders_of(x) if folder.is_dir()]
        if not folders:
            raise MissingAsset(
                f"{where}: the package {packages[-1]!r} of {name!r} is not found beside or above the model; "
                "give the folder that contains it in package_dirs="
            )
        for folder, path_inside in product(folders, inners):
            path = self._inside(folder / path_inside, (folder,), name, where, must_exist=False)
            if path.exists():
                return path
        raise MissingAsset(f"{where}: there is no file {name!r} (searched in {str(folders[0])!r})")

    def _folders_of(self, package: str) -> list[Path]:
        """Candidate folders of a package: given ones, then those near the model with a package.xml."""
        given, found = [], []
        for base in self.packages:
            given += [base / package, *([base] if base.name == package else [])]
        for base in (self.model, *self.model.parents):
            found += [*([base] if base.name == package else []), base / package]
        given += [folder for folder, name in self._given_manifests.items() if name == package]
        found = [folder for folder in found if (folder / "package.xml").is_file()]
        return given + found + [folder for folder, name in self._manifests_above.items() if name == package]

    @cached_property
    def _given_manifests(self) -> dict[Path, str]:
        """The names in the package.xml of the given folders and of the folders in them."""
        folders = [x for base in self.packages for x in (base, *_subfolders(base))]
        return {folder: _manifest_name(folder) for folder in folders}

    @cached_property
    def _manifests_above(self) -> dict[Path, str]:
        """The names in the package.xml of the folder of the model and of those above it."""
        return {folder: _manifest_name(folder) for folder in (self.model, *self.model.parents)}

    def _inside(
        self, path: Path, roots: tuple[Path, ...], name: str, where: str, must_exist: bool = True
    ) -> Path:
        """The path with symbolic links resolved. Raises LoadError unless it is in one of the roots."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise LoadError(f"{where}: the file name {name!r} cannot be resolved: {error}") from None
        if not any(real.is_relative_to(root.resolve()) for root in roots):
            if os.path.lexists(path) and _is_special(real):
                raise LoadError(
                    f"{where}: {name!r} refers to {str(real)!r}, a device or pipe and not a regular file"
                )
            raise LoadError(
                f"{where}: {name!r} is outside of the folder of the model, {str(roots[0])!r}, and is not "
                f"opened; give a folder that contains it in {self.argument}="
            )
        if must_exist and not real.exists():
            raise MissingAsset(f"{where}: there is no file {name!r} (searched as {str(path)!r})")
        return real


def _subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, in the order of their names; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return []


def _manifest_name(folder: Path) -> str:
    """The <name> in the package.xml of a folder; empty if there is none, or the file cannot be read."""
    path = folder / "package.xml"
    try:
        package = parse(read_bytes(path, str(path), largest=LARGEST_MANIFEST), str(path))
        name = package.one("name")
    except LoadError:
        return ""
    return name.text if name is not None else ""


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def format_of(name: str, where: str) -> str:
    """The format that a mesh file's ending names. Raises LoadError for one that zwang does not read."""
    ending = Path(name).suffix
    kind = ending.lower().lstrip(".")
    if kind not in FORMATS:
        raise LoadError(
            f"{where}: {name!r} has the extension {ending!r}, an unknown mesh format; "
            f"the formats are {', '.join(FORMATS)}"
        )
    return kind


def read_mesh(path: Path, where: str, *, points: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3), in the unit of the file, and faces (m, 3) of all parts of a mesh file.

    points: whether at least four vertices without faces are permitted, which stand for their convex hull.
    Raises LoadError, whose message begins with `where`, unless they are triangles with finite vertices.
    """
    kind = format_of(path.name, where)
    data = read_bytes(path, where, largest=LARGEST_MESH)
    if kind == "stl":
        _check_stl(data, path.name, where)
    elif kind in ("gltf", "glb"):
        _check_gltf(data, path.name, where)
    if kind == "dae":
        vertices, faces = read_collada(data, f"{where}: {path.name}")
    else:
        vertices, faces = _triangles(data, kind, f"{where}: {path.name!r}")
    _check_triangles(vertices, faces, f"{where}: {path.name!r}", points)
    return _merged(vertices, faces) if kind == "stl" else (vertices, faces)


def _triangles(data: bytes, kind: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces by trimesh, which without a resolver opens no other files."""
    try:
        scene = trimesh.load_scene(
            io.BytesIO(data), file_type=kind, resolver=None, skip_materials=True, process=False
        )
        parts = (
            scene.dump() if len(scene.geometry) > 1 or kind in ("gltf", "glb") else scene.geometry.values()
        )
        meshes = [part for part in parts if isinstance(part, trimesh.Trimesh | trimesh.PointCloud)]
    except MemoryError:
        raise
    except Exception as error:  # malicious files can raise any exception in a parser
        if isinstance(error, IndexError):
            raise LoadError(f"{where} has a face whose vertex index is out of range: {error}") from None
        raise LoadError(f"{where} cannot be read as {kind}: {type(error).__name__}: {error}") from None
    if not meshes:
        return np.zeros((0, 3)), np.zeros((0, 3), int)
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    triangles = [getattr(mesh, "faces", np.zeros((0, 3), int)) for mesh in meshes]
    faces = [np.asarray(rows) + start for rows, start in zip(triangles, starts, strict=False)]
    return np.concatenate([np.asarray(mesh.vertices, float) for mesh in meshes]), np.concatenate(faces)


def _check_stl(data: bytes, name: str, where: str) -> None:
    """Raises LoadError unless a binary STL file has the length that its header states."""
    if len(data) >= 84:
        (count,) = struct.unpack("<I", data[80:84])
        if len(data) == 84 + 50 * count:
            return
        if data[:5].lower() == b"solid" and data[:512].isascii() and b"facet" in data[:4096].lower():
            return
        if len(data) > 84 + 50 * count and count > 0:  # some programs append a few bytes
            return
        available = (len(data) - 84) // 50
        raise LoadError(
            f"{where}: the header of the STL file {name!r} claims {count} triangles; its size "
            f"is that of {available}"
        )
    if data[:5].lower() != b"solid":
        raise LoadError(f"{where}: the STL file {name!r} is truncated: its size is {len(data)} bytes")


def _check_gltf(data: bytes, name: str, where: str) -> None:
    """Raises LoadError for a glTF file that is not valid, refers to other files, or is too large."""
    try:
        document = json.loads(data if data[:4] != b"glTF" else _first_chunk(data))
        buffers = document.get("buffers", [])
        outside = [b["uri"] for b in buffers if "uri" in b and not b["uri"].startswith("data:")]
        numbers = sum(16 * int(a.get("count", 0)) for a in document.get("accessors", []))
        length = sum(int(b.get("byteLength", 0)) for b in buffers)
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError, struct.error) as error:
        raise LoadError(f"{where}: the glTF file {name!r} is not valid: {error}") from None
    if outside:
        raise LoadError(
            f"{where}: the glTF file {name!r} refers to the buffer file {outside[0]!r}, which is not "
            "supported; "
            "save the mesh as .glb, which includes its buffers"
        )
    if numbers > 16 * 3 * MOST_FACES or length > LARGEST_MESH:
        raise LoadError(
            f"{where}: the glTF file {name!r} claims {length} bytes and {numbers} numbers: too large"
        )


def _first_chunk(data: bytes) -> bytes:
    """The JSON part of a binary glTF."""
    (length,) = struct.unpack("<I", data[12:16])
    return data[20 : 20 + length]


def _check_triangles(vertices: Any, faces: Any, where: str, points: bool = False) -> None:
    if len(faces) == 0 and not (points and len(vertices) >= 4):
        raise LoadError(f"{where} has no faces: it is empty or damaged")
    if len(faces) > MOST_FACES:
        raise LoadError(f"{where} is too large: {len(faces)} faces; the limit is {MOST_FACES}")
    if not np.isfinite(vertices).all():
        raise LoadError(f"{where} has a vertex that is not finite (nan or inf)")
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise LoadError(f"{where} has a face whose vertex index is out of range (0 to {len(vertices) - 1})")


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mesh with equal vertices merged; an STL file has three vertices for each face."""
    order = np.lexsort(vertices.T)
    steps = (np.diff(vertices[order], axis=0, prepend=np.nan) != 0).any(axis=1)
    numbers = np.empty(len(vertices), int)
    numbers[order] = np.cumsum(steps) - 1
    return vertices[order][steps], numbers[faces]


def thickness(vertices: np.ndarray) -> float:
    """The ratio of the smallest to the largest extent of points along their principal axes."""
    centred = vertices - vertices.mean(axis=0)
    spread = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred), 0))
    return float(spread[0] / spread[2]) if spread[2] > 0 else 0.0
