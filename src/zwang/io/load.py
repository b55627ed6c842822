"""Loading of files: the content of a file selects its reader."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from zwang.errors import LoadError, PlausibilityWarning, UnsupportedError, ZwangError
from zwang.io.files import read_bytes
from zwang.io.lint import lint
from zwang.lazy_imports import import_module
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.symbols import with_symbolic_parameters
from zwang.mechanism.type_validation import short_repr, validated_arguments

Base = Literal["fixed", "free"]

# The readers by the name of the root element; each module is imported when it is first needed.
_READERS = {
    "robot": ("zwang.io.urdf.read_urdf", "read_urdf"),
    "mujoco": ("zwang.io.mjcf.read.read_mjcf", "read_mjcf"),
}
_BY_ENDING = {".urdf": "robot", ".mjcf": "mujoco", ".xml": "mujoco"}
_MARKUP = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\w+[^<>\[]*(\[.*?\]\s*)?>|<([A-Za-z_][\w:.-]*)", re.DOTALL)


@validated_arguments("path", "base")
def load(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    base: Base = "fixed",
    strict: bool = True,
    symbolic: Sequence[str] = (),
    package_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    asset_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
) -> Mechanism:
    """The mechanism in a URDF or MJCF file, or in a JSON file that `Mechanism.to_json` wrote.

    The content of the file, not its name, decides about the format.
    path: the file.
    text: the content of a model, which is read as if a file at `path` contained it: messages name this path,
        and relative names of meshes and included files refer to its folder.
    base: "fixed", or "free" to connect the root link of a URDF to the world by a free joint named root_joint.
    strict: raise an error for contents that are invalid, missing or unsupported; with strict=False they are
        repaired or omitted, and `mechanism.report` lists the changes.
    symbolic: kinds of numbers that are replaced by symbols: "mass", "com", "inertia", "damping", "friction",
        "gravity" (m_LINK, c_LINK_x, I_LINK_xx, ...). The box with the inertia of a body, on which the fluid
        of an MJCF file acts, follows the symbols; its axes do not, of which a LoadWarning warns. Numbers that
        MuJoCo computes from masses when it compiles a model (the strength of a muscle with `scale`, gains
        from `dampratio`, `springdamper`) stay those of the file.
    package_dirs: packages of `package://` addresses, or folders that contain them. The name of a package is
        that of its folder or the `<name>` in its package.xml.
    asset_dirs: folders whose files the model may name, besides those in its own folder, such as the common
        folder of an MJCF file and of the meshes that it names as "../meshes".
    Raises LoadError with file, line and column for invalid contents and for folders that do not exist, and
    UnsupportedError for features that zwang does not support. Warns with LoadWarning of omitted or missing
    contents, and with PlausibilityWarning of implausible numbers.
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(base, str) or base not in ("fixed", "free"):
        given = f"{short_repr(path)} and {short_repr(base)}"
        raise LoadError(f"load expects the path of a file and base 'fixed' or 'free', not {given}")
    if text is None and str(path).lstrip()[:1] in ("<", "{"):
        raise LoadError(
            f"load expects the path of a file, not {short_repr(path)}; give the content of a model as "
            "`text=`, beside a path that names it"
        )
    file = Path(path)
    mechanism = _read(
        file, text, base, strict, _folders(package_dirs, "package_dirs"), _folders(asset_dirs, "asset_dirs")
    )
    for note in lint(mechanism):
        warnings.warn(f"{file}: {note.what} ({note.where})", PlausibilityWarning, stacklevel=3)
    return with_symbolic_parameters(mechanism, symbolic)


def _folders(given: Any, argument: str) -> tuple[Any, ...]:
    """One folder, or several, of an argument. Raises LoadError for one that does not exist."""
    folders = (given,) if isinstance(given, (str, os.PathLike)) else tuple(given)
    for folder in folders:
        if not isinstance(folder, (str, os.PathLike)) or not os.path.isdir(folder):
            raise LoadError(f"{argument}={str(folder)!r} is no folder; give existing folders")
    return folders


def _read(
    file: Path,
    text: str | None,
    base: Base,
    strict: bool,
    package_dirs: tuple[Any, ...],
    asset_dirs: tuple[Any, ...],
) -> Mechanism:
    data = read_bytes(file, "load") if text is None else _encoded(text, file)
    if not data.strip():
        raise LoadError(f"{file}, line 1: the file is empty; it contains no mechanism")
    if _is_json(data):
        return _from_json(file, data)
    kind = _root_name(data) or _BY_ENDING.get(file.suffix.lower(), "")
    if kind not in _READERS:
        raise _unknown(file, kind)
    module, name = _READERS[kind]
    reader = getattr(import_module(module), name)
    if kind == "robot":
        return reader(file, text=text, base=base, strict=strict, package_dirs=package_dirs + asset_dirs)
    if base == "free":
        raise LoadError(
            f"{file}: base='free' applies to URDF only; an MJCF file declares floating bodies itself "
            "(<freejoint/>)"
        )
    return reader(file, text=text, strict=strict, asset_dirs=asset_dirs)


def _encoded(text: str, file: Path) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise LoadError(
            f"{file}: the text contains half of a surrogate pair at character {error.start}"
        ) from None


def _is_json(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _from_json(file: Path, data: bytes) -> Mechanism:
    try:
        return Mechanism.from_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise LoadError(f"{file}: the JSON text is not UTF-8: {error.reason} at byte {error.start}") from None
    except ZwangError as error:
        raise LoadError(f"{file}: {error}") from None


def _root_name(data: bytes) -> str:
    """The name of the first element of a document, found by a regular expression; empty if there is none."""
    for match in _MARKUP.finditer(data[: 2**20]):
        if match.group(2):
            return match.group(2).decode("ascii", "replace")
    return ""


def _unknown(file: Path, kind: str) -> LoadError:
    reads = "zwang reads URDF (<robot>), MJCF (<mujoco>) and its own JSON"
    if kind in ("sdf", "gazebo"):
        return UnsupportedError(f"{file}: this is an SDF file (<{kind}>), which zwang does not read; {reads}")
    if kind:
        return LoadError(f"{file}: the file begins with <{kind}>, which is not a mechanism; {reads}")
    return LoadError(f"{file}: this is not a valid document in a known format; {reads}")
