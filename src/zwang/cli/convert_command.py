"""The command `zwang convert`, which writes a model in another file format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

import zwang as zw
from zwang.atomic import write_file
from zwang.cli.command_options import FILE_OPTIONS, FileOptions, Model, Values
from zwang.cli.console import library_text, out
from zwang.cli.inputs import model_of
from zwang.errors import FormatError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Note, Report


def convert(
    model: Model,
    output: Annotated[
        Path, Parameter(help="The file to write; its ending says the format: .urdf, .xml or .mjcf, .json.")
    ],
    *,
    param: Values = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Annotated[
        bool,
        Parameter(
            help="Reject a model with invalid data, or with parts that the format cannot say; --no-strict "
            "repairs the data, leaves these parts out, and lists both."
        ),
    ] = True,
) -> None:
    """Write a model in another file format: URDF, MJCF or JSON.

    Meshes are copied to a folder beside the file. What the format says in other words, and with --no-strict
    what it cannot say, is listed.
    """
    write = writer_of(output)
    m = model_of(model, files, strict=strict, param=param)
    report = write(m, output, strict)
    for note in (*(n for n in m.report.notes if n.kind in ("repaired", "unsupported")), *report.notes):
        where = f"{note.where}: " if note.kind != "written" else ""
        out.print(f"[yellow]{escape(note.kind)}:[/] {escape(where) + library_text(note.what)}")
    out.print(f"wrote {escape(str(output))}")


Writer = Callable[[Mechanism, Path, bool], Report]


def writer_of(path: Path) -> Writer:
    """The writer of the format that the ending of a file name says.

    Raises FormatError for another ending.
    """
    ending = path.suffix.lower()
    if ending not in WRITERS:
        raise FormatError(f"{str(path)!r} ends in {ending!r}; give a name that ends in {', '.join(WRITERS)}")
    return WRITERS[ending]


def _mjcf(m: Mechanism, path: Path, strict: bool) -> Report:
    return zw.write_mjcf(m, path, strict=strict)


def _urdf(m: Mechanism, path: Path, strict: bool) -> Report:
    return zw.write_urdf(m, path, strict=strict)


def _json(m: Mechanism, path: Path, _: bool) -> Report:
    write_file(path, m.to_json().encode())
    return Report(str(path), "json", (Note("written", "the mechanism without loss", str(path)),))


WRITERS = {".urdf": _urdf, ".xml": _mjcf, ".mjcf": _mjcf, ".json": _json}
