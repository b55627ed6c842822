"""Commands that derive equations and solve inverse kinematics: `zwang equations` and `zwang ik`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from rich.markup import escape

import zwang as zw
from zwang.algebra.rotations import from_rpy
from zwang.cli.application import app
from zwang.cli.console import out
from zwang.cli.inputs import model_of
from zwang.cli.options import Base, Model, Strict, examples
from zwang.errors import DescriptionError, visible
from zwang.mechanism.numbers import orientation_of


@app.command(
    help_epilogue=examples(
        "zwang equations furuta",
        "zwang equations arm.urdf --symbolic mass --symbolic gravity --format latex",
    )
)
def equations(
    model: Model,
    *,
    symbolic: Annotated[
        list[str] | None,
        Parameter(
            help="Replace these numbers by symbols: mass, com, inertia, damping, friction or gravity. "
            "May be given several times.",
            negative=(),
        ),
    ] = None,
    method: Annotated[
        Literal["projection", "gauss", "newton_euler", "lagrange"],
        Parameter(help="Method of derivation; all methods give the same equations."),
    ] = "projection",
    format: Annotated[Literal["text", "latex", "html", "sympy"], Parameter(help="Output format.")] = "text",
    speeds: Annotated[
        list[str] | None,
        Parameter(
            help="The name of an independent generalised velocity. May be given several times; "
            "by default zwang chooses them.",
            negative=(),
        ),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> None:
    """Print the equations of motion: mass matrix times accelerations = right-hand side."""
    m = model_of(model, base=base, strict=strict, symbolic=symbolic or ())
    print(visible(zw.equations(m, speeds, method).written(format)))


@app.command(
    help_epilogue=examples(
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --rpy 3.14 0 0",
        "zwang ik panda.urdf --frame panda_hand --position 0.4 0.1 0.5 --quaternion 0 1 0 0",
    )
)
def ik(
    model: Model,
    *,
    frame: Annotated[str, Parameter(help="Name of the body or frame to place.")],
    position: Annotated[
        tuple[float, float, float], Parameter(help="Target of the frame's origin, x y z [m].", negative=())
    ],
    quaternion: Annotated[
        tuple[float, float, float, float] | None,
        Parameter(help="Target orientation as a quaternion, w x y z.", negative=()),
    ] = None,
    rpy: Annotated[
        tuple[float, float, float] | None,
        Parameter(help="Target orientation as roll, pitch and yaw [rad], in URDF's convention.", negative=()),
    ] = None,
    base: Base = "fixed",
    strict: Strict = True,
) -> int:
    """Find a configuration that moves a frame to a target pose (inverse kinematics).

    The exit status is 1 if none was found.
    """
    m = model_of(model, base=base, strict=strict)
    if quaternion is not None and rpy is not None:
        raise DescriptionError("give the orientation by --quaternion or by --rpy, not by both")
    target: Any = np.array(position)
    if quaternion is not None:
        target = (orientation_of(quaternion, "the orientation of the target"), target)
    elif rpy is not None:
        target = (from_rpy(*rpy), target)
    found = zw.robot.solve_ik(m, frame, target)
    for name, value in zip(m.coordinate_names, np.atleast_1d(found.q), strict=True):
        out.print(f"{escape(name):24} {value: .6f}")
    out.print(escape(str(found)))
    return 0 if np.all(found.converged) else 1
