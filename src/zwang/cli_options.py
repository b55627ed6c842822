"""Arguments and options that several commands share: their types and help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Model = Annotated[
    Path, Parameter(help="Path of a URDF, MJCF or JSON file, or the name of a sample mechanism.")
]
Strict = Annotated[
    bool,
    Parameter(
        help="Reject files with invalid or missing data; --no-strict repairs them and reports each repair."
    ),
]
Base = Annotated[
    Literal["fixed", "free"],
    Parameter(help="How a URDF's root link is attached to the world: rigidly, or by a free joint."),
]
Kind = Annotated[
    Literal["overview", "time", "phase", "energy", "drift", "forces", "zwang"],
    Parameter(
        help="What to plot. overview: a summary; time: coordinates and velocities over time; "
        "phase: velocities over coordinates; energy: kinetic and potential energy; "
        "drift: energy change and constraint violation; forces: constraint and contact forces; "
        "zwang: Gauss's measure Z by body."
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
Inputs = Annotated[
    list[str] | None,
    Parameter(
        help="The constant value of an input as name=value, for a motor in N m or N. "
        "May be given several times.",
        negative=(),
    ),
]
Values = Annotated[
    list[str] | None,
    Parameter(help="The value of a symbol as name=value. May be given several times.", negative=()),
]


def examples(*lines: str) -> str:
    """The last paragraphs of a help text: command lines to try."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
