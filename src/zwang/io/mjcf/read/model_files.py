"""The files of an MJCF model, which are validated before MuJoCo reads them.

Included and attached models and meshes are read from the folder of the model, and from folders that the
caller permits. The sizes of replicates, grids and height fields are bounded, and numbers that are NaN are
rejected with their location.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from zwang.errors import LoadError
from zwang.io.files import read_bytes
from zwang.io.meshes.mesh_files import LARGEST_MESH, AssetRoots, check_length, read_mesh
from zwang.io.xml import LARGEST_DOCUMENT, Element, parse

MOST_ELEMENTS = 200_000  # written in all documents, and points of a grid
MOST_COPIES = 10_000  # of elements, by replicates; their time in MuJoCo grows with the square of the number
MOST_SAMPLES = 10_000_000  # of a height field
MOST_POINTS = 100_000  # of a mesh that MuJoCo generates
MOST_MODELS = 50  # included or attached
# Attributes that are strings, in which "nan" may be a name.
_STRING_ATTRIBUTES = {
    "name", "class", "childclass", "file", "model", "prefix", "suffix", "body", "joint", "site", "mesh",
    "material", "geom", "tendon", "target", "data", "content_type", "plugin", "instance", "key", "value",
    "dclass", "texture",
}  # fmt: skip
_CHECKED_FORMATS = {".stl", ".obj"}
_IGNORED_FILES = {"texture", "skin"}  # elements whose files are never opened


@dataclass
class Files:
    """The documents and meshes of a model by name.

    included: the documents of `include` elements. lines: the elements by the lines, from 1 on, that they have
    in the texts of all documents, in which the numbers of their lines differ.
    """

    source: str
    root: Element
    named: dict[str, Element] = field(default_factory=dict)
    assets: dict[str, bytes] = field(default_factory=dict)
    documents: list[Element] = field(default_factory=list)
    included: dict[Element, Element] = field(default_factory=dict)
    lines: list[Element] = field(default_factory=list)

    def elements(self) -> Iterator[Element]:
        """Every element of the model and of its included or attached documents."""
        for document in self.documents:
            yield from document.walk()

    def children(self, element: Element) -> Iterator[Element]:
        """The children of an element, with those of documents in place of the elements that include them."""
        for child in element.children:
            if child in self.included:
                yield from self.children(self.included[child])
            else:
                yield child

    def own_elements(self) -> Iterator[Element]:
        """Every element of the model in the order in which MuJoCo reads them, without attached models."""
        stack = [self.root]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(list(self.children(element))))

    def texts(self, without: frozenset[str]) -> tuple[str, dict[str, bytes]]:
        """The text of the model, and those of the other documents, without the elements of these names."""
        text = self._text(self.root, without)
        return text, {name: self._text(root, without).encode() for name, root in self.named.items()}

    def _text(self, document: Element, without: frozenset[str]) -> str:
        """The text of a document, in which each element is on the next line that no document has yet."""
        out = ["\n" * len(self.lines)]

        def write(element: Element) -> None:
            if element.name in without:
                return
            self.lines.append(element)
            attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
            out.append(f"<{element.name}{attributes}>\n")
            for child in element.children:
                write(child)
            out.append(f"</{element.name}>")

        write(document)
        return "".join(out)


def read_model_files(
    path: Path, text: str | None = None, asset_dirs: Sequence[str | os.PathLike[str]] = ()
) -> Files:
    """The files of the model at `path`, or of the model in `text`, which is read as the content of that file.

    asset_dirs: folders whose files the model may name, besides its own folder. Raises LoadError for files
    that are missing, outside these folders, damaged or too large.
    """
    data = text.encode() if text is not None else read_bytes(path, str(path), largest=LARGEST_DOCUMENT)
    root = parse(data, path.name, encoding=None if text is None else "utf-8")
    if root.name != "mujoco":
        raise root.error(f"the root element is <{root.name}>; an MJCF file begins with <mujoco>")
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"{path.name}: the text is not UTF-8: {error.reason}") from None
    files = Files(path.name, root)
    roots = replace(AssetRoots.of(path, asset_dirs), argument="asset_dirs")
    reader = _FileReader(files, roots)
    reader.visit_model(root, (), PurePosixPath())
    reader.read_assets()
    files.assets = reader.short | files.assets
    return files


@dataclass
class _Assets:
    """The folders of meshes and height fields, by tag, that the compiler elements of a model declare, and
    the elements that name their files: (element, folder of its document).

    model: the folder of the model. strips: whether the compiler elements remove the folders from file names.
    Included documents belong to the model: the last compiler element counts for the elements of all.
    """

    model: PurePosixPath
    strips: bool = False
    folders: dict[str, str] = field(default_factory=dict)
    elements: list[tuple[Element, PurePosixPath]] = field(default_factory=list)


class _FileReader:
    """Reads documents recursively, once for each reference to them."""

    def __init__(self, files: Files, roots: AssetRoots):
        self.files, self.roots = files, roots
        self.models = 0
        self.elements = self.copies = 0
        self.assets: list[_Assets] = []  # of the models, the main one first
        self.paths: dict[str, Path] = {}  # of the assets, by their names
        self.short: dict[str, bytes] = {}  # the assets by their names without the folders of documents

    def visit_model(self, root: Element, chain: tuple[str, ...], folder: PurePosixPath) -> None:
        """Read the documents of a model with a compiler element of its own: the given one, or an attached
        one.
        """
        assets = _Assets(folder)
        self.assets.append(assets)
        self._visit(root, chain, folder, assets)

    def read_assets(self) -> None:
        """Read the meshes and height fields of all models. As in MuJoCo, it is the main one that says whether
        the folders in the names of their files are removed.
        """
        strips = self.assets[0].strips
        for assets in self.assets:
            for element, folder in assets.elements:
                file, inner = element.attributes["file"], assets.folders.get(element.name, "")
                if strips:  # also of the folder of an included document
                    file, folder = re.split(r"[/\\]", file)[-1], assets.model
                self._asset(element, file, inner, folder, assets.model)

    def _visit(self, root: Element, chain: tuple[str, ...], folder: PurePosixPath, assets: _Assets) -> None:
        """Validate a document and read those that it names; `chain` are the documents that include it."""
        self.files.documents.append(root)
        self._count(root)
        for element in root.walk():
            _check_numbers(element)
            _check_sizes(element)
            if element.name == "compiler":
                assets.folders |= _folders(element)
                if "strippath" in element.attributes:
                    assets.strips = element.attributes["strippath"] == "true"
            if "file" not in element.attributes or element.name in _IGNORED_FILES:
                continue
            if element.name in ("include", "model"):
                self._document(element, chain, folder, assets)
            else:
                assets.elements.append((element, folder))

    def _document(
        self, element: Element, chain: tuple[str, ...], folder: PurePosixPath, assets: _Assets
    ) -> None:
        name = element.attributes["file"]
        if name in chain or name == self.files.source:
            raise element.error(f"{element.title} includes {name!r}, which is already included: a cycle")
        self.models += 1
        if self.models > MOST_MODELS:
            raise element.error(f"{element.title}: too many included models; the limit is {MOST_MODELS}")
        path = self._find(element, name, folder, assets.model)
        data = read_bytes(path, element.location, largest=LARGEST_DOCUMENT)
        key = str(folder / name)
        document = parse(data, name)
        self.files.named[key] = document
        inside = (*chain, name), (folder / name).parent
        if element.name == "model":
            self.visit_model(document, *inside)
        else:
            self.files.included[element] = document
            self._visit(document, *inside, assets)

    def _asset(
        self, element: Element, file: str, inner: str, folder: PurePosixPath, model: PurePosixPath
    ) -> None:
        """Read the file of a mesh or height field; inner: the folder of such files, folder, model: those of
        its document and of its model.

        It is stored under the name by which MuJoCo looks for it, with the folder of an included document, and
        under the name without, by which MuJoCo looks if such a file exists in the working directory. Both are
        normalised, as MuJoCo compares them so. Where it finds no such name, MuJoCo takes any file of the same
        name in another folder.
        """
        name = posixpath.normpath(PurePosixPath(inner) / file)
        within = PurePosixPath(posixpath.relpath(folder, model))
        key = posixpath.normpath(model / inner / within / file)
        path = self._find(element, name, folder, model).resolve()
        if self.paths.setdefault(key, path) != path and self.files.assets[key] != read_bytes(
            path, element.location, largest=LARGEST_MESH
        ):
            raise element.error(
                f"{element.title}: MuJoCo would confuse its file with {str(self.paths[key])!r}, as both are "
                f"{key!r} to it; rename one of them"
            )
        if key not in self.files.assets:
            self.files.assets[key] = self._checked_data(element, path)
        self.short.setdefault(name, self.files.assets[key])

    def _checked_data(self, element: Element, path: Path) -> bytes:
        """The content of the file of a mesh or height field. Raises LoadError for a damaged or large one."""
        if path.suffix.lower() in _CHECKED_FORMATS:
            # MuJoCo never reads a damaged file; it completes points to their convex hull
            read_mesh(path, f"{element.location}: {element.title}", points=True)
        data = read_bytes(path, element.location, largest=LARGEST_MESH)
        if element.name == "hfield":
            _check_heights(element, data)
        return data

    def _find(self, element: Element, name: str, folder: PurePosixPath, model: PurePosixPath) -> Path:
        """The file of that name in the folder of the model, or else in that of the document."""
        where = f"{element.location}: {element.title}"
        if "\\" in name:
            raise LoadError(f"{where}: the file name {name!r} has a backslash; write / between folders")
        check_length(name, where)
        base = model if (self.roots.model / model / name).exists() else folder
        return self.roots.find(name if str(base) == "." else str(base / name), where)

    def _count(self, root: Element) -> None:
        """Count the elements of a document, and the copies that its replicates make of them.

        Raises LoadError for too many in all documents.
        """
        stack = [(root, 1)]
        while stack:
            element, times = stack.pop()
            self.elements += 1
            self.copies += times - 1
            if self.elements > MOST_ELEMENTS:
                raise element.error(
                    f"{element.title}: too many elements; the limit is {MOST_ELEMENTS:,} in all documents"
                )
            if self.copies > MOST_COPIES:
                raise element.error(
                    f"{element.title}: too many elements after replication; replicates may make "
                    f"{MOST_COPIES:,} copies in all. Reduce their counts, or write the elements out"
                )
            if element.name == "replicate":
                times *= max(1, _integer(element, "count"))
            stack.extend((child, times) for child in element.children)


def _folders(compiler: Element) -> dict[str, str]:
    """The folders of meshes and height fields, by tag, that a compiler element declares."""
    mesh = compiler.attributes.get("meshdir", compiler.attributes.get("assetdir"))
    return {} if mesh is None else {"mesh": mesh, "hfield": mesh, "flexcomp": mesh}


def _integer(element: Element, attribute: str) -> int:
    try:
        return int(float(element.attributes.get(attribute, "1")))
    except (ValueError, OverflowError):
        raise element.error(
            f"{attribute} of {element.title} is {element.attributes[attribute]!r}; it must be an integer"
        ) from None


def _size(word: str) -> float:
    """The absolute value of a number; 1 for other text, which MuJoCo rejects."""
    try:
        return abs(float(word))
    except ValueError:
        return 1.0


def _counts(element: Element) -> list[int]:
    """The number of points of a grid in each direction."""
    words = element.attributes.get("count", "").split()
    return [int(word) for word in words if word.isascii() and word.isdigit()]


def _check_numbers(element: Element) -> None:
    """Raises LoadError for a numeric attribute that contains NaN."""
    for attribute, text in element.attributes.items():
        if attribute in _STRING_ATTRIBUTES or "nan" not in text.lower():
            continue
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            continue
        if any(math.isnan(value) for value in values):
            raise element.error(f"{attribute} of {element.title} is {text!r}; it must not be NaN")


def _check_sizes(element: Element) -> None:
    """Raises LoadError for grids, height fields and generated meshes that are too large."""
    if element.name == "hfield":
        samples = _integer(element, "nrow") * _integer(element, "ncol")
        if samples > MOST_SAMPLES:
            raise element.error(
                f"{element.title} has {samples} samples (nrow, ncol): too large; the limit is {MOST_SAMPLES}"
            )
    if element.name == "mesh" and "builtin" in element.attributes:
        words = element.attributes.get("params", "").split()
        counts = words[:2] if element.attributes["builtin"] == "wedge" else words  # the others are angles
        points = math.prod(max(1.0, _size(word)) for word in counts)
        if points > MOST_POINTS:
            raise element.error(
                f"{element.title} has the params {' '.join(words)!r}: too large; the limit is {MOST_POINTS} "
                "points"
            )
    if element.name == "flexcomp":
        points = math.prod(_counts(element))
        if points > MOST_ELEMENTS:
            raise element.error(
                f"{element.title} has a count of {points} points: too large; the limit is {MOST_ELEMENTS}"
            )


def _check_heights(element: Element, data: bytes) -> None:
    """Raises LoadError for the file of a height field that is neither an image in the PNG format nor, as
    MuJoCo has it, the numbers of rows and columns and then the heights, or that has too many samples.
    """
    title, png = element.title, data[:8] == b"\x89PNG\r\n\x1a\n"
    if len(data) < (24 if png else 8):
        raise element.error(f"{title}: its file has only {len(data)} bytes: it is damaged")
    rows, columns = struct.unpack(">II", data[16:24]) if png else struct.unpack("<ii", data[:8])
    if not (rows > 0 and columns > 0 and rows * columns <= MOST_SAMPLES):
        raise element.error(
            f"{title}: its file has {rows} x {columns} samples: it is damaged or too large; the limit is "
            f"{MOST_SAMPLES}"
        )
    if not png and len(data) != 8 + 4 * rows * columns:
        raise element.error(
            f"{title}: its file has {len(data)} bytes, and not those of {rows} x {columns} samples"
        )
