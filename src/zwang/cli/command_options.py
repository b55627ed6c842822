"""Arguments and options that several commands share: their types and help texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from zwang.mechanism.options import ERROR_CONTROLLED, FIXED_STEP

Model = Annotated[
    Path, Parameter(help="Path of a URDF, MJCF or JSON file, or the name of a sample mechanism.")
]
Strict = Annotated[
    bool,
    Parameter(
        help="Reject files with invalid or missing data; --no-strict repairs them and reports each repair."
    ),
]


@Parameter(name="*", help="How the file of a model is read.")
@dataclass(frozen=True)
class FileOptions:
    """The options by which a model is read from its file, besides --no-strict; see `zw.load`."""

    base: Annotated[
        Literal["fixed", "free"],
        Parameter(help="How a URDF's root link is attached to the world: rigidly, or by a free joint."),
    ] = "fixed"
    package_dirs: Annotated[
        tuple[Path, ...],
        Parameter(
            help="A package of package:// addresses, or a folder of packages. May be given several times.",
            negative=(),
            show_default=False,
        ),
    ] = ()
    asset_dirs: Annotated[
        tuple[Path, ...],
        Parameter(
            help="A folder whose files, such as meshes, the model may name besides those in its own folder. "
            "May be given several times.",
            negative=(),
            show_default=False,
        ),
    ] = ()


FILE_OPTIONS = FileOptions()
Kind = Annotated[
    Literal["overview", "time", "phase", "energy", "drift", "forces", "zwang"],
    Parameter(
        help="What to plot. overview: a summary; time: coordinates and velocities over time; "
        "phase: velocities over coordinates; energy: kinetic and potential energy; "
        "drift: energy change and constraint violation; forces: constraint and contact forces; "
        "zwang: Gauss's constraint Z by body."
    ),
]
Worlds = Annotated[
    int, Parameter(help="Number of copies simulated at once; their initial states differ by --spread.")
]
WorldsShown = Annotated[int, Parameter(help="Number of worlds of a recording to show.")]
Duration = Annotated[float, Parameter(help="Simulated time [s].")]
Step = Annotated[float | None, Parameter(help="Step size [s]; by default the model's own.")]
Integrator = Annotated[
    str | None,
    Parameter(
        help=f"Integrator: {', '.join(FIXED_STEP)} (fixed step), or {', '.join(ERROR_CONTROLLED)} "
        "(error controlled); by default the model's own."
    ),
]
FixedStepIntegrator = Annotated[
    str | None,
    Parameter(help=f"Integrator of fixed step: {', '.join(FIXED_STEP)}; by default the model's own."),
]
Spread = Annotated[
    float | None,
    Parameter(
        help="Standard deviation of the random initial states [rad, m, rad/s or m/s]; "
        "by default 0 for one world and 0.1 for several."
    ),
]
Seed = Annotated[int, Parameter(help="Seed of the random initial states.")]
RecordEvery = Annotated[
    int | None,
    Parameter(help="Record every RECORD-th step; by default every step, or fewer for very many worlds."),
]
RecordForces = Annotated[
    bool | None,
    Parameter(
        help="Record the forces of contacts and constraints, as generalised forces where a constraint has no "
        "point of application; by default only with --html, forces with such a point."
    ),
]
RecordingFile = Annotated[
    Path | None, Parameter(name="--out", help="Write the recording to this file (.nc, .zarr or .mcap).")
]
PlotFile = Annotated[Path | None, Parameter(help="Write a plot to this file (.png, .pdf or .svg).")]
PageFile = Annotated[Path | None, Parameter(help="Write a web page that plays the motion to this file.")]
Compiled = Annotated[bool, Parameter(help="Run compiled code; --no-compiled runs the slow float reference.")]
Names = Annotated[
    list[str] | None,
    Parameter(
        help="Plot only this coordinate, velocity, constraint or body. May be given several times.",
        negative=(),
    ),
]
Coordinates = Annotated[
    list[str] | None,
    Parameter(
        help="An initial coordinate [rad or m] as name=value. May be given several times.", negative=()
    ),
]
Velocities = Annotated[
    list[str] | None,
    Parameter(
        help="An initial velocity [rad/s or m/s] as name=value. May be given several times.", negative=()
    ),
]
Keyframe = Annotated[
    str | None,
    Parameter(
        help="Start at this keyframe of the file: its whole state, with its control and the poses of mocap "
        "bodies. Use instead of initial coordinates and velocities."
    ),
]
Inputs = Annotated[
    list[str] | None,
    Parameter(
        help="The constant value of an input as name=value, for a motor in N m or N; the others are those of "
        "the keyframe, or 0. May be given several times.",
        negative=(),
    ),
]
Values = Annotated[
    list[str] | None,
    Parameter(help="The value of a symbol as name=value. May be given several times.", negative=()),
]


def examples(*lines: str) -> str:
    """The epilogue of a help text, in Markdown: the heading "Examples" and a paragraph for each
    command line.
    """
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
