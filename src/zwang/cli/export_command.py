"""The command `zwang export`, which writes a model as code for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.markup import escape

import zwang as zw
from zwang.cli.command_options import FILE_OPTIONS, FileOptions, FixedStepIntegrator, Model, Step, Strict
from zwang.cli.console import library_text, out
from zwang.cli.inputs import model_of, parse_pairs
from zwang.mechanism.report import Report

Output = Annotated[
    Path, Parameter(help="A folder for C99 code, which is created, or a file that ends in .fmu or .wasm.")
]
Frames = Annotated[
    list[str] | None,
    Parameter(
        help="Export functions of this body or frame; by default of all frames. May be given several times.",
        negative=(),
    ),
]
Symbolic = Annotated[
    list[str] | None,
    Parameter(
        help="Make these numbers parameters: mass, com, inertia, damping, friction or gravity. May be given "
        "several times; --param gives their values.",
        negative=(),
    ),
]


def export(
    model: Model,
    output: Output,
    *,
    format: Annotated[
        str | None,
        Parameter(help="The format, c99, fmu or wasm; by default it follows from the output's name."),
    ] = None,
    name: Annotated[
        str | None, Parameter(help="The prefix of all names in the code; by default that of the model.")
    ] = None,
    step: Step = None,
    integrator: FixedStepIntegrator = None,
    stabilization: Annotated[
        Literal["projection", "baumgarte"] | None,
        Parameter(help="How the step keeps hard constraints satisfied; by default by projection."),
    ] = None,
    dtype: Annotated[str, Parameter(help="The type of all numbers: float64 or float32.")] = "float64",
    function: Annotated[
        list[str] | None,
        Parameter(help="Export only this function, such as step. May be given several times.", negative=()),
    ] = None,
    frame: Frames = None,
    symbolic: Symbolic = None,
    param: Annotated[
        list[str] | None,
        Parameter(help="The value of a parameter, as name=value. May be given several times.", negative=()),
    ] = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> None:
    """Write a model as code for other programs: its step with contacts, dynamics, Jacobians and sensors.

    The code has no dependencies, allocates no memory, and computes the same bits as zwang.
    """
    m = model_of(model, files, strict=strict, symbolic=symbolic or ())
    report = zw.export(
        m,
        output,
        format=format,
        name=name,
        step=step,
        integrator=integrator,
        stabilization=stabilization,
        dtype=dtype,
        functions=function,
        frames=frame,
        params=parse_pairs(param) or None,
    )
    _print_notes(report)


def _print_notes(report: Report) -> None:
    """What the format does not say, and the files that are written."""
    for note in report.notes:
        if note.kind != "written":
            out.print(f"[yellow]{escape(note.kind)}:[/] {escape(note.where)}: {library_text(note.what)}")
    for note in report.of_kind("written"):
        out.print(f"wrote {escape(note.where)}, {escape(note.what)}")
